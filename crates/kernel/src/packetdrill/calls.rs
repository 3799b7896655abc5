//! The socket calls of a script on the kernel's sockets, none of which blocks.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use nix::sys::socket::sockopt::{RcvBuf, SndBuf, TcpMaxSeg, TcpUserTimeout};
use nix::sys::socket::{getsockopt, setsockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::sockopt::{
    set_socket_reuseaddr, set_tcp_congestion, set_tcp_cork, set_tcp_nodelay, socket_error,
    socket_recv_buffer_size, socket_send_buffer_size, tcp_cork, tcp_nodelay,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, shutdown, socket_with,
};
use weir_packetdrill::{
    Call, CallKind, EndpointError, Returned, Shut, SocketOption, Watched, WriteFlags,
};

use super::wire::SERVER_PORT;
use super::{KernelEndpoint, REMOTE};

impl KernelEndpoint {
    pub(super) fn dispatch(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let fd = match &call.kind {
            CallKind::Socket => return self.open_socket(call),
            CallKind::Poll(watched, timeout) => {
                return self.poll(watched, timeout.is_some_and(|timeout| timeout.is_zero()));
            }
            kind => kind.descriptor(),
        };
        let Some(fd) = fd else { return Err(unsupported(&call.kind)) };
        if let CallKind::Close(_) = call.kind {
            return Ok(self.close(fd));
        }
        let Some(socket) = self.sockets.get(&fd) else { return Ok(Returned::Error("EBADF")) };
        let returned = match &call.kind {
            CallKind::Bind(_) => {
                let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT);
                done(bind(socket, &any))
            }
            CallKind::Listen(_) => {
                self.awaits_syn = true;
                done(listen(socket, 1))
            }
            CallKind::Accept(_) => match accept_with(socket, FLAGS) {
                Ok(accepted) => return self.insert(call, accepted, true),
                Err(error) => failed(error),
            },
            CallKind::Connect(_) => {
                if self.connection != Some(fd) {
                    self.connection = Some(fd);
                    self.newest += 1;
                    self.connects = true;
                }
                let returned = done(connect(socket, &SocketAddrV4::new(REMOTE, SERVER_PORT)));
                match returned {
                    Returned::Error("EISCONN") => Returned::Value(0),
                    returned => returned,
                }
            }
            CallKind::Write(_, bytes, flags) => write(socket, *bytes, *flags)?,
            CallKind::Read(_, bytes, flags) => {
                let mut buffer = vec![0; *bytes as usize];
                let peek = if flags.peek { RecvFlags::PEEK } else { RecvFlags::empty() };
                match recv(socket, &mut buffer[..], peek) {
                    Ok((_, bytes)) => Returned::Value(bytes as i64),
                    Err(error) => failed(error),
                }
            }
            CallKind::Shutdown(_, how) => done(shutdown(socket, direction(*how))),
            // The sockets never block; the script's calls do.
            CallKind::SetNonBlocking(..) => Returned::Value(0),
            CallKind::ReadFlags(_) => Returned::Value(O_RDWR),
            CallKind::SetOption(_, option) => set_option(socket, option)?,
            CallKind::GetOption(_, option) => read_option(socket, option)?,
            CallKind::InputQueue(_, expected) => match ioctl_fionread(socket) {
                Ok(found) if found == u64::from(*expected) => Returned::Value(0),
                Ok(found) => Returned::Stores("SIOCINQ", found as i64),
                Err(error) => failed(error),
            },
            kind => return Err(unsupported(kind)),
        };
        Ok(returned)
    }

    fn open_socket(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let controller = self.controller.clone();
        let open = move || -> io::Result<OwnedFd> {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, FLAGS, None)?;
            set_tcp_congestion(&socket, &controller)?;
            Ok(socket)
        };
        let socket = self.namespace.run(open).map_err(|error| {
            EndpointError(format!("a socket with controller {}: {error}", self.controller))
        })?;
        self.insert(call, socket, false)
    }

    /// Adds a descriptor under the number that the script expects.
    fn insert(
        &mut self,
        call: &Call,
        socket: OwnedFd,
        connected: bool,
    ) -> Result<Returned, EndpointError> {
        let fd = i32::try_from(call.result).ok().filter(|fd| *fd >= 0);
        let Some(fd) = fd else {
            return Err(EndpointError(format!("{} is no descriptor for a socket", call.result)));
        };
        // A number that stands for another descriptor now stands for the new one, as in packetdrill.
        self.replaced.extend(self.sockets.insert(fd, socket));
        if connected {
            self.connection = Some(fd);
        }
        Ok(Returned::Value(call.result))
    }

    /// The runner calls it again while it blocks: time passes there.
    fn poll(&self, watched: &[Watched], is_over: bool) -> Result<Returned, EndpointError> {
        let mut list = Vec::new();
        for one in watched {
            let Some(socket) = self.sockets.get(&one.fd) else {
                return Ok(Returned::Error("EBADF"));
            };
            list.push(PollFd::new(socket, PollFlags::from_bits_retain(one.events as u16)));
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = match poll(&mut list, Some(&at_once)) {
            Ok(0) if !is_over => return Ok(Returned::Blocks("EAGAIN")),
            Ok(ready) => ready,
            Err(error) => return Ok(failed(error)),
        };
        let differs = watched
            .iter()
            .zip(&list)
            .find(|(one, found)| one.ready != u32::from(found.revents().bits()));
        Ok(match differs {
            Some((_, found)) => Returned::Stores("revents", i64::from(found.revents().bits())),
            None => Returned::Value(ready as i64),
        })
    }

    fn close(&mut self, fd: i32) -> Returned {
        match self.sockets.remove(&fd) {
            Some(_) => Returned::Value(0),
            None => Returned::Error("EBADF"),
        }
    }
}

/// Hands over as much as the kernel takes at once.
fn write(socket: &OwnedFd, bytes: u32, given: WriteFlags) -> Result<Returned, EndpointError> {
    if given.fast_open {
        return Err(EndpointError("MSG_FASTOPEN: only Weir's transport runs it".to_owned()));
    }
    let mut flags = SendFlags::NOSIGNAL;
    flags.set(SendFlags::MORE, given.more);
    flags.set(SendFlags::EOR, given.end_of_record);
    Ok(match send(socket, &vec![0; bytes as usize], flags) {
        Ok(written) => Returned::Value(written as i64),
        Err(error) => failed(error),
    })
}

fn unsupported(kind: &CallKind) -> EndpointError {
    EndpointError(format!("{kind:?}: only Weir's transport runs this call"))
}

fn read_option(socket: &OwnedFd, option: &SocketOption) -> Result<Returned, EndpointError> {
    let (name, found, expected) = match option {
        SocketOption::Error(expected) => {
            return Ok(match (socket_error(socket), expected) {
                (Ok(Ok(())), None) => Returned::Value(0),
                (Ok(Ok(())), Some(_)) => Returned::Error("no error"),
                (Ok(Err(error)), Some(name)) if failed(error) == failed_as(name) => {
                    Returned::Value(0)
                }
                (Ok(Err(error)) | Err(error), _) => failed(error),
            });
        }
        SocketOption::NoDelay(on) => {
            ("TCP_NODELAY", tcp_nodelay(socket).map(i64::from), i64::from(*on))
        }
        SocketOption::Cork(on) => ("TCP_CORK", tcp_cork(socket).map(i64::from), i64::from(*on)),
        SocketOption::SendBuffer(bytes) => {
            let found = socket_send_buffer_size(socket).map(|size| size as i64);
            ("SO_SNDBUF", found, i64::from(*bytes))
        }
        SocketOption::ReceiveBuffer(bytes) => {
            let found = socket_recv_buffer_size(socket).map(|size| size as i64);
            ("SO_RCVBUF", found, i64::from(*bytes))
        }
        SocketOption::MaxSegment(bytes) => {
            let found = of_nix(getsockopt(socket, TcpMaxSeg)).map(i64::from);
            ("TCP_MAXSEG", found, i64::from(*bytes))
        }
        _ => return Err(EndpointError(format!("getsockopt of {option:?}: not supported here"))),
    };
    Ok(match found {
        Ok(found) if found == expected => Returned::Value(0),
        Ok(found) => Returned::Stores(name, found),
        Err(error) => failed(error),
    })
}

/// The error of this name.
fn failed_as(name: &str) -> Returned {
    let known = ERRORS.iter().find(|(_, known)| *known == name);
    known.map_or(Returned::Value(0), |(_, name)| Returned::Error(name))
}

fn set_option(socket: &OwnedFd, option: &SocketOption) -> Result<Returned, EndpointError> {
    let result = match option {
        SocketOption::Cork(on) => set_tcp_cork(socket, *on),
        SocketOption::Ignored => set_socket_reuseaddr(socket, true),
        SocketOption::NoDelay(on) => set_tcp_nodelay(socket, *on),
        SocketOption::Congestion(name) => set_tcp_congestion(socket, name),
        SocketOption::UserTimeout(millis) => of_nix(setsockopt(socket, TcpUserTimeout, millis)),
        SocketOption::MaxSegment(bytes) => of_nix(setsockopt(socket, TcpMaxSeg, bytes)),
        SocketOption::ReceiveBuffer(bytes) => {
            of_nix(setsockopt(socket, RcvBuf, &(*bytes as usize)))
        }
        SocketOption::SendBuffer(bytes) => of_nix(setsockopt(socket, SndBuf, &(*bytes as usize))),
        _ => return Err(EndpointError(format!("setsockopt of {option:?}: not supported here"))),
    };
    Ok(done(result))
}

fn of_nix<T>(result: nix::Result<T>) -> rustix::io::Result<T> {
    result.map_err(|error| Errno::from_raw_os_error(error as i32))
}

const fn direction(how: Shut) -> Shutdown {
    match how {
        Shut::Read => Shutdown::Read,
        Shut::Write => Shutdown::Write,
        Shut::Both => Shutdown::Both,
    }
}

fn done(result: rustix::io::Result<()>) -> Returned {
    result.map_or_else(failed, |()| Returned::Value(0))
}

fn failed(error: Errno) -> Returned {
    match error {
        Errno::AGAIN => Returned::Blocks("EAGAIN"),
        Errno::INPROGRESS => Returned::Blocks("EINPROGRESS"),
        Errno::ALREADY => Returned::Blocks("EALREADY"),
        error => {
            let known = ERRORS.iter().find(|(number, _)| *number == error);
            Returned::Error(known.map_or("another error", |(_, name)| name))
        }
    }
}

const ERRORS: [(Errno, &str); 12] = [
    (Errno::BADF, "EBADF"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::CONNRESET, "ECONNRESET"),
    (Errno::CONNABORTED, "ECONNABORTED"),
    (Errno::INVAL, "EINVAL"),
    (Errno::ISCONN, "EISCONN"),
    (Errno::NOENT, "ENOENT"),
    (Errno::NOTCONN, "ENOTCONN"),
    (Errno::PERM, "EPERM"),
    (Errno::PIPE, "EPIPE"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
];
/// Of `fcntl.h`: the flags of a socket that a script has not changed.
const O_RDWR: i64 = 2;
const FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

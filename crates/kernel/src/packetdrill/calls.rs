//! The socket calls of a script on the kernel's sockets, none of which blocks.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, SndBuf, TcpMaxSeg, TcpUserTimeout};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_reuseaddr, set_tcp_congestion, set_tcp_nodelay, socket_error,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, shutdown, socket_with,
};
use weir_packetdrill::{Call, CallKind, EndpointError, Returned, Shut, SocketOption};

use super::wire::SERVER_PORT;
use super::{KernelEndpoint, REMOTE};

impl KernelEndpoint {
    pub(super) fn dispatch(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let Some(fd) = call.kind.descriptor() else { return self.open_socket(call) };
        if let CallKind::Close(_) = call.kind {
            return Ok(self.close(fd));
        }
        let Some(socket) = self.sockets.get(&fd) else { return Ok(Returned::Error("EBADF")) };
        let returned = match &call.kind {
            CallKind::Socket | CallKind::Close(_) | CallKind::Bind(_) => {
                let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT);
                done(bind(socket, &any))
            }
            CallKind::Listen(_) => done(listen(socket, 1)),
            CallKind::Accept(_) => match accept_with(socket, FLAGS) {
                Ok(accepted) => return self.insert(call, accepted, true),
                Err(error) => failed(error),
            },
            CallKind::Connect(_) => {
                let returned = done(connect(socket, &SocketAddrV4::new(REMOTE, SERVER_PORT)));
                self.connection = Some(fd);
                match returned {
                    Returned::Error("EISCONN") => Returned::Value(0),
                    returned => returned,
                }
            }
            CallKind::Write(_, bytes) => write(socket, *bytes),
            CallKind::Read(_, bytes) => {
                let mut buffer = vec![0; *bytes as usize];
                match recv(socket, &mut buffer[..], RecvFlags::empty()) {
                    Ok((_, bytes)) => Returned::Value(bytes as i64),
                    Err(error) => failed(error),
                }
            }
            CallKind::Shutdown(_, how) => done(shutdown(socket, direction(*how))),
            // The sockets never block; the script's calls do.
            CallKind::SetNonBlocking(..) => Returned::Value(0),
            CallKind::ReadFlags(_) => Returned::Value(O_RDWR),
            CallKind::SetOption(_, option) => set_option(socket, option),
            CallKind::NoError(_) => match socket_error(socket) {
                Ok(Ok(())) => Returned::Value(0),
                Ok(Err(error)) | Err(error) => failed(error),
            },
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
        let Some(fd) = fd.filter(|fd| !self.sockets.contains_key(fd)) else {
            let result = call.result;
            return Err(EndpointError(format!("descriptor {result} is not free for a socket")));
        };
        self.sockets.insert(fd, socket);
        if connected {
            self.connection = Some(fd);
        }
        Ok(Returned::Value(call.result))
    }

    fn close(&mut self, fd: i32) -> Returned {
        match self.sockets.remove(&fd) {
            Some(_) => Returned::Value(0),
            None => Returned::Error("EBADF"),
        }
    }
}

/// Hands over as much as the kernel takes at once.
fn write(socket: &OwnedFd, bytes: u32) -> Returned {
    match send(socket, &vec![0; bytes as usize], SendFlags::NOSIGNAL) {
        Ok(written) => Returned::Value(written as i64),
        Err(error) => failed(error),
    }
}

fn set_option(socket: &OwnedFd, option: &SocketOption) -> Returned {
    let result = match option {
        SocketOption::Ignored => set_socket_reuseaddr(socket, true),
        SocketOption::NoDelay(on) => set_tcp_nodelay(socket, *on),
        SocketOption::Congestion(name) => set_tcp_congestion(socket, name),
        SocketOption::UserTimeout(millis) => of_nix(setsockopt(socket, TcpUserTimeout, millis)),
        SocketOption::MaxSegment(bytes) => of_nix(setsockopt(socket, TcpMaxSeg, bytes)),
        SocketOption::ReceiveBuffer(bytes) => {
            of_nix(setsockopt(socket, RcvBuf, &(*bytes as usize)))
        }
        SocketOption::SendBuffer(bytes) => of_nix(setsockopt(socket, SndBuf, &(*bytes as usize))),
    };
    done(result)
}

fn of_nix(result: nix::Result<()>) -> rustix::io::Result<()> {
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

//! The socket interface of the simulated host: one connection, any number of descriptors.

use weir_cc::CcConfig;
use weir_transport::{Connection, State};
use weir_units::{Bytes, Duration, stream};

use super::{MSS, Simulated, errno};
use crate::endpoint::{EndpointError, Returned};
use crate::script::{Call, CallKind, Shut, SocketOption};

/// A file descriptor.
#[derive(Debug, Default)]
pub(super) struct Socket {
    pub(super) listening: bool,
    /// It stands for the connection.
    connected: bool,
    non_blocking: bool,
}

impl Simulated {
    pub(super) fn dispatch(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        if call.kind == CallKind::Socket {
            return self.open(call, Socket::default());
        }
        let Some(fd) = call.kind.descriptor().filter(|fd| self.sockets.contains_key(fd)) else {
            return Ok(Returned::Error("EBADF"));
        };
        let returned = match &call.kind {
            CallKind::Socket | CallKind::Bind(_) => Returned::Value(0),
            CallKind::Listen(_) => {
                self.socket(fd).listening = true;
                Returned::Value(0)
            }
            CallKind::Accept(_) => return self.accept(call),
            CallKind::Connect(_) => self.connect(fd),
            CallKind::Write(_, bytes) => self.write(*bytes),
            CallKind::Read(_, bytes) => self.read(*bytes),
            CallKind::Close(_) => self.close_descriptor(fd),
            CallKind::Shutdown(_, how) => self.shutdown(*how),
            CallKind::SetNonBlocking(_, on) => {
                self.socket(fd).non_blocking = *on;
                Returned::Value(0)
            }
            CallKind::ReadFlags(_) => {
                let flags = if self.socket(fd).non_blocking { O_NONBLOCK } else { 0 };
                Returned::Value(O_RDWR | flags)
            }
            CallKind::SetOption(_, option) => self.set_option(option)?,
            CallKind::NoError(_) => match self.failure.take() {
                Some(error) => Returned::Error(errno(&error)),
                None => Returned::Value(0),
            },
        };
        Ok(returned)
    }

    /// A new descriptor, under the number that the script expects.
    fn open(&mut self, call: &Call, socket: Socket) -> Result<Returned, EndpointError> {
        let fd = i32::try_from(call.result).ok().filter(|fd| *fd >= 0);
        let Some(fd) = fd.filter(|fd| !self.sockets.contains_key(fd)) else {
            let result = call.result;
            return Err(EndpointError(format!("descriptor {result} is not free for a socket")));
        };
        self.sockets.insert(fd, socket);
        Ok(Returned::Value(call.result))
    }

    /// The descriptor exists: `dispatch` has seen it.
    fn socket(&mut self, fd: i32) -> &mut Socket {
        self.sockets.entry(fd).or_default()
    }

    fn accept(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let taken = self.is_accepted();
        let ready = self.connection.as_ref().is_some_and(Connection::is_synchronised);
        if taken || !ready {
            return Ok(Returned::Blocks("EAGAIN"));
        }
        self.open(call, Socket { connected: true, ..Socket::default() })
    }

    fn is_accepted(&self) -> bool {
        self.orphaned || self.sockets.values().any(|socket| socket.connected)
    }

    /// No socket will accept the connection: the peer learns so, at its next segment if the handshake is not over
    /// (Linux's `inet_csk_listen_stop`).
    fn drop_unaccepted(&mut self) {
        match &mut self.connection {
            Some(connection) if connection.is_synchronised() => connection.abort(self.now),
            _ => self.connection = None,
        }
    }

    fn connect(&mut self, fd: i32) -> Returned {
        let Some(connection) = &self.connection else {
            let config = self.config(self.offers_ecn, self.syn_retries);
            let rng = stream(1, "packetdrill");
            self.connection = Some(Connection::connect(&config, self.now, rng));
            self.socket(fd).connected = true;
            return Returned::Blocks("EINPROGRESS");
        };
        if let Some(error) = self.failure.take() {
            return Returned::Error(errno(&error));
        }
        match connection.state() {
            State::SynSent | State::SynReceived => Returned::Blocks("EALREADY"),
            _ => Returned::Value(0),
        }
    }

    fn close_descriptor(&mut self, fd: i32) -> Returned {
        let socket = self.sockets.remove(&fd).unwrap_or_default();
        if socket.connected {
            self.close();
        } else if socket.listening && !self.is_accepted() {
            self.drop_unaccepted();
        }
        Returned::Value(0)
    }

    fn shutdown(&mut self, how: Shut) -> Returned {
        let Some(connection) = &mut self.connection else { return Returned::Error("ENOTCONN") };
        if how != Shut::Read {
            connection.close(self.now);
        }
        self.reads_no_more |= how != Shut::Write;
        Returned::Value(0)
    }

    fn set_option(&mut self, option: &SocketOption) -> Result<Returned, EndpointError> {
        if let Some(connection) = &mut self.connection {
            return match option {
                SocketOption::Ignored => Ok(Returned::Value(0)),
                SocketOption::NoDelay(on) => {
                    connection.set_nagle(!on);
                    Ok(Returned::Value(0))
                }
                SocketOption::UserTimeout(millis) => {
                    connection.set_max_wait(user_timeout(*millis));
                    Ok(Returned::Value(0))
                }
                _ => {
                    let message = "Weir's transport takes TCP_NODELAY and TCP_USER_TIMEOUT after \
                                   the handshake, other options before it";
                    Err(EndpointError(message.to_owned()))
                }
            };
        }
        let config = self.config.clone();
        self.config = match option {
            SocketOption::Ignored => config,
            SocketOption::Congestion(name) => {
                let Ok(controller) = name.parse::<CcConfig>() else {
                    return Ok(Returned::Error("ENOENT"));
                };
                let recovery = config.stack.recovery;
                config.with_stack(weir_transport::Stack { recovery, controller })
            }
            SocketOption::NoDelay(on) => config.with_nagle(!on),
            SocketOption::UserTimeout(millis) => config.with_max_wait(user_timeout(*millis)),
            SocketOption::MaxSegment(bytes) => config.with_mss((*bytes).max(LEAST_MSS)),
            // The kernel doubles both (socket(7)), and windows may have half of it (`tcp_win_from_space`), in
            // whole segments.
            SocketOption::ReceiveBuffer(bytes) => {
                let (bytes, mss) = (u64::from(*bytes).max(LEAST_BUFFER), u64::from(MSS));
                config.with_recv_buffer(Bytes(bytes - bytes % mss.min(bytes)))
            }
            SocketOption::SendBuffer(bytes) => {
                config.with_send_buffer(Some(Bytes(2 * u64::from(*bytes))))
            }
        };
        Ok(Returned::Value(0))
    }
}

/// 0 is the system's (tcp(7)).
fn user_timeout(millis: u32) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(u64::from(millis)))
}

/// Half of Linux's `SOCK_MIN_RCVBUF`.
const LEAST_BUFFER: u64 = 1_152;
/// Of `fcntl.h`.
const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0o4000;
/// Linux's `TCP_MIN_MSS`.
const LEAST_MSS: u32 = 88;

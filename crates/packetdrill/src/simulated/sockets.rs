//! The socket interface of the simulated host: one connection, any number of descriptors.

use weir_cc::CcConfig;
use weir_transport::{Connection, State};
use weir_units::{Bytes, Duration, stream};

use super::{Simulated, errno};
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
        let taken = self.sockets.values().any(|socket| socket.connected);
        let ready = self.connection.as_ref().is_some_and(Connection::is_synchronised);
        if taken || !ready {
            return Ok(Returned::Blocks("EAGAIN"));
        }
        self.open(call, Socket { connected: true, ..Socket::default() })
    }

    fn connect(&mut self, fd: i32) -> Returned {
        let Some(connection) = &self.connection else {
            let config = self.config(self.offers_ecn);
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
        }
        Returned::Value(0)
    }

    fn shutdown(&mut self, how: Shut) -> Returned {
        let Some(connection) = &mut self.connection else { return Returned::Error("ENOTCONN") };
        if how != Shut::Read {
            connection.close(self.now);
        }
        Returned::Value(0)
    }

    fn set_option(&mut self, option: &SocketOption) -> Result<Returned, EndpointError> {
        if self.connection.is_some() && *option != SocketOption::Ignored {
            let message = "options of Weir's transport are set before the handshake";
            return Err(EndpointError(message.to_owned()));
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
            SocketOption::UserTimeout(millis) => {
                config.with_max_wait(Some(Duration::from_millis(u64::from(*millis))))
            }
            SocketOption::MaxSegment(bytes) => config.with_mss((*bytes).max(LEAST_MSS)),
            // The kernel doubles both (socket(7)).
            SocketOption::ReceiveBuffer(bytes) => {
                config.with_recv_buffer(Bytes(2 * u64::from(*bytes)))
            }
            SocketOption::SendBuffer(bytes) => {
                config.with_send_buffer(Some(Bytes(2 * u64::from(*bytes))))
            }
        };
        Ok(Returned::Value(0))
    }
}

/// Of `fcntl.h`.
const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0o4000;
/// Linux's `TCP_MIN_MSS`.
const LEAST_MSS: u32 = 88;

//! The socket interface of the simulated host.

use weir_transport::{Connection, State};
use weir_units::stream;

use super::Simulated;
use super::early::{self, Offer};
use super::flow::{EarlyFlow, Flow};
use super::report::errno;
use super::socket::{Role, Socket};
use crate::endpoint::{EndpointError, Returned};
use crate::fast_open::FastOpen;
use crate::script::{Call, CallKind, FastOpenSwitch, Shut, Sysctl, WriteFlags};

impl Simulated {
    pub(super) fn dispatch(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let fd = match &call.kind {
            CallKind::Socket => return self.open(call, Socket::new(self.base_config())),
            CallKind::OpenFile => {
                let file = Socket { role: Role::File, ..Socket::new(self.base_config()) };
                return self.open(call, file);
            }
            CallKind::EpollCreate => return self.open_epoll(call),
            CallKind::Poll(watched, timeout) => return Ok(self.poll(watched, *timeout)),
            CallKind::EpollControl(fd, change, of, event) => {
                return Ok(self.control_epoll(*fd, *change, *of, *event));
            }
            CallKind::EpollWait(fd, event, timeout) => {
                return Ok(self.wait_for_epoll(*fd, *event, *timeout));
            }
            kind => kind.descriptor(),
        };
        if let (CallKind::Close(_), Some(fd)) = (&call.kind, fd)
            && self.epolls.remove(&fd).is_some()
        {
            return Ok(Returned::Value(0));
        }
        let Some(fd) = fd.filter(|fd| self.sockets.contains_key(fd)) else {
            return Ok(Returned::Error("EBADF"));
        };
        self.call_socket(fd, call)
    }

    fn call_socket(&mut self, fd: i32, call: &Call) -> Result<Returned, EndpointError> {
        Ok(match &call.kind {
            CallKind::Bind(_) => Returned::Value(0),
            CallKind::Listen(_) => self.listen(fd),
            CallKind::Accept(_) => return self.accept(fd, call),
            CallKind::Connect(_) => self.connect(fd),
            CallKind::Write(_, bytes, flags) => {
                let blocking = call.until.is_some() && !flags.dont_wait;
                self.write(fd, u64::from(*bytes), *flags, blocking)
            }
            CallKind::Read(_, bytes, flags) => self.read(fd, u64::from(*bytes), flags.peek),
            CallKind::NoBuffer(_) => Returned::Error("EFAULT"),
            CallKind::NoAddress(_) => Returned::Error("EOPNOTSUPP"),
            CallKind::Close(_) => self.close(fd),
            CallKind::Shutdown(_, how) => self.shutdown(fd, *how),
            CallKind::SetNonBlocking(_, on) => {
                self.socket(fd).non_blocking = *on;
                Returned::Value(0)
            }
            CallKind::ReadFlags(_) => {
                let flags = if self.socket(fd).non_blocking { O_NONBLOCK } else { 0 };
                Returned::Value(O_RDWR | flags)
            }
            CallKind::SetOption(_, option) => return self.set_option(fd, option),
            CallKind::GetOption(_, option) => return self.read_option(fd, option),
            CallKind::InputQueue(_, expected) => {
                let found = self.flow(fd).map_or(0, |flow| flow.connection.readable());
                match found == u64::from(*expected) {
                    true => Returned::Value(0),
                    false => Returned::Stores("SIOCINQ", found as i64),
                }
            }
            kind => return Err(EndpointError(format!("{kind:?}: not a call of a socket"))),
        })
    }

    /// A new descriptor, under the number that the script expects.
    fn open(&mut self, call: &Call, socket: Socket) -> Result<Returned, EndpointError> {
        let fd = self.free_descriptor(call)?;
        self.sockets.insert(fd, socket);
        Ok(Returned::Value(call.result))
    }

    /// A number that stands for another descriptor now stands for the new one, as in packetdrill.
    pub(super) fn free_descriptor(&self, call: &Call) -> Result<i32, EndpointError> {
        i32::try_from(call.result)
            .ok()
            .filter(|fd| *fd >= 0)
            .ok_or_else(|| EndpointError(format!("{} is no descriptor for a socket", call.result)))
    }

    /// The descriptor exists: `dispatch` has seen it.
    pub(super) fn socket(&mut self, fd: i32) -> &mut Socket {
        let config = self.base_config();
        self.sockets.entry(fd).or_insert_with(|| Socket::new(config))
    }

    /// The connection of a descriptor.
    pub(super) fn flow(&mut self, fd: i32) -> Option<&mut Flow> {
        match self.sockets.get(&fd)?.role {
            Role::Flow(index) => self.flows.get_mut(index),
            _ => None,
        }
    }

    fn listen(&mut self, fd: i32) -> Returned {
        let all = self.settings.has_fast_open(FastOpenSwitch::AllListeners);
        let socket = self.socket(fd);
        socket.role = Role::Listener;
        socket.takes_early_data |= all;
        self.awaits_syn = true;
        Returned::Value(0)
    }

    /// The first connection of a listening socket that no call has accepted.
    pub(super) fn acceptable(&self, fd: i32) -> Option<usize> {
        let waits = |flow: &Flow| flow.listener == Some(fd) && flow.connected && !flow.gone;
        self.flows.iter().position(waits)
    }

    fn accept(&mut self, fd: i32, call: &Call) -> Result<Returned, EndpointError> {
        let Some(index) = self.acceptable(fd) else { return Ok(Returned::Blocks("EAGAIN")) };
        let listener = self.socket(fd).clone();
        let socket = Socket { role: Role::Flow(index), non_blocking: false, ..listener };
        let returned = self.open(call, socket)?;
        self.flows[index].listener = None;
        Ok(returned)
    }

    fn connect(&mut self, fd: i32) -> Returned {
        let socket = self.socket(fd).clone();
        match socket.role {
            Role::Fresh if socket.connects_late => {
                let Offer { option, data } = early::offer(&self.settings, &self.cache);
                if data {
                    self.socket(fd).role = Role::Late;
                    return Returned::Value(0);
                }
                self.open_flow(fd, 0, 0, option, true);
                Returned::Blocks("EINPROGRESS")
            }
            Role::Fresh => {
                self.open_flow(fd, 0, 0, None, false);
                Returned::Blocks("EINPROGRESS")
            }
            Role::Late => Returned::Error("EISCONN"),
            Role::Listener | Role::File => Returned::Error("EINVAL"),
            Role::Flow(index) => {
                let flow = &mut self.flows[index];
                match (flow.failure.take(), flow.connection.state()) {
                    (Some(error), _) => Returned::Error(errno(&error)),
                    (None, State::SynSent | State::SynReceived) => Returned::Blocks("EALREADY"),
                    _ => Returned::Value(0),
                }
            }
        }
    }

    /// Opens a connection with `bytes` written, of which its SYN carries `early`.
    fn open_flow(
        &mut self,
        fd: i32,
        bytes: u64,
        early: u32,
        option: Option<FastOpen>,
        asked: bool,
    ) {
        let offers_ecn = self.settings.sysctl(Sysctl::Ecn) == 1;
        let config = self.socket(fd).config.clone().with_ecn(offers_ecn.then_some(true));
        let mut connection = Connection::connect(&config, self.now, stream(1, "packetdrill"));
        connection.write(self.now, bytes);
        if asked {
            connection.send_with_syn(early);
        }
        let early = EarlyFlow { asked, option: option.is_some(), data: early };
        let mut flow = Flow { option, early, ..Flow::new(connection, self.now) };
        flow.held.on_written(u64::from(early.data));
        flow.held.on_written(bytes - u64::from(early.data));
        self.flows.push(flow);
        self.awaits_syn = false;
        let index = self.flows.len() - 1;
        self.socket(fd).role = Role::Flow(index);
    }

    /// Connects with data on the SYN, or asks for a cookie (`tcp_sendmsg_fastopen`).
    fn connect_with(&mut self, fd: i32, bytes: u64, blocking: bool) -> Returned {
        if !self.settings.has_fast_open(FastOpenSwitch::Client) {
            return Returned::Error("EOPNOTSUPP");
        }
        let Offer { option, data } = early::offer(&self.settings, &self.cache);
        let own = self.socket(fd).config.mss;
        let mss = u64::from(self.cache.mss.unwrap_or(u16::MAX)).min(u64::from(own));
        let space = if data { mss.saturating_sub(OPTION_SPACE) } else { 0 };
        let early = bytes.min(space);
        // FreeBSD's `sendto` connects, and leaves all of the data in the buffer.
        let all = blocking || self.settings.freebsd;
        self.open_flow(fd, if all { bytes } else { early }, early as u32, option, true);
        if self.settings.freebsd {
            return Returned::Value(bytes as i64);
        }
        if blocking {
            self.socket(fd).progress = bytes;
            return Returned::Blocks("EINPROGRESS");
        }
        match early {
            0 => Returned::Blocks("EINPROGRESS"),
            early => Returned::Value(early as i64),
        }
    }

    fn write(&mut self, fd: i32, bytes: u64, flags: WriteFlags, blocking: bool) -> Returned {
        let now = self.now;
        let socket = self.socket(fd);
        let progress = socket.progress;
        let not_sent = self.not_sent_bound(fd);
        let socket = self.socket(fd);
        let bounded = socket.config.send_buffer.is_some() || not_sent > 0;
        let implied = flags.fast_open || socket.role == Role::Late;
        let connects = socket.role == Role::Fresh
            && (implied || (socket.takes_early_data && self.settings.freebsd));
        if connects || self.socket(fd).role == Role::Late {
            return self.connect_with(fd, bytes, blocking);
        }
        let Some(flow) = self.flow(fd) else { return Returned::Error("ENOTCONN") };
        if let Some(error) = flow.failure.take() {
            self.socket(fd).progress = 0;
            return Returned::Error(errno(&error));
        }
        match flow.connection.state() {
            State::SynSent | State::SynReceived if progress == 0 && flags.fast_open => {
                return Returned::Error("EALREADY");
            }
            State::SynSent | State::SynReceived => return Returned::Blocks("EAGAIN"),
            _ if !flow.takes_data() && progress < bytes => return Returned::Error("EPIPE"),
            _ => {}
        }
        if !bounded || flags.more || flags.end_of_record || flow.held.is_corked() {
            flow.write(now, bytes - progress, flags.more, flags.end_of_record);
            self.socket(fd).progress = 0;
            return Returned::Value(bytes as i64);
        }
        let written = progress + self.write_fitting(fd, bytes - progress, not_sent);
        if written < bytes && blocking {
            self.socket(fd).progress = written;
            return Returned::Blocks("EAGAIN");
        }
        self.socket(fd).progress = 0;
        match written {
            0 if bytes > 0 => Returned::Blocks("EAGAIN"),
            _ => Returned::Value(written as i64),
        }
    }

    /// What may be written and not sent; 0 for any amount.
    pub(super) fn not_sent_bound(&self, fd: i32) -> u32 {
        let own = self.sockets.get(&fd).map_or(0, |socket| socket.values.not_sent);
        if own > 0 { own } else { self.settings.not_sent }
    }

    /// Writes what the send buffer and `TCP_NOTSENT_LOWAT` allow, one buffer of the kernel's after the other.
    fn write_fitting(&mut self, fd: i32, bytes: u64, not_sent: u32) -> u64 {
        let mut written = 0;
        while written < bytes {
            let now = self.now;
            let Some(flow) = self.flow(fd) else { break };
            let snapshot = flow.connection.snapshot();
            let unsent = flow.connection.unsent().get();
            if not_sent > 0 && unsent >= u64::from(not_sent) {
                flow.is_full = true;
                break;
            }
            // A buffer holds what may leave at once (`tcp_xmit_size_goal`).
            let half = snapshot.send_window.get() / 2;
            let idle = snapshot.unacked.get() == 0;
            let most = if idle { half.min(snapshot.cwnd.get()) } else { half };
            let goal = most.min(WRITE) / snapshot.mss.get() * snapshot.mss.get();
            let piece = if not_sent > 0 { goal.max(1) } else { u64::MAX };
            let wanted = (bytes - written).min(piece);
            let taken = flow.connection.write_fitting(now, wanted);
            written += taken;
            flow.held.on_written(taken);
            if taken < wanted {
                flow.is_full = true;
                break;
            }
            self.settle();
        }
        written
    }

    fn read(&mut self, fd: i32, bytes: u64, peek: bool) -> Returned {
        let now = self.now;
        if self.socket(fd).role == Role::Late {
            return Returned::Blocks("EAGAIN");
        }
        let Some(flow) = self.flow(fd) else { return Returned::Error("ENOTCONN") };
        let readable = flow.connection.readable();
        if readable > 0 && peek {
            return Returned::Value(readable.min(bytes) as i64);
        }
        if readable > 0 {
            return Returned::Value(flow.connection.read(now, bytes) as i64);
        }
        let state = flow.connection.state();
        match flow.failure.take() {
            Some(error) => Returned::Error(errno(&error)),
            None if flow.finished || flow.reads_no_more || state == State::Closed => {
                Returned::Value(0)
            }
            None => Returned::Blocks("EAGAIN"),
        }
    }

    fn close(&mut self, fd: i32) -> Returned {
        let now = self.now;
        let Some(socket) = self.sockets.remove(&fd) else { return Returned::Error("EBADF") };
        for epoll in self.epolls.values_mut() {
            epoll.forget(fd);
        }
        match socket.role {
            Role::Flow(index) => self.flows[index].close(now),
            // No socket will accept the connection: the peer learns so, at its next segment if the handshake is not
            // over (Linux's `inet_csk_listen_stop`).
            Role::Listener => {
                self.awaits_syn = false;
                for flow in self.flows.iter_mut().filter(|flow| flow.listener == Some(fd)) {
                    if flow.connection.is_synchronised() {
                        flow.connection.abort(now);
                    } else {
                        flow.gone = true;
                    }
                }
            }
            Role::Fresh | Role::Late | Role::File => {}
        }
        Returned::Value(0)
    }

    fn shutdown(&mut self, fd: i32, how: Shut) -> Returned {
        let now = self.now;
        let Some(flow) = self.flow(fd) else { return Returned::Error("ENOTCONN") };
        if how != Shut::Read {
            flow.finish(now);
        }
        flow.reads_no_more |= how != Shut::Write;
        flow.wakes += 1;
        Returned::Value(0)
    }
}

/// Of `fcntl.h`.
const O_RDWR: i64 = 2;
const O_NONBLOCK: i64 = 0o4000;
/// The space for TCP's options (`MAX_TCP_OPTION_SPACE`).
const OPTION_SPACE: u64 = 40;
/// What segmentation offload takes at most.
const WRITE: u64 = 65_536;

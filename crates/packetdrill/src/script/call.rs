//! Calls of the socket interface.

use weir_units::Duration;

use super::When;

/// A call of the socket interface with its expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// What is called.
    pub kind: CallKind,
    /// Until when it may block; `None`: it must return at once.
    pub until: Option<When>,
    /// What it must return.
    pub result: i64,
    /// The name of the error that it must return.
    pub errno: Option<String>,
}

/// The calls that every endpoint knows. File descriptors are the script's. Values that a call stores are those that
/// the script expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `socket(…)`.
    Socket,
    /// `bind(fd, …)`.
    Bind(i32),
    /// `listen(fd, …)`.
    Listen(i32),
    /// `accept(fd, …)`.
    Accept(i32),
    /// `connect(fd, …)`.
    Connect(i32),
    /// `write(fd, …, n)`, `send(fd, …, n, flags)`, `sendfile(fd, file, offset, n)`.
    Write(i32, u32, WriteFlags),
    /// `read(fd, …, n)`, `recv(fd, …, n, flags)`.
    Read(i32, u32, ReadFlags),
    /// A buffer at address 0: the call must not touch it.
    NoBuffer(i32),
    /// A call with an address of `AF_UNSPEC`, which connects nothing.
    NoAddress(i32),
    /// `close(fd)`.
    Close(i32),
    /// `shutdown(fd, how)`.
    Shutdown(i32, Shut),
    /// `fcntl(fd, F_SETFL, …)`.
    SetNonBlocking(i32, bool),
    /// `fcntl(fd, F_GETFL)`.
    ReadFlags(i32),
    /// `setsockopt(…)`.
    SetOption(i32, SocketOption),
    /// `getsockopt(…)`, which stores this.
    GetOption(i32, SocketOption),
    /// `ioctl(fd, SIOCINQ, [n])`: how much there is to read.
    InputQueue(i32, u32),
    /// `poll(…)`: which of these is ready, within this time.
    Poll(Vec<Watched>, Option<Duration>),
    /// `epoll_create(…)`.
    EpollCreate,
    /// `epoll_ctl(fd, …)`.
    EpollControl(i32, EpollChange, i32, Interest),
    /// `epoll_wait(fd, …)`: the first that is ready, within this time.
    EpollWait(i32, Interest, Option<Duration>),
    /// `open(…)`: a file from which `sendfile` reads.
    OpenFile,
}

impl CallKind {
    /// The descriptor that it is about, if it is about one.
    pub const fn descriptor(&self) -> Option<i32> {
        match self {
            Self::Socket | Self::EpollCreate | Self::OpenFile | Self::Poll(..) => None,
            Self::Bind(fd)
            | Self::Listen(fd)
            | Self::Accept(fd)
            | Self::Connect(fd)
            | Self::Write(fd, ..)
            | Self::Read(fd, ..)
            | Self::NoBuffer(fd)
            | Self::NoAddress(fd)
            | Self::Close(fd)
            | Self::Shutdown(fd, _)
            | Self::SetNonBlocking(fd, _)
            | Self::ReadFlags(fd)
            | Self::SetOption(fd, _)
            | Self::GetOption(fd, _)
            | Self::InputQueue(fd, _)
            | Self::EpollControl(fd, ..)
            | Self::EpollWait(fd, ..) => Some(*fd),
        }
    }
}

/// Flags of a call that sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// `MSG_DONTWAIT`.
    pub dont_wait: bool,
    /// `MSG_FASTOPEN`: connects, with data on the SYN.
    pub fast_open: bool,
    /// `MSG_MORE`: what is no full segment waits for more.
    pub more: bool,
    /// `MSG_EOR`: nothing is appended to the last segment.
    pub end_of_record: bool,
}

/// Flags of a call that receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadFlags {
    /// `MSG_PEEK`: what is read stays.
    pub peek: bool,
}

/// Which direction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shut {
    /// `SHUT_RD`.
    Read,
    /// `SHUT_WR`.
    Write,
    /// `SHUT_RDWR`.
    Both,
}

/// The socket options that every endpoint knows, with their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// Without effect on a script, as `SO_REUSEADDR`.
    Ignored,
    /// `SO_ERROR`: the name of the error that waits to be reported.
    Error(Option<String>),
    /// `TCP_NODELAY`.
    NoDelay(bool),
    /// `TCP_CORK`.
    Cork(bool),
    /// `TCP_CONGESTION`.
    Congestion(String),
    /// `TCP_USER_TIMEOUT`, in milliseconds.
    UserTimeout(u32),
    /// `TCP_SYNCNT`: how often a SYN is repeated.
    SynCount(u32),
    /// `TCP_MAXSEG`.
    MaxSegment(u32),
    /// `SO_RCVBUF`, as the application sets it; what it gets is twice as much (socket(7)).
    ReceiveBuffer(u32),
    /// `SO_SNDBUF`, likewise.
    SendBuffer(u32),
    /// `TCP_NOTSENT_LOWAT`: what may be written and not sent.
    NotSent(u32),
    /// `TCP_FASTOPEN`: how many connections may be opened by data on a SYN; on FreeBSD, that they may.
    FastOpen(u32),
    /// `TCP_FASTOPEN_CONNECT`: `connect` waits for the data to be sent with the SYN.
    FastOpenConnect(bool),
    /// `TCP_FASTOPEN_KEY`, if the value is one.
    FastOpenKey(Option<[u8; 16]>),
}

/// A descriptor of `poll` with the requested and the expected events, as bits of `poll.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The descriptor.
    pub fd: i32,
    /// The requested events.
    pub events: u32,
    /// The expected ones.
    pub ready: u32,
}

/// A descriptor of epoll with its events, as bits of `epoll.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// The descriptor that is reported; 0 if none is expected.
    pub fd: i32,
    /// Its events.
    pub events: u32,
}

/// What `epoll_ctl` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpollChange {
    /// `EPOLL_CTL_ADD`.
    Add,
    /// `EPOLL_CTL_MOD`.
    Modify,
    /// `EPOLL_CTL_DEL`.
    Delete,
}

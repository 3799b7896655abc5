//! A script as data: what [`parse`](crate::parse) returns and [`run`](crate::run) executes.

use weir_transport::{Flags, SackBlock, Stack, Timestamps};
use weir_units::{Duration, Ecn};

use crate::expr::Assertion;

/// A script that was read without errors.
#[derive(Clone, Debug)]
pub struct Script {
    /// What its head says about it.
    pub head: Head,
    /// Its option lines and sysctls.
    pub settings: Settings,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// Comments `# key: value` before the first event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The ids of its cases, as in `T1`.
    pub cases: Vec<String>,
    /// Section of an RFC, or title of the test that it restates.
    pub source: String,
    /// What it shows.
    pub title: String,
    /// Worlds where it cannot run or does not hold.
    pub exceptions: Vec<Exception>,
}

/// A world where a script is not run, or is known to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// `sim`, `kernel`, or a series of the kernel as in `kernel-6.12`.
    pub world: String,
    /// What happens there.
    pub kind: ExceptionKind,
    /// Why.
    pub reason: String,
}

/// Why a world is an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionKind {
    /// The world cannot run the script (`# skip`).
    Skip,
    /// The script fails there (`# known`); that it passes would be news.
    Known,
}

impl Head {
    /// The exception for `world`, which is `sim` or a kernel with its version, as in `kernel-6.1.170`.
    pub fn exception(&self, world: &str) -> Option<&Exception> {
        self.exceptions.iter().find(|exception| {
            let rest = world.strip_prefix(exception.world.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
        })
    }
}

/// Option lines and sysctls. The defaults are those of packetdrill's own tests for Linux.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Loss recovery and congestion control.
    pub stack: Stack,
    /// The smallest tolerance of times.
    pub tolerance: Duration,
    /// `net.ipv4` sysctls with their values.
    pub sysctls: Vec<(Sysctl, i64)>,
    /// `tcp_rmem`: the smallest, the first and the largest receive buffer, as Linux counts memory.
    pub receive_memory: Option<[u64; 3]>,
    /// `net.ipv4` sysctls with values that make no difference here, for a kernel.
    pub neutral: Vec<(String, String)>,
}

impl Settings {
    /// The value of a sysctl: the script's last one, or the default.
    pub fn sysctl(&self, wanted: Sysctl) -> i64 {
        let set = self.sysctls.iter().rev().find(|(sysctl, _)| *sysctl == wanted);
        set.map_or(wanted.default(), |(_, value)| *value)
    }
}

macro_rules! sysctls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $default:literal, $allowed:expr;)*) => {
        /// A `net.ipv4` sysctl that all endpoints understand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sysctl {
            $($(#[$doc])* $variant,)*
        }

        impl Sysctl {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name below `net.ipv4`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its value in a script that does not set it.
            pub const fn default(self) -> i64 {
                match self { $(Self::$variant => $default,)* }
            }

            /// The values that it may have.
            pub const fn allowed(self) -> std::ops::RangeInclusive<i64> {
                match self { $(Self::$variant => $allowed,)* }
            }
        }
    };
}

sysctls! {
    /// 0: no ECN, 1: offers and accepts, 2: accepts.
    Ecn = "tcp_ecn", 0, 0..=2;
    /// Selective acknowledgements.
    Sack = "tcp_sack", 1, 0..=1;
    /// Timestamps.
    Timestamps = "tcp_timestamps", 1, 0..=1;
    /// Restart from the initial window after idling.
    SlowStartAfterIdle = "tcp_slow_start_after_idle", 0, 0..=1;
    /// Retransmissions of a SYN before the connection fails.
    SynRetries = "tcp_syn_retries", 6, 1..=127;
    /// Retransmissions of the answer to a SYN before the connection fails.
    SynAckRetries = "tcp_synack_retries", 5, 0..=127;
    /// Retransmissions of data before the connection fails.
    Retries = "tcp_retries2", 15, 0..=255;
}

/// Something that happens at a time.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where it starts in the file.
    pub line: u32,
    /// When.
    pub at: When,
    /// What.
    pub action: Action,
}

/// The time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Since the script's start.
    Absolute(Duration),
    /// Since the event before.
    Relative(Duration),
    /// Any time: `*`.
    Any,
    /// Within these bounds since the script's start.
    AbsoluteRange(Duration, Duration),
    /// Within these bounds since the event before.
    RelativeRange(Duration, Duration),
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// `<`: a packet arrives at the stack under test.
    Inject(Packet),
    /// `>`: the stack must send this packet.
    Expect(Packet),
    /// The application calls the socket interface.
    Call(Call),
    /// `%{ assert … }%`.
    Assert(Vec<Assertion>),
}

/// A TCP segment in the script's numbers: local sequence numbers count from the local SYN, which is
/// number 0, and remote ones are as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Control bits.
    pub flags: Flags,
    /// First sequence number.
    pub seq: u32,
    /// Bytes of payload. Those of an expected packet may be the sum of several segments.
    pub len: u32,
    /// The acknowledgement field.
    pub ack: u32,
    /// The window field, unscaled; an expected packet need not state it.
    pub window: Option<u16>,
    /// The ECN field of the IP header; an expected packet need not state it.
    pub ecn: Option<Ecn>,
    /// TCP options; `None` stands for `<...>`, any.
    pub options: Option<Options>,
}

/// TCP options of a script's packet. Padding and order do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `mss N`.
    pub mss: Option<u16>,
    /// `wscale N`.
    pub wscale: Option<u8>,
    /// `sackOK`.
    pub sack_ok: bool,
    /// `sack A:B C:D`.
    pub sack: weir_transport::SackBlocks,
    /// `TS val N ecr N`.
    pub timestamps: Option<Timestamps>,
}

impl Options {
    /// Appends a SACK block.
    pub fn push_sack(&mut self, start: u32, end: u32) {
        let (start, end) = (weir_transport::SeqNum(start), weir_transport::SeqNum(end));
        self.sack.push(SackBlock { start, end });
    }
}

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

/// The calls that every endpoint understands. File descriptors are the script's.
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
    /// `write(fd, …, n)`, `send(fd, …, n, flags)`.
    Write(i32, u32),
    /// `read(fd, …, n)`, `recv(fd, …, n, flags)`.
    Read(i32, u32),
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
    /// `getsockopt(fd, SOL_SOCKET, SO_ERROR, [0], [4])`: no error waits to be reported.
    NoError(i32),
}

impl CallKind {
    /// The descriptor that it is about; `socket` has none.
    pub const fn descriptor(&self) -> Option<i32> {
        match self {
            Self::Socket => None,
            Self::Bind(fd)
            | Self::Listen(fd)
            | Self::Accept(fd)
            | Self::Connect(fd)
            | Self::Write(fd, _)
            | Self::Read(fd, _)
            | Self::Close(fd)
            | Self::Shutdown(fd, _)
            | Self::SetNonBlocking(fd, _)
            | Self::ReadFlags(fd)
            | Self::SetOption(fd, _)
            | Self::NoError(fd) => Some(*fd),
        }
    }
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

/// The socket options that every endpoint understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// Without effect on a script, as `SO_REUSEADDR`.
    Ignored,
    /// `TCP_NODELAY`.
    NoDelay(bool),
    /// `TCP_CONGESTION`.
    Congestion(String),
    /// `TCP_USER_TIMEOUT`, in milliseconds.
    UserTimeout(u32),
    /// `TCP_MAXSEG`.
    MaxSegment(u32),
    /// `SO_RCVBUF`, as the application gives it.
    ReceiveBuffer(u32),
    /// `SO_SNDBUF`, likewise.
    SendBuffer(u32),
}

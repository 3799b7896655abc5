//! A script as data: what [`parse`](crate::parse) returns and [`run`](crate::run) executes.

mod call;
mod settings;

use weir_transport::{Flags, SackBlock, Timestamps};
use weir_units::{Duration, Ecn};

pub use self::call::{
    Call, CallKind, EpollChange, Interest, ReadFlags, Shut, SocketOption, Watched, WriteFlags,
};
pub use self::settings::{FastOpenSwitch, Settings, Sysctl};
use crate::expr::Statement;
use crate::fast_open::FastOpen;

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
    /// `%{ … }%`.
    Code(Vec<Statement>),
    /// Commands change settings, which from now on are these.
    Configure(Box<Settings>),
    /// `sockstat`: how many connections are in this state.
    Count(i64, u32),
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
    /// `FO COOKIE` or `FOEXP COOKIE`.
    pub fast_open: Option<FastOpen>,
}

impl Options {
    /// Appends a SACK block.
    pub fn push_sack(&mut self, start: u32, end: u32) {
        let (start, end) = (weir_transport::SeqNum(start), weir_transport::SeqNum(end));
        self.sack.push(SackBlock { start, end });
    }
}

//! Route-failure policies: what a sender does when the network says that its route broke.
//!
//! ```text
//! network ── PathEvent ──> policy ── Order ──> sender: freeze, resume, probe, send again
//! ```
//!
//! A policy is a small table of states. It neither sends nor counts; it answers each event with an
//! [`Order`], which the sender executes whatever its recovery scheme and its controller are
//! (`sender/route.rs`). While a sender is frozen its time stands still: every timer keeps what remained
//! of it, and `cwnd`, RTO and RTT stay as they were.
//!
//! Sources: the files of the policies. Deviation in all of them: a sender with nothing outstanding
//! ignores notices; it has nothing to freeze, and no peer would answer its probes.

mod atcp;
mod bus;
mod config;
mod elfn;
mod tcp_f;

use std::fmt;

use weir_units::{Duration, Instant};

pub use self::bus::BusConfig;
pub use self::config::{RoutePolicy, RoutePolicyError};
pub use self::elfn::ElfnConfig;
pub use self::tcp_f::TcpFConfig;

/// What the network says about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// TCP-F's RFN, ELFN, or TCP-BuS's ERDN: the route broke.
    RouteFailed {
        /// The stream offset of the packet that found out, or that waits first where the route broke.
        sequence: u64,
    },
    /// TCP-F's RRN or TCP-BuS's ERSN: there is a route again.
    RouteRestored {
        /// The stream offset that the receiver expects next, where the notice says so.
        expected: Option<u64>,
    },
    /// ICMP: the destination cannot be reached.
    Unreachable,
    /// Number of hops to the peer; the way back is assumed to be as long.
    Hops(u8),
}

/// Where a route-failure policy stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteState {
    /// The route works, or no notice says otherwise (TCP-F: established).
    #[default]
    Normal,
    /// TCP-F waits for a route.
    Snooze,
    /// ELFN probes for a route.
    Standby,
    /// ATCP repairs a loss that it keeps from the controller.
    Loss,
    /// ATCP leaves the controller to an ECN echo.
    Congested,
    /// ATCP probes for a destination that cannot be reached.
    Disconnected,
    /// TCP-BuS waits for its route to be repaired.
    Reestablishing,
}

impl RouteState {
    /// Its name in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Snooze => "snooze",
            Self::Standby => "standby",
            Self::Loss => "persist",
            Self::Congested => "congested",
            Self::Disconnected => "disconnected",
            Self::Reestablishing => "reestablishing",
        }
    }

    /// What the sender may do of its own accord.
    pub(crate) const fn permits(self) -> SendPermission {
        match self {
            Self::Normal | Self::Congested => SendPermission::Everything,
            Self::Loss => SendPermission::Repairs,
            Self::Snooze | Self::Standby | Self::Disconnected | Self::Reestablishing => {
                SendPermission::Nothing
            }
        }
    }
}

impl fmt::Display for RouteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a sender may do of its own accord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendPermission {
    /// Send, and run its timers.
    Everything,
    /// Send again what is lost; its timers wait.
    Repairs,
    /// Neither.
    Nothing,
}

/// Copies a policy with its state.
pub(crate) trait ClonePolicy {
    fn clone_box(&self) -> Box<dyn Policy>;
}

impl<T: Policy + Clone + 'static> ClonePolicy for T {
    fn clone_box(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Policy> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// A table of states.
pub(crate) trait Policy: ClonePolicy + fmt::Debug + Send {
    /// Where it stands.
    fn state(&self) -> RouteState;

    /// The route broke while something was outstanding; `sequence` lies within that, where the
    /// notice has one.
    fn on_failure(&mut self, cx: &PolicyCx, sequence: Option<u64>) -> Order;

    /// There is a route again.
    fn on_restored(&mut self, _cx: &PolicyCx, _expected: Option<u64>) -> Order {
        Order::Nothing
    }

    /// An acknowledgement arrived and was not looked at yet. The sender takes it in as ever if the
    /// policy then stands where everything is permitted, and otherwise only counts what it covers.
    fn on_ack(&mut self, _cx: &PolicyCx, _news: &AckInfo) -> Order {
        Order::Nothing
    }

    /// Its deadline passed.
    fn on_timeout(&mut self, _cx: &PolicyCx) -> Order {
        Order::Nothing
    }

    /// Its deadline.
    fn next_timeout(&self) -> Option<Instant>;

    /// Whether the controller is to hear nothing of losses now.
    fn hides_losses(&self) -> bool {
        false
    }

    /// A loss was kept from the controller.
    fn on_hidden_loss(&mut self, _cx: &PolicyCx) {}

    /// New data leaves.
    fn on_new_data(&mut self) {}
}

/// What a policy may know of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PolicyCx {
    pub(crate) now: Instant,
    /// The retransmission timeout with back-off.
    pub(crate) rto: Duration,
    /// What is outstanding, as stream offsets.
    pub(crate) una: u64,
    pub(crate) nxt: u64,
}

/// What an acknowledgement brings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckInfo {
    /// Everything below arrived.
    pub(crate) ack: u64,
    /// It echoes a congestion mark.
    pub(crate) marked: bool,
}

impl AckInfo {
    /// Whether it acknowledges something new.
    fn moves(&self, cx: &PolicyCx) -> bool {
        self.ack > cx.una
    }

    /// Whether nothing is outstanding any more.
    fn covers_all(&self, cx: &PolicyCx) -> bool {
        self.ack == cx.nxt
    }
}

/// What becomes of a sender's state when it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtResume {
    /// It is as it was.
    #[default]
    Keep,
    /// It begins anew.
    Anew,
}

/// What the sender is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Nothing,
    /// Send nothing, and keep every timer at what remains of it.
    Freeze(AtResume),
    /// Go on.
    Resume(Resume),
    /// Find out whether there is a route.
    Probe(Probe),
    /// Send again all that is not acknowledged: waiting was in vain.
    SendAgain,
}

/// How to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) window: AtResume,
    pub(crate) rto: Rto,
    pub(crate) again: ResendRequest,
}

/// How long the retransmission timer runs after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rto {
    /// For what remained of it.
    Remaining,
    /// For as long as it would have been set then.
    Saved,
    /// For twice as long, until something new is acknowledged.
    Doubled,
    /// For so long, and what was known of round trips is forgotten.
    Initial(Duration),
}

/// What to send once more after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResendRequest {
    Nothing,
    /// All that is not acknowledged.
    All,
    /// Of that, what lies between two stream offsets.
    Between(u64, u64),
}

/// What a probe is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The first unacknowledged segment.
    Oldest,
    /// Nothing, below what the peer expects, as when a window is probed.
    Empty,
}

#[cfg(test)]
mod tests;

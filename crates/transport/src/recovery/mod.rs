//! Loss recovery: what is lost, and when to find out.
//!
//! A scheme reads acknowledgements that the [`Scoreboard`] has taken in and marks segments lost; the
//! sender sends marked segments first, then new data. [`Epoch`] keeps the Linux-like state around
//! that (open, disorder, recovery, loss) and tells the controller of each episode once.

mod config;
mod describe;
mod epoch;
mod go_back_n;
mod list;
mod newreno;
mod prr;
mod rack;
mod reno;
mod sack;
mod selective_repeat;
mod stop_and_wait;

use std::fmt;

use weir_cc::{Cause, RecoveryState};
use weir_units::{Duration, Instant};

pub use self::config::StackError;
pub(crate) use self::epoch::{Epoch, EpochChange};
pub use self::go_back_n::GoBackNConfig;
pub use self::list::RecoveryConfig;
pub(crate) use self::prr::Prr;
pub use self::prr::PrrRule;
pub use self::rack::{Detection, RackConfig, Tlp};
use crate::pause::Pause;
use crate::profile::HostProfile;
use crate::scoreboard::{Covered, Dsack, Scoreboard};

/// Copies a scheme with its state.
pub(crate) trait CloneScheme {
    fn clone_box(&self) -> Box<dyn LossRecovery>;
}

impl<T: LossRecovery + Clone + 'static> CloneScheme for T {
    fn clone_box(&self) -> Box<dyn LossRecovery> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn LossRecovery> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// Decides what is lost.
pub(crate) trait LossRecovery: CloneScheme + fmt::Debug + Send {
    /// What the rest of the sender does for it.
    fn profile(&self) -> Profile {
        Profile::default()
    }

    /// Reads an acknowledgement that the scoreboard has taken in; marks and reports losses.
    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found;

    /// Reads an acknowledgement after which nothing is to be marked lost ([`EpochChange::waits`]).
    fn on_ack_without_search(
        &mut self,
        _cx: &RecoveryCx,
        _board: &Scoreboard,
        _ack: &AckSummary,
    ) -> Found {
        Found::default()
    }

    /// An episode begins, which ends that of a probe: whether the probe sent a segment again.
    fn end_probe(&mut self) -> bool {
        false
    }

    /// New data was sent; called if [`Profile::follows_sending`].
    fn on_sent(&mut self, _cx: &RecoveryCx, _board: &Scoreboard) -> Countdown {
        Countdown::FromNow
    }

    /// Data was sent again, the oldest or other; called if [`Profile::follows_sending`].
    fn on_resent(&mut self, _now: Instant, _is_oldest: bool) {}

    /// A probe was sent; the stream ends here now.
    fn on_probe_sent(&mut self, _end: u64) {}

    /// The next deadline: by default the retransmission timeout alone.
    fn next_timeout(&self, timers: &TimerCx) -> Option<Instant> {
        timers.rto_deadline
    }

    /// A deadline passed.
    fn on_timeout(&mut self, cx: &RecoveryCx, _board: &mut Scoreboard) -> Expired {
        default_timeout(cx)
    }

    /// The sender's time stood still: what it set and noted before counts from the pause's end.
    fn postpone(&mut self, _pause: Pause) {}

    /// After the retransmission timer fired: which segments, besides the oldest, to keep as not lost.
    fn spares_on_timeout(&self, _cx: &RecoveryCx, _sent_at: Instant) -> bool {
        false
    }
}

/// The retransmission timer, if it is due.
fn default_timeout(cx: &RecoveryCx) -> Expired {
    if cx.rto_deadline.is_some_and(|at| at <= cx.now) { Expired::Timeout } else { Expired::Nothing }
}

/// What a scheme asks of the rest of the sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Profile {
    /// Bound on `nxt - una` in segments.
    pub(crate) window: Option<u32>,
    /// Any new acknowledgement ends recovery (RFC 5681), not only one past the recovery point.
    pub(crate) ends_on_partial_ack: bool,
    /// Meter the reduction by PRR.
    pub(crate) prr: Option<PrrRule>,
    /// Receive every sent segment.
    pub(crate) follows_sending: bool,
    /// Take unfounded reductions back (F-RTO, timestamps, DSACK).
    pub(crate) undo: bool,
    /// A timeout sends two segments in the user-space profile (RFC 9002 §6.2.4).
    pub(crate) timeout_sends_two: bool,
    /// Recovery lasts until something above its point is acknowledged: duplicates that follow an
    /// acknowledgement of exactly the point may be the episode's own (Linux's
    /// `tcp_is_non_sack_preventing_reopen`).
    pub(crate) ends_above_point: bool,
}

/// What a scheme may know of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryCx {
    pub(crate) now: Instant,
    pub(crate) srtt: Option<Duration>,
    pub(crate) min_rtt: Duration,
    /// The retransmission timeout without back-off, and its smallest value.
    pub(crate) base_rto: Duration,
    pub(crate) min_rto: Duration,
    pub(crate) mss: u64,
    pub(crate) state: RecoveryState,
    /// The recovery point: everything below was sent before the episode began.
    pub(crate) high: u64,
    pub(crate) rto_deadline: Option<Instant>,
    /// Whether data waits that was never sent and fits the peer's window.
    pub(crate) new_data: bool,
    /// Whether selective acknowledgements were agreed upon.
    pub(crate) sack: bool,
    pub(crate) host_profile: HostProfile,
}

impl RecoveryCx {
    /// Whether losses are being repaired.
    fn is_recovering(&self) -> bool {
        is_recovering(self.state)
    }
}

/// Whether losses are being repaired in this state.
pub(crate) fn is_recovering(state: RecoveryState) -> bool {
    matches!(state, RecoveryState::Recovery | RecoveryState::Loss)
}

/// What its deadlines depend on: little, because they are computed after every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimerCx {
    /// The retransmission timeout without back-off.
    pub(crate) base_rto: Duration,
    pub(crate) rto_deadline: Option<Instant>,
    /// Whether losses are being repaired.
    pub(crate) is_recovering: bool,
}

/// One acknowledgement as the scoreboard took it in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSummary {
    pub(crate) covered: Covered,
    /// Moves nothing although data is outstanding (RFC 5681 §2).
    pub(crate) duplicate: bool,
    /// Reports a duplicate arrival (RFC 2883).
    pub(crate) dsack: Option<Dsack>,
    /// An episode turned out to be unfounded.
    pub(crate) undone: bool,
    /// It starts the retransmission timer anew.
    pub(crate) sets_timer: bool,
}

/// What a scheme found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Bytes newly declared lost.
    pub(crate) lost: u64,
    /// Retransmissions are among them.
    pub(crate) again: bool,
    /// A loss was repaired by the probe that revealed it (RFC 8985 §7.4.2).
    pub(crate) repaired_by_probe: bool,
    /// What becomes of the retransmission timer.
    pub(crate) countdown: Countdown,
}

/// From when the retransmission timer counts that starts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Countdown {
    #[default]
    FromNow,
    /// From when the oldest segment left, because the timer waited for something else (Linux's `tcp_rearm_rto`).
    FromOldest,
    /// It does not: the timer waits for something else now.
    Superseded,
}

/// What a deadline meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// It was early.
    Nothing,
    /// Number of bytes declared lost.
    Lost(u64, Cause),
    /// Segments' own timers: number of bytes declared lost, and whether the oldest segment is among them.
    SegmentTimeout { lost: u64, oldest: bool },
    /// A tail loss probe is due.
    Probe,
    /// A timer other than the retransmission timer, which showed nothing.
    InVain,
    /// The retransmission timer.
    Timeout,
}

/// Duplicate acknowledgements that reveal a loss (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;

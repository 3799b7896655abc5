//! `rack`: time-ordered loss detection with tail loss probes (RFC 8985), as in Linux.
//!
//! ```text
//! lost        sent before something that arrived, and older than rack.rtt + reo_wnd
//! reo_wnd     0 in recovery or with three segments SACKed, while no reordering was seen;
//!             else min(steps · min_rtt / 4, srtt), steps grown by DSACKs
//! PTO         2 srtt, plus min_rto when one segment is out and its ACK may be delayed
//! ```
//!
//! Reordering is seen when a segment arrives that was sent once, below one that had arrived; when a hole
//! was filled by its original, as timestamps show, although it had been sent again; and when a copy
//! arrives in vain of a segment that is already acknowledged selectively, below others.
//!
//! Deviations from the RFC, which are Linux's: `rack.rtt` is that of the segment looked at last, not
//! of the newest; the timer waits for the last segment that may be reordered, not for the first;
//! DSACKs widen the window only where reordering was seen; recoveries that were taken back do not count
//! towards its reset.
//!
//! Parameters: `detection=count` finds losses by three segments SACKed above instead of by time, as
//! Linux does with `tcp_recovery=0`; `tlp=off` sends no probes (`tcp_early_retrans=0`); `prr=rfc9937` meters by
//! what was in flight instead of by the window, `prr=off` not at all ([`PrrRule`]). With
//! [`HostProfile::UserSpace`] timers fire when they are due, and a timeout sends two segments.

use weir_cc::{Cause, RecoveryState};
use weir_units::{Duration, Instant};

use super::describe::word_parameters;
use super::{
    AckSummary, Countdown, DUP_THRESH, Expired, Found, LossRecovery, Profile, PrrRule, RecoveryCx,
    TimerCx,
};
use crate::on_tick;
use crate::pause::Pause;
use crate::profile::HostProfile;
use crate::scoreboard::{Scoreboard, Transmission};

/// Which parts of Linux's recovery are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RackConfig {
    /// What shows a loss.
    pub detection: Detection,
    /// Whether a silent tail is probed.
    pub tlp: Tlp,
    /// How the reduction is metered.
    pub prr: PrrRule,
}

/// What shows a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// Something sent later has arrived (RFC 8985).
    #[default]
    Time,
    /// Three segments above it have arrived, as Linux counts with `tcp_recovery=0`.
    Count,
}

/// Whether a silent tail is probed (RFC 8985 §7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tlp {
    /// After two round trips.
    #[default]
    On,
    /// It waits for the timeout, as in Linux with `tcp_early_retrans=0`.
    Off,
}

word_parameters! {
    RackConfig {
        detection: Detection { Time = "time" | Count = "count" },
        tlp: Tlp { On = "on" | Off = "off" },
        prr: PrrRule { Linux = "linux" | Rfc9937 = "rfc9937" | Off = "off" },
    }
}

/// RACK's and the loss probe's state.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    config: RackConfig,
    /// The newest transmission known to have arrived.
    newest: Option<Transmission>,
    /// How long the one took that was looked at last.
    rtt: Duration,
    reordering_seen: bool,
    /// Quarters of the minimum RTT to allow for reordering.
    reo_wnd_steps: u64,
    /// Recoveries for which the steps last.
    reo_wnd_persist: u32,
    /// Where the round of the last DSACK ends: one round widens the window once.
    dsack_round_end: Option<u64>,
    /// Losses are being repaired.
    recovering: bool,
    awaited: Awaited,
    probe: Option<Probe>,
}

/// What the one timer waits for (Linux's `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Timeout,
    Reordering(Instant),
    Probe(Instant),
}

/// A tail loss probe that is out.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Where the stream ended when it was sent.
    high: u64,
    /// Whether it sent old data again.
    resent: bool,
}

/// What has left just before a probe is scheduled.
#[derive(Clone, Copy, Debug)]
enum Left {
    Nothing,
    NewData,
}

/// When a timer that is set for `wait` fires.
fn fires(cx: &RecoveryCx, wait: Duration) -> Instant {
    match cx.host_profile {
        HostProfile::Kernel => on_tick(cx.now, wait),
        HostProfile::UserSpace => cx.now + wait.max(SHORTEST_WAIT),
    }
}

fn slack(cx: &RecoveryCx) -> Duration {
    match cx.host_profile {
        HostProfile::Kernel => TIMER_SLACK,
        HostProfile::UserSpace => Duration::ZERO,
    }
}

/// RFC 9002 §6.1.2.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Linux's allowance for the timer's granularity (`TCP_TIMEOUT_MIN`, two jiffies of 1 ms).
const TIMER_SLACK: Duration = Duration::from_millis(2);
/// RFC 8985 §6.2: recoveries after which a widened window is reset.
const REO_WND_PERSIST: u32 = 16;

impl Rack {
    pub(super) fn new(config: RackConfig) -> Self {
        Self {
            config,
            newest: None,
            rtt: Duration::ZERO,
            reordering_seen: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            dsack_round_end: None,
            recovering: false,
            awaited: Awaited::Timeout,
            probe: None,
        }
    }
}

impl LossRecovery for Rack {
    fn profile(&self) -> Profile {
        Profile {
            prr: Some(self.config.prr),
            undo: true,
            follows_sending: true,
            timeout_sends_two: true,
            ..Profile::default()
        }
    }

    fn on_ack(&mut self, cx: &RecoveryCx, board: &mut Scoreboard, ack: &AckSummary) -> Found {
        self.adapt_reo_wnd(cx, board, ack);
        let repaired_by_probe = self.judge_probe(cx, board, ack);
        let before = self.awaited;
        let (lost, waits) = match self.config.detection {
            Detection::Time => self.advance(cx, board, ack),
            Detection::Count => match board.sacked_above(u64::from(DUP_THRESH - 1) * cx.mss) {
                Some(boundary) => (board.lose_in_flight_below(boundary), false),
                None => (0, false),
            },
        };
        let countdown =
            if waits { Countdown::Superseded } else { self.set_timer(cx, board, ack, before) };
        self.recovering |= lost > 0;
        Found { lost, repaired_by_probe, countdown, ..Found::default() }
    }

    fn on_ack_without_search(
        &mut self,
        cx: &RecoveryCx,
        board: &Scoreboard,
        ack: &AckSummary,
    ) -> Found {
        self.adapt_reo_wnd(cx, board, ack);
        self.learn(cx, ack);
        let countdown = self.set_timer(cx, board, ack, self.awaited);
        Found { countdown, ..Found::default() }
    }

    fn end_probe(&mut self) -> bool {
        self.probe.take().is_some_and(|probe| probe.resent)
    }

    /// Linux's `tcp_event_new_data_sent`, then `tcp_schedule_loss_probe`.
    fn on_sent(&mut self, cx: &RecoveryCx, board: &Scoreboard) -> Countdown {
        if let Some(probe) = self.probe_at(cx, board, Left::NewData) {
            self.awaited = Awaited::Probe(probe);
        } else if matches!(self.awaited, Awaited::Probe(_)) {
            self.awaited = Awaited::Timeout;
            return Countdown::FromOldest;
        }
        Countdown::FromNow
    }

    fn on_resent(&mut self, _now: Instant, is_oldest: bool) {
        if is_oldest && matches!(self.awaited, Awaited::Probe(_)) {
            self.awaited = Awaited::Timeout;
        }
    }

    fn on_probe_sent(&mut self, end: u64) {
        self.awaited = Awaited::Timeout;
        if let Some(probe) = &mut self.probe {
            probe.high = end;
        }
    }

    fn next_timeout(&self, timers: &TimerCx) -> Option<Instant> {
        let rto = timers.rto_deadline?;
        Some(match self.awaited {
            Awaited::Reordering(at) => at,
            // One that was scheduled while all was calm may still go out when SACKs begin to come in.
            Awaited::Probe(at) if !timers.is_recovering => at,
            Awaited::Probe(_) | Awaited::Timeout => rto,
        })
    }

    fn on_timeout(&mut self, cx: &RecoveryCx, board: &mut Scoreboard) -> Expired {
        match self.awaited {
            Awaited::Reordering(at) if at > cx.now => Expired::Nothing,
            Awaited::Reordering(_) => {
                self.awaited = Awaited::Timeout;
                let (lost, _) = self.detect(cx, board);
                if cx.host_profile == HostProfile::Kernel {
                    // Whatever is still waited for (Linux's `tcp_rack_reo_timeout`).
                    self.awaited = Awaited::Timeout;
                }
                self.recovering |= lost > 0;
                if lost > 0 { Expired::Lost(lost, Cause::FastRetransmit) } else { Expired::InVain }
            }
            Awaited::Probe(at) if !cx.is_recovering() => {
                if at > cx.now {
                    return Expired::Nothing;
                }
                self.awaited = Awaited::Timeout;
                if self.probe.is_some() || board.is_empty() {
                    return Expired::InVain;
                }
                self.probe = Some(Probe { high: board.nxt(), resent: !cx.new_data });
                Expired::Probe
            }
            Awaited::Probe(_) | Awaited::Timeout => {
                if cx.rto_deadline.is_none_or(|at| at > cx.now) {
                    return Expired::Nothing;
                }
                self.awaited = Awaited::Timeout;
                self.recovering = true;
                Expired::Timeout
            }
        }
    }

    fn postpone(&mut self, pause: Pause) {
        self.awaited = match self.awaited {
            Awaited::Reordering(at) => Awaited::Reordering(pause.put_off(at)),
            Awaited::Probe(at) => Awaited::Probe(pause.put_off(at)),
            Awaited::Timeout => Awaited::Timeout,
        };
    }

    /// RFC 8985 §6.3, without its window as in Linux: what left within the last round trip is not given up yet.
    fn spares_on_timeout(&self, cx: &RecoveryCx, sent_at: Instant) -> bool {
        let timed = self.config.detection == Detection::Time && self.newest.is_some();
        timed && sent_at.saturating_add(self.rtt) > cx.now
    }
}

impl Rack {
    /// RFC 8985 §6.2 step 2, then 5: the bytes lost, and whether the timer waits for more.
    fn advance(
        &mut self,
        cx: &RecoveryCx,
        board: &mut Scoreboard,
        ack: &AckSummary,
    ) -> (u64, bool) {
        // What an undo has unmarked may be lost by the wider window too (Linux's `rack.advanced`).
        if self.learn(cx, ack) || ack.undone { self.detect(cx, board) } else { (0, false) }
    }

    /// An acknowledgement sets the timer unless a wait for reordering begins with it: for a probe, or for the
    /// timeout, which counts from the oldest segment if the timer waited for anything else `before` (Linux's
    /// `tcp_set_xmit_timer`, `tcp_rearm_rto`).
    fn set_timer(
        &mut self,
        cx: &RecoveryCx,
        board: &Scoreboard,
        ack: &AckSummary,
        before: Awaited,
    ) -> Countdown {
        if !ack.sets_timer {
            return Countdown::FromNow;
        }
        let probe = self.probe_at(cx, board, Left::Nothing);
        self.awaited = probe.map_or(Awaited::Timeout, Awaited::Probe);
        if probe.is_some() || before == Awaited::Timeout {
            Countdown::FromNow
        } else {
            Countdown::FromOldest
        }
    }

    /// RFC 8985 §6.2 step 2: whether anything arrived that shows the state of the path.
    fn learn(&mut self, cx: &RecoveryCx, ack: &AckSummary) -> bool {
        let Some(last) = ack.covered.last_credible else { return false };
        self.rtt = cx.now.saturating_since(last);
        self.newest = self.newest.max(ack.covered.newest_credible);
        true
    }

    /// RFC 8985 §6.2 step 5: marks what is overdue; the last that is not yet arms the timer.
    fn detect(&mut self, cx: &RecoveryCx, board: &mut Scoreboard) -> (u64, bool) {
        let Some(newest) = self.newest else { return (0, false) };
        let patience = self.rtt + self.reo_wnd(cx, board.sacked());
        let (lost, spared) = board
            .lose_expired(|sent| sent < newest && sent.sent_at.saturating_add(patience) <= cx.now);
        let waits = spared.filter(|sent| *sent < newest);
        let last = waits.and_then(|_| board.last_in_flight_before(newest));
        if let Some(sent) = last {
            let overdue = sent.sent_at.saturating_add(patience + slack(cx));
            let wait = overdue.saturating_since(cx.now).min(cx.base_rto);
            self.awaited = Awaited::Reordering(fires(cx, wait));
        }
        (lost, last.is_some())
    }

    /// RFC 8985 §6.2 step 4.
    fn reo_wnd(&self, cx: &RecoveryCx, sacked: u64) -> Duration {
        let hurried = cx.is_recovering() || sacked >= u64::from(DUP_THRESH) * cx.mss;
        if hurried && !self.reordering_seen {
            return Duration::ZERO;
        }
        cx.min_rtt.mul_ratio(self.reo_wnd_steps, 4).min(cx.srtt.unwrap_or_default())
    }

    /// RFC 8985 §6.2 step 4: a round with DSACKs widens the window, sixteen recoveries that had a reason
    /// and brought none reset it.
    fn adapt_reo_wnd(&mut self, cx: &RecoveryCx, board: &Scoreboard, ack: &AckSummary) {
        self.dsack_round_end = self.dsack_round_end.filter(|end| board.una() < *end);
        let recovered = self.recovering && !cx.is_recovering() && !ack.undone;
        self.recovering = cx.is_recovering();
        let reordered = ack.dsack.is_some() && self.reordering_seen && !self.answers_probe(ack);
        self.reordering_seen |= ack.covered.reordered.is_some();
        if reordered && self.dsack_round_end.is_none() {
            self.dsack_round_end = Some(board.nxt());
            self.reo_wnd_steps = (self.reo_wnd_steps + 1).min(0xff);
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if recovered {
            self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
            if self.reo_wnd_persist == 0 {
                self.reo_wnd_steps = 1;
            }
        }
    }

    /// Whether an acknowledgement says that a probe and the segment that it repeats have both arrived.
    fn answers_probe(&self, ack: &AckSummary) -> bool {
        ack.dsack.zip(self.probe).is_some_and(|(dsack, probe)| dsack.end == probe.high)
    }

    /// When the tail is to be probed, if all is calm: RFC 8985 §7.2, timed as Linux's `tcp_schedule_loss_probe`, which
    /// counts the timeout that may come earlier from now, or when new data left from the oldest segment.
    fn probe_at(&self, cx: &RecoveryCx, board: &Scoreboard, left: Left) -> Option<Instant> {
        let calm = matches!(cx.state, RecoveryState::Open | RecoveryState::Cwr);
        let (first, srtt) = (board.first()?, cx.srtt?);
        if !calm || !cx.sack || self.config.tlp == Tlp::Off {
            return None;
        }
        let alone = first.end() == board.nxt();
        let margin = if alone { cx.min_rto } else { slack(cx) };
        let wait = srtt * 2 + margin;
        let rto = match (left, cx.host_profile) {
            (Left::NewData, HostProfile::Kernel) => {
                let over = first.sent_at.saturating_add(cx.base_rto);
                (over > cx.now).then(|| over.saturating_since(cx.now))
            }
            _ => cx.rto_deadline.map(|rto| rto.saturating_since(cx.now)),
        };
        Some(fires(cx, rto.map_or(wait, |rto| rto.min(wait))))
    }

    /// RFC 8985 §7.4: whether an acknowledgement ends the probe, and whether the probe repaired a loss
    /// that nothing else revealed, for which the controller must answer.
    fn judge_probe(&mut self, cx: &RecoveryCx, board: &Scoreboard, ack: &AckSummary) -> bool {
        // An episode of loss ends that of the probe (Linux's tcp_init_cwnd_reduction).
        self.probe = self.probe.filter(|_| !cx.is_recovering());
        let Some(probe) = self.probe else { return false };
        if board.una() < probe.high {
            return false;
        }
        if !probe.resent || self.answers_probe(ack) {
            self.probe = None;
            return false;
        }
        if board.una() > probe.high {
            self.probe = None;
            return true;
        }
        // Exactly at the end: a second acknowledgement without DSACK says that both copies arrived.
        if ack.duplicate && ack.covered.sacked == 0 {
            self.probe = None;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Dsack;
    use weir_cc::host::SendRecord;

    fn cx(state: RecoveryState) -> RecoveryCx {
        RecoveryCx {
            now: Instant::ZERO,
            srtt: None,
            min_rtt: Duration::ZERO,
            base_rto: Duration::from_secs(1),
            min_rto: Duration::from_secs(1),
            mss: 100,
            state,
            high: 0,
            rto_deadline: None,
            new_data: false,
            sack: true,
            host_profile: HostProfile::Kernel,
        }
    }

    #[test]
    fn a_round_with_dsacks_widens_the_window_once_and_sixteen_recoveries_reset_it() {
        let (mut rack, mut board) = (Rack::new(RackConfig::default()), Scoreboard::default());
        rack.reordering_seen = true;
        board.push(Instant::ZERO, 100, SendRecord::default());
        let dsack = Some(Dsack { end: 100, was_resent: true });
        let mut ack = |state, dsack, undone| {
            let digest = AckSummary { dsack, undone, ..AckSummary::default() };
            rack.on_ack(&cx(state), &mut board, &digest);
            rack.reo_wnd_steps
        };
        assert_eq!(ack(RecoveryState::Open, dsack, false), 2);
        assert_eq!(ack(RecoveryState::Open, dsack, false), 2, "the same round");
        for _ in 0..15 {
            ack(RecoveryState::Recovery, None, false);
            assert_eq!(ack(RecoveryState::Open, None, false), 2);
            ack(RecoveryState::Recovery, None, false);
            assert_eq!(ack(RecoveryState::Open, None, true), 2, "taken back");
        }
        ack(RecoveryState::Recovery, None, false);
        assert_eq!(ack(RecoveryState::Open, None, false), 1);
    }
}

//! The sender's timers: retransmission, probes and a closed window.

use weir_cc::{Cause, CongestionEvent, RecoveryState};
use weir_units::{Bytes, Duration, Instant};

use super::Sender;
use crate::pause::Pause;
use crate::policy::SendPermission;
use crate::recovery::{AckSummary, Expired, TimerCx, is_recovering};
use crate::rtt::RttEstimator;
use crate::scoreboard::Covered;
use crate::stats::Stats;
use crate::{HostProfile, on_tick};

/// What the sender waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// They fire on the ticks of Linux's timer wheel ([`on_tick`]), as those of RACK's kernel do.
    on_ticks: bool,
    /// When the retransmission timer was started; it runs while anything is outstanding.
    rto_since: Option<Instant>,
    /// It runs twice as long.
    doubled: bool,
    /// How long it runs, exactly and in whole ticks, if that is not what the timeout is now: round trips were measured
    /// since it was started, or it counts from the oldest segment.
    length: Option<[Duration; 2]>,
    /// When the window was found closed, and how often it was probed since.
    persist: Option<(Instant, u32)>,
    /// Retransmission timeouts, or window probes, without progress.
    pub(super) fruitless: u32,
    /// When the peer last moved anything forward.
    pub(super) progress_at: Instant,
    /// A zero-window probe is due.
    pub(super) window_probe_due: bool,
}

impl Timers {
    pub(super) fn new(on_ticks: bool) -> Self {
        Self { on_ticks, ..Self::default() }
    }

    /// RFC 6298 §5.1: starts the retransmission timer if it is not running.
    pub(super) fn start(&mut self, now: Instant) {
        if self.rto_since.is_none() {
            self.restart(now);
            self.progress_at = now;
        }
    }

    /// RFC 6298 §5.2, §5.3: new data was acknowledged.
    pub(super) fn on_progress(&mut self, now: Instant, outstanding: bool) {
        self.rto_since = outstanding.then_some(now);
        self.length = None;
        self.doubled = false;
        self.fruitless = 0;
        self.progress_at = now;
    }

    /// The timer runs from `since`.
    pub(super) fn restart(&mut self, since: Instant) {
        self.rto_since = Some(since);
        self.length = None;
    }

    /// The timer runs from `since`, twice as long until there is progress.
    pub(super) fn restart_doubled(&mut self, since: Instant) {
        self.restart(since);
        self.doubled = true;
    }

    /// A round trip is about to be measured, which changes the timeout and not the timer that runs (Linux sets
    /// `icsk_timeout` when it starts one).
    pub(super) fn keep_length(&mut self, rtt: &RttEstimator) {
        if self.on_ticks && self.length.is_none() && self.rto_since.is_some() {
            self.length = Some([rtt.rto(), rtt.rto_in_ticks()].map(|rto| self.in_force(rto)));
        }
    }

    /// The timer is set for the rest of a timeout that began with `oldest` (Linux's `tcp_rto_delta_us`).
    pub(super) fn count_from(&mut self, oldest: Instant, now: Instant, rtt: &RttEstimator) {
        if self.on_ticks {
            let over = oldest.saturating_add(self.in_force(rtt.rto_in_ticks()));
            let rest = over.saturating_since(now).max(Duration::from_micros(1));
            (self.rto_since, self.length) = (Some(now), Some([rest; 2]));
        }
    }

    /// Nothing is outstanding.
    pub(super) fn stop_retransmission(&mut self) {
        self.rto_since = None;
    }

    /// When the retransmission timeout is over. The tick after it counts, and is only looked for once it is:
    /// nearly every timer is started anew before.
    pub(super) fn rto_deadline(&self, now: Instant, rtt: &RttEstimator) -> Option<Instant> {
        let since = self.rto_since?;
        let kept = self.length.map(|[exact, _]| exact);
        let over = since.saturating_add(kept.unwrap_or_else(|| self.in_force(rtt.rto())));
        if over > now || !self.on_ticks {
            return Some(over);
        }
        let kept = self.length.map(|[_, in_ticks]| in_ticks);
        Some(on_tick(since, kept.unwrap_or_else(|| self.in_force(rtt.rto_in_ticks()))))
    }

    /// A retransmission timeout as it is now.
    pub(super) fn in_force(&self, rto: Duration) -> Duration {
        if self.doubled { rto.saturating_mul(2) } else { rto }
    }

    /// The sender's time stood still.
    pub(super) fn postpone(&mut self, pause: Pause) {
        self.rto_since = self.rto_since.map(|since| pause.shift(since));
        self.persist = self.persist.map(|(since, probes)| (pause.shift(since), probes));
    }

    /// The peer's window closed with data waiting and nothing outstanding.
    pub(super) fn start_persist(&mut self, now: Instant) {
        if self.persist.is_none() {
            self.persist = Some((now, 0));
            self.progress_at = now;
        }
    }

    pub(super) fn is_persisting(&self) -> bool {
        self.persist.is_some()
    }

    /// The peer answers a probe: as long as it does, it may keep its window closed (RFC 9293
    /// §3.8.6.1), unless the application has set how long. The next probe counts from here, as Linux's
    /// (`tcp_ack_probe`).
    pub(super) fn on_answered(&mut self, now: Instant) {
        if let Some((since, _)) = &mut self.persist {
            *since = now;
            self.fruitless = 0;
        }
    }

    pub(super) fn end_persist(&mut self, now: Instant) {
        if self.persist.take().is_some() {
            self.fruitless = 0;
            self.progress_at = now;
        }
    }

    /// RFC 9293 §3.8.6.1: probes back off like retransmissions.
    fn persist_deadline(&self, rtt: &RttEstimator) -> Option<Instant> {
        let (since, probes) = self.persist?;
        let wait = rtt.base_rto().saturating_mul(1 << probes.min(16)).min(MAX_PROBE_WAIT);
        Some(if self.on_ticks { on_tick(since, wait) } else { since.saturating_add(wait) })
    }
}

/// The longest wait between window probes (RFC 1122 §4.2.2.17 leaves it open; Linux's TCP_RTO_MAX).
const MAX_PROBE_WAIT: Duration = Duration::from_secs(120);

impl Sender {
    /// The next deadline of the sending half.
    pub(crate) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let policy = self.route.as_ref().and_then(super::route::Route::next_timeout);
        match self.permits() {
            SendPermission::Everything => {}
            SendPermission::Repairs => {
                return Instant::earlier(policy, self.pacing_deadline(now));
            }
            SendPermission::Nothing => return policy,
        }
        let recovery = if self.board.is_empty() {
            None
        } else {
            self.recovery.next_timeout(&TimerCx {
                base_rto: self.timers.in_force(self.rtt.base_rto()),
                rto_deadline: self.timers.rto_deadline(now, &self.rtt),
                is_recovering: is_recovering(self.epoch.state()),
            })
        };
        let persist = self.timers.persist_deadline(&self.rtt);
        Instant::earlier(Instant::earlier(recovery, persist), self.pacing_deadline(now))
    }

    /// How often in a row waiting was in vain.
    pub(crate) fn fruitless(&self) -> u32 {
        self.timers.fruitless
    }

    /// Since when the peer has moved nothing forward, if it should have: data is out, or its closed window
    /// was probed.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        let probed = self.timers.persist.is_some_and(|(_, probes)| probes > 0);
        let waits = probed || !self.board.is_empty() || self.timers.fruitless > 0;
        waits.then_some(self.timers.progress_at)
    }

    /// A deadline may have passed.
    pub(crate) fn on_timeout(&mut self, now: Instant, stats: &mut Stats) {
        self.on_route_timeout(now, stats);
        if self.permits() != SendPermission::Everything {
            return;
        }
        if self.timers.persist_deadline(&self.rtt).is_some_and(|at| at <= now) {
            let probes = self.timers.persist.map_or(0, |(_, probes)| probes);
            self.timers.persist = Some((now, probes + 1));
            if probes == 0 {
                self.timers.progress_at = now;
            }
            self.timers.fruitless += 1;
            self.timers.window_probe_due = true;
        }
        if self.board.is_empty() {
            return;
        }
        let cx = self.recovery_cx(now);
        match self.recovery.on_timeout(&cx, &mut self.board) {
            Expired::Nothing => {}
            Expired::Probe => self.probe_due = true,
            Expired::InVain => self.count_from_oldest(now),
            Expired::Lost(lost, cause) => {
                self.count_from_oldest(now);
                // Pacing has a timer of its own, which sends everything (`tcp_tsq_write`).
                let paces = self.pacing_rate().is_some();
                self.only_repairs = self.host_profile == HostProfile::Kernel && !paces;
                self.on_timed_loss(now, lost, cause, stats);
            }
            Expired::SegmentTimeout { lost, oldest } => {
                self.timers.fruitless += u32::from(oldest);
                self.on_timed_loss(now, lost, Cause::FastRetransmit, stats);
            }
            Expired::Timeout => self.on_rto(now, stats),
        }
    }

    /// The timer waited for something else: what is left of the timeout counts from the oldest segment (Linux's
    /// `tcp_rearm_rto`).
    pub(super) fn count_from_oldest(&mut self, now: Instant) {
        if let Some(oldest) = self.board.first() {
            self.timers.count_from(oldest.sent_at, now, &self.rtt);
        }
    }

    /// A timer other than the retransmission timeout revealed a loss.
    fn on_timed_loss(&mut self, now: Instant, lost: u64, cause: Cause, stats: &mut Stats) {
        stats.lost_bytes += lost;
        let prior_in_flight = self.board.in_flight() + Bytes(lost);
        let begins = self.epoch.state() != RecoveryState::Recovery;
        self.reduce(now, cause, lost, prior_in_flight, stats);
        if begins {
            // PRR lets one segment go, as for an acknowledgement of one. Later the window stands, and what is lost
            // leaves its place in it to what is sent again (Linux's tcp_rack_reo_timeout).
            let covered = Covered { delivered: self.mss, ..Covered::default() };
            let digest = AckSummary { covered, ..AckSummary::default() };
            self.epoch.meter(&self.board, &digest, lost, self.mss);
        }
        self.epoch.resume_repairs();
    }

    /// RFC 6298 §5.4 to 5.6 and RFC 5681 §3.1: everything out is presumed lost.
    pub(super) fn on_rto(&mut self, now: Instant, stats: &mut Stats) {
        if self.hides_loss(now, stats) {
            return self.on_hidden_timeout(now, stats);
        }
        stats.timeouts += 1;
        self.clock.timed_out(now, stats);
        let prior_in_flight = self.board.in_flight();
        let again = self.timers.fruitless > 0;
        self.timers.fruitless += 1;
        if self.epoch.is_closed() && self.board.sacked() >= 3 * self.mss {
            // What seemed to be reordering was loss (Linux's `tcp_enter_loss`).
            self.reordering = 0;
        }
        let lost = self.presume_lost(now, stats);
        let first_in_epoch = self.epoch.is_closed()
            || self.epoch.is_silent()
            || self.board.una() >= self.epoch.high()
            || (self.in_loss() && !again);
        let backoff = self.rtt.backoff();
        self.rtt.on_timeout();
        self.timers.restart(now);
        // Linux tells the controller of each timeout, but only the first of an episode sets ssthresh.
        let cause = Cause::Timeout { backoff };
        let event = CongestionEvent { cause, first_in_epoch, lost: Bytes(lost), prior_in_flight };
        if first_in_epoch {
            self.count_reduction(stats);
        }
        let copies = self.copies_out();
        let copies = first_in_epoch.then_some(copies);
        self.epoch.enter_loss(&self.board, self.profile, copies, again);
        self.leave_quick_start();
        self.with_controller(now, |controller, cx| controller.on_congestion(cx, &event));
        self.timeout_segments = match self.host_profile {
            HostProfile::UserSpace if self.profile.timeout_sends_two => 2,
            HostProfile::Kernel if self.profile.timeout_sends_two => 1,
            // A copy that still counts may fill the window: the oldest leaves all the same (`tcp_retransmit_timer`).
            _ => u8::from(self.board.in_flight() > Bytes::ZERO),
        };
        debug_assert_eq!(self.epoch.state(), RecoveryState::Loss);
    }

    /// Declares lost what a timeout does: all but what the recovery scheme spares.
    pub(super) fn presume_lost(&mut self, now: Instant, stats: &mut Stats) -> u64 {
        let cx = self.recovery_cx(now);
        let recovery = &self.recovery;
        self.board.clear_duplicates();
        if self.board.is_reneged() {
            self.board.forget_sacks();
        }
        let lost = self
            .board
            .lose_where(|index, sent| index == 0 || !recovery.spares_on_timeout(&cx, sent.sent_at));
        stats.lost_bytes += lost;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outstanding, RttConfig, RttVariation};

    const OUTSTANDING: Outstanding = Outstanding { snd_una: 0, snd_nxt: 1 };

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Linux's estimator after a round trip of 16.03 ms.
    fn measured_once() -> RttEstimator {
        let ms = Duration::from_millis;
        let mut rtt = RttEstimator::new(RttConfig {
            variation: RttVariation::Linux,
            min_rto: ms(200),
            max_rto: ms(120_000),
            initial_rto: ms(1_000),
            max_doublings: u32::MAX,
            longest_backoff: Duration::MAX,
            fixed_rto: None,
        });
        rtt.on_sample(at(0), Duration::from_micros(16_030), OUTSTANDING);
        rtt
    }

    /// A round trip of 16.03 ms: 216.03 ms, of which Linux makes 217, and twice as many after a timeout. Both are
    /// more than 63 ticks ahead and wait for one in eight: those of 17.75 ms and 10.75 ms are the first after.
    #[test]
    fn timeouts_wait_for_the_ticks_of_the_wheel() {
        let rtt = measured_once();
        for (on_ticks, first, second) in [(true, 231_750, 447_750), (false, 226_030, 442_060)] {
            let (mut timers, mut rtt) = (Timers::new(on_ticks), rtt.clone());
            timers.start(at(10_000));
            assert_eq!(timers.rto_deadline(at(10_000), &rtt), Some(at(226_030)));
            assert_eq!(timers.rto_deadline(at(226_030), &rtt), Some(at(first)));
            rtt.on_timeout();
            assert_eq!(timers.rto_deadline(at(442_060), &rtt), Some(at(second)));
        }
    }

    /// As above: 217 ticks from 10 ms on, whatever a selective acknowledgement measures meanwhile (Linux's `icsk_timeout`),
    /// and also if the timer is set at 100 ms for the rest of them (`tcp_rto_delta_us`). A timer that starts anew has
    /// the new length.
    #[test]
    fn a_timeout_keeps_its_length_or_counts_from_the_oldest_segment() {
        let mut rtt = measured_once();
        let mut rest = Timers::new(true);
        rest.count_from(at(10_000), at(100_000), &rtt);
        assert_eq!(rest.rto_deadline(at(227_100), &rtt), Some(at(231_750)));
        let mut kept = Timers::new(true);
        kept.start(at(10_000));
        kept.keep_length(&rtt);
        rtt.on_sample(at(20_000), Duration::from_millis(308), OUTSTANDING);
        assert_eq!(kept.rto_deadline(at(226_030), &rtt), Some(at(231_750)));
        kept.restart(at(10_000));
        assert!(kept.rto_deadline(at(226_030), &rtt).is_some_and(|over| over > at(300_000)));
    }
}

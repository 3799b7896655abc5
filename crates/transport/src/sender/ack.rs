//! What an acknowledgement means, in the order that [`weir_cc::CongestionController`] documents.

use std::ops::Range;

use weir_cc::{AckEvent, AckTimestamps, Cause, CongestionEvent, RateSample, RecoveryState};
use weir_units::{Bytes, Duration, Echo, Instant};

use super::{Sender, silence};
use crate::HostProfile;
use crate::policy::SendPermission;
use crate::recovery::{AckSummary, Countdown, EpochChange, Found, Prr, PrrRule};
use crate::scoreboard::{AckTime, Covered};
use crate::segment::SackBlocks;
use crate::stats::Stats;

/// An acknowledgement with its numbers turned into stream offsets.
#[derive(Clone, Debug)]
pub(crate) struct IncomingAck {
    /// Everything below arrived.
    pub(crate) ack: u64,
    /// Ranges that arrived beyond it; a range at or below `ack` is a DSACK.
    pub(crate) sack: [Range<u64>; SackBlocks::MAX],
    pub(crate) sack_len: usize,
    /// The peer's window in bytes, if the segment may update it.
    pub(crate) window: Option<u64>,
    /// Whether the segment carried data, SYN or FIN: then it is no duplicate acknowledgement.
    pub(crate) carries_data: bool,
    /// The timestamp that it echoes, and the RTT that this implies.
    pub(crate) echo: Option<(u32, Duration)>,
    /// Both its timestamps.
    pub(crate) timestamps: Option<AckTimestamps>,
    /// ECN echo.
    pub(crate) ece: bool,
    /// What it returns of the routers' feedback.
    pub(crate) feedback: Option<Echo>,
}

/// Linux's `tcp_reordering`.
const DUP_THRESH: u64 = 3;

/// RFC 2883 §4: a first block at or below the acknowledgement, or inside the second, reports a
/// duplicate arrival.
fn duplicate_block(ack: u64, blocks: &[Range<u64>]) -> Option<Range<u64>> {
    let first = blocks.first()?;
    let inside = blocks.get(1).is_some_and(|b| first.start >= b.start && first.end <= b.end);
    (first.end <= ack || inside).then(|| first.clone())
}

impl Sender {
    /// Processes an acknowledgement whose numbers are valid. Returns the RTT sample that it carried.
    pub(super) fn process_ack(
        &mut self,
        now: Instant,
        ack: &IncomingAck,
        stats: &mut Stats,
    ) -> Option<Duration> {
        let now = self.stamp(now);
        let metered_window = self.epoch.prr_window();
        let prior_in_flight = self.board.in_flight();
        self.only_repairs = false;
        self.feedback = ack.feedback;
        let marked = ack.ece && self.ecn;
        let predicted = ack.sack_len == 0 && !marked && ack.window == Some(self.window);
        let window_moved = self.update_window(now, ack);
        let mut digest = self.update_board(now, ack, window_moved, stats);
        self.fill_buffer();
        if self.timers.fruitless >= silence::TIMEOUTS && self.host_profile == HostProfile::UserSpace
        {
            self.held.on_return(self.board.nxt());
        }
        if digest.covered.cum_acked == 0 {
            self.timers.keep_length(&self.rtt);
        }
        let rtt = self.update_rtt(now, &digest, ack.echo);
        digest.sets_timer = self.sets_timer(&digest, rtt);
        let mut rate = self.sampler.on_ack(
            now,
            Bytes(digest.covered.delivered),
            digest.covered.newest.map(|(sent, record)| (sent.sent_at, record)),
            self.rtt.min(),
        );
        if marked {
            self.delivered_marked += digest.covered.delivered;
            self.epoch.on_echo();
        }
        if digest.covered.cum_acked > 0 {
            self.timers.on_progress(now, !self.board.is_empty());
        }
        if self.needs.measures_first {
            self.tell_delivery(now, ack, &digest, rtt, rate);
        }
        let unsent = self.may_send_new();
        let echo = ack.echo.map(|(echo, _)| echo);
        let turn = self.epoch.on_ack(&mut self.board, &digest, echo, self.profile, unsent);
        let found = self.find_losses(now, &mut digest, turn);
        self.set_timer(now, &digest, found.countdown);
        stats.lost_bytes += found.lost;
        if found.lost > 0
            && let Some(most) = self.pacing.catch_up_after_loss
        {
            self.pacer.limit_catch_up(most);
        }
        if let (Some(sample), Some((_, record))) = (&mut rate, digest.covered.newest) {
            sample.lost = Bytes(self.board.ever_lost()) - record.lost();
        }
        if turn.spurious || turn.stands {
            self.take_back(now, turn.spurious, metered_window, stats);
        }
        let ends_late = self.signal(now, marked, turn, &found, prior_in_flight, stats);
        let brief_episode = self.is_brief_episode(&found);
        self.epoch.settle(&self.board);

        self.round.count += u64::from(self.board.una() > self.round.end);
        if self.board.una() > self.round.end {
            self.round.end = self.board.nxt();
        }
        let event = AckEvent {
            acked: Bytes(digest.covered.delivered),
            cum_acked: Bytes(digest.covered.cum_acked),
            lost: Bytes(if self.epoch.is_silent() { 0 } else { found.lost }),
            rtt,
            rate,
            loss: self.board.take_last_loss().filter(|_| !self.epoch.is_silent()),
            duplicate: digest.duplicate,
            disordered: self.board.sacked() > 0,
            // A second copy alone is no progress (Linux's `FLAG_FORWARD_PROGRESS`).
            any_order: self.reordering > DUP_THRESH * self.mss && digest.covered.sacked > 0,
            predicted,
            prior_in_flight,
            metered_window,
            brief_episode,
            round: self.round.count,
            timestamps: ack.timestamps,
        };
        let ssthresh = metered_window.and_then(|_| self.controller.ssthresh());
        self.with_controller(now, |controller, cx| {
            controller.on_ack(cx, &event);
            if ends_late {
                controller.on_epoch_end(cx);
            }
        });
        if metered_window.is_some() && self.controller.ssthresh() != ssthresh {
            self.epoch.aim_at(self.controller.cwnd());
        }
        self.epoch.meter(&self.board, &digest, found.lost, self.mss);
        if self.controller.poll_episode() && self.epoch.is_closed() {
            self.reduce(now, Cause::Delay, 0, prior_in_flight, stats);
        }
        self.feedback = None;
        rtt
    }

    /// Accounts what an acknowledgement covers while a route-failure policy holds the sender back: neither
    /// controller nor RTT hear of it. What it shows to be lost may be repaired where that is permitted.
    pub(super) fn absorb(&mut self, now: Instant, ack: &IncomingAck, stats: &mut Stats) {
        let window_moved = self.update_window(now, ack);
        let mut digest = self.update_board(now, ack, window_moved, stats);
        self.fill_buffer();
        let covered = &digest.covered;
        let newest = covered.newest.map(|(sent, record)| (sent.sent_at, record));
        self.sampler.on_ack(now, Bytes(covered.delivered), newest, self.rtt.min());
        if covered.cum_acked > 0 {
            self.timers.on_progress(now, !self.board.is_empty());
        }
        digest.sets_timer = covered.cum_acked > 0;
        if self.permits() == SendPermission::Repairs {
            stats.lost_bytes += self.find_losses(now, &mut digest, EpochChange::default()).lost;
        }
    }

    /// An acknowledgement older than others may still be the first to report data selectively: that is
    /// taken in, for the windows and the round trip it comes too late (Linux's `tcp_ack`, from `old_ack`).
    pub(super) fn process_old_ack(&mut self, now: Instant, ack: &IncomingAck, stats: &mut Stats) {
        if ack.sack_len == 0 || self.board.is_empty() {
            return;
        }
        let now = self.stamp(now);
        let metered_window = self.epoch.prr_window();
        let prior_in_flight = self.board.in_flight();
        self.only_repairs = false;
        let mut digest = AckSummary::default();
        self.take_blocks(now, ack, &mut digest, stats);
        let newest = digest.covered.newest.map(|(sent, record)| (sent.sent_at, record));
        self.sampler.on_ack(now, Bytes(digest.covered.delivered), newest, self.rtt.min());
        let (unsent, echo) = (self.may_send_new(), ack.echo.map(|(echo, _)| echo));
        let turn = self.epoch.on_ack(&mut self.board, &digest, echo, self.profile, unsent);
        let found = self.find_losses(now, &mut digest, turn);
        stats.lost_bytes += found.lost;
        if turn.spurious || turn.stands {
            self.take_back(now, turn.spurious, metered_window, stats);
        }
        let ends_late = self.signal(now, false, turn, &found, prior_in_flight, stats);
        self.epoch.settle(&self.board);
        if ends_late {
            self.with_controller(now, |controller, cx| controller.on_epoch_end(cx));
        }
    }

    fn update_window(&mut self, now: Instant, ack: &IncomingAck) -> bool {
        let Some(window) = ack.window else { return false };
        if window > self.max_window {
            self.on_larger_window(now, window);
        }
        self.window = window;
        let edge = ack.ack + window;
        let opened = edge > self.window_edge;
        self.window_edge = edge;
        if self.timers.is_persisting() {
            if self.sendable() > 0 {
                self.timers.end_persist(now);
            } else {
                self.timers.on_answered(now);
            }
        } else if window == 0 {
            // A window that was taken back: resends ask for it, and the peer has answered one.
            self.timers.fruitless = 0;
        }
        opened
    }

    fn update_board(
        &mut self,
        now: Instant,
        ack: &IncomingAck,
        window_moved: bool,
        stats: &mut Stats,
    ) -> AckSummary {
        let outstanding_before = self.board.outstanding();
        let time = self.ack_time(now, ack);
        let mut digest = AckSummary::default();
        let reports = ack.sack_len > 0 && self.take_blocks(now, ack, &mut digest, stats);
        let covered = &mut digest.covered;
        self.board.ack_to(ack.ack, self.epoch.high(), &time, covered);
        // RFC 5681 §2; an ACK that newly covers data by SACK may open the window too (RFC 6675 §2).
        let duplicate = covered.cum_acked == 0
            && outstanding_before > 0
            && !ack.carries_data
            && (!window_moved || covered.sacked > 0)
            && (ack.sack_len == 0 || covered.sacked > 0 || reports);
        if !self.sack && self.profile.prr.is_some() {
            self.count_duplicates_as_delivered(duplicate, covered);
        }
        // The FIN is no byte.
        stats.acked_bytes = self.board.una().min(self.written);
        stats.duplicate_acks += u64::from(duplicate);
        digest.duplicate = duplicate;
        digest
    }

    fn ack_time(&self, now: Instant, ack: &IncomingAck) -> AckTime {
        AckTime {
            now,
            min_rtt: self.rtt.min().unwrap_or_default(),
            echo_ms: ack.echo.map(|(echo, _)| echo),
            highest: self.board.highest_sacked(),
        }
    }

    /// Processes the SACK blocks; returns whether the first reports a duplicate arrival.
    fn take_blocks(
        &mut self,
        now: Instant,
        ack: &IncomingAck,
        digest: &mut AckSummary,
        stats: &mut Stats,
    ) -> bool {
        let (high, time) = (self.epoch.high(), self.ack_time(now, ack));
        let mut blocks = ack.sack.clone();
        let blocks = &mut blocks[..ack.sack_len];
        let reported = duplicate_block(ack.ack, blocks);
        if let Some(copy) = &reported {
            self.dsacks += (copy.end - copy.start).div_ceil(self.mss);
        }
        // More duplicates so far than retransmissions: the network makes them (Linux's tcp_dsack_seen).
        let credible = self.dsacks <= stats.retransmits;
        if let Some(copy) = reported.as_ref().filter(|_| credible) {
            // It did leave the path.
            digest.covered.delivered += self.board.weight(copy.end - copy.start);
            digest.dsack = Some(self.board.report_twice(copy, &mut digest.covered));
            stats.retransmits_spurious += 1;
        }
        // In order of the stream, as Linux's tcp_sacktag_write_queue goes through them.
        let news = &mut blocks[usize::from(reported.is_some())..];
        news.sort_unstable_by_key(|block| block.start);
        for block in news {
            self.board.sack(block.clone(), high, &time, &mut digest.covered);
        }
        reported.is_some()
    }

    /// Without SACK a duplicate stands for a segment that arrived, which an acknowledgement that moves
    /// then does not deliver again; nor does it tell originals from copies (Linux's
    /// `tcp_add_reno_sack`, `tcp_remove_reno_sacks`).
    fn count_duplicates_as_delivered(&self, duplicate: bool, covered: &mut Covered) {
        if covered.cum_acked > 0 {
            let known = covered.delivered.saturating_sub(self.board.sacked());
            covered.delivered = known.max(self.mss.min(covered.delivered));
            covered.original_acked &= covered.cum_sent.is_some();
        } else if duplicate {
            covered.delivered = self.mss;
        }
    }

    /// Karn's rule: a time from the segments that were sent once, else from the timestamp echoed.
    /// Returns the sample for the controller: the newest segment's, which excludes the wait of a
    /// delayed acknowledgement.
    fn update_rtt(
        &mut self,
        now: Instant,
        digest: &AckSummary,
        echo: Option<(u32, Duration)>,
    ) -> Option<Duration> {
        let covered = &digest.covered;
        // What was in flight when the route broke waited for it.
        if self.route.as_ref().is_some_and(|route| self.board.una() <= route.untimed_below) {
            return None;
        }
        if self.held.covers(self.board.una()) {
            return None;
        }
        let user_space = self.host_profile == HostProfile::UserSpace;
        let since = |sent_at: Instant| now.saturating_since(sent_at);
        // Linux's tcp_clean_rtx_queue: what SACK covers is the newer.
        let measured = match (covered.cum_sent, covered.sack_sent) {
            (Some((first, last)), None) | (None, Some((first, last))) => {
                Some((since(first), since(last)))
            }
            (Some((first, _)), Some((_, last))) => Some((since(first), since(last))),
            (None, None) if covered.cum_acked > 0 => echo.map(|(_, rtt)| (rtt, rtt)),
            (None, None) => None,
        };
        let (mut sample, mut newest) = measured?;
        if let (true, Some((_, rtt))) = (user_space, echo) {
            // Neither is shorter than the round trip, and each may count what acknowledgements were lost.
            (sample, newest) = (sample.min(rtt), newest.min(rtt));
        }
        if newest < sample {
            self.rtt.on_newest(now, newest);
        }
        self.rtt.on_sample(now, sample, self.outstanding());
        self.held.on_sample();
        Some(newest)
    }

    /// The retransmission timer starts anew with what is newly acknowledged. SACK has to cover what left before the
    /// oldest segment did, or was sent again: it says nothing of that one. What left after it does not keep the timer off
    /// (Linux's `tcp_clean_rtx_queue`, `FLAG_SET_XMIT_TIMER`).
    fn sets_timer(&self, digest: &AckSummary, rtt: Option<Duration>) -> bool {
        let covered = &digest.covered;
        if covered.cum_acked > 0 {
            return true;
        }
        let (Some((first, _)), Some(oldest)) = (covered.sack_sent, self.board.first()) else {
            return false;
        };
        self.profile.follows_sending && first < oldest.sent_at && rtt.is_some()
    }

    fn set_timer(&mut self, now: Instant, digest: &AckSummary, countdown: Countdown) {
        if countdown == Countdown::FromOldest && self.host_profile == HostProfile::Kernel {
            self.count_from_oldest(now);
        } else if countdown != Countdown::Superseded
            && digest.sets_timer
            && digest.covered.cum_acked == 0
        {
            self.timers.restart(now);
        }
    }

    /// Looks for what is lost, as far as what the acknowledgement did to the episode permits.
    fn find_losses(&mut self, now: Instant, digest: &mut AckSummary, turn: EpochChange) -> Found {
        if turn.reordered {
            digest.covered.note_late(self.board.una() - digest.covered.cum_acked);
        }
        if let Some(low) = digest.covered.reordered {
            self.reordering = self.reordering.max(self.board.distance_above(low, self.mss));
        }
        digest.undone = turn.spurious;
        let disorder = self.epoch.state() == RecoveryState::Disorder || self.board.sacked() > 0;
        if digest.sets_timer && disorder {
            // Disorder begins or ends: whether the tail is probed depends on it (Linux sets its timers last).
            self.epoch.settle(&self.board);
        }
        let cx = self.recovery_cx(now);
        if turn.waits {
            return self.recovery.on_ack_without_search(&cx, &self.board, digest);
        }
        let resent = self.board.resent();
        let uncounted;
        let digest = if digest.duplicate && !self.controller.allows_fast_retransmit() {
            uncounted = AckSummary { duplicate: false, ..*digest };
            &uncounted
        } else {
            digest
        };
        let found = self.recovery.on_ack(&cx, &mut self.board, digest);
        Found { again: self.board.resent() < resent, ..found }
    }

    /// Whether an acknowledgement opens an episode of losses, or goes on with one. What was found lost
    /// in an episode that is over opens the next (Linux's `tcp_time_to_recover`); after a timeout,
    /// only a retransmission that was lost in turn does.
    fn is_repairing(&self, found: &Found) -> bool {
        match self.epoch.state() {
            RecoveryState::Recovery => found.lost > 0,
            RecoveryState::Loss => found.again,
            _ if self.profile.ends_on_partial_ack => found.lost > 0,
            _ => self.board.lost() > 0,
        }
    }

    /// Tells a controller that measures what an acknowledgement delivered before losses are looked for.
    #[cold]
    fn tell_delivery(
        &mut self,
        now: Instant,
        ack: &IncomingAck,
        digest: &AckSummary,
        rtt: Option<Duration>,
        rate: Option<RateSample>,
    ) {
        let event = AckEvent {
            acked: Bytes(digest.covered.delivered),
            cum_acked: Bytes(digest.covered.cum_acked),
            rtt,
            rate,
            timestamps: ack.timestamps,
            ..AckEvent::default()
        };
        self.with_controller(now, |controller, cx| controller.on_delivery(cx, &event));
    }

    /// Takes an unfounded episode back `wholly`, or but for the window that a mark speaks for.
    #[cold]
    fn take_back(
        &mut self,
        now: Instant,
        wholly: bool,
        metered_window: Option<Bytes>,
        stats: &mut Stats,
    ) {
        // Linux's `tcp_try_undo_loss`: the timeouts were none.
        self.timers.fruitless = 0;
        if wholly {
            stats.undone += 1;
            self.cwr_pending = false;
            self.with_controller(now, |controller, cx| controller.on_spurious(cx));
        } else if let Some(window) = metered_window {
            self.controller.replace_window(window, None);
        }
    }

    /// Tells epoch and controller of what the acknowledgement revealed. Returns whether the controller must still
    /// learn of the end of an episode.
    fn signal(
        &mut self,
        now: Instant,
        marked: bool,
        turn: EpochChange,
        found: &Found,
        prior_in_flight: Bytes,
        stats: &mut Stats,
    ) -> bool {
        let is_repairing = self.is_repairing(found);
        let reopens = turn.ended && (is_repairing || marked);
        if reopens {
            // The next episode begins with the window that this one ends with (Linux's `tcp_end_cwnd_reduction`).
            self.with_controller(now, |controller, cx| controller.on_epoch_end(cx));
        }
        if is_repairing {
            self.reduce(now, Cause::FastRetransmit, found.lost, prior_in_flight, stats);
        } else if self.is_brief_episode(found) {
            let event = CongestionEvent {
                cause: Cause::FastRetransmit,
                first_in_epoch: true,
                lost: Bytes(self.mss),
                prior_in_flight,
            };
            self.count_reduction(stats);
            self.with_controller(now, |controller, cx| {
                cx.state = RecoveryState::Cwr;
                controller.on_congestion(cx, &event);
            });
        }
        if marked && (self.epoch.is_closed() || self.epoch.is_silent()) {
            self.reduce(now, Cause::EcnEcho, 0, prior_in_flight, stats);
        }
        if marked {
            self.epoch.on_echo();
        }
        turn.ended && !reopens
    }

    /// Whether a probe has repaired a loss outside of an episode.
    fn is_brief_episode(&self, found: &Found) -> bool {
        found.repaired_by_probe && self.epoch.is_closed() && !self.hides_losses()
    }

    /// Counts an episode; the peer is notified (RFC 3168 §6.1.2), whatever its cause.
    pub(super) fn count_reduction(&mut self, stats: &mut Stats) {
        stats.reductions += 1;
        self.cwr_pending = self.ecn;
    }

    /// Opens or continues an episode other than a timeout's.
    pub(super) fn reduce(
        &mut self,
        now: Instant,
        cause: Cause,
        lost: u64,
        prior_in_flight: Bytes,
        stats: &mut Stats,
    ) {
        if cause == Cause::FastRetransmit && self.hides_loss(now, stats) {
            return self.epoch.enter_silently(RecoveryState::Recovery, &self.board);
        }
        let state = match cause {
            Cause::EcnEcho | Cause::Delay => RecoveryState::Cwr,
            Cause::FastRetransmit | Cause::Timeout { .. } => RecoveryState::Recovery,
        };
        let unreported = self.epoch.is_closed() || self.epoch.is_silent();
        let first_in_epoch = unreported || self.in_loss();
        let event = CongestionEvent { cause, first_in_epoch, lost: Bytes(lost), prior_in_flight };
        let prior_cwnd = self.controller.cwnd();
        if first_in_epoch {
            self.count_reduction(stats);
        }
        if !self.leave_quick_start() {
            self.with_controller(now, |controller, cx| controller.on_congestion(cx, &event));
        }
        let rule = self.profile.prr.filter(|_| !self.needs.own_reduction);
        let base = rule.and_then(|rule| match rule {
            PrrRule::Linux => Some(prior_cwnd),
            PrrRule::Rfc9937 => Some(prior_in_flight),
            PrrRule::Off => None,
        });
        let prr = base.map(|base| Prr::new(base, self.controller.cwnd()));
        if unreported || self.epoch.state() != RecoveryState::Recovery {
            let copies = self.copies_out();
            self.epoch.enter(state, &self.board, prr, copies);
        }
    }
}

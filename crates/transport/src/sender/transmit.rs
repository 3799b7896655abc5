//! What may leave now.

use weir_cc::PathEvent;
use weir_units::{Bytes, Instant};

use super::Sender;
use crate::HostProfile;
use crate::policy::SendPermission;
use crate::recovery::Countdown;
use crate::stats::{Limit, Stats};
use weir_cc::host::SendRecord;

/// A segment's worth of the stream that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutgoingRange {
    /// Where it starts in the stream.
    pub(crate) start: u64,
    /// Payload bytes.
    pub(crate) len: u32,
    /// Whether the FIN follows them.
    pub(crate) fin: bool,
    pub(crate) kind: Kind,
    /// Sets CWR: the peer's ECN echo was received.
    pub(crate) cwr: bool,
    /// Sets PSH.
    pub(crate) push: bool,
}

/// Why something leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    New,
    Retransmission,
    /// A tail loss probe that sends old data again.
    Probe,
    /// An empty segment that asks for the peer's window.
    WindowProbe,
}

impl OutgoingRange {
    /// An empty segment that the peer answers with where it stands.
    pub(super) fn probe_at(start: u64) -> Self {
        Self { start, len: 0, fin: false, kind: Kind::WindowProbe, cwr: false, push: false }
    }
}

impl Sender {
    /// What leaves now, if anything may.
    pub(crate) fn poll(&mut self, now: Instant, stats: &mut Stats) -> Option<OutgoingRange> {
        if self.has_only_received() {
            self.clock.set(now, Limit::Application, stats);
            if self.host_profile == HostProfile::UserSpace {
                self.sampler.on_app_limited(Bytes::ZERO);
            }
            return None;
        }
        let permit = self.permits();
        if permit == SendPermission::Nothing {
            return self.poll_route_probe(now, stats);
        }
        if std::mem::take(&mut self.timers.window_probe_due) {
            return Some(self.poll_window_probe(now, stats));
        }
        if std::mem::take(&mut self.probe_due) {
            return self.poll_probe(now, stats);
        }
        if self.early_repairs > 0 {
            self.early_repairs -= 1;
            if let Some(lost) = self.board.first_lost() {
                return Some(self.depart(now, Choice::Resend(lost.start), stats));
            }
        }
        if self.timeout_segments > 0 {
            self.timeout_segments -= 1;
            if let Some(choice) = self.choose_for_timeout() {
                return Some(self.depart(now, choice, stats));
            }
        }
        let (limit, departure) = self.choose(now, permit);
        match departure {
            Some(start) => Some(self.depart(now, start, stats)),
            None => {
                self.rest(now, limit, stats);
                None
            }
        }
    }

    /// Whether nothing was ever written here: most connections carry data one way.
    fn has_only_received(&self) -> bool {
        // The cheaper question first: of a sender with data it is answered there.
        self.written == 0
            && self.written() == 0
            && !self.finishing
            && !self.timers.is_persisting()
            && self.route.is_none()
    }

    /// Lost segments first, then new data, as far as the windows and the pacer allow; otherwise what
    /// holds the sender back.
    fn choose(&mut self, now: Instant, permit: SendPermission) -> (Limit, Option<Choice>) {
        let lost = if self.epoch.repairs() { self.board.first_lost() } else { None };
        let (size, choice) = match lost {
            Some(sent) if self.is_out_of_window(sent.start) => return (Limit::Receiver, None),
            Some(sent) => (u64::from(sent.len), Choice::Resend(sent.start)),
            None if permit == SendPermission::Repairs => return (Limit::Route, None),
            None if self.only_repairs => return (Limit::Congestion, None),
            None => {
                let unsent = self.new_data().min(self.mss);
                if unsent == 0 {
                    return (Limit::Application, None);
                }
                let allowed = self.sendable();
                if allowed == 0 {
                    return (Limit::Receiver, None);
                }
                if self.waits_for_more(unsent) {
                    return (Limit::Application, None);
                }
                if self.sequence_window_is_full(allowed) {
                    return (Limit::Congestion, None);
                }
                (allowed, Choice::New(allowed))
            }
        };
        let in_flight = self.metered_in_flight();
        let counted = self.board.weight(size.min(self.mss));
        let fits = in_flight + counted <= self.cwnd().get() || in_flight == 0;
        if !fits || (!self.bursts.is_under_way() && self.is_paced(now)) {
            return (Limit::Congestion, None);
        }
        if matches!(choice, Choice::New(_)) && self.waits_for_a_burst(now) {
            return (Limit::Congestion, None);
        }
        (Limit::Congestion, Some(choice))
    }

    /// What is lost, else new data, else the oldest segment once more; in the kernel's profile always that one (Linux's
    /// `tcp_retransmit_timer`).
    fn choose_for_timeout(&mut self) -> Option<Choice> {
        if self.host_profile == HostProfile::Kernel {
            return self.board.first().map(|sent| Choice::Resend(sent.start));
        }
        if let Some(sent) = self.board.first_lost() {
            return Some(Choice::Resend(sent.start));
        }
        match self.sendable() {
            0 => self.board.first().map(|sent| Choice::Resend(sent.start)),
            unsent => Some(Choice::New(unsent)),
        }
    }

    /// Whether the peer has taken the window back from what starts here: then only the oldest segment, which asks for a
    /// window too, is sent again (Linux's `__tcp_retransmit_skb`).
    fn is_out_of_window(&self, start: u64) -> bool {
        start >= self.window_edge && start != self.board.una()
    }

    /// Without limited transmit the first duplicates free no place in the window.
    fn metered_in_flight(&self) -> u64 {
        let disorder = self.epoch.state() == weir_cc::RecoveryState::Disorder;
        let held = if disorder && !self.limited_transmit { self.board.sacked() } else { 0 };
        self.board.in_flight().get() + held
    }

    #[inline(always)]
    fn depart(&mut self, now: Instant, choice: Choice, stats: &mut Stats) -> OutgoingRange {
        let departure = match choice {
            Choice::New(size) => {
                self.count_into_burst();
                self.send_new(now, size)
            }
            Choice::Resend(start) => {
                if self.epoch.is_silent() {
                    stats.retransmits_route += 1;
                } else if self.in_loss() {
                    stats.retransmits_rto += 1;
                } else {
                    stats.retransmits_fast += 1;
                }
                self.board.collapse(start, self.mss);
                self.resend(now, start, Kind::Retransmission, stats)
            }
        };
        self.account(now, &departure, stats);
        departure
    }

    /// RFC 8985 §7.3: new data if there is any, else the last segment again, whatever the window says.
    fn poll_probe(&mut self, now: Instant, stats: &mut Stats) -> Option<OutgoingRange> {
        let unsent = self.sendable();
        let departure = if unsent > 0 {
            self.send_new(now, unsent)
        } else {
            let start = self.board.last()?.start;
            if self.is_out_of_window(start) {
                self.count_from_oldest(now);
                return None;
            }
            stats.retransmits_tlp += 1;
            self.resend(now, start, Kind::Probe, stats)
        };
        self.account(now, &departure, stats);
        self.on_probe_sent(now);
        Some(departure)
    }

    /// The retransmission timer counts from a probe.
    pub(super) fn on_probe_sent(&mut self, now: Instant) {
        self.timers.restart(now);
        self.recovery.on_probe_sent(self.board.nxt());
    }

    /// Nothing is out, and what the peer's window lets go is nothing, or less than is worth a segment: then this
    /// little is its probe (RFC 9293 §3.8.6.2.1, Linux's `tcp_write_wakeup`).
    fn poll_window_probe(&mut self, now: Instant, stats: &mut Stats) -> OutgoingRange {
        match self.new_data_in_window().min(self.mss) {
            0 => {
                stats.window_probes += 1;
                OutgoingRange::probe_at(self.board.una())
            }
            sliver => self.depart(now, Choice::New(sliver), stats),
        }
    }

    pub(super) fn send_new(&mut self, now: Instant, size: u64) -> OutgoingRange {
        self.notify_policy_of_new_data(now);
        let start = self.board.nxt();
        let idle = self.board.is_empty();
        if idle {
            self.restart_after_idle(now);
        }
        let sent_at = self.stamp(now);
        let record = self.record(sent_at, idle, Bytes(self.board.weight(size)));
        self.with_controller(now, |controller, cx| controller.on_sent(cx, Bytes(size)));
        self.usage.sent = true;
        // Both fit: a segment is at most `mss` long.
        self.board.push(sent_at, size as u32, record);
        if size < self.mss {
            self.small_until = start + size;
        }
        let fin = self.ends_here() && start + size > self.written;
        let len = (size - u64::from(fin)) as u32;
        let cwr = std::mem::take(&mut self.cwr_pending);
        let push = len > 0 && self.is_pushed(start, start + u64::from(len));
        if push {
            self.board.push_last();
        }
        OutgoingRange { start, len, fin, kind: Kind::New, cwr, push }
    }

    pub(super) fn resend(
        &mut self,
        now: Instant,
        start: u64,
        kind: Kind,
        stats: &mut Stats,
    ) -> OutgoingRange {
        let idle =
            self.host_profile == HostProfile::UserSpace && self.board.in_flight() == Bytes::ZERO;
        let sent_at = self.stamp(now);
        let record = self.record(sent_at, idle, Bytes(self.mss));
        self.with_controller(now, |controller, cx| controller.on_sent(cx, cx.mss));
        let (size, push) = self.board.resend(sent_at, start, record);
        if kind == Kind::Retransmission {
            self.epoch.on_resent(crate::timestamp_ms(now));
        }
        let fin = self.ends_here() && start + u64::from(size) > self.written;
        let len = size - u32::from(fin);
        stats.retransmits += 1;
        stats.retransmitted_bytes += u64::from(len);
        if start == self.board.una() {
            self.timers.restart(now);
        }
        OutgoingRange { start, len, fin, kind, cwr: false, push }
    }

    /// The time of a segment or an acknowledgement, which Linux has in whole microseconds (`tcp_mstamp`).
    #[inline]
    pub(crate) fn stamp(&self, now: Instant) -> Instant {
        match self.host_profile {
            HostProfile::Kernel => now.in_whole_micros(),
            HostProfile::UserSpace => now,
        }
    }

    /// What is remembered of a segment of `size` that leaves at this time.
    fn record(&mut self, sent_at: Instant, idle: bool, size: Bytes) -> SendRecord {
        let (in_flight, lost) = (self.board.in_flight() + size, Bytes(self.board.ever_lost()));
        self.sampler.on_sent(sent_at, idle).with_flight(in_flight, lost)
    }

    #[inline(always)]
    pub(super) fn account(&mut self, now: Instant, departure: &OutgoingRange, stats: &mut Stats) {
        if departure.len > 0 {
            stats.data_segments_sent += 1;
            stats.data_bytes_sent += u64::from(departure.len);
        }
        self.last_sent_at = now;
        self.timers.start(now);
        self.timers.end_persist(now);
        let bytes = Bytes(u64::from(departure.len));
        // Linux does not count a probe that sends old data again (`tcp_send_loss_probe`).
        if departure.kind != Kind::Probe {
            self.epoch.on_sent(self.board.weight(bytes.get()));
        }
        if stats.data_segments_sent >= self.pacing.unpaced {
            let rate = self.pacing_rate();
            self.pacer.on_sent(now, rate, bytes);
        }
        if self.profile.follows_sending {
            self.follow_departure(now, departure);
        }
        self.clock.set(now, Limit::Congestion, stats);
    }

    #[inline(always)]
    fn follow_departure(&mut self, now: Instant, departure: &OutgoingRange) {
        if departure.kind != Kind::New {
            let is_oldest = departure.start == self.board.una();
            return self.recovery.on_resent(now, is_oldest);
        }
        let cx = self.recovery_cx(now);
        if self.recovery.on_sent(&cx, &self.board) == Countdown::FromOldest {
            self.count_from_oldest(now);
        }
    }

    /// Nothing more leaves now: notes why.
    fn rest(&mut self, now: Instant, limit: Limit, stats: &mut Stats) {
        self.clock.set(now, limit, stats);
        if limit == Limit::Route {
            return;
        }
        let in_flight = self.board.in_flight();
        self.bursts.end();
        // What waits for more of the window finds the window too small.
        let waiting = std::mem::take(&mut self.bursts.waiting);
        let full = waiting || in_flight.get() + self.mss > self.cwnd().get();
        // Nothing is said where nothing new waits (Linux's `tcp_push_pending_frames`).
        if std::mem::take(&mut self.usage.sent) || (full && self.new_data() > 0) {
            self.validate_cwnd(full);
        }
        if self.host_profile == HostProfile::UserSpace && limit == Limit::Application && !full {
            self.sampler.on_app_limited(in_flight);
        }
        if limit == Limit::Receiver && self.board.is_empty() {
            self.timers.start_persist(now);
        }
    }

    /// Linux's `tcp_cwnd_validate`: the strongest sign of use within a round counts. Its decay
    /// (RFC 2861, `tcp_cwnd_application_limited`) is left out: it asks for a timeout's time without
    /// an acknowledgement, and then the restart after idle has come first.
    pub(super) fn validate_cwnd(&mut self, full: bool) {
        let outstanding = self.board.segments() as u64 * self.mss;
        let usage = &mut self.usage;
        let new_round = self.board.una() >= usage.until;
        if new_round || full || (!usage.limited && outstanding > usage.max_outstanding) {
            usage.limited = full;
            usage.max_outstanding = outstanding;
            usage.until = self.board.nxt();
        }
    }

    /// RFC 5681 §4.1.
    fn restart_after_idle(&mut self, now: Instant) {
        let idle = now.saturating_since(self.last_sent_at);
        let rto = self.rtt.base_rto();
        let sent_before = self.last_sent_at > Instant::ZERO;
        if self.slow_start_after_idle && sent_before && idle > rto {
            let event = PathEvent::IdleRestart { idle, rto };
            self.with_controller(now, |controller, cx| controller.on_path(cx, &event));
        }
    }

    /// Bytes of the stream, the FIN included, that were never sent.
    pub(super) fn new_data(&self) -> u64 {
        self.written + u64::from(self.ends_here()) - self.board.nxt()
    }

    /// Of these, what the peer's window permits. The FIN has a sequence number, so it needs the window too.
    pub(super) fn new_data_in_window(&self) -> u64 {
        self.edge().min(self.written + u64::from(self.ends_here())).saturating_sub(self.board.nxt())
    }

    /// Bytes of the next new segment, if the peer's window lets one go.
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        match self.new_data_in_window() {
            whole if whole >= self.mss => self.mss,
            allowed if self.is_silly(allowed) => 0,
            allowed => allowed,
        }
    }

    /// The first offset that the peer's window or the window limit does not permit.
    pub(super) fn edge(&self) -> u64 {
        let limit = self.window_limit.bytes(self.mss);
        let limit = limit.map_or(u64::MAX, |limit| self.board.una().saturating_add(limit));
        self.window_edge.min(limit)
    }

    pub(crate) fn may_send_new(&self) -> bool {
        self.new_data_in_window() > 0
    }

    /// RFC 9293 §3.8.6.2.1: what would fill only a sliver of the window, although there is more to send, waits
    /// for a larger one.
    fn is_silly(&self, allowed: u64) -> bool {
        allowed < self.mss && allowed < self.new_data() && allowed < self.max_window / 2
    }

    /// Nagle's rule (RFC 9293 §3.7.4) as Linux has it: a segment that is not full waits as long as one
    /// like it is out, unless it ends the stream (`tcp_nagle_check`, `tcp_minshall_check`).
    fn waits_for_more(&self, unsent: u64) -> bool {
        self.nagle && unsent < self.mss && self.small_until > self.board.una() && !self.ends_here()
    }

    fn sequence_window_is_full(&self, size: u64) -> bool {
        let Some(segments) = self.profile.window else { return false };
        self.board.outstanding() + size > u64::from(segments) * self.mss
    }

    /// Whether the pacer, if there is a rate, keeps what could leave now.
    fn is_paced(&self, now: Instant) -> bool {
        self.pacer.next_departure() > now && self.pacing_rate().is_some()
    }

    pub(super) fn pacing_deadline(&self, now: Instant) -> Option<Instant> {
        if !self.is_paced(now) {
            return None;
        }
        let waiting = self.board.lost() > self.board.resent() || self.new_data_in_window() > 0;
        let in_flight = self.board.in_flight().get();
        let fits = in_flight == 0 || in_flight + self.mss <= self.cwnd().get();
        (waiting && fits).then(|| self.pacer.next_departure())
    }
}

/// What to send next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// A number of new bytes.
    New(u64),
    /// The lost segment that starts here.
    Resend(u64),
}

//! When the receiver acknowledges.

use weir_units::{Duration, Instant};

use super::ack_frequency::{Position, Thresholds};
use crate::{DelayedAck, HostProfile, on_tick, ticks};

/// What is owed to the sender, and by when.
#[derive(Debug)]
pub(super) struct AckPolicy {
    mode: DelayedAck,
    /// A full segment; Linux: as far as arrivals show (`rcv_mss`).
    mss: u64,
    /// What a full segment may carry (`advmss`).
    full_mss: u64,
    /// The segment before was a short one of this length, long enough to be some sender's full one (`last_seg_size`).
    last_short: u64,
    /// Whose timers it has, and how long it may wait.
    host_profile: HostProfile,
    /// Bytes that arrived since the last acknowledgement.
    unacked: u64,
    due: bool,
    deadline: Option<Instant>,
    /// Linux: when the delayed acknowledgement's timer fires, which an acknowledgement does not stop
    /// (`inet_csk_clear_xmit_timer`).
    timer: Option<Instant>,
    /// Linux: pushes or short segments that arrived, to be acknowledged once all is read: one if the two ends do not
    /// answer each other, or more (`ICSK_ACK_PUSHED`, `ICSK_ACK_PUSHED2`).
    pushed: u32,
    /// Linux: acknowledgements still to be sent at once.
    quick: u64,
    /// Linux: none are, as the two ends answer each other, until one was not answered in time (`pingpong`).
    answers: bool,
    /// Linux: the delay, adapted to the time between arrivals; none before the first.
    delay: Option<Duration>,
    last_arrival: Instant,
    compression: Compression,
    thresholds: Thresholds,
    /// This end's smoothed round trip; before the handshake, the longest duration.
    rtt: Duration,
    /// Linux: the longest delay, a round trip in milliseconds.
    longest: Duration,
    /// Linux: this end's own RTO. After a longer pause the sender may be in slow
    /// start again.
    rto: Duration,
}

/// What an arrival did to the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) rcv_nxt: u64,
    /// Bytes that became readable.
    pub(super) advanced: u64,
    /// Whether data is missing below what arrived.
    pub(super) missing: bool,
    /// Whether the sender reads SACK blocks: if it counts duplicates, each must be sent.
    pub(super) selective: bool,
    /// Whether it made an acknowledgement leave before it: then it asks for none itself.
    pub(super) released: bool,
    /// Whether the window to offer is still growing.
    pub(super) growing: bool,
    /// Whether the window cannot advance before what is readable is read.
    pub(super) hampered: bool,
    /// The window that was offered last.
    pub(super) window: u64,
    /// The round trip as data shows it, where it is measured (`rcv_rtt_est`).
    pub(super) rtt: Option<Duration>,
    /// Where it lies.
    pub(super) position: Position,
}

/// Linux's SACK compression: beyond the third for a hole, at most one per millisecond.
#[derive(Debug, Default)]
struct Compression {
    rcv_nxt: u64,
    sent: u32,
    held: u32,
    deadline: Option<Instant>,
    /// When the last segment arrived whose acknowledgement is held.
    last_held: Instant,
}

/// RFC 1122 §4.2.3.2 allows up to 500 ms; this is Linux's `TCP_DELACK_MIN` and `TCP_ATO_MIN`.
const DELAY: Duration = Duration::from_millis(40);
/// Linux's `TCP_MSS_DEFAULT`, with which the measured segment begins; and the least that is taken for a sender's full
/// segment, or if it is not pushed (`TCP_MIN_MSS`), with timestamps in the header. Without them Linux asks for 12 bytes
/// more.
const FIRST_MSS: u64 = 536;
const LEAST_FULL: u64 = FIRST_MSS - 12;
const LEAST_WITHOUT_PUSH: u64 = 88 - 12;
/// Linux's `TCP_MAX_QUICKACKS`.
const QUICK_ACKS: u64 = 16;
/// Linux's `TCP_DELACK_MAX`.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// Linux's `TCP_TIMEOUT_INIT` and `TCP_RTO_MIN`.
const FIRST_RTO: Duration = Duration::from_secs(1);
const MIN_RTO: Duration = Duration::from_millis(200);
/// Linux's `tcp_comp_sack_delay_ns`, and `tcp_comp_sack_slack_ns`, by which its timer is late where
/// nothing else wakes the machine.
const COMPRESSION_DELAY: Duration = Duration::from_millis(1);
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);
/// Linux's `tcp_comp_sack_nr`.
const COMPRESSION_MAX: u32 = 44;
/// Linux's `TCP_SACK_BLOCKS_EXPECTED`.
const BLOCKS_EXPECTED: usize = 2;

impl AckPolicy {
    pub(super) fn new(mode: DelayedAck, mss: u64, host_profile: HostProfile) -> Self {
        Self {
            mode,
            mss: if mode == DelayedAck::Linux { mss.min(FIRST_MSS) } else { mss },
            full_mss: mss,
            last_short: 0,
            host_profile,
            unacked: 0,
            due: false,
            deadline: None,
            timer: None,
            pushed: 0,
            quick: 0,
            answers: false,
            delay: None,
            last_arrival: Instant::ZERO,
            compression: Compression::default(),
            thresholds: Thresholds::default(),
            rtt: Duration::MAX,
            longest: MAX_DELAY,
            rto: FIRST_RTO,
        }
    }

    pub(super) fn set_mss(&mut self, mss: u64) {
        self.full_mss = mss;
        self.mss = if self.is_linux() { self.mss.min(mss) } else { mss };
    }

    /// What a full segment carries.
    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// A segment of `len` bytes arrived. Two short ones of the same length in a row are all that the sender has
    /// (Linux's `tcp_measure_rcv_mss`).
    #[inline]
    pub(super) fn measure(&mut self, len: u64, is_pushed: bool) {
        if len == self.full_mss && self.mss == len && !is_pushed {
            // Nearly always.
            self.last_short = 0;
            return;
        }
        if self.mode != DelayedAck::Linux {
            return;
        }
        let last = std::mem::take(&mut self.last_short);
        if len >= self.mss {
            self.mss = len.min(self.full_mss);
            self.pushed |= u32::from(is_pushed);
            return;
        }
        if len >= LEAST_FULL || (len >= LEAST_WITHOUT_PUSH && !is_pushed) {
            self.last_short = len;
            if len == last {
                self.mss = len;
                return;
            }
        }
        self.pushed += 1;
    }

    pub(super) fn on_handshake_rtt(&mut self, rtt: Duration) {
        self.on_own_rtt(rtt, rtt + (rtt * 2).max(MIN_RTO));
    }

    /// What this end measures as a sender: its smoothed round trip and its timeout.
    pub(super) fn on_own_rtt(&mut self, srtt: Duration, rto: Duration) {
        self.rtt = srtt;
        self.longest = in_ticks_rounded_up(srtt);
        self.rto = in_ticks_rounded_up(rto);
    }

    /// The two ends answer each other: acknowledgements wait for data to go with (Linux's
    /// `inet_csk_enter_pingpong_mode`).
    pub(super) fn wait_for_data(&mut self, now: Instant) {
        self.quick = 0;
        self.answers = true;
        self.delay = Some(DELAY);
        self.last_arrival = now;
    }

    /// Data leaves. An answer within the delay means that the two ends answer each other: acknowledgements wait for
    /// the next one to go with (Linux's `tcp_event_data_sent`).
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        let Some(delay) = self.delay else { return };
        self.answers |= self.since_arrival(now) < delay;
    }

    /// All of a segment had arrived before: the sender may have lost acknowledgements, so the next go out at once
    /// (Linux's `tcp_data_queue`, `tcp_send_dupack`).
    pub(super) fn on_old_data(&mut self, window: u64) {
        self.hurry(self.quick_acks(window));
    }

    /// As many as half of the `window` that was offered last has segments (`tcp_incr_quickack`).
    fn quick_acks(&self, window: u64) -> u64 {
        (window / (2 * self.mss)).clamp(2, QUICK_ACKS)
    }

    /// Data arrived.
    pub(super) fn on_data(&mut self, now: Instant, progress: &Progress) {
        self.unacked += progress.advanced;
        match self.mode {
            DelayedAck::Off => self.due = true,
            DelayedAck::Rfc1122 => {
                self.due |= progress.missing || self.unacked >= 2 * self.mss;
                self.deadline.get_or_insert(now + DELAY.min(self.host_profile.longest_ack_delay()));
            }
            DelayedAck::Linux => self.on_data_linux(now, progress),
            DelayedAck::Frequency(config) => {
                self.due |= self.thresholds.on_data(config, self.mss, &progress.position);
                self.deadline.get_or_insert(now + DELAY.min(self.host_profile.longest_ack_delay()));
            }
        }
    }

    /// Linux's `__tcp_ack_snd_check`.
    fn on_data_linux(&mut self, now: Instant, progress: &Progress) {
        if progress.advanced > 0 {
            self.adapt_delay(now, progress.window);
        }
        if progress.growing {
            // The sender should learn of the larger window soon. Linux's tcp_grow_window sets the
            // counter's lowest bit, so what the counter held above that stays until growth ends.
            self.quick |= 1;
        }
        if progress.released || self.due {
            // `tcp_send_ack` has left nothing scheduled; or it must be answered now, as the end of a hole
            // (`ICSK_ACK_NOW`), which counts for no rule and sets no timer.
        } else if (self.quick > 0 && !self.answers)
            || (self.unacked > self.mss && !progress.hampered)
        {
            self.due = true;
        } else if progress.missing && progress.selective {
            self.compress(now, progress);
        } else if progress.missing {
            self.due = true;
        } else {
            self.put_off(now);
        }
    }

    /// Linux's `tcp_send_delayed_ack`.
    fn put_off(&mut self, now: Instant) {
        if self.deadline.is_some() {
            return;
        }
        let delay = self.delay.unwrap_or(DELAY).min(self.longest).max(DELAY);
        let delay = delay.min(self.host_profile.longest_ack_delay());
        self.deadline = Some(match self.host_profile {
            HostProfile::Kernel => on_tick(now, in_whole_ticks(delay)),
            HostProfile::UserSpace => now + delay,
        });
        self.timer = self.deadline.filter(|_| self.host_profile == HostProfile::Kernel);
    }

    /// Sends the delayed acknowledgement whose timer fires. The sender is slower than the delay, which doubles
    /// (`tcp_delack_timer_handler`).
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.mode == DelayedAck::Linux && self.deadline.is_some_and(|at| at <= now) && !self.due
        {
            self.due = true;
            // No answer came in time: the ends do not answer each other, and the delay begins anew.
            let answered = std::mem::take(&mut self.answers);
            let delay = |delay: Duration| if answered { DELAY } else { (delay * 2).min(self.rto) };
            self.delay = self.delay.map(delay);
        }
    }

    /// Linux's `tcp_event_data_recv`: the delay follows the time between arrivals.
    fn adapt_delay(&mut self, now: Instant, window: u64) {
        let pause = self.since_arrival(now);
        self.last_arrival = now;
        let delay = match self.delay {
            None => {
                self.quick = self.quick_acks(window);
                DELAY
            }
            Some(delay) if pause <= DELAY / 2 => in_whole_ticks(delay / 2) + DELAY / 2,
            Some(delay) if pause < delay => (in_whole_ticks(delay / 2) + pause).min(MAX_DELAY),
            Some(delay) => {
                if pause > self.rto {
                    self.quick = self.quick.max(self.quick_acks(window));
                }
                delay
            }
        };
        self.delay = Some(delay);
    }

    /// Since the last arrival, as the host measures it.
    fn since_arrival(&self, now: Instant) -> Duration {
        match self.host_profile {
            HostProfile::Kernel => Duration::from_millis(ticks(now) - ticks(self.last_arrival)),
            HostProfile::UserSpace => now.saturating_since(self.last_arrival),
        }
    }

    /// Linux's SACK compression in `__tcp_ack_snd_check`: three at once, then one per millisecond
    /// (per twentieth of a round trip where that is shorter), or when the timer of an earlier delayed one fires.
    fn compress(&mut self, now: Instant, progress: &Progress) {
        let compression = &mut self.compression;
        if compression.rcv_nxt != progress.rcv_nxt {
            *compression = Compression { rcv_nxt: progress.rcv_nxt, ..Compression::default() };
        }
        if compression.sent < 3 || compression.held >= COMPRESSION_MAX {
            compression.sent += 1;
            self.due = true;
        } else {
            compression.held += 1;
            compression.last_held = now;
            let rtt = progress.rtt.map_or(self.rtt, |rtt| rtt.min(self.rtt));
            let delay = COMPRESSION_DELAY.min(rtt / 20);
            let fires = self.timer.filter(|at| *at > now);
            let at = Instant::earlier(fires, Some(now + delay + COMPRESSION_SLACK));
            compression.deadline = compression.deadline.or(at);
        }
    }

    /// Whether an acknowledgement is held back that a segment out of order would push out of the few blocks: `rank`
    /// ranges were reported more recently than the one that it touches. Linux sends it before it takes the segment
    /// in, and then owes nothing (`tcp_sack_new_ofo_skb`, `tcp_sack_compress_send_ack`).
    pub(super) fn must_release(&self, rank: impl FnOnce() -> usize) -> bool {
        self.compression.held > 0 && rank() >= BLOCKS_EXPECTED
    }

    /// The next `acks` go out at once (Linux's `tcp_enter_quickack_mode`).
    pub(super) fn hurry(&mut self, acks: u64) {
        if self.mode == DelayedAck::Linux {
            self.quick = self.quick.max(acks);
            self.answers = false;
            self.delay = self.delay.map(|_| DELAY);
        }
    }

    /// Whether a segment that fills a gap is acknowledged at once, if `more` are left: not where thresholds say when, and
    /// in Linux only the last (`tcp_data_queue`).
    pub(super) fn answers_repair(&self, more: bool) -> bool {
        match self.mode {
            DelayedAck::Frequency(_) => false,
            DelayedAck::Linux => !more,
            DelayedAck::Off | DelayedAck::Rfc1122 => true,
        }
    }

    /// With thresholds, the offset below which what is missing was reported.
    pub(super) fn reported_below(&self) -> Option<u64> {
        match self.mode {
            DelayedAck::Frequency(config) => Some(self.thresholds.reported_below(config, self.mss)),
            _ => None,
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.mode == DelayedAck::Linux
    }

    /// Whether the report of a segment that arrives twice behind a hole waits as others do. Linux loses it if another
    /// segment comes first.
    pub(super) fn compresses_copies(&self) -> bool {
        self.mode == DelayedAck::Linux && self.host_profile == HostProfile::Kernel
    }

    /// Linux: whether `advanced` bytes more are more than a segment without an acknowledgement.
    #[inline]
    pub(super) fn counts_enough_with(&self, advanced: u64) -> bool {
        self.is_linux() && self.unacked + advanced > self.mss
    }

    /// Linux: whether an acknowledgement fell due on arrival, which is before the application reads.
    #[inline]
    pub(super) fn answers_unread(&self) -> bool {
        self.due && self.is_linux()
    }

    /// Whether an acknowledgement was put off and has not left, also if a newer segment demands it now
    /// (`ICSK_ACK_TIMER`).
    pub(super) fn is_delaying(&self) -> bool {
        self.deadline.is_some()
    }

    /// The application has read, perhaps everything. Linux's `tcp_cleanup_rbuf` acknowledges more than a segment, and
    /// a push of which all is read.
    pub(super) fn on_read(&mut self, all: bool) {
        let is_much = self.mode == DelayedAck::Linux && self.unacked > self.mss;
        self.due |= is_much || (all && self.pushed > u32::from(self.answers));
    }

    /// An acknowledgement must go out now.
    pub(super) fn demand(&mut self) {
        self.due = true;
    }

    /// One must go out now that acknowledges nothing new: it is none of the quick ones (`tcp_dec_quickack_mode`).
    pub(super) fn answer(&mut self) {
        if self.quick > 0 && !self.is_owed() {
            self.quick += 1;
        }
        self.due = true;
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due || self.deadline().is_some_and(|at| at <= now)
    }

    /// The time in the timestamp of an acknowledgement that leaves now. Linux's timer of SACK compression does not read the
    /// clock (`tcp_compressed_ack_kick`): the timestamp then shows when the last segment arrived.
    #[inline]
    pub(super) fn stamp(&self, now: Instant) -> Instant {
        if self.due || self.compression.deadline.is_none() {
            return now;
        }
        match self.host_profile {
            HostProfile::Kernel => self.compression.last_held,
            HostProfile::UserSpace => now,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        Instant::earlier(self.deadline, self.compression.deadline)
    }

    /// Whether anything has arrived that is to be acknowledged (`ICSK_ACK_SCHED`).
    fn is_owed(&self) -> bool {
        self.due || self.unacked > 0 || self.deadline().is_some()
    }

    pub(super) fn on_ack_sent(&mut self) {
        if self.quick > 0 && self.is_owed() {
            self.quick -= 1;
            if self.quick == 0 {
                // `tcp_dec_quickack_mode`
                self.delay = self.delay.map(|_| DELAY);
            }
        }
        self.unacked = 0;
        self.thresholds.on_ack_sent();
        self.due = false;
        self.pushed = 0;
        self.deadline = None;
        self.compression.deadline = None;
        self.compression.held = 0;
    }
}

/// As Linux's `usecs_to_jiffies`.
fn in_ticks_rounded_up(time: Duration) -> Duration {
    Duration::from_millis(time.as_micros().div_ceil(1_000))
}

/// Linux keeps the delay in ticks of 1 ms.
fn in_whole_ticks(delay: Duration) -> Duration {
    Duration::from_millis(delay.as_nanos() / 1_000_000)
}

#[cfg(test)]
mod tests;

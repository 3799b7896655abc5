//! How the receive buffer grows with what the application reads, as Linux 6.1 has it (`tcp_rcv_space_adjust`): dynamic
//! right-sizing (Fisk and Feng, "Dynamic right-sizing in TCP", LACSI 2001).
//!
//! ```text
//! once per round trip, copied = bytes read in it, space = the most of an earlier one, at first 10 mss:
//!   copied > space:
//!     window = 2 copied + 16 mss
//!     window = window + 2 window (copied - space) / space
//!     buffer = max(buffer, window as memory, halved)
//!     space  = copied
//! round trip: the time since the timestamp that a segment echoes, smoothed by 1/8; a smaller sample counts in full
//! ```
//!
//! Since Linux 6.5 the memory of a segment is measured, and the buffer is the window itself. So it is where a first
//! window is configured, which has no limit of 64 KB since Linux 6.11. Debian's 6.12 takes bytes that are not yet read
//! off `copied`: what waited behind a hole is no sign of a faster sender.

use std::ops::Range;

use weir_units::{Duration, Instant};

use crate::Config;

/// The receive buffer that grows.
#[derive(Debug)]
pub(super) struct Autotune {
    mss: u64,
    /// Segments are charged what they take (Linux 6.5).
    is_measured: bool,
    /// The most bytes read in a round trip.
    space: u64,
    /// When this round trip began, and what had been read.
    since: Option<Instant>,
    read: u64,
    rtt: ReceiverRtt,
}

impl Autotune {
    /// Where the configuration lets the buffer grow.
    pub(super) fn new(config: &Config) -> Option<Self> {
        let mss = u64::from(config.mss);
        config.max_recv_buffer.map(|_| Self {
            mss,
            is_measured: config.initial_recv_window.is_some(),
            space: INITIAL_SEGMENTS * mss,
            since: None,
            read: 0,
            rtt: ReceiverRtt::default(),
        })
    }

    /// The connection is established: its first round trip begins.
    pub(super) fn on_established(&mut self, now: Instant) {
        self.since = Some(now);
    }

    /// A segment of `len` bytes echoes a timestamp of ours, `rtt` old.
    pub(super) fn on_echo(&mut self, echo: u32, rtt: Duration, len: u64) {
        self.rtt.on_echo(echo, rtt, len >= self.mss);
    }

    /// The round trip as data shows it.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// In-order data up to `rcv_nxt` arrived, of an offered `window`.
    pub(super) fn on_data(&mut self, now: Instant, rcv_nxt: u64, window: u64) {
        self.rtt.on_data(now, rcv_nxt, window);
    }

    /// The application consumes the bytes `taken` of those that are in order up to `rcv_nxt`. Returns the buffer
    /// that this asks for. Linux asks after each segment: the rest of what a repair makes readable belongs to the
    /// next round trip.
    pub(super) fn on_read(&mut self, now: Instant, taken: Range<u64>, rcv_nxt: u64) -> Option<u64> {
        let since = *self.since.get_or_insert(now);
        let rtt = self.rtt.smoothed()?;
        if now.saturating_since(since).as_micros() < rtt.as_micros() {
            return None;
        }
        let first = taken.end.min(taken.start + self.mss);
        let unread = if self.is_measured { rcv_nxt - first } else { 0 };
        let copied = (first - self.read).saturating_sub(unread);
        (self.since, self.read) = (Some(now), first);
        if copied <= self.space {
            return None;
        }
        let buffer = self.buffer(copied);
        self.space = copied;
        Some(buffer)
    }

    /// The window for a sender that sends `copied` bytes per round trip, twice as many to repair losses, and more
    /// if it grows: half of the memory that its segments take.
    fn buffer(&self, copied: u64) -> u64 {
        let steady = 2 * u128::from(copied) + u128::from(CUSHION_SEGMENTS * self.mss);
        let growth = steady * u128::from(copied - self.space) / u128::from(self.space);
        let window = steady + 2 * growth;
        if self.is_measured {
            return u64::try_from(window).unwrap_or(u64::MAX);
        }
        let segments = window / u128::from(self.mss);
        let memory = segments * u128::from(self.memory_per_segment());
        u64::try_from(memory / 2).unwrap_or(u64::MAX)
    }

    /// What the kernel reserves for a segment: at least twice its payload, which half of the memory is for.
    fn memory_per_segment(&self) -> u64 {
        let least = self.mss + SEGMENT_OVERHEAD;
        let lacking = (2 * self.mss - 1).saturating_sub(least);
        least + lacking.div_ceil(MEMORY_STEP) * MEMORY_STEP
    }
}

/// The round trip as the receiver sees it (`rcv_rtt_est`).
#[derive(Debug, Default)]
struct ReceiverRtt {
    /// Eight times the estimate in microseconds; zero before the first sample.
    scaled: u64,
    /// The timestamp that the last segment echoed.
    echoed: Option<u32>,
    /// Where the window that was offered ends, and since when.
    window: Option<(u64, Instant)>,
}

impl ReceiverRtt {
    /// `tcp_rcv_rtt_measure_ts`: once per timestamp, by a full segment.
    fn on_echo(&mut self, echo: u32, rtt: Duration, is_full: bool) {
        if self.echoed == Some(echo) {
            return;
        }
        self.echoed = Some(echo);
        if is_full {
            let sample = rtt.as_micros();
            let smoothed = self.scaled - self.scaled / 8 + sample;
            self.scaled = if self.is_smaller(sample) { 8 * sample } else { smoothed };
        }
    }

    /// `tcp_rcv_rtt_measure`: a whole window takes at least a round trip.
    fn on_data(&mut self, now: Instant, rcv_nxt: u64, window: u64) {
        if let Some((end, since)) = self.window {
            if rcv_nxt < end {
                return;
            }
            let sample = now.saturating_since(since).as_micros().max(1);
            if self.is_smaller(sample) {
                self.scaled = 8 * sample;
            }
        }
        self.window = Some((rcv_nxt + window, now));
    }

    fn is_smaller(&self, sample: u64) -> bool {
        self.scaled == 0 || 8 * sample < self.scaled
    }

    fn smoothed(&self) -> Option<Duration> {
        (self.scaled > 0).then(|| Duration::from_nanos(self.scaled * 1_000 / 8))
    }
}

/// Linux's `TCP_INIT_CWND`.
const INITIAL_SEGMENTS: u64 = 10;
/// Segments of the window for small variations.
const CUSHION_SEGMENTS: u64 = 16;
/// What Linux 6.1 reserves for a segment beyond its payload: `SKB_TRUESIZE` of an empty one with space for headers.
const SEGMENT_OVERHEAD: u64 = 768;
/// In bytes.
const MEMORY_STEP: u64 = 128;

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;

    const MSS: u64 = 1_448;

    fn autotune() -> Autotune {
        let config = Config { max_recv_buffer: Some(Bytes(16 << 20)), ..Config::default() };
        Autotune::new(&config).expect("a buffer that grows")
    }

    fn of_newer_linux() -> Autotune {
        let config = Config {
            max_recv_buffer: Some(Bytes(16 << 20)),
            initial_recv_window: Some(Bytes(4 << 20)),
            ..Config::default()
        };
        Autotune::new(&config).expect("a buffer that grows")
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// 20, 40 and 80 segments in round trips of 100 ms, by hand from `tcp_rcv_space_adjust`: a segment takes 2984 bytes.
    #[test]
    fn the_buffer_is_six_times_what_a_doubling_sender_sent() {
        let mut tune = autotune();
        tune.on_echo(1, Duration::from_millis(100), MSS);
        assert_eq!(tune.on_read(at(0), 0..0, 0), None);
        let mut total = 0;
        let mut sizes = Vec::new();
        for (trip, segments) in [(1, 20), (2, 40), (3, 80), (4, 80)] {
            total += segments * MSS;
            sizes.push(tune.on_read(at(100 * trip), total - MSS..total, total));
        }
        let expected = [3 * (2 * 20 + 16), 3 * (2 * 40 + 16), 3 * (2 * 80 + 16)];
        let expected = expected.map(|segments: u64| Some(segments * 2_984 / 2));
        assert_eq!(sizes, [expected[0], expected[1], expected[2], None]);
    }

    /// Since Linux 6.5 the window is that of the formula: 2 (2 · 40 + 16) segments more than 2 · 40 + 16.
    #[test]
    fn the_window_is_exact_where_segments_are_measured() {
        let mut tune = of_newer_linux();
        tune.space = 20 * MSS;
        assert_eq!(tune.buffer(40 * MSS), 3 * (2 * 40 + 16) * MSS);
    }

    /// The kernel's clock counts microseconds: after 99,999.5 of them a round trip of 99,999.875 is over.
    #[test]
    fn a_round_trip_is_over_after_its_whole_microseconds() {
        let mut tune = autotune();
        tune.rtt.scaled = 799_999;
        assert_eq!(tune.on_read(at(0), 0..0, 0), None);
        let later = |nanos| at(0) + Duration::from_nanos(nanos);
        assert_eq!(tune.on_read(later(99_998_999), 40 * MSS..41 * MSS, 41 * MSS), None);
        assert!(tune.on_read(later(99_999_500), 40 * MSS..41 * MSS, 41 * MSS).is_some());
    }

    #[test]
    fn it_looks_once_per_round_trip_and_not_before_it_knows_one() {
        let mut tune = autotune();
        let one = |segments: u64| (segments - 1) * MSS..segments * MSS;
        let mut read = |ms: u64, taken: Range<u64>| tune.on_read(at(ms), taken.clone(), taken.end);
        assert_eq!(read(0, one(100)), None);
        assert_eq!(read(500, one(200)), None);
        tune.on_echo(1, Duration::from_millis(100), MSS);
        let mut read = |ms: u64, taken: Range<u64>| tune.on_read(at(ms), taken.clone(), taken.end);
        assert!(read(500, one(200)).is_some());
        assert_eq!(read(599, one(600)), None);
        assert!(read(600, one(600)).is_some());
    }

    #[test]
    fn the_first_round_trip_begins_with_the_connection() {
        let mut tune = autotune();
        tune.on_established(at(0));
        tune.on_echo(1, Duration::from_millis(100), MSS);
        assert_eq!(tune.on_read(at(99), 0..40 * MSS, 40 * MSS), None);
        assert!(tune.on_read(at(100), 40 * MSS..41 * MSS, 41 * MSS).is_some());
    }

    /// 30 segments waited behind a hole: they count with the round trip that follows the repair.
    #[test]
    fn what_a_repair_makes_readable_counts_later() {
        let mut tune = autotune();
        tune.on_echo(1, Duration::from_millis(100), MSS);
        assert_eq!(tune.on_read(at(0), 0..0, 0), None);
        assert_eq!(tune.on_read(at(100), 0..31 * MSS, 31 * MSS), None);
        assert!(tune.on_read(at(200), 31 * MSS..32 * MSS, 32 * MSS).is_some());
    }

    /// 40 segments were read when 30 more wait that a repair made readable.
    #[test]
    fn what_is_not_yet_read_makes_a_newer_linux_no_faster() {
        for (mut tune, grows) in [(autotune(), true), (of_newer_linux(), false)] {
            tune.on_echo(1, Duration::from_millis(100), MSS);
            assert_eq!(tune.on_read(at(0), 0..0, 0), None);
            let repair = 39 * MSS..70 * MSS;
            assert_eq!(tune.on_read(at(100), repair.clone(), repair.end).is_some(), grows);
            let all_read = 108 * MSS..109 * MSS;
            assert!(tune.on_read(at(200), all_read.clone(), all_read.end).is_some());
        }
    }

    #[test]
    fn the_round_trip_is_smoothed_upwards_only() {
        let mut rtt = ReceiverRtt::default();
        rtt.on_echo(1, Duration::from_millis(80), true);
        rtt.on_echo(1, Duration::from_millis(10), true);
        rtt.on_echo(2, Duration::from_millis(20), false);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(80)));
        rtt.on_echo(3, Duration::from_millis(160), true);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(90)));
        rtt.on_echo(4, Duration::from_millis(50), true);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(50)));
    }

    #[test]
    fn without_timestamps_a_window_is_a_round_trip() {
        let mut rtt = ReceiverRtt::default();
        rtt.on_data(at(0), MSS, 10 * MSS);
        rtt.on_data(at(30), 10 * MSS, 10 * MSS);
        assert_eq!(rtt.smoothed(), None);
        rtt.on_data(at(40), 11 * MSS, 10 * MSS);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(40)));
        rtt.on_data(at(90), 21 * MSS, 10 * MSS);
        assert_eq!(rtt.smoothed(), Some(Duration::from_millis(40)));
    }
}

//! What was measured of a sender, whatever showed it: a capture or its own log.

use weir_trace::Histogram;
use weir_units::Duration;

use super::rates::AckRates;
use super::slices::Slices;

/// Counts, round-trip times, slices of time, packets and losses of a sender. Its memory is bounded.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) counts: Counts,
    pub(crate) rtts: Histogram,
    pub(crate) slices: Slices,
    pub(crate) passed: Vec<Passed>,
    pub(crate) losses: Vec<Loss>,
    ack_rates: AckRates,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    /// Bytes sent, with repetitions.
    pub(crate) bytes: u64,
    /// Bytes acknowledged.
    pub(crate) delivered: u64,
    pub(crate) fast: u64,
    pub(crate) timeout: u64,
    pub(crate) tail_probe: u64,
    /// Repetitions of which a log does not say why.
    pub(crate) unexplained: u64,
    /// Repetitions that the receiver reported as duplicates.
    pub(crate) spurious: u64,
    pub(crate) repeated_bytes: u64,
    /// Timer expiries.
    pub(crate) timeouts: u64,
    /// Segments that arrived after later ones, without a repetition or before it.
    pub(crate) reordered: u64,
    /// Acknowledgements of new data.
    pub(crate) acks: u64,
    pub(crate) dup_acks: u64,
    /// Gaps between segments that were sent while several were in flight.
    pub(crate) gaps: u64,
    /// Those of at least a quarter of the mean gap of a round trip.
    pub(crate) wide_gaps: u64,
    pub(crate) zero_windows: u64,
    /// Segments that filled a gap after a loss before the place of the capture.
    pub(crate) lost_upstream: u64,
    /// Bytes that were acknowledged and not captured.
    pub(crate) unseen: u64,
    /// Packets longer than a segment: offload merged them.
    pub(crate) merged: u64,
    /// Most bytes in flight.
    pub(crate) flight_max: u64,
    pub(crate) window_min: Option<u64>,
    pub(crate) window_max: u64,
}

impl Counts {
    /// Repetitions of all kinds.
    pub(crate) fn retransmits(&self) -> u64 {
        self.fast + self.timeout + self.tail_probe + self.unexplained
    }
}

/// A data packet: when, how long, whether it came again later, and its RTT in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) time: u64,
    /// Distance of its first byte from the first of the connection.
    pub(crate) place: i64,
    pub(crate) len: u32,
    pub(crate) rtt: Option<u32>,
    pub(crate) is_lost: bool,
}

impl Passed {
    pub(crate) fn set_rtt(&mut self, nanos: u64) {
        self.rtt = Some((nanos / 1_000).min(u64::from(u32::MAX)) as u32);
    }
}

/// A loss episode: its first repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Loss {
    pub(crate) time: u64,
    /// The RTT of the packets before the lost one.
    pub(crate) rtt: Option<u64>,
    /// Repetitions, and how many of them the receiver had already.
    pub(crate) repeats: u32,
    pub(crate) duplicates: u32,
}

impl Measured {
    /// Nothing yet, from `time` on; `round_trip` is what the handshake took.
    pub(crate) fn new(time: u64, round_trip: Option<u64>) -> Self {
        Self {
            counts: Counts::default(),
            rtts: Histogram::new(),
            slices: Slices::new(time, round_trip.unwrap_or(UNKNOWN_ROUND)),
            passed: Vec::new(),
            losses: Vec::new(),
            ack_rates: AckRates::default(),
        }
    }

    /// Keeps a data packet, and returns its number; the largest one if there is no space for it.
    pub(crate) fn note_passed(&mut self, time: u64, place: i64, len: u32) -> u32 {
        if self.passed.len() >= MOST_PASSED {
            return u32::MAX;
        }
        self.passed.push(Passed { time, place, len, rtt: None, is_lost: false });
        (self.passed.len() - 1) as u32
    }

    /// Keeps what was lost before the place of the capture, which noticed the gap at `time`; its number.
    pub(crate) fn note_missing(&mut self, time: u64, place: i64, len: u32) -> u32 {
        let number = self.note_passed(time, place, len);
        if let Some(passed) = self.passed.get_mut(number as usize) {
            passed.is_lost = true;
        }
        number
    }

    /// What seemed to be missing came later.
    pub(crate) fn set_arrived(&mut self, number: u32) {
        if let Some(passed) = self.passed.get_mut(number as usize) {
            passed.is_lost = false;
        }
    }

    /// Adds bytes that were acknowledged at `time`. Their sum has a limit, because a log may report any number.
    pub(crate) fn record_delivered(&mut self, time: u64, bytes: u64) {
        let bytes = bytes.min(MOST_DELIVERED - self.counts.delivered);
        self.slices.at(time).delivered += bytes;
        self.counts.delivered += bytes;
        self.ack_rates.record(time, bytes);
    }

    pub(crate) fn record_rtt(&mut self, time: u64, rtt: u64) {
        self.rtts.record(Duration::from_nanos(rtt));
        self.slices.at(time).record_rtt(rtt);
    }

    pub(crate) fn record_flight(&mut self, time: u64, bytes: u64) {
        self.counts.flight_max = self.counts.flight_max.max(bytes);
        let slice = self.slices.at(time);
        slice.flight_max = slice.flight_max.max(bytes);
    }

    /// Begins a loss episode; `rtt` is that of the packets before.
    pub(crate) fn begin_loss(&mut self, time: u64, rtt: Option<u64>) {
        if self.losses.len() < MOST_LOSSES {
            self.losses.push(Loss { time, rtt, repeats: 0, duplicates: 0 });
        }
    }

    /// The rate at which acknowledgements come within their bursts, in bytes per second.
    pub(crate) fn ack_rate(&self) -> Option<f64> {
        self.ack_rates.median()
    }

    /// Bytes of memory that its lists take, about.
    pub(crate) fn memory(&self) -> usize {
        let lists = size_of_val(self.passed.as_slice()) + size_of_val(self.losses.as_slice());
        lists + size_of_val(self.slices.list())
    }
}

/// Width of slices where the round trip is not known yet.
const UNKNOWN_ROUND: u64 = 50_000_000;
/// Packets that are kept for the policer test and for models, as many as 95 MB have. Each takes 40 bytes.
const MOST_PASSED: usize = 1 << 16;
const MOST_LOSSES: usize = 1 << 12;
/// Bytes acknowledged: twice as many fit into a column.
const MOST_DELIVERED: u64 = 1 << 62;

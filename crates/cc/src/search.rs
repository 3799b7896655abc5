//! SEARCH: an end of slow start where deliveries fall behind what was sent a round trip before
//! (draft-chung-ccwg-search-09).
//!
//! ```text
//! bin        = 3.5 rtt0 / 10                    rtt0: the first RTT sample
//! delivered  = bytes acknowledged in the last 10 bins
//! sent       = bytes sent in the 10 bins that ended one RTT ago
//! exit         (sent - delivered) / sent >= 0.26
//! cwnd       = ssthresh = bytes acknowledged in the last rtt0
//! ```
//!
//! It is evaluated once per bin, not before 10 bins ended one RTT ago, nor while the RTT lasts 15 bins or more. A pause
//! of more than 10 bins starts it anew.
//!
//! Deviations from the draft: the bytes sent between two bins are interpolated backwards in time. The draft interpolates
//! forwards, which is a known mistake (neqo's `search.rs` says so). The draft lowers the window gradually; here it falls at
//! once, so that nothing is sent until the queue has drained.

use weir_units::{Bytes, Duration, Instant};

/// Bytes sent and acknowledged, bin by bin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    sent: Bytes,
    acked: Bytes,
    bins: Option<Bins>,
}

/// The last bins, each with the totals at its end.
#[derive(Clone, Debug)]
struct Bins {
    totals: [Totals; KEPT],
    /// How many ended since the start.
    newest: u64,
    end: Instant,
    length: Duration,
    first_rtt: Duration,
}

/// Bytes since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    sent: Bytes,
    acked: Bytes,
}

impl Search {
    pub(crate) fn on_sent(&mut self, bytes: Bytes) {
        self.sent += bytes;
    }

    /// Counts an acknowledgement; returns the window to go on with, if slow start is over.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        acked: Bytes,
        rtt: Option<Duration>,
    ) -> Option<Bytes> {
        self.acked += acked;
        let totals = Totals { sent: self.sent, acked: self.acked };
        let rtt = rtt.filter(|rtt| *rtt >= SHORTEST_RTT)?;
        let bins = self.bins.get_or_insert_with(|| Bins::begin(now, rtt, totals));
        if now <= bins.end {
            return None;
        }
        let passed = now.saturating_since(bins.end).as_nanos() / bins.length.as_nanos() + 1;
        if passed > WINDOW {
            self.bins = None;
            return None;
        }
        bins.advance(passed, totals);
        bins.is_congested(rtt).then(|| bins.delivered_in_first_rtt())
    }

    /// Starts anew, with the next sample.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }
}

impl Bins {
    fn begin(now: Instant, rtt: Duration, totals: Totals) -> Self {
        let length = rtt.mul_ratio(35, 100);
        let bins = [totals; KEPT];
        Self { totals: bins, newest: 0, end: now + length, length, first_rtt: rtt }
    }

    /// Ends `passed` bins, of which those before the last had no acknowledgement.
    fn advance(&mut self, passed: u64, totals: Totals) {
        let before = self.at(0);
        for _ in 1..passed {
            self.push(before);
        }
        self.push(totals);
        self.end += self.length * passed;
    }

    fn push(&mut self, totals: Totals) {
        self.newest += 1;
        self.totals[(self.newest % KEPT as u64) as usize] = totals;
    }

    /// The totals at the end of the bin that is `age` bins older than the newest, which must be kept.
    fn at(&self, age: u64) -> Totals {
        self.totals[((self.newest - age) % KEPT as u64) as usize]
    }

    fn is_congested(&self, rtt: Duration) -> bool {
        let age = rtt.as_nanos() / self.length.as_nanos();
        if age >= EXTRA || self.newest <= age + WINDOW {
            return false;
        }
        let part = rtt.as_nanos() % self.length.as_nanos();
        let delivered = (self.at(0).acked - self.at(WINDOW).acked).get();
        let sent_until = |age| (self.at(age).sent - self.at(age + WINDOW).sent).get();
        // One RTT ago lies between the ends of two bins.
        let (later, earlier) = (sent_until(age), sent_until(age + 1));
        let sent = Bytes(later).mul_ratio(self.length.as_nanos() - part, self.length.as_nanos())
            + Bytes(earlier).mul_ratio(part, self.length.as_nanos());
        is_behind(sent, Bytes(delivered))
    }

    /// What the path carries in an RTT without a queue.
    fn delivered_in_first_rtt(&self) -> Bytes {
        let bins = self.first_rtt.as_nanos().div_ceil(self.length.as_nanos());
        let delivered = self.at(0).acked - self.at(bins).acked;
        delivered.mul_ratio(self.first_rtt.as_nanos(), (self.length * bins).as_nanos())
    }
}

/// Whether deliveries fell behind by the threshold.
fn is_behind(sent: Bytes, delivered: Bytes) -> bool {
    let missing = u128::from(sent.saturating_sub(delivered).get());
    sent > Bytes::ZERO && missing * 100 >= u128::from(sent.get()) * THRESHOLD
}

/// Bins of a window (`W`), and further ones for the bytes sent one RTT ago (`EXTRA_BINS`).
const WINDOW: u64 = 10;
const EXTRA: u64 = 15;
const KEPT: usize = (WINDOW + EXTRA + 1) as usize;
/// `THRESH`, in percent.
const THRESHOLD: u128 = 26;
/// A bin must last a nanosecond at least.
const SHORTEST_RTT: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Sends `sent` and acknowledges `acked` bytes every millisecond; when slow start ends, in milliseconds, and with
    /// which window.
    fn exit(
        for_ms: u64,
        sent: impl Fn(u64) -> u64,
        acked: impl Fn(u64) -> u64,
    ) -> Option<(u64, Bytes)> {
        let mut search = Search::default();
        (0..for_ms).find_map(|ms| {
            search.on_sent(Bytes(sent(ms)));
            let now = Instant::ZERO + Duration::from_millis(ms);
            Some((ms, search.on_ack(now, Bytes(acked(ms)), Some(RTT))?))
        })
    }

    /// §3.2: the threshold is 26 % of what was sent.
    #[test]
    fn it_ends_where_deliveries_are_26_percent_behind() {
        assert_eq!(exit(3_000, |_| 100, |_| 75), None);
        // Ten bins of 35 ms that ended an RTT ago, evaluated at the end of the next bin.
        assert_eq!(exit(3_000, |_| 100, |_| 73), Some((456, Bytes(7_300))));
        assert!(is_behind(Bytes(100), Bytes(74)) && !is_behind(Bytes(100), Bytes(75)));
        assert!(!is_behind(Bytes::ZERO, Bytes::ZERO));
    }

    /// While the path carries all that is sent, deliveries follow what was sent an RTT before exactly.
    #[test]
    fn doubling_alone_does_not_end_it() {
        let doubling = |ms: u64| 1_000 << (ms / 100);
        assert_eq!(exit(2_000, doubling, |ms| if ms < 100 { 0 } else { doubling(ms - 100) }), None);
        // The path carries 16 000 bytes per millisecond: reached after 400 ms.
        let carried = |ms: u64| if ms < 100 { 0 } else { doubling(ms - 100).min(16_000) };
        let (ms, window) = exit(2_000, doubling, carried).expect("an end");
        assert!((600..=800).contains(&ms), "{ms}");
        assert_eq!(window, Bytes(1_600_000), "what is delivered in 100 ms");
    }

    /// A pause of more than ten bins, 350 ms, makes what is known stale.
    #[test]
    fn a_pause_of_more_than_ten_bins_starts_it_anew() {
        for (pause, restarts) in [(350, false), (420, true)] {
            let mut search = Search::default();
            let mut ack = |ms| {
                search.on_sent(Bytes(100));
                let now = Instant::ZERO + Duration::from_millis(ms);
                search.on_ack(now, Bytes(100), Some(RTT));
                search.bins.as_ref().map(|bins| bins.newest)
            };
            for ms in 0..=386 {
                ack(ms);
            }
            assert_eq!(ack(387), Some(11));
            let after = ack(387 + pause);
            assert_eq!(after.is_none(), restarts, "{pause} ms: {after:?}");
        }
    }
}

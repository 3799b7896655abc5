//! Bandwidth as Linux's BBR counts it, with its truncations: the sums that it rounds are a few segments.

use weir_units::{Bytes, Duration, Rate};

/// Segments per microsecond, in 2^-24ths (`BW_UNIT`). It fits 32 bits: 3 Tbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bandwidth(u64);

impl Bandwidth {
    /// What moves `segments` in this time, of which whole microseconds count.
    pub(super) fn of(segments: u64, time: Duration) -> Self {
        let time = u128::from(time.as_micros().max(1));
        Self(narrow((u128::from(segments) << SCALE) / time).min(MOST))
    }

    /// The bandwidth that moves this many bits per second in segments of `mss`.
    pub(super) fn from_rate(rate: Rate, mss: Bytes) -> Self {
        let bits = u128::from(rate.as_bits_per_sec());
        let per_segment = u128::from(mss.get().max(1)) * 8_000_000;
        Self(narrow((bits << SCALE) / per_segment).min(MOST))
    }

    /// `num / den` of it.
    pub(super) fn mul_ratio(self, num: u64, den: u64) -> Self {
        Self(narrow(u128::from(self.0) * u128::from(num) / u128::from(den)))
    }

    /// Segments per second, for tables.
    pub(super) fn segments_per_sec(self) -> f64 {
        self.0 as f64 * 1e6 / (1_u64 << SCALE) as f64
    }

    /// The whole segments that it moves in the whole microseconds of `time`.
    pub(super) fn segments_in(self, time: Duration) -> u64 {
        narrow((u128::from(self.0) * u128::from(time.as_micros())) >> SCALE).min(MOST_SEGMENTS)
    }

    /// The segments in flight at `gain / 256` of it and this round trip, of which a part counts as one.
    pub(super) fn product(self, rtt: Duration, gain: u64) -> u64 {
        let product = u128::from(self.0) * u128::from(rtt.as_micros());
        narrow(((product * u128::from(gain)) >> 8).div_ceil(1 << SCALE)).min(MOST_SEGMENTS)
    }

    /// The rate of segments of `mss` one percent below `gain / 256` of it, so that a standing queue drains.
    pub(super) fn paced(self, mss: Bytes, gain: u64) -> Rate {
        let bytes = (u128::from(self.0) * u128::from(mss.get()) * u128::from(gain)) >> 8;
        let per_second = (bytes * (1_000_000 / 100 * 99)) >> SCALE;
        Rate::from_bits_per_sec(narrow(per_second * 8))
    }
}

/// Segments of `mss`, of which a part counts as one.
pub(super) fn segments(mss: Bytes, bytes: Bytes) -> u64 {
    bytes.get().div_ceil(mss.get().max(1))
}

/// The same in bytes.
pub(super) fn whole(mss: Bytes, bytes: Bytes) -> Bytes {
    mss * segments(mss, bytes)
}

fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

const SCALE: u32 = 24;
const MOST: u64 = u32::MAX as u64;
/// Sums of such windows in bytes cannot overflow.
const MOST_SEGMENTS: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes(1_448);

    /// A segment takes 1211.2 us at 10 Mbit/s with its headers; the true bandwidth is 13,851.7 units.
    #[test]
    fn samples_are_truncated() {
        let sample = Bandwidth::of(34, Duration::from_nanos(34 * 1_211_200));
        assert_eq!(sample, Bandwidth((34 << 24) / 41_180));
        // Two segments take 2422.4 us: with a bandwidth truncated to less, they are not explained.
        assert_eq!(sample.segments_in(Duration::from_nanos(2_422_400)), 1);
        assert_eq!(sample.segments_in(Duration::from_micros(2_423)), 2);
    }

    #[test]
    fn a_part_of_a_segment_in_flight_counts_as_one() {
        let bandwidth = Bandwidth::of(10, Duration::from_millis(10));
        assert_eq!(bandwidth.product(Duration::from_millis(40), 256), 40);
        assert_eq!(bandwidth.product(Duration::from_micros(40_001), 256), 41);
        assert_eq!(bandwidth.product(Duration::from_millis(40), 512), 80);
        assert_eq!(segments(MSS, Bytes(1_449)), 2);
        assert_eq!(whole(MSS, Bytes(1)), MSS);
    }

    #[test]
    fn pacing_is_one_percent_below() {
        let bandwidth = Bandwidth::of(1_000, Duration::from_secs(1));
        let rate = bandwidth.paced(Bytes(1_250), 256).as_bits_per_sec();
        assert!((9_890_000..=9_900_000).contains(&rate), "{rate}");
        let again = Bandwidth::from_rate(Rate::from_mbit(10), Bytes(1_250));
        assert_eq!(again, bandwidth);
    }

    #[test]
    fn nothing_overflows() {
        let most = Bandwidth::of(u64::MAX, Duration::ZERO);
        assert_eq!(most, Bandwidth(MOST));
        assert_eq!(most.product(Duration::MAX, 739), MOST_SEGMENTS);
        assert!(most.paced(Bytes(u64::from(u32::MAX)), 739) > Rate::from_mbit(1_000_000));
        assert_eq!(most.segments_in(Duration::MAX), MOST_SEGMENTS);
    }
}

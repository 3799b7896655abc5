//! What is measured along the way: delays, the window over time, what waited where.

use weir_trace::Histogram;
use weir_units::{Bytes, Duration, Instant};

/// What a link's packets met.
#[derive(Debug, Default)]
pub(crate) struct LinkMeter {
    /// How long packets waited.
    pub(crate) sojourns: Histogram,
    /// How long the packet that came out last had waited.
    pub(crate) last_sojourn: Duration,
}

impl LinkMeter {
    #[inline]
    pub(crate) fn record_sojourn(&mut self, sojourn: Duration) {
        self.last_sojourn = sojourn;
        self.sojourns.record(sojourn);
    }

    /// Forgets the warm-up.
    pub(crate) fn restart(&mut self) {
        self.sojourns = Histogram::new();
    }
}

/// A window's value over time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowMeter {
    since: Instant,
    began: Instant,
    value: Bytes,
    max: Bytes,
    byte_nanos: u128,
}

impl WindowMeter {
    /// From now on the window is `value`.
    #[inline]
    pub(crate) fn set(&mut self, now: Instant, value: Bytes) {
        self.book(now);
        self.value = value;
        self.max = self.max.max(value);
    }

    /// Measures anew from here on.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self { since: now, began: now, value: self.value, max: self.value, byte_nanos: 0 };
    }

    pub(crate) fn book(&mut self, now: Instant) {
        let spent = now.saturating_since(self.since);
        self.byte_nanos += u128::from(self.value.get()) * u128::from(spent.as_nanos());
        self.since = now;
    }

    /// The mean over time since the measurement began; `None` if no time has passed.
    pub(crate) fn mean(&self) -> Option<f64> {
        let spent = self.since.saturating_since(self.began);
        (!spent.is_zero()).then(|| self.byte_nanos as f64 / spent.as_nanos() as f64)
    }

    pub(crate) fn max(&self) -> Bytes {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_averaged_over_time() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut meter = WindowMeter::default();
        meter.set(at(5), Bytes(999));
        meter.restart(at(10));
        meter.set(at(11), Bytes(1_000));
        meter.set(at(14), Bytes(0));
        meter.book(at(20));
        assert_eq!(meter.mean(), Some((999.0 + 3.0 * 1_000.0) / 10.0));
        assert_eq!(meter.max(), Bytes(1_000));
    }
}

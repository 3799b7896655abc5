//! How fast a transmitter is: what it is built for, or what it was seen to do.

use weir_units::{Bytes, Duration, Instant, Rate};

use super::occupancy::{Occupancy, Signal};
use super::{NANOS_PER_SECOND, bytes_per_second};

/// Where the capacity comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// The transmitter's rate.
    #[default]
    Nominal,
    /// What it sends while it is busy, averaged: on a shared medium that is what there is.
    Measured,
}

/// The capacity in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceRate {
    source: Capacity,
    rate: u64,
    bytes: u64,
    busy: Duration,
    busy_since: Option<Instant>,
}

impl ServiceRate {
    pub(super) fn new(source: Capacity, rate: Rate) -> Self {
        let rate = bytes_per_second(rate).max(1);
        Self { source, rate, bytes: 0, busy: Duration::ZERO, busy_since: None }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        if self.source == Capacity::Nominal {
            self.rate = bytes_per_second(rate).max(1);
        }
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        if signal == Signal::Service {
            self.count_busy(now);
            self.busy_since = (occupancy == Occupancy::Busy).then_some(now);
        }
    }

    pub(super) fn on_departure(&mut self, len: Bytes) {
        self.bytes += len.get();
    }

    /// Bytes per second.
    pub(super) fn get(&self) -> u64 {
        self.rate
    }

    /// An interval is over: an eighth of what it showed goes into the average.
    pub(super) fn settle(&mut self, now: Instant) {
        self.count_busy(now);
        let busy = u128::from(self.busy.as_nanos());
        if self.source == Capacity::Measured && self.bytes > 0 && busy > 0 {
            let seen = u128::from(self.bytes) * NANOS_PER_SECOND / busy;
            let seen = u64::try_from(seen).unwrap_or(u64::MAX) / 8;
            self.rate = (self.rate - self.rate / 8).saturating_add(seen).max(1);
        }
        (self.bytes, self.busy) = (0, Duration::ZERO);
    }

    fn count_busy(&mut self, now: Instant) {
        if let Some(since) = &mut self.busy_since {
            self.busy += now.saturating_since(*since);
            *since = now.max(*since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_comes_to_what_is_sent_while_busy() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut rate = ServiceRate::new(Capacity::Measured, Rate::from_mbit(11));
        for round in 0..60 {
            // 1000 bytes in 4 ms out of 10.
            rate.set_busy(at(round * 10), Signal::Service, Occupancy::Busy);
            rate.on_departure(Bytes(1_000));
            rate.set_busy(at(round * 10 + 4), Signal::Service, Occupancy::Idle);
            rate.settle(at(round * 10 + 10));
        }
        assert!(rate.get().abs_diff(250_000) < 500, "{}", rate.get());
        let mut nominal = ServiceRate::new(Capacity::Nominal, Rate::from_mbit(8));
        nominal.on_departure(Bytes(1));
        nominal.settle(at(1_000));
        assert_eq!(nominal.get(), 1_000_000);
    }
}

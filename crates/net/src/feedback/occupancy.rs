//! How much of the time a transmitter has been busy of late.
//!
//! With s the occupancy (0 or 1) over the last span dt, the average moves at each change of state by
//!
//! ```text
//! u = s + (u - s) exp(-dt / memory)
//! ```
//!
//! A moving average of the utilisation is what TCP Muzha's slides name without its formula. This one is
//! that of the utilisation tracker in ns-2.35's queue, with `memory` the inverse of its decay rate.
//!
//! The average has 32 bits behind the point.

use weir_units::{Duration, Instant, Ratio};

/// What of a transmitter is watched. On a wire both are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signal {
    /// Its queue is handing over a packet: a radio's wait for its turn counts.
    #[default]
    Service,
    /// The medium is taken as the transmitter sees it: it sends, senses a carrier, or keeps away for
    /// another's exchange.
    Medium,
}

/// Whether it is busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occupancy {
    /// Nothing to do.
    #[default]
    Idle,
    /// At work.
    Busy,
}

/// The average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utilisation {
    memory: Duration,
    /// In units of 2^-32.
    average: u64,
    occupancy: Occupancy,
    /// Up to when `average` is right.
    since: Instant,
}

impl Utilisation {
    pub(super) fn new(memory: Duration) -> Self {
        Self { memory, average: 0, occupancy: Occupancy::Idle, since: Instant::ZERO }
    }

    pub(super) fn set(&mut self, now: Instant, occupancy: Occupancy) {
        if occupancy != self.occupancy {
            self.advance(now);
            self.occupancy = occupancy;
        }
    }

    /// The share of the time in which it was idle, in billionths.
    pub(super) fn idle(&mut self, now: Instant) -> u64 {
        self.advance(now);
        ((ONE - self.average) * PER_BILLION) >> 32
    }

    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.since);
        if passed.is_zero() {
            return;
        }
        self.since = now;
        let kept = decay(passed, self.memory);
        self.average = match self.occupancy {
            Occupancy::Idle => scale(self.average, kept),
            Occupancy::Busy => ONE - scale(ONE - self.average, kept),
        };
    }
}

/// `exp(-passed / memory)` in units of 2^-32.
fn decay(passed: Duration, memory: Duration) -> u64 {
    let exponent = passed.as_nanos() as f64 / memory.as_nanos() as f64;
    libm::round(libm::exp(-exponent) * ONE as f64) as u64
}

fn scale(value: u64, by: u64) -> u64 {
    ((u128::from(value) * u128::from(by)) >> 32) as u64
}

/// A ratio in the unit that [`Utilisation::idle`] has.
pub(super) fn billionths(ratio: Ratio) -> u64 {
    u64::from(ratio.as_billionths())
}

const ONE: u64 = 1 << 32;
const PER_BILLION: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// One time constant of work lifts it to 1 - 1/e, one of rest takes it down to that over e.
    #[test]
    fn it_follows_the_exponential() {
        let mut utilisation = Utilisation::new(Duration::from_millis(200));
        utilisation.set(at(1_000), Occupancy::Busy);
        let e = std::f64::consts::E;
        let expected = 1e9 / e;
        assert!((utilisation.idle(at(1_200)) as f64 - expected).abs() < 2.0);
        utilisation.set(at(1_200), Occupancy::Idle);
        let expected = 1e9 * (1.0 - (1.0 - 1.0 / e) / e);
        assert!((utilisation.idle(at(1_400)) as f64 - expected).abs() < 2.0);
    }

    #[test]
    fn how_often_it_is_asked_changes_little() {
        let (mut often, mut once) =
            (Utilisation::new(Duration::from_secs(1)), Utilisation::new(Duration::from_secs(1)));
        often.set(at(0), Occupancy::Busy);
        once.set(at(0), Occupancy::Busy);
        for millis in 1..=1_000 {
            often.idle(at(millis));
        }
        assert!(often.idle(at(1_000)).abs_diff(once.idle(at(1_000))) < 1_000);
    }
}

//! The one place where a point of virtual time becomes a `std::time::Instant`, which the hosted
//! stacks take as an argument everywhere.

use weir_units::{Duration, Instant};

/// What the hosted stacks call an instant. They only add to it and compare it.
#[expect(clippy::disallowed_types, reason = "the stacks' own type; no clock is read through it")]
pub(crate) type HostInstant = std::time::Instant;

/// Converts between virtual time and instants of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Virtual time zero.
    zero: HostInstant,
}

impl Clock {
    /// Reads the host's clock once. Its value has no effect: only differences are used.
    pub(crate) fn new() -> Self {
        // The stacks subtract durations, which must not reach back to before the machine started.
        Self { zero: HostInstant::now() + std::time::Duration::from_secs(DAY) }
    }

    pub(crate) fn to_host(self, at: Instant) -> HostInstant {
        self.zero + std::time::Duration::from_nanos(at.as_nanos())
    }

    pub(crate) fn to_virtual(self, at: HostInstant) -> Instant {
        Instant::from_nanos(duration(at.saturating_duration_since(self.zero)).as_nanos())
    }
}

/// A duration of the host's.
pub(crate) fn duration(span: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

const DAY: u64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_survives_the_way_there_and_back() {
        let clock = Clock::new();
        for nanos in [0, 1, 999_999_999, 1 << 50] {
            let at = Instant::from_nanos(nanos);
            assert_eq!(clock.to_virtual(clock.to_host(at)), at);
        }
        assert_eq!(clock.to_virtual(clock.zero - std::time::Duration::from_secs(1)), Instant::ZERO);
    }
}

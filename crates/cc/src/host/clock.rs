//! Instants of the standard library as those of the controllers.

use weir_units::{Duration, Instant};

/// An instant of hosts that use the standard library's.
#[expect(clippy::disallowed_types, reason = "the hosts' own type; no clock is read through it")]
type HostInstant = std::time::Instant;

/// Converts instants of a host. It reads no clock.
///
/// ```
/// use weir_cc::host::HostClock;
/// use weir_units::{Duration, Instant};
///
/// let zero = std::time::Instant::now();
/// let clock = HostClock::new(zero);
/// assert_eq!(clock.at(zero + std::time::Duration::from_millis(2)), Instant::ZERO + Duration::from_millis(2));
/// assert_eq!(clock.at(zero - std::time::Duration::from_millis(2)), Instant::ZERO);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    zero: HostInstant,
}

impl HostClock {
    /// A clock that begins at `zero`, for example when the connection is opened.
    pub fn new(zero: HostInstant) -> Self {
        Self { zero }
    }

    /// The instant of the controllers; what lies before the beginning is the beginning.
    pub fn at(&self, now: HostInstant) -> Instant {
        let nanos = now.saturating_duration_since(self.zero).as_nanos();
        Instant::ZERO + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

//! A time that does not count: a sender that waits for its route is frozen.

use weir_units::Instant;

/// The time for which a sender was frozen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
}

impl Pause {
    /// When something that happened at `at` counts as having happened: as long before the pause's end as
    /// it was before its beginning; at its end what happened within.
    pub(crate) fn shift(self, at: Instant) -> Instant {
        if at <= self.from { self.put_off(at) } else { self.to }
    }

    /// A deadline that was set before it.
    pub(crate) fn put_off(self, deadline: Instant) -> Instant {
        deadline.saturating_add(self.to.saturating_since(self.from))
    }
}

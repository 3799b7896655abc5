//! The backoff: whole idle slots after a gap, frozen while the medium is busy.

use weir_units::{Duration, Instant};

/// Where a node stands in its wait for the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contention {
    /// It does not wait.
    None,
    /// The medium is busy; number of slots left.
    Frozen { slots: u32 },
    /// The medium is idle: slots count from `from`, the end of the gap.
    Counting { from: Instant, slots: u32 },
    /// The standard's access without backoff at the end of the gap, unless the medium turns busy.
    Immediate { at: Instant },
    /// A wait that a busy medium does not freeze: [`super::Access::Ns2Unfrozen`].
    Unfrozen { at: Instant },
}

/// What a medium that turns busy does to the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// What is left stays.
    Kept,
    /// Immediate access is over: a backoff must be drawn.
    MustDraw,
}

impl Contention {
    /// When it ends, if nothing happens.
    pub(super) fn end(self, slot: Duration) -> Option<Instant> {
        match self {
            Self::None | Self::Frozen { .. } => None,
            Self::Counting { from, slots } => Some(from + slot * u64::from(slots)),
            Self::Immediate { at } | Self::Unfrozen { at } => Some(at),
        }
    }

    /// The medium turns busy at `now`.
    pub(super) fn freeze(&mut self, now: Instant, slot: Duration) -> Interrupted {
        match *self {
            Self::Counting { from, slots } => {
                let idle = now.saturating_since(from).as_nanos() / slot.as_nanos();
                let passed = u32::try_from(idle).unwrap_or(u32::MAX);
                *self = Self::Frozen { slots: slots.saturating_sub(passed) };
                Interrupted::Kept
            }
            Self::Immediate { .. } => Interrupted::MustDraw,
            Self::None | Self::Frozen { .. } | Self::Unfrozen { .. } => Interrupted::Kept,
        }
    }

    /// The medium is idle and the gap will have passed at `from`.
    pub(super) fn thaw(&mut self, from: Instant) {
        if let Self::Frozen { slots } = *self {
            *self = Self::Counting { from, slots };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Duration = Duration::from_micros(20);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn only_whole_idle_slots_count() {
        let mut wait = Contention::Counting { from: at(50), slots: 5 };
        assert_eq!(wait.end(SLOT), Some(at(150)));
        assert_eq!(wait.freeze(at(109), SLOT), Interrupted::Kept);
        assert_eq!(wait, Contention::Frozen { slots: 3 });
        assert_eq!(wait.end(SLOT), None);
        wait.thaw(at(1_000));
        assert_eq!(wait.end(SLOT), Some(at(1_060)));
    }

    #[test]
    fn a_gap_that_does_not_end_counts_nothing() {
        let mut wait = Contention::Counting { from: at(50), slots: 5 };
        wait.freeze(at(49), SLOT);
        assert_eq!(wait, Contention::Frozen { slots: 5 });
    }

    #[test]
    fn the_unfrozen_wait_takes_no_notice() {
        let mut wait = Contention::Unfrozen { at: at(90) };
        assert_eq!(wait.freeze(at(60), SLOT), Interrupted::Kept);
        assert_eq!(wait.end(SLOT), Some(at(90)));
        let mut wait = Contention::Immediate { at: at(90) };
        assert_eq!(wait.freeze(at(60), SLOT), Interrupted::MustDraw);
    }
}

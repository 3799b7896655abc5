//! A path that was silent for several timeouts and then returns, in the user-space profile.
//!
//! What it held meanwhile measures the silence and not the path. Taken for round trips, a pause of 12 s makes
//! timeouts of 24 s. Nothing that was sent before the first answer is timed then. But what seems a pause may be
//! the round trip: between two pauses something is timed.

/// What a silent path may have held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Nothing below this offset is timed.
    below: Option<u64>,
    /// Nothing was timed since the last pause.
    untimed: bool,
}

impl Held {
    /// The first answer after a silence has come, when `nxt` was next to be sent.
    pub(super) fn on_return(&mut self, nxt: u64) {
        if !self.untimed {
            *self = Self { below: Some(nxt), untimed: true };
        }
    }

    /// Whether an acknowledgement of all below `una` says nothing of the path.
    pub(super) fn covers(&mut self, una: u64) -> bool {
        self.below = self.below.filter(|below| una <= *below);
        self.below.is_some()
    }

    /// A round trip was measured.
    pub(super) fn on_sample(&mut self) {
        self.untimed = false;
    }
}

/// Timeouts in a row that make a silence: one or two are seen where much is lost.
pub(super) const TIMEOUTS: u32 = 3;

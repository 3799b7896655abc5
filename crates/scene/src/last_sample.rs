//! When a flow was last sampled, and what it had delivered by then.

use weir_units::Instant;

#[derive(Debug, Clone, Copy)]
pub(crate) struct LastSample {
    at: Instant,
    delivered: u64,
}

impl LastSample {
    /// The flow begins: nothing is delivered.
    pub(crate) fn new(start: Instant) -> Self {
        Self { at: start, delivered: 0 }
    }

    /// Whether time has passed since.
    pub(crate) fn is_before(&self, now: Instant) -> bool {
        self.at < now
    }

    /// Takes the next sample; returns the goodput since the last one, in Mbit/s.
    pub(crate) fn advance(&mut self, now: Instant, delivered: u64) -> f64 {
        let last = std::mem::replace(self, Self { at: now, delivered });
        let seconds = now.saturating_since(last.at).as_secs_f64();
        (delivered - last.delivered) as f64 * 8e-6 / seconds
    }
}

//! What the receiver has acknowledged of a file, and what of that may be lost.

use weir_units::{Duration, Instant};

use crate::disk::Death;

#[derive(Default)]
pub(super) struct Acknowledged {
    /// How much was, since when.
    pub(super) history: Vec<(Instant, u64)>,
    /// Bytes that cannot be lost any more.
    pub(super) safe: u64,
    /// What senders still believe to be there since the receiver died.
    pub(super) believed: u64,
}

impl Acknowledged {
    /// What must be there now.
    pub(super) fn now(&self) -> u64 {
        self.history.last().map_or(0, |(_, bytes)| *bytes).max(self.safe)
    }

    /// The receiver has died.
    pub(super) fn lose(&mut self, ran_until: Instant, death: Death) {
        self.believed = self.believed.max(self.now());
        let history = std::mem::take(&mut self.history);
        let noted = |(at, _): &&(Instant, u64)| ran_until.saturating_since(*at) >= NOTED_WITHIN;
        self.safe = match death {
            Death::Machine => 0,
            Death::Process => {
                history.iter().rev().find(noted).map_or(self.safe, |(_, bytes)| *bytes)
            }
        };
    }
}

/// The journal is written within this time, while the process runs.
const NOTED_WITHIN: Duration = Duration::from_millis(250);

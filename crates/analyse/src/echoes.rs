//! How long an end takes to answer, from the timestamps that it echoes (RFC 7323 §4), where no handshake was captured.

use std::collections::VecDeque;

/// The timestamps that travel to an end, and the least time until one of them came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoes {
    sent: VecDeque<(u32, u64)>,
    least: Option<u64>,
    samples: u64,
}

impl Echoes {
    /// A packet to the end has timestamp `value`.
    pub(crate) fn note_sent(&mut self, time: u64, value: u32) {
        if self.sent.back().is_some_and(|(last, _)| !is_before(*last, value)) {
            return;
        }
        if self.sent.len() >= MOST {
            self.sent.pop_front();
        }
        self.sent.push_back((value, time));
    }

    /// A packet of the end echoes timestamp `echo`. The first one gives a sample.
    pub(crate) fn note_echo(&mut self, time: u64, echo: u32) {
        while let Some((value, sent)) = self.sent.front().copied() {
            if is_before(echo, value) {
                return;
            }
            self.sent.pop_front();
            if value == echo {
                let sample = time.saturating_sub(sent);
                self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
                self.samples += 1;
            }
        }
    }

    /// The least time from a packet to its echo. Few of them may all have waited for an application.
    pub(crate) fn least(&self) -> Option<u64> {
        self.least.filter(|_| self.samples >= FEWEST)
    }
}

/// Whether timestamp `one` is before `other` (RFC 7323 §5.2).
pub(crate) fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// Echoes of which the least is taken.
const FEWEST: u64 = 8;
/// Timestamps that are remembered, of a millisecond each in most stacks.
const MOST: usize = 512;

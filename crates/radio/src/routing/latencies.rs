//! Mean of what the last discoveries took, as ns-2's AODV keeps it.

use weir_units::Duration;

/// What the last discoveries took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latencies {
    last: [Option<Duration>; 3],
    next: usize,
}

impl Latencies {
    pub(super) fn add(&mut self, latency: Duration) {
        self.last[self.next] = Some(latency.max(SHORTEST));
        self.next = (self.next + 1) % self.last.len();
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        let known = self.last.iter().flatten();
        let count = known.clone().count() as u64;
        (count > 0).then(|| known.copied().sum::<Duration>() / count)
    }
}

/// No exchange over a hop is faster: waits never shrink to nothing.
const SHORTEST: Duration = Duration::from_millis(1);

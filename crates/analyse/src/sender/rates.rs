//! How fast acknowledgements come: a histogram of rates, weighted by bytes.

/// Bytes that were acknowledged at each rate, in steps of a quarter of a power of two.
#[derive(Debug, Default)]
pub(crate) struct AckRates {
    bytes: Vec<u64>,
    total: u64,
    /// The last two times, and the bytes that were acknowledged at the last one.
    before: Option<u64>,
    last: Option<u64>,
    held: u64,
}

impl AckRates {
    /// `bytes` were acknowledged at `time`. What is acknowledged at the same time counts as one acknowledgement.
    pub(crate) fn record(&mut self, time: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if self.last.is_some_and(|last| time > last) {
            self.add();
            (self.before, self.last, self.held) = (self.last, Some(time), 0);
        }
        self.last.get_or_insert(time);
        self.held = self.held.saturating_add(bytes);
    }

    /// Adds what was acknowledged at the last time.
    fn add(&mut self) {
        let (Some(before), Some(last)) = (self.before, self.last) else { return };
        let rate = self.held as f64 * 1e9 / (last - before) as f64;
        let step = ((rate.log2() * STEPS).max(0.0) as usize).min(MOST_STEPS - 1);
        if self.bytes.len() <= step {
            self.bytes.resize(step + 1, 0);
        }
        self.bytes[step] = self.bytes[step].saturating_add(self.held);
        self.total = self.total.saturating_add(self.held);
    }

    /// The median over bytes, per second. Of what a bottleneck spaces it is the capacity, also where bursts have gaps.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut sum = 0;
        let step = self.bytes.iter().position(|bytes| {
            sum += bytes;
            sum * 2 >= self.total
        })?;
        (self.total > 0).then(|| ((step as f64 + 0.5) / STEPS).exp2())
    }
}

const STEPS: f64 = 4.0;
const MOST_STEPS: usize = 176;

//! How fast acknowledgements come: a histogram of rates, weighted by bytes.

/// Bytes that were acknowledged at each rate, in steps of a quarter of a power of two.
#[derive(Debug, Default)]
pub(crate) struct AckRates {
    bytes: Vec<u64>,
    total: u64,
    last: Option<u64>,
}

impl AckRates {
    /// `bytes` were acknowledged at `time`.
    pub(crate) fn record(&mut self, time: u64, bytes: u64) {
        if let Some(gap) = self.last.map(|last| time - last)
            && gap > 0
            && bytes > 0
        {
            let rate = bytes as f64 * 1e9 / gap as f64;
            let step = ((rate.log2() * STEPS).max(0.0) as usize).min(MOST_STEPS - 1);
            if self.bytes.len() <= step {
                self.bytes.resize(step + 1, 0);
            }
            self.bytes[step] += bytes;
            self.total += bytes;
        }
        if bytes > 0 {
            self.last = Some(time);
        }
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

//! A flow's requests: the latency of each in one distribution, and the first of them as rows.

use weir_trace::{FlowRow, Histogram, RequestRow};
use weir_units::{Duration, Instant};

/// One request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Which request of the flow, counted from 0.
    pub(crate) number: u64,
    /// When the application made it.
    pub(crate) asked_at: Instant,
    /// From then until its answer was complete.
    pub(crate) latency: Duration,
}

/// What is written down about the requests that were answered while the flow was measured.
#[derive(Debug)]
pub(crate) struct RequestBook {
    flow: u32,
    latencies: Histogram,
    rows: Vec<RequestRow>,
    /// Maximum number of rows kept; the distribution includes every request.
    max_rows: usize,
}

impl RequestBook {
    pub(crate) fn new(flow: u32, max_rows: usize) -> Self {
        Self { flow, latencies: Histogram::new(), rows: Vec::new(), max_rows }
    }

    pub(crate) fn record(&mut self, answer: &Answer) {
        self.latencies.record(answer.latency);
        if self.rows.len() < self.max_rows {
            self.rows.push(RequestRow {
                flow: self.flow,
                request: answer.number,
                t_s: answer.asked_at.as_secs_f64(),
                latency_ms: answer.latency.as_millis_f64(),
            });
        }
    }

    /// Forgets the warm-up.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.flow, self.max_rows);
    }

    /// Fills in the columns about requests, of which `unanswered` were left at the flow's end.
    pub(crate) fn fill(&self, row: &mut FlowRow, unanswered: u64) {
        row.requests_kept = Some(self.rows.len() as u64);
        row.set_requests(&self.latencies, unanswered);
    }

    pub(crate) fn take_rows(&mut self) -> Vec<RequestRow> {
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_counts_and_the_first_are_kept() {
        let mut book = RequestBook::new(3, 2);
        for number in 0..20 {
            let latency = Duration::from_millis(number + 1);
            book.record(&Answer { number, asked_at: Instant::ZERO, latency });
        }
        let mut row = FlowRow::default();
        book.fill(&mut row, 1);
        assert_eq!(
            (row.requests, row.requests_kept, row.requests_unanswered),
            (Some(20), Some(2), Some(1))
        );
        assert_eq!((row.request_latency_ms_p50, row.request_latency_ms_p90), (Some(10.0), None));
        assert_eq!(
            (row.request_latency_ms_mean, row.request_latency_ms_max),
            (Some(10.5), Some(20.0))
        );
        let rows = book.take_rows();
        assert_eq!(
            rows.iter().map(|row| (row.flow, row.request)).collect::<Vec<_>>(),
            [(3, 0), (3, 1)]
        );
        book.restart();
        book.fill(&mut row, 0);
        assert_eq!((row.requests, row.request_latency_ms_max), (Some(0), None));
    }
}

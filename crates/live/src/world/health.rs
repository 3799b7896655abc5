//! How well a run in real time kept to the time.

use rustix::time::{ClockId, clock_gettime};
use weir_trace::{Histogram, SummaryRow};
use weir_units::{Duration, Instant};

/// Counts what real time adds to a run.
#[derive(Debug)]
pub(super) struct Health {
    /// By how much packets left their links, and ends were woken, after they should have.
    lateness: Histogram,
    on_time: u64,
    /// Datagrams that were sent from socket to socket, and those that arrived.
    pub(super) sent: u64,
    pub(super) received: u64,
    cpu_before: Duration,
}

/// Later than this is not on time: a tick of the kernel's own timers, below which its TCP does not
/// tell times apart either.
const ON_TIME: Duration = Duration::from_millis(1);

impl Health {
    pub(super) fn new() -> Self {
        Self {
            lateness: Histogram::new(),
            on_time: 0,
            sent: 0,
            received: 0,
            cpu_before: thread_cpu_time(),
        }
    }

    /// Something was done at `now` that was due at `due`.
    pub(super) fn record(&mut self, due: Instant, now: Instant) {
        let late = now.saturating_since(due);
        self.lateness.record(late);
        self.on_time += u64::from(late <= ON_TIME);
    }

    /// Datagrams that were sent and have not arrived.
    pub(super) fn under_way(&self) -> u64 {
        self.sent - self.received
    }

    /// Fills in the columns about health, after `real` time.
    pub(super) fn fill(&self, row: &mut SummaryRow, real: Duration) {
        let late = self.lateness.spread();
        let cpu = thread_cpu_time().saturating_sub(self.cpu_before);
        let events = self.lateness.count();
        let on_time = (events > 0).then(|| self.on_time as f64 / events as f64);
        row.late_ms_p50 = late.p50_ms;
        row.late_ms_p99 = late.p99_ms;
        row.late_ms_max = late.max_ms;
        row.on_time_ratio = on_time;
        row.unasked_drops = Some(self.under_way());
        row.cpu_ratio = (!real.is_zero()).then(|| cpu.as_secs_f64() / real.as_secs_f64());
        row.health = Some(verdict(on_time, late.max_ms, self.under_way()));
    }
}

/// `good`, or what was not.
fn verdict(on_time: Option<f64>, worst_ms: Option<f64>, lost: u64) -> String {
    const ENOUGH: f64 = 0.99;
    let mut said = Vec::new();
    if let Some(ratio) = on_time.filter(|ratio| *ratio < ENOUGH) {
        said.push(format!(
            "could not keep up: {:.1} % was more than {ON_TIME} late, {:.1} ms at worst",
            (1.0 - ratio) * 100.0,
            worst_ms.unwrap_or_default(),
        ));
    }
    if lost > 0 {
        said.push(format!("the machine lost {lost} datagrams that no link dropped"));
    }
    if said.is_empty() { "good".to_owned() } else { said.join("; ") }
}

/// What this thread has used of the processor.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_secs(time.tv_sec as u64) + Duration::from_nanos(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fell_behind_or_lost_packets_says_so() {
        assert_eq!(verdict(Some(0.995), Some(0.9), 0), "good");
        assert_eq!(verdict(None, None, 0), "good", "nothing happened");
        assert_eq!(
            verdict(Some(0.9), Some(12.3), 4),
            "could not keep up: 10.0 % was more than 1ms late, 12.3 ms at worst; \
             the machine lost 4 datagrams that no link dropped"
        );
    }

    #[test]
    fn lateness_counts_from_when_something_was_due() {
        let mut health = Health::new();
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        health.record(at(1_000), at(1_100));
        health.record(at(1_000), at(4_000));
        let mut row = SummaryRow::default();
        health.fill(&mut row, Duration::from_secs(1));
        assert_eq!((row.late_ms_max, row.on_time_ratio), (Some(3.0), Some(0.5)));
        assert!(row.health.expect("a verdict").starts_with("could not keep up: 50.0 %"));
    }
}

//! How well a run in real time kept to the time.

use rustix::time::{ClockId, clock_gettime};
use weir_trace::{Histogram, Spread, SummaryRow};
use weir_units::{Duration, Instant};

/// Counts what real time adds to a run.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// By how much packets left their links, and ends were woken, after they should have.
    lateness: Histogram,
    on_time: u64,
    /// What the machine lost although no link dropped it.
    unasked_drops: u64,
    /// What the thread at work had used of the processor when it began.
    cpu_before: Option<Duration>,
}

/// Later than this is not on time: a tick of the kernel's own timers, below which its TCP does not
/// tell times apart either.
const ON_TIME: Duration = Duration::from_millis(1);

impl Health {
    /// The calling thread begins to work; only the first time counts.
    pub fn begin(&mut self) {
        self.cpu_before.get_or_insert_with(thread_cpu_time);
    }

    /// Something was done at `now` that was due at `due`.
    pub fn record(&mut self, due: Instant, now: Instant) {
        let late = now.saturating_since(due);
        self.lateness.record(late);
        self.on_time += u64::from(late <= ON_TIME);
    }

    /// The same, with the number of packets lost that no link dropped.
    #[must_use]
    pub fn having_lost(&self, unasked_drops: u64) -> Self {
        Self { unasked_drops, ..self.clone() }
    }

    /// Packets that were lost although no link dropped them.
    pub fn unasked_drops(&self) -> u64 {
        self.unasked_drops
    }

    /// How late things were done.
    pub fn lateness(&self) -> Spread {
        self.lateness.spread()
    }

    /// `good`, or what was not.
    pub fn verdict(&self) -> String {
        verdict(self.on_time_ratio(), self.lateness().max_ms, self.unasked_drops)
    }

    /// Fills in the columns about health, after `real` time. For the thread that did the work.
    pub fn fill(&self, row: &mut SummaryRow, real: Duration) {
        let late = self.lateness();
        let cpu = self.cpu_before.map(|before| thread_cpu_time().saturating_sub(before));
        row.late_ms_p50 = late.p50_ms;
        row.late_ms_p99 = late.p99_ms;
        row.late_ms_max = late.max_ms;
        row.on_time_ratio = self.on_time_ratio();
        row.unasked_drops = Some(self.unasked_drops);
        row.cpu_ratio =
            cpu.filter(|_| !real.is_zero()).map(|cpu| cpu.as_secs_f64() / real.as_secs_f64());
        row.health = Some(self.verdict());
    }

    fn on_time_ratio(&self) -> Option<f64> {
        let events = self.lateness.count();
        (events > 0).then(|| self.on_time as f64 / events as f64)
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
        said.push(format!("the machine lost {lost} packets that no link dropped"));
    }
    if said.is_empty() { "good".to_owned() } else { said.join("; ") }
}

/// What this thread has used of the processor.
pub fn thread_cpu_time() -> Duration {
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
             the machine lost 4 packets that no link dropped"
        );
    }

    #[test]
    fn lateness_counts_from_when_something_was_due() {
        let mut health = Health::default();
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        health.record(at(1_000), at(1_100));
        health.record(at(1_000), at(4_000));
        let mut row = SummaryRow::default();
        health.fill(&mut row, Duration::from_secs(1));
        assert_eq!((row.late_ms_max, row.on_time_ratio), (Some(3.0), Some(0.5)));
        assert!(row.health.expect("a verdict").starts_with("could not keep up: 50.0 %"));
    }
}

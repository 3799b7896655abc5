//! Whether a run over the kernel's TCP is to be believed.

use weir_scene::{FlowSpec, Outcome, RunSpec, Workload};
use weir_trace::{FlowRow, SummaryRow};
use weir_units::Duration;

use super::check::kernel_config;
use super::programs::programs_of;
use super::senders::{LATE, Lateness};
use weir_links::health::Health;

/// How hard the machine had to work.
#[derive(Debug)]
pub(super) struct HostLoad {
    /// The router's.
    pub(super) health: Health,
    /// How punctual the senders' thread was.
    pub(super) lateness: Lateness,
    /// Processor time of the router, the senders and the receivers.
    pub(super) cpu: [Duration; 3],
}

const THREADS: [&str; 3] = ["router's", "senders'", "receivers'"];

impl HostLoad {
    /// Fills in the columns about health, after `real` time.
    pub(super) fn fill(self, outcome: &mut Outcome, spec: &RunSpec, real: Duration) {
        self.health.fill(&mut outcome.summary, real);
        let shares = self.cpu.map(|cpu| cpu.as_secs_f64() / real.as_secs_f64().max(1e-9));
        let busiest = (0..3).max_by(|a, b| shares[*a].total_cmp(&shares[*b])).unwrap_or(0);
        outcome.summary.cpu_ratio = Some(shares[busiest]);
        let mut said: Vec<String> = Vec::new();
        let Lateness { done, late } = self.lateness;
        if late as f64 > done as f64 * TOO_OFTEN {
            let percent = late as f64 / done as f64 * 100.0;
            said.push(format!("{percent:.1} % of what senders do was more than {LATE} late"));
        }
        if shares[busiest] >= NO_TIME_LEFT {
            said.push(format!(
                "the {} thread had no time left ({:.0} % of a core)",
                THREADS[busiest],
                shares[busiest] * 100.0
            ));
        }
        said.extend(limited_by_buffers(outcome, spec));
        let strained = !said.is_empty() || outcome.summary.health.as_deref() != Some("good");
        said.extend(unachieved(outcome, spec, strained));
        add(&mut outcome.summary, said);
    }
}

/// Adds to the verdict what was not good.
pub(super) fn add(summary: &mut SummaryRow, said: Vec<String>) {
    if said.is_empty() {
        return;
    }
    let before = summary.health.take().filter(|verdict| verdict != "good");
    summary.health = Some(before.into_iter().chain(said).collect::<Vec<_>>().join("; "));
}

/// A window that the scenario does not ask for is the machine's affair.
pub(super) fn limited_by_buffers(outcome: &Outcome, spec: &RunSpec) -> Option<String> {
    let held_back = |(flow, row): (&FlowSpec, &FlowRow)| {
        let default = weir_transport::Config::default().recv_buffer;
        kernel_config(flow).filter(|config| config.recv_buffer == default)?;
        let share = row.time_rwnd_limited_s / (row.end_s? - row.start_s);
        (share > RARELY).then(|| {
            format!(
                "the receiver's buffer held flow '{}' back for {:.0} % of its time",
                flow.name,
                share * 100.0
            )
        })
    };
    spec.flows.iter().zip(&outcome.flows).find_map(held_back)
}

/// For a link that a flow tried to fill, the share achieved: if the machine was `strained`, or
/// windows let much more through than crossed the link.
fn unachieved(outcome: &Outcome, spec: &RunSpec, strained: bool) -> Option<String> {
    let index = spec.links.iter().position(|link| link.monitored)?;
    let link = &outcome.links[index];
    let (capacity, used) = (link.capacity_mbps?, link.utilisation?);
    let fills = |flow: &FlowSpec| {
        programs_of(flow).is_none()
            && flow.workload == Workload::Bulk
            && flow.stop.is_none()
            && flow.route_forward.contains(&index)
    };
    let filling = (0u32..).zip(&spec.flows).filter(|(_, flow)| fills(flow));
    let allowed: Vec<f64> =
        filling.filter_map(|(flow, _)| allowed_mbps(outcome, flow, capacity)).collect();
    if used >= FULL || allowed.is_empty() {
        return None;
    }
    let (carried, allowed) = (used * capacity, allowed.iter().sum::<f64>().min(capacity));
    (strained || allowed > carried * MUCH_MORE).then(|| {
        format!(
            "link '{}' carried {carried:.1} of {capacity:.1} Mbit/s, where windows allowed {allowed:.1}",
            link.name
        )
    })
}

/// What a flow's windows let through, a round trip at a time, on average over its samples.
fn allowed_mbps(outcome: &Outcome, flow: u32, most: f64) -> Option<f64> {
    let samples = outcome.samples.iter().filter(|row| row.flow == flow);
    let rates = samples.filter_map(|row| Some(row.cwnd_bytes as f64 * 8e-3 / row.srtt_ms?));
    let (sum, count) = rates.fold((0.0, 0), |(sum, n), rate| (sum + rate.min(most), n + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// A share of what senders do that must not be late.
pub(super) const TOO_OFTEN: f64 = 0.05;
/// Of a core.
pub(super) const NO_TIME_LEFT: f64 = 0.9;
/// A share of time that is none to speak of.
const RARELY: f64 = 0.1;
/// By this factor a sender that is not held back falls short of its window only on a machine that
/// cannot carry it. BBR's window is twice what it needs.
const MUCH_MORE: f64 = 3.0;
/// Utilisation from which a link counts as full.
const FULL: f64 = 0.9;

#[cfg(test)]
mod tests {
    use weir_net::LinkConfig;
    use weir_scene::{Ends, LinkSpec, MeasureSpec, TransportSpec};
    use weir_trace::{LinkRow, SampleRow};
    use weir_units::{Instant, Rate};

    use super::*;

    /// One bulk flow over one link.
    fn spec() -> RunSpec {
        let link = LinkSpec {
            name: "bottleneck".to_owned(),
            config: LinkConfig::new(Rate::from_mbit(1_000), Duration::ZERO),
            monitored: true,
            one_at_a_time: false,
        };
        let flow = FlowSpec {
            name: "flow0".to_owned(),
            route_forward: vec![0],
            route_reverse: vec![0],
            transport: TransportSpec::Reliable(Box::default()),
            workload: Workload::Bulk,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        RunSpec {
            radio: None,
            fabric: None,
            links: vec![link],
            flows: vec![flow],
            measure: MeasureSpec::default(),
        }
    }

    #[test]
    fn a_link_that_windows_would_have_filled_was_not_achieved() {
        let (spec, mut outcome) = (spec(), Outcome::default());
        outcome.links.push(LinkRow {
            name: "bottleneck".to_owned(),
            capacity_mbps: Some(1_000.0),
            utilisation: Some(0.1),
            ..LinkRow::default()
        });
        let sample =
            |cwnd_bytes| SampleRow { cwnd_bytes, srtt_ms: Some(10.0), ..SampleRow::default() };
        assert_eq!(unachieved(&outcome, &spec, true), None, "nothing is known of windows");
        // 125 kB in each 10 ms are 100 Mbit/s: the window is what bounds it.
        outcome.samples = vec![sample(125_000)];
        assert_eq!(unachieved(&outcome, &spec, false), None);
        let said = "link 'bottleneck' carried 100.0 of 1000.0 Mbit/s, where windows allowed ";
        assert_eq!(unachieved(&outcome, &spec, true), Some(format!("{said}100.0")));
        outcome.samples = vec![sample(1_000_000), sample(10_000_000)];
        assert_eq!(unachieved(&outcome, &spec, false), Some(format!("{said}900.0")));
        outcome.links[0].utilisation = Some(0.95);
        assert_eq!(unachieved(&outcome, &spec, true), None, "it is full");
    }

    #[test]
    fn a_verdict_lists_all_that_was_not_good() {
        let mut summary = SummaryRow { health: Some("good".to_owned()), ..SummaryRow::default() };
        add(&mut summary, Vec::new());
        assert_eq!(summary.health.as_deref(), Some("good"));
        add(&mut summary, vec!["slow".to_owned()]);
        add(&mut summary, vec!["late".to_owned(), "lossy".to_owned()]);
        assert_eq!(summary.health.as_deref(), Some("slow; late; lossy"));
    }
}

//! Measures the simulator on fixed dumbbells over three hops: `cargo run --release --example bench`.
//!
//! Arguments: the stack, one case by name, how long it simulates (`500ms`), for a profiler that takes long,
//! and how many runs, with seeds from 1, to compare many flows with as many runs of one. Prints a line per
//! case: simulated seconds, data packets and events, each per second of CPU time, use of the link in
//! the last run and retransmissions, and the peak memory of the process so far.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::fs;
use std::sync::Arc;

use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{
    Ends, FlowSizes, FlowSpec, MeasureSpec, Outcome, Pattern, RunSpec, SizeDistribution,
    TransportSpec, Workload,
};
use weir_sim::run;
use weir_transport::Config;
use weir_units::{BufferSize, Duration, Instant, Rate};

struct Case {
    name: &'static str,
    flows: usize,
    mbit: u64,
    rtt: Duration,
    duration: Duration,
    /// Number of connections that come and go, instead of endless ones.
    arrivals: Option<u64>,
}

const fn case(name: &'static str, flows: usize, mbit: u64, rtt_ms: u64, secs: u64) -> Case {
    let (rtt, duration) = (Duration::from_millis(rtt_ms), Duration::from_secs(secs));
    Case { name, flows, mbit, rtt, duration, arrivals: None }
}

/// Connections with a tenth of web-search's sizes at a load of 0.6, for as long as they take.
const fn web(name: &'static str, arrivals: u64, mbit: u64, rtt_ms: u64) -> Case {
    Case { arrivals: Some(arrivals), ..case(name, 1, mbit, rtt_ms, 1_000_000) }
}

/// Bytes, and the share of connections that are at most so large.
const SIZES: &[(u64, f64)] = &[
    (0, 0.0),
    (1_000, 0.15),
    (2_000, 0.2),
    (3_000, 0.3),
    (5_000, 0.4),
    (8_000, 0.53),
    (20_000, 0.6),
    (100_000, 0.7),
    (200_000, 0.8),
    (500_000, 0.9),
    (1_000_000, 0.97),
    (3_000_000, 1.0),
];

/// The three cases that simulators are compared on, and flows of 10 Mbit/s each in growing numbers,
/// for what a packet costs; and connections that come and go.
const CASES: &[Case] = &[
    case("1x100m", 1, 100, 40, 60),
    case("16x1g", 16, 1_000, 10, 20),
    case("2x10g", 2, 10_000, 10, 5),
    case("1x10m", 1, 10, 40, 600),
    case("10x10m", 10, 100, 40, 200),
    case("100x10m", 100, 1_000, 40, 20),
    case("1000x10m", 1_000, 10_000, 40, 5),
    case("10000x10m", 10_000, 100_000, 40, 2),
    web("web-10k", 10_000, 1_000, 10),
    web("web-100k", 100_000, 1_000, 10),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let stack = arguments.next().unwrap_or_else(|| "sack/reno".to_owned());
    let only = arguments.next();
    let duration = arguments.next().map(|text| text.parse::<Duration>().expect("a time: 500ms"));
    let runs = arguments.next().map_or(1, |text| text.parse::<u64>().expect("a number of runs"));
    println!("case       stack        sim-s/s  Mpkt/s  Mev/s  util  retx    peak-MiB");
    for case in CASES.iter().filter(|case| only.as_deref().is_none_or(|only| case.name == only)) {
        let mut spec = case.spec(&stack);
        spec.measure.duration = duration.unwrap_or(spec.measure.duration);
        let before = cpu_seconds();
        let outcomes = (1..=runs).map(|seed| run(&spec, seed).expect("the case runs"));
        let counts = outcomes.map(Counts::of).reduce(Counts::plus).expect("at least one run");
        report(case, &stack, &counts, cpu_seconds() - before);
    }
}

impl Case {
    fn spec(&self, stack: &str) -> RunSpec {
        let rate = Rate::from_mbit(self.mbit);
        let link = LinkConfig::new(rate, self.rtt / 2);
        let limit = Limit::resolve(BufferSize::Bdp(1_000), rate, self.rtt);
        let dumbbell = Dumbbell {
            forward: link.clone().with_limit(limit),
            reverse: link,
            access: Access::Rate(Rate::from_mbit(10 * self.mbit)),
            rtts: vec![self.rtt; self.flows],
        };
        let topology = dumbbell.build().expect("the topology is sound");
        let stack = stack.parse().expect("a stack");
        let config = Config { stack, ..Config::default() };
        let flows = topology.routes.into_iter().enumerate().map(|(index, route)| FlowSpec {
            name: format!("flow {index}"),
            route_forward: route.forward,
            route_reverse: route.reverse,
            transport: TransportSpec::Reliable(Box::new(config.clone())),
            workload: self.workload(),
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::from_millis(100),
            ends: Ends::Kernel,
        });
        RunSpec {
            radio: None,
            fabric: None,
            flows: flows.collect(),
            links: topology.links,
            measure: MeasureSpec { duration: self.duration, ..MeasureSpec::default() },
        }
    }
}

impl Case {
    fn workload(&self) -> Workload {
        let Some(count) = self.arrivals else { return Workload::Bulk };
        let sizes = SizeDistribution::new(SIZES).expect("a distribution");
        let wire = sizes.mean() + 52.0 * sizes.mean_segments(1_448);
        let mean_gap = Duration::from_nanos((wire * 8e3 / (0.6 * self.mbit as f64)) as u64);
        Workload::FlowSizes(FlowSizes {
            sizes: Arc::new(sizes),
            mean_gap,
            count: Some(count),
            pattern: Pattern::One,
        })
    }
}

/// What runs did, all together.
struct Counts {
    sim_s: f64,
    packets: u64,
    events: u64,
    utilisation: Option<f64>,
    retransmits: u64,
    sent: u64,
}

impl Counts {
    fn of(outcome: Outcome) -> Self {
        let Outcome { summary, flows, .. } = outcome;
        Self {
            sim_s: summary.sim_s,
            packets: summary.data_packets,
            events: summary.events,
            utilisation: summary.utilisation,
            retransmits: flows.iter().map(|flow| flow.retransmits).sum(),
            sent: flows.iter().map(|flow| flow.sent_segments).sum(),
        }
    }

    fn plus(self, next: Self) -> Self {
        Self {
            sim_s: self.sim_s + next.sim_s,
            packets: self.packets + next.packets,
            events: self.events + next.events,
            utilisation: next.utilisation,
            retransmits: self.retransmits + next.retransmits,
            sent: self.sent + next.sent,
        }
    }
}

fn report(case: &Case, stack: &str, counts: &Counts, cpu: f64) {
    println!(
        "{:10} {stack:12} {:7.2} {:7.3} {:6.2} {:5.3} {:.5} {:9.1}",
        case.name,
        counts.sim_s / cpu,
        counts.packets as f64 / cpu / 1e6,
        counts.events as f64 / cpu / 1e6,
        counts.utilisation.unwrap_or_default(),
        counts.retransmits as f64 / counts.sent as f64,
        peak_mib(),
    );
}

/// CPU time of this process, from the kernel's count of its clock ticks.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = stat.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
}

fn peak_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(f64::NAN) / 1024.0
}

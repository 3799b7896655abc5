//! Measures the simulator on fixed dumbbells over three hops: `cargo run --release --example bench`.
//!
//! Prints a line per case: simulated seconds, data packets and events, each per second of CPU time,
//! and the peak memory of the process so far.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::fs;

use weir_net::{Limit, LinkConfig};
use weir_sim::topology::{Access, Dumbbell};
use weir_sim::{FlowSpec, MeasureSpec, Outcome, SimSpec, TransportSpec, Workload, run};
use weir_transport::Config;
use weir_units::{BufferSize, Duration, Instant, Rate};

struct Case {
    name: &'static str,
    flows: usize,
    mbit: u64,
    rtt: Duration,
    duration: Duration,
}

const CASES: &[Case] = &[
    Case {
        name: "1x100m",
        flows: 1,
        mbit: 100,
        rtt: Duration::from_millis(40),
        duration: Duration::from_secs(60),
    },
    Case {
        name: "16x1g",
        flows: 16,
        mbit: 1_000,
        rtt: Duration::from_millis(10),
        duration: Duration::from_secs(20),
    },
    Case {
        name: "2x10g",
        flows: 2,
        mbit: 10_000,
        rtt: Duration::from_millis(10),
        duration: Duration::from_secs(5),
    },
    Case {
        name: "1000x1g",
        flows: 1_000,
        mbit: 1_000,
        rtt: Duration::from_millis(10),
        duration: Duration::from_secs(10),
    },
    Case {
        name: "10000x1g",
        flows: 10_000,
        mbit: 1_000,
        rtt: Duration::from_millis(10),
        duration: Duration::from_secs(10),
    },
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let stack = arguments.next().unwrap_or_else(|| "sack/reno".to_owned());
    let only = arguments.next();
    println!("case       stack        sim-s/s  Mpkt/s  Mev/s  util  retx    peak-MiB");
    for case in CASES.iter().filter(|case| only.as_deref().is_none_or(|only| case.name == only)) {
        let spec = case.spec(&stack);
        let before = cpu_seconds();
        let outcome = run(&spec, 1).expect("the case runs");
        report(case, &stack, &outcome, cpu_seconds() - before);
    }
}

impl Case {
    fn spec(&self, stack: &str) -> SimSpec {
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
            workload: Workload::Bulk,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::from_millis(100),
        });
        SimSpec {
            flows: flows.collect(),
            links: topology.links,
            measure: MeasureSpec { duration: self.duration, ..MeasureSpec::default() },
        }
    }
}

fn report(case: &Case, stack: &str, outcome: &Outcome, cpu: f64) {
    let summary = &outcome.summary;
    let retransmits: u64 = outcome.flows.iter().map(|flow| flow.retransmits).sum();
    let sent: u64 = outcome.flows.iter().map(|flow| flow.sent_segments).sum();
    println!(
        "{:10} {stack:12} {:7.2} {:7.3} {:6.2} {:5.3} {:.5} {:9.1}",
        case.name,
        summary.sim_s / cpu,
        summary.data_packets as f64 / cpu / 1e6,
        summary.events as f64 / cpu / 1e6,
        summary.utilisation.unwrap_or_default(),
        retransmits as f64 / sent as f64,
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

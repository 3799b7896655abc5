//! Measures the simulator on fixed dumbbells over three hops: `cargo run --release --example bench`.
//!
//! Arguments: the stack, one case by name, how long it simulates (`500ms`), for a profiler that takes long,
//! and how many runs, with seeds from 1, to compare many flows with as many runs of one. Prints a line per
//! case: simulated seconds, data packets and events, each per second of CPU time, use of the link in
//! the last run and retransmissions, and the peak memory of the process so far.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

mod cases;

use std::fs;

use weir_scene::Outcome;
use weir_sim::run;
use weir_units::Duration;

use self::cases::{CASES, Case};

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

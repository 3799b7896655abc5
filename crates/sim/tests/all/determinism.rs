//! The same description and seed give the same outcome, whatever else differs.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{Flow, Path, over, secs};
use weir_net::{
    DropRecord, GilbertElliott, Impairments, Jitter, LinkConfig, Order, Reorder, Spread,
};
use weir_scene::{
    Direction, LinkCrossing, LinkEnd, OnOff, Outcome, PeriodSpread, Resent, RunSpec, Workload,
};
use weir_sim::{PacketTap, Progress, QueueKind, RunOptions, Simulation, run, run_with};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

/// Every random impairment at once.
fn random() -> LinkConfig {
    let impairments = Impairments {
        loss: Ratio::from_percent(1),
        burst_loss: Some(GilbertElliott {
            good_to_bad: Ratio::from_billionths(2_000_000).unwrap(),
            bad_to_good: Ratio::from_percent(30),
            loss_in_good: Ratio::ZERO,
            loss_in_bad: Ratio::from_percent(50),
        }),
        corrupt: Ratio::from_percent(1),
        duplicate: Ratio::from_percent(1),
        reorder: Some(Reorder {
            probability: Ratio::from_percent(2),
            extra_delay: Duration::from_millis(3),
        }),
        jitter: Some(Jitter {
            spread: Spread::Normal(Duration::from_millis(1)),
            order: Order::Free,
        }),
        ..Impairments::default()
    };
    LinkConfig { impairments, ..LinkConfig::default() }
}

fn mixed() -> RunSpec {
    let gap = Duration::from_millis(5);
    let (request, response) = (Bytes(10_000), Bytes(1));
    let rate = Workload::Rate { rate: Rate::from_mbit(1), size: Bytes(700) };
    let mean_gap = Duration::from_millis(20);
    let poisson = Workload::PoissonRequest { request, response, mean_gap };
    let periods = Workload::OnOff(OnOff {
        on: gap,
        off: gap,
        spread: PeriodSpread::Exponential,
        rate: Some(Rate::from_mbit(2)),
        size: Bytes(500),
    });
    let flows = [
        Flow::bulk("rack/cubic").jittered(100),
        Flow::bulk("sack/reno").starting(1).stopping(7).jittered(100),
        Flow::file("go-back-n(8)/none", 300_000),
        Flow::new(over("rack/bbr"), Workload::Request { request, response, gap }),
        Flow::udp(rate.clone()).jittered(10),
        Flow::new(over("newreno/vegas"), rate).starting(2),
        Flow::new(over("rack/reno"), poisson),
        Flow::udp(periods),
    ];
    let path = Path { forward: random(), reverse: random(), ..Path::default() };
    let mut spec = path.spec(&flows, secs(10));
    spec.measure.max_events = 10_000;
    spec.measure.max_acks = 1_000;
    spec
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_another_gives_another() {
    let spec = mixed();
    let first = run(&spec, 7).unwrap();
    assert_eq!(first, run(&spec, 7).unwrap());
    assert_ne!(first.summary.trace_hash, run(&spec, 8).unwrap().summary.trace_hash);
}

/// Counts what a run reports.
#[derive(Default)]
struct Counter {
    links: usize,
    /// Links and stamps of what entered.
    entered: BTreeSet<(usize, u32)>,
    dropped: usize,
    resent: u64,
}

impl PacketTap for Counter {
    fn links(&self) -> Vec<usize> {
        (0..self.links).collect()
    }

    fn record(&mut self, index: usize, seen: &LinkCrossing<()>) {
        if seen.end == LinkEnd::Entry {
            assert!(self.entered.insert((index, seen.packet.stamp)));
        }
    }

    fn dropped(&mut self, index: usize, drop: &DropRecord) {
        assert!(self.entered.contains(&(index, drop.stamp)), "{drop:?} has not entered");
        self.dropped += 1;
    }

    fn resent(&mut self, resent: &Resent) {
        self.resent += u64::from(resent.direction == Direction::Forward);
    }
}

#[test]
fn a_run_in_steps_is_the_same_run_and_reports_every_drop_and_retransmission() {
    let mut spec = mixed();
    spec.measure.max_events = 1_000_000;
    let whole = run(&spec, 7).unwrap();
    let mut counter = Counter { links: spec.links.len(), ..Counter::default() };
    let mut simulation = Simulation::new(Arc::new(spec), 7).unwrap();
    simulation.watch(&counter);
    let mut until = Instant::ZERO;
    loop {
        match simulation.advance(until, 777, &mut counter).unwrap() {
            Progress::Ended => break,
            Progress::Reached => until += Duration::from_millis(83),
            Progress::Interrupted => {}
        }
        assert!(simulation.now() <= until);
    }
    assert_eq!(simulation.trace_hash(), whole.summary.trace_hash);
    assert_eq!(simulation.samples(), whole.samples);
    assert_eq!(simulation.queues(), whole.queues);
    assert_eq!(simulation.events(), whole.events);
    let dropped = whole.events.iter().filter(|row| row.kind == "dropped").count();
    let resent: u64 = whole.flows.iter().map(|row| row.retransmits).sum();
    assert!(dropped > 0 && resent > 0);
    assert_eq!(counter.dropped, dropped);
    // A flow's counts end when its last byte has arrived; what it sends again afterwards is not among them.
    assert!((resent..=resent + 10).contains(&counter.resent), "{} of {resent}", counter.resent);
}

#[test]
fn both_event_queues_give_the_same_outcome() {
    let spec = mixed();
    for seed in 1..=5 {
        let outcome = |queue: QueueKind| run_with(&spec, seed, &RunOptions { queue }).unwrap();
        assert_eq!(outcome(QueueKind::Heap), outcome(QueueKind::Wheel), "seed {seed}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it is about runs in threads")]
fn threads_do_not_matter() {
    let spec = mixed();
    let alone: Vec<Outcome> = (1..=4).map(|seed| run(&spec, seed).unwrap()).collect();
    let together: Vec<Outcome> = std::thread::scope(|scope| {
        let spec = &spec;
        let threads: Vec<_> =
            (1..=4).map(|seed| scope.spawn(move || run(spec, seed).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone, together);
}

#[test]
fn another_flow_elsewhere_shifts_no_random_stream() {
    let path = Path { forward: random(), ..Path::default() };
    let few = path.spec(&[Flow::bulk("rack/cubic").jittered(100)], secs(5));
    let mut many = few.clone();
    // A second bottleneck with a flow of its own, in front of the first in the description.
    let mut other = path.spec(&[Flow::bulk("rack/reno").jittered(100)], secs(5));
    for link in &mut other.links {
        link.name.push_str(" elsewhere");
    }
    other.flows[0].name = "elsewhere".into();
    let shift = other.links.len();
    many.links.splice(0..0, other.links);
    let flow = &mut many.flows[0];
    flow.route_forward.iter_mut().chain(&mut flow.route_reverse).for_each(|link| *link += shift);
    many.flows.insert(0, other.flows.remove(0));
    let alone = run(&few, 3).unwrap();
    let among_many = run(&many, 3).unwrap();
    let mut row = among_many.flows[1].clone();
    row.flow = 0;
    assert_eq!(row, alone.flows[0]);
    assert!(among_many.flows[0].delivered_bytes > 0);
}

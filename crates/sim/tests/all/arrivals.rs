//! Flows of many connections: their load, their pairing, their ends.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::sync::Arc;

use crate::common::{Flow, Path, over, secs};
use weir_net::{Impairments, LinkConfig};
use weir_scene::{FlowSizes, Outcome, Pattern, RunSpec, SizeDistribution, Workload};
use weir_sim::{QueueKind, RunOptions, run, run_with};
use weir_units::{BufferSize, Duration, Rate, Ratio};

/// The shape of the web-search distribution, a hundred times smaller: a mean of 17 KB.
const POINTS: &[(u64, f64)] = &[
    (0, 0.0),
    (100, 0.15),
    (500, 0.4),
    (800, 0.53),
    (2_000, 0.6),
    (10_000, 0.7),
    (20_000, 0.8),
    (50_000, 0.9),
    (100_000, 0.97),
    (300_000, 1.0),
];

fn sizes() -> SizeDistribution {
    SizeDistribution::new(POINTS).unwrap()
}

/// Connections every `mean_gap` on average over 100 Mbit/s and 10 ms.
fn web(stack: &str, mean_gap: Duration, count: Option<u64>, duration: Duration) -> RunSpec {
    let workload = Workload::FlowSizes(FlowSizes {
        sizes: Arc::new(sizes()),
        mean_gap,
        count,
        pattern: Pattern::One,
    });
    path().spec(&[Flow::new(over(stack), workload)], duration)
}

fn path() -> Path {
    Path { rate: Rate::from_mbit(100), rtt: Duration::from_millis(10), ..Path::default() }
}

/// 17 KB and their headers every 2.4 ms are a load of 0.6 of 100 Mbit/s.
const GAP: Duration = Duration::from_micros(2_400);

/// When each connection came, and how large it was.
fn offered(outcome: &Outcome) -> Vec<(f64, u64)> {
    outcome.arrivals.iter().map(|row| (row.start_s, row.size_bytes)).collect()
}

#[test]
fn every_connection_delivers_its_size_and_the_flow_is_their_sum() {
    let outcome = run(&web("rack/cubic", GAP, Some(3_000), secs(60)), 1).unwrap();
    let rows = &outcome.arrivals;
    assert_eq!(rows.len(), 3_000);
    for (number, row) in (0u64..).zip(rows) {
        assert_eq!((row.flow, row.arrival), (0, number));
        assert!(row.completed && row.delivered_bytes == row.size_bytes, "{row:?}");
        // A round trip for the handshake, and half of one until data has arrived.
        let least = row.size_bytes as f64 * 8.0 / 100e6 + 0.015;
        assert!(row.fct_s.unwrap() >= least, "{row:?}");
        let slowdown = row.fct_s.unwrap() / (row.size_bytes as f64 * 8.0 / 100e6 + 0.010);
        // What a link can carry is a whole number of bytes, here of 187 500 and more.
        assert!((row.slowdown.unwrap() / slowdown - 1.0).abs() < 1e-5, "{row:?}");
    }
    let flow = &outcome.flows[0];
    let total = |cell: fn(&weir_trace::ArrivalRow) -> u64| rows.iter().map(cell).sum::<u64>();
    assert_eq!(flow.delivered_bytes, total(|row| row.size_bytes));
    assert_eq!(flow.retransmits, total(|row| row.retransmits));
    assert_eq!(flow.timeouts, Some(total(|row| row.timeouts)));
    assert!(flow.completed && flow.failure.is_none() && flow.fct_s.is_none(), "{flow:?}");
    let last = rows.iter().map(|row| row.start_s + row.fct_s.unwrap()).fold(0.0, f64::max);
    assert!(flow.end_s.unwrap() >= last && flow.end_s.unwrap() < last + 1.0, "{flow:?}");
    assert!(outcome.summary.sim_s < 60.0, "the run ends with the last connection");
    assert_eq!((flow.cwnd_bytes_mean, flow.cwnd_bytes_max), (None, None));
    // Every segment arrived, some twice; what came again after the last byte is not a delay.
    let segments = total(|row| row.size_bytes.div_ceil(1_448));
    let arrived = segments..=outcome.summary.data_packets;
    assert!(arrived.contains(&flow.queue_delay_samples), "{arrived:?}: {flow:?}");
}

#[test]
fn the_load_is_what_was_asked_for() {
    // What comes in 100 s is a compound Poisson sum, whose variance is n · E[size²]; with these sizes
    // E[size²] is 6.37 E[size]², and four standard deviations are allowed.
    let duration = 100.0;
    let outcome = run(&web("rack/cubic", GAP, None, secs(100)), 3).unwrap();
    let expected = duration / GAP.as_secs_f64();
    let count = outcome.arrivals.len() as f64;
    assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count} against {expected}");
    let bytes: u64 = outcome.arrivals.iter().map(|row| row.size_bytes).sum();
    let mean = expected * sizes().mean();
    let allowed = 4.0 * (6.37 / expected).sqrt();
    assert!((bytes as f64 / mean - 1.0).abs() < allowed, "{bytes} against {mean} ± {allowed}");
    // The link has no other work, and hardly anything is lost.
    let utilisation = outcome.summary.utilisation.unwrap();
    let wire = sizes().mean() + 52.0 * sizes().mean_segments(1_448);
    let load = wire * 8.0 / GAP.as_secs_f64() / 100e6;
    // Handshakes and ends: two packets of 60 and 52 bytes of each connection.
    let overhead = 112.0 * 8.0 / GAP.as_secs_f64() / 100e6;
    assert!((utilisation / (load + overhead) - 1.0).abs() < allowed, "{utilisation} and {load}");
}

#[test]
fn connections_come_alike_whatever_carries_them() {
    let of = |stack| run(&web(stack, GAP, Some(500), secs(60)), 5).unwrap();
    let first = of("rack/cubic");
    assert_eq!(offered(&first).len(), 500);
    for stack in ["rack/bbr", "sack/reno", "go-back-n(8)/none"] {
        assert_eq!(offered(&of(stack)), offered(&first), "{stack}");
    }
    let other = run(&web("rack/cubic", GAP, Some(500), secs(60)), 6).unwrap();
    assert_ne!(offered(&other), offered(&first));
}

#[test]
fn the_same_seed_gives_the_same_outcome_on_both_event_queues() {
    let spec = web("rack/cubic", GAP, None, secs(3));
    let outcome = |queue: QueueKind| run_with(&spec, 7, &RunOptions { queue }).unwrap();
    assert_eq!(outcome(QueueKind::Wheel), outcome(QueueKind::Wheel));
    assert_eq!(outcome(QueueKind::Wheel), outcome(QueueKind::Heap));
}

#[test]
fn several_thousand_connections_over_a_bad_path_keep_every_checker_quiet() {
    let impairments = Impairments {
        loss: Ratio::from_percent(1),
        duplicate: Ratio::from_percent(1),
        corrupt: Ratio::from_percent(1),
        ..Impairments::default()
    };
    let bad = LinkConfig { impairments, ..LinkConfig::default() };
    let workload = || {
        let sizes = Arc::new(sizes());
        Workload::FlowSizes(FlowSizes {
            sizes,
            mean_gap: GAP * 2,
            count: Some(2_000),
            pattern: Pattern::One,
        })
    };
    let path = Path { forward: bad.clone(), reverse: bad, queue: BufferSize::Bdp(200), ..path() };
    let flows = [
        Flow::new(over("rack/cubic"), workload()),
        Flow::bulk("rack/bbr"),
        Flow::new(over("newreno/reno"), workload()).starting(1),
    ];
    let outcome = run(&path.spec(&flows, secs(40)), 2).unwrap();
    assert!(outcome.arrivals.len() > 3_900, "{}", outcome.arrivals.len());
    let done =
        |flow: u32| outcome.arrivals.iter().filter(move |row| row.flow == flow && row.completed);
    assert!(done(0).count() > 1_900 && done(2).count() > 1_900);
    assert!(outcome.arrivals.iter().any(|row| row.timeouts > 0), "losses end some in a timeout");
    assert!(
        outcome.flows[1].goodput_mbps.expect("a measured flow") > 1.0,
        "{:?}",
        outcome.flows[1]
    );
}

#[test]
fn what_the_end_cuts_off_is_reported_as_such() {
    // Twice what the link carries: a queue of connections builds up.
    let outcome = run(&web("rack/cubic", GAP / 4, None, secs(4)), 1).unwrap();
    let (done, cut): (Vec<_>, Vec<_>) = outcome.arrivals.iter().partition(|row| row.completed);
    assert!(done.len() > 100 && cut.len() > 100, "{} and {}", done.len(), cut.len());
    for row in cut {
        assert!(row.fct_s.is_none() && row.slowdown.is_none() && row.failure.is_none(), "{row:?}");
        assert!(row.delivered_bytes < row.size_bytes, "{row:?}");
    }
    assert!(outcome.flows[0].completed, "it was to go on until the end");
    let outcome = run(&web("rack/cubic", GAP / 4, Some(100_000), secs(4)), 1).unwrap();
    let flow = &outcome.flows[0];
    assert!(!flow.completed && flow.end_s.is_none() && flow.failure.is_none(), "{flow:?}");
}

#[test]
fn connections_that_fail_are_reported() {
    let mut spec = web("rack/cubic", GAP, Some(50), secs(60));
    let weir_scene::TransportSpec::Reliable(config) = &mut spec.flows[0].transport else {
        panic!("{spec:?}")
    };
    // Nothing arrives, and no flow waits for long.
    config.max_wait = Some(Duration::from_secs(2));
    spec.links[0].config.impairments.loss = Ratio::ONE;
    let outcome = run(&spec, 1).unwrap();
    assert_eq!(outcome.arrivals.len(), 50);
    assert!(outcome.arrivals.iter().all(|row| row.failure.is_some() && !row.completed));
    let failure = outcome.flows[0].failure.as_deref();
    assert_eq!(failure, Some("50 of 50 connections failed"));
}

#[test]
fn the_warm_up_has_no_rows_and_rows_can_be_limited() {
    let mut spec = web("rack/cubic", GAP, Some(1_000), secs(60));
    let all = run(&spec, 4).unwrap();
    spec.measure.warmup = secs(1);
    let warm = run(&spec, 4).unwrap();
    let after: Vec<_> = offered(&all).into_iter().filter(|(start, _)| *start >= 1.0).collect();
    assert!(after.len() < 900, "{}", after.len());
    assert_eq!(offered(&warm), after);
    assert_eq!(warm.summary.trace_hash, all.summary.trace_hash);
    assert!(warm.flows[0].delivered_bytes < all.flows[0].delivered_bytes);
    spec.measure.max_arrivals = 10;
    let few = run(&spec, 4).unwrap();
    assert_eq!(offered(&few), after[..10]);
    assert_eq!(few.flows, warm.flows, "rows change no figure");
}

#[test]
fn a_stop_ends_arrivals_and_lets_those_under_way_finish() {
    let workload = Workload::FlowSizes(FlowSizes {
        sizes: Arc::new(sizes()),
        mean_gap: GAP,
        count: None,
        pattern: Pattern::One,
    });
    let flow = Flow::new(over("rack/cubic"), workload).starting(1).stopping(3);
    let outcome = run(&path().spec(&[flow], secs(10)), 1).unwrap();
    assert!(outcome.arrivals.iter().all(|row| (1.0..3.0).contains(&row.start_s)));
    assert!(outcome.arrivals.iter().all(|row| row.completed));
    assert!(outcome.summary.sim_s < 5.0, "{}", outcome.summary.sim_s);
}

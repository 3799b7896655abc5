//! Hosted stacks over simulated links: every byte arrives, and the same seed gives the same run.
//! The receiver compares each byte with what belongs at its offset; a difference ends the run.

use weir_foreign::{Settings, StackName};
use weir_net::{
    DropTailConfig, Impairments, Jitter, Limit, LinkConfig, Order, QueueConfig, Spread,
};
use weir_scene::{
    Ends, FlowSpec, LinkSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, Workload,
};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

/// A path of 10 Mbit/s and 40 ms with a queue of one bandwidth-delay product.
fn spec(stack: &str, workload: Workload, impairments: &Impairments) -> RunSpec {
    let stack: StackName = stack.parse().expect("a stack");
    let link = |name: &str, limit| LinkSpec {
        name: name.to_owned(),
        config: LinkConfig {
            queue: QueueConfig::DropTail(DropTailConfig { limit, ..DropTailConfig::default() }),
            impairments: impairments.clone(),
            ..LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(20))
        },
        monitored: name == "there",
        one_at_a_time: false,
    };
    RunSpec {
        links: vec![link("there", Limit::Bytes(Bytes(50_000))), link("back", Limit::Infinite)],
        radio: None,
        fabric: None,
        flows: vec![FlowSpec {
            name: "flow0".to_owned(),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport: TransportSpec::Foreign(stack.build(Settings::default())),
            workload,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        }],
        measure: MeasureSpec { duration: Duration::from_secs(60), ..MeasureSpec::default() },
    }
}

fn run(stack: &str, workload: Workload, impairments: &Impairments, seed: u64) -> Outcome {
    weir_sim::run(&spec(stack, workload, impairments), seed).expect("a sound run")
}

fn names() -> Vec<&'static str> {
    let names: Vec<_> = StackName::catalogue().map(|(name, _)| name).collect();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// Loss, damage, duplicates and reordering on both ways.
fn bad_path() -> Impairments {
    Impairments {
        loss: Ratio::from_percent(3),
        corrupt: Ratio::from_percent(1),
        duplicate: Ratio::from_percent(1),
        jitter: Some(Jitter {
            spread: Spread::Uniform(Duration::from_millis(5)),
            order: Order::Free,
        }),
        ..Impairments::default()
    }
}

#[test]
fn a_bulk_flow_fills_the_link() {
    for stack in names() {
        let outcome = run(stack, Workload::Bulk, &Impairments::default(), 1);
        let flow = &outcome.flows[0];
        assert_eq!((flow.failure.as_deref(), flow.stack.as_str()), (None, stack));
        // Headers take 4.9 % of full packets. noq's BBRv3 leaves a part of the link unused.
        let least = if stack == "noq/bbr3" { 7.5 } else { 9.4 };
        let goodput = flow.goodput_mbps.expect("a measured flow");
        assert!((least..9.6).contains(&goodput), "{stack}: {goodput}");
        // All that the queue dropped was found, and nothing else but what was still in flight.
        let dropped = flow.loss_ratio.expect("losses") * flow.sent_segments as f64;
        let apart = dropped - flow.retransmits as f64;
        assert!((-5.0..60.0).contains(&apart), "{stack}: {dropped} {}", flow.retransmits);
        let rtt = flow.rtt_ms_min.expect("samples");
        assert!((40.0..45.0).contains(&rtt), "{stack}: {rtt}");
    }
}

#[test]
fn every_byte_arrives_over_a_bad_path() {
    for stack in names() {
        for seed in 1..=3 {
            let size = Bytes(1_000_000 + seed);
            let outcome = run(stack, Workload::File { size }, &bad_path(), seed);
            let flow = &outcome.flows[0];
            assert!(flow.completed && flow.failure.is_none(), "{stack}, seed {seed}: {flow:?}");
            assert_eq!(flow.delivered_bytes, size.get());
            assert!(flow.retransmits > 0 && flow.fct_s > Some(0.8), "{stack}: {flow:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    // noq's BBRv3 cannot be seeded, which its entry of the list says.
    for stack in names().into_iter().filter(|name| *name != "noq/bbr3") {
        let file = Workload::File { size: Bytes(5_000_000) };
        let outcome = |seed| run(stack, file.clone(), &bad_path(), seed);
        let (first, again, other) = (outcome(7), outcome(7), outcome(8));
        assert_eq!(first, again, "{stack}");
        assert_ne!(first.summary.trace_hash, other.summary.trace_hash, "{stack}");
    }
}

#[test]
fn requests_are_answered_within_a_round_trip() {
    for stack in names() {
        let workload = Workload::Request {
            request: Bytes(200),
            response: Bytes(1_000),
            gap: Duration::from_millis(10),
        };
        let outcome = run(stack, workload, &Impairments::default(), 1);
        let flow = &outcome.flows[0];
        // 40 ms and the serialisation of both.
        let latency = flow.request_latency_ms_p50.expect("answers");
        assert!((40.0..43.0).contains(&latency), "{stack}: {latency}");
        let requests = flow.requests.expect("answers");
        assert!((1_100..1_200).contains(&requests), "{stack}: {requests} in 60 s");
    }
}

#[test]
fn samples_show_the_sender() {
    for stack in names() {
        let mut spec = spec(stack, Workload::Bulk, &Impairments::default());
        spec.measure.sample_interval = Some(Duration::from_millis(10));
        let outcome = weir_sim::run(&spec, 1).expect("a sound run");
        let (mut rows, mut widest) = (0, 0);
        for row in outcome.samples.iter().filter(|row| row.cwnd_bytes > 0) {
            rows += 1;
            // What a window allowed stays in flight when the window shrinks, and the last packet may overshoot it.
            widest = widest.max(row.cwnd_bytes);
            assert!(row.bytes_in_flight <= widest + 1_500, "{stack}: {row:?}");
            if row.t_s > 5.0 {
                assert!(row.cwnd_bytes > 10_000, "{stack}: {row:?}");
                let srtt = row.srtt_ms.expect("a round trip");
                assert!((40.0..90.0).contains(&srtt), "{stack}: {row:?}");
            }
        }
        assert!(rows > 1_000, "{stack}: {rows}");
    }
}

/// noq #800: the initial pacing rate, the initial window over a millisecond, stays.
#[test]
fn noqs_bbr3_does_not_pace_a_sender_that_its_application_limits() {
    let frames = Workload::Rate { rate: Rate::from_mbit(1), size: Bytes(51_000) };
    let loss = |stack| {
        let mut spec = spec(stack, frames.clone(), &Impairments::default());
        if let QueueConfig::DropTail(queue) = &mut spec.links[0].config.queue {
            queue.limit = Limit::Packets(25);
        }
        weir_sim::run(&spec, 1).expect("a sound run")
    };
    let unpaced = loss("noq/bbr3");
    let rates: Vec<_> = unpaced.samples.iter().filter_map(|row| row.pacing_mbps).collect();
    assert!(rates.len() > 500 && rates.iter().all(|rate| *rate == 266.208), "{:?}", rates.last());
    // 10 of the 36 packets of a frame find no space; all of them are sent again.
    let lost = unpaced.flows[0].loss_ratio.expect("packets");
    let of_first = lost / (1.0 - lost);
    assert!((0.23..0.33).contains(&of_first), "28 % is published: {of_first}");
    assert!(loss("noq/cubic").flows[0].loss_ratio < Some(0.005));
}

#[test]
fn a_flow_that_is_stopped_ends_there() {
    for stack in ["quinn/cubic", "noq/cubic"] {
        let mut spec = spec(stack, Workload::Bulk, &Impairments::default());
        spec.flows[0].stop = Some(Instant::ZERO + Duration::from_secs(3));
        let outcome = weir_sim::run(&spec, 1).expect("a sound run");
        let flow = &outcome.flows[0];
        assert_eq!((flow.end_s, flow.completed), (Some(3.0), true), "{stack}");
        assert!(outcome.summary.sim_s < 3.2, "{stack}: {}", outcome.summary.sim_s);
    }
}

#[test]
fn a_path_that_breaks_fails_the_connection() {
    // Both stacks give up after 30 s without a packet.
    for stack in ["quinn/cubic", "noq/cubic"] {
        let dead = Impairments { loss: Ratio::from_percent(100), ..Impairments::default() };
        let outcome = run(stack, Workload::Bulk, &dead, 1);
        let flow = &outcome.flows[0];
        assert_eq!(flow.failure.as_deref(), Some("timed out"), "{stack}");
        assert_eq!(flow.delivered_bytes, 0);
    }
}

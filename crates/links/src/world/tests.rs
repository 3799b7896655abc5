//! Runs in real time, short, and held only against what must hold however slow the machine is.

use std::ops::ControlFlow;

use weir_net::feedback::DraiConfig;
use weir_net::{
    EcnStepConfig, FeedbackConfig, Impairments, Jitter, Limit, LinkConfig, Order, QueueConfig,
    Reorder, Spread, StepThreshold,
};
use weir_scene::topology::{Access, Dumbbell, LabRouter, Relay, Topology};
use weir_scene::{
    Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, UdpConfig, Workload,
};
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

use super::{WorldError, check, run};

const RTT: Duration = Duration::from_millis(6);

fn over(stack: &str) -> TransportSpec {
    let stack = stack.parse().expect("a stack");
    TransportSpec::Reliable(Box::new(Config { stack, ..Config::default() }))
}

fn file(size: u64) -> Workload {
    Workload::File { size: Bytes(size) }
}

fn dumbbell(forward: LinkConfig, flows: usize) -> Topology {
    let reverse = LinkConfig::new(Rate::from_mbit(100), RTT / 2);
    let rtts = vec![RTT; flows];
    Dumbbell { forward, reverse, access: Access::None, rtts }.build().expect("a sound topology")
}

fn link() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(50), RTT / 2)
}

fn spec(topology: Topology, flows: Vec<(TransportSpec, Workload)>) -> RunSpec {
    let flow = |(index, ((transport, workload), route)): (usize, ((_, _), _))| {
        let weir_scene::topology::Route { forward, reverse } = route;
        FlowSpec {
            name: format!("flow{index}"),
            route_forward: forward,
            route_reverse: reverse,
            transport,
            workload,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        }
    };
    let flows = flows.into_iter().zip(topology.routes).enumerate().map(flow).collect();
    let measure = MeasureSpec {
        duration: Duration::from_secs(60),
        sample_interval: Some(Duration::from_millis(5)),
        max_events: 1_000,
        max_acks: 10,
        ..MeasureSpec::default()
    };
    RunSpec { radio: None, fabric: None, links: topology.links, flows, measure }
}

fn real(spec: &RunSpec) -> Outcome {
    run(spec, 1, &mut |_| ControlFlow::Continue(())).expect("the run ends well")
}

/// What a link tells a sender has to be put into the bytes.
#[test]
fn routers_rewrite_what_datagrams_carry() {
    let advised =
        LinkConfig { feedback: Some(FeedbackConfig::Drai(DraiConfig::default())), ..link() };
    let flows = vec![(over("newreno/muzha"), file(100_000))];
    let outcome = real(&spec(dumbbell(advised, 1), flows));
    assert!(outcome.flows[0].completed);
    // A sender that heard of no router would be in Reno's `slow_start`.
    let phases: Vec<_> = outcome.samples.iter().map(|row| row.phase).collect();
    assert!(phases.contains(&"congestion_avoidance"), "{phases:?}");
    assert!(outcome.samples.iter().all(|row| row.ssthresh_bytes.is_none()));
}

#[test]
fn files_arrive_over_a_shared_link_and_the_tables_tell_of_them() {
    let flows = vec![(over("rack/cubic"), file(200_000)), (over("sack/reno"), file(100_000))];
    let outcome = real(&spec(dumbbell(link(), 2), flows));
    for (row, size) in outcome.flows.iter().zip([200_000, 100_000]) {
        assert!(row.completed, "{row:?}");
        assert_eq!((row.delivered_bytes, row.retransmits), (size, 0));
        // No byte arrives before light could have carried it: SYN, SYN-ACK, data.
        assert!(row.fct_s.expect("a time") > 1.5 * RTT.as_secs_f64(), "{row:?}");
        assert!(row.rtt_ms_min.expect("samples") >= RTT.as_millis_f64());
    }
    let bottleneck = &outcome.links[0];
    assert_eq!(bottleneck.delivered_packets, bottleneck.offered_packets);
    // 100 segments and more of 1500 bytes at 50 Mbit/s, and no faster.
    assert!(bottleneck.utilisation.expect("it has a rate") <= 1.0);
    let summary = &outcome.summary;
    assert_eq!(summary.unasked_drops, Some(0), "{summary:?}");
    assert!(summary.health.is_some() && summary.cpu_ratio > Some(0.0), "{summary:?}");
    assert_eq!(outcome.acks.len(), 20);
    assert!(outcome.samples.iter().any(|row| row.cwnd_bytes > 0 && row.srtt_ms > Some(0.0)));
    assert!(!outcome.queues.is_empty());
    assert!(outcome.events.iter().any(|row| row.kind == "completed"));
}

/// Every byte is checked where it is stored: a wrong one fails the run.
#[test]
fn every_byte_arrives_under_any_conditions() {
    let impairments = Impairments {
        loss: Ratio::from_percent(3),
        corrupt: Ratio::from_percent(3),
        duplicate: Ratio::from_percent(3),
        reorder: Some(Reorder {
            probability: Ratio::from_percent(3),
            extra_delay: Duration::from_millis(2),
        }),
        jitter: Some(Jitter { spread: Spread::Uniform(RTT / 8), order: Order::Free }),
        ..Impairments::default()
    };
    let forward = LinkConfig { impairments, ..link() };
    for stack in ["rack/bbr", "go-back-n(8)/none", "selective-repeat(8)/none"] {
        let outcome = real(&spec(dumbbell(forward.clone(), 1), vec![(over(stack), file(150_000))]));
        let (row, link) = (&outcome.flows[0], &outcome.links[0]);
        assert!(row.completed && row.delivered_bytes == 150_000, "{stack}: {row:?}");
        assert!(link.corrupted + link.duplicated + link.dropped_loss > 0, "{stack}: {link:?}");
        assert_eq!(outcome.summary.unasked_drops, Some(0), "{stack}");
    }
}

#[test]
fn marks_cross_the_sockets() {
    let queue = QueueConfig::EcnStep(EcnStepConfig {
        limit: Limit::Infinite,
        threshold: StepThreshold::Backlog(Limit::Bytes(Bytes(3_000))),
    });
    let outcome = real(&spec(
        dumbbell(LinkConfig { queue, ..link() }, 1),
        vec![(over("dctcp"), file(300_000))],
    ));
    assert!(outcome.links[0].marked > 0, "{:?}", outcome.links[0]);
    // The sender has heard of them: its window was reduced without a loss.
    let row = &outcome.flows[0];
    assert_eq!((row.completed, row.retransmits), (true, 0));
    assert!(outcome.events.iter().any(|event| event.kind == "cwr"), "{:?}", outcome.events);
}

#[test]
fn requests_are_answered_and_datagrams_counted() {
    let (request, response, gap) = (Bytes(100), Bytes(5_000), Duration::ZERO);
    let flows = vec![
        (over("rack/reno"), Workload::Request { request, response, gap }),
        (
            TransportSpec::Udp(UdpConfig { payload: 1_000 }),
            Workload::Rate { rate: Rate::from_mbit(4), size: Bytes(500) },
        ),
        (TransportSpec::Udp(UdpConfig { payload: 1_000 }), file(50_000)),
    ];
    let mut spec = spec(dumbbell(link(), 3), flows);
    spec.measure.duration = Duration::from_millis(300);
    let outcome = real(&spec);
    let [requests, rate, datagrams] = &outcome.flows[..] else { panic!("three flows") };
    assert!(requests.requests > Some(0), "{requests:?}");
    assert_eq!(outcome.requests.len() as u64, requests.requests_kept.expect("kept"));
    assert!(outcome.requests.iter().all(|row| row.latency_ms >= RTT.as_millis_f64()));
    // One datagram of 500 bytes each millisecond, and one at the start.
    assert!(rate.sent_segments > 200 && rate.sent_segments <= 301, "{rate:?}");
    assert!(datagrams.completed && datagrams.delivered_bytes == 50_000, "{datagrams:?}");
}

#[test]
fn a_serial_relay_takes_its_time_for_each_datagram_and_so_does_its_sender() {
    let (relay, prepare) = (Duration::from_millis(2), Duration::from_millis(1));
    let serial = LinkConfig::serial_relay(relay, relay, Limit::Bytes(Bytes(64 << 10)));
    let router = LabRouter { relay: Relay::Serial(serial), forward: None, reverse: None, flows: 1 };
    let mut topology = router.build();
    topology.add_preparation(0, prepare, Duration::ZERO);
    let outcome = real(&spec(topology, vec![(over("stop-and-wait/none"), file(14_480))]));
    let row = &outcome.flows[0];
    assert!(row.completed, "{row:?}");
    // Ten segments, each prepared, relayed and acknowledged; the last needs no acknowledgement.
    let least = 10.0 * (0.001 + 0.002) + 9.0 * 0.002;
    assert!(row.fct_s.expect("a time") >= least, "{row:?}");
}

#[test]
fn an_observer_may_stop_a_run() {
    let spec = spec(dumbbell(link(), 1), vec![(over("rack/reno"), Workload::Bulk)]);
    let mut times = Vec::new();
    let stopped = run(&spec, 1, &mut |now| {
        times.push(now);
        if times.len() > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(WorldError::Stopped)), "{stopped:?}");
    assert!(times.is_sorted() && times.len() == 3);
}

#[test]
fn what_no_datagram_holds_is_refused_by_name() {
    let config = Config { mss: 65_495, ..Config::default() };
    let flows = vec![(TransportSpec::Reliable(Box::new(config)), file(1))];
    let refused = check(&spec(dumbbell(link(), 1), flows)).expect_err("too long");
    assert_eq!(
        refused.to_string(),
        "flow 'flow0': mss = 65495: world udp sends real datagrams, which hold at most 65431 bytes \
         of payload"
    );
}

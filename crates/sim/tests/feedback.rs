//! Controllers that listen to routers, over wired links whose agents speak to them.

mod common;

use common::{Flow, Path};
use weir_net::feedback::DraiConfig;
use weir_net::{FeedbackConfig, Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, Workload};
use weir_sim::run;
use weir_transport::Config;
use weir_units::{BufferSize, Bytes, Duration, Instant, Rate};

/// What flows do over a bottleneck with such an agent in front of it.
fn outcome(path: &Path, feedback: Option<FeedbackConfig>, flows: &[Flow], seconds: u64) -> Outcome {
    let mut spec: RunSpec = path.spec(flows, Duration::from_secs(seconds));
    spec.measure.warmup = Duration::from_secs(seconds / 5);
    spec.links[0].config.feedback = feedback;
    run(&spec, 1).expect("a run")
}

/// On a link that is never half used every router says 5: the window doubles with each round trip, from
/// two segments to what the peer offers.
#[test]
fn muzha_doubles_its_window_where_there_is_room() {
    let path =
        Path { rate: Rate::from_mbit(10_000), queue: BufferSize::Infinite, ..Path::default() };
    let feedback = Some(FeedbackConfig::Drai(DraiConfig::default()));
    let mut flow = Flow::bulk("newreno/muzha");
    config_of(&mut flow).recv_buffer = Bytes(100_000);
    let mut spec = path.spec(&[flow], Duration::from_secs(1));
    spec.links[0].config.feedback = feedback;
    // The handshake takes the first round trip; samples fall between the others.
    spec.measure.sample_interval = Some(Duration::from_millis(40) + Duration::from_micros(100));
    let outcome = run(&spec, 1).expect("a run");
    let windows: Vec<u64> = outcome.samples.iter().map(|row| row.cwnd_bytes / SEGMENT).collect();
    assert_eq!(windows[..9], [2, 4, 8, 16, 32, 64, 69, 69, 69]);
}

/// The window rests where the routers say 3, or moves by one segment around it: the average utilisation
/// is neither below where 5 begins (half is left) nor above where 2 does (15 % are left). That holds
/// where the average is as fast as the round trip; a slower one notices too late that the window has
/// doubled.
#[test]
fn muzha_finds_its_share_and_loses_nothing() {
    let memory = Path::default().rtt;
    let feedback = Some(FeedbackConfig::Drai(DraiConfig { memory, ..DraiConfig::default() }));
    let outcome = outcome(&Path::default(), feedback, &[Flow::bulk("newreno/muzha")], 30);
    let utilisation = outcome.links[0].utilisation.expect("the link has a rate");
    assert!((0.5..=0.85).contains(&utilisation), "{utilisation}");
    assert_eq!((outcome.links[0].dropped_queue, outcome.flows[0].retransmits), (0, 0));
}

/// Without an agent on the way the controller is NewReno with an initial window of two segments.
#[test]
fn muzha_without_routers_is_newreno() {
    let mut reno = Flow::bulk("newreno/reno");
    config_of(&mut reno).initial_window = 2;
    // As long a packet: an index takes eight bytes, and its echo leaves room for four more.
    let segment = SEGMENT + 8;
    config_of(&mut reno).mss = segment as u32;
    let windows = |flow, segment| {
        let outcome = outcome(&Path::default(), None, &[flow], 20);
        let rows = outcome.samples.iter();
        rows.map(|row| row.cwnd_bytes / segment).collect::<Vec<u64>>()
    };
    let muzha = windows(Flow::bulk("newreno/muzha"), SEGMENT);
    let reno = windows(reno, segment);
    assert!(muzha.len() > 100);
    // A sample may fall between two acknowledgements that are a little longer here.
    for (ours, theirs) in muzha.iter().zip(&reno) {
        assert!(ours.abs_diff(*theirs) <= 1, "{ours}, {theirs}");
    }
}

/// Two flows whose round trips are as one to four share the link of `flow`'s kind.
fn two_unequal(flow: &str, feedback: FeedbackConfig) -> Outcome {
    let rtts = vec![Duration::from_millis(20), Duration::from_millis(80)];
    let forward = LinkConfig {
        feedback: Some(feedback),
        ..LinkConfig::new(Rate::from_mbit(50), Duration::from_millis(10))
    };
    let reverse = LinkConfig::new(Rate::from_mbit(50), Duration::from_millis(10));
    let forward = forward.with_limit(Limit::Bytes(BDP * 2));
    let topology = Dumbbell { forward, reverse, access: Access::None, rtts };
    let topology = topology.build().expect("a topology");
    let flows = topology.routes.into_iter().enumerate().map(|(index, route)| FlowSpec {
        name: format!("flow {index}"),
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: common::over(flow),
        workload: Workload::Bulk,
        start: Instant::ZERO,
        stop: None,
        start_jitter: Duration::ZERO,
        ends: Ends::Kernel,
    });
    let measure = MeasureSpec {
        duration: Duration::from_secs(30),
        warmup: Duration::from_secs(10),
        ..MeasureSpec::default()
    };
    run(&RunSpec { flows: flows.collect(), links: topology.links, measure }, 1).expect("a run")
}

/// Of the shorter round trip.
const BDP: Bytes = Bytes(50_000_000 / 8 / 50);

#[test]
fn explicit_control() {
    for (flow, feedback) in [
        ("xcp", FeedbackConfig::Xcp(Default::default())),
        ("rcp", FeedbackConfig::Rcp(Default::default())),
        ("anti-ecn", FeedbackConfig::AntiEcn(Default::default())),
    ] {
        let o = two_unequal(flow, feedback);
        let l = &o.links[0];
        println!(
            "{flow}: util {:?} jain {:?} drops {} queue mean {} max {} bdp {} goodput {} {}",
            l.utilisation,
            o.summary.jain_index,
            l.dropped_queue,
            l.queue_packets_mean,
            l.queue_packets_max,
            BDP.get() / 1500,
            o.flows[0].goodput_mbps,
            o.flows[1].goodput_mbps
        );
        for row in o.samples.iter().filter(|r| r.t_s < 1.0).take(20) {
            println!(
                "{} {} cwnd {} rate {:?} srtt {:?}",
                row.flow, row.t_s, row.cwnd_bytes, row.pacing_mbps, row.srtt_ms
            );
        }
    }
}

fn config_of(flow: &mut Flow) -> &mut Config {
    match &mut flow.transport {
        TransportSpec::Reliable(config) => config,
        TransportSpec::Udp(_) => unreachable!("the flow has a stack"),
    }
}

/// The payload beside feedback and its echo.
const SEGMENT: u64 = 1_448 - 12;

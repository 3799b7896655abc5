//! Controllers that listen to routers, over wired links whose agents speak to them.

use crate::common::{Flow, Path};
use weir_net::feedback::{
    AntiEcnConfig, Capacity, DraiConfig, QuickStartConfig, RcpConfig, XcpConfig,
};
use weir_net::{DropList, FeedbackConfig, Limit, LinkConfig, Numbering};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec};
use weir_sim::run;
use weir_transport::{Config, DelayedAck};
use weir_units::{BufferSize, Bytes, Duration, Instant, Rate, Ratio};

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
fn muzha_doubles_its_window_where_there_is_spare_capacity() {
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
    // 69 segments less what one of 2304 bytes takes of the receiver's memory.
    assert_eq!(windows[..9], [2, 4, 8, 16, 32, 64, 68, 68, 68]);
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

/// The slides on TCP Muzha: the receiver sets its window by the routers' feedback. The sender is NewReno and
/// knows nothing of it: it would fill the queue, and does where no router speaks.
#[test]
fn a_receiver_that_follows_the_routers_keeps_newreno_from_losses() {
    let memory = Path::default().rtt;
    let agent = Some(FeedbackConfig::Drai(DraiConfig { memory, ..DraiConfig::default() }));
    let flow = |limit: Option<&str>| {
        let mut flow = Flow::bulk("newreno/reno");
        config_of(&mut flow).window_limit = limit.map(|limit| limit.parse().expect("a limit"));
        flow
    };
    let limited = outcome(&Path::default(), agent, &[flow(Some("receiver-drai"))], 30);
    let utilisation = limited.links[0].utilisation.expect("the link has a rate");
    assert!((0.5..=0.9).contains(&utilisation), "{utilisation}");
    assert_eq!((limited.links[0].dropped_queue, limited.flows[0].retransmits), (0, 0));
    for (agent, limit) in [(agent, None), (None, Some("receiver-drai"))] {
        let usual = outcome(&Path::default(), agent, &[flow(limit)], 30);
        assert!(usual.flows[0].retransmits > 0, "{limit:?}");
    }
}

/// Without an agent on the way the controller is NewReno with an initial window of two segments.
#[test]
fn muzha_without_routers_is_newreno() {
    let mut reno = Flow::bulk("newreno/reno");
    config_of(&mut reno).initial_window = 2;
    // As long a packet: an index takes eight bytes, and its echo leaves space for four more.
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

/// Flows of these round trips over one link and hosts' links around it.
fn dumbbell(link: LinkConfig, access: Access, rtts: &[Duration], flow: &Flow) -> RunSpec {
    let reverse = LinkConfig { feedback: None, ..link.clone() };
    let topology = Dumbbell { forward: link, reverse, access, rtts: rtts.to_vec() };
    let topology = topology.build().expect("a topology");
    let flows = topology.routes.into_iter().enumerate().map(|(index, route)| FlowSpec {
        name: format!("flow {index}"),
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: flow.transport.clone(),
        workload: flow.workload.clone(),
        start: Instant::ZERO,
        stop: None,
        start_jitter: Duration::ZERO,
        ends: Ends::Kernel,
    });
    RunSpec {
        radio: None,
        fabric: None,
        flows: flows.collect(),
        links: topology.links,
        measure: MeasureSpec::default(),
    }
}

/// Two flows whose round trips are as one to four share a link that has such an agent.
fn two_unequal(stack: &str, feedback: FeedbackConfig) -> Outcome {
    let rtts = [Duration::from_millis(20), Duration::from_millis(80)];
    let link = LinkConfig {
        feedback: Some(feedback),
        ..LinkConfig::new(Rate::from_mbit(50), rtts[0] / 2)
    };
    let link = link.with_limit(Limit::Bytes(BDP * 2));
    let mut spec = dumbbell(link, Access::None, &rtts, &Flow::bulk(stack));
    spec.measure.duration = Duration::from_secs(30);
    spec.measure.warmup = Duration::from_secs(10);
    run(&spec, 1).expect("a run")
}

/// Of the shorter round trip.
const BDP: Bytes = Bytes(50_000_000 / 8 / 50);

/// What Katabi et al. (SIGCOMM 2002, §5) and Dukkipati et al. (IWQoS 2005, §4) claim, in figures: full use,
/// next to no queue, nothing lost, and equal rates whatever the round trips.
#[test]
fn routers_that_set_rates_are_fair_and_keep_no_queue() {
    let xcp = two_unequal("xcp", FeedbackConfig::Xcp(XcpConfig::default()));
    let rcp = two_unequal("rcp", FeedbackConfig::Rcp(RcpConfig::default()));
    for outcome in [&xcp, &rcp] {
        let link = &outcome.links[0];
        let name = &outcome.flows[0].stack;
        assert!(link.utilisation.is_some_and(|used| used > 0.95), "{name}: {:?}", link.utilisation);
        let tenth = BDP.get() as f64 / 1_500.0 / 10.0;
        assert!(link.queue_packets_mean < tenth, "{name}: {}", link.queue_packets_mean);
        assert_eq!(link.dropped_queue, 0, "{name}");
        let jain = outcome.summary.jain_index.expect("two flows");
        assert!(jain > 0.99, "{name}: {jain}");
    }
}

/// Reno has left slow start with its first loss; a sender that sees spare capacity on an empty path doubles its
/// window in each round trip after it as before.
#[test]
fn anti_ecn_grows_as_in_slow_start_on_an_empty_path() {
    let rtt = Duration::from_millis(40);
    let windows = |stack: &str| {
        let mut flow = Flow::bulk(stack);
        config_of(&mut flow).recv_buffer = Bytes(400_000);
        config_of(&mut flow).delayed_ack = Some(DelayedAck::Off);
        let mut link = LinkConfig {
            feedback: Some(FeedbackConfig::AntiEcn(AntiEcnConfig::default())),
            ..LinkConfig::new(Rate::from_mbit(1_000), rtt / 2)
        };
        link.impairments.drops = vec![DropList { counts: Numbering::Data, numbers: vec![15] }];
        // The host is slower, so that no burst of its makes a queue.
        let access = Access::Rate(Rate::from_mbit(200));
        let mut spec = dumbbell(link, access, &[rtt], &flow);
        spec.measure.duration = Duration::from_millis(800);
        spec.measure.sample_interval = Some(rtt + Duration::from_millis(1));
        let outcome = run(&spec, 1).expect("a run");
        assert_eq!(outcome.flows[0].retransmits, 1);
        outcome.samples.iter().map(|row| row.cwnd_bytes).collect::<Vec<u64>>()
    };
    let (reno, anti) = (windows("reno"), windows("anti-ecn"));
    // The loss is known after the second round trip and repaired in the third.
    assert_eq!(anti[3..7], [anti[3], anti[3] * 2, anti[3] * 4, anti[3] * 8]);
    assert_eq!(reno[6], reno[3] + 3 * 1_448);
}

/// The slides on TCP Muzha: the bit lets a sender grow "as fast as slow start". A cleared one takes nothing from
/// the slow start before the first loss.
#[test]
fn anti_ecn_is_as_fast_as_slow_start_from_the_beginning() {
    let path = Path { rtt: Duration::from_millis(200), ..Path::default() };
    let seconds = |stack: &str| {
        let mut spec = path.spec(&[Flow::file(stack, 2_000_000)], Duration::from_secs(20));
        spec.links[0].config.feedback = Some(FeedbackConfig::AntiEcn(AntiEcnConfig::default()));
        run(&spec, 1).expect("a run").flows[0].fct_s.expect("it ends")
    };
    let (reno, anti) = (seconds("reno"), seconds("anti-ecn"));
    assert!(anti <= reno * 1.01, "{anti} s, Reno {reno} s");
}

/// RFC 4782 §1: a moderate transfer spends many round trips in slow start "where one or two RTTs might
/// have been" enough. Forty segments from a window of three (RFC 3390) take four flights, and one with
/// an approved rate, which is spread over a round trip.
#[test]
fn quick_start_saves_the_round_trips_of_slow_start() {
    let path = Path { rtt: Duration::from_millis(200), ..Path::default() };
    let seconds = |asked: Option<Rate>, feedback: Option<FeedbackConfig>| {
        let mut flow = Flow::file("reno", 40 * 1_448);
        let config = config_of(&mut flow);
        (config.initial_window, config.quick_start) = (3, asked);
        let mut spec = path.spec(&[flow], Duration::from_secs(10));
        spec.links[0].config.feedback = feedback;
        let outcome = run(&spec, 1).expect("a run");
        assert_eq!(outcome.flows[0].retransmits, 0);
        outcome.flows[0].fct_s.expect("it ends") / path.rtt.as_secs_f64()
    };
    let agent = Some(FeedbackConfig::QuickStart(QuickStartConfig::default()));
    let (asked, usual) = (Some(Rate::from_mbit(10)), seconds(None, agent));
    // The handshake, three flights and their answers, and half a round trip for the last.
    assert!(usual > 4.5, "{usual}");
    let quick = seconds(asked, agent);
    assert!(quick < 2.5, "{quick}");
    // A router that does not know the request leaves no trace on it, which the TTL shows.
    assert!(seconds(asked, None) > 4.5);
}

/// Any sender and any router, over a lossy link: the file arrives, no checker finds anything, and a second
/// run is the same.
#[test]
fn any_router_and_any_sender_carry_a_file() {
    let agents = [
        FeedbackConfig::Drai(DraiConfig::default()),
        FeedbackConfig::Drai(DraiConfig::hybrid()),
        FeedbackConfig::AntiEcn(AntiEcnConfig::default()),
        FeedbackConfig::QuickStart(QuickStartConfig::default()),
        FeedbackConfig::Xcp(XcpConfig { capacity: Capacity::Measured }),
        FeedbackConfig::Rcp(RcpConfig { capacity: Capacity::Measured }),
    ];
    let senders =
        ["muzha(levels=7,exit=any)", "muzha2", "drai-mimd", "xcp", "rcp", "anti-ecn", "reno"];
    let mut runs = 0;
    for agent in agents {
        for sender in senders {
            for recovery in ["newreno", "sack", "rack", "go-back-n"] {
                let mut flow = Flow::file(&format!("{recovery}/{sender}"), 150_000);
                config_of(&mut flow).quick_start = Some(Rate::from_mbit(4));
                let mut spec =
                    Path::default().spec(&[flow.clone(), flow], Duration::from_secs(120));
                spec.links[0].config.feedback = Some(agent);
                spec.links[0].config.impairments.loss = Ratio::from_percent(2);
                let outcomes = [(); 2].map(|()| run(&spec, runs).expect("nothing is violated"));
                let hashes = outcomes.each_ref().map(|outcome| outcome.summary.trace_hash);
                assert_eq!(hashes[0], hashes[1], "{recovery}/{sender}, {agent:?}");
                let done = outcomes[0].flows.iter().all(|flow| flow.completed);
                assert!(done, "{recovery}/{sender}, {agent:?}: {:?}", outcomes[0].flows);
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 6 * 7 * 4);
}

fn config_of(flow: &mut Flow) -> &mut Config {
    match &mut flow.transport {
        TransportSpec::Reliable(config) => config,
        _ => unreachable!("the flow has our stack"),
    }
}

/// The payload next to feedback and its echo.
const SEGMENT: u64 = 1_448 - 12;

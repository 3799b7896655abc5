//! Swift, TIMELY, DCQCN and HPCC over one link of 100 Gbit/s, as in case F5 of our specification: a second flow joins
//! after a millisecond.

use crate::common::{Flow, over};
use weir_net::{EcnStepConfig, FeedbackConfig, Limit, LinkConfig, QueueConfig, StepThreshold};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec};
use weir_sim::run;
use weir_transport::DelayedAck;
use weir_units::{Bytes, Duration, Instant, Rate};

const LINE: Rate = Rate::from_mbit(100_000);
/// HPCC's base round trip.
const RTT: Duration = Duration::from_micros(13);

/// Two flows over one link that marks from 300 KB on, HPCC's threshold of DCTCP at this rate, the second from 1 ms
/// on. Measured is what comes after `warmup`.
fn two_flows(
    stack: &str,
    feedback: Option<FeedbackConfig>,
    warmup: Duration,
    duration: Duration,
) -> Outcome {
    let step = EcnStepConfig {
        limit: Limit::Bytes(Bytes(8_000_000)),
        threshold: StepThreshold::Backlog(Limit::Bytes(Bytes(300_000))),
    };
    let reverse = LinkConfig::new(LINE, RTT / 2);
    let queue = QueueConfig::EcnStep(step);
    let forward = LinkConfig { queue, feedback, ..reverse.clone() };
    let topology = Dumbbell { forward, reverse, access: Access::None, rtts: vec![RTT; 2] };
    let topology = topology.build().expect("a topology");
    let flows = topology.routes.into_iter().zip([0, 1]).map(|(route, millis)| FlowSpec {
        name: format!("flow {millis}"),
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: transport(stack),
        workload: Flow::bulk(stack).workload,
        start: Instant::ZERO + Duration::from_millis(millis),
        stop: None,
        start_jitter: Duration::ZERO,
        ends: Ends::Kernel,
    });
    let measure = MeasureSpec { duration, warmup, ..MeasureSpec::default() };
    let (flows, links) = (flows.collect(), topology.links);
    run(&RunSpec { radio: None, fabric: None, flows, links, measure }, 1).expect("a run")
}

fn transport(stack: &str) -> TransportSpec {
    let TransportSpec::Reliable(mut config) = over(stack) else { unreachable!("our stack") };
    config.min_rto = Duration::from_millis(1);
    config.delayed_ack = Some(DelayedAck::Off);
    TransportSpec::Reliable(config)
}

/// After 10 ms: the link's use, the first flow's goodput over the second's, the mean wait in the queue.
fn at_rest(stack: &str) -> (f64, f64, Duration) {
    let outcome = two_flows(stack, None, Duration::from_millis(10), Duration::from_millis(30));
    let goodput = |flow: usize| outcome.flows[flow].goodput_mbps.expect("a measured flow");
    let link = &outcome.links[0];
    assert_eq!(link.dropped_queue, 0, "{stack}");
    let waited = link.queue_delay_ms_mean.expect("packets have waited") * 1e6;
    let utilisation = link.utilisation.expect("the link has a rate");
    (utilisation, goodput(0) / goodput(1), Duration::from_nanos(waited as u64))
}

/// Two windows of more than 100 segments have no scaling: the round trip is the base target.
#[test]
fn swift_keeps_the_round_trip_at_its_target() {
    for base in [18, 25] {
        let (utilisation, ratio, waited) = at_rest(&format!("rack/swift(base={base}us)"));
        assert!(utilisation > 0.99, "{utilisation}");
        assert!((0.9..1.15).contains(&ratio), "{ratio}");
        let round_trip = (RTT + waited).as_nanos() as f64 / 1e3;
        // A window of a segment more or less on each side, of 0.12 us, and what falls below at a reduction.
        assert!((round_trip / f64::from(base) - 1.0).abs() < 0.1, "{round_trip} us for {base} us");
    }
}

/// The rate rises below `low`, 50 us, and round trips above it must not rise: the queue is neither empty nor
/// near `high`.
#[test]
fn timely_uses_the_link_below_its_high_delay() {
    let (utilisation, ratio, waited) = at_rest("rack/timely");
    assert!(utilisation > 0.9, "{utilisation}");
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
    assert!(waited < Duration::from_micros(100), "{waited}");
}

/// Marks begin at 300 KB, 24 us. Notifications come to both flows at once, so their rates come together slowly.
#[test]
fn dcqcn_keeps_the_queue_at_the_marks() {
    let (utilisation, ratio, waited) = at_rest("rack/dcqcn(start=line)");
    assert!(utilisation > 0.95, "{utilisation}");
    assert!((0.4..2.5).contains(&ratio), "{ratio}");
    assert!(waited < Duration::from_micros(48), "{waited}");
}

/// Goodput of the first flow over that of the second, from 20 round trips after the second came, for 500 us.
fn ratio_after_joining(stack: &str) -> f64 {
    let joined = Duration::from_millis(1) + RTT * 20;
    let end = joined + Duration::from_micros(500);
    let outcome = two_flows(stack, Some(FeedbackConfig::Int), joined, end);
    let goodput = |flow: usize| outcome.flows[flow].goodput_mbps.expect("a measured flow");
    goodput(0) / goodput(1)
}

/// Case F5. The paper's rule for the additive step is `rate (1 - eta) / N`: 2.5 Gbit/s for two flows, which takes
/// a twentieth of a difference away per round trip. The default, for 100 flows, takes a thousandth.
#[test]
fn hpcc_flows_come_together_by_the_additive_step() {
    let ratio = ratio_after_joining("rack/hpcc(wai=2500mbit)");
    assert!((0.9..=1.1).contains(&ratio), "{ratio}");
    let ratio = ratio_after_joining("rack/hpcc");
    assert!((0.75..=1.33).contains(&ratio), "{ratio}");
}

/// Case F5. The link carries eta of its rate, and the queue is below a tenth of the bandwidth-delay product of
/// 162.5 KB.
#[test]
fn hpcc_leaves_the_queue_empty() {
    let int = Some(FeedbackConfig::Int);
    let (rest, end) = (Duration::from_millis(3), Duration::from_millis(13));
    let outcome = two_flows("rack/hpcc", int, rest, end);
    let link = &outcome.links[0];
    let utilisation = link.utilisation.expect("the link has a rate");
    assert!((0.94..=0.96).contains(&utilisation), "{utilisation}");
    assert!(link.queue_packets_mean * 1_500.0 < 16_250.0, "{}", link.queue_packets_mean);
    assert_eq!((link.dropped_queue, link.marked), (0, 0));
}

/// Without records HPCC is Reno.
#[test]
fn hpcc_without_telemetry_is_reno() {
    let (warmup, duration) = (Duration::ZERO, Duration::from_millis(3));
    let acked = |stack| {
        let outcome = two_flows(stack, None, warmup, duration);
        outcome.flows.iter().map(|row| row.sent_segments).collect::<Vec<_>>()
    };
    let (hpcc, reno) = (acked("rack/hpcc"), acked("rack/reno"));
    for (hpcc, reno) in hpcc.into_iter().zip(reno) {
        // Its packets have no less space: a peer that returns no feedback agrees on none.
        assert!((hpcc as f64 / reno as f64 - 1.0).abs() < 0.1, "{hpcc} {reno}");
    }
}

//! What their sources say of Prague, BBRv2 with marks, LEDBAT and Copa, over one bottleneck.

use crate::common::{Flow, Path, over, secs};
use weir_net::{EcnStepConfig, Limit, LinkConfig, QueueConfig, StepThreshold};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec};
use weir_sim::run;
use weir_units::{BufferSize, Duration, Instant, Rate};

/// A minute of these flows without its first third.
fn minute(path: &Path, flows: &[Flow]) -> Outcome {
    let mut spec = path.spec(flows, secs(60));
    spec.measure.warmup = secs(20);
    run(&spec, 1).expect("a run")
}

fn utilisation(outcome: &Outcome) -> f64 {
    outcome.links[0].utilisation.expect("the link has a rate")
}

/// The first flow's goodput over the second's.
fn ratio(outcome: &Outcome) -> f64 {
    outcome.flows[0].goodput_mbps.expect("a measured flow")
        / outcome.flows[1].goodput_mbps.expect("a measured flow")
}

/// Flows of these round trips over 50 Mbit/s that mark what waits for longer than a millisecond, which is
/// how RFC 9332's queue treats ECT(1) while no other traffic is there.
fn under_step_marking(stacks: &[&str], rtts_ms: &[u64]) -> Outcome {
    let rtts: Vec<_> = rtts_ms.iter().map(|ms| Duration::from_millis(*ms)).collect();
    let step = EcnStepConfig {
        limit: Limit::Packets(1_000),
        threshold: StepThreshold::Sojourn(Duration::from_millis(1)),
    };
    let reverse = LinkConfig::new(Rate::from_mbit(50), Duration::from_millis(1));
    let forward = LinkConfig { queue: QueueConfig::EcnStep(step), ..reverse.clone() };
    let topology = Dumbbell { forward, reverse, access: Access::None, rtts };
    let topology = topology.build().expect("a topology");
    let flows =
        stacks.iter().zip(topology.routes).enumerate().map(|(index, (stack, route))| FlowSpec {
            name: format!("flow {index}"),
            route_forward: route.forward,
            route_reverse: route.reverse,
            transport: over(stack),
            workload: Flow::bulk(stack).workload,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        });
    let measure = MeasureSpec { duration: secs(60), warmup: secs(20), ..MeasureSpec::default() };
    run(
        &RunSpec {
            radio: None,
            fabric: None,
            flows: flows.collect(),
            links: topology.links,
            measure,
        },
        1,
    )
    .expect("a run")
}

/// The draft's abstract: "consistently low latency and full throughput": it stays at the threshold, of which a round
/// trip's growth and a packet are the excess, and loses nothing. Two flows are fair.
#[test]
fn prague_stays_at_the_marking_threshold() {
    for rtt in [5, 20, 80] {
        for stacks in [&["prague"][..], &["prague", "prague"]] {
            let outcome = under_step_marking(stacks, &[rtt; 2][..stacks.len()]);
            let link = &outcome.links[0];
            assert!(utilisation(&outcome) > 0.95, "{rtt} ms: {}", utilisation(&outcome));
            assert!(link.queue_delay_ms_p99.is_some_and(|ms| ms < 1.5), "{rtt} ms: {link:?}");
            assert!(link.marked > 0 && link.dropped_queue == 0, "{rtt} ms: {link:?}");
            let jain = outcome.summary.jain_index.unwrap_or(1.0);
            assert!(jain > 0.99, "{rtt} ms: {jain}");
        }
    }
}

/// Draft §2.4.4: below 25 ms rates do not depend on the round trip. Without that, and above, windows are what is
/// fair under a common mark, so that rates differ as the round trips at least.
#[test]
fn prague_is_independent_of_round_trips_up_to_25_ms() {
    let ratio_of = |stack: &str, rtts: &[u64]| ratio(&under_step_marking(&[stack; 2], rtts));
    let independent = ratio_of("prague", &[5, 25]);
    assert!((0.8..1.25).contains(&independent), "{independent}");
    assert!(ratio_of("prague(rtt=0ms)", &[5, 25]) > 5.0);
    assert!(ratio_of("prague", &[10, 50]) > 2.0, "the longer is not shortened");
}

/// `ecn_enable` of BBRv2's source, on paths of up to 5 ms: marks take the place of the standing queue of several flows, which share.
#[test]
fn bbr2_keeps_the_queue_of_a_short_path_below_the_marking_threshold() {
    let [on, off] = ["bbr2(ecn=on)", "bbr2"].map(|stack| under_step_marking(&[stack; 2], &[4; 2]));
    let mean = |outcome: &Outcome| outcome.links[0].queue_packets_mean;
    assert!(on.links[0].marked > 0 && off.links[0].marked == 0, "only one has ECN");
    assert!(mean(&on) < mean(&off) / 4.0, "{} {}", mean(&on), mean(&off));
    assert!(on.links[0].queue_delay_ms_p50.is_some_and(|ms| ms < 1.0), "{:?}", on.links[0]);
    assert!(utilisation(&on) > 0.9, "{}", utilisation(&on));
    assert!(on.summary.jain_index.is_some_and(|jain| jain > 0.95), "{:?}", on.summary);
}

/// A loss is answered as by Reno, so that over a queue that drops the two share: neither
/// has twice the other's, though one of them is paced.
#[test]
fn prague_falls_back_to_reno_where_nothing_marks() {
    let outcome = minute(&Path::default(), &[Flow::bulk("prague"), Flow::bulk("reno")]);
    assert!((0.5..2.0).contains(&ratio(&outcome)), "{}", ratio(&outcome));
    assert!(outcome.flows.iter().all(|flow| flow.retransmits > 0));
}

/// 10 Mbit/s and 40 ms with a queue of four times LEDBAT's target.
fn deep() -> Path {
    Path { queue: BufferSize::Time(Duration::from_millis(400)), ..Path::default() }
}

/// RFC 6817 §1: alone it fills the link and adds its target. Delays count in milliseconds, and the
/// smallest of four lies up to three packets of 1.2 ms below the mean.
#[test]
fn ledbat_adds_its_target_of_delay() {
    for (stack, target_ms) in [("ledbat", 100.0), ("ledbat(target=25ms)", 25.0)] {
        let outcome = minute(&deep(), &[Flow::bulk(stack)]);
        let added = outcome.links[0].queue_delay_ms_p50.expect("a queue");
        assert!((added - target_ms).abs() < 1.0 + 3.0 * 1.2, "{stack}: {added}");
        assert!(utilisation(&outcome) > 0.99, "{stack}: {}", utilisation(&outcome));
        assert_eq!(outcome.links[0].dropped_queue, 0);
    }
}

/// RFC 6817 §1: it yields to TCP, whose queue is longer than the target. In a queue shorter than the target
/// it meets losses first, and is as aggressive as Reno.
#[test]
fn ledbat_yields_to_those_that_queue_more_than_its_target() {
    for other in ["cubic", "reno"] {
        let flows = [Flow::bulk("ledbat"), Flow::bulk(other)];
        let yielding = minute(&deep(), &flows);
        assert!(ratio(&yielding) < 0.05, "{other}: {}", ratio(&yielding));
        assert!(utilisation(&yielding) > 0.99, "{other}: {}", utilisation(&yielding));
        let hidden = minute(&Path::default(), &flows);
        assert!((0.5..2.0).contains(&ratio(&hidden)), "{other}: {}", ratio(&hidden));
    }
}

/// RFC 6817 §2.3: delays are one-way, so that a queue on the way back is not taken for one on the way there. A
/// CUBIC flow fills it, 400 ms long. The round trip is so long that growth takes minutes, but the window
/// does grow; without timestamps there are only round trips, and it yields to what is not in its way.
#[test]
fn ledbat_ignores_queues_on_the_way_back() {
    let goodput = |timestamps: bool| {
        let mut flow = Flow::bulk("ledbat");
        if let TransportSpec::Reliable(config) = &mut flow.transport {
            config.timestamps = timestamps;
        }
        let mut spec = deep().spec(&[flow, Flow::bulk("cubic")], secs(60));
        spec.measure.warmup = secs(20);
        spec.links[1].config = spec.links[0].config.clone();
        let back = &mut spec.flows[1];
        std::mem::swap(&mut back.route_forward, &mut back.route_reverse);
        let outcome = run(&spec, 1).expect("a run");
        let waits = outcome.links[1].queue_delay_ms_p50.expect("a queue");
        assert!(waits > 200.0, "the way back waits {waits} ms");
        outcome.flows[0].goodput_mbps.expect("a measured flow")
    };
    let (one_way, round_trip) = (goodput(true), goodput(false));
    assert!(one_way > 10.0 * round_trip, "{one_way} and {round_trip} Mbit/s");
}

/// Arun and Balakrishnan 2018: in equilibrium the queue of `N` flows goes from none to 2.5 N / delta packets, on average
/// half of that, and their rates are the same.
#[test]
fn copa_keeps_a_few_packets_in_the_queue_and_is_fair() {
    for rate in [10, 50] {
        let path = Path { rate: Rate::from_mbit(rate), ..Path::default() };
        for (stack, count) in [("copa", 1), ("copa(mode=default)", 1), ("copa", 4)] {
            let flows: Vec<_> = (0..count).map(|i| Flow::bulk(stack).starting(i * 3)).collect();
            let outcome = minute(&path, &flows);
            let (queued, each) = (outcome.links[0].queue_packets_mean, 1.25 / 0.5);
            assert!(queued < 2.0 * each * count as f64, "{rate}, {stack}: {queued}");
            assert!(utilisation(&outcome) > 0.95, "{rate}, {stack}: {}", utilisation(&outcome));
            assert_eq!(outcome.links[0].dropped_queue, 0, "{rate}, {stack}");
            let jain = outcome.summary.jain_index.unwrap_or(1.0);
            assert!(jain > 0.99, "{rate}, {stack}: {jain}");
        }
    }
}

/// Found by `weir search starve`: a velocity that outlived the crossing of the target pushed one of two equal flows
/// down to a tenth of the other.
#[test]
fn equal_flows_of_copa_stay_equal_over_a_long_fat_path() {
    for (rate, rtt) in [(105, 85), (220, 80), (120, 60)] {
        let path = Path {
            rate: Rate::from_mbit(rate),
            rtt: Duration::from_millis(rtt),
            ..Path::default()
        };
        let outcome = minute(&path, &["copa(mode=default)"; 2].map(Flow::bulk));
        let share = ratio(&outcome);
        assert!((0.8..1.25).contains(&share), "{rate} Mbit/s, {rtt} ms: {share}");
    }
}

/// Arun and Balakrishnan 2018, §2.2: next to flows that fill the queue it competes, with about their rate; without that mode it starves.
#[test]
fn copa_competes_with_those_that_fill_the_queue() {
    for rate in [10, 50] {
        let path = Path { rate: Rate::from_mbit(rate), ..Path::default() };
        for other in ["cubic", "reno"] {
            let against = |stack| minute(&path, &[Flow::bulk(stack), Flow::bulk(other)]);
            let competing = against("copa");
            let share = ratio(&competing);
            assert!((0.5..2.0).contains(&share), "{rate}, {other}: {share}");
            assert!(competing.samples.iter().any(|row| row.phase == "competitive"));
            let share = ratio(&against("copa(mode=default)"));
            assert!(share < 0.25, "{rate}, {other}: {share}");
        }
    }
}

//! Files over long fat paths with the settings of real datagrams: 500 Mbit/s and 80 ms, 5 MB in flight.

#![allow(clippy::print_stdout, reason = "docs/speed.md has the figures")]

use weir_net::{Limit, LinkConfig, Schedule, Service};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, RunSpec, TransportSpec, Workload};
use weir_sim::run;
use weir_trace::FlowRow;
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

const RATE: Rate = Rate::from_mbit(500);
const RTT: Duration = Duration::from_millis(80);
const STACK: &str = "rack/bbr(overflow=avoid)";
const SHORT: Limit = Limit::Packets(100);

/// One file over `forward`; the way back loses as much.
fn transfer(
    stack: &str,
    pace_window: bool,
    size: Bytes,
    forward: LinkConfig,
    seed: u64,
) -> FlowRow {
    let reverse = LinkConfig { queue: LinkConfig::new(RATE, RTT).queue, ..forward.clone() };
    over(stack, pace_window, size, RTT, forward, reverse, seed)
}

fn over(
    stack: &str,
    pace_window: bool,
    size: Bytes,
    rtt: Duration,
    forward: LinkConfig,
    reverse: LinkConfig,
    seed: u64,
) -> FlowRow {
    let config = Config {
        stack: stack.parse().expect("a stack"),
        mss: 1_420,
        pace_window,
        ..Config::for_datagrams()
    };
    let dumbbell = Dumbbell { forward, reverse, access: Access::None, rtts: vec![rtt] };
    let topology = dumbbell.build().expect("the topology is sound");
    let spec = RunSpec {
        radio: None,
        fabric: None,
        flows: vec![FlowSpec {
            name: "file".to_owned(),
            route_forward: topology.routes[0].forward.clone(),
            route_reverse: topology.routes[0].reverse.clone(),
            transport: TransportSpec::Reliable(Box::new(config)),
            workload: Workload::File { size },
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        }],
        links: topology.links,
        measure: MeasureSpec { duration: Duration::from_secs(120), ..MeasureSpec::default() },
    };
    run(&spec, seed).expect("the run is sound").flows.remove(0)
}

fn link(queue: Limit) -> LinkConfig {
    LinkConfig::new(RATE, RTT / 2).with_limit(queue)
}

/// The share of data segments that were sent again.
fn resent(flow: &FlowRow) -> f64 {
    flow.retransmits as f64 / flow.sent_segments as f64
}

/// Bursts of 64 KB overflow a queue of 100 packets long before the path is full, and what an early
/// loss costs CUBIC and Reno on such a path is tens of seconds (RFC 9002 §7.7: pace, or bound bursts).
/// A paced slow start that looks for long trains of acknowledgements must not find its own pacing:
/// then CUBIC would be slower than without.
#[test]
fn paced_windows_fill_a_long_path_through_a_short_queue() {
    for stack in ["rack/cubic", "rack/reno"] {
        let [bursts, paced] = [false, true].map(|pace| {
            let flow = transfer(stack, pace, Bytes(60_000_000), link(SHORT), 1);
            flow.fct_s.expect("it ends")
        });
        assert!(paced < bursts / 2.0, "{stack}: {bursts} s in bursts, {paced} s paced");
    }
}

/// What is sent within a round trip after the queue is full is lost before anyone can know: startup
/// doubles, so this is 0.67 bandwidth-delay products, 1.6 % of 200 MB. A gradual probe adds 0.1 %. BBR as Linux
/// has it goes on for rounds, and each of its probes loses too. A queue of one bandwidth-delay product never overflows.
#[test]
fn bbr_for_datagrams_overflows_a_queue_once() {
    for (queue, most) in [(SHORT, 0.018), (Limit::Packets(3_500), 0.002)] {
        let [_, _, linux, ours] =
            ["rack/cubic", "rack/bbr3", "rack/bbr", "rack/bbr(overflow=avoid)"].map(|stack| {
                let flow = transfer(stack, true, Bytes(200_000_000), link(queue), 1);
                let (time, share) = (flow.fct_s.expect("it ends"), resent(&flow));
                println!("{queue:?}: {stack} {time:.2} s, {:.1} % sent again", 100.0 * share);
                (time, share)
            });
        assert!(ours.1 < most && linux.1 > 0.04, "{queue:?}: {ours:?}, as Linux {linux:?}");
        assert!(ours.0 < linux.0 * 1.01, "{queue:?}: {ours:?}, as Linux {linux:?}");
    }
}

/// The same over paths that hold hundreds of segments: a doubling startup has sent 1/ln 2 - 1 = 0.44
/// bandwidth-delay products too much when the first overflow can show, and more the later it is detected.
#[test]
fn startup_of_bbr_for_datagrams_overshoots_by_less_than_its_path_holds() {
    println!("rate, RTT, queue in BDP: sent again in BDP, time in RTTs");
    for (mbit, millis) in [(50, 80), (500, 20), (500, 80), (2_000, 80)] {
        let (rate, rtt) = (Rate::from_mbit(mbit), Duration::from_millis(millis));
        let bdp = rate.bytes_in(rtt);
        for hundredths in [3, 10, 25, 50, 100] {
            let queue = Limit::Bytes(Bytes(bdp.get() * hundredths / 100));
            let forward = LinkConfig::new(rate, rtt / 2).with_limit(queue);
            let reverse = LinkConfig { queue: LinkConfig::new(rate, rtt).queue, ..forward.clone() };
            let flow = over(STACK, true, bdp * 12, rtt, forward, reverse, 1);
            let again = (flow.retransmits * 1_420) as f64 / bdp.get() as f64;
            let rtts = flow.fct_s.expect("it ends") / rtt.as_secs_f64();
            println!("{rate} {rtt} {:.2}: {again:.2} {rtts:.1}", hundredths as f64 / 100.0);
            assert!(again < 1.0, "{rate} {rtt} {hundredths} %: {again} BDP sent again");
        }
    }
}

/// In a long transfer every 2 s a probe overflows the short queue. At 5/4 each would lose 0.22
/// bandwidth-delay products, 0.9 % of what is sent meanwhile.
#[test]
fn probes_of_bbr_for_datagrams_lose_little_of_a_long_transfer() {
    let flow = transfer(STACK, true, Bytes(1_000_000_000), link(SHORT), 1);
    let (time, share) = (flow.fct_s.expect("it ends"), resent(&flow));
    println!("1 GB: {time:.2} s, {:.2} % sent again", 100.0 * share);
    assert!(share < 0.006 && time < 17.8, "{share} in {time} s");
}

/// A queue that overflows once does not keep the sender from finding a rate that grows later.
#[test]
fn bbr_for_datagrams_finds_a_rate_that_grows_after_an_overflow() {
    let mut forward = link(SHORT);
    let faster = Instant::ZERO + Duration::from_secs(3);
    let steps = vec![(faster, Rate::from_mbit(2_000))];
    forward.service = Service::Rate(Schedule { initial: RATE, steps });
    let flow = transfer(STACK, true, Bytes(1_000_000_000), forward, 1);
    let time = flow.fct_s.expect("it ends");
    println!("rate times four after 3 s: {time:.2} s");
    assert!(time < 8.0, "{time} s");
}

/// Random loss is no overflow: startup goes on, however much is lost, and no faster than without.
#[test]
fn bbr_for_datagrams_grows_through_random_loss() {
    for (percent, most_s) in [(1, 1.0), (5, 1.1), (25, 3.0)] {
        let mut forward = LinkConfig::new(Rate::from_mbit(3_000), RTT / 2);
        forward.impairments.loss = Ratio::from_percent(percent);
        for seed in 1..=5 {
            let flow =
                transfer("rack/bbr(overflow=avoid)", true, Bytes(2_800_000), forward.clone(), seed);
            assert!(flow.fct_s.is_some_and(|s| s < most_s), "{percent} %: {:?}", flow.fct_s);
        }
    }
}

/// 200 MB with a share of 1 % lost need 16.85 s of the link. Startup costs 1.2 s of it, and PROBE_RTT another 0.44 s
/// where it is not left out.
#[test]
fn bbr_for_datagrams_keeps_a_lossy_path_full() {
    let (rate, rtt) = (Rate::from_mbit(100), Duration::from_millis(150));
    let queue = Limit::Bytes(rate.bytes_in(rtt));
    let mut forward = LinkConfig::new(rate, rtt / 2).with_limit(queue);
    forward.impairments.loss = Ratio::from_percent(1);
    let reverse = LinkConfig { queue: LinkConfig::new(rate, rtt).queue, ..forward.clone() };
    for seed in 1..=3 {
        let size = Bytes(200_000_000);
        let flow = over(STACK, true, size, rtt, forward.clone(), reverse.clone(), seed);
        let time = flow.fct_s.expect("it ends");
        println!("seed {seed}: {time:.2} s");
        assert!(time < 18.4, "seed {seed}: {time} s");
    }
}

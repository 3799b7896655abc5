//! Files over long fat paths with the settings of real datagrams: 500 Mbit/s and 80 ms, 5 MB in flight.

use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, Workload};
use weir_sim::run;
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rate};

const RATE: Rate = Rate::from_mbit(500);
const RTT: Duration = Duration::from_millis(80);

fn transfer(config: &Config, size: Bytes, queue: Limit) -> Outcome {
    let link = LinkConfig::new(RATE, RTT / 2);
    let forward = link.clone().with_limit(queue);
    let dumbbell = Dumbbell { forward, reverse: link, access: Access::None, rtts: vec![RTT] };
    let topology = dumbbell.build().expect("the topology is sound");
    let spec = RunSpec {
        radio: None,
        flows: vec![FlowSpec {
            name: "file".to_owned(),
            route_forward: topology.routes[0].forward.clone(),
            route_reverse: topology.routes[0].reverse.clone(),
            transport: TransportSpec::Reliable(Box::new(config.clone())),
            workload: Workload::File { size },
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        }],
        links: topology.links,
        measure: MeasureSpec { duration: Duration::from_secs(120), ..MeasureSpec::default() },
    };
    run(&spec, 1).expect("the run is sound")
}

/// How many seconds 60 MB take over a queue of 100 packets.
fn over_a_short_queue(stack: &str, pace_window: bool) -> f64 {
    let config = Config {
        stack: stack.parse().expect("a stack"),
        mss: 1_420,
        pace_window,
        ..Config::for_datagrams()
    };
    let outcome = transfer(&config, Bytes(60_000_000), Limit::Packets(100));
    outcome.flows[0].fct_s.expect("it ends")
}

/// Bursts of 64 KB overflow a queue of 100 packets long before the path is full, and what an early
/// loss costs CUBIC and Reno on such a path is tens of seconds (RFC 9002 §7.7: pace, or bound bursts).
/// A paced slow start that looks for long trains of acknowledgements must not find its own pacing:
/// then CUBIC would be slower than without.
#[test]
fn paced_windows_fill_a_long_path_through_a_short_queue() {
    for stack in ["rack/cubic", "rack/reno"] {
        let [bursts, paced] = [false, true].map(|pace| over_a_short_queue(stack, pace));
        assert!(paced < bursts / 2.0, "{stack}: {bursts} s in bursts, {paced} s paced");
    }
}

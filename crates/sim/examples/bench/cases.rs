//! Fixed dumbbells over three hops: what a benchmark measures, and what a test counts the instructions of.

use std::sync::Arc;

use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{
    Ends, FlowSizes, FlowSpec, MeasureSpec, Pattern, RunSpec, SizeDistribution, TransportSpec,
    Workload,
};
use weir_transport::Config;
use weir_units::{BufferSize, Duration, Instant, Rate};

/// Flows over one dumbbell.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    flows: usize,
    mbit: u64,
    rtt: Duration,
    duration: Duration,
    /// Number of connections that come and go, instead of endless ones.
    arrivals: Option<u64>,
}

const fn case(name: &'static str, flows: usize, mbit: u64, rtt_ms: u64, secs: u64) -> Case {
    let (rtt, duration) = (Duration::from_millis(rtt_ms), Duration::from_secs(secs));
    Case { name, flows, mbit, rtt, duration, arrivals: None }
}

/// Connections with a tenth of web-search's sizes at a load of 0.6, for as long as they take.
const fn web(name: &'static str, arrivals: u64, mbit: u64, rtt_ms: u64) -> Case {
    Case { arrivals: Some(arrivals), ..case(name, 1, mbit, rtt_ms, 1_000_000) }
}

/// Bytes, and the share of connections that are at most so large.
const SIZES: &[(u64, f64)] = &[
    (0, 0.0),
    (1_000, 0.15),
    (2_000, 0.2),
    (3_000, 0.3),
    (5_000, 0.4),
    (8_000, 0.53),
    (20_000, 0.6),
    (100_000, 0.7),
    (200_000, 0.8),
    (500_000, 0.9),
    (1_000_000, 0.97),
    (3_000_000, 1.0),
];

/// The three cases that simulators are compared on, and flows of 10 Mbit/s each in growing numbers,
/// for what a packet costs; and connections that come and go.
pub(crate) const CASES: &[Case] = &[
    case("1x100m", 1, 100, 40, 60),
    case("16x1g", 16, 1_000, 10, 20),
    case("2x10g", 2, 10_000, 10, 5),
    case("1x10m", 1, 10, 40, 600),
    case("10x10m", 10, 100, 40, 200),
    case("100x10m", 100, 1_000, 40, 20),
    case("1000x10m", 1_000, 10_000, 40, 5),
    case("10000x10m", 10_000, 100_000, 40, 2),
    web("web-10k", 10_000, 1_000, 10),
    web("web-100k", 100_000, 1_000, 10),
];

impl Case {
    /// The run, whose flows have this stack.
    pub(crate) fn spec(&self, stack: &str) -> RunSpec {
        let rate = Rate::from_mbit(self.mbit);
        let link = LinkConfig::new(rate, self.rtt / 2);
        let limit = Limit::resolve(BufferSize::Bdp(1_000), rate, self.rtt);
        let dumbbell = Dumbbell {
            forward: link.clone().with_limit(limit),
            reverse: link,
            access: Access::Rate(Rate::from_mbit(10 * self.mbit)),
            rtts: vec![self.rtt; self.flows],
        };
        let topology = dumbbell.build().expect("the topology is sound");
        let stack = stack.parse().expect("a stack");
        let config = Config { stack, ..Config::default() };
        let flows = topology.routes.into_iter().enumerate().map(|(index, route)| FlowSpec {
            name: format!("flow {index}"),
            route_forward: route.forward,
            route_reverse: route.reverse,
            transport: TransportSpec::Reliable(Box::new(config.clone())),
            workload: self.workload(),
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::from_millis(100),
            ends: Ends::Kernel,
        });
        RunSpec {
            radio: None,
            fabric: None,
            flows: flows.collect(),
            links: topology.links,
            measure: MeasureSpec { duration: self.duration, ..MeasureSpec::default() },
        }
    }

    fn workload(&self) -> Workload {
        let Some(count) = self.arrivals else { return Workload::Bulk };
        let sizes = SizeDistribution::new(SIZES).expect("a distribution");
        let wire = sizes.mean() + 52.0 * sizes.mean_segments(1_448);
        let mean_gap = Duration::from_nanos((wire * 8e3 / (0.6 * self.mbit as f64)) as u64);
        Workload::FlowSizes(FlowSizes {
            sizes: Arc::new(sizes),
            mean_gap,
            count: Some(count),
            pattern: Pattern::One,
        })
    }
}

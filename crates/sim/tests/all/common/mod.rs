//! A few lines from parameters to a run, for tests that read as scripts.

use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell, Topology};
use weir_scene::{
    Ends, FlowSpec, MeasureSpec, Outcome, RunSpec, TransportSpec, UdpConfig, Workload,
};
use weir_sim::run;
use weir_transport::Config;
use weir_units::{BufferSize, Bytes, Duration, Instant, Rate};

/// A path through one bottleneck: 10 Mbit/s, 40 ms, a queue of one BDP by default.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    pub(crate) rtt: Duration,
    pub(crate) queue: BufferSize,
    pub(crate) forward: LinkConfig,
    pub(crate) reverse: LinkConfig,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(10),
            rtt: Duration::from_millis(40),
            queue: BufferSize::Bdp(1_000),
            forward: LinkConfig::default(),
            reverse: LinkConfig::default(),
        }
    }
}

impl Path {
    pub(crate) fn topology(&self, flows: usize) -> Topology {
        let link = LinkConfig::new(self.rate, self.rtt / 2);
        let limit = Limit::resolve(self.queue, self.rate, self.rtt);
        let forward = LinkConfig { impairments: self.forward.impairments.clone(), ..link.clone() };
        let reverse = LinkConfig { impairments: self.reverse.impairments.clone(), ..link };
        let dumbbell = Dumbbell {
            forward: forward.with_limit(limit),
            reverse,
            access: Access::None,
            rtts: vec![self.rtt; flows],
        };
        dumbbell.build().expect("the topology is sound")
    }

    /// A run of these flows for so long, the first tenth as warm-up if `warm`.
    pub(crate) fn spec(&self, flows: &[Flow], duration: Duration) -> RunSpec {
        let topology = self.topology(flows.len());
        let measure = MeasureSpec { duration, ..MeasureSpec::default() };
        spec_of(flows, topology, measure)
    }

    pub(crate) fn run(&self, flows: &[Flow], duration: Duration) -> Outcome {
        run(&self.spec(flows, duration), 1).expect("the run is sound")
    }
}

/// These flows, each over its route of the topology.
pub(crate) fn spec_of(flows: &[Flow], topology: Topology, measure: MeasureSpec) -> RunSpec {
    let routed = flows.iter().zip(topology.routes).enumerate();
    let flows = routed.map(|(index, (flow, route))| FlowSpec {
        name: format!("flow {index}"),
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: flow.transport.clone(),
        workload: flow.workload.clone(),
        start: flow.start,
        stop: flow.stop,
        start_jitter: flow.jitter,
        ends: Ends::Kernel,
    });
    RunSpec { radio: None, fabric: None, flows: flows.collect(), links: topology.links, measure }
}

/// What a flow does; its route is its path's.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) transport: TransportSpec,
    pub(crate) workload: Workload,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    pub(crate) jitter: Duration,
}

impl Flow {
    pub(crate) fn new(transport: TransportSpec, workload: Workload) -> Self {
        let (start, stop, jitter) = (Instant::ZERO, None, Duration::ZERO);
        Self { transport, workload, start, stop, jitter }
    }

    /// An endless transfer over this stack.
    pub(crate) fn bulk(stack: &str) -> Self {
        Self::new(over(stack), Workload::Bulk)
    }

    /// A transfer of `bytes` bytes.
    pub(crate) fn file(stack: &str, size: u64) -> Self {
        Self::new(over(stack), Workload::File { size: Bytes(size) })
    }

    pub(crate) fn udp(workload: Workload) -> Self {
        Self::new(TransportSpec::Udp(UdpConfig::default()), workload)
    }

    pub(crate) fn starting(self, secs: u64) -> Self {
        Self { start: Instant::ZERO + Duration::from_secs(secs), ..self }
    }

    pub(crate) fn stopping(self, secs: u64) -> Self {
        Self { stop: Some(Instant::ZERO + Duration::from_secs(secs)), ..self }
    }

    pub(crate) fn jittered(self, millis: u64) -> Self {
        Self { jitter: Duration::from_millis(millis), ..self }
    }
}

pub(crate) fn over(stack: &str) -> TransportSpec {
    let config = Config { stack: stack.parse().expect("a stack"), ..Config::default() };
    TransportSpec::Reliable(Box::new(config))
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

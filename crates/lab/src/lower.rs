//! From a scenario to the links and flows of the simulated world.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_foreign::Settings;
use weir_net::{Counting, DropTailConfig, Limit, LinkConfig, Numbering, Service};
use weir_radio::NodeId;
use weir_scene::topology::{
    Access, Chain, Dumbbell, Hop, HostConfig, LabRouter, Relay, Route, Span, Topology as Built,
    TopologyError, parking_lot_spans,
};
use weir_scene::{
    FabricSpec, FlowSpec, MeasureSpec, RadioPath, RunSpec, SpecError, TransportSpec, UdpConfig,
    Workload as Model,
};
use weir_transport::Config;
use weir_units::{BufferSize, Bytes, Duration, Rate};

use crate::arrivals::{FlowContext, arrivals};
use crate::direction::{Direction, FULL_PACKET, after, mean_rate, shape};
use crate::error::Problem;
use crate::fabric::{BuiltFabric, fabric};
use crate::feedback::Feedback;
use crate::flow::{Flow, Protocol};
use crate::graph::{drawn_hosts, graph};
use crate::hosts::name_hosts;
use crate::queue::{self, Queue};
use crate::scenario_file::ScenarioFile;
use crate::topology::{RelayKind, Topology, TopologyKind};

/// How many scenarios this process has lowered.
pub fn lowered() -> u64 {
    LOWERED.load(Ordering::Relaxed)
}

static LOWERED: AtomicU64 = AtomicU64::new(0);

/// What worlds run of `scenario`, whose keys have been checked one by one. What they describe together is
/// checked here, and nowhere after.
///
/// # Errors
/// If a link cannot be as it is described, no way leads from one end of a flow to the other, or the
/// world as a whole contradicts itself.
pub(crate) fn lower(scenario: &ScenarioFile) -> Result<RunSpec, Problem> {
    LOWERED.fetch_add(1, Ordering::Relaxed);
    let flows: Vec<&Flow> = scenario
        .flow
        .iter()
        .flat_map(|flow| std::iter::repeat_n(flow, flow.count as usize))
        .collect();
    if scenario.topology.kind == TopologyKind::Radio {
        return over_radio(scenario, &flows);
    }
    let BuiltNetwork { mut built, fabric } = network(&scenario.topology, &flows)?;
    for (index, flow) in flows.iter().enumerate() {
        if !flow.host_time.is_zero() {
            built.add_hosts(index, &host(flow));
        }
        if !flow.send_time.is_zero() {
            built.add_preparation(index, flow.send_time, flow.send_jitter);
        }
    }
    name_hosts(&mut built, scenario.topology.kind, &flows);
    for link in &built.links {
        link.config
            .validate()
            .map_err(|error| Problem::new("topology", format!("link '{}': {error}", link.name)))?;
    }
    let mut specs = Vec::with_capacity(flows.len());
    let mut routes = built.routes.into_iter();
    for (index, flow) in scenario.flow.iter().enumerate() {
        let fabric = fabric.as_ref();
        let place = FlowContext {
            section: format!("flow.{index}.workload"),
            end: scenario.measure.duration,
            hosts: fabric.filter(|_| flow.workload.makes_connections()).and_then(|fabric| {
                drawn_hosts(&scenario.topology, fabric.ends[specs.len()], &fabric.forwarding)
            }),
        };
        for (number, (name, route)) in flow.names().zip(&mut routes).enumerate() {
            let mut spec = flow_spec(flow, name, number as u64, route);
            let listed = flow.workload.listed().zip(fabric);
            if let Some((list, fabric)) = listed {
                let key = format!("flow.{index}.workload.list");
                spec.workload = list.model(&key, &fabric.forwarding)?;
            } else if flow.workload.makes_connections() {
                spec.workload = arrivals(&flow.workload, &place, &spec, &built.links)?;
            }
            specs.push(spec);
        }
    }
    let spec = RunSpec {
        radio: None,
        fabric,
        links: built.links,
        flows: specs,
        measure: measure(scenario),
    };
    weir_scene::validate(&spec).map_err(|error| {
        let key = if matches!(error, SpecError::Buffer { .. }) { "topology.buffer" } else { "" };
        Problem::new(key, error.to_string())
    })?;
    Ok(spec)
}

/// Nodes that share a channel, and flows between them.
fn over_radio(scenario: &ScenarioFile, flows: &[&Flow]) -> Result<RunSpec, Problem> {
    let topology = &scenario.topology;
    let mut radio = topology.radio.build()?;
    let nodes = topology.nodes();
    for (index, flow) in flows.iter().enumerate() {
        let path = match ends(flow, &nodes) {
            Some(Span { from, to }) => {
                RadioPath { from: NodeId(from as u16), to: NodeId(to as u16) }
            }
            None => topology.radio.usual_path(&radio, index),
        };
        radio.paths.push(path);
    }
    let named = scenario
        .flow
        .iter()
        .flat_map(|flow| flow.names().enumerate().map(move |(number, name)| (flow, number, name)));
    let flows =
        named.map(|(flow, number, name)| flow_spec(flow, name, number as u64, Route::default()));
    let spec = RunSpec {
        links: Vec::new(),
        radio: Some(radio),
        fabric: None,
        flows: flows.collect(),
        measure: measure(scenario),
    };
    weir_scene::validate(&spec).map_err(|error| Problem::new("", error.to_string()))?;
    Ok(spec)
}

fn measure(scenario: &ScenarioFile) -> MeasureSpec {
    let measure = &scenario.measure;
    let interval = measure.sample_interval;
    MeasureSpec {
        duration: measure.duration,
        warmup: measure.warmup,
        sample_interval: (!interval.is_zero()).then_some(interval),
        max_events: measure.events as usize,
        max_requests: measure.requests as usize,
        max_arrivals: measure.arrivals as usize,
        max_acks: measure.acks as usize,
        max_frames: measure.frames as usize,
    }
}

/// Links and routes, and the switches that choose among links.
struct BuiltNetwork {
    built: Built,
    fabric: Option<FabricSpec>,
}

fn network(topology: &Topology, flows: &[&Flow]) -> Result<BuiltNetwork, Problem> {
    let access = topology.access_rate.map_or(Access::None, Access::Rate);
    let built = match topology.kind {
        TopologyKind::Dumbbell => dumbbell(topology, flows, access)?,
        TopologyKind::ParkingLot | TopologyKind::Chain => chain(topology, flows, access)?,
        TopologyKind::Graph => {
            let (graph, fabric) = graph(topology, flows, access)?;
            let built = graph.build().map_err(unbuildable)?;
            return Ok(BuiltNetwork { built, fabric });
        }
        TopologyKind::LeafSpine | TopologyKind::FatTree => {
            let BuiltFabric { built, spec } = fabric(topology, flows);
            return Ok(BuiltNetwork { built, fabric: Some(spec) });
        }
        TopologyKind::LabRouter => lab_router(topology, flows.len()),
        // It has no links.
        TopologyKind::Radio => Built::default(),
    };
    Ok(BuiltNetwork { built, fabric: None })
}

/// The bottleneck takes the delay that all flows have in common; what a flow has beyond that lies
/// on its own links.
fn dumbbell(topology: &Topology, flows: &[&Flow], access: Access) -> Result<Built, Problem> {
    let rtts: Vec<Duration> = flows.iter().map(|flow| flow.rtt.unwrap_or(topology.rtt)).collect();
    let shared = rtts.iter().copied().min().unwrap_or(topology.rtt);
    let forward = bottleneck(topology, &topology.forward, shared / 2, Numbering::Data);
    let reverse = bottleneck(topology, &topology.reverse, shared - shared / 2, Numbering::Any);
    Dumbbell { forward, reverse, access, rtts }.build().map_err(unbuildable)
}

/// Each hop has its share of the row's round trip; a parking lot without ends named has the usual
/// flows.
fn chain(topology: &Topology, flows: &[&Flow], access: Access) -> Result<Built, Problem> {
    let hops = u64::from(topology.hops);
    let delay = topology.rtt / 2 / hops;
    let hop = Hop {
        forward: bottleneck(topology, &topology.forward, delay, Numbering::Data),
        reverse: bottleneck(topology, &topology.reverse, delay, Numbering::Any),
    };
    let defaults = match topology.kind {
        TopologyKind::ParkingLot => parking_lot_spans(hops as usize, flows.len()),
        _ => vec![Span { from: 0, to: hops as usize }; flows.len()],
    };
    let nodes = topology.nodes();
    let spans = flows.iter().zip(defaults).map(|(flow, span)| ends(flow, &nodes).unwrap_or(span));
    let spans = spans.collect();
    Chain { hops: vec![hop; hops as usize], access, spans }.build().map_err(unbuildable)
}

/// The serial relay is one server for both directions; what else goes wrong in a direction happens
/// on the way to it.
fn lab_router(topology: &Topology, flows: usize) -> Built {
    let forward = relay_way(&topology.forward, Numbering::Data);
    let reverse = relay_way(&topology.reverse, Numbering::Any);
    let relay = match topology.relay {
        RelayKind::Serial => {
            let buffer = Limit::resolve(relay_buffer(topology), Rate::ZERO, Duration::ZERO);
            Relay::Serial(LinkConfig::serial_relay(topology.delay, topology.reverse_delay, buffer))
        }
        RelayKind::DelayLine => Relay::DelayLine {
            forward: LinkConfig { delay: topology.delay.into(), ..LinkConfig::default() },
            reverse: LinkConfig { delay: topology.reverse_delay.into(), ..LinkConfig::default() },
        },
    };
    LabRouter { relay, forward, reverse, flows }.build()
}

pub(crate) fn relay_way(direction: &Direction, numbering: Numbering) -> Option<LinkConfig> {
    if *direction == Direction::default() {
        return None;
    }
    let service = direction.rate.map(|rate| Service::Rate(rate.into()));
    let mut config = LinkConfig {
        queue: queue::config(direction.queue.as_ref(), Rate::ZERO, Duration::ZERO, FULL_PACKET),
        service: service.unwrap_or(Service::Infinite),
        ..LinkConfig::default()
    };
    direction.impair(&mut config, numbering);
    shape(&mut config, direction.burst);
    Some(config)
}

fn bottleneck(
    topology: &Topology,
    direction: &Direction,
    delay: Duration,
    numbering: Numbering,
) -> LinkConfig {
    let rate = direction.rate.unwrap_or(topology.rate);
    let written = direction.queue.as_ref().or(topology.queue.as_ref());
    let packet = topology.mtu.unwrap_or(FULL_PACKET) + topology.overhead;
    let mut config = LinkConfig {
        overhead: topology.overhead,
        mtu: topology.mtu,
        feedback: topology.feedback.as_ref().map(Feedback::config),
        queue: queue::config(written, mean_rate(direction, rate), topology.rtt, packet),
        ..LinkConfig::new(rate, delay)
    };
    direction.impair(&mut config, numbering);
    shape(&mut config, direction.burst.or(topology.burst));
    config
}

fn relay_buffer(topology: &Topology) -> BufferSize {
    topology.queue.as_ref().and_then(Queue::as_size).unwrap_or(BufferSize::Infinite)
}

fn flow_spec(flow: &Flow, name: String, number: u64, route: Route) -> FlowSpec {
    let start = after(flow.start + flow.stagger.saturating_mul(number));
    let stop = flow.stop.map(after).or(flow.duration.map(|span| start.saturating_add(span)));
    FlowSpec {
        name,
        route_forward: route.forward,
        route_reverse: route.reverse,
        transport: transport(flow),
        // `arrivals` takes the place of connections, which needs to know the links.
        workload: flow.workload.model().unwrap_or(Model::Bulk),
        start,
        stop,
        start_jitter: flow.start_jitter,
        ends: flow.ends.0,
    }
}

fn transport(flow: &Flow) -> TransportSpec {
    let defaults = Config::default();
    let stack = match &flow.stack {
        Protocol::Reliable(stack) => stack,
        Protocol::Udp => {
            let payload = flow.mss.unwrap_or(UdpConfig::default().payload);
            return TransportSpec::Udp(UdpConfig { payload });
        }
        Protocol::Contender(name) => return name.transport(),
        Protocol::Foreign(stack) => return TransportSpec::Foreign(stack.build(settings(flow))),
    };
    TransportSpec::Reliable(Box::new(Config {
        stack: stack.clone(),
        mss: flow.mss.unwrap_or(defaults.mss),
        initial_window: flow.initial_window,
        quick_start: flow.quick_start,
        max_pacing_rate: flow.max_pacing_rate,
        pace_window: flow.pace_window,
        pacing_catch_up: flow.pacing_catch_up,
        send_buffer: flow.send_buffer,
        send_overhead: flow.send_overhead,
        max_send_buffer: flow.max_send_buffer,
        recv_buffer: flow.recv_buffer,
        max_recv_buffer: flow.max_recv_buffer,
        initial_recv_window: flow.initial_recv_window,
        window_limit: flow.window_limit.map(|limit| limit.0),
        sack: flow.sack,
        timestamps: flow.timestamps,
        ecn: flow.ecn,
        delayed_ack: flow.delayed_ack.map(|policy| policy.0),
        initial_rto: flow.initial_rto,
        min_rto: flow.min_rto,
        max_rto: flow.max_rto,
        fixed_rto: flow.fixed_rto,
        max_retransmits: flow.max_retransmits,
        max_wait: flow.max_wait,
        limited_transmit: flow.limited_transmit,
        gso: flow.gso,
        cwnd_validation: flow.cwnd_validation,
        slow_start_after_idle: flow.slow_start_after_idle,
        time_wait: flow.time_wait,
        route_policy: flow.route_policy.0,
        // What only real sockets need.
        ..defaults
    }))
}

/// What a scenario sets of another project's stack. A payload that does not fit was refused before.
fn settings(flow: &Flow) -> Settings {
    let defaults = Settings::default();
    let max_payload = flow.mss.and_then(|payload| u16::try_from(payload).ok());
    Settings {
        receive_window: flow.recv_buffer,
        max_payload: max_payload.unwrap_or(defaults.max_payload),
    }
}

fn host(flow: &Flow) -> HostConfig {
    let limit = flow.host_buffer.map_or(Limit::Infinite, Limit::Bytes);
    let buffer = DropTailConfig { limit, counting: Counting::Waiting, overhead: Bytes::ZERO };
    HostConfig { per_packet: flow.host_time, buffer }
}

/// The nodes where a flow begins and ends, if it names them.
fn ends(flow: &Flow, nodes: &[String]) -> Option<Span> {
    let number = |name: &str| nodes.iter().position(|node| node == name);
    let (from, to) = (flow.from.as_ref()?, flow.to.as_ref()?);
    Some(Span { from: number(&from.0)?, to: number(&to.0)? })
}

fn unbuildable(error: TopologyError) -> Problem {
    Problem::new("topology", error.to_string())
}

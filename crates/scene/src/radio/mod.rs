//! A radio network in a run: its description, and what hosts it between routers and flows.

mod rows;

use std::fmt::Debug;

use weir_net::Backlog;
use weir_net::feedback::{FeedbackAgent, Occupancy, Signal};
use weir_radio::{
    Agent, AnyRouter, DropReason, Graph, Mobility, NodeId, Notice, Radio, RadioEvent, RouterConfig,
    StaticRoutes,
};
use weir_trace::{FrameRow, NodeRow};
use weir_units::{Duration, Instant, stream};

pub(crate) use self::rows::reason_name;
use crate::error::SpecError;
use crate::packet::Packet;
use crate::side::Side;
use crate::spec::{MeasureSpec, Movement, Places, RadioPath, RadioSpec, Routing};

/// What a network needs of the radio network that flows go over. Only the world that has one brings it, so that the code of radio
/// networks is not compiled into every world that has links.
pub(crate) trait Medium<L>: Debug + Send {
    /// Takes a packet at the node where its direction begins.
    fn offer(&mut self, now: Instant, packet: Packet<L>);
    /// What happens next, if it does by `now`; it happened at [`Self::time`].
    fn poll(&mut self, now: Instant) -> Option<Result<RadioOutput<L>, String>>;
    /// Time of the last output of [`Self::poll`].
    fn time(&self) -> Instant;
    /// When it must be polled next.
    fn next_time(&self) -> Option<Instant>;
    /// Moves every node to where it is now; returns when to do so again, if any node moves.
    fn step(&mut self, now: Instant) -> Option<Instant>;
    /// The rest, which has no packets of flows.
    fn hosted(&self) -> &HostedRadio;
    /// The same.
    fn hosted_mut(&mut self) -> &mut HostedRadio;
}

/// A radio network with all that watches it.
#[derive(Debug)]
pub struct HostedRadio {
    radio: Radio<Packet, AnyRouter<Packet>>,
    mobility: Mobility,
    paths: Vec<RadioPath>,
    counts: Counts,
    /// How often the route between the ends of each flow changed.
    route_changes: Vec<u64>,
}

/// Counters of parcels.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    offered: u64,
    delivered: u64,
    dropped: u64,
}

/// What a radio network hands to its world.
pub enum RadioOutput<L = ()> {
    /// A packet arrived at its end of its flow.
    Arrived(Packet<L>),
    /// An end of a flow is to know this.
    Notice(u32, Side, Notice),
    /// A packet went no further.
    Dropped(Packet<L>, NodeId, DropReason),
}

impl HostedRadio {
    /// The network of `spec` before its first packet. All randomness comes from `seed`.
    pub(crate) fn new(
        spec: &RadioSpec,
        seed: u64,
        measure: &MeasureSpec,
    ) -> Result<Self, SpecError> {
        let failed = |problem: String| SpecError::Radio { problem };
        let mobility = mobility(spec, seed, Instant::ZERO + measure.duration)?;
        let positions = mobility.positions(Instant::ZERO);
        let routing = match &spec.routing {
            Routing::Protocol(config) => config.clone(),
            Routing::Shortest(range_mm) => RouterConfig::Static(StaticRoutes::shortest(
                &Graph::in_range(&positions, *range_mm),
            )),
        };
        let nodes = (0..positions.len()).map(|node| NodeId(node as u16));
        let routers = nodes.clone().map(|node| routing.build(node)).collect();
        let named = |purpose: &str| stream(seed, &format!("radio {purpose}"));
        let mut radio = Radio::new(&spec.config, &positions, routers, named)
            .map_err(|error| failed(error.to_string()))?;
        if measure.max_frames > 0 {
            radio.log_frames(measure.max_frames);
        }
        if let Some(feedback) = &spec.feedback {
            for node in nodes {
                let rng = stream(seed, &format!("radio feedback {node}"));
                let agent = feedback.agent(spec.config.phy.data, rng);
                radio.set_agent(node, Box::new(InterfaceAgent(agent)));
            }
        }
        Ok(Self {
            radio,
            mobility,
            counts: Counts::default(),
            route_changes: vec![0; spec.paths.len()],
            paths: spec.paths.clone(),
        })
    }

    /// Whether packets of flows are in flight below the routers.
    pub(crate) fn is_busy(&self) -> bool {
        self.counts.offered > self.counts.delivered + self.counts.dropped
    }

    /// The rows of its nodes.
    pub fn nodes(&self, now: Instant) -> Vec<NodeRow> {
        let nodes = (0..self.radio.nodes()).map(|node| NodeId(node as u16));
        let row = |node| {
            let start = self.mobility.position(node, Instant::ZERO);
            rows::node_row(node, start, &self.radio.stats(node, now), now)
        };
        nodes.map(row).collect()
    }

    /// The frames that were recorded since this was called last.
    pub fn frames(&mut self) -> Vec<FrameRow> {
        self.radio.drain_frames().iter().map(rows::frame_row).collect()
    }

    /// How many events of its own it has handled.
    pub(crate) fn events(&self) -> u64 {
        self.radio.events()
    }

    /// How often the route between the ends of a flow changed, at either end.
    pub(crate) fn route_changes(&self, flow: usize) -> u64 {
        self.route_changes[flow]
    }

    /// The nodes of a flow's sender and receiver.
    pub(crate) fn flow_ends(&self, flow: usize) -> (u32, u32) {
        let RadioPath { from, to } = self.paths[flow];
        (u32::from(from.0), u32::from(to.0))
    }

    /// Says if more came out than went in.
    pub(crate) fn check(&self, now: Instant) -> Result<(), String> {
        let Counts { offered, delivered, dropped } = self.counts;
        let (waiting, copies) = (self.radio.waiting(), self.radio.total(now).copies);
        let found = delivered + dropped + waiting;
        if found > offered + copies {
            return Err(format!(
                "{offered} packets and {copies} copies went into the radio network, but {delivered} \
                 arrived, {dropped} were dropped and {waiting} wait in it"
            ));
        }
        Ok(())
    }
}

impl Medium<()> for HostedRadio {
    fn offer(&mut self, now: Instant, packet: Packet) {
        let (from, to) = self.paths[packet.flow as usize].towards(packet.direction);
        self.counts.offered += 1;
        self.radio.offer(now, from, to, packet);
    }

    fn poll(&mut self, now: Instant) -> Option<Result<RadioOutput, String>> {
        loop {
            match self.radio.poll(now)? {
                RadioEvent::Delivered { node, mut parcel, hops, .. } => {
                    parcel.hop = hops;
                    self.counts.delivered += 1;
                    let path = self.paths[parcel.flow as usize];
                    let (_, to) = path.towards(parcel.direction);
                    let misled = || format!("node {node} was handed a packet for {to}: {parcel:?}");
                    return Some(if node == to {
                        Ok(RadioOutput::Arrived(parcel))
                    } else {
                        Err(misled())
                    });
                }
                RadioEvent::Notice { node, flow, notice } => {
                    let path = self.paths.get(flow as usize);
                    if let Some(side) = path.and_then(|path| path.side(node)) {
                        return Some(Ok(RadioOutput::Notice(flow, side, notice)));
                    }
                }
                RadioEvent::Dropped { node, parcel, reason } => {
                    self.counts.dropped += 1;
                    return Some(Ok(RadioOutput::Dropped(parcel, node, reason)));
                }
                RadioEvent::RouteChanged { node, destination, .. } => {
                    for (path, changes) in self.paths.iter().zip(&mut self.route_changes) {
                        let ends = [(path.from, path.to), (path.to, path.from)];
                        *changes += u64::from(ends.contains(&(node, destination)));
                    }
                }
            }
        }
    }

    fn time(&self) -> Instant {
        self.radio.time()
    }

    fn next_time(&self) -> Option<Instant> {
        self.radio.next_time()
    }

    fn step(&mut self, now: Instant) -> Option<Instant> {
        if self.mobility.is_fixed() {
            return None;
        }
        for node in (0..self.mobility.nodes()).map(|node| NodeId(node as u16)) {
            let position = self.mobility.position(node, now);
            if self.radio.position(node) != Some(position) {
                self.radio.set_position(now, node, position);
            }
        }
        Some(now.saturating_add(STEP))
    }

    fn hosted(&self) -> &HostedRadio {
        self
    }

    fn hosted_mut(&mut self) -> &mut HostedRadio {
        self
    }
}

/// How often positions change: at 30 m/s a node moves by 3 m, a hundredth of its range.
const STEP: Duration = Duration::from_millis(100);

fn mobility(spec: &RadioSpec, seed: u64, end: Instant) -> Result<Mobility, SpecError> {
    let failed = |problem: String| SpecError::Radio { problem };
    let positions = match (&spec.movement, &spec.places) {
        (Movement::Trace(mobility), _) => return Ok(mobility.clone()),
        (Movement::Waypoint(waypoint), _) => {
            let rng = |node: NodeId| stream(seed, &format!("radio mobility {node}"));
            return waypoint
                .draw(spec.nodes() as u16, end, rng)
                .map_err(|error| failed(error.to_string()));
        }
        (Movement::None, Places::Fixed(placement)) => placement.positions.clone(),
        (Movement::None, Places::Random(random)) => {
            let mut rng = stream(seed, "radio placement");
            random.draw(&mut rng).map_err(|error| failed(error.to_string()))?.positions
        }
    };
    Ok(Mobility::fixed(&positions))
}

/// An agent of the feedback's kind at a node's interface.
#[derive(Debug)]
struct InterfaceAgent(FeedbackAgent);

impl Agent<Packet> for InterfaceAgent {
    fn on_service(&mut self, now: Instant, state: Occupancy) {
        self.0.set_busy(now, Signal::Service, state);
    }

    fn on_medium(&mut self, now: Instant, state: Occupancy) {
        self.0.set_busy(now, Signal::Medium, state);
    }

    fn on_arrival(&mut self, now: Instant, parcel: &mut Packet, ahead: Backlog) {
        self.0.on_arrival(now, parcel, ahead);
    }

    fn on_frame(&mut self, _now: Instant, retries: u32) {
        self.0.on_frame(retries);
    }

    fn on_departure(&mut self, now: Instant, parcel: &mut Packet, behind: Backlog) {
        self.0.on_departure(now, parcel, behind);
    }
}

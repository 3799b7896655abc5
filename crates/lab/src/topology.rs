//! Section `[topology]`: the network between senders and receivers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};
use weir_units::{BufferSize, Bytes, Duration, Rate};

use crate::buffer::Buffer;
use crate::direction::Direction;
use crate::feedback::Feedback;
use crate::keys::{Only, Words, choices, form, only, section};
use crate::queue::Queue;
use crate::radio::Radio;
use crate::range::{above, at_least, at_most, between, rates, up_to_a_day};
use crate::routing::Routing;

section! {
    /// The network.
    pub struct Topology {
        /// Shape of the network.
        kind: TopologyKind = TopologyKind::Dumbbell,
        /// Rate of the bottleneck, of each hop, or of the hosts' links of a fabric, in IP bytes.
        rate: Rate [rates()] = Rate::from_mbit(10) => RATED,
        /// Round trip without queues and serialisation: of every flow (dumbbell), of the whole row
        /// (chain, parking lot); what `bdp` refers to (graph).
        rtt: Duration [up_to_a_day()] = Duration::from_millis(40) => ROUTED,
        /// Queue of each bottleneck, of each port of a fabric, or of the links of a graph that set none: the limit
        /// of a drop-tail queue, or a discipline as in `{ kind = "codel" }`. Default: `1bdp` (the rate times
        /// `rtt`; in a fabric, the longest round trip), `64kib` for the relay of a laboratory, or none where
        /// switches of a fabric have a `buffer`.
        queue: Option<Queue> = None => QUEUED,
        /// Feedback of each bottleneck, of each port of a fabric, or of the links of a graph that set none, to the
        /// senders of passing packets, as in `{ kind = "drai" }`; by default none.
        feedback: Option<Feedback> = None => FED,
        /// Makes the bottleneck a token bucket of this size, filled at `rate`: packets are sent at once
        /// while there are tokens (Linux's `tbf`).
        burst: Option<Bytes> = None => BOTTLENECK,
        /// Bytes added to each packet at the bottleneck, in transmission times and in limits that are
        /// not in packets: `14b` for Ethernet's header.
        overhead: Bytes [at_most(MAX_OVERHEAD)] = Bytes::ZERO => BOTTLENECK,
        /// Longest IP packet that passes the bottleneck.
        mtu: Option<Bytes> [above(Bytes::ZERO)] = None => BOTTLENECK,
        /// Rate of each host's own link; by default hosts are attached directly to the routers.
        access_rate: Option<Rate> [rates()] = None => ROUTED,
        /// Number of bottlenecks in a row.
        hops: u32 [between(1, MAX_HOPS)] = 3 => only!(kind: TopologyKind = ParkingLot | Chain),
        /// How the laboratory's relay handles a datagram.
        relay: RelayKind = RelayKind::Serial => RELAY,
        /// Time for which the relay holds a datagram on its way forward, or propagation delay of the hosts'
        /// links of a fabric (one-way).
        delay: Duration [up_to_a_day()] = Duration::ZERO => DELAYED,
        /// Time for which the relay holds a datagram on its way back (one-way).
        reverse_delay: Duration [up_to_a_day()] = Duration::ZERO => RELAY,
        /// Number of leaf switches, each of which has a link to every spine.
        leaves: u32 [between(1, MAX_SWITCHES)] = 4 => LEAVES,
        /// Number of hosts of each leaf.
        hosts: u32 [between(1, MAX_SWITCHES)] = 4 => LEAVES,
        /// Number of spine switches.
        spines: u32 [between(1, MAX_SWITCHES)] = 4 => LEAVES,
        /// Number of ports of each switch of a fat tree, which is even: it has `k`³/4 hosts.
        k: u32 [between(2, MAX_PORTS)] = 4 => only!(kind: TopologyKind = FatTree),
        /// Rate of links between switches; by default `rate`.
        uplink_rate: Option<Rate> [rates()] = None => FABRIC,
        /// One-way propagation delay of links between switches; by default `delay`.
        uplink_delay: Option<Duration> [up_to_a_day()] = None => FABRIC,
        /// Queue of hosts' own ports; by default that of switches.
        host_queue: Option<Queue> = None => FABRIC,
        /// Ports of a fabric that differ from the others.
        port: Vec<FabricPort> = Vec::new() => FABRIC,
        /// Choice of a switch among links of equal cost: `single` takes the first, `ecmp` goes by a hash of
        /// the flow, `spray` draws one for each packet, `spray-rr` takes them in turn. `flowlet(GAP)` hashes
        /// anew after a pause of the flow, `packet-ecmp(paths=N)` by one of N values that the sender draws
        /// for each packet.
        routing: Routing = Routing::default() => SWITCHED,
        /// Memory of each switch, which its ports share, as in `{ total = "32mb", alpha = "1/8" }`; by default
        /// ports share none. In a graph, a node is a switch if no flow begins or ends there, nor may draw it.
        buffer: Option<Buffer> = None => SWITCHED,
        /// Whether switches pause their neighbours before their `buffer` is full (priority flow control,
        /// IEEE 802.1Qbb): then they drop nothing.
        pfc: bool = false => SWITCHED,
        /// Links of a graph, or a file in the scenario's folder with HPCC's topology. It needs a `queue`, a
        /// `buffer` or an `rtt` next to it.
        link: Vec<GraphLink> = Vec::new() => only!(kind: TopologyKind = Graph),
        /// Nodes that share a channel (radio).
        radio: Radio = Radio::default() => only!(kind: TopologyKind = Radio),
        /// Differences and impairments of the data's direction.
        forward: Direction = Direction::default() => TWO_WAY,
        /// Differences and impairments of the acknowledgements' direction.
        reverse: Direction = Direction::default() => TWO_WAY,
    }
}

section! {
    /// A port of a fabric that differs from the others.
    pub struct FabricPort {
        /// Name of its link: the nodes from which and to which it leads, as in `leaf0-spine1`.
        link: String = String::new(),
        /// How it differs, and what goes wrong.
        impair: Direction = Direction::default(),
    }
}

section! {
    /// A link of a graph.
    pub struct GraphLink {
        /// Name in the tables; by default the two nodes, `a-b`.
        name: Option<String> = None,
        /// Node where it begins.
        from: Node = Node::default(),
        /// Node where it ends.
        to: Node = Node::default(),
        /// Rate.
        rate: Rate [rates()] = Rate::from_mbit(10),
        /// One-way propagation delay.
        delay: Duration [up_to_a_day()] = Duration::ZERO,
        /// Its queue; by default `topology.queue`, or `1bdp`.
        queue: Option<Queue> = None,
        /// Feedback to the senders of passing packets, in both directions; by default `topology.feedback`.
        feedback: Option<Feedback> = None,
        /// Makes the link a token bucket of this size.
        burst: Option<Bytes> = None,
        /// Bytes added to each packet's length.
        overhead: Bytes [at_most(MAX_OVERHEAD)] = Bytes::ZERO,
        /// Cost of the link; flows take the route of least cost.
        cost: u32 [at_least(1)] = 1,
        /// Whether a link of the same rate, delay and queue leads back.
        duplex: bool = true,
        /// Whether to record its queue.
        monitored: bool = true,
        /// Its impairments, from `from` to `to`.
        impair: Direction = Direction::default(),
    }
}

choices! {
    /// Shapes of the network.
    pub enum TopologyKind {
        Dumbbell = "dumbbell", "flows that share one bottleneck and nothing else";
        ParkingLot = "parking-lot", "one flow crosses all bottlenecks, the others one each";
        Chain = "chain", "bottlenecks in a row, flows between any two routers";
        Graph = "graph", "any graph, with shortest-path routes";
        LeafSpine = "leaf-spine", "a data centre's fabric of two tiers: hosts at leaves, and spines that join all leaves";
        FatTree = "fat-tree", "a data centre's fabric of three tiers, of switches with k ports";
        LabRouter = "lab-router", "a relay program between two hosts, serial or ideal";
        Radio = "radio", "nodes that share a channel, over which packets hop";
    }
}

choices! {
    /// What a laboratory's relay does with a datagram.
    pub enum RelayKind {
        Serial = "serial", "Reads one, sleeps, forwards it, reads the next.";
        DelayLine = "delay-line", "Delays each on its own.";
    }
}

/// No framing takes more.
const MAX_OVERHEAD: Bytes = Bytes(1_000);
/// A route has at most 255 links, those of the hosts included.
const MAX_HOPS: u32 = 250;

/// In each role. What they make together has bounds of its own.
const MAX_SWITCHES: u32 = 4_096;
/// 3456 hosts.
const MAX_PORTS: u32 = 24;

const LEAVES: Only<Topology> = only!(kind: TopologyKind = LeafSpine);
const FABRIC: Only<Topology> = only!(kind: TopologyKind = LeafSpine | FatTree);
const SWITCHED: Only<Topology> = only!(kind: TopologyKind = Graph | LeafSpine | FatTree);
const RATED: Only<Topology> =
    only!(kind: TopologyKind = Dumbbell | ParkingLot | Chain | LeafSpine | FatTree);
const FED: Only<Topology> =
    only!(kind: TopologyKind = Dumbbell | ParkingLot | Chain | Graph | LeafSpine | FatTree);
const QUEUED: Only<Topology> = only!(
    kind: TopologyKind = Dumbbell | ParkingLot | Chain | Graph | LabRouter | LeafSpine | FatTree
);
const DELAYED: Only<Topology> = only!(kind: TopologyKind = LabRouter | LeafSpine | FatTree);
const BOTTLENECK: Only<Topology> = only!(kind: TopologyKind = Dumbbell | ParkingLot | Chain);
const RELAY: Only<Topology> = only!(kind: TopologyKind = LabRouter);
const ROUTED: Only<Topology> = only!(kind: TopologyKind = Dumbbell | ParkingLot | Chain | Graph);
/// Those with a direction for data and one for acknowledgements.
const TWO_WAY: Only<Topology> =
    only!(kind: TopologyKind = Dumbbell | ParkingLot | Chain | LabRouter);

/// A node of a graph or a host of a fabric by name, or a router of a chain by number, counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node(pub String);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "the name of a node or the number of a router is needed")]
        enum NameOrNumber {
            Name(String),
            Number(u32),
        }
        Ok(Self(match NameOrNumber::deserialize(deserializer)? {
            NameOrNumber::Name(name) => name,
            NameOrNumber::Number(number) => number.to_string(),
        }))
    }
}

impl Node {
    /// Whether it stands for any host.
    pub(crate) fn is_any(&self) -> bool {
        self.0 == "*"
    }
}

impl Topology {
    /// Whether it is a fabric, whose flows may run between any hosts.
    pub(crate) fn is_fabric(&self) -> bool {
        matches!(self.kind, TopologyKind::LeafSpine | TopologyKind::FatTree)
    }

    /// Whether flows may draw hosts of it.
    pub(crate) fn has_hosts(&self) -> bool {
        self.is_fabric() || self.kind == TopologyKind::Graph
    }

    /// Number of hosts of a fabric or a graph.
    pub(crate) fn host_count(&self) -> u32 {
        match self.kind {
            TopologyKind::Graph => self.graph_hosts().len() as u32,
            TopologyKind::FatTree => self.k * self.k * self.k / 4,
            _ => self.leaves.saturating_mul(self.hosts),
        }
    }

    /// Whether a node where flows may begin and end is a host.
    pub(crate) fn is_host(&self, node: &Node) -> bool {
        self.kind != TopologyKind::Graph || self.graph_hosts().contains(node.0.as_str())
    }

    /// The round trip that `bdp` refers to: of a fabric, between hosts that are farthest from each other.
    pub(crate) fn longest_rtt(&self) -> Duration {
        let uplink = self.uplink_delay.unwrap_or(self.delay);
        match self.kind {
            TopologyKind::LeafSpine if self.leaves == 1 => self.delay.saturating_mul(4),
            TopologyKind::LeafSpine => (self.delay + uplink).saturating_mul(4),
            TopologyKind::FatTree => (self.delay + uplink + uplink).saturating_mul(4),
            _ => self.rtt,
        }
    }

    /// The nodes at which a flow may begin or end, in the order of their numbers; none where flows
    /// have no choice.
    pub fn nodes(&self) -> Vec<String> {
        match self.kind {
            TopologyKind::Dumbbell | TopologyKind::LabRouter => Vec::new(),
            TopologyKind::ParkingLot | TopologyKind::Chain => {
                (0..=self.hops).map(|router| router.to_string()).collect()
            }
            TopologyKind::Graph => {
                let mut known = BTreeSet::new();
                let ends = self.link.iter().flat_map(|link| [&link.from.0, &link.to.0]);
                ends.filter(|node| known.insert(*node)).cloned().collect()
            }
            TopologyKind::LeafSpine | TopologyKind::FatTree => {
                (0..self.host_count()).map(|host| format!("h{host}")).collect()
            }
            TopologyKind::Radio => (0..self.radio.nodes()).map(|node| node.to_string()).collect(),
        }
    }

    /// The nodes of a graph whose flows draw hosts, by number: the hosts come first.
    pub(crate) fn hosts_first(&self) -> Vec<String> {
        let hosts = self.graph_hosts();
        let (mut nodes, others): (Vec<String>, Vec<String>) =
            self.nodes().into_iter().partition(|node| hosts.contains(node.as_str()));
        nodes.extend(others);
        nodes
    }

    /// The hosts of a graph: the nodes that have one neighbour, over however many links.
    fn graph_hosts(&self) -> BTreeSet<&str> {
        let mut neighbours: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for GraphLink { from: Node(from), to: Node(to), .. } in &self.link {
            neighbours.entry(from).or_default().insert(to);
            neighbours.entry(to).or_default().insert(from);
        }
        neighbours.into_iter().filter(|(_, of)| of.len() == 1).map(|(node, _)| node).collect()
    }
}

impl Topology {
    /// Fills in the defaults that depend on other keys.
    pub(crate) fn complete(&mut self) {
        let queue = match self.kind {
            TopologyKind::LabRouter => BufferSize::Bytes(Bytes(64 << 10)),
            _ if self.buffer.is_some() => BufferSize::Infinite,
            _ => BufferSize::Bdp(1_000),
        };
        if self.kind == TopologyKind::Graph {
            self.complete_links();
        } else {
            self.queue.get_or_insert(Queue::drop_tail(queue));
        }
        self.queues_mut().for_each(|queue| queue.0.complete());
    }

    /// Gives the links of a graph what they have in common; then only they have it.
    fn complete_links(&mut self) {
        let queue = self.queue.take();
        let queue = queue.unwrap_or_else(|| Queue::drop_tail(BufferSize::Bdp(1_000)));
        let feedback = self.feedback.take();
        for link in &mut self.link {
            link.queue.get_or_insert_with(|| queue.clone());
            link.feedback = link.feedback.take().or_else(|| feedback.clone());
        }
    }

    /// Every queue that is written down, with its key.
    pub(crate) fn queues(&self) -> Vec<(String, &Queue)> {
        let Self { queue, host_queue, forward, reverse, .. } = self;
        let shared = [
            ("topology.queue", queue),
            ("topology.host_queue", host_queue),
            ("topology.forward.queue", &forward.queue),
            ("topology.reverse.queue", &reverse.queue),
        ];
        let mut queues: Vec<(String, &Queue)> = Vec::new();
        for (key, queue) in shared {
            queues.extend(queue.as_ref().map(|queue| (key.to_owned(), queue)));
        }
        for (index, link) in self.link.iter().enumerate() {
            let key = format!("topology.link.{index}");
            queues.extend(link.queue.as_ref().map(|queue| (format!("{key}.queue"), queue)));
            let there = link.impair.queue.as_ref();
            queues.extend(there.map(|queue| (format!("{key}.impair.queue"), queue)));
        }
        for (index, port) in self.port.iter().enumerate() {
            let queue = port.impair.queue.as_ref();
            queues
                .extend(queue.map(|queue| (format!("topology.port.{index}.impair.queue"), queue)));
        }
        queues
    }

    /// Every agent that is written down, with its key.
    pub(crate) fn agents(&self) -> Vec<(String, &Feedback)> {
        let shared =
            self.feedback.iter().map(|feedback| ("topology.feedback".to_owned(), feedback));
        let of_nodes = self.radio.feedback.iter();
        let of_nodes = of_nodes.map(|feedback| ("topology.radio.feedback".to_owned(), feedback));
        let of_links = self.link.iter().enumerate().filter_map(|(index, link)| {
            let feedback = link.feedback.as_ref()?;
            Some((format!("topology.link.{index}.feedback"), feedback))
        });
        shared.chain(of_nodes).chain(of_links).collect()
    }

    /// Every queue that is written down, to change it.
    fn queues_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        let Self { queue, host_queue, forward, reverse, link, port, .. } = self;
        let shared = [queue, host_queue, &mut forward.queue, &mut reverse.queue];
        let shared = shared.into_iter().flatten();
        let of_ports = port.iter_mut().filter_map(|port| port.impair.queue.as_mut());
        let of_links = link.iter_mut().flat_map(|link| {
            [link.queue.as_mut(), link.impair.queue.as_mut()].into_iter().flatten()
        });
        shared.chain(of_links).chain(of_ports)
    }
}

form! {
    Node => "name of a node or number of a router",
    Vec<GraphLink> => "list of sections, or file",
    Vec<FabricPort> => "list of sections",
}

//! Section `[topology]`: the network between senders and receivers.

use serde::{Deserialize, Deserializer, Serialize};
use weir_units::{BufferSize, Bytes, Duration, Rate, Ratio};

use crate::feedback::Feedback;
use crate::keys::{form, section};
use crate::queue::Queue;
use crate::radio::Radio;

section! {
    /// The network. Which keys apply depends on `kind`, see [`TopologyKind::keys`].
    pub struct Topology {
        /// Shape of the network.
        kind: TopologyKind = TopologyKind::Dumbbell,
        /// Rate of the bottleneck, or of each hop, in IP bytes.
        rate: Rate = Rate::from_mbit(10),
        /// Round trip without queues and serialisation: of every flow (dumbbell), of the whole row
        /// (chain, parking lot); what `bdp` refers to (graph).
        rtt: Duration = Duration::from_millis(40),
        /// Queue of each bottleneck: the limit of a drop-tail queue, or a discipline as in
        /// `{ kind = "codel" }`. Default: `1bdp` (the rate times `rtt`), or `64kib` for the relay of a
        /// laboratory.
        queue: Option<Queue> = None,
        /// Feedback of each bottleneck to the senders of passing packets, as in `{ kind = "drai" }`; by
        /// default none.
        feedback: Option<Feedback> = None,
        /// Makes the bottleneck a token bucket of this size, filled at `rate`: packets are sent at once
        /// while there are tokens (Linux's `tbf`).
        burst: Option<Bytes> = None,
        /// Bytes added to each packet at the bottleneck, in transmission times and in limits that are
        /// not in packets: `14b` for Ethernet's header.
        overhead: Bytes = Bytes::ZERO,
        /// Longest IP packet that passes the bottleneck.
        mtu: Option<Bytes> = None,
        /// Rate of each host's own link; by default hosts are attached directly to the routers.
        access_rate: Option<Rate> = None,
        /// Number of bottlenecks in a row.
        hops: u32 = 3,
        /// How the laboratory's relay handles a datagram.
        relay: RelayKind = RelayKind::Serial,
        /// Time for which the relay holds a datagram on its way forward (one-way).
        delay: Duration = Duration::ZERO,
        /// Time for which the relay holds a datagram on its way back (one-way).
        reverse_delay: Duration = Duration::ZERO,
        /// Links of a graph.
        link: Vec<GraphLink> = Vec::new(),
        /// Nodes that share a channel (radio).
        radio: Radio = Radio::default(),
        /// Differences and impairments of the data's direction.
        forward: Direction = Direction::default(),
        /// Differences and impairments of the acknowledgements' direction.
        reverse: Direction = Direction::default(),
    }
}

section! {
    /// One direction of a bottleneck: what differs from the other, and what goes wrong.
    pub struct Direction {
        /// Rate in this direction, if it differs.
        rate: Option<Rate> = None,
        /// Queue in this direction, if it differs.
        queue: Option<Queue> = None,
        /// Token bucket in this direction, if it differs.
        burst: Option<Bytes> = None,
        /// Drops packets that exceed a token bucket, in front of the queue.
        policer: Option<Policer> = None,
        /// Packets lost independently of each other, in front of the queue.
        loss: Ratio = Ratio::ZERO,
        /// Packets lost in bursts, in front of the queue.
        burst_loss: Option<BurstLoss> = None,
        /// Packets lost by number, counted from 1: data packets forward, every packet back, every packet
        /// on a link of a graph.
        drop: Vec<u64> = Vec::new(),
        /// Packets damaged, which the checksum detects.
        corrupt: Ratio = Ratio::ZERO,
        /// Packets that arrive twice.
        duplicate: Ratio = Ratio::ZERO,
        /// Packets delayed by `reorder_delay`, so that later ones overtake.
        reorder: Ratio = Ratio::ZERO,
        /// Time by which `reorder` delays a packet.
        reorder_delay: Duration = Duration::from_millis(10),
        /// Random variation of the delay: at most this (uniform), or its standard deviation (normal).
        jitter: Duration = Duration::ZERO,
        /// Distribution of the jitter.
        jitter_spread: JitterSpread = JitterSpread::Uniform,
        /// Whether jitter keeps the order of packets.
        jitter_order: JitterOrder = JitterOrder::Kept,
        /// Delivery opportunities instead of a rate: a file in mahimahi's format in the scenario's
        /// folder, or its times in milliseconds.
        rate_trace: Vec<u64> = Vec::new(),
        /// Later rates, as in `[{ at = "10s", rate = "5mbit" }]`; `0bit` is a blackout.
        rate_steps: Vec<RateStep> = Vec::new(),
        /// Later one-way delays of this direction, as in `[{ at = "10s", delay = "50ms" }]`.
        delay_steps: Vec<DelayStep> = Vec::new(),
    }
}

section! {
    /// Losses in bursts after Gilbert and Elliott: a good and a bad state, changed once per packet.
    pub struct BurstLoss {
        /// Probability to go from good to bad.
        good_to_bad: Ratio = Ratio::from_percent(1),
        /// Probability to go from bad to good; the bad state lasts the inverse of this, in packets.
        bad_to_good: Ratio = Ratio::from_percent(30),
        /// Loss in the good state.
        loss_in_good: Ratio = Ratio::ZERO,
        /// Loss in the bad state.
        loss_in_bad: Ratio = Ratio::ONE,
    }
}

section! {
    /// Drops what exceeds a token bucket.
    pub struct Policer {
        /// Rate at which tokens arrive.
        rate: Rate = Rate::from_mbit(10),
        /// Bucket size: bytes that may pass at once.
        burst: Bytes = Bytes(15_000),
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
        rate: Rate = Rate::from_mbit(10),
        /// One-way propagation delay.
        delay: Duration = Duration::ZERO,
        /// Its queue.
        queue: Queue = Queue::drop_tail(BufferSize::Bdp(1_000)),
        /// Feedback to the senders of passing packets, in both directions.
        feedback: Option<Feedback> = None,
        /// Makes the link a token bucket of this size.
        burst: Option<Bytes> = None,
        /// Bytes added to each packet's length.
        overhead: Bytes = Bytes::ZERO,
        /// Cost of the link; flows take the route of least cost.
        cost: u32 = 1,
        /// Whether a link of the same rate, delay and queue leads back.
        duplex: bool = true,
        /// Whether to record its queue.
        monitored: bool = true,
        /// Its impairments, from `from` to `to`.
        impair: Direction = Direction::default(),
    }
}

/// A later rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// From this time on.
    pub at: Duration,
    /// The rate is this.
    pub rate: Rate,
}

/// A later delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// From this time on.
    pub at: Duration,
    /// The one-way delay is this.
    pub delay: Duration,
}

/// Shapes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologyKind {
    /// Flows that share one bottleneck and nothing else.
    Dumbbell,
    /// Bottlenecks in a row: one flow crosses all, the others one each.
    ParkingLot,
    /// Bottlenecks in a row, flows between any two routers.
    Chain,
    /// Any graph, with shortest-path routes.
    Graph,
    /// A relay program between two hosts, as in a laboratory course.
    LabRouter,
    /// Nodes that share a radio channel.
    Radio,
}

/// What a laboratory's relay does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelayKind {
    /// Reads one, sleeps, forwards it, reads the next.
    Serial,
    /// Delays each on its own.
    DelayLine,
}

/// Distributions of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterSpread {
    /// Uniform around the delay.
    Uniform,
    /// Normal around the delay.
    Normal,
}

/// Whether jitter reorders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterOrder {
    /// A packet that would overtake arrives with the one before it.
    Kept,
    /// Packets arrive as their delays fall.
    Free,
}

/// A node of a graph by name, or a router of a chain by number, counted from 0.
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

impl Topology {
    /// The nodes at which a flow may begin or end, in the order of their numbers; none where flows
    /// have no choice.
    pub fn nodes(&self) -> Vec<String> {
        match self.kind {
            TopologyKind::Dumbbell | TopologyKind::LabRouter => Vec::new(),
            TopologyKind::ParkingLot | TopologyKind::Chain => {
                (0..=self.hops).map(|router| router.to_string()).collect()
            }
            TopologyKind::Graph => {
                let mut nodes: Vec<String> = Vec::new();
                for node in self.link.iter().flat_map(|link| [&link.from, &link.to]) {
                    if !nodes.contains(&node.0) {
                        nodes.push(node.0.clone());
                    }
                }
                nodes
            }
            TopologyKind::Radio => (0..self.radio.nodes()).map(|node| node.to_string()).collect(),
        }
    }
}

impl Topology {
    /// Every queue that is written down, with its key.
    pub(crate) fn queues(&self) -> Vec<(String, &Queue)> {
        let Self { queue, forward, reverse, .. } = self;
        let shared = [
            ("topology.queue", queue),
            ("topology.forward.queue", &forward.queue),
            ("topology.reverse.queue", &reverse.queue),
        ];
        let mut queues: Vec<(String, &Queue)> = Vec::new();
        for (key, queue) in shared {
            queues.extend(queue.as_ref().map(|queue| (key.to_owned(), queue)));
        }
        for (index, link) in self.link.iter().enumerate() {
            let key = format!("topology.link.{index}");
            queues.push((format!("{key}.queue"), &link.queue));
            let there = link.impair.queue.as_ref();
            queues.extend(there.map(|queue| (format!("{key}.impair.queue"), queue)));
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

    /// The same, to change them.
    pub(crate) fn queues_mut(&mut self) -> impl Iterator<Item = &mut Queue> {
        let Self { queue, forward, reverse, link, .. } = self;
        let shared = [queue, &mut forward.queue, &mut reverse.queue].into_iter().flatten();
        let of_links = link.iter_mut().flat_map(|link| {
            [Some(&mut link.queue), link.impair.queue.as_mut()].into_iter().flatten()
        });
        shared.chain(of_links)
    }
}

impl TopologyKind {
    /// Every kind with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(Self, &str, &str)] = &[
        (Self::Dumbbell, "dumbbell", "flows that share one bottleneck and nothing else"),
        (Self::ParkingLot, "parking-lot", "one flow crosses all bottlenecks, the others one each"),
        (Self::Chain, "chain", "bottlenecks in a row, flows between any two routers"),
        (Self::Graph, "graph", "any graph, with shortest-path routes"),
        (Self::LabRouter, "lab-router", "a relay program between two hosts, serial or ideal"),
        (Self::Radio, "radio", "nodes that share a channel, over which packets hop"),
    ];

    /// The keys of `[topology]` that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Dumbbell => &[
                "kind",
                "rate",
                "rtt",
                "queue",
                "feedback",
                "burst",
                "overhead",
                "mtu",
                "access_rate",
                "forward",
                "reverse",
            ],
            Self::ParkingLot | Self::Chain => &[
                "kind",
                "rate",
                "rtt",
                "queue",
                "feedback",
                "burst",
                "overhead",
                "mtu",
                "access_rate",
                "hops",
                "forward",
                "reverse",
            ],
            Self::Graph => &["kind", "rtt", "access_rate", "link"],
            Self::LabRouter => {
                &["kind", "queue", "relay", "delay", "reverse_delay", "forward", "reverse"]
            }
            Self::Radio => &["kind", "radio"],
        }
    }
}

form! {
    TopologyKind => "`dumbbell`, `parking-lot`, `chain`, `graph`, `lab-router` or `radio`",
    RelayKind => "`serial` or `delay-line`",
    JitterSpread => "`uniform` or `normal`",
    JitterOrder => "`kept` or `free`",
    Node => "name of a node or number of a router",
    Direction => "section",
    BurstLoss => "section",
    Policer => "section",
    Vec<GraphLink> => "list of sections",
    Vec<RateStep> => "list of `{ at, rate }`",
    Vec<DelayStep> => "list of `{ at, delay }`",
}

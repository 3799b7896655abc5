//! What a run consists of, in plain Rust: links, flows over them, and what is measured.

mod buffer;
mod collective;
mod fabric;
mod radio;

use std::sync::Arc;

use weir_net::LinkConfig;
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rate, Rng, stream};

pub use self::buffer::{Alpha, BufferSpec, PfcSpec};
pub use self::collective::{AllReduce, AllReduceAlgorithm, RankOrder};
pub use self::fabric::{Balancing, FabricEnds, FabricSpec, HostChoice, HostPair};
pub use self::radio::{Movement, Places, RadioPath, RadioSpec, Routing};
use crate::foreign::ForeignStack;
use crate::program::ProgramSpec;
use crate::sizes::SizeDistribution;

/// A run: everything but the seed.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The links; flows refer to them by index.
    pub links: Vec<LinkSpec>,
    /// Nodes that share a channel, over which all flows go in place of links.
    pub radio: Option<RadioSpec>,
    /// Switches that choose among links. The routes of flows are examples then: of the links of its
    /// forwarding tables, packets cross as many, but others.
    pub fabric: Option<FabricSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// What is recorded, and for how long.
    pub measure: MeasureSpec,
}

/// One direction of a link, or a server that both directions share.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// Its name; the link's random streams are derived from it, so it must be unique.
    pub name: String,
    /// Rate, delay, queue and impairments.
    pub config: LinkConfig,
    /// Whether it is a bottleneck to watch: it is sampled into `queues`, and the first such link
    /// gives the run its `utilisation`.
    pub monitored: bool,
    /// Whether a sender whose first link this is hands over one packet, waits until that has left
    /// the link, and only then decides on the next: a program that prepares its datagrams itself.
    pub one_at_a_time: bool,
}

/// One flow from a sender to a receiver.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Its name; the flow's random streams are derived from it, so it must be unique.
    pub name: String,
    /// The links that data crosses, by index, in order. Not empty, except over radio.
    pub route_forward: Vec<usize>,
    /// The links that acknowledgements (and responses) cross. Not empty, except for UDP
    /// and over radio.
    pub route_reverse: Vec<usize>,
    /// What carries the data.
    pub transport: TransportSpec,
    /// What the application asks of it.
    pub workload: Workload,
    /// When the flow starts.
    pub start: Instant,
    /// When it is stopped, if before the end of the run: the sender is reset then.
    pub stop: Option<Instant>,
    /// The start is put off by a random time up to this.
    pub start_jitter: Duration,
    /// Whose connection it is in the world of the kernel's TCP.
    pub ends: Ends,
}

/// Whose connection a flow is in the world of the kernel's TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// The kernel's.
    #[default]
    Kernel,
    /// Ours, next to the kernel's on the same links.
    Weir,
}

impl FlowSpec {
    /// When it starts, with the jitter that `seed` gives it.
    pub fn drawn_start(&self, seed: u64) -> Instant {
        let mut rng = stream(seed, &format!("flow {} start", self.name));
        self.start + rng.duration_up_to(self.start_jitter)
    }

    /// The random numbers of its sender: first the sequence number with which it begins, then what the
    /// controller draws.
    pub fn sender_stream(&self, seed: u64) -> Rng {
        stream(seed, &format!("flow {} sender", self.name))
    }
}

/// What carries a flow's data.
#[derive(Clone, Debug)]
pub enum TransportSpec {
    /// A reliable connection; both ends use the same configuration.
    Reliable(Box<Config>),
    /// Bare datagrams: no handshake, no acknowledgement, no repair.
    Udp(UdpConfig),
    /// A stack that is not ours, in virtual time.
    Foreign(Arc<dyn ForeignStack>),
    /// Two programs that are not ours, in the world of the kernel's TCP.
    Program(ProgramSpec),
}

/// Datagrams without a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// Payload bytes of each datagram.
    pub payload: u32,
}

/// What the application does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Sends as much as it can until it is stopped. Over UDP: as fast as the first link takes it.
    Bulk,
    /// Sends a number of bytes, closes, and is done when the last byte has arrived (over UDP: when the
    /// last datagram has been sent).
    File {
        /// The size.
        size: Bytes,
    },
    /// Asks, waits for the whole answer, pauses, asks again, until it is stopped. Reliable only.
    Request {
        /// Bytes of a request, sent forward.
        request: Bytes,
        /// Bytes of an answer, sent back.
        response: Bytes,
        /// From the end of an answer to the next request.
        gap: Duration,
    },
    /// Asks at random times, whether the earlier requests are answered or not: a Poisson process.
    /// Requests share the connection, one behind the other. Reliable only.
    PoissonRequest {
        /// Bytes of a request, sent forward.
        request: Bytes,
        /// Bytes of an answer, sent back.
        response: Bytes,
        /// From one request to the next, on average.
        mean_gap: Duration,
    },
    /// Writes messages at a constant rate (of payload), whatever the transport makes of them. Over
    /// UDP each message is one datagram.
    Rate {
        /// Payload bits per second.
        rate: Rate,
        /// Bytes of one message. Over UDP this takes the place of [`UdpConfig::payload`].
        size: Bytes,
    },
    /// Sends and is silent in turn, until it is stopped.
    OnOff(OnOff),
    /// Makes a connection for each of many transfers, at random times. Reliable only, over links, and
    /// in the simulated world.
    FlowSizes(FlowSizes),
    /// Makes these connections, in the order of their starts. As [`Self::FlowSizes`], and where switches choose
    /// among links.
    Listed(Arc<[ListedConnection]>),
}

/// A connection of which all is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedConnection {
    /// When it starts, after the start of its flow.
    pub start: Duration,
    /// How much it transfers.
    pub size: Bytes,
    /// Between which nodes it runs.
    pub ends: HostPair,
}

/// Transfers that come as a Poisson process, each over a connection of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSizes {
    /// How large they are.
    pub sizes: Arc<SizeDistribution>,
    /// From one to the next, on average. Zero: all at the start.
    pub mean_gap: Duration,
    /// Maximum number; `None`: unlimited.
    pub count: Option<u64>,
    /// What comes each time.
    pub pattern: Pattern,
}

/// The connections that a flow of many makes at once, and between which hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// One, between the ends of the flow.
    #[default]
    One,
    /// One, between hosts that are drawn for it.
    Pair(FabricEnds),
    /// One from each of several other hosts to one receiver. The jitter of the flow's start is that of each.
    Incast {
        /// The receiver, drawn each time unless it is given.
        to: HostChoice,
        /// Number of hosts, of which senders are drawn.
        hosts: u32,
        /// How many of them send.
        senders: u32,
    },
    /// One from each host to another, so that each also receives one. The jitter of the flow's
    /// start is that of each.
    Permutation {
        /// How many hosts.
        hosts: u32,
    },
    /// Those of a collective operation on buffers of a drawn size. Most begin when others have ended, and the
    /// next operation when all have. The jitter of the flow's start is that of each host in each operation.
    AllReduce(AllReduce),
}

/// A source that is on and off in turn, beginning with on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOff {
    /// How long it sends each time, on average.
    pub on: Duration,
    /// How long it is silent each time, on average.
    pub off: Duration,
    /// How the lengths are distributed.
    pub spread: PeriodSpread,
    /// Payload bits per second while it is on, in messages of `size`. `None`: as much as it can; what
    /// the transport has not sent when a period ends is not sent in the silence.
    pub rate: Option<Rate>,
    /// Bytes of one message at a `rate`. Over UDP this takes the place of [`UdpConfig::payload`].
    pub size: Bytes,
}

/// How the lengths of on and off periods are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodSpread {
    /// All are equal.
    Fixed,
    /// Exponential.
    Exponential,
}

impl Workload {
    /// The size of an answer, if the receiver answers.
    pub(crate) fn response(&self) -> Option<Bytes> {
        match self {
            Self::Request { response, .. } | Self::PoissonRequest { response, .. } => {
                Some(*response)
            }
            _ => None,
        }
    }

    /// Whether it ends by itself.
    pub(crate) fn is_finite(&self) -> bool {
        match self {
            Self::File { .. } | Self::Listed(_) => true,
            Self::FlowSizes(FlowSizes { count, .. }) => count.is_some(),
            _ => false,
        }
    }

    /// Whether it makes a connection for each of its transfers.
    pub fn makes_connections(&self) -> bool {
        matches!(self, Self::FlowSizes(_) | Self::Listed(_))
    }

    /// Whether its time from the start to the last byte is a result.
    pub(crate) fn has_completion_time(&self) -> bool {
        let pattern = match self {
            Self::File { .. } => return true,
            Self::FlowSizes(FlowSizes { pattern, .. }) => pattern,
            _ => return false,
        };
        matches!(pattern, Pattern::AllReduce(_))
    }

    /// Whether the receiver answers.
    pub fn has_responses(&self) -> bool {
        self.response().is_some()
    }

    /// The size of each message at a rate: over UDP, of a datagram.
    pub(crate) fn message(&self) -> Option<Bytes> {
        match self {
            Self::Rate { size, .. } | Self::OnOff(OnOff { rate: Some(_), size, .. }) => Some(*size),
            _ => None,
        }
    }
}

/// What is recorded, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasureSpec {
    /// The run ends here, or earlier when every flow has finished.
    pub duration: Duration,
    /// What happens before this is left out of every figure.
    pub warmup: Duration,
    /// How often flows and monitored links are sampled; `None` for never.
    pub sample_interval: Option<Duration>,
    /// The most rows of table `events`; 0 records none. The last row says so when there was more.
    pub max_events: usize,
    /// The most rows of table `requests` for each flow: the first that are answered. Counts and
    /// percentiles in `flows` are about all.
    pub max_requests: usize,
    /// The most rows of table `arrivals` for each flow of many connections: the first that come.
    pub max_arrivals: usize,
    /// Number of each flow's first acknowledgements in table `acks`; 0 records none.
    pub max_acks: usize,
    /// The most rows of table `frames`; 0 records none.
    pub max_frames: usize,
}

impl Default for MeasureSpec {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            sample_interval: Some(Duration::from_millis(100)),
            max_events: 0,
            max_requests: 100_000,
            max_arrivals: 1_000_000,
            max_acks: 0,
            max_frames: 0,
        }
    }
}

impl Default for UdpConfig {
    /// Fills a 1500-byte packet.
    fn default() -> Self {
        Self { payload: 1_472 }
    }
}

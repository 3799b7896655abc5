//! Key `workload` of a flow: what its application sends.
//!
//! A new kind is a line in the list, its section, and a branch of [`Workload::model`].

use weir_scene::{
    AllReduce as Collective, AllReduceAlgorithm, MAX_DATAGRAM, OnOff, PeriodSpread, RankOrder,
    Workload as Model,
};
use weir_units::{Bytes, Duration, Rate, Ratio};

use crate::connections::ConnectionList;
use crate::error::{Checked, Problem, require};
use crate::keys::{Word, kinds, section, words};
use crate::range::{Range, above, at_least, between, rates};
use crate::sizes::Sizes;

kinds! {
    /// What an application does.
    pub enum Workload {
        Bulk(Bulk) = "bulk", "sends as much as it can until it is stopped";
        File(File) = "file", "sends a number of bytes and completes when the last has arrived";
        Request(Request) = "request", "asks, waits for the whole answer, pauses, asks again";
        PoissonRequest(PoissonRequest) = "poisson-request", "asks at random times on one connection, whether earlier requests are answered or not";
        Rate(Messages) = "rate", "sends messages at a constant rate";
        OnOff(Periods) = "on-off", "sends at a rate or as much as it can, is silent, sends again";
        FlowSizes(Connections) = "flow-sizes", "makes connections at random times, with sizes from a distribution, at a load";
        Incast(Incast) = "incast", "at random times, several hosts of a fabric or a graph send to one at once";
        Permutation(Permutation) = "permutation", "every host of a fabric or a graph sends a number of bytes to another, and receives as many";
        Listed(Listed) = "connections", "makes connections that a file lists one by one, between nodes of a fabric or a graph";
        AllReduce(AllReduce) = "all-reduce", "hosts of a fabric or a graph sum up their buffers, in a ring or a tree of connections that begin when others have ended";
    }
}

section! {
    /// Everything that the connection takes.
    pub struct Bulk {}
}

section! {
    /// A file.
    pub struct File {
        /// Bytes of the file.
        size: Bytes [message()] = Bytes(1_000_000),
    }
}

section! {
    /// One request after the other.
    pub struct Request {
        /// Bytes of a request.
        request: Bytes [message()] = Bytes(100),
        /// Bytes of a response.
        response: Bytes [message()] = Bytes(10_000),
        /// Pause between a response and the next request.
        gap: Duration = Duration::ZERO,
    }
}

section! {
    /// Requests at random times.
    pub struct PoissonRequest {
        /// Bytes of a request.
        request: Bytes [message()] = Bytes(100),
        /// Bytes of a response.
        response: Bytes [message()] = Bytes(10_000),
        /// Mean time from one request to the next, whether that is answered or not.
        mean_gap: Duration [at_least(SHORTEST_PERIOD)] = Duration::from_millis(100),
    }
}

section! {
    /// Messages at a constant rate.
    pub struct Messages {
        /// Bytes of a message; over `udp` one datagram.
        size: Bytes [message()] = MESSAGE,
        /// Payload rate.
        rate: Rate [rates()] = Rate::from_mbit(1),
    }
}

section! {
    /// On and off periods.
    pub struct Periods {
        /// Bytes of a message at a `rate`; over `udp` one datagram.
        size: Bytes [message()] = MESSAGE,
        /// Payload rate during on periods; by default unlimited.
        rate: Option<Rate> [rates()] = None,
        /// Time for which it sends.
        on: Duration [at_least(SHORTEST_PERIOD)] = Duration::from_secs(1),
        /// Time for which it is silent.
        off: Duration = Duration::from_secs(1),
        /// Distribution of these times: all equal, or exponential with this mean.
        spread: Word<PeriodSpread> = Word(PeriodSpread::Fixed),
    }
}

section! {
    /// Connections that come and go.
    pub struct Connections {
        /// Distribution of connection sizes: `web-search`, `data-mining`, `fb-hadoop`, `ali-storage`,
        /// `google-rpc`, or a file in the scenario's folder. Each line of it has a size in bytes and the share of connections up to that size.
        sizes: Sizes = Sizes::default(),
        /// Average load of the slowest link on the route by the data packets of connections, each sent
        /// once. Where hosts are drawn: of the hosts' links, or of the one host's where `from` or `to` is a host.
        load: Ratio [above(Ratio::ZERO)] = Ratio::from_percent(60),
        /// Number of connections; by default those that arrive until the end.
        arrivals: Option<u64> [between(1, MAX_ARRIVALS)] = None,
    }
}

section! {
    /// Several hosts that send to one at once, again and again.
    pub struct Incast {
        /// Number of hosts that send.
        senders: u32 [at_least(1)] = 8,
        /// Bytes that each of them sends.
        size: Bytes [message()] = Bytes(500_000),
        /// Average load of the hosts' links by the data packets, each sent once; of the receiver's link where
        /// `to` is a host.
        load: Ratio [above(Ratio::ZERO)] = Ratio::from_percent(2),
        /// Number of times; by default until the end.
        arrivals: Option<u64> [between(1, MAX_ARRIVALS)] = None,
    }
}

section! {
    /// Every host sends to one other.
    pub struct Permutation {
        /// Bytes that each of them sends.
        size: Bytes [message()] = Bytes(1_000_000),
    }
}

section! {
    /// Connections that are listed one by one.
    pub struct Listed {
        /// Connections, each as `FROM TO START SIZE`, or a file in the scenario's folder: of such lines, htsim's
        /// connection matrix (`Nodes n`), or HPCC's flows. Nodes are named as in the topology; number `n` of
        /// other simulators is `hn`. Starts count from the flow's `start`.
        list: ConnectionList = ConnectionList::default(),
        /// Of a file of HPCC's flows only this class: in HPCC's analysis incasts have 200, others 100.
        dport: Option<u32> = None,
    }
}

section! {
    /// Hosts that sum up their buffers: each has the sum in the end.
    pub struct AllReduce {
        /// Bytes of each host's buffer.
        size: Bytes [message()] = Bytes(1_000_000),
        /// How buffers are passed on: in parts round a `ring`, or whole up a binary `tree` and down again.
        algorithm: Word<AllReduceAlgorithm> = Word(AllReduceAlgorithm::Ring),
        /// Number of hosts (ranks); by default all.
        hosts: Option<u32> [at_least(2)] = None,
        /// Which hosts, by rank: `host` takes the first by number, in that order, so that neighbours are below
        /// the same switch; `random` draws them and their order once for each flow.
        order: Word<RankOrder> = Word(RankOrder::Host),
        /// Number of times. Each begins when every host has the sum of the one before.
        iterations: u64 [between(1, MAX_ARRIVALS)] = 1,
    }
}

words! {
    AllReduceAlgorithm { Ring = "ring", Tree = "tree" }
}

words! {
    RankOrder { Host = "host", Random = "random" }
}

words! {
    PeriodSpread { Fixed = "fixed", Exponential = "exponential" }
}

/// What carries a workload.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Carrier {
    /// A connection.
    Connection,
    /// Datagrams, of which any may be lost.
    Datagrams,
    /// A connection of another project's stack.
    Foreign,
    /// Programs, which decide themselves what they send when.
    Programs,
}

impl Workload {
    /// What the application does in every world; `None` for connections, whose rate depends on the links.
    pub(crate) fn model(&self) -> Option<Model> {
        Some(match *self {
            Self::Bulk(_) => Model::Bulk,
            Self::File(File { size }) => Model::File { size },
            Self::Request(Request { request, response, gap }) => {
                Model::Request { request, response, gap }
            }
            Self::PoissonRequest(PoissonRequest { request, response, mean_gap }) => {
                Model::PoissonRequest { request, response, mean_gap }
            }
            Self::Rate(Messages { rate, size }) => Model::Rate { rate, size },
            Self::OnOff(Periods { size, rate, on, off, spread: Word(spread) }) => {
                Model::OnOff(OnOff { on, off, spread, rate, size })
            }
            Self::FlowSizes(_)
            | Self::Incast(_)
            | Self::Permutation(_)
            | Self::Listed(_)
            | Self::AllReduce(_) => {
                return None;
            }
        })
    }

    /// Whether it makes connections while a run goes on.
    pub(crate) fn makes_connections(&self) -> bool {
        self.model().is_none()
    }

    /// Whether it decides itself between which hosts its connections run.
    pub(crate) fn draws_hosts(&self) -> bool {
        matches!(self, Self::Incast(_) | Self::Permutation(_) | Self::AllReduce(_))
    }

    /// The connections that are listed one by one, if they are.
    pub(crate) fn listed(&self) -> Option<&ConnectionList> {
        match self {
            Self::Listed(Listed { list, .. }) => Some(list),
            _ => None,
        }
    }

    /// What its keys demand of each other and of what carries it.
    pub(crate) fn check(&self, section: &str, carrier: Carrier) -> Checked {
        let key = |name: &str| format!("{section}.{name}");
        let needs_connection = |allowed: &str| {
            let kind = format!("'{}'", self.kind());
            require(carrier != Carrier::Datagrams, key("kind"), kind, allowed)
        };
        let fits = |size: Bytes| {
            let fits = carrier != Carrier::Datagrams || size.get() <= MAX_DATAGRAM;
            require(fits, key("size"), size, format!("a datagram has at most {MAX_DATAGRAM} bytes"))
        };
        if carrier == Carrier::Programs && !matches!(self, Self::Bulk(_) | Self::File(_)) {
            let kind = format!("'{}'", self.kind());
            return require(false, key("kind"), kind, "a contender has bulk or file");
        }
        match self {
            Self::OnOff(Periods { rate: None, .. }) if carrier == Carrier::Foreign => {
                let allowed = "a stack of another project keeps what it has buffered: set a rate";
                require(false, key("rate"), "nothing", allowed)
            }
            Self::Bulk(_) | Self::File(_) | Self::OnOff(Periods { rate: None, .. }) => Ok(()),
            Self::Request(_) | Self::PoissonRequest(_) => needs_connection(NO_ANSWER),
            Self::Rate(Messages { size, .. }) | Self::OnOff(Periods { size, .. }) => fits(*size),
            Self::FlowSizes(_)
            | Self::Incast(_)
            | Self::Permutation(_)
            | Self::Listed(_)
            | Self::AllReduce(_) => {
                needs_connection("over udp no connection tells when it is done")?;
                let allowed = "only our own connections come and go";
                let kind = format!("'{}'", self.kind());
                require(carrier != Carrier::Foreign, key("kind"), kind, allowed)?;
                let Self::FlowSizes(Connections { sizes, .. }) = self else { return Ok(()) };
                let sizes = sizes.distribution();
                sizes.map(drop).map_err(|message| Problem::new(key("sizes"), message))
            }
        }
    }
}

impl AllReduce {
    /// What it does among as many `hosts`.
    pub(crate) fn model(&self, hosts: u32) -> Collective {
        let (order, algorithm) = (self.order.0, self.algorithm.0);
        Collective { ranks: self.hosts.unwrap_or(hosts), hosts, order, algorithm }
    }

    /// What its keys demand of a network with `hosts`.
    pub(crate) fn check(&self, section: &str, hosts: u32) -> Checked {
        let key = |name: &str| format!("{section}.{name}");
        let model = self.model(hosts);
        let Collective { ranks, .. } = model;
        require(ranks <= hosts, key("hosts"), ranks, format!("there are {hosts} hosts"))?;
        let least = model.least_size();
        let allowed = format!("each of {ranks} hosts in a ring has a part of at least one byte");
        require(self.size.get() >= least, key("size"), self.size, allowed)?;
        let connections = model.transfers().saturating_mul(self.iterations);
        let allowed = format!(
            "{} iterations make {connections} connections; a flow makes at most {MAX_ARRIVALS}",
            self.iterations
        );
        require(connections <= MAX_ARRIVALS, key("hosts"), ranks, allowed)
    }
}

/// The sizes of what an application sends at once.
fn message() -> Range<Bytes> {
    above(Bytes::ZERO).to(MAX_MESSAGE)
}

const MESSAGE: Bytes = Bytes(1_000);
const NO_ANSWER: &str = "over udp no answer is sure to come";
/// What comes round more often than this is taken for a slip: it would only cost time.
const SHORTEST_PERIOD: Duration = Duration::from_micros(1);
/// A message longer than this is taken for a slip: no simulated link carries it.
const MAX_MESSAGE: Bytes = Bytes(1 << 50);
/// Connections that one flow makes; more would fill the memory with their rows.
pub(crate) const MAX_ARRIVALS: u64 = 10_000_000;

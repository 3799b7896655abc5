//! Topologies: from a few parameters to links and routes.
//!
//! Every builder returns a [`Topology`], whose links go into the run's description as they are and
//! whose routes belong to the flows in the order in which they were given.

mod chain;
mod dumbbell;
mod fabric;
mod graph;
mod lab_router;

use weir_net::{
    DropTailConfig, Impairments, Jitter, LinkConfig, Order, QueueConfig, Service, Spread,
};
use weir_units::{Duration, Rate};

use crate::spec::LinkSpec;

pub use chain::{Chain, Hop, Span, parking_lot_spans};
pub use dumbbell::Dumbbell;
pub use fabric::{Fabric, Port, Tier};
pub use graph::{Edge, Graph};
pub use lab_router::{LabRouter, Relay};

/// Links, and each flow's way over them.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// The links.
    pub links: Vec<LinkSpec>,
    /// One route per flow.
    pub routes: Vec<Route>,
}

/// A flow's way there and back, as indices of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// What data crosses.
    pub forward: Vec<usize>,
    /// What acknowledgements cross.
    pub reverse: Vec<usize>,
}

/// The links between a flow's ends and the part of the network that flows share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// None: hosts sit at the routers. Where a flow's round trip is longer than the shared part's,
    /// a link of pure delay makes up the difference.
    #[default]
    None,
    /// Links of this rate with unbounded queues: a sender's and a receiver's, in both directions.
    Rate(Rate),
}

/// What a host takes to handle a packet that it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Time per packet, one packet after the other.
    pub per_packet: Duration,
    /// The socket buffer in which packets wait for it.
    pub buffer: DropTailConfig,
}

/// A topology that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// A flow's round trip is shorter than the shared links allow.
    #[error("flow {flow}: rtt {rtt} is shorter than the {shared} of the links that it shares")]
    RttTooShort {
        /// The flow's index.
        flow: usize,
        /// The requested value.
        rtt: Duration,
        /// The round trip of the shared links.
        shared: Duration,
    },
    /// A flow begins or ends at a node that does not exist, or does both at the same one.
    #[error(
        "flow {flow}: from {from} to {to} is no path; it needs two different nodes below {nodes}"
    )]
    NoSuchPath {
        /// The flow's index.
        flow: usize,
        /// Where it begins.
        from: usize,
        /// Where it ends.
        to: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// A link of the graph refers to a node that does not exist.
    #[error("link '{link}': it joins node {node}, but there are only {nodes}")]
    NoSuchNode {
        /// The link.
        link: String,
        /// The node it names.
        node: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// No links lead from one node to the other.
    #[error("flow {flow}: no way leads from '{from}' to '{to}'")]
    Unreachable {
        /// The flow's index.
        flow: usize,
        /// Where it begins.
        from: String,
        /// Where it ends.
        to: String,
    },
}

impl Topology {
    /// Gives both ends of `flow` a host that needs time for each packet it receives: a server in
    /// front of the receiver for data, and one in front of the sender for acknowledgements.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn add_hosts(&mut self, flow: usize, host: &HostConfig) {
        let config = LinkConfig {
            service: Service::PerPacket { forward: host.per_packet, reverse: host.per_packet },
            queue: QueueConfig::DropTail(host.buffer),
            ..LinkConfig::default()
        };
        let receiver = self.add_link(format!("f{flow}.receiver"), config.clone());
        let sender = self.add_link(format!("f{flow}.sender"), config);
        self.routes[flow].forward.push(receiver);
        self.routes[flow].reverse.push(sender);
    }

    /// Gives `flow` a sender that needs time to prepare each packet, and prepares one after the
    /// other; that time varies uniformly by up to `spread`.
    ///
    /// # Panics
    /// If there is no such flow, or the spread exceeds the time.
    pub fn add_preparation(&mut self, flow: usize, per_packet: Duration, spread: Duration) {
        let service = Service::PerPacket { forward: per_packet - spread, reverse: Duration::ZERO };
        let spread = (!spread.is_zero()).then_some(spread);
        let impairments = Impairments {
            jitter: spread.map(|s| Jitter { spread: Spread::Uniform(s), order: Order::Kept }),
            ..Impairments::default()
        };
        let delay = spread.unwrap_or_default().into();
        let config = LinkConfig { service, delay, impairments, ..LinkConfig::default() };
        let index = self.add_link(format!("f{flow}.preparation"), config);
        self.links[index].one_at_a_time = true;
        self.routes[flow].forward.insert(0, index);
    }

    fn add_link(&mut self, name: String, config: LinkConfig) -> usize {
        self.links.push(LinkSpec { name, config, monitored: false, one_at_a_time: false });
        self.links.len() - 1
    }

    fn add_monitored(&mut self, name: String, config: LinkConfig) -> usize {
        let index = self.add_link(name, config);
        self.links[index].monitored = true;
        index
    }

    /// Adds a flow's access links around its way through the shared part. `extra` is what its round
    /// trip lacks; it goes into the sender's links, half of it each way.
    fn add_route(&mut self, shared: Route, access: Access, extra: Duration) {
        let flow = self.routes.len();
        let (there, back) = (extra / 2, extra - extra / 2);
        let mut route = Route::default();
        route.forward.extend(self.access_link(flow, "up", access, there));
        route.forward.extend(shared.forward);
        route.forward.extend(self.access_link(flow, "down", access, Duration::ZERO));
        route.reverse.extend(self.access_link(flow, "ack-up", access, Duration::ZERO));
        route.reverse.extend(shared.reverse);
        route.reverse.extend(self.access_link(flow, "ack-down", access, back));
        self.routes.push(route);
    }

    fn access_link(
        &mut self,
        flow: usize,
        end: &str,
        access: Access,
        delay: Duration,
    ) -> Option<usize> {
        let config = match access {
            Access::Rate(rate) => LinkConfig::new(rate, delay),
            Access::None if delay.is_zero() => return None,
            Access::None => LinkConfig { delay: delay.into(), ..LinkConfig::default() },
        };
        Some(self.add_link(format!("f{flow}.{end}"), config))
    }
}

/// The propagation delay at the beginning of the run.
fn delay(config: &LinkConfig) -> Duration {
    config.delay.initial
}

#[cfg(test)]
mod tests;

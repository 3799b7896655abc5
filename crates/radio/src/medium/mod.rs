//! A radio network as one path piece: offered packets at nodes, polled for what becomes of them.
//!
//! ```text
//! offer -> router -> link delay -> ARP -> interface queue -> DCF -> frames -> receivers -> router -> poll
//! ```
//!
//! It has an agenda of its own, so that the world needs one pending event for the whole network. A frame
//! costs two entries per distance at which it is heard, and its sender's timers; nodes at the same
//! distance share an entry. Nothing is stored per receiver: frames are numbers, and a packet stays at
//! its sender until it is acknowledged.
//!
//! A neighbour may take a packet whose acknowledgement is then lost each time: its sender gives the
//! packet up, and the copy travels on. [`RadioStats::copies`] counts these, so that always
//!
//! ```text
//! offered + copies = delivered + dropped + waiting
//! ```

mod air;
mod interface;
mod node;

use std::collections::VecDeque;

use weir_units::{Bytes, Instant, Rng};

use self::node::Node;
use super::agent::Agent;
use super::audience::Neighbourhoods;
use super::config::RadioConfig;
use super::datagram::{Content, Datagram, DropReason, NodeId};
use super::events::{Due, TimerQueue};
use super::frames::{Frame, FrameLog, FrameRecord, Slab};
use super::ifq::{Outgoing, Packet};
use super::position::Position;
use super::routing::{Notice, Router, Upcall};
use super::stats::RadioStats;
use weir_net::ConfigError;
use weir_net::Parcel;

/// Nodes that share a channel.
#[derive(Debug)]
pub struct Radio<P, R: Router<P>> {
    config: RadioConfig,
    /// The time of what happened last.
    now: Instant,
    nodes: Vec<Node<P, R>>,
    audiences: Neighbourhoods,
    frames: Slab<Frame<P, R::Message>>,
    /// Datagrams between router and interface, with their nodes.
    descending: Slab<(u16, Outgoing<P, R::Message>)>,
    agenda: TimerQueue,
    /// How many entries of the agenda were handled.
    events: u64,
    /// What a router wants done; empty between steps.
    upcalls: Vec<Upcall<P, R::Message>>,
    out: VecDeque<RadioEvent<P>>,
    errors: Rng,
    log: FrameLog,
}

/// What comes out of a radio network.
#[derive(Clone, Debug, PartialEq)]
pub enum RadioEvent<P> {
    /// A parcel has arrived.
    Delivered {
        /// Where.
        node: NodeId,
        /// It.
        parcel: P,
        /// Over how many hops.
        hops: u8,
        /// Where it was offered.
        source: NodeId,
    },
    /// The transport of a flow at this node is to know.
    Notice {
        /// The node.
        node: NodeId,
        /// The flow.
        flow: u32,
        /// What it is to know.
        notice: Notice,
    },
    /// A parcel went no further.
    Dropped {
        /// Where.
        node: NodeId,
        /// It.
        parcel: P,
        /// Why.
        reason: DropReason,
    },
    /// A node's route changed.
    RouteChanged {
        /// The node.
        node: NodeId,
        /// To where.
        destination: NodeId,
        /// The new next hop; `None` if there is no route any more.
        next_hop: Option<NodeId>,
    },
}

impl<P, R> Radio<P, R>
where
    P: Parcel + Clone,
    R: Router<P>,
    R::Message: Clone,
{
    /// A network of a node at each of `positions`, each with its router. `rng` gives the random
    /// stream of each purpose.
    pub fn new(
        config: &RadioConfig,
        positions: &[Position],
        routers: Vec<R>,
        mut rng: impl FnMut(&str) -> Rng,
    ) -> Result<Self, ConfigError> {
        const COUNT: &str = "1 to 4096, with a router each";
        config.validate()?;
        let count = positions.len();
        if count == 0 || count > MOST_NODES || routers.len() != count {
            return Err(ConfigError::new("nodes", count, COUNT));
        }
        let nodes = routers.into_iter().enumerate();
        let nodes =
            nodes.map(|(number, router)| Node::new(number, count, config, router, &mut rng));
        let mut radio = Self {
            config: *config,
            now: Instant::ZERO,
            nodes: nodes.collect(),
            audiences: Neighbourhoods::new(config.propagation, positions),
            frames: Slab::new(),
            descending: Slab::new(),
            agenda: TimerQueue::default(),
            events: 0,
            upcalls: Vec::new(),
            out: VecDeque::new(),
            errors: rng("frame errors"),
            log: FrameLog::default(),
        };
        for node in 0..count {
            radio.arm_router(node);
        }
        Ok(radio)
    }

    /// Lets `agent` watch the interface of `node`.
    pub fn set_agent(&mut self, node: NodeId, agent: Box<dyn Agent<P>>) {
        if let Some(node) = self.nodes.get_mut(usize::from(node.0)) {
            node.agent = Some(agent);
        }
    }

    /// Keeps a record of each frame from now on, `capacity` at most between two calls of
    /// [`Self::drain_frames`].
    pub fn log_frames(&mut self, capacity: usize) {
        self.log = FrameLog::new(capacity);
    }

    /// The frames that ended since this was last asked.
    pub fn drain_frames(&mut self) -> Vec<FrameRecord> {
        self.log.drain()
    }

    /// `node` has a packet for `destination`. Times must not decrease from call to call.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn offer(&mut self, now: Instant, node: NodeId, destination: NodeId, parcel: P) {
        self.advance(now);
        let datagram = Datagram {
            source: node,
            destination,
            ttl: self.config.ttl,
            hops: 0,
            extra: Bytes::ZERO,
            content: Content::Parcel(parcel, None),
        };
        self.route(usize::from(node.0), |router, cx| router.originate(cx, datagram));
    }

    /// `node` is there from now on.
    pub fn set_position(&mut self, now: Instant, node: NodeId, position: Position) {
        self.advance(now);
        self.audiences.set_position(usize::from(node.0), position);
    }

    /// What comes out by `now`; call until `None`. It happened at [`Self::time`]: a world that knows
    /// of nothing else to come before some time may poll for that time at once.
    pub fn poll(&mut self, now: Instant) -> Option<RadioEvent<P>> {
        loop {
            if let Some(event) = self.out.pop_front() {
                return Some(event);
            }
            if !self.step(now) {
                self.now = self.now.max(now);
                return None;
            }
        }
    }

    /// When the network must be polled next.
    pub fn next_time(&self) -> Option<Instant> {
        if self.out.is_empty() { self.agenda.next_time() } else { Some(self.now) }
    }

    /// When the event happened that came out last, or up to when nothing did.
    pub fn time(&self) -> Instant {
        self.now
    }

    /// What one node has done by `now`.
    pub fn stats(&self, node: NodeId, now: Instant) -> RadioStats {
        let Some(node) = self.nodes.get(usize::from(node.0)) else { return RadioStats::default() };
        let mut stats = node.stats;
        stats.medium_busy = node.medium.total(now);
        stats.service_busy = node.service_busy(now);
        stats
    }

    /// What all nodes have done by `now`.
    pub fn total(&self, now: Instant) -> RadioStats {
        let mut total = RadioStats::default();
        for number in 0..self.nodes.len() {
            total += self.stats(NodeId(number as u16), now);
        }
        total
    }

    /// How many entries of its agenda it has handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How many packets wait in the interface queue of `node`.
    #[cfg(test)]
    pub(crate) fn queue_len(&self, node: NodeId) -> usize {
        self.nodes.get(usize::from(node.0)).map_or(0, |node| node.queue.len())
    }

    /// How many parcels of flows wait below the routers: those that were offered, and neither came out
    /// nor wait for a route.
    pub fn waiting(&self) -> u64 {
        let held = |packet: &Packet<P, R::Message>| u64::from(packet.parcel().is_some());
        let mut waiting: u64 = self.descending.iter().map(|(_, out)| held(&out.packet)).sum();
        for node in &self.nodes {
            waiting += node.queue.packets().map(held).sum::<u64>();
            let current = node.current.iter().filter(|current| !current.taken);
            waiting += current.map(|current| held(&current.packet)).sum::<u64>();
            let parcels =
                node.arp.held().filter(|held| matches!(held.content, Content::Parcel(..)));
            waiting += parcels.count() as u64;
        }
        waiting
    }

    /// Where `node` is.
    pub fn position(&self, node: NodeId) -> Option<Position> {
        self.audiences.position(usize::from(node.0))
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    fn advance(&mut self, now: Instant) {
        while self.step(now) {}
        self.now = self.now.max(now);
    }

    /// The next thing that is due by `now`, if there is one.
    fn step(&mut self, now: Instant) -> bool {
        let Some((time, due)) = self.agenda.pop(now) else { return false };
        self.now = time;
        self.events += 1;
        match due {
            Due::Begin { frame, group } => self.begin(frame, group),
            Due::End { frame, group } => self.end(frame, group),
            Due::Mac { node, generation } => self.mac_timeout(usize::from(node), generation),
            Due::Router { node, generation } => self.router_timeout(usize::from(node), generation),
            Due::Interface { datagram } => {
                if let Some((node, outgoing)) = self.descending.take(datagram) {
                    self.resolve(usize::from(node), outgoing);
                }
            }
        }
        true
    }
}

/// Each remembers the last frame of every other.
const MOST_NODES: usize = 4_096;

#[cfg(test)]
mod tests;

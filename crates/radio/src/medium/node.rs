//! One node: router, interface queue, MAC and receiver.

use weir_units::{Bytes, Duration, Instant, Rng};

use super::super::agent::Agent;
use super::super::arp::ArpTable;
use super::super::config::RadioConfig;
use super::super::datagram::NodeId;
use super::super::dcf::Dcf;
use super::super::ifq::{InterfaceQueue, Outgoing, Packet};
use super::super::receiver::Receiver;
use super::super::routing::Router;
use super::super::stats::{BusyTime, RadioStats};
use weir_net::Parcel;
use weir_net::feedback::Occupancy;

#[derive(Debug)]
pub(super) struct Node<P, R: Router<P>> {
    pub(super) router: R,
    pub(super) routing_rng: Rng,
    /// The deadline that the agenda holds for the router, and which one it is.
    pub(super) router_armed: Option<Instant>,
    pub(super) router_generation: u32,
    pub(super) arp: ArpTable<P, R::Message>,
    pub(super) queue: InterfaceQueue<P, R::Message>,
    /// What the MAC has at hand.
    pub(super) current: Option<Current<P, R::Message>>,
    pub(super) dcf: Dcf,
    /// The entry that the agenda holds for the MAC, at its deadline or before, and which one it is.
    pub(super) mac_armed: Option<Instant>,
    pub(super) mac_generation: u32,
    pub(super) receiver: Receiver,
    /// The end of what it is sending.
    pub(super) sending_until: Instant,
    pub(super) agent: Option<Box<dyn Agent<P>>>,
    pub(super) medium: BusyTime,
    pub(super) service_since: Option<Instant>,
    pub(super) stats: RadioStats,
}

/// A packet that the MAC is to bring to a neighbour.
#[derive(Clone, Debug)]
pub(super) struct Current<P, M> {
    pub(super) to: NodeId,
    pub(super) packet: Packet<P, M>,
    /// The neighbour has it, whether or not its acknowledgement arrives.
    pub(super) taken: bool,
}

impl<P: Parcel, R: Router<P>> Node<P, R> {
    pub(super) fn new(
        number: usize,
        nodes: usize,
        config: &RadioConfig,
        router: R,
        rng: &mut impl FnMut(&str) -> Rng,
    ) -> Self {
        let id = NodeId(number as u16);
        let mac_rng = rng(&format!("node {number} backoff"));
        Self {
            router,
            routing_rng: rng(&format!("node {number} routing")),
            router_armed: None,
            router_generation: 0,
            arp: ArpTable::new(),
            queue: InterfaceQueue::new(
                config.queue,
                config.phy.exchange_time(FULL_PACKET),
                rng(&format!("node {number} red")),
            ),
            current: None,
            dcf: Dcf::new(id, nodes, config.phy, config.mac, mac_rng),
            mac_armed: None,
            mac_generation: 0,
            receiver: Receiver::default(),
            sending_until: Instant::ZERO,
            agent: None,
            medium: BusyTime::default(),
            service_since: None,
            stats: RadioStats::default(),
        }
    }

    /// The medium is busy here until then at least.
    #[inline]
    pub(super) fn occupy(&mut self, now: Instant, until: Instant) {
        let agent = &mut self.agent;
        self.medium.occupy(now, until, |time, state| {
            if let Some(agent) = agent {
                agent.on_medium(time, state);
            }
        });
    }

    /// Tells the agent, if there is one, once it knows all about the medium that is earlier.
    pub(super) fn notify_agent(&mut self, now: Instant, what: impl FnOnce(&mut dyn Agent<P>)) {
        if let Some(agent) = &mut self.agent {
            self.medium.settle(now, |time, state| agent.on_medium(time, state));
            what(agent.as_mut());
        }
    }

    /// Puts a packet into the queue; returns the one that had to go.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        mut outgoing: Outgoing<P, R::Message>,
    ) -> Option<Outgoing<P, R::Message>> {
        let ahead = self.queue.backlog();
        if let Some(parcel) = outgoing.packet.parcel_mut() {
            self.notify_agent(now, |agent| agent.on_arrival(now, parcel, ahead));
        }
        let displaced = self.queue.push(now, outgoing);
        self.stats.marks = self.queue.marks();
        self.stats.queue_peak = self.stats.queue_peak.max(self.queue.len() as u64);
        displaced
    }

    /// Moves the next packet from the queue to the MAC, and says where it goes and how long it is.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<(NodeId, Bytes)> {
        let Some(Outgoing { to, mut packet }) = self.queue.pop(now) else {
            self.serve(now, Occupancy::Idle);
            return None;
        };
        self.serve(now, Occupancy::Busy);
        let behind = self.queue.backlog();
        if let Some(parcel) = packet.parcel_mut() {
            self.notify_agent(now, |agent| agent.on_departure(now, parcel, behind));
        }
        let len = packet.len();
        self.current = Some(Current { to, packet, taken: false });
        Some((to, len))
    }

    /// For how long the MAC has had a packet by `now`.
    pub(super) fn service_busy(&self, now: Instant) -> Duration {
        let current =
            self.service_since.map_or(Duration::ZERO, |since| now.saturating_since(since));
        self.stats.service_busy + current
    }

    fn serve(&mut self, now: Instant, state: Occupancy) {
        match (self.service_since, state) {
            (None, Occupancy::Busy) => self.service_since = Some(now),
            (Some(since), Occupancy::Idle) => {
                self.service_since = None;
                self.stats.service_busy += now.saturating_since(since);
            }
            _ => return,
        }
        self.notify_agent(now, |agent| agent.on_service(now, state));
    }
}

/// What counts as a full-sized packet where RED's average shrinks with time.
const FULL_PACKET: Bytes = Bytes(1_500);

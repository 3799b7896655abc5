//! The queue between routing and MAC.
//!
//! ns-2's `PriQueue` over a drop-tail queue: 50 packets, and messages of routing protocols pass what
//! flows sent; a message that meets a full queue displaces the last packet of a flow. Among themselves
//! messages keep their order, where ns-2 reverses it. ARP's packets queue with those of flows.
//!
//! With RED (`red.rs`) flows' packets are marked or dropped early, by the average of all packets that wait here.
//! As in ns-2, the one that the MAC has at hand does not count. An average that nothing has joined while
//! the queue was empty shrinks with time.

use std::collections::VecDeque;

use weir_units::{Bytes, Duration, Instant, Rng};

use super::config::{InterfaceQueueConfig, Order};
use super::datagram::{Content, Datagram, NodeId};
use weir_net::EarlyDetection;
use weir_net::Parcel;
use weir_net::{Backlog, mark};

/// What an interface sends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Packet<P, M> {
    Datagram(Datagram<P, M>),
    Arp(ArpPacket),
}

/// A question for the address of `target`, or its answer to `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArpPacket {
    Request { source: NodeId, target: NodeId },
    Reply { source: NodeId, target: NodeId },
}

/// A packet and the neighbour that is to have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outgoing<P, M> {
    pub(super) to: NodeId,
    pub(super) packet: Packet<P, M>,
}

#[derive(Clone, Debug)]
pub(super) struct InterfaceQueue<P, M> {
    config: InterfaceQueueConfig,
    first: VecDeque<Outgoing<P, M>>,
    rest: VecDeque<Outgoing<P, M>>,
    bytes: Bytes,
    red: Option<EarlyDetection>,
    marks: u64,
}

impl<P: Parcel, M> Packet<P, M> {
    pub(super) fn len(&self) -> Bytes {
        match self {
            Self::Datagram(datagram) => datagram.len(),
            Self::Arp(_) => ARP_LENGTH,
        }
    }

    /// The flow's parcel in it.
    pub(super) fn parcel(&self) -> Option<&P> {
        match self {
            Self::Datagram(Datagram { content: Content::Parcel(parcel, _), .. }) => Some(parcel),
            _ => None,
        }
    }

    pub(super) fn parcel_mut(&mut self) -> Option<&mut P> {
        match self {
            Self::Datagram(Datagram { content: Content::Parcel(parcel, _), .. }) => Some(parcel),
            _ => None,
        }
    }

    fn is_message(&self) -> bool {
        matches!(self, Self::Datagram(Datagram { content: Content::Message(..), .. }))
    }
}

impl<P: Parcel, M> InterfaceQueue<P, M> {
    /// An empty queue. `parcel_time` is what a full-sized packet takes to be sent, by which RED's average shrinks
    /// while the queue is empty; `rng` is RED's.
    pub(super) fn new(config: InterfaceQueueConfig, parcel_time: Duration, rng: Rng) -> Self {
        Self {
            config,
            first: VecDeque::new(),
            rest: VecDeque::new(),
            bytes: Bytes::ZERO,
            red: config.red.map(|red| EarlyDetection::new(red, Some(parcel_time), rng)),
            marks: 0,
        }
    }

    /// Processes a packet; returns the one that has to go for it, perhaps itself.
    pub(super) fn push(
        &mut self,
        now: Instant,
        mut outgoing: Outgoing<P, M>,
    ) -> Option<Outgoing<P, M>> {
        if self.len() < self.config.packets && self.drops_early(now, &mut outgoing.packet) {
            return Some(outgoing);
        }
        let passes = self.config.order == Order::RoutingFirst && outgoing.packet.is_message();
        let mut displaced = None;
        if self.len() >= self.config.packets {
            match if passes { self.rest.pop_back() } else { None } {
                Some(last) => {
                    self.bytes = self.bytes.saturating_sub(last.packet.len());
                    displaced = Some(last);
                }
                None => return Some(outgoing),
            }
        }
        self.bytes += outgoing.packet.len();
        let queue = if passes { &mut self.first } else { &mut self.rest };
        queue.push_back(outgoing);
        displaced
    }

    /// Whether RED drops a flow's packet; one that is capable of ECN is marked in place of that.
    fn drops_early(&mut self, now: Instant, packet: &mut Packet<P, M>) -> bool {
        let backlog = self.backlog();
        let (Some(early), Some(parcel)) = (&mut self.red, packet.parcel_mut()) else {
            return false;
        };
        let ecn = self.config.red.is_some_and(|red| red.ecn);
        early.on_arrival(now, backlog) && !(ecn && mark(parcel, &mut self.marks))
    }

    /// How many packets RED has marked.
    pub(super) fn marks(&self) -> u64 {
        self.marks
    }

    pub(super) fn pop(&mut self, now: Instant) -> Option<Outgoing<P, M>> {
        let next = self.first.pop_front().or_else(|| self.rest.pop_front());
        let Some(next) = next else {
            if let Some(early) = &mut self.red {
                early.on_idle(now);
            }
            return None;
        };
        self.bytes = self.bytes.saturating_sub(next.packet.len());
        Some(next)
    }

    /// Takes out all datagrams for the neighbour `to`, in order.
    pub(super) fn take_for(&mut self, to: NodeId) -> Vec<Datagram<P, M>> {
        let mut taken = Vec::new();
        for queue in [&mut self.first, &mut self.rest] {
            if queue.iter().any(|outgoing| outgoing.to == to) {
                for outgoing in std::mem::take(queue) {
                    match outgoing {
                        Outgoing { to: next, packet: Packet::Datagram(datagram) } if next == to => {
                            self.bytes = self.bytes.saturating_sub(datagram.len());
                            taken.push(datagram);
                        }
                        other => queue.push_back(other),
                    }
                }
            }
        }
        taken
    }

    pub(super) fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.len() as u64, bytes: self.bytes }
    }

    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet<P, M>> {
        self.first.iter().chain(&self.rest).map(|outgoing| &outgoing.packet)
    }
}

/// RFC 826 with addresses of six and four bytes.
const ARP_LENGTH: Bytes = Bytes(28);

#[cfg(test)]
mod tests {
    use weir_units::{Ratio, stream};

    use super::*;
    use crate::probe::Probe;
    use weir_net::Ecn;
    use weir_net::Limit;
    use weir_net::RedConfig;

    fn queue(packets: usize, order: Order) -> InterfaceQueue<Probe, u64> {
        with_red(InterfaceQueueConfig { packets, order, red: None })
    }

    fn with_red(config: InterfaceQueueConfig) -> InterfaceQueue<Probe, u64> {
        InterfaceQueue::new(config, Duration::from_millis(5), stream(1, "red"))
    }

    fn outgoing(to: u16, content: Content<Probe, u64>) -> Outgoing<Probe, u64> {
        let (source, destination) = (NodeId(0), NodeId(to));
        let datagram = Datagram { source, destination, ttl: 1, hops: 0, extra: Bytes(8), content };
        Outgoing { to: destination, packet: Packet::Datagram(datagram) }
    }

    fn parcel(to: u16, id: u64) -> Outgoing<Probe, u64> {
        outgoing(to, Content::Parcel(Probe::data(id, 92), None))
    }

    fn message(number: u64) -> Outgoing<Probe, u64> {
        outgoing(9, Content::Message(number, Bytes(42)))
    }

    fn names(queue: &mut InterfaceQueue<Probe, u64>) -> Vec<String> {
        let name = |out: Outgoing<Probe, u64>| match out.packet {
            Packet::Datagram(Datagram { content: Content::Message(number, _), .. }) => {
                format!("m{number}")
            }
            packet => format!("p{}", packet.parcel().map_or(0, |parcel| parcel.id)),
        };
        std::iter::from_fn(|| queue.pop(Instant::ZERO)).map(name).collect()
    }

    #[test]
    fn messages_pass_parcels_and_keep_their_order() {
        let mut all = queue(50, Order::RoutingFirst);
        for out in [parcel(1, 1), message(1), parcel(1, 2), message(2)] {
            assert_eq!(all.push(Instant::ZERO, out), None);
        }
        assert_eq!(all.backlog(), Backlog { packets: 4, bytes: Bytes(300) });
        assert_eq!(names(&mut all), ["m1", "m2", "p1", "p2"]);
        assert_eq!(all.backlog(), Backlog::default());
        let mut all = queue(50, Order::Fifo);
        for out in [parcel(1, 1), message(1)] {
            all.push(Instant::ZERO, out);
        }
        assert_eq!(names(&mut all), ["p1", "m1"]);
    }

    #[test]
    fn a_message_displaces_the_last_parcel_of_a_full_queue() {
        let mut all = queue(2, Order::RoutingFirst);
        all.push(Instant::ZERO, parcel(1, 1));
        all.push(Instant::ZERO, parcel(1, 2));
        assert_eq!(all.push(Instant::ZERO, parcel(1, 3)), Some(parcel(1, 3)));
        assert_eq!(all.push(Instant::ZERO, message(1)), Some(parcel(1, 2)));
        assert_eq!(all.push(Instant::ZERO, message(2)), Some(parcel(1, 1)));
        assert_eq!(
            all.push(Instant::ZERO, message(3)),
            Some(message(3)),
            "messages do not displace each other"
        );
        assert_eq!(names(&mut all), ["m1", "m2"]);
    }

    #[test]
    fn what_waits_for_one_neighbour_can_be_taken_out() {
        let mut all = queue(50, Order::RoutingFirst);
        for out in [parcel(1, 1), parcel(2, 2), parcel(1, 3)] {
            all.push(Instant::ZERO, out);
        }
        let taken = all.take_for(NodeId(1));
        assert_eq!(taken.len(), 2);
        assert_eq!(all.backlog(), Backlog { packets: 1, bytes: Bytes(100) });
        assert_eq!(names(&mut all), ["p2"]);
    }

    /// Gentle RED from 5 to 15 packets, with an average that follows the queue at once.
    #[test]
    fn red_marks_flows_that_can_be_marked_and_drops_others() {
        let red = RedConfig {
            limit: Limit::Infinite,
            min: Limit::Packets(5),
            max: Limit::Packets(15),
            probability: Ratio::from_percent(10),
            weight: Ratio::ONE,
            gentle: false,
            ecn: true,
        };
        let config =
            InterfaceQueueConfig { packets: 50, order: Order::RoutingFirst, red: Some(red) };
        for (ecn, held, marks) in [(Ecn::Ect0, 30, 15), (Ecn::NotEct, 15, 0)] {
            let mut all = with_red(config);
            let mut sent = 0;
            for id in 0..30 {
                let probe = Probe { ecn, ..Probe::data(id, 92) };
                let refused = all.push(Instant::ZERO, outgoing(1, Content::Parcel(probe, None)));
                sent += u64::from(refused.is_none());
                assert!(refused.is_none() || all.len() >= 5, "below min nothing happens");
            }
            assert_eq!(all.push(Instant::ZERO, message(1)), None, "not a flow's");
            assert_eq!(all.len() as u64, sent + 1);
            // From max on every packet; between min and max a few by chance.
            assert!(sent <= held && all.marks() >= marks, "{sent} {}", all.marks());
            assert!(all.marks() == 0 || ecn == Ecn::Ect0);
        }
    }
}

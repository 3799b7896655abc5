//! Between router and MAC.

use weir_units::Instant;

use super::super::arp::Resolved;
use super::super::config::Arp;
use super::super::datagram::{Content, Datagram, DropReason, NodeId};
use super::super::dcf::Outcome;
use super::super::events::Due;
use super::super::ifq::{ArpPacket, Outgoing, Packet};
use super::super::routing::{LinkFailure, Router, RouterCx, Upcall};
use super::super::stats::PacketClass;
use super::air::chance;
use super::node::Current;
use super::{Radio, RadioEvent};
use weir_net::Parcel;

/// What the router reacts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    Usual,
    /// A neighbour did not answer the MAC: what waited for it is already below the link delay.
    MacFailure,
    /// A neighbour did not answer ARP.
    ArpFailure,
}

impl<P, R> Radio<P, R>
where
    P: Parcel + Clone,
    R: Router<P>,
    R::Message: Clone,
{
    /// Lets the router of a node do something, and executes its outputs.
    pub(super) fn route(
        &mut self,
        number: usize,
        step: impl FnOnce(&mut R, &mut RouterCx<'_, P, R::Message>),
    ) {
        self.route_on(number, Occasion::Usual, step);
    }

    /// The deadline of a node's router.
    pub(super) fn router_timeout(&mut self, number: usize, generation: u32) {
        let node = &mut self.nodes[number];
        if node.router_generation == generation {
            node.router_armed = None;
            self.route(number, |router, cx| router.handle_timeout(cx));
        }
    }

    pub(super) fn arm_router(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let deadline = node.router.next_timeout();
        if deadline == node.router_armed {
            return;
        }
        node.router_armed = deadline;
        node.router_generation = node.router_generation.wrapping_add(1);
        if let Some(time) = deadline {
            let generation = node.router_generation;
            self.agenda.push(time.max(self.now), Due::Router { node: number as u16, generation });
        }
    }

    /// A packet has come down: does it need an address first?
    pub(super) fn resolve(&mut self, number: usize, outgoing: Outgoing<P, R::Message>) {
        let asks = self.config.arp == Arp::Asked && !outgoing.to.is_broadcast();
        match outgoing.packet {
            Packet::Datagram(datagram) if asks => self.ask(number, outgoing.to, datagram),
            _ => self.queue(number, outgoing),
        }
    }

    /// A packet comes up from the MAC.
    pub(super) fn deliver_up(
        &mut self,
        number: usize,
        from: NodeId,
        packet: Packet<P, R::Message>,
    ) {
        match packet {
            Packet::Arp(arp) => self.received_arp(number, arp),
            Packet::Datagram(datagram) => {
                if chance(self.config.packet_loss, &mut self.errors) {
                    return self.give_up(number, datagram, DropReason::FrameError);
                }
                self.route(number, |router, cx| router.received(cx, from, datagram));
            }
        }
    }

    /// The MAC is done with its packet, and gets the next.
    pub(super) fn finish(&mut self, number: usize, outcome: Outcome, retries: u32) {
        let now = self.now;
        let node = &mut self.nodes[number];
        let Some(Current { to, packet, taken }) = node.current.take() else { return };
        node.notify_agent(now, |agent| agent.on_frame(now, retries));
        if let (Outcome::GivenUp(_), Packet::Datagram(datagram)) = (outcome, packet) {
            let is_parcel = matches!(datagram.content, Content::Parcel(..));
            node.stats.copies += u64::from(taken && is_parcel);
            let waiting = node.queue.take_for(to);
            let failure = LinkFailure { next_hop: to, datagram, waiting };
            self.route_on(number, Occasion::MacFailure, |router, cx| {
                router.link_failed(cx, failure)
            });
        }
        let node = &mut self.nodes[number];
        let next = node.take_next(now);
        node.dcf.complete(next);
    }

    fn route_on(
        &mut self,
        number: usize,
        occasion: Occasion,
        step: impl FnOnce(&mut R, &mut RouterCx<'_, P, R::Message>),
    ) {
        let node = &mut self.nodes[number];
        let mut cx = RouterCx {
            now: self.now,
            node: NodeId(number as u16),
            rng: &mut node.routing_rng,
            upcalls: &mut self.upcalls,
        };
        step(&mut node.router, &mut cx);
        let mut upcalls = std::mem::take(&mut self.upcalls);
        for upcall in upcalls.drain(..) {
            self.execute(number, occasion, upcall);
        }
        self.upcalls = upcalls;
        self.arm_router(number);
    }

    fn execute(&mut self, number: usize, occasion: Occasion, upcall: Upcall<P, R::Message>) {
        let node = NodeId(number as u16);
        match upcall {
            Upcall::Send { next_hop, datagram, delay } => {
                let outgoing = Outgoing { to: next_hop, packet: Packet::Datagram(datagram) };
                if occasion == Occasion::MacFailure && delay.is_zero() {
                    return self.requeue(number, outgoing);
                }
                let time = self.now.saturating_add(delay).saturating_add(self.config.link_delay);
                self.descend(time, number, outgoing);
            }
            Upcall::Deliver(Datagram {
                content: Content::Parcel(parcel, _), hops, source, ..
            }) => {
                self.out.push_back(RadioEvent::Delivered { node, parcel, hops, source });
            }
            Upcall::Deliver(_) => {}
            Upcall::Drop(datagram, reason) => {
                // A router cannot know which of the two it was.
                let arp = occasion == Occasion::ArpFailure && reason == DropReason::MacRetries;
                let reason = if arp { DropReason::Arp } else { reason };
                self.give_up(number, datagram, reason);
            }
            Upcall::Notify { flow, notice } => {
                self.out.push_back(RadioEvent::Notice { node, flow, notice });
            }
            Upcall::RouteChanged { destination, next_hop } => {
                self.out.push_back(RadioEvent::RouteChanged { node, destination, next_hop });
            }
        }
    }

    fn descend(&mut self, time: Instant, number: usize, outgoing: Outgoing<P, R::Message>) {
        let datagram = self.descending.insert((number as u16, outgoing));
        self.agenda.push(time, Due::Interface { datagram });
    }

    /// Puts a packet into the queue, and to the MAC if that is free.
    fn queue(&mut self, number: usize, outgoing: Outgoing<P, R::Message>) {
        self.requeue(number, outgoing);
        let node = &mut self.nodes[number];
        if node.current.is_none()
            && let Some((to, len)) = node.take_next(self.now)
        {
            node.dcf.submit(self.now, to, len);
            self.settle_mac(number);
        }
    }

    fn requeue(&mut self, number: usize, outgoing: Outgoing<P, R::Message>) {
        let displaced = self.nodes[number].enqueue(self.now, outgoing);
        if let Some(Outgoing { packet: Packet::Datagram(datagram), .. }) = displaced {
            self.give_up(number, datagram, DropReason::QueueFull);
        }
    }

    fn ask(&mut self, number: usize, to: NodeId, datagram: Datagram<P, R::Message>) {
        match self.nodes[number].arp.resolve(to, datagram) {
            Resolved::Go(datagram) => {
                self.queue(number, Outgoing { to, packet: Packet::Datagram(datagram) });
            }
            Resolved::Ask { displaced } => {
                if let Some(displaced) = displaced {
                    self.give_up(number, displaced, DropReason::Arp);
                }
                let request = ArpPacket::Request { source: NodeId(number as u16), target: to };
                let packet = Packet::Arp(request);
                self.queue(number, Outgoing { to: NodeId::BROADCAST, packet });
            }
            Resolved::Fail(datagram, held) => {
                for datagram in held.into_iter().chain([datagram]) {
                    let failure = LinkFailure { next_hop: to, datagram, waiting: Vec::new() };
                    self.route_on(number, Occasion::ArpFailure, |router, cx| {
                        router.link_failed(cx, failure);
                    });
                }
            }
        }
    }

    fn received_arp(&mut self, number: usize, packet: ArpPacket) {
        let (ArpPacket::Request { source, target } | ArpPacket::Reply { source, target }) = packet;
        if let Some(held) = self.nodes[number].arp.learn(source) {
            self.queue(number, Outgoing { to: source, packet: Packet::Datagram(held) });
        }
        let here = NodeId(number as u16);
        if target == here && matches!(packet, ArpPacket::Request { .. }) {
            let packet = Packet::Arp(ArpPacket::Reply { source: here, target: source });
            self.queue(number, Outgoing { to: source, packet });
        }
    }

    /// A datagram goes no further.
    fn give_up(&mut self, number: usize, datagram: Datagram<P, R::Message>, reason: DropReason) {
        let stats = &mut self.nodes[number].stats;
        match datagram.content {
            Content::Message(..) => stats.count_drop(PacketClass::Message, reason),
            Content::Parcel(parcel, _) => {
                stats.count_drop(PacketClass::Parcel, reason);
                let node = NodeId(number as u16);
                self.out.push_back(RadioEvent::Dropped { node, parcel, reason });
            }
        }
    }
}

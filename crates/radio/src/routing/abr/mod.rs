//! ABR: Associativity-Based Routing (Toh, Wireless Personal Communications 4(2), 1997), with the
//! notices of TCP-BuS (Kim, Toh & Choi, ICC 2000; Journal of Communications and Networks 3(2), 2001).
//!
//! Nodes beacon; each beacon heard is a tick, and a link with more than a few ticks is stable, for its
//! ends evidently move together. A query (BQ) floods and collects ticks and load; the destination
//! waits a moment and chooses: fewest unstable links, then least load, then fewest hops. Its reply
//! sets up the route, in both directions, along the nodes chosen.
//!
//! ```text
//! break at a node nearer the destination   localized query (LQ), parcels wait
//! no answer                                RN: one hop back, which tries the same, up to half-way
//! further back, or nothing helps           RN to the source, which floods again
//! no answer to the source                  RD floods: all forget the route
//! ```
//!
//! TCP-BuS: the pivoting node sends ERDN to the source, with the sequence number of the parcel that waits
//! first; nodes in between keep what they have. A reply carries what receivers expect next (the
//! destination's router reads it off the acknowledgements that pass it), and ERSN takes that to
//! the source; then all send again. Both are repeated until the next hop acknowledges.
//!
//! Deviations. An explicit acknowledgement replaces the passive one, as nodes do not overhear here. A localized
//! query goes two hops further than the destination was: a way around is longer than the way. Nodes
//! between source and break take no part in it, lest the route fold back upon itself. Acknowledgements
//! that find the way back broken are dropped, and the break is mended by the next parcel from the
//! source. RN does not go downstream: dead ends there are forgotten when unused.
//!
//! The papers leave open when a query is repeated. A source that has had replies from a destination
//! waits for the time of a choice and twice what the last three replies took besides, as ns-2's AODV
//! does. These waits double up to `query_wait`. Floods are often lost where a link fails by collisions.
//!
//! No circles, as in AODV (RFC 3561 §6.1): destinations number their replies, a reply sets up the next
//! hop before it reaches a node, and no node goes back to an older one. Downstream, the number never
//! falls, and as long as it stays the hops left get fewer. Upstream has no such order: the next hop
//! hears of the reply later, or never. So a node takes what comes back only from its own next hop: what
//! comes back walks a way without circles, in reverse. This holds as long as nodes remember the number:
//! a route unused for `route_life`, or one too many for the table, is forgotten with it. (Sources forget
//! it with a broken route, but are no node's next hop.)
//!
//! Parameters: [`AbrConfig`].

mod breaks;
mod config;
mod discovery;
mod signal;
mod table;
#[cfg(test)]
mod tests;

pub use config::AbrConfig;

use std::collections::BTreeMap;
use std::fmt::Debug;

use weir_units::{Duration, Instant};

use self::discovery::{Choice, Discovery, ReplyTimes};
use self::signal::Signals;
use self::table::{Neighbours, Route, RouteTable, State};
use super::buffer::SendBuffer;
use super::messages::{AbrMessage, Backtrack, Message, NoticeMessage, RouteKey};
use super::notices::{NoticeAgent, Notices, Passing};
use super::seen::Seen;
use super::{Cx, LinkFailure, Packet, Router, Upcall, next_leg, packet};
use crate::datagram::{Content, DropReason, NodeId};
use weir_net::Parcel;

/// ABR at one node.
#[derive(Clone, Debug)]
pub struct Abr<P> {
    config: AbrConfig,
    next_beacon: Instant,
    neighbours: Neighbours,
    table: RouteTable,
    buffer: SendBuffer<P>,
    discoveries: BTreeMap<NodeId, Discovery>,
    reply_times: ReplyTimes,
    choices: Vec<Choice>,
    seen: Seen,
    /// Numbers queries, floods and signals.
    id: u32,
    notices: NoticeAgent,
    signals: Signals,
}

impl<P> Abr<P> {
    /// A router without routes.
    pub fn new(config: &AbrConfig) -> Self {
        Self {
            config: *config,
            next_beacon: Instant::ZERO,
            neighbours: Neighbours::default(),
            table: RouteTable::new(config.route_life),
            buffer: SendBuffer::new(config.buffer),
            discoveries: BTreeMap::new(),
            reply_times: ReplyTimes::default(),
            choices: Vec::new(),
            seen: Seen::new(FLOOD_LIFE),
            id: 0,
            notices: NoticeAgent::new(config.notices),
            signals: Signals::default(),
        }
    }

    /// How many parcels wait for a route.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }
}

/// Where a parcel goes from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Hop(NodeId),
    Wait,
    Nowhere,
}

impl<P: Parcel + Debug> Router<P> for Abr<P> {
    type Message = Message;

    fn originate(&mut self, cx: &mut Cx<'_, P>, mut datagram: Packet<P>) {
        datagram.ttl = self.config.diameter;
        if datagram.destination == cx.node {
            return cx.upcalls.push(Upcall::Deliver(datagram));
        }
        self.signals.on_originated(&datagram);
        self.choose_direction(cx.now, &mut datagram);
        match self.next(cx.now, &datagram) {
            Next::Hop(next_hop) => cx.send(next_hop, datagram),
            Next::Wait => self.hold(cx, datagram),
            Next::Nowhere => {
                let destination = datagram.destination;
                self.hold(cx, datagram);
                self.start_discovery(cx, destination);
            }
        }
    }

    fn received(&mut self, cx: &mut Cx<'_, P>, from: NodeId, mut datagram: Packet<P>) {
        datagram.hops = datagram.hops.saturating_add(1);
        match datagram.content {
            Content::Message(Message::Abr(message), _) => {
                self.on_message(cx, from, datagram.ttl, message);
            }
            Content::Message(Message::Notice(notice), _) => {
                self.on_notice(cx, from, datagram, notice);
            }
            Content::Message(..) => {}
            Content::Parcel(..) if datagram.destination == cx.node => {
                self.mend_upstream(cx.now, from, &datagram);
                cx.upcalls.push(Upcall::Deliver(datagram));
            }
            Content::Parcel(..) => match next_leg(&mut datagram) {
                Ok(()) => self.forward(cx, from, datagram),
                Err(reason) => cx.drop(datagram, reason),
            },
        }
    }

    fn link_failed(&mut self, cx: &mut Cx<'_, P>, failure: LinkFailure<P, Message>) {
        self.on_link_failure(cx, failure);
    }

    fn next_timeout(&self) -> Option<Instant> {
        let discovery = self.discoveries.values().map(|discovery| discovery.deadline).min();
        let choice = self.choices.iter().map(|choice| choice.deadline).min();
        let deadlines = [
            Some(self.next_beacon),
            discovery,
            choice,
            self.table.next_deadline(),
            self.buffer.next_expiry(),
            self.signals.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_, P>) {
        if self.next_beacon <= cx.now {
            self.next_beacon = cx.now + self.config.beacon_interval;
            self.broadcast(cx, AbrMessage::Beacon, 1, self.config.jitter);
        }
        while let Some(datagram) = self.buffer.pop_expired(cx.now) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
        while let Some(choice) = self.pop_choice(cx.now) {
            self.reply(cx, choice);
        }
        while let Some(key) = self.table.overdue(cx.now) {
            self.on_overdue(cx, key);
        }
        while let Some(destination) = self.overdue(cx.now) {
            self.on_no_reply(cx, destination);
        }
        self.repeat_signals(cx);
    }
}

impl<P: Parcel + Debug> Abr<P> {
    fn on_message(&mut self, cx: &mut Cx<'_, P>, from: NodeId, ttl: u8, message: AbrMessage) {
        match message {
            AbrMessage::Back => {}
            AbrMessage::Beacon => {
                self.neighbours.on_beacon(cx.now, from, self.patience());
            }
            AbrMessage::Query(query) => self.on_query(cx, from, ttl, query),
            AbrMessage::Reply(reply) => self.on_reply(cx, from, reply),
            AbrMessage::Broken { route, repair } => self.on_broken(cx, from, route, repair),
            AbrMessage::Delete { id, route } => self.on_delete(cx, ttl, id, route),
            AbrMessage::Signal { id, source, notice } => {
                self.on_signal(cx, from, id, source, notice);
            }
            AbrMessage::SignalAck { id } => self.signals.on_ack(from, id),
        }
    }

    /// Acknowledgements go back along the route of what they acknowledge, if there is one. They say
    /// so: a node on both routes would else mix them, perhaps into a circle.
    fn choose_direction(&mut self, now: Instant, datagram: &mut Packet<P>) {
        let back = self.upstream(now, datagram.destination, datagram.source);
        let Content::Parcel(parcel, attached) = &mut datagram.content else { return };
        let goes_back = !parcel.is_forward() && back.is_some();
        *attached = goes_back.then_some(Message::Abr(AbrMessage::Back));
    }

    /// Where a parcel goes from here.
    fn next(&mut self, now: Instant, datagram: &Packet<P>) -> Next {
        let (source, destination) = (datagram.source, datagram.destination);
        if is_back(datagram) {
            return self.upstream(now, destination, source).map_or(Next::Nowhere, Next::Hop);
        }
        self.ahead(now, RouteKey { source, destination })
    }

    /// Where the route goes from here.
    fn ahead(&mut self, now: Instant, key: RouteKey) -> Next {
        match self.table.get(now, key) {
            Some(Route { state: State::Whole, downstream: Some(hop), .. }) => Next::Hop(*hop),
            Some(Route { state: State::Repair { .. } | State::Frozen { .. }, .. }) => Next::Wait,
            _ => Next::Nowhere,
        }
    }

    fn forward(&mut self, cx: &mut Cx<'_, P>, from: NodeId, datagram: Packet<P>) {
        let (source, destination) = (datagram.source, datagram.destination);
        if is_back(&datagram) {
            let route = RouteKey { source: destination, destination: source };
            return match self.back(cx.now, route, from) {
                Some(upstream) => cx.send(upstream, datagram),
                None => cx.drop(datagram, DropReason::NoRoute),
            };
        }
        self.mend_upstream(cx.now, from, &datagram);
        match self.next(cx.now, &datagram) {
            Next::Hop(next_hop) => cx.send(next_hop, datagram),
            Next::Wait => self.hold(cx, datagram),
            Next::Nowhere => {
                self.lose(cx, datagram, DropReason::NoRoute);
                let route = RouteKey { source, destination };
                let broken = AbrMessage::Broken { route, repair: Backtrack::Source };
                self.unicast(cx, from, broken);
            }
        }
    }

    /// A parcel from the source shows who is upstream, which this node may have from a reply that was
    /// lost further on, or have found broken. Only a node whose next hop is this one sends it, so the way
    /// back stays the way there in reverse.
    fn mend_upstream(&mut self, now: Instant, from: NodeId, datagram: &Packet<P>) {
        let key = RouteKey { source: datagram.source, destination: datagram.destination };
        if let Some(route) = self.table.get(now, key).filter(|_| !is_back(datagram)) {
            route.upstream = Some(from);
        }
    }

    /// Keeps `datagram` until there is a route.
    fn hold(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>) {
        if let Some(oldest) = self.buffer.push(cx.now, datagram) {
            cx.drop(oldest, DropReason::BufferFull);
        }
    }

    /// Sends on what has waited for `destination`, as far as there are routes now.
    fn release(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        for datagram in self.buffer.take(destination) {
            match self.next(cx.now, &datagram) {
                Next::Hop(next_hop) => cx.send(next_hop, datagram),
                _ => self.hold(cx, datagram),
            }
        }
    }

    /// Gives `datagram` up, and tells its source if transports are notified.
    fn lose(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>, reason: DropReason) {
        let (source, destination) = (datagram.source, datagram.destination);
        self.notify_source(cx, &datagram);
        cx.drop(datagram, reason);
        if source == cx.node {
            self.seek_for_silent(cx, destination);
        }
    }

    /// Tells the source of `lost` that its route is broken, if transports are notified.
    fn notify_source(&mut self, cx: &mut Cx<'_, P>, lost: &Packet<P>) {
        let Some(notice) = self.notices.failed(cx, lost) else { return };
        self.send_notice(cx, lost.source, notice);
    }

    /// Sends a notice back along the route that it is about.
    fn send_notice(&mut self, cx: &mut Cx<'_, P>, source: NodeId, notice: NoticeMessage) {
        let Some(upstream) = self.upstream(cx.now, source, notice.destination) else { return };
        if self.config.notices == Notices::Bus {
            self.signal(cx, upstream, source, notice);
        } else {
            cx.send(upstream, self.notices.packet(cx.node, source, notice));
        }
    }

    fn upstream(&mut self, now: Instant, source: NodeId, destination: NodeId) -> Option<NodeId> {
        self.table.get(now, RouteKey { source, destination })?.upstream
    }

    /// Where something goes that has come back along `route` from `from`: nowhere unless `route` leads
    /// there. While a reply is on its way, or if it is lost, nodes may disagree about who is upstream.
    fn back(&mut self, now: Instant, route: RouteKey, from: NodeId) -> Option<NodeId> {
        let route = self.table.get(now, route)?;
        route.upstream.filter(|_| route.downstream == Some(from))
    }

    fn on_notice(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        mut datagram: Packet<P>,
        notice: NoticeMessage,
    ) {
        let source = datagram.destination;
        let route = RouteKey { source, destination: notice.destination };
        let next = self.ahead(cx.now, route);
        let other = matches!(next, Next::Hop(hop) if hop != from);
        if self.notices.passing(cx, source, notice, other) == Passing::Absorb {
            if source == cx.node {
                self.seek_for_silent(cx, notice.destination);
            }
            return;
        }
        let upstream = self.back(cx.now, route, from);
        match upstream.filter(|_| next_leg(&mut datagram).is_ok()) {
            Some(upstream) => cx.send(upstream, datagram),
            None => cx.drop(datagram, DropReason::NoRoute),
        }
    }

    /// A source that has been silenced looks for a new route by itself, once its own is gone.
    fn seek_for_silent(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let nowhere =
            self.ahead(cx.now, RouteKey { source: cx.node, destination }) == Next::Nowhere;
        if nowhere && self.notices.seeks(cx.now, cx.node, destination) {
            self.start_discovery(cx, destination);
        }
    }

    fn broadcast(&self, cx: &mut Cx<'_, P>, message: AbrMessage, ttl: u8, jitter: Duration) {
        let len = message.len(self.notices.len());
        cx.broadcast(packet(cx.node, NodeId::BROADCAST, ttl, Message::Abr(message), len), jitter);
    }

    fn unicast(&self, cx: &mut Cx<'_, P>, next_hop: NodeId, message: AbrMessage) {
        let len = message.len(self.notices.len());
        cx.send(next_hop, packet(cx.node, next_hop, 1, Message::Abr(message), len));
    }

    fn next_id(&mut self) -> u32 {
        self.id = self.id.wrapping_add(1);
        self.id
    }

    fn patience(&self) -> Duration {
        self.config.beacon_interval.saturating_mul(self.config.allowed_beacon_loss + 1)
    }
}

/// Whether a parcel takes the route of the other direction.
fn is_back<P>(datagram: &Packet<P>) -> bool {
    matches!(datagram.content, Content::Parcel(_, Some(Message::Abr(AbrMessage::Back))))
}

/// How long a flood is recognised.
const FLOOD_LIFE: Duration = Duration::from_secs(10);

//! AODV: Ad hoc On-Demand Distance Vector routing, RFC 3561.
//!
//! A node that needs a route floods a request (RREQ) in growing rings; the destination, or a node
//! with a route that is fresh enough, sends a reply (RREP) back along the path of the request.
//! Sequence numbers of destinations tell fresh from stale and keep routes free of loops. A node that
//! loses a link raises the numbers of what it reached over it and broadcasts an error (RERR) to those
//! who routed over it; near the destination it first tries to mend the route by itself.
//!
//! As in ns-2, from which most published curves come, only the link layer's failure to deliver a
//! *parcel* breaks a link. A MAC that gives up because of contention therefore breaks routes on
//! chains where no node moves: the "false route failures" of the literature.
//!
//! Deviations. The parcel that finds a link broken is dropped unless it is under local repair (the
//! RFC lets its originator search anew with it; ns-2 drops it). RERRs are always broadcast, as in
//! ns-2. After a local repair that made the route longer no RERR with the N flag is sent. There is
//! no gratuitous RREP, no RREP-ACK and no blacklist: links work both ways here. ns-2 looks for
//! unanswered requests twice a second or when a parcel comes; we repeat them when their wait is over.
//! A node never answers a request with a route that leads back over the asking neighbour.
//!
//! Parameters: [`AodvConfig`], with the RFC's and ns-2's values side by side.

mod breaks;
mod config;
mod discovery;
mod hello;
mod table;
#[cfg(test)]
mod tests;

pub use config::{AodvConfig, HelloConfig, LocalRepair, RequestWait};

use std::collections::BTreeMap;
use std::fmt::Debug;

use weir_units::Instant;

use self::discovery::Discovery;
use self::hello::Hello;
use self::table::{RouteTable, State};
use super::buffer::SendBuffer;
use super::latencies::Latencies;
use super::messages::{AodvMessage, Message, NoticeMessage, RouteError};
use super::notices::{NoticeAgent, Notices, Passing};
use super::rate::RateLimit;
use super::seen::Seen;
use super::{Cx, LinkFailure, Notice, Packet, Router, Upcall, next_leg};
use crate::datagram::{Content, DropReason, NodeId};
use weir_net::Parcel;

/// AODV at one node.
#[derive(Clone, Debug)]
pub struct Aodv<P> {
    config: AodvConfig,
    /// The node's own sequence number.
    sequence: u32,
    request_id: u32,
    table: RouteTable,
    buffer: SendBuffer<P>,
    discoveries: BTreeMap<NodeId, Discovery>,
    /// What a hop took in the last discoveries of this node (ns-2 keeps them by destination).
    latencies: Latencies,
    seen: Seen,
    requests: RateLimit,
    errors: RateLimit,
    hello: Hello,
    notices: NoticeAgent,
}

impl<P> Aodv<P> {
    /// A router without routes.
    pub fn new(config: &AodvConfig) -> Self {
        Self {
            config: *config,
            sequence: 0,
            request_id: 0,
            table: RouteTable::new(config.delete_period),
            buffer: SendBuffer::new(config.buffer),
            discoveries: BTreeMap::new(),
            latencies: Latencies::default(),
            seen: Seen::new(config.path_discovery_time),
            requests: RateLimit::new(config.rate_limit),
            errors: RateLimit::new(config.rate_limit),
            hello: Hello::new(config.hello),
            notices: NoticeAgent::new(config.notices),
        }
    }

    /// The neighbour that parcels for `destination` go to now.
    pub fn next_hop(&mut self, now: Instant, destination: NodeId) -> Option<NodeId> {
        self.table.valid(now, destination).map(|route| route.next_hop)
    }

    /// How many parcels wait for a route.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }
}

impl<P: Parcel + Debug> Router<P> for Aodv<P> {
    type Message = Message;

    fn originate(&mut self, cx: &mut Cx<'_, P>, mut datagram: Packet<P>) {
        datagram.ttl = self.config.net_diameter;
        if datagram.destination == cx.node {
            cx.upcalls.push(Upcall::Deliver(datagram));
        } else if self.table.valid(cx.now, datagram.destination).is_some() {
            self.forward(cx, cx.node, datagram);
        } else {
            let destination = datagram.destination;
            self.hold(cx, datagram);
            self.start_discovery(cx, destination);
        }
    }

    fn received(&mut self, cx: &mut Cx<'_, P>, from: NodeId, mut datagram: Packet<P>) {
        datagram.hops = datagram.hops.saturating_add(1);
        match datagram.content {
            Content::Message(Message::Aodv(AodvMessage::Request(request)), _) => {
                self.on_request(cx, from, datagram.ttl, request);
            }
            Content::Message(Message::Aodv(AodvMessage::Reply(reply)), _) => {
                self.on_reply(cx, from, reply);
            }
            Content::Message(Message::Aodv(AodvMessage::Error(error)), _) => {
                self.on_error(cx, from, &error);
            }
            Content::Message(Message::Notice(notice), _) => {
                self.on_notice(cx, from, datagram, notice);
            }
            Content::Message(..) => {}
            Content::Parcel(..) if datagram.destination == cx.node => {
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
        let deadlines = [discovery, self.buffer.next_expiry(), self.hello.next_timeout()];
        deadlines.into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(datagram) = self.buffer.pop_expired(cx.now) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
        while let Some(destination) = self.overdue(cx.now) {
            self.on_no_reply(cx, destination);
        }
        self.on_hello_timeout(cx);
    }
}

impl<P: Parcel + Debug> Aodv<P> {
    /// Sends `datagram`, which came from `from` or is the node's own, on its way.
    fn forward(&mut self, cx: &mut Cx<'_, P>, from: NodeId, datagram: Packet<P>) {
        let life = self.config.active_route_timeout;
        let destination = datagram.destination;
        match self.table.get(cx.now, destination) {
            Some(route) if route.state == State::Valid => {
                route.touch(cx.now, life);
                let next_hop = route.next_hop;
                if from != cx.node {
                    route.add_precursor(from);
                }
                // §6.2: the way back lives on as well, and so do the neighbours on both sides.
                for other in [next_hop, datagram.source, from] {
                    if let Some(route) = self.table.valid(cx.now, other) {
                        route.touch(cx.now, life);
                    }
                }
                cx.send(next_hop, datagram);
            }
            Some(route) if route.state == State::InRepair => self.hold(cx, datagram),
            _ => {
                self.report_missing(cx, destination);
                self.lose(cx, datagram, DropReason::NoRoute);
            }
        }
    }

    /// Keeps `datagram` until there is a route.
    fn hold(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>) {
        if let Some(oldest) = self.buffer.push(cx.now, datagram) {
            cx.drop(oldest, DropReason::BufferFull);
        }
    }

    /// Gives `datagram` up, and tells its source if transports are notified.
    fn lose(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>, reason: DropReason) {
        let notice = self.notices.failed(cx, &datagram);
        let (source, destination) = (datagram.source, datagram.destination);
        cx.drop(datagram, reason);
        if let Some(notice) = notice {
            let notice = self.notices.packet(cx.node, source, notice);
            self.post(cx, notice);
        } else if source == cx.node {
            self.seek_for_silent(cx, destination);
        }
    }

    /// Sends a notice, if there is a route for it.
    fn post(&mut self, cx: &mut Cx<'_, P>, notice: Packet<P>) {
        match self.next_hop(cx.now, notice.destination) {
            Some(next_hop) => cx.send(next_hop, notice),
            None => cx.drop(notice, DropReason::NoRoute),
        }
    }

    fn on_notice(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        mut datagram: Packet<P>,
        notice: NoticeMessage,
    ) {
        let next_hop = self.next_hop(cx.now, notice.destination);
        let other = next_hop.is_some_and(|next_hop| next_hop != from);
        let passing = self.notices.passing(cx, datagram.destination, notice, other);
        if self.config.notices == Notices::Rfn && matches!(notice.notice, Notice::Failed { .. }) {
            // TCP-F: a node that passes an RFN on no longer uses the route.
            let unreachable = vec![(notice.destination, 0)];
            self.on_error(cx, from, &RouteError { unreachable });
        }
        if passing == Passing::Forward {
            match next_leg(&mut datagram) {
                Ok(()) => self.post(cx, datagram),
                Err(reason) => cx.drop(datagram, reason),
            }
        } else if datagram.destination == cx.node {
            self.seek_for_silent(cx, notice.destination);
        }
    }

    /// TCP-F: a source that has been silenced looks for a new route by itself.
    fn seek_for_silent(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        if self.notices.seeks(cx.now, cx.node, destination) {
            self.start_discovery(cx, destination);
        }
    }
}

//! DSR: the Dynamic Source Routing protocol, RFC 4728.
//!
//! Every parcel carries its whole way. A node without a way asks its neighbours, then floods a request
//! (RREQ) that records its path; the target, or a node that has a way in its cache, answers with the
//! complete path (RREP). A node that cannot deliver tells the beginning of the way which link is
//! broken (RERR), and sends the parcel along another way of its own if it has one (salvaging).
//!
//! Notices ride on RERRs (Holland & Vaidya, MobiCom 1999), unless the parcel was salvaged and nothing is
//! lost. TCP-F's absorbing happens at the source alone: a way is chosen nowhere else.
//!
//! Deviations. Link-layer failures replace DSR's own acknowledgements and its maintenance buffer.
//! Nodes learn from requests and replies that they handle, from what they overhear (`overhear.rs`), and receivers from
//! parcels while they know no way back. The originator keeps a parcel that its first hop does not
//! take, and looks for another way. Replies from caches wait for a random part of the jitter; one that
//! is overheard does not stop a longer one (§3.3.2).
//!
//! Parameters: [`DsrConfig`].

mod breaks;
mod cache;
mod config;
mod discovery;
mod overhear;
#[cfg(test)]
mod tests;

pub use config::DsrConfig;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use weir_units::{Bytes, Duration, Instant};

use self::cache::{RequestTable, RouteCache};
use self::discovery::Discovery;
use self::overhear::Shortened;
use super::buffer::SendBuffer;
use super::messages::{DsrMessage, DsrRequest, Message, NoticeMessage, SourceRoute};
use super::notices::NoticeAgent;
use super::{Cx, LinkFailure, Packet, Router, Upcall, next_leg, packet};
use crate::datagram::{Content, DropReason, NodeId};
use weir_net::Parcel;

/// DSR at one node.
#[derive(Clone, Debug)]
pub struct Dsr<P> {
    config: DsrConfig,
    cache: RouteCache,
    requests: RequestTable,
    request_id: u32,
    buffer: SendBuffer<P>,
    discoveries: BTreeMap<NodeId, Discovery>,
    shortened: Shortened,
    notices: NoticeAgent,
}

impl<P> Dsr<P> {
    /// A router without routes.
    pub fn new(config: &DsrConfig) -> Self {
        Self {
            config: *config,
            cache: RouteCache::new(config.route_cache_timeout),
            requests: RequestTable::default(),
            request_id: 0,
            buffer: SendBuffer::new(config.buffer),
            discoveries: BTreeMap::new(),
            shortened: Shortened::default(),
            notices: NoticeAgent::new(config.notices),
        }
    }

    /// The way that a parcel of this node takes to `destination` now.
    pub fn path(&mut self, now: Instant, destination: NodeId) -> Option<Arc<[NodeId]>> {
        self.cache.find(now, destination)
    }

    /// How many parcels wait for a route.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }
}

impl<P: Parcel + Debug> Router<P> for Dsr<P> {
    type Message = Message;

    fn originate(&mut self, cx: &mut Cx<'_, P>, mut datagram: Packet<P>) {
        datagram.ttl = u8::MAX;
        if datagram.destination == cx.node {
            return cx.upcalls.push(Upcall::Deliver(datagram));
        }
        self.send_or_hold(cx, datagram);
    }

    fn received(&mut self, cx: &mut Cx<'_, P>, from: NodeId, mut datagram: Packet<P>) {
        datagram.hops = datagram.hops.saturating_add(1);
        match &mut datagram.content {
            Content::Parcel(_, Some(Message::Dsr(DsrMessage::Route(way)))) => {
                let on_way = way.step(cx.node);
                let way = way.clone();
                self.on_parcel(cx, datagram, &way, on_way);
            }
            Content::Parcel(..) if datagram.destination == cx.node => {
                cx.upcalls.push(Upcall::Deliver(datagram));
            }
            Content::Parcel(..) => cx.drop(datagram, DropReason::NoRoute),
            Content::Message(Message::Dsr(DsrMessage::Request(request)), _) => {
                let request = std::mem::replace(request, DsrRequest::nothing());
                self.on_request(cx, from, datagram.ttl, request);
            }
            Content::Message(Message::Dsr(message), _) => {
                let on_way = message.way_mut().is_some_and(|way| way.step(cx.node));
                if on_way {
                    self.on_message(cx, datagram);
                }
            }
            Content::Message(..) => {}
        }
    }

    fn overhears(&self) -> bool {
        true
    }

    fn overheard(&mut self, cx: &mut Cx<'_, P>, from: NodeId, datagram: &Packet<P>) {
        self.on_overheard(cx, from, datagram);
    }

    fn link_failed(&mut self, cx: &mut Cx<'_, P>, failure: LinkFailure<P, Message>) {
        self.on_link_failure(cx, failure);
    }

    fn next_timeout(&self) -> Option<Instant> {
        let discovery = self.discoveries.values().map(|discovery| discovery.deadline).min();
        discovery.into_iter().chain(self.buffer.next_expiry()).min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_, P>) {
        while let Some(datagram) = self.buffer.pop_expired(cx.now) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
        while let Some(destination) = self.overdue(cx.now) {
            self.on_no_reply(cx, destination);
        }
    }
}

impl<P: Parcel + Debug> Dsr<P> {
    /// A parcel of this node goes on its way, or waits for one.
    fn send_or_hold(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>) {
        let destination = datagram.destination;
        match self.cache.find(cx.now, destination) {
            Some(path) => self.send_along(cx, datagram, SourceRoute::along(path)),
            None => {
                if let Some(oldest) = self.buffer.push(cx.now, datagram) {
                    cx.drop(oldest, DropReason::BufferFull);
                }
                self.start_discovery(cx, destination);
            }
        }
    }

    /// Sends a parcel with a new way, which begins here.
    fn send_along(&mut self, cx: &mut Cx<'_, P>, mut datagram: Packet<P>, way: SourceRoute) {
        let Content::Parcel(parcel, _) = datagram.content else { return };
        let Some(next_hop) = way.next_hop() else { return };
        datagram.extra = way.len();
        datagram.content = Content::Parcel(parcel, Some(Message::Dsr(DsrMessage::Route(way))));
        cx.send(next_hop, datagram);
    }

    fn on_parcel(
        &mut self,
        cx: &mut Cx<'_, P>,
        mut datagram: Packet<P>,
        way: &SourceRoute,
        on_way: bool,
    ) {
        if datagram.destination == cx.node {
            if !self.cache.reaches(cx.now, datagram.source) {
                self.learn(cx, &way.back().path);
            }
            return cx.upcalls.push(Upcall::Deliver(datagram));
        }
        let Some(next_hop) = way.next_hop().filter(|_| on_way) else {
            return cx.drop(datagram, DropReason::NoRoute);
        };
        match next_leg(&mut datagram) {
            Ok(()) => cx.send(next_hop, datagram),
            Err(reason) => cx.drop(datagram, reason),
        }
    }

    /// A reply, an error or a notice has come one hop further.
    fn on_message(&mut self, cx: &mut Cx<'_, P>, mut datagram: Packet<P>) {
        let Content::Message(Message::Dsr(message), _) = &mut datagram.content else { return };
        let (goes_on, to) = match message.way_mut() {
            Some(way) => (way.next_hop(), way.path.last().copied().unwrap_or(cx.node)),
            None => return,
        };
        match message {
            DsrMessage::Reply { path, .. } => {
                let path = path.clone();
                self.on_path(cx, &path);
            }
            DsrMessage::Error { broken: (a, b), notice, .. } => {
                let notice = *notice;
                self.cache.remove_link(*a, *b);
                if let Some(notice) = notice {
                    self.on_notice(cx, to, notice);
                }
            }
            DsrMessage::Notice { notice, .. } => {
                let notice = *notice;
                self.on_notice(cx, to, notice);
            }
            DsrMessage::Route(_) | DsrMessage::Request(_) => return,
        }
        if let Some(next_hop) = goes_on {
            match next_leg(&mut datagram) {
                Ok(()) => cx.send(next_hop, datagram),
                Err(reason) => cx.drop(datagram, reason),
            }
        }
    }

    /// A notice for `source` passes or arrives. Only the source has a choice of ways.
    fn on_notice(&mut self, cx: &mut Cx<'_, P>, source: NodeId, notice: NoticeMessage) {
        let other = source == cx.node && self.cache.reaches(cx.now, notice.destination);
        self.notices.passing(cx, source, notice, other);
        if source == cx.node {
            self.seek_for_silent(cx, notice.destination);
        }
    }

    /// Sends a message along `way`.
    fn send_message(&self, cx: &mut Cx<'_, P>, message: DsrMessage, delay: Duration) {
        let mut message = message;
        let Some(way) = message.way_mut() else { return };
        let (Some(next_hop), Some(end)) = (way.next_hop(), way.path.last().copied()) else {
            return;
        };
        let len: Bytes = message.len(self.notices.len());
        let datagram = packet(cx.node, end, u8::MAX, Message::Dsr(message), len);
        cx.upcalls.push(Upcall::Send { next_hop, datagram, delay });
    }

    /// Gives a parcel up.
    fn lose(&mut self, cx: &mut Cx<'_, P>, datagram: Packet<P>, reason: DropReason) {
        let (source, destination) = (datagram.source, datagram.destination);
        if source == cx.node {
            self.notices.failed(cx, &datagram);
        }
        cx.drop(datagram, reason);
        if source == cx.node {
            self.seek_for_silent(cx, destination);
        }
    }

    /// TCP-F: a source that has been silenced looks for a new route by itself.
    fn seek_for_silent(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        if self.notices.seeks(cx.now, cx.node, destination) {
            self.start_discovery(cx, destination);
        }
    }
}

//! Looking for ways (RFC 4728 §8.2).

use std::fmt::Debug;

use weir_units::{Duration, Instant};

use super::Dsr;
use super::cache::has_loop;
use crate::datagram::{DropReason, NodeId};
use crate::routing::messages::{DsrMessage, DsrRequest, SourceRoute};
use crate::routing::{Cx, Message, packet};
use weir_net::Parcel;

/// A search in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discovery {
    /// Floods of the network so far. The request before them goes to neighbours only.
    floods: u32,
    /// When the last request counts as unanswered.
    pub(super) deadline: Instant,
}

/// The most searches at a time; other parcels wait in the buffer until their time is up.
pub(super) const DISCOVERIES: usize = 128;

impl DsrRequest {
    /// What is left of a request that was taken out of its datagram.
    pub(super) fn nothing() -> Self {
        Self { id: 0, target: NodeId::BROADCAST, path: Vec::new() }
    }
}

impl<P: Parcel + Debug> Dsr<P> {
    /// Starts to look for `destination` unless a search is in progress: first at the neighbours.
    pub(super) fn start_discovery(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let busy = self.discoveries.len() >= DISCOVERIES;
        if busy || self.discoveries.contains_key(&destination) {
            return;
        }
        let deadline = cx.now + self.config.nonprop_request_timeout;
        self.discoveries.insert(destination, Discovery { floods: 0, deadline });
        self.ask(cx, destination, 1);
    }

    /// A destination whose request has waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Option<NodeId> {
        let due = |(_, discovery): &(&NodeId, &Discovery)| discovery.deadline <= now;
        self.discoveries.iter().find(due).map(|(destination, _)| *destination)
    }

    /// No reply: ask all nodes, ever more rarely, or give up.
    pub(super) fn on_no_reply(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let Some(mut discovery) = self.discoveries.remove(&destination) else { return };
        let silenced = self.notices.seeks(cx.now, cx.node, destination);
        if !silenced && !self.buffer.holds(destination) {
            return;
        }
        if discovery.floods > self.config.max_request_rexmt {
            for datagram in self.buffer.take(destination) {
                self.lose(cx, datagram, DropReason::NoRoute);
            }
            return;
        }
        let doubled = self.config.request_period.saturating_mul(1 << discovery.floods.min(16));
        discovery.deadline = cx.now + doubled.min(self.config.max_request_period);
        discovery.floods += 1;
        self.discoveries.insert(destination, discovery);
        self.ask(cx, destination, u8::MAX);
    }

    fn ask(&mut self, cx: &mut Cx<'_, P>, target: NodeId, ttl: u8) {
        self.request_id = self.request_id.wrapping_add(1);
        let request = DsrRequest { id: self.request_id, target, path: vec![cx.node] };
        self.send_request(cx, request, ttl, Duration::ZERO);
    }

    fn send_request(&self, cx: &mut Cx<'_, P>, request: DsrRequest, ttl: u8, jitter: Duration) {
        let message = DsrMessage::Request(request);
        let len = message.len(self.notices.len());
        let datagram = packet(cx.node, NodeId::BROADCAST, ttl, Message::Dsr(message), len);
        cx.broadcast(datagram, jitter);
    }

    /// §8.2.2: the target answers every copy, others pass on or answer the first.
    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        ttl: u8,
        mut request: DsrRequest,
    ) {
        let was_here = request.path.contains(&cx.node);
        if was_here || request.path.last() != Some(&from) || has_loop(&request.path) {
            return;
        }
        let Some(initiator) = request.path.first().copied() else { return };
        request.path.push(cx.node);
        if request.path.len() > SourceRoute::LONGEST {
            return;
        }
        let back: Vec<NodeId> = request.path.iter().rev().copied().collect();
        self.learn(cx, &back);
        if request.target == cx.node {
            return self.reply(cx, &back, request.path, Duration::ZERO);
        }
        if !self.requests.is_first(initiator, request.id) || self.answer(cx, &back, &request) {
            return;
        }
        if ttl > 1 {
            self.send_request(cx, request, ttl - 1, self.config.jitter);
        }
    }

    /// §8.2.3: answers out of the cache, unless the way would meet the request's own path.
    fn answer(&mut self, cx: &mut Cx<'_, P>, back: &[NodeId], request: &DsrRequest) -> bool {
        let Some(ahead) = self.cache.find(cx.now, request.target) else { return false };
        let mut path = request.path.clone();
        path.extend_from_slice(&ahead[1..]);
        if path.len() > SourceRoute::LONGEST || has_loop(&path) {
            return false;
        }
        let delay = cx.rng.duration_up_to(self.config.jitter);
        self.reply(cx, back, path, delay);
        true
    }

    pub(super) fn reply(
        &self,
        cx: &mut Cx<'_, P>,
        back: &[NodeId],
        path: Vec<NodeId>,
        delay: Duration,
    ) {
        let reply = DsrMessage::Reply { way: SourceRoute::along(back.into()), path: path.into() };
        self.send_message(cx, reply, delay);
    }

    /// Learns the routes to both ends of `path`, which a reply contains.
    pub(super) fn on_path(&mut self, cx: &mut Cx<'_, P>, path: &[NodeId]) {
        let Some(here) = path.iter().position(|node| *node == cx.node) else { return };
        let back: Vec<NodeId> = path[..=here].iter().rev().copied().collect();
        self.learn(cx, &back);
        self.learn(cx, &path[here..]);
    }

    /// Keeps a path, and sends what has waited for it.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_, P>, path: &[NodeId]) {
        if path.first() != Some(&cx.node) || !self.cache.add(cx.now, path) {
            return;
        }
        for destination in path[1..].iter().copied() {
            if self.discoveries.remove(&destination).is_some() {
                cx.route_changed(destination, Some(path[1]));
            }
            for datagram in self.buffer.take(destination) {
                self.send_or_hold(cx, datagram);
            }
            for (source, notice) in self.notices.route_found(cx, destination, &[]) {
                if let Some(path) = self.cache.find(cx.now, source) {
                    let way = SourceRoute::along(path);
                    self.send_message(cx, DsrMessage::Notice { way, notice }, Duration::ZERO);
                }
            }
        }
    }
}

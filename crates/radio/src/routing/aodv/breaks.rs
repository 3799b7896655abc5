//! Broken links: errors and local repair (RFC 3561 §6.11, §6.12).

use std::fmt::Debug;

use weir_units::{Duration, Instant};

use super::table::State;
use super::{Aodv, LocalRepair};
use crate::datagram::{Content, DropReason, NodeId};
use crate::routing::messages::{AodvMessage, RouteError};
use crate::routing::{Cx, LinkFailure, Message, Packet, packet};
use weir_net::Parcel;

impl<P: Parcel + Debug> Aodv<P> {
    /// The link layer could not deliver. Only parcels break links, as in ns-2.
    pub(super) fn on_link_failure(&mut self, cx: &mut Cx<'_, P>, failure: LinkFailure<P, Message>) {
        let LinkFailure { next_hop, datagram, waiting } = failure;
        if matches!(datagram.content, Content::Message(..)) {
            cx.drop(datagram, DropReason::MacRetries);
            waiting.into_iter().for_each(|datagram| cx.send(next_hop, datagram));
            return;
        }
        let repaired = self.try_repair(cx, next_hop, &datagram).then_some(datagram.destination);
        let mut silent = Vec::new();
        for datagram in std::iter::once(datagram).chain(waiting) {
            if datagram.source == cx.node {
                silent.push(datagram.destination);
            }
            if repaired == Some(datagram.destination) {
                self.hold(cx, datagram);
            } else {
                self.lose(cx, datagram, DropReason::MacRetries);
            }
        }
        self.break_link(cx, next_hop);
        // A source that has been silenced by its own link looks for a route once the broken one is gone.
        silent.into_iter().for_each(|destination| self.seek_for_silent(cx, destination));
    }

    /// Nothing gets to `neighbour` any more: tells those who routed over it.
    pub(super) fn break_link(&mut self, cx: &mut Cx<'_, P>, neighbour: NodeId) {
        let mut unreachable = Vec::new();
        for destination in self.table.over(cx.now, neighbour) {
            let dead = self.table.invalidate(cx.now, destination, None);
            cx.route_changed(destination, None);
            if let Some((sequence, true)) = dead {
                unreachable.push((destination, sequence));
            }
        }
        self.send_error(cx, unreachable, Duration::ZERO);
    }

    /// A parcel came for which there is no route: its sender must not go on.
    pub(super) fn report_missing(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let dead = self.table.invalidate(cx.now, destination, None);
        let sequence = dead.map_or(0, |(sequence, _)| sequence);
        self.send_error(cx, vec![(destination, sequence)], Duration::ZERO);
    }

    pub(super) fn on_error(&mut self, cx: &mut Cx<'_, P>, from: NodeId, error: &RouteError) {
        let mut unreachable = Vec::new();
        for (destination, sequence) in error.unreachable.iter().take(RouteError::LIMIT) {
            let route = self.table.valid(cx.now, *destination);
            if route.is_none_or(|route| route.next_hop != from) {
                continue;
            }
            let dead = self.table.invalidate(cx.now, *destination, Some(*sequence));
            cx.route_changed(*destination, None);
            if let Some((sequence, true)) = dead {
                unreachable.push((*destination, sequence));
            }
        }
        self.send_error(cx, unreachable, self.config.jitter);
    }

    /// Local repair went unanswered: now it is an error like any other.
    pub(super) fn on_repair_failed(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        if !self.is_in_repair(cx.now, destination) {
            return;
        }
        let dead = self.table.invalidate(cx.now, destination, None);
        cx.route_changed(destination, None);
        if let Some((sequence, true)) = dead {
            self.send_error(cx, vec![(destination, sequence)], Duration::ZERO);
        }
        for datagram in self.buffer.take(destination) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
    }

    /// Begins local repair if the parcel has come further than it had to go. The ring reaches where
    /// the destination was, or half-way back to the source if that is further (§6.12).
    fn try_repair(&mut self, cx: &mut Cx<'_, P>, next_hop: NodeId, lost: &Packet<P>) -> bool {
        let destination = lost.destination;
        if self.is_in_repair(cx.now, destination) {
            return true;
        }
        let back = self.table.valid(cx.now, lost.source).map_or(0, |route| route.hops);
        let Some(route) = self.table.valid(cx.now, destination) else { return false };
        let near = lost.hops > route.hops;
        if self.config.local_repair == LocalRepair::Off || !near || route.next_hop != next_hop {
            return false;
        }
        let reach = route.hops.max(back / 2);
        self.table.begin_repair(cx.now, destination);
        self.repair(cx, destination, reach.saturating_add(self.config.local_add_ttl));
        true
    }

    fn send_error(
        &mut self,
        cx: &mut Cx<'_, P>,
        unreachable: Vec<(NodeId, u32)>,
        jitter: Duration,
    ) {
        for some in unreachable.chunks(RouteError::LIMIT) {
            if self.errors.take(cx.now).is_err() {
                return;
            }
            let error = RouteError { unreachable: some.to_vec() };
            let len = error.len();
            let message = Message::Aodv(AodvMessage::Error(error));
            self.hello.on_broadcast(cx.now);
            cx.broadcast(packet(cx.node, NodeId::BROADCAST, 1, message, len), jitter);
        }
    }

    /// Whether parcels for `destination` wait for local repair.
    fn is_in_repair(&mut self, now: Instant, destination: NodeId) -> bool {
        self.table.get(now, destination).is_some_and(|route| route.state == State::InRepair)
    }
}

//! Broken links: localized queries and backtracking.

use std::fmt::Debug;

use super::table::{Route, State};
use super::{Abr, Notices, is_back};
use crate::datagram::{Content, DropReason, NodeId};
use crate::routing::messages::{AbrMessage, Backtrack, RouteKey};
use crate::routing::{Cx, LinkFailure, Message, Packet};
use weir_net::Parcel;

impl<P: Parcel + Debug> Abr<P> {
    /// The link layer could not deliver. Parcels break routes; messages are repeated by the node that
    /// misses their answer.
    pub(super) fn on_link_failure(&mut self, cx: &mut Cx<'_, P>, failure: LinkFailure<P, Message>) {
        let LinkFailure { next_hop, datagram, waiting } = failure;
        if matches!(datagram.content, Content::Message(..)) {
            cx.drop(datagram, DropReason::MacRetries);
            waiting.into_iter().for_each(|datagram| cx.send(next_hop, datagram));
            return;
        }
        self.neighbours.forget(next_hop);
        for datagram in std::iter::once(datagram).chain(waiting) {
            match datagram.content {
                Content::Message(..) => cx.drop(datagram, DropReason::MacRetries),
                Content::Parcel(..) => self.on_undelivered(cx, next_hop, datagram),
            }
        }
    }

    fn on_undelivered(&mut self, cx: &mut Cx<'_, P>, next_hop: NodeId, datagram: Packet<P>) {
        let key = RouteKey { source: datagram.source, destination: datagram.destination };
        if is_back(&datagram) {
            let key = RouteKey { source: key.destination, destination: key.source };
            let route = self.table.get(cx.now, key).filter(|it| it.upstream == Some(next_hop));
            if let Some(route) = route {
                route.upstream = None;
            }
            return cx.drop(datagram, DropReason::MacRetries);
        }
        if key.source == cx.node {
            return self.on_undelivered_by_source(cx, next_hop, datagram);
        }
        let Some(route) = self.table.get(cx.now, key) else {
            return self.lose(cx, datagram, DropReason::MacRetries);
        };
        let newly = route.state == State::Whole && route.downstream == Some(next_hop);
        if newly {
            cx.route_changed(key.destination, None);
        }
        if newly && !Self::may_repair(route) {
            route.state = State::Broken;
            self.lose(cx, datagram, DropReason::MacRetries);
            return self.send_broken(cx, key, Backtrack::Source);
        }
        match route.state {
            State::Broken => self.lose(cx, datagram, DropReason::MacRetries),
            State::Whole if newly => {
                // TCP-BuS notifies the source before the repair, others only if it fails.
                self.repair(cx, key);
                if self.config.notices == Notices::Bus {
                    self.notify_source(cx, &datagram);
                }
                self.hold(cx, datagram);
            }
            State::Whole | State::Repair { .. } | State::Frozen { .. } => {
                self.hold(cx, datagram);
                self.release(cx, key.destination);
            }
        }
    }

    /// The source floods a query. All parcels queued for the lost neighbour wait for its reply.
    fn on_undelivered_by_source(
        &mut self,
        cx: &mut Cx<'_, P>,
        next_hop: NodeId,
        datagram: Packet<P>,
    ) {
        let key = RouteKey { source: cx.node, destination: datagram.destination };
        let broken =
            |route: &mut Route| route.state == State::Whole && route.downstream == Some(next_hop);
        if self.table.get(cx.now, key).is_some_and(broken) {
            cx.route_changed(key.destination, None);
            self.table.remove(key);
        }
        self.notify_source(cx, &datagram);
        self.hold(cx, datagram);
        self.start_discovery(cx, key.destination);
    }

    /// Whether this node is at least as near to the destination as to the source.
    fn may_repair(route: &Route) -> bool {
        route.hops_up >= route.hops_down
    }

    /// Looks for a way around the break.
    fn repair(&mut self, cx: &mut Cx<'_, P>, key: RouteKey) {
        let Some(route) = self.table.get(cx.now, key) else { return };
        let ttl = route.hops_down.saturating_add(self.config.local_slack);
        let there_and_back = 2 * (u64::from(ttl) + 1);
        let wait = self.config.node_traversal_time.saturating_mul(there_and_back);
        route.state = State::Repair { deadline: cx.now + wait + self.config.choice_time };
        let hops_up = route.hops_up;
        self.query(cx, key, hops_up, ttl);
    }

    /// Repair has taken too long, or the route is frozen without news.
    pub(super) fn on_overdue(&mut self, cx: &mut Cx<'_, P>, key: RouteKey) {
        match self.table.get(cx.now, key) {
            None => self.table.remove(key),
            Some(route) if matches!(route.state, State::Frozen { .. }) => {
                route.state = State::Whole;
                self.release(cx, key.destination);
            }
            // The localized query went unanswered: the node before tries, or the source.
            Some(route) => {
                route.state = State::Broken;
                self.lose_held(cx, key);
                self.send_broken(cx, key, Backtrack::Here);
            }
        }
    }

    /// Gives up what waits for a route.
    fn lose_held(&mut self, cx: &mut Cx<'_, P>, key: RouteKey) {
        for datagram in self.buffer.take(key.destination) {
            if datagram.source == key.source {
                self.lose(cx, datagram, DropReason::NoRoute);
            } else {
                self.hold(cx, datagram);
            }
        }
    }

    fn send_broken(&mut self, cx: &mut Cx<'_, P>, route: RouteKey, repair: Backtrack) {
        if let Some(upstream) = self.upstream(cx.now, route.source, route.destination) {
            self.unicast(cx, upstream, AbrMessage::Broken { route, repair });
        }
    }

    /// RN.
    pub(super) fn on_broken(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        key: RouteKey,
        repair: Backtrack,
    ) {
        let Some(route) = self.table.get(cx.now, key) else { return };
        if route.downstream != Some(from)
            || !matches!(route.state, State::Whole | State::Frozen { .. })
        {
            return;
        }
        cx.route_changed(key.destination, None);
        if key.source == cx.node {
            self.table.remove(key);
            if self.buffer.holds(key.destination) {
                self.start_discovery(cx, key.destination);
            }
            return self.seek_for_silent(cx, key.destination);
        }
        if repair == Backtrack::Here && Self::may_repair(route) {
            return self.repair(cx, key);
        }
        route.state = State::Broken;
        self.lose_held(cx, key);
        self.send_broken(cx, key, Backtrack::Source);
    }
}

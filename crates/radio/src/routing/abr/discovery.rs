//! Queries, the destination's choice, and replies.

use std::collections::BTreeMap;
use std::fmt::Debug;

use weir_units::{Duration, Instant};

use super::table::{Route, State};
use super::{Abr, Next};
use crate::datagram::{DropReason, NodeId};
use crate::routing::latencies::Latencies;
use crate::routing::messages::{AbrMessage, AbrQuery, AbrReply, RouteKey, Visit};
use crate::routing::{Cx, newer};
use weir_net::Parcel;

/// A search of this node for a destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discovery {
    /// Queries that waited for `query_wait` or longer.
    asked: u32,
    /// When the last query was sent.
    sent: Instant,
    /// When the last query counts as unanswered.
    pub(super) deadline: Instant,
}

/// What the last replies from each destination took, without the time of its choice.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyTimes {
    known: BTreeMap<NodeId, Latencies>,
}

impl ReplyTimes {
    fn add(&mut self, destination: NodeId, took: Duration) {
        if self.known.len() >= DISCOVERIES && !self.known.contains_key(&destination) {
            self.known.pop_first();
        }
        self.known.entry(destination).or_default().add(took);
    }

    fn mean(&self, destination: NodeId) -> Option<Duration> {
        self.known.get(&destination)?.mean()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

/// The best copy of a query for this node so far.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    query: AbrQuery,
    /// When the choice is made.
    pub(super) deadline: Instant,
}

/// The most searches at a time; other parcels wait in the buffer until their time is up.
pub(super) const DISCOVERIES: usize = 128;
/// The most choices at a time.
pub(super) const CHOICES: usize = 32;

impl<P: Parcel + Debug> Abr<P> {
    /// Starts to look for `destination` unless a search is in progress.
    pub(super) fn start_discovery(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let busy = self.discoveries.len() >= DISCOVERIES;
        if !busy && !self.discoveries.contains_key(&destination) {
            let wait = self.first_wait(destination);
            self.ask(cx, destination, 0, wait);
        }
    }

    /// Twice what the last replies took, but no longer than `query_wait`: floods are lost where the
    /// medium is busy, as it is where a link has just failed.
    fn first_wait(&self, destination: NodeId) -> Duration {
        let longest = self.config.query_wait;
        let measured = self.reply_times.mean(destination);
        measured.map_or(longest, |mean| longest.min(mean * 2 + self.config.choice_time))
    }

    fn ask(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, asked: u32, wait: Duration) {
        let asked = asked + u32::from(wait >= self.config.query_wait);
        let discovery = Discovery { asked, sent: cx.now, deadline: cx.now + wait };
        self.discoveries.insert(destination, discovery);
        let route = RouteKey { source: cx.node, destination };
        self.query(cx, route, 0, self.config.diameter);
    }

    /// Floods a query for `route`; this node is `hops_up` from its source.
    pub(super) fn query(&mut self, cx: &mut Cx<'_, P>, route: RouteKey, hops_up: u8, ttl: u8) {
        let id = self.next_id();
        self.seen.is_first(cx.now, cx.node, id);
        let query = AbrQuery { id, route, asker: cx.node, hops_up, visits: Vec::new() };
        self.broadcast(cx, AbrMessage::Query(query), ttl, Duration::ZERO);
    }

    /// A destination whose query has waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Option<NodeId> {
        let due = |(_, discovery): &(&NodeId, &Discovery)| discovery.deadline <= now;
        self.discoveries.iter().find(due).map(|(destination, _)| *destination)
    }

    /// No reply: ask again, or give up and have the route forgotten.
    pub(super) fn on_no_reply(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let Some(discovery) = self.discoveries.remove(&destination) else { return };
        let silenced = self.notices.seeks(cx.now, cx.node, destination);
        if !silenced && !self.buffer.holds(destination) {
            return;
        }
        if silenced || discovery.asked <= self.config.query_retries {
            let last = discovery.deadline.saturating_since(discovery.sent);
            let twice = last.saturating_mul(2);
            // Short waits end with one of `query_wait`, which is the first that counts.
            let wait = if discovery.asked == 0 { twice.min(self.config.query_wait) } else { twice };
            return self.ask(cx, destination, discovery.asked, wait);
        }
        let (id, route) = (self.next_id(), RouteKey { source: cx.node, destination });
        self.seen.is_first(cx.now, cx.node, id);
        self.broadcast(cx, AbrMessage::Delete { id, route }, self.config.diameter, Duration::ZERO);
        for datagram in self.buffer.take(destination) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
    }

    pub(super) fn on_query(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        ttl: u8,
        mut query: AbrQuery,
    ) {
        let AbrQuery { id, route, asker, hops_up, .. } = query;
        let last = query.visits.last().map_or(asker, |visit| visit.node);
        let been = asker == cx.node || query.visits.iter().any(|visit| visit.node == cx.node);
        if been || last != from || query.visits.len() >= AbrQuery::LONGEST {
            return;
        }
        let first = self.seen.is_first(cx.now, asker, id);
        let ticks = self.neighbours.ticks(cx.now, from, self.patience());
        let load = self.table.load(cx.now);
        query.visits.push(Visit { node: cx.node, ticks, load });
        if route.destination == cx.node {
            return self.consider(cx.now, query, first);
        }
        // A route must not fold back: nodes between the source and who asks keep out.
        let own = self.table.get(cx.now, route);
        let upstream = asker != route.source && own.is_some_and(|own| own.hops_up <= hops_up);
        if first && !upstream && route.source != cx.node && ttl > 1 {
            self.broadcast(cx, AbrMessage::Query(query), ttl - 1, self.config.jitter);
        }
    }

    /// Keeps the better of the copies that arrive while the choice is open.
    fn consider(&mut self, now: Instant, query: AbrQuery, first: bool) {
        let same = |it: &Choice| (it.query.asker, it.query.id) == (query.asker, query.id);
        if first {
            if self.choices.len() < CHOICES {
                let deadline = now + self.config.choice_time;
                self.choices.push(Choice { query, deadline });
            }
            return;
        }
        let cost = self.cost(&query);
        let Some(i) = self.choices.iter().position(same) else { return };
        if cost < self.cost(&self.choices[i].query) {
            self.choices[i].query = query;
        }
    }

    /// Unstable links, then load, then hops.
    fn cost(&self, query: &AbrQuery) -> (usize, u32, usize) {
        let unstable = |visit: &&Visit| visit.ticks <= self.config.stable_ticks;
        let load = query.visits.iter().map(|visit| u32::from(visit.load)).sum();
        (query.visits.iter().filter(unstable).count(), load, query.visits.len())
    }

    pub(super) fn pop_choice(&mut self, now: Instant) -> Option<AbrQuery> {
        let due = self.choices.iter().position(|choice| choice.deadline <= now)?;
        Some(self.choices.remove(due).query)
    }

    /// The destination has chosen: its reply goes back along the nodes of the query.
    pub(super) fn reply(&mut self, cx: &mut Cx<'_, P>, query: AbrQuery) {
        let AbrQuery { route, asker, hops_up, visits, .. } = query;
        let path = std::iter::once(asker).chain(visits.iter().map(|visit| visit.node)).collect();
        let expected = self.signals.expected(route.source);
        let at = visits.len() as u8;
        let number = self.next_id();
        self.step(cx, AbrReply { route, number, hops_up, path, at, expected });
    }

    pub(super) fn on_reply(&mut self, cx: &mut Cx<'_, P>, from: NodeId, reply: AbrReply) {
        let at = usize::from(reply.at);
        let here = reply.path.get(at) == Some(&cx.node);
        if here && reply.path.get(at + 1) == Some(&from) && reply.route.destination != cx.node {
            self.step(cx, reply);
        }
    }

    /// Sets up the route at this node, which is `reply.at` on the path, and passes the reply on.
    fn step(&mut self, cx: &mut Cx<'_, P>, mut reply: AbrReply) {
        let at = usize::from(reply.at);
        let before = at.checked_sub(1).and_then(|i| reply.path.get(i)).copied();
        let after = reply.path.get(at + 1).copied();
        let asks = before.is_none();
        let known = self.table.get(cx.now, reply.route).copied();
        // Two replies may cross: were the older one to win anywhere, the route could be a circle.
        if known.is_some_and(|known| newer(known.number, reply.number)) {
            return;
        }
        let known = known.filter(|_| asks).and_then(|known| known.upstream);
        let route = Route {
            upstream: before.or(known),
            downstream: after,
            hops_up: reply.hops_up.saturating_add(reply.at),
            hops_down: (reply.path.len() - 1 - at) as u8,
            number: reply.number,
            state: State::Whole,
            until: cx.now,
        };
        self.table.insert(cx.now, reply.route, route);
        if let Some(before) = before {
            reply.at -= 1;
            self.unicast(cx, before, AbrMessage::Reply(reply));
        } else {
            self.on_route(cx, &reply);
        }
    }

    /// The requested route is there.
    fn on_route(&mut self, cx: &mut Cx<'_, P>, reply: &AbrReply) {
        let RouteKey { source, destination } = reply.route;
        if source == cx.node {
            self.on_found(cx.now, destination);
        }
        cx.route_changed(destination, reply.path.get(1).copied());
        for (source, notice) in self.notices.route_found(cx, destination, &reply.expected) {
            self.send_notice(cx, source, notice);
        }
        self.release(cx, destination);
    }

    /// Ends the search. A reply in less than the time of a choice answers an earlier query.
    fn on_found(&mut self, now: Instant, destination: NodeId) {
        let Some(discovery) = self.discoveries.remove(&destination) else { return };
        let chosen_since = discovery.sent + self.config.choice_time;
        if now > chosen_since {
            self.reply_times.add(destination, now.saturating_since(chosen_since));
        }
    }

    /// RD.
    pub(super) fn on_delete(&mut self, cx: &mut Cx<'_, P>, ttl: u8, id: u32, route: RouteKey) {
        if !self.seen.is_first(cx.now, route.source, id) {
            return;
        }
        self.table.forget(cx.now, route);
        for datagram in self.buffer.take(route.destination) {
            let next = self.next(cx.now, &datagram);
            if next == Next::Nowhere && datagram.source == route.source {
                self.lose(cx, datagram, DropReason::NoRoute);
            } else {
                self.hold(cx, datagram);
            }
        }
        if ttl > 1 {
            self.broadcast(cx, AbrMessage::Delete { id, route }, ttl - 1, self.config.jitter);
        }
    }
}

//! Looking for routes: requests in growing rings, and replies (RFC 3561 §6.3 to §6.7).

use std::fmt::Debug;

use weir_units::{Duration, Instant};

use super::table::{Offer, Taken};
use super::{Aodv, RequestWait};
use crate::datagram::{DropReason, NodeId};
use crate::routing::messages::{AodvMessage, RouteReply, RouteRequest};
use crate::routing::{Cx, Message, newer, packet};
use weir_net::Parcel;

/// A search in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discovery {
    purpose: Purpose,
    /// Of the last request.
    ttl: u8,
    /// How often the whole network has been asked.
    floods: u32,
    asked: Instant,
    /// When the last request counts as unanswered, or silence ends.
    pub(super) deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For parcels of the node's own.
    Search,
    /// To mend a route of others, with one request of this TTL.
    Repair { ttl: u8 },
    /// All floods went unanswered: no new one for a while.
    Silence,
}

impl<P: Parcel + Debug> Aodv<P> {
    /// Starts to look for `destination` unless a search is in progress.
    pub(super) fn start_discovery(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        if self.discoveries.contains_key(&destination)
            || self.discoveries.len() >= DISCOVERIES
            || self.table.valid(cx.now, destination).is_some()
        {
            return;
        }
        // §6.4: a destination that was known is sought first where it was.
        let known = self.table.get(cx.now, destination).map_or(0, |route| route.hops);
        self.start(cx, destination, Purpose::Search, known);
    }

    /// Looks for `destination` once, no further than `ttl` hops.
    pub(super) fn repair(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, ttl: u8) {
        self.start(cx, destination, Purpose::Repair { ttl }, 0);
    }

    fn start(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, purpose: Purpose, known: u8) {
        let discovery = Discovery {
            purpose,
            ttl: known.min(self.config.net_diameter),
            floods: 0,
            asked: cx.now,
            deadline: cx.now,
        };
        self.ask(cx, destination, discovery);
    }

    /// Sends the next request, each in a wider ring.
    fn ask(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, mut discovery: Discovery) {
        if let Err(retry) = self.requests.take(cx.now) {
            discovery.deadline = retry;
            self.discoveries.insert(destination, discovery);
            return;
        }
        let config = &self.config;
        discovery.ttl = match (discovery.purpose, discovery.ttl) {
            (Purpose::Repair { ttl }, _) => ttl,
            (_, 0) => config.ttl_start,
            (_, last) if last < config.ttl_threshold => last + config.ttl_increment,
            _ => config.net_diameter,
        };
        if discovery.ttl >= config.net_diameter {
            discovery.floods += 1;
        }
        discovery.asked = cx.now;
        discovery.deadline = cx.now + self.wait(discovery);
        self.discoveries.insert(destination, discovery);
        self.sequence = self.sequence.wrapping_add(1);
        self.request_id = self.request_id.wrapping_add(1);
        self.seen.is_first(cx.now, cx.node, self.request_id);
        let request = RouteRequest {
            id: self.request_id,
            destination,
            destination_sequence: self.table.get(cx.now, destination).and_then(|it| it.sequence),
            originator: cx.node,
            originator_sequence: self.sequence,
            hops: 0,
        };
        self.send_request(cx, request, discovery.ttl, Duration::ZERO);
    }

    fn send_request(&mut self, cx: &mut Cx<'_, P>, it: RouteRequest, ttl: u8, jitter: Duration) {
        let message = Message::Aodv(AodvMessage::Request(it));
        let datagram = packet(cx.node, NodeId::BROADCAST, ttl, message, self.config.rreq_len);
        self.hello.on_broadcast(cx.now);
        cx.broadcast(datagram, jitter);
    }

    fn wait(&self, discovery: Discovery) -> Duration {
        let config = &self.config;
        let hop = config.node_traversal_time;
        let ttl = u64::from(discovery.ttl);
        match config.wait {
            RequestWait::Ring { .. } if discovery.floods > 0 => {
                let repeated = (discovery.floods - 1).min(16);
                hop.saturating_mul((2 * u64::from(config.net_diameter)) << repeated)
            }
            RequestWait::Ring { timeout_buffer } => hop.saturating_mul(2 * (ttl + timeout_buffer)),
            RequestWait::Measured { cap } => {
                let hop = self.latencies.mean().unwrap_or(hop);
                hop.saturating_mul(2 * ttl * u64::from(discovery.floods.max(1))).min(cap)
            }
        }
    }

    /// A destination whose request has waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Option<NodeId> {
        let due = |(_, discovery): &(&NodeId, &Discovery)| discovery.deadline <= now;
        self.discoveries.iter().find(due).map(|(destination, _)| *destination)
    }

    /// No reply: ask further away, or give up.
    pub(super) fn on_no_reply(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        let Some(discovery) = self.discoveries.remove(&destination) else { return };
        let was_asked = discovery.asked < discovery.deadline && discovery.ttl > 0;
        match discovery.purpose {
            Purpose::Repair { .. } if was_asked => self.on_repair_failed(cx, destination),
            Purpose::Search if discovery.floods > self.config.rreq_retries => {
                self.give_up(cx, destination, discovery);
            }
            Purpose::Silence => self.resume(cx, destination),
            _ if self.is_wanted(cx, destination)
                || matches!(discovery.purpose, Purpose::Repair { .. }) =>
            {
                self.ask(cx, destination, discovery);
            }
            _ => {}
        }
    }

    fn give_up(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, discovery: Discovery) {
        // A silenced flow goes on looking, but not without a pause.
        let wanted = self.notices.seeks(cx.now, cx.node, destination);
        let silence = if wanted { self.config.silence.max(PAUSE) } else { self.config.silence };
        if !silence.is_zero() {
            let deadline = cx.now + silence;
            let quiet = Discovery { purpose: Purpose::Silence, deadline, ..discovery };
            self.discoveries.insert(destination, quiet);
        }
        for datagram in self.buffer.take(destination) {
            self.lose(cx, datagram, DropReason::NoRoute);
        }
    }

    fn resume(&mut self, cx: &mut Cx<'_, P>, destination: NodeId) {
        if self.is_wanted(cx, destination) {
            self.start_discovery(cx, destination);
        }
    }

    fn is_wanted(&self, cx: &Cx<'_, P>, destination: NodeId) -> bool {
        self.buffer.holds(destination) || self.notices.seeks(cx.now, cx.node, destination)
    }

    /// §6.5.
    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        ttl: u8,
        mut request: RouteRequest,
    ) {
        self.on_neighbour(cx, from);
        if request.originator == cx.node
            || !self.seen.is_first(cx.now, request.originator, request.id)
        {
            return;
        }
        request.hops = request.hops.saturating_add(1);
        let until = cx.now.saturating_add(self.config.reverse_route_life);
        let sequence = Some(request.originator_sequence);
        let back = Offer { next_hop: from, hops: request.hops, sequence, until };
        self.learn(cx, request.originator, back);
        if request.destination == cx.node {
            self.answer_for_self(cx, request);
        } else if !self.answer_for_other(cx, from, request) && ttl > 1 {
            let known = self.table.get(cx.now, request.destination).and_then(|it| it.sequence);
            request.destination_sequence = freshest(request.destination_sequence, known);
            self.send_request(cx, request, ttl - 1, self.config.jitter);
        }
    }

    /// §6.6.1. The own number must not lag behind what others have made of it.
    fn answer_for_self(&mut self, cx: &mut Cx<'_, P>, request: RouteRequest) {
        if let Some(asked) = request.destination_sequence.filter(|it| newer(*it, self.sequence)) {
            self.sequence = asked;
        }
        let reply = RouteReply {
            destination: cx.node,
            destination_sequence: self.sequence,
            originator: request.originator,
            hops: 0,
            lifetime: self.config.my_route_timeout,
        };
        self.send_reply(cx, reply);
    }

    /// §6.6.2: a fresh enough route of this node's own is an answer.
    fn answer_for_other(&mut self, cx: &mut Cx<'_, P>, from: NodeId, it: RouteRequest) -> bool {
        let Some(route) = self.table.valid(cx.now, it.destination) else { return false };
        let Some(sequence) = route.sequence else { return false };
        let stale = it.destination_sequence.is_some_and(|asked| newer(asked, sequence));
        if stale || route.next_hop == from {
            return false;
        }
        route.add_precursor(from);
        let reply = RouteReply {
            destination: it.destination,
            destination_sequence: sequence,
            originator: it.originator,
            hops: route.hops,
            lifetime: route.until.saturating_since(cx.now),
        };
        let ahead = route.next_hop;
        if let Some(back) = self.table.valid(cx.now, it.originator) {
            back.add_precursor(ahead);
        }
        self.send_reply(cx, reply);
        true
    }

    /// Sends a reply along the way back to who asked.
    fn send_reply(&mut self, cx: &mut Cx<'_, P>, reply: RouteReply) {
        let Some(next_hop) = self.next_hop(cx.now, reply.originator) else { return };
        let message = Message::Aodv(AodvMessage::Reply(reply));
        let ttl = self.config.net_diameter;
        cx.send(next_hop, packet(cx.node, reply.originator, ttl, message, self.config.rrep_len));
    }

    /// §6.7.
    pub(super) fn on_reply(&mut self, cx: &mut Cx<'_, P>, from: NodeId, mut reply: RouteReply) {
        self.on_neighbour(cx, from);
        if reply.destination == cx.node {
            return;
        }
        reply.hops = reply.hops.saturating_add(1);
        let lifetime = reply.lifetime.min(LONGEST_LIFETIME);
        let ahead = Offer {
            next_hop: from,
            hops: reply.hops,
            sequence: Some(reply.destination_sequence),
            until: cx.now.saturating_add(lifetime),
        };
        let own = reply.originator == cx.node;
        if let Some(discovery) = self.discoveries.get(&reply.destination).filter(|_| own) {
            let took = cx.now.saturating_since(discovery.asked);
            self.latencies.add(took / u64::from(reply.hops));
        }
        let taken = self.learn(cx, reply.destination, ahead);
        let is_hello = reply.originator == reply.destination;
        if own || is_hello || taken == Taken::Kept {
            return;
        }
        let life = self.config.active_route_timeout;
        let Some(back) = self.table.valid(cx.now, reply.originator) else { return };
        back.touch(cx.now, life);
        back.add_precursor(from);
        let next_hop = back.next_hop;
        if let Some(ahead) = self.table.valid(cx.now, reply.destination) {
            ahead.add_precursor(next_hop);
        }
        self.send_reply(cx, reply);
    }

    /// A message came from `from`, so there is a link to it.
    pub(super) fn on_neighbour(&mut self, cx: &mut Cx<'_, P>, from: NodeId) {
        let until = cx.now.saturating_add(self.config.active_route_timeout);
        self.learn(cx, from, Offer { next_hop: from, hops: 1, sequence: None, until });
        self.hello.on_heard(cx.now, from);
    }

    /// Takes a route into the table, and sends what has waited for it.
    pub(super) fn learn(&mut self, cx: &mut Cx<'_, P>, destination: NodeId, offer: Offer) -> Taken {
        if destination == cx.node || destination.is_broadcast() {
            return Taken::Kept;
        }
        let taken = self.table.offer(cx.now, destination, offer);
        if taken != Taken::Changed {
            return taken;
        }
        cx.route_changed(destination, Some(offer.next_hop));
        self.discoveries.remove(&destination);
        for datagram in self.buffer.take(destination) {
            self.forward(cx, cx.node, datagram);
        }
        for (source, notice) in self.notices.route_found(cx, destination, &[]) {
            let notice = self.notices.packet(cx.node, source, notice);
            self.post(cx, notice);
        }
        taken
    }
}

fn freshest(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if newer(b, a) { b } else { a }),
        _ => a.or(b),
    }
}

/// The most searches at a time; parcels of others wait in the buffer until their time is up.
pub(super) const DISCOVERIES: usize = 128;
/// How long a silenced flow's router waits between searches.
const PAUSE: Duration = Duration::from_secs(1);
/// No honest reply promises more.
const LONGEST_LIFETIME: Duration = Duration::from_secs(3600);

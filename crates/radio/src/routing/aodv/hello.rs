//! Hello messages (RFC 3561 §6.9): a reply of a node about itself, broadcast to its neighbours while
//! it has a route in use, unless it has broadcast something else in the meantime.

use std::collections::BTreeMap;
use std::fmt::Debug;

use weir_units::Instant;

use super::Aodv;
use super::config::HelloConfig;
use crate::datagram::NodeId;
use crate::routing::messages::{AodvMessage, RouteReply};
use crate::routing::{Cx, Message, packet};
use weir_net::Parcel;

/// When a node last spoke and heard.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    config: Option<HelloConfig>,
    next: Instant,
    last_broadcast: Option<Instant>,
    /// Neighbours that have said hello, and when they did last.
    heard: BTreeMap<NodeId, Instant>,
}

/// More neighbours than any channel carries.
const NEIGHBOURS: usize = 256;

impl Hello {
    pub(super) fn new(config: Option<HelloConfig>) -> Self {
        Self { config, next: Instant::ZERO, last_broadcast: None, heard: BTreeMap::new() }
    }

    pub(super) fn on_broadcast(&mut self, now: Instant) {
        self.last_broadcast = Some(now);
    }

    pub(super) fn on_heard(&mut self, now: Instant, from: NodeId) {
        let known = self.heard.contains_key(&from);
        if self.config.is_some() && (known || self.heard.len() < NEIGHBOURS) {
            self.heard.insert(from, now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.config.map(|_| self.next)
    }

    /// Forgets a neighbour that has been silent for too long.
    fn pop_silent(&mut self, now: Instant, config: HelloConfig) -> Option<NodeId> {
        let patience = config.interval.saturating_mul(config.allowed_loss);
        let silent = |(_, at): &(&NodeId, &Instant)| now.saturating_since(**at) >= patience;
        let gone = self.heard.iter().find(silent).map(|(neighbour, _)| *neighbour)?;
        self.heard.remove(&gone);
        Some(gone)
    }
}

impl<P: Parcel + Debug> Aodv<P> {
    pub(super) fn on_hello_timeout(&mut self, cx: &mut Cx<'_, P>) {
        let Some(config) = self.hello.config.filter(|_| self.hello.next <= cx.now) else { return };
        while let Some(gone) = self.hello.pop_silent(cx.now, config) {
            self.break_link(cx, gone);
        }
        self.hello.next = cx.now + config.interval;
        let spoken = self.hello.last_broadcast;
        let quiet = spoken.is_none_or(|at| cx.now.saturating_since(at) >= config.interval);
        if !quiet || !self.table.any_valid(cx.now) {
            return;
        }
        let reply = RouteReply {
            destination: cx.node,
            destination_sequence: self.sequence,
            originator: cx.node,
            hops: 0,
            lifetime: config.interval.saturating_mul(config.allowed_loss),
        };
        let message = Message::Aodv(AodvMessage::Reply(reply));
        let datagram = packet(cx.node, NodeId::BROADCAST, 1, message, self.config.rrep_len);
        cx.broadcast(datagram, self.config.jitter);
        self.hello.on_broadcast(cx.now);
    }
}

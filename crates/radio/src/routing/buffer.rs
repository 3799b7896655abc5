//! Buffer of datagrams that wait for a route, bounded in number and time.
//!
//! The limits of ns-2's AODV and DSR are 64 datagrams and 30 s. A full buffer gives up its oldest
//! datagram.

use std::collections::VecDeque;

use weir_units::{Duration, Instant};

use super::Packet;
use crate::datagram::NodeId;

/// How much a send buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// How many datagrams.
    pub datagrams: usize,
    /// How long each.
    pub time: Duration,
}

/// Datagrams without a route, the oldest first.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer<P> {
    config: BufferConfig,
    waiting: VecDeque<(Instant, Packet<P>)>,
}

impl Default for BufferConfig {
    fn default() -> Self {
        Self { datagrams: 64, time: Duration::from_secs(30) }
    }
}

impl<P> SendBuffer<P> {
    pub(super) fn new(config: BufferConfig) -> Self {
        Self { config, waiting: VecDeque::new() }
    }

    /// Keeps `datagram`; returns the one that has to go for it.
    pub(super) fn push(&mut self, now: Instant, datagram: Packet<P>) -> Option<Packet<P>> {
        let full = self.waiting.len() >= self.config.datagrams;
        let oldest = if full { self.waiting.pop_front().map(|(_, oldest)| oldest) } else { None };
        self.waiting.push_back((now.saturating_add(self.config.time), datagram));
        oldest
    }

    /// What waits for a route to `destination`, in order.
    pub(super) fn take(&mut self, destination: NodeId) -> Vec<Packet<P>> {
        let mut taken = Vec::new();
        if self.holds(destination) {
            for (until, datagram) in std::mem::take(&mut self.waiting) {
                if datagram.destination == destination {
                    taken.push(datagram);
                } else {
                    self.waiting.push_back((until, datagram));
                }
            }
        }
        taken
    }

    /// The oldest datagram, if its time is up.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Packet<P>> {
        let (until, _) = self.waiting.front()?;
        if *until > now {
            return None;
        }
        self.waiting.pop_front().map(|(_, datagram)| datagram)
    }

    pub(super) fn holds(&self, destination: NodeId) -> bool {
        self.waiting.iter().any(|(_, datagram)| datagram.destination == destination)
    }

    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.waiting.front().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

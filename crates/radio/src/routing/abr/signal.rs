//! TCP-BuS's notices, from hop to hop until each is acknowledged.

use std::fmt::Debug;

use weir_units::Instant;

use super::table::State;
use super::{Abr, Passing};
use crate::datagram::{Content, NodeId};
use crate::routing::messages::{AbrMessage, AbrReply, NoticeMessage, RouteKey};
use crate::routing::{Cx, Notice, Packet};
use weir_net::Parcel;

/// Signals on their way, and what receivers at this node expect.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    pending: Vec<Pending>,
    /// Flow, its source, and what its receiver expects next.
    expected: Vec<(u32, NodeId, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    id: u32,
    next_hop: NodeId,
    source: NodeId,
    notice: NoticeMessage,
    tries: u32,
    deadline: Instant,
}

/// The most signals and flows.
pub(super) const SIGNALS: usize = 64;

impl Signals {
    /// An acknowledgement leaves its receiver's node: it says what is expected.
    pub(super) fn on_originated<P: Parcel>(&mut self, datagram: &Packet<P>) {
        let Content::Parcel(parcel, _) = &datagram.content else { return };
        if parcel.is_forward() {
            return;
        }
        let next = parcel.sequence();
        match self.expected.iter_mut().find(|(flow, ..)| *flow == parcel.flow()) {
            Some(known) => known.2 = next,
            None => {
                if self.expected.len() == SIGNALS {
                    self.expected.remove(0);
                }
                self.expected.push((parcel.flow(), datagram.destination, next));
            }
        }
    }

    /// What receivers here expect of flows from `source`.
    pub(super) fn expected(&self, source: NodeId) -> Vec<(u32, u64)> {
        let own = self.expected.iter().filter(|(_, from, _)| *from == source);
        own.map(|(flow, _, next)| (*flow, *next)).take(AbrReply::FLOWS).collect()
    }

    pub(super) fn on_ack(&mut self, from: NodeId, id: u32) {
        self.pending.retain(|it| (it.next_hop, it.id) != (from, id));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.pending.iter().map(|it| it.deadline).min()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pending.len().max(self.expected.len())
    }
}

impl<P: Parcel + Debug> Abr<P> {
    /// Sends a signal to the next hop towards `source`, until that has it.
    pub(super) fn signal(
        &mut self,
        cx: &mut Cx<'_, P>,
        next_hop: NodeId,
        source: NodeId,
        notice: NoticeMessage,
    ) {
        let id = self.next_id();
        let deadline = cx.now + self.config.signal_wait;
        if self.signals.pending.len() < SIGNALS {
            self.signals.pending.push(Pending { id, next_hop, source, notice, tries: 1, deadline });
        }
        self.unicast(cx, next_hop, AbrMessage::Signal { id, source, notice });
    }

    pub(super) fn repeat_signals(&mut self, cx: &mut Cx<'_, P>) {
        let last = self.config.signal_retries;
        self.signals.pending.retain(|it| it.deadline > cx.now || it.tries <= last);
        for i in 0..self.signals.pending.len() {
            let it = &mut self.signals.pending[i];
            if it.deadline > cx.now {
                continue;
            }
            it.tries += 1;
            it.deadline = cx.now + self.config.signal_wait;
            let Pending { id, next_hop, source, notice, .. } = *it;
            self.unicast(cx, next_hop, AbrMessage::Signal { id, source, notice });
        }
    }

    pub(super) fn on_signal(
        &mut self,
        cx: &mut Cx<'_, P>,
        from: NodeId,
        id: u32,
        source: NodeId,
        notice: NoticeMessage,
    ) {
        self.unicast(cx, from, AbrMessage::SignalAck { id });
        if !self.seen.is_first(cx.now, from, id) {
            return;
        }
        let destination = notice.destination;
        let key = RouteKey { source, destination };
        let passing = self.notices.passing(cx, source, notice, false);
        let upstream = self.back(cx.now, key, from);
        if let (Passing::Forward, Some(upstream)) = (passing, upstream) {
            self.signal(cx, upstream, source, notice);
        }
        let deadline = cx.now + self.config.freeze_time;
        let Some(route) = self.table.get(cx.now, key) else { return };
        match (notice.notice, route.state) {
            // Nodes between source and break keep what they have.
            (Notice::Failed { .. }, State::Whole)
                if route.downstream == Some(from) && source != cx.node =>
            {
                route.state = State::Frozen { deadline };
            }
            (Notice::Restored { .. }, State::Frozen { .. }) => {
                route.state = State::Whole;
                self.release(cx, destination);
            }
            _ => {}
        }
    }
}

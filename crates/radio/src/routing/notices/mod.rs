//! What routers tell the source of a flow when its route breaks or comes back.
//!
//! | kind | source | messages |
//! |---|---|---|
//! | RFN, RRN | TCP-F: Chandran, Raghunathan, Venkatesan, Prakash, ICDCS 1998 | failed, restored |
//! | ELFN | Holland & Vaidya, MobiCom 1999 | failed, with the sequence number of the lost packet |
//! | unreachable | ATCP: Liu & Singh, JSAC 19(7), 2001; RFC 792 | failed |
//! | ERDN, ERSN | TCP-BuS: Kim, Toh & Choi, ICC 2000 | failed, restored |
//!
//! ERDN names the packet that waits first at the pivoting node, ERSN what the receiver expects next.
//!
//! A notice is a packet of its own, routed back to the flow's source like a parcel, but never waits
//! for a route and is never searched one for. RFN: a node that has another route absorbs it (its
//! parcels take that route); every other one remembers the source and sends an RRN, once, when it
//! learns of a route. DSR carries notices in its route errors instead. ERDN and ERSN are ABR's alone,
//! which repeats them hop by hop until they are acknowledged.
//!
//! Deviations. Only parcels towards the receiver cause notices: acknowledgements that get lost have a
//! receiver as their source, whose transport has nothing to stop. TCP-F leaves open who looks for a
//! new route while the source is silent: here the source's router does. A flow causes at most one
//! notice per node in [`HOLD_OFF`], as RFC 1812 §4.3.2.8 wants of ICMP errors.

#[cfg(test)]
mod tests;

use weir_units::{Bytes, Duration, Instant};

use super::messages::{Message, NoticeMessage};
use super::{Cx, Notice, Packet, Upcall, packet};
use crate::datagram::{Content, NodeId};
use weir_net::Parcel;

/// Which notices routers send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notices {
    /// None: a transport finds out by itself.
    #[default]
    None,
    /// TCP-F's route failure and route re-establishment notifications.
    Rfn,
    /// Explicit link failure notification.
    Elfn,
    /// ICMP host unreachable.
    Unreachable,
    /// TCP-BuS's explicit route disconnection and route successful notifications; only with ABR.
    Bus,
}

/// What becomes of a notice that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    Forward,
    Absorb,
}

/// The notices of one node.
#[derive(Clone, Debug)]
pub(super) struct NoticeAgent {
    kind: Notices,
    flows: Vec<Remembered>,
}

/// A flow that a notice was about.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    flow: u32,
    source: NodeId,
    destination: NodeId,
    /// When the last failure notice was sent or passed on.
    failed: Instant,
    /// RFN: whether the source still has to hear that there is a route again.
    owes: bool,
}

/// At most one notice per flow and node in this time: a queue of packets fails at once.
const HOLD_OFF: Duration = Duration::from_millis(100);
/// How long a flow is remembered.
const MEMORY: Duration = Duration::from_secs(60);
/// The most flows that are remembered.
const FLOWS: usize = 64;

impl NoticeAgent {
    pub(super) fn new(kind: Notices) -> Self {
        Self { kind, flows: Vec::new() }
    }

    /// A parcel was lost because its route broke. The returned notice is to go to its source.
    pub(super) fn failed<P: Parcel>(
        &mut self,
        cx: &mut Cx<'_, P>,
        lost: &Packet<P>,
    ) -> Option<NoticeMessage> {
        let Content::Parcel(parcel, _) = &lost.content else { return None };
        if self.kind == Notices::None || !parcel.is_forward() || self.is_known(cx.now, parcel) {
            return None;
        }
        let (flow, destination) = (parcel.flow(), lost.destination);
        self.remember(cx.now, flow, lost.source, destination);
        let notice = Notice::Failed { sequence: parcel.sequence() };
        if lost.source == cx.node {
            cx.upcalls.push(Upcall::Notify { flow, notice });
            return None;
        }
        Some(NoticeMessage { flow, destination, notice })
    }

    /// A notice has arrived for `source`, perhaps this node. `alternative` is whether the flow's
    /// parcels can go on from here over another neighbour than the one that sent the notice.
    pub(super) fn passing<P>(
        &mut self,
        cx: &mut Cx<'_, P>,
        source: NodeId,
        message: NoticeMessage,
        alternative: bool,
    ) -> Passing {
        let NoticeMessage { flow, destination, notice } = message;
        let rfn = matches!(self.kind, Notices::Rfn | Notices::Bus);
        let news = match notice {
            Notice::Failed { .. } if rfn && alternative => return Passing::Absorb,
            Notice::Failed { .. } => {
                self.remember(cx.now, flow, source, destination);
                true
            }
            // The first one passes, its duplicates do not; nodes that never heard of the failure
            // pass on everything.
            Notice::Restored { .. } => match self.flows.iter_mut().find(|it| it.flow == flow) {
                Some(known) => std::mem::replace(&mut known.owes, false),
                None => source != cx.node,
            },
        };
        if !news {
            return Passing::Absorb;
        }
        if source != cx.node {
            return Passing::Forward;
        }
        cx.upcalls.push(Upcall::Notify { flow, notice });
        Passing::Absorb
    }

    /// A route to `destination` has come up; `expected` says what receivers there expect, by flow,
    /// if any node reported it. The returned notices are to go to these sources.
    pub(super) fn route_found<P>(
        &mut self,
        cx: &mut Cx<'_, P>,
        destination: NodeId,
        expected: &[(u32, u64)],
    ) -> Vec<(NodeId, NoticeMessage)> {
        let mut found = Vec::new();
        for known in self.flows.iter_mut().filter(|it| it.destination == destination) {
            if !std::mem::replace(&mut known.owes, false) {
                continue;
            }
            let Remembered { flow, source, .. } = *known;
            let expected = expected.iter().find(|(of, _)| *of == flow).map(|(_, next)| *next);
            let notice = Notice::Restored { expected };
            if source == cx.node {
                cx.upcalls.push(Upcall::Notify { flow, notice });
            } else {
                found.push((source, NoticeMessage { flow, destination, notice }));
            }
        }
        found
    }

    /// Whether a flow of this node stands still until there is a route to `destination`.
    pub(super) fn seeks(&self, now: Instant, node: NodeId, destination: NodeId) -> bool {
        self.flows.iter().any(|it| {
            it.owes
                && (it.source, it.destination) == (node, destination)
                && now.saturating_since(it.failed) < MEMORY
        })
    }

    /// A notice as a packet of its own.
    pub(super) fn packet<P>(&self, node: NodeId, to: NodeId, notice: NoticeMessage) -> Packet<P> {
        packet(node, to, u8::MAX, Message::Notice(notice), self.len())
    }

    /// Whether the flow's source has just been notified, or with TCP-BuS still waits for news.
    fn is_known(&self, now: Instant, parcel: &impl Parcel) -> bool {
        let known = self.flows.iter().find(|it| it.flow == parcel.flow());
        known.is_some_and(|it| {
            let waits = self.kind == Notices::Bus && it.owes;
            now.saturating_since(it.failed) < if waits { MEMORY } else { HOLD_OFF }
        })
    }

    fn remember(&mut self, now: Instant, flow: u32, source: NodeId, destination: NodeId) {
        self.flows.retain(|it| it.flow != flow && now.saturating_since(it.failed) < MEMORY);
        if self.flows.len() == FLOWS {
            self.flows.remove(0);
        }
        let owes = matches!(self.kind, Notices::Rfn | Notices::Bus);
        self.flows.push(Remembered { flow, source, destination, failed: now, owes });
    }

    /// The length without the IP header. ICMP (RFC 792) returns the IP header and the first eight
    /// bytes of what was lost, and ELFN is such a message. RFN names flow (ports), destination and
    /// failure point; ERDN and ERSN have a number and a sequence number as well.
    pub(super) fn len(&self) -> Bytes {
        match self.kind {
            Notices::None => Bytes::ZERO,
            Notices::Rfn => Bytes(12),
            Notices::Elfn | Notices::Unreachable => Bytes(8 + 20 + 8),
            Notices::Bus => Bytes(20),
        }
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.flows.len()
    }
}

//! ABR's messages. The papers describe them in words; lengths are ours, with addresses and numbers of
//! four bytes and ticks and load of two.

use std::sync::Arc;

use weir_units::Bytes;

use super::NoticeMessage;
use crate::datagram::NodeId;

/// A message of ABR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbrMessage {
    /// With a parcel: it goes back along the route that leads from its destination to its source.
    Back,
    /// I am here.
    Beacon,
    /// BQ or LQ: who knows the way?
    Query(AbrQuery),
    /// REPLY: this is the way.
    Reply(AbrReply),
    /// RN: the route is broken further on.
    Broken {
        /// Whose route it is.
        route: RouteKey,
        /// Who is to mend it.
        repair: Backtrack,
    },
    /// RD: the route is no longer wanted.
    Delete {
        /// The flood's number.
        id: u32,
        /// Whose route it was.
        route: RouteKey,
    },
    /// TCP-BuS's ERDN or ERSN, from one hop to the next.
    Signal {
        /// Its number at the hop that sends it.
        id: u32,
        /// The source that is to hear of it.
        source: NodeId,
        /// What it says.
        notice: NoticeMessage,
    },
    /// The next hop has taken the signal.
    SignalAck {
        /// The signal's number.
        id: u32,
    },
}

/// A route's name: its ends. Parcels back from the destination take the same route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// Where it begins.
    pub source: NodeId,
    /// Where it leads.
    pub destination: NodeId,
}

/// Who mends a broken route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtrack {
    /// The node that hears of it (RN with step 0).
    Here,
    /// The source (RN with step 1).
    Source,
}

/// BQ, or LQ if a node between the ends asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbrQuery {
    /// The flood's number.
    pub id: u32,
    /// Whose route it is.
    pub route: RouteKey,
    /// Who asks: the source, or the pivoting node.
    pub asker: NodeId,
    /// How many hops who asks is away from the source.
    pub hops_up: u8,
    /// Who has passed it on after that.
    pub visits: Vec<Visit>,
}

/// A node on the way of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Who.
    pub node: NodeId,
    /// The associativity ticks of the link to the node before.
    pub ticks: u16,
    /// How many routes go over it.
    pub load: u16,
}

/// REPLY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbrReply {
    /// Whose route it is.
    pub route: RouteKey,
    /// The destination numbers its replies.
    pub number: u32,
    /// How many hops who asked is away from the source.
    pub hops_up: u8,
    /// From who asked to the destination.
    pub path: Arc<[NodeId]>,
    /// Which of them is to receive it.
    pub at: u8,
    /// TCP-BuS: what receivers expect next, by flow.
    pub expected: Vec<(u32, u64)>,
}

impl AbrQuery {
    /// The most visits.
    pub const LONGEST: usize = 254;
}

impl AbrReply {
    /// The most flows that a reply lists.
    pub const FLOWS: usize = 4;
}

impl AbrMessage {
    /// The length without the IP header; signals say `notice` bytes.
    pub(in crate::routing) fn len(&self, notice: Bytes) -> Bytes {
        match self {
            Self::Back => Bytes::ZERO,
            Self::Beacon | Self::SignalAck { .. } => Bytes(4),
            Self::Query(query) => Bytes(20 + 8 * query.visits.len() as u64),
            Self::Reply(reply) => {
                Bytes(16 + 4 * reply.path.len() as u64 + 8 * reply.expected.len() as u64)
            }
            Self::Broken { .. } => Bytes(12),
            Self::Delete { .. } => Bytes(16),
            Self::Signal { .. } => notice,
        }
    }
}

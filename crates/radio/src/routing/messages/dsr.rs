//! DSR's options (RFC 4728 §6) and their lengths.

use std::sync::Arc;

use weir_units::Bytes;

use super::NoticeMessage;
use crate::datagram::NodeId;

/// A message of DSR, or what it adds to a parcel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DsrMessage {
    /// The way of a parcel.
    Route(SourceRoute),
    /// RREQ: who knows the way?
    Request(DsrRequest),
    /// RREP: this is the way.
    Reply {
        /// The way of the reply.
        way: SourceRoute,
        /// The requested path, from the requester to the destination.
        path: Arc<[NodeId]>,
    },
    /// RERR: this link is broken.
    Error {
        /// The way of the error.
        way: SourceRoute,
        /// From where to where nothing gets through.
        broken: (NodeId, NodeId),
        /// ELFN and its kin ride on it.
        notice: Option<NoticeMessage>,
    },
    /// TCP-F: there is a route again.
    Notice {
        /// The way of the notice.
        way: SourceRoute,
        /// What it says.
        notice: NoticeMessage,
    },
}

/// A way through the network (RFC 4728 §6.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// Every node on it, both ends included.
    pub path: Arc<[NodeId]>,
    /// Which of them sends it now.
    pub at: u8,
    /// How often the way was replaced.
    pub salvaged: u8,
}

/// RREQ (RFC 4728 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DsrRequest {
    /// The flood's number.
    pub id: u32,
    /// Who is sought.
    pub target: NodeId,
    /// Who has passed it on, beginning with who asks.
    pub path: Vec<NodeId>,
}

impl SourceRoute {
    /// The most nodes of a way: `at` counts them in a byte.
    pub const LONGEST: usize = 255;

    /// The way along `path` from its beginning.
    pub(in crate::routing) fn along(path: Arc<[NodeId]>) -> Self {
        Self { path, at: 0, salvaged: 0 }
    }

    /// Who is next.
    pub(in crate::routing) fn next_hop(&self) -> Option<NodeId> {
        self.path.get(usize::from(self.at) + 1).copied()
    }

    /// `node` has received it; whether it is on the way.
    pub(in crate::routing) fn step(&mut self, node: NodeId) -> bool {
        let expected = self.next_hop() == Some(node);
        self.at = self.at.saturating_add(u8::from(expected));
        expected
    }

    /// The way from the node that has it now back to the beginning.
    pub(in crate::routing) fn back(&self) -> Self {
        let until = (usize::from(self.at) + 1).min(self.path.len());
        Self::along(self.path[..until].iter().rev().copied().collect())
    }

    /// The fixed part of the header and a source route option, which names neither end.
    pub(in crate::routing) fn len(&self) -> Bytes {
        Bytes(4 + 4 + 4 * self.path.len().saturating_sub(2) as u64)
    }
}

impl DsrMessage {
    /// The length without the IP header; notices have `notice` bytes of their own.
    pub(in crate::routing) fn len(&self, notice: Bytes) -> Bytes {
        match self {
            Self::Route(way) => way.len(),
            // Type, length and identification, target, then all nodes but the requester.
            Self::Request(request) => {
                Bytes(4 + 8 + 4 * request.path.len().saturating_sub(1) as u64)
            }
            // Type, length and flags, padded, then all nodes but the requester.
            Self::Reply { way, path } => {
                way.len() + Bytes(4 + 4 * path.len().saturating_sub(1) as u64)
            }
            // Type, length, error type and salvage count, and three addresses (§6.4).
            Self::Error { way, notice: None, .. } => way.len() + Bytes(16),
            Self::Error { way, notice: Some(_), .. } => way.len() + Bytes(16) + notice,
            Self::Notice { way, .. } => way.len() + notice,
        }
    }

    /// The source route that it takes, unless it is a broadcast.
    pub(in crate::routing) fn way_mut(&mut self) -> Option<&mut SourceRoute> {
        match self {
            Self::Request(_) => None,
            Self::Route(way)
            | Self::Reply { way, .. }
            | Self::Error { way, .. }
            | Self::Notice { way, .. } => Some(way),
        }
    }
}

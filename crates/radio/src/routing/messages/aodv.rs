//! AODV's messages (RFC 3561 §5).

use weir_units::{Bytes, Duration};

use crate::datagram::NodeId;

/// A message of AODV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AodvMessage {
    /// RREQ: who knows the way?
    Request(RouteRequest),
    /// RREP: this is the way. As a broadcast of a node about itself it is a hello.
    Reply(RouteReply),
    /// RERR: these are no longer reached this way.
    Error(RouteError),
}

/// RREQ (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteRequest {
    /// The flood's number.
    pub id: u32,
    /// Who is sought.
    pub destination: NodeId,
    /// The last sequence number known of it.
    pub destination_sequence: Option<u32>,
    /// Who seeks.
    pub originator: NodeId,
    /// Its own sequence number.
    pub originator_sequence: u32,
    /// Hops from the originator so far.
    pub hops: u8,
}

/// RREP (§5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteReply {
    /// Where the route leads.
    pub destination: NodeId,
    /// How fresh it is.
    pub destination_sequence: u32,
    /// Who asked.
    pub originator: NodeId,
    /// Hops to the destination so far.
    pub hops: u8,
    /// How long the route may be used.
    pub lifetime: Duration,
}

/// RERR (§5.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError {
    /// Destinations with their new sequence numbers.
    pub unreachable: Vec<(NodeId, u32)>,
}

impl RouteError {
    /// The most destinations: their number is a field of one byte.
    pub(in crate::routing) const LIMIT: usize = 255;

    /// The length without the IP header.
    pub(in crate::routing) fn len(&self) -> Bytes {
        Bytes(4 + 8 * self.unreachable.len() as u64)
    }
}

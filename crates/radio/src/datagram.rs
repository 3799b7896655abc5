//! What nodes send each other: network-layer packets.

use std::fmt;

use weir_units::Bytes;

use weir_net::Parcel;

/// A node, which has the same address at every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    /// Every node in range.
    pub const BROADCAST: Self = Self(u16::MAX);

    /// Whether it means every node in range.
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A network-layer packet: a flow's parcel, or a message `M` of the routing protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Datagram<P, M> {
    /// Where it comes from.
    pub source: NodeId,
    /// Where it goes; [`NodeId::BROADCAST`] for all neighbours.
    pub destination: NodeId,
    /// How many hops it may still take, this one included.
    pub ttl: u8,
    /// How many hops it has taken.
    pub hops: u8,
    /// What the routing protocol adds to its length: a source route.
    pub extra: Bytes,
    /// What it carries.
    pub content: Content<P, M>,
}

/// What a datagram carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Content<P, M> {
    /// A flow's packet, perhaps with what its routing protocol adds to it (a source route).
    Parcel(P, Option<M>),
    /// A message between routers.
    Message(M, Bytes),
}

/// Why a datagram went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The interface queue was full.
    QueueFull,
    /// The MAC gave up: no answer to its RTS or its data.
    MacRetries,
    /// The address of the next hop did not become known.
    Arp,
    /// No route, or none in time.
    NoRoute,
    /// Too many hops.
    TtlExpired,
    /// Waited for a route with too many others.
    BufferFull,
    /// A frame error that no retry mends.
    FrameError,
}

impl<P: Parcel, M> Datagram<P, M> {
    /// The length of its IP packet.
    pub fn len(&self) -> Bytes {
        let content = match &self.content {
            Content::Parcel(parcel, _) => parcel.len(),
            Content::Message(_, len) => *len,
        };
        content + self.extra
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        false
    }
}

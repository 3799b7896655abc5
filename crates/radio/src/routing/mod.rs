//! What a routing protocol is to the node that runs it, and the protocols.

mod abr;
mod any;
mod aodv;
mod buffer;
mod dsr;
mod fixed;
#[cfg(test)]
mod harness;
mod latencies;
mod messages;
mod notices;
mod rate;
mod seen;

pub use abr::{Abr, AbrConfig};
pub use any::{AnyRouter, RouterConfig, RouterConfigError};
pub use aodv::{Aodv, AodvConfig, HelloConfig, LocalRepair, RequestWait};
pub use buffer::BufferConfig;
pub use dsr::{Dsr, DsrConfig};
pub use fixed::{StaticRouter, StaticRoutes};
pub use messages::{
    AbrMessage, AbrQuery, AbrReply, AodvMessage, Backtrack, DsrMessage, DsrRequest, Message,
    NoticeMessage, RouteError, RouteKey, RouteReply, RouteRequest, SourceRoute, Visit,
};
pub use notices::Notices;

use weir_units::{Bytes, Duration, Instant, Rng};

use super::datagram::{Content, Datagram, DropReason, NodeId};

/// A routing protocol at one node.
pub trait Router<P>: std::fmt::Debug {
    /// Its messages and source routes.
    type Message;

    /// A packet of the node's own is to go to `datagram.destination`.
    fn originate(
        &mut self,
        cx: &mut RouterCx<'_, P, Self::Message>,
        datagram: Datagram<P, Self::Message>,
    );

    /// A datagram arrived from the neighbour `from`, for this node, for all, or to be forwarded.
    fn received(
        &mut self,
        cx: &mut RouterCx<'_, P, Self::Message>,
        from: NodeId,
        datagram: Datagram<P, Self::Message>,
    );

    /// Whether it wants [`Self::overheard`] called.
    fn overhears(&self) -> bool {
        false
    }

    /// The neighbour `from` has sent `datagram` to another node, and this one could read it.
    fn overheard(
        &mut self,
        _cx: &mut RouterCx<'_, P, Self::Message>,
        _from: NodeId,
        _datagram: &Datagram<P, Self::Message>,
    ) {
    }

    /// The link layer could not hand `failure.datagram` to a neighbour.
    fn link_failed(
        &mut self,
        cx: &mut RouterCx<'_, P, Self::Message>,
        failure: LinkFailure<P, Self::Message>,
    );

    /// The next deadline.
    fn next_timeout(&self) -> Option<Instant>;

    /// Deadlines may have passed.
    fn handle_timeout(&mut self, cx: &mut RouterCx<'_, P, Self::Message>);
}

/// A datagram that a neighbour did not take.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFailure<P, M> {
    /// The neighbour.
    pub next_hop: NodeId,
    /// What it did not take.
    pub datagram: Datagram<P, M>,
    /// What waits in the interface queue for the same neighbour, taken out of it.
    pub waiting: Vec<Datagram<P, M>>,
}

/// Input of a router, and where it puts its outputs.
#[derive(Debug)]
pub struct RouterCx<'a, P, M> {
    /// Now.
    pub now: Instant,
    /// The node.
    pub node: NodeId,
    /// The node's own random stream, for broadcast jitter.
    pub rng: &'a mut Rng,
    /// What it wants done, in order.
    pub upcalls: &'a mut Vec<Upcall<P, M>>,
}

/// What a router wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Upcall<P, M> {
    /// Hand `datagram` to the link layer for `next_hop` (or [`NodeId::BROADCAST`]), after `delay`.
    Send {
        /// The neighbour, or all.
        next_hop: NodeId,
        /// What to send.
        datagram: Datagram<P, M>,
        /// Jitter of broadcasts.
        delay: Duration,
    },
    /// The datagram is for this node: its parcel goes to its flow.
    Deliver(Datagram<P, M>),
    /// The datagram went no further.
    Drop(Datagram<P, M>, DropReason),
    /// The transport of flow `flow` at this node is to know.
    Notify {
        /// The flow.
        flow: u32,
        /// What it is to know.
        notice: Notice,
    },
    /// A route to `destination` changed: for the counters.
    RouteChanged {
        /// To where.
        destination: NodeId,
        /// The new next hop; `None` if there is no route any more.
        next_hop: Option<NodeId>,
    },
}

/// What the network tells a transport of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// TCP-F's RFN, ELFN, ICMP host unreachable, or TCP-BuS's ERDN: the route broke.
    Failed {
        /// Where the packet that found out, or for TCP-BuS that waits first at the pivoting node,
        /// lies in its flow: [`Parcel::sequence`](weir_net::Parcel::sequence).
        sequence: u64,
    },
    /// TCP-F's RRN or TCP-BuS's ERSN: there is a route again.
    Restored {
        /// TCP-BuS: what the receiver expects next.
        expected: Option<u64>,
    },
}

/// Prepares a datagram that has arrived for its next hop, unless it has had its last.
fn next_leg<P, M>(datagram: &mut Datagram<P, M>) -> Result<(), DropReason> {
    if datagram.ttl <= 1 {
        return Err(DropReason::TtlExpired);
    }
    datagram.ttl -= 1;
    Ok(())
}

/// A new datagram with a routing message of `len` bytes after its IP header.
fn packet<P>(
    node: NodeId,
    destination: NodeId,
    ttl: u8,
    message: Message,
    len: Bytes,
) -> Packet<P> {
    Datagram {
        source: node,
        destination,
        ttl,
        hops: 0,
        extra: Bytes::ZERO,
        content: Content::Message(message, len + IP_HEADER),
    }
}

/// Whether sequence number `a` is newer than `b` (RFC 3561 §6.1: signed difference, so that it may
/// wrap).
fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl<P> RouterCx<'_, P, Message> {
    fn send(&mut self, next_hop: NodeId, datagram: Packet<P>) {
        self.upcalls.push(Upcall::Send { next_hop, datagram, delay: Duration::ZERO });
    }

    /// Sends to all neighbours, after up to `jitter`, so that they do not all repeat it at once.
    fn broadcast(&mut self, datagram: Packet<P>, jitter: Duration) {
        let delay = self.rng.duration_up_to(jitter);
        self.upcalls.push(Upcall::Send { next_hop: NodeId::BROADCAST, datagram, delay });
    }

    fn drop(&mut self, datagram: Packet<P>, reason: DropReason) {
        self.upcalls.push(Upcall::Drop(datagram, reason));
    }

    fn route_changed(&mut self, destination: NodeId, next_hop: Option<NodeId>) {
        self.upcalls.push(Upcall::RouteChanged { destination, next_hop });
    }
}

type Packet<P> = Datagram<P, Message>;
type Cx<'a, P> = RouterCx<'a, P, Message>;

const IP_HEADER: Bytes = Bytes(20);

#[cfg(test)]
mod tests {
    use super::newer;

    #[test]
    fn sequence_numbers_wrap() {
        assert!(newer(2, 1) && !newer(1, 2) && !newer(1, 1));
        assert!(newer(0, u32::MAX) && newer(5, u32::MAX - 5));
    }
}

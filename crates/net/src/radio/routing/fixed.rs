//! Static routing: shortest paths of a graph, computed once, as studies use them that want the MAC
//! alone.
//!
//! Among shortest paths the neighbour with the lowest number wins, so that routes are the same in
//! every run. A link that fails stays in use: the datagram that failed is dropped, and what waited
//! behind it for the same neighbour goes back into the interface queue.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use weir_units::{Duration, Instant};

use super::message::Message;
use super::{LinkFailure, Router, RouterCx, Upcall, next_leg};
use crate::Parcel;
use crate::radio::datagram::{Content, Datagram, DropReason, NodeId};
use crate::radio::graph::{Graph, node};

/// The next hop from every node to every other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoutes {
    nodes: usize,
    /// Indexed by node times `nodes` plus destination; [`NodeId::BROADCAST`] where no path leads.
    next_hops: Arc<[NodeId]>,
}

/// Static routing at one node.
#[derive(Clone, Debug)]
pub struct StaticRouter<P> {
    routes: StaticRoutes,
    parcels: PhantomData<P>,
}

impl StaticRoutes {
    /// The shortest paths of `graph`.
    pub fn shortest(graph: &Graph) -> Self {
        let nodes = graph.len();
        let mut next_hops = vec![NodeId::BROADCAST; nodes * nodes];
        for destination in 0..nodes {
            let hops = graph.hops_from(node(destination));
            for at in (0..nodes).filter(|at| *at != destination) {
                let Some(distance) = hops[at] else { continue };
                let nearer = |next: &&NodeId| hops[usize::from(next.0)] == Some(distance - 1);
                if let Some(next) = graph.neighbours(node(at)).iter().find(nearer) {
                    next_hops[at * nodes + destination] = *next;
                }
            }
        }
        Self { nodes, next_hops: next_hops.into() }
    }

    /// The neighbour of `at` on the way to `destination`.
    pub fn next_hop(&self, at: NodeId, destination: NodeId) -> Option<NodeId> {
        let (at, destination) = (usize::from(at.0), usize::from(destination.0));
        let inside = at < self.nodes && destination < self.nodes;
        let next = *self.next_hops.get(at * self.nodes + destination).filter(|_| inside)?;
        (!next.is_broadcast()).then_some(next)
    }
}

impl<P> StaticRouter<P> {
    /// Follows `routes`.
    pub fn new(routes: StaticRoutes) -> Self {
        Self { routes, parcels: PhantomData }
    }

    fn forward(&self, cx: &mut RouterCx<'_, P, Message>, datagram: Datagram<P, Message>) {
        let upcall = match self.routes.next_hop(cx.node, datagram.destination) {
            Some(next_hop) => Upcall::Send { next_hop, datagram, delay: Duration::ZERO },
            None => Upcall::Drop(datagram, DropReason::NoRoute),
        };
        cx.upcalls.push(upcall);
    }
}

impl<P: Parcel + Debug> Router<P> for StaticRouter<P> {
    type Message = Message;

    fn originate(&mut self, cx: &mut RouterCx<'_, P, Message>, mut datagram: Datagram<P, Message>) {
        datagram.ttl = u8::MAX;
        if datagram.destination == cx.node {
            return cx.upcalls.push(Upcall::Deliver(datagram));
        }
        self.forward(cx, datagram);
    }

    fn received(
        &mut self,
        cx: &mut RouterCx<'_, P, Message>,
        _from: NodeId,
        mut datagram: Datagram<P, Message>,
    ) {
        datagram.hops = datagram.hops.saturating_add(1);
        if !matches!(datagram.content, Content::Parcel(..)) {
            return;
        }
        if datagram.destination == cx.node {
            return cx.upcalls.push(Upcall::Deliver(datagram));
        }
        match next_leg(&mut datagram) {
            Ok(()) => self.forward(cx, datagram),
            Err(reason) => cx.upcalls.push(Upcall::Drop(datagram, reason)),
        }
    }

    fn link_failed(&mut self, cx: &mut RouterCx<'_, P, Message>, failure: LinkFailure<P, Message>) {
        cx.upcalls.push(Upcall::Drop(failure.datagram, DropReason::MacRetries));
        let next_hop = failure.next_hop;
        for datagram in failure.waiting {
            cx.upcalls.push(Upcall::Send { next_hop, datagram, delay: Duration::ZERO });
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _cx: &mut RouterCx<'_, P, Message>) {}
}

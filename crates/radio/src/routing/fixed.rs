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

use super::messages::Message;
use super::{LinkFailure, Router, RouterCx, Upcall, next_leg};
use crate::datagram::{Content, Datagram, DropReason, NodeId};
use crate::graph::{Graph, node};
use weir_net::Parcel;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;
    use crate::routing::RouterConfig;
    use crate::routing::harness::TestNet;

    fn chain(hops: u16) -> RouterConfig {
        let positions: Vec<Position> =
            (0..=i64::from(hops)).map(|i| Position::metres(200 * i, 0)).collect();
        RouterConfig::Static(StaticRoutes::shortest(&Graph::in_range(&positions, 250_000)))
    }

    #[test]
    fn parcels_cross_a_chain_of_32_hops_both_ways() {
        let mut net = TestNet::chain(&chain(32), 32);
        let there = net.send(1, 0, 32);
        let back = net.acknowledge(1, 32, 0, 7);
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.delivered, [(there, NodeId(32)), (back, NodeId(0))]);
        assert_eq!(net.path_of(there), (0..32).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_costs_one_parcel_and_no_route() {
        let mut net = TestNet::chain(&chain(4), 4);
        net.cut(2, 3);
        let first = net.send(1, 0, 4);
        let second = net.send(1, 0, 4);
        net.run_for(Duration::from_millis(7));
        net.join(2, 3);
        net.run_for(Duration::from_secs(1));
        assert_eq!(net.dropped, [(first, DropReason::MacRetries)]);
        assert_eq!(net.delivered, [(second, NodeId(4))]);
    }

    #[test]
    fn where_no_path_leads_parcels_are_dropped_at_once() {
        let positions = [Position::metres(0, 0), Position::metres(900, 0)];
        let routes = StaticRoutes::shortest(&Graph::in_range(&positions, 250_000));
        assert_eq!(routes.next_hop(NodeId(0), NodeId(1)), None);
        assert_eq!(routes.next_hop(NodeId(0), NodeId(2)), None);
        let mut net = TestNet::new(&RouterConfig::Static(routes), 2, &[]);
        let lost = net.send(1, 0, 1);
        assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    }
}

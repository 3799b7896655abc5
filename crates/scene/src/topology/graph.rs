//! Any graph, with shortest-path routes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_net::LinkConfig;
use weir_units::Duration;

use super::{Access, Route, Span, Topology, TopologyError};

/// Nodes, one-way links between them, and flows from node to node.
#[derive(Clone, Debug)]
pub struct Graph {
    /// The nodes' names.
    pub nodes: Vec<String>,
    /// The links.
    pub edges: Vec<Edge>,
    /// What joins hosts to their nodes.
    pub access: Access,
    /// Each flow's first and last node.
    pub spans: Vec<Span>,
}

/// A one-way link.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Its name.
    pub name: String,
    /// The node it leaves.
    pub from: usize,
    /// The node it enters.
    pub to: usize,
    /// What it adds to a route's length; with 1 for all, routes have the fewest hops.
    pub cost: u32,
    /// What it is.
    pub config: LinkConfig,
    /// Whether it is a bottleneck to watch.
    pub monitored: bool,
}

impl Graph {
    /// Builds it. Each flow takes the cheapest way there, and the cheapest way back. Of several,
    /// it takes the one found first when nodes are visited by cost, then by number, and their links
    /// in the order given.
    ///
    /// # Errors
    /// If a link or a flow names a node that does not exist, or if no way leads to a flow's end.
    pub fn build(self) -> Result<Topology, TopologyError> {
        let nodes = self.nodes.len();
        for edge in &self.edges {
            if let Some(&node) = [edge.from, edge.to].iter().find(|node| **node >= nodes) {
                return Err(TopologyError::NoSuchNode { link: edge.name.clone(), node, nodes });
            }
        }
        let mut leaving = vec![Vec::new(); nodes];
        for (index, edge) in self.edges.iter().enumerate() {
            leaving[edge.from].push(index);
        }
        let mut routes = Vec::new();
        for (flow, &Span { from, to }) in self.spans.iter().enumerate() {
            if from == to || from.max(to) >= nodes {
                return Err(TopologyError::NoSuchPath { flow, from, to, nodes });
            }
            let way = |from: usize, to: usize| {
                self.shortest_path(&leaving, from, to).ok_or_else(|| TopologyError::Unreachable {
                    flow,
                    from: self.nodes[from].clone(),
                    to: self.nodes[to].clone(),
                })
            };
            routes.push(Route { forward: way(from, to)?, reverse: way(to, from)? });
        }
        let mut topology = Topology::default();
        for edge in self.edges {
            let index = topology.add_link(edge.name, edge.config);
            topology.links[index].monitored = edge.monitored;
        }
        routes.into_iter().for_each(|route| {
            topology.add_route(route, self.access, Duration::ZERO);
        });
        Ok(topology)
    }

    /// Dijkstra's algorithm; the edges from `from` to `to`. `leaving` has those of each node.
    fn shortest_path(&self, leaving: &[Vec<usize>], from: usize, to: usize) -> Option<Vec<usize>> {
        let mut cost = vec![u64::MAX; self.nodes.len()];
        let mut entered_by: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut frontier = BinaryHeap::from([Reverse((0u64, from))]);
        cost[from] = 0;
        while let Some(Reverse((reached, node))) = frontier.pop() {
            if reached > cost[node] {
                continue;
            }
            for &index in &leaving[node] {
                let edge = &self.edges[index];
                let through = reached + u64::from(edge.cost);
                if through < cost[edge.to] {
                    cost[edge.to] = through;
                    entered_by[edge.to] = Some(index);
                    frontier.push(Reverse((through, edge.to)));
                }
            }
        }
        let mut path = Vec::new();
        let mut node = to;
        while node != from {
            let edge = entered_by[node]?;
            path.push(edge);
            node = self.edges[edge].from;
        }
        path.reverse();
        Some(path)
    }
}

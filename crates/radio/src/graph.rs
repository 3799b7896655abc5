//! Who hears whom: the graph of neighbours that positions and a range make.

use std::collections::VecDeque;

use super::datagram::NodeId;
use super::position::Position;

/// Nodes and the links between them, which work both ways.
///
/// ```
/// use weir_radio::{Graph, NodeId, Position};
///
/// let chain: Vec<Position> = (0..4).map(|i| Position::metres(i * 200, 0)).collect();
/// let graph = Graph::in_range(&chain, 250_000);
/// assert_eq!(graph.hops_from(NodeId(0)), [Some(0), Some(1), Some(2), Some(3)]);
/// assert_eq!(graph.neighbours(NodeId(1)), [NodeId(0), NodeId(2)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The neighbours of each node in ascending order.
    neighbours: Vec<Vec<NodeId>>,
}

impl Graph {
    /// A link between any two nodes that are at most `range_mm` apart.
    pub fn in_range(positions: &[Position], range_mm: u64) -> Self {
        let near = |a: usize, b: usize| positions[a].distance_mm(positions[b]) <= range_mm;
        let nodes = 0..positions.len();
        let neighbours = nodes
            .clone()
            .map(|a| nodes.clone().filter(|b| a != *b && near(a, *b)).map(node).collect())
            .collect();
        Self { neighbours }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    /// The nodes that hear `of`; empty for a node that does not exist.
    pub fn neighbours(&self, of: NodeId) -> &[NodeId] {
        self.neighbours.get(usize::from(of.0)).map_or(&[], Vec::as_slice)
    }

    /// How many hops each node is away from `from`; `None` where no path leads.
    pub fn hops_from(&self, from: NodeId) -> Vec<Option<u16>> {
        let mut hops = vec![None; self.len()];
        let Some(start) = hops.get_mut(usize::from(from.0)) else { return hops };
        *start = Some(0);
        let mut queue = VecDeque::from([(from, 0)]);
        while let Some((at, distance)) = queue.pop_front() {
            for next in self.neighbours(at) {
                let entry = &mut hops[usize::from(next.0)];
                if entry.is_none() {
                    *entry = Some(distance + 1);
                    queue.push_back((*next, distance + 1));
                }
            }
        }
        hops
    }

    /// Whether every node reaches every other.
    pub fn is_connected(&self) -> bool {
        self.hops_from(NodeId(0)).iter().all(Option::is_some)
    }
}

/// The identity of the node at `index`; there are never more than a `u16` numbers.
pub(super) fn node(index: usize) -> NodeId {
    NodeId(index as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_a_chain_up_to_exactly_the_range() {
        let positions: Vec<Position> = (0..5).map(|i| Position::metres(i * 250, 0)).collect();
        let graph = Graph::in_range(&positions, 250_000);
        assert_eq!(graph.neighbours(NodeId(2)), [NodeId(1), NodeId(3)]);
        assert_eq!(graph.hops_from(NodeId(0)), (0..5).map(Some).collect::<Vec<_>>());
        assert!(graph.is_connected());
        let broken = Graph::in_range(&positions, 249_999);
        assert!(!broken.is_connected());
        assert_eq!(broken.hops_from(NodeId(0)), [Some(0), None, None, None, None]);
        assert_eq!(broken.neighbours(NodeId(99)), []);
    }
}

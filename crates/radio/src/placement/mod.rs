//! Where nodes stand: the topologies of multihop studies.
//!
//! Chain, cross and grid are those of Holland & Vaidya (MobiCom 1999), of Li, Blake, De Couto, Lee and
//! Morris (MobiCom 2001) and of the router-assisted studies: `h` hops need `h + 1` nodes, and a cross
//! is two chains at right angles that share their middle node. Any spacing between 183 m and 250 m
//! makes the same graph with the usual 250 m of range and 550 m of carrier sense; 200 m is the
//! default. At that spacing the neighbours of a cross's centre are 283 m apart and do not hear
//! each other, so no path cuts the corner.

mod random;
mod read;

pub use random::{Connection, RandomPlacement};
pub use read::ReadError;

use super::datagram::NodeId;
use super::graph::node;
use super::position::Position;

/// Where the nodes stand, and between which of them flows naturally go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The place of node 0, 1, ...
    pub positions: Vec<Position>,
    /// Source and destination of the first flow, the second, ...
    pub ends: Vec<(NodeId, NodeId)>,
}

/// A rectangle of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridShape {
    /// Nodes from west to east.
    pub columns: u16,
    /// Nodes from south to north.
    pub rows: u16,
}

/// A rectangle with a corner in the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// From west to east.
    pub width_mm: u64,
    /// From south to north.
    pub height_mm: u64,
}

/// A placement that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Too few or too many nodes.
    #[error("{nodes} nodes: a placement has 2 to {} nodes", Placement::MAX_NODES)]
    Nodes {
        /// The requested number.
        nodes: usize,
    },
    /// A cross without a middle.
    #[error("hops = {hops}: a cross has an even number of hops, so that its arms share a node")]
    OddCross {
        /// Of each arm pair.
        hops: u16,
    },
    /// A spacing or side beyond what positions are made for.
    #[error("{mm} mm: distances are 1 to {} mm", Placement::LONGEST_MM)]
    Distance {
        /// The requested value.
        mm: u64,
    },
    /// The nodes are too few for the area.
    #[error(
        "no connected placement of {nodes} nodes in {} attempts: take more nodes or a smaller area",
        RandomPlacement::ATTEMPTS
    )]
    NeverConnected {
        /// How many nodes.
        nodes: usize,
    },
}

impl Placement {
    /// The most nodes of a placement.
    pub const MAX_NODES: usize = 1024;
    /// The longest spacing or side: 1000 km.
    pub const LONGEST_MM: u64 = 1_000_000_000;
    /// The usual spacing.
    pub const SPACING_MM: u64 = 200_000;

    /// `hops + 1` nodes in line; the flow goes from end to end.
    pub fn chain(hops: u16, spacing_mm: u64) -> Result<Self, PlacementError> {
        check(usize::from(hops) + 1, spacing_mm)?;
        let positions = (0..=hops).map(|i| at(i, 0, spacing_mm)).collect();
        Ok(Self { positions, ends: vec![(NodeId(0), NodeId(hops))] })
    }

    /// Two chains of `hops` hops at right angles: nodes `0 ..= hops` from west to east, the other
    /// ones from south to north. The first flow goes east, the second one north.
    pub fn cross(hops: u16, spacing_mm: u64) -> Result<Self, PlacementError> {
        if !hops.is_multiple_of(2) {
            return Err(PlacementError::OddCross { hops });
        }
        check(2 * usize::from(hops) + 1, spacing_mm)?;
        let middle = hops / 2;
        let east = (0..=hops).map(|i| at(i, middle, spacing_mm));
        let north = (0..=hops).filter(|i| *i != middle).map(|i| at(middle, i, spacing_mm));
        let positions = east.chain(north).collect();
        let ends = vec![(NodeId(0), NodeId(hops)), (NodeId(hops + 1), NodeId(2 * hops))];
        Ok(Self { positions, ends })
    }

    /// Nodes in rows, counted from the south-west corner eastwards. Flows go east along each row,
    /// then north along each column.
    pub fn grid(shape: GridShape, spacing_mm: u64) -> Result<Self, PlacementError> {
        let GridShape { columns, rows } = shape;
        check(usize::from(columns) * usize::from(rows), spacing_mm)?;
        let positions =
            (0..rows).flat_map(|y| (0..columns).map(move |x| at(x, y, spacing_mm))).collect();
        let number = |x: u16, y: u16| NodeId(y * columns + x);
        let along_rows = (0..rows).map(|y| (number(0, y), number(columns - 1, y)));
        let along_columns = (0..columns).map(|x| (number(x, 0), number(x, rows - 1)));
        let ends = along_rows.chain(along_columns).filter(|(from, to)| from != to).collect();
        Ok(Self { positions, ends })
    }

    /// The nodes at these places; the flow goes from the first to the last.
    pub fn at(positions: Vec<Position>) -> Result<Self, PlacementError> {
        let last = positions.len().wrapping_sub(1);
        check(positions.len(), Self::SPACING_MM)?;
        Ok(Self { positions, ends: vec![(NodeId(0), node(last))] })
    }
}

fn check(nodes: usize, spacing_mm: u64) -> Result<(), PlacementError> {
    if !(2..=Placement::MAX_NODES).contains(&nodes) {
        return Err(PlacementError::Nodes { nodes });
    }
    if !(1..=Placement::LONGEST_MM).contains(&spacing_mm) {
        return Err(PlacementError::Distance { mm: spacing_mm });
    }
    Ok(())
}

fn at(column: u16, row: u16, spacing_mm: u64) -> Position {
    let along = |steps: u16| i64::from(steps) * spacing_mm as i64;
    Position { x_mm: along(column), y_mm: along(row) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Graph;

    const RANGE_MM: u64 = 250_000;

    fn hops(placement: &Placement, flow: usize) -> Option<u16> {
        let (from, to) = placement.ends[flow];
        Graph::in_range(&placement.positions, RANGE_MM).hops_from(from)[usize::from(to.0)]
    }

    #[test]
    fn chains_and_crosses_have_the_hops_that_were_asked_for() {
        for h in [4, 6, 8, 16, 32] {
            let chain = Placement::chain(h, Placement::SPACING_MM).unwrap();
            assert_eq!((chain.positions.len(), hops(&chain, 0)), (usize::from(h) + 1, Some(h)));
            let cross = Placement::cross(h, Placement::SPACING_MM).unwrap();
            assert_eq!(cross.positions.len(), 2 * usize::from(h) + 1);
            assert_eq!((hops(&cross, 0), hops(&cross, 1)), (Some(h), Some(h)));
        }
    }

    #[test]
    fn the_arms_of_a_cross_meet_only_in_the_middle() {
        let cross = Placement::cross(4, Placement::SPACING_MM).unwrap();
        let graph = Graph::in_range(&cross.positions, RANGE_MM);
        let degrees: Vec<usize> = (0..9).map(|i| graph.neighbours(NodeId(i)).len()).collect();
        assert_eq!(degrees, [1, 2, 4, 2, 1, 1, 2, 2, 1]);
    }

    #[test]
    fn a_grid_has_a_flow_for_each_row_and_column() {
        let grid = Placement::grid(GridShape { columns: 4, rows: 3 }, 200_000).unwrap();
        assert_eq!((grid.positions.len(), grid.ends.len()), (12, 7));
        assert_eq!((hops(&grid, 0), hops(&grid, 3)), (Some(3), Some(2)));
        assert_eq!(grid.positions[11], Position::metres(600, 400));
        let line = Placement::grid(GridShape { columns: 5, rows: 1 }, 200_000).unwrap();
        assert_eq!(line.ends, [(NodeId(0), NodeId(4))]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let odd = Placement::cross(5, 200_000).unwrap_err().to_string();
        assert_eq!(
            odd,
            "hops = 5: a cross has an even number of hops, so that its arms share a node"
        );
        let none = Placement::chain(0, 200_000).unwrap_err().to_string();
        assert_eq!(none, "1 nodes: a placement has 2 to 1024 nodes");
        assert!(Placement::chain(2000, 200_000).is_err());
        assert!(Placement::grid(GridShape { columns: 0, rows: 3 }, 200_000).is_err());
        let flat = Placement::chain(3, 0).unwrap_err().to_string();
        assert_eq!(flat, "0 mm: distances are 1 to 1000000000 mm");
        assert!(Placement::at(Vec::new()).is_err());
    }
}

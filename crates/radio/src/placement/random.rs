//! Nodes at random places.

use weir_units::Rng;

use super::{Area, Placement, PlacementError, check};
use crate::graph::Graph;
use crate::position::Position;

/// Nodes that stand anywhere in an area with equal probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomPlacement {
    /// How many.
    pub nodes: u16,
    /// Where.
    pub area: Area,
    /// Whether all must reach each other.
    pub connection: Connection,
}

/// What a random placement has to fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Nothing: the network may fall apart.
    Any,
    /// Every node reaches every other over links of at most this length: placements are drawn until
    /// one does.
    Within(u64),
}

impl RandomPlacement {
    /// How often a connected placement is tried.
    pub const ATTEMPTS: u32 = 1_000;

    /// Draws the places; the flow goes from the first node to the last.
    pub fn draw(&self, rng: &mut Rng) -> Result<Placement, PlacementError> {
        let nodes = usize::from(self.nodes);
        check(nodes, self.area.width_mm)?;
        check(nodes, self.area.height_mm)?;
        for _ in 0..Self::ATTEMPTS {
            let positions: Vec<Position> = (0..nodes).map(|_| self.area.draw(rng)).collect();
            let fits = match self.connection {
                Connection::Any => true,
                Connection::Within(range_mm) => {
                    Graph::in_range(&positions, range_mm).is_connected()
                }
            };
            if fits {
                return Placement::at(positions);
            }
        }
        Err(PlacementError::NeverConnected { nodes })
    }
}

impl Area {
    /// A place in it.
    pub fn draw(&self, rng: &mut Rng) -> Position {
        Position {
            x_mm: rng.below(self.width_mm + 1) as i64,
            y_mm: rng.below(self.height_mm + 1) as i64,
        }
    }

    /// Whether the place lies in it.
    pub fn contains(&self, at: Position) -> bool {
        (0..=self.width_mm as i64).contains(&at.x_mm)
            && (0..=self.height_mm as i64).contains(&at.y_mm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::stream;

    const AREA: Area = Area { width_mm: 1_500_000, height_mm: 300_000 };

    #[test]
    fn connected_placements_are_connected_and_follow_the_seed() {
        let random =
            RandomPlacement { nodes: 30, area: AREA, connection: Connection::Within(250_000) };
        let draw = |seed| random.draw(&mut stream(seed, "placement")).unwrap();
        for seed in 0..20 {
            let placement = draw(seed);
            assert!(Graph::in_range(&placement.positions, 250_000).is_connected());
            assert!(placement.positions.iter().all(|at| AREA.contains(*at)));
        }
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn too_few_nodes_for_the_area_are_refused() {
        let random = RandomPlacement { nodes: 3, area: AREA, connection: Connection::Within(1) };
        let error = random.draw(&mut stream(1, "placement")).unwrap_err().to_string();
        assert_eq!(
            error,
            "no connected placement of 3 nodes in 1000 attempts: take more nodes or a smaller area"
        );
    }
}

//! Places from a file: one `x, y` in metres per line, node after node.

use super::{Placement, PlacementError};
use crate::decimal::scaled;
use crate::position::Position;

/// A file of places that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A line is not a place.
    #[error("line {line}: not a place: write x, y in metres, one node per line")]
    NotAPlace {
        /// Counted from 1.
        line: usize,
    },
    /// A place is further out than [`Placement::LONGEST_MM`].
    #[error("line {line}: places lie within {} mm of the origin", Placement::LONGEST_MM)]
    TooFar {
        /// Counted from 1.
        line: usize,
    },
    /// The number of nodes does not fit.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}

impl Placement {
    /// Reads `x, y` in metres, one node per line; `#` begins a comment. The flow goes from the first
    /// node to the last.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        let mut positions = Vec::new();
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let content = text.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            if positions.len() == Self::MAX_NODES {
                return Err(PlacementError::Nodes { nodes: positions.len() + 1 }.into());
            }
            let position = place(content).ok_or(ReadError::NotAPlace { line })?;
            if position.x_mm.unsigned_abs().max(position.y_mm.unsigned_abs()) > Self::LONGEST_MM {
                return Err(ReadError::TooFar { line });
            }
            positions.push(position);
        }
        Ok(Self::at(positions)?)
    }
}

fn place(text: &str) -> Option<Position> {
    let (x, y) = text.split_once(',')?;
    Some(Position { x_mm: scaled(x.trim(), 3)?, y_mm: scaled(y.trim(), 3)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;

    #[test]
    fn places_are_read_in_metres() {
        let placement = Placement::parse("# two nodes\n0, 0\n\n200.5, -3 # the second\n").unwrap();
        assert_eq!(placement.positions[1], Position { x_mm: 200_500, y_mm: -3_000 });
        assert_eq!(placement.ends, [(NodeId(0), NodeId(1))]);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let message = |text: &str| Placement::parse(text).unwrap_err().to_string();
        assert_eq!(
            message("0,0\n1;2\n"),
            "line 2: not a place: write x, y in metres, one node per line"
        );
        assert_eq!(
            message("0,0\n9999999, 0"),
            "line 2: places lie within 1000000000 mm of the origin"
        );
        assert_eq!(message("0,0\n"), "1 nodes: a placement has 2 to 1024 nodes");
    }
}

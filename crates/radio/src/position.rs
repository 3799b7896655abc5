//! Where a node is.

use std::fmt;

/// A place in the plane, in whole millimetres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// To the east of the origin.
    pub x_mm: i64,
    /// To the north of the origin.
    pub y_mm: i64,
}

impl Position {
    /// The place this many whole metres east and north of the origin.
    pub const fn metres(x: i64, y: i64) -> Self {
        Self { x_mm: x * 1_000, y_mm: y * 1_000 }
    }

    /// The distance to `other`, rounded down to millimetres.
    pub const fn distance_mm(self, other: Self) -> u64 {
        let x = self.x_mm.abs_diff(other.x_mm) as u128;
        let y = self.y_mm.abs_diff(other.y_mm) as u128;
        (x * x + y * y).isqrt() as u64
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({} mm, {} mm)", self.x_mm, self.y_mm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_euclidean_and_round_down() {
        let origin = Position::default();
        assert_eq!(origin.distance_mm(Position::metres(300, -400)), 500_000);
        assert_eq!(origin.distance_mm(Position { x_mm: 1, y_mm: 1 }), 1);
        let far = Position { x_mm: i64::MIN, y_mm: 0 };
        assert_eq!(far.distance_mm(Position { x_mm: i64::MAX, y_mm: 0 }), u64::MAX);
    }
}

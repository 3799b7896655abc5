//! How nodes move: a list of straight legs for each, drawn or read before the run.
//!
//! Positions are a function of time alone, so any moment may be queried in any order. State is
//! integers: a position on a leg is interpolated in whole millimetres.

mod csv;
mod setdest;
mod waypoint;

pub use waypoint::{RandomWaypoint, Speeds, WaypointError};

use weir_units::{Duration, Instant};

use super::datagram::NodeId;
use super::placement::Placement;
use super::position::Position;

/// Where every node is at every time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mobility {
    /// The legs of each node in the order of their times, at least one.
    nodes: Vec<Vec<Leg>>,
}

/// A straight way at constant speed; the node then stays until its next leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leg {
    start: Instant,
    from: Position,
    to: Position,
    arrival: Instant,
}

/// A trace of movements that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceFileError {
    /// A line is not what the format has.
    #[error("line {line}: not understood: {allowed}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What may stand there.
        allowed: &'static str,
    },
    /// A node number beyond the most nodes.
    #[error("line {line}: node {node}: nodes are numbered 0 to {}", Placement::MAX_NODES - 1)]
    Node {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        node: u64,
    },
    /// A time or place too far away.
    #[error(
        "line {line}: places lie within {} mm of the origin, times within {} s, speeds below {} m/s",
        Placement::LONGEST_MM,
        Mobility::LONGEST_SECS,
        Mobility::LONGEST_SECS
    )]
    TooFar {
        /// Counted from 1.
        line: usize,
    },
    /// A node's times do not increase.
    #[error("line {line}: the times of node {node} must increase")]
    Disorder {
        /// Counted from 1.
        line: usize,
        /// Whose.
        node: u16,
    },
    /// Nodes are numbered without a gap.
    #[error("node {node} has no place, but a node with a higher number has")]
    Missing {
        /// The lowest such node.
        node: u16,
    },
    /// There is no node.
    #[error("there is no node in it")]
    Empty,
    /// More movements than the limit.
    #[error("more than {} movements", Mobility::MOST_LEGS)]
    TooLong,
}

impl Mobility {
    /// The most movements of all nodes together.
    pub const MOST_LEGS: usize = 1_000_000;
    /// The latest time in seconds, and the limit of speeds in metres per second.
    pub const LONGEST_SECS: u64 = 1_000_000;

    /// No node moves.
    pub fn fixed(positions: &[Position]) -> Self {
        Self { nodes: positions.iter().map(|at| vec![Leg::rest(Instant::ZERO, *at)]).collect() }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node ever moves.
    pub fn is_fixed(&self) -> bool {
        self.nodes.iter().flatten().all(|leg| leg.from == leg.to)
    }

    /// Where `node` is at `now`; a node that does not exist is at the origin.
    pub fn position(&self, node: NodeId, now: Instant) -> Position {
        let Some(legs) = self.nodes.get(usize::from(node.0)) else { return Position::default() };
        let next = legs.partition_point(|leg| leg.start <= now);
        match next.checked_sub(1) {
            Some(current) => legs[current].at(now),
            None => legs.first().map_or_else(Position::default, |leg| leg.from),
        }
    }

    /// Where all nodes are at `now`.
    pub fn positions(&self, now: Instant) -> Vec<Position> {
        (0..self.nodes.len()).map(|i| self.position(NodeId(i as u16), now)).collect()
    }
}

impl Leg {
    /// A node that stays at `at`.
    fn rest(start: Instant, at: Position) -> Self {
        Self { start, from: at, to: at, arrival: start }
    }

    /// From one place to another at `speed` micrometres per second, which is not zero.
    fn at_speed(start: Instant, from: Position, to: Position, speed: u64) -> Self {
        let nanos = u128::from(micrometres(from, to)) * 1_000_000_000 / u128::from(speed.max(1));
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        Self { start, from, to, arrival: start.saturating_add(time) }
    }

    fn at(&self, now: Instant) -> Position {
        if now >= self.arrival {
            return self.to;
        }
        let done = i128::from(now.saturating_since(self.start).as_nanos());
        let whole = i128::from(self.arrival.saturating_since(self.start).as_nanos());
        let along =
            |from: i64, to: i64| from + ((i128::from(to) - i128::from(from)) * done / whole) as i64;
        Position {
            x_mm: along(self.from.x_mm, self.to.x_mm),
            y_mm: along(self.from.y_mm, self.to.y_mm),
        }
    }
}

/// The distance in micrometres.
fn micrometres(a: Position, b: Position) -> u64 {
    let x = u128::from(a.x_mm.abs_diff(b.x_mm));
    let y = u128::from(a.y_mm.abs_diff(b.y_mm));
    ((x * x + y * y) * 1_000_000).isqrt() as u64
}

fn is_too_far(at: Position) -> bool {
    at.x_mm.unsigned_abs().max(at.y_mm.unsigned_abs()) > Placement::LONGEST_MM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_is_walked_at_constant_speed_and_ends() {
        let start = Instant::ZERO + Duration::from_secs(10);
        let to = Position::metres(30, 40);
        let leg = Leg::at_speed(start, Position::default(), to, 5_000_000);
        assert_eq!(leg.arrival, start + Duration::from_secs(10));
        let mobility = Mobility { nodes: vec![vec![leg]] };
        let at = |secs| mobility.position(NodeId(0), Instant::ZERO + Duration::from_secs(secs));
        assert_eq!(at(0), Position::default());
        assert_eq!(at(15), Position::metres(15, 20));
        assert_eq!(at(99), to);
        assert!(!mobility.is_fixed());
        assert_eq!(mobility.position(NodeId(7), start), Position::default());
    }

    #[test]
    fn fixed_nodes_stay() {
        let places = [Position::metres(1, 2), Position::metres(-3, 4)];
        let mobility = Mobility::fixed(&places);
        assert!(mobility.is_fixed());
        assert_eq!(mobility.positions(Instant::MAX), places);
    }
}

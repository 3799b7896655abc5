//! Movements as a table: `t, node, x, y` in seconds and metres, one sample per line.
//!
//! Between samples a node moves in a straight line; before its first and after its last one it
//! stays. The times of each node increase; nodes may come in any order.

use weir_units::Instant;

use super::{Leg, Mobility, TraceFileError, is_too_far};
use crate::decimal::scaled;
use crate::placement::Placement;
use crate::position::Position;

impl Mobility {
    /// Reads a table of samples. A first line that names the columns and lines with `#` are skipped.
    pub fn parse_csv(text: &str) -> Result<Self, TraceFileError> {
        let mut nodes: Vec<Vec<(Instant, Position)>> = Vec::new();
        let mut samples = 0;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let content = text.trim();
            if content.is_empty() || content.starts_with('#') || index == 0 && is_header(content) {
                continue;
            }
            samples += 1;
            if samples > Self::MOST_LEGS {
                return Err(TraceFileError::TooLong);
            }
            let (at, number, position) =
                sample(content).ok_or(TraceFileError::Line { line, allowed: ALLOWED })?;
            let node = usize::try_from(number).unwrap_or(usize::MAX);
            if node >= Placement::MAX_NODES {
                return Err(TraceFileError::Node { line, node: number });
            }
            if at.as_nanos() > Self::LONGEST_SECS * 1_000_000_000 || is_too_far(position) {
                return Err(TraceFileError::TooFar { line });
            }
            if nodes.len() <= node {
                nodes.resize(node + 1, Vec::new());
            }
            if nodes[node].last().is_some_and(|(before, _)| *before >= at) {
                return Err(TraceFileError::Disorder { line, node: node as u16 });
            }
            nodes[node].push((at, position));
        }
        if nodes.is_empty() {
            return Err(TraceFileError::Empty);
        }
        if let Some(missing) = nodes.iter().position(Vec::is_empty) {
            return Err(TraceFileError::Missing { node: missing as u16 });
        }
        Ok(Self { nodes: nodes.iter().map(|samples| legs(samples)).collect() })
    }
}

fn legs(samples: &[(Instant, Position)]) -> Vec<Leg> {
    let moves = samples.windows(2).map(|pair| {
        let [(start, from), (arrival, to)] = [pair[0], pair[1]];
        Leg { start, from, to, arrival }
    });
    let rest = samples.last().map(|(at, position)| Leg::rest(*at, *position));
    moves.chain(rest).collect()
}

fn sample(text: &str) -> Option<(Instant, u64, Position)> {
    let mut fields = text.split(',').map(str::trim);
    let mut next = || fields.next();
    let nanos = u64::try_from(scaled(next()?, 9)?).ok()?;
    let node = next()?.parse().ok()?;
    let position = Position { x_mm: scaled(next()?, 3)?, y_mm: scaled(next()?, 3)? };
    next().is_none().then_some((Instant::from_nanos(nanos), node, position))
}

fn is_header(text: &str) -> bool {
    text.split(',').map(str::trim).eq(["t", "node", "x", "y"])
}

const ALLOWED: &str = "write t, node, x, y: seconds, a node's number, metres";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;
    use weir_units::Duration;

    #[test]
    fn samples_are_joined_by_straight_lines() {
        let text = "t,node,x,y\n0,0,0,0\n# a comment\n1.5,1,10,10\n10,0,100,-50\n";
        let mobility = Mobility::parse_csv(text).unwrap();
        let at =
            |node, secs| mobility.position(NodeId(node), Instant::ZERO + Duration::from_secs(secs));
        assert_eq!(mobility.nodes(), 2);
        assert_eq!(at(0, 4), Position::metres(40, -20));
        assert_eq!(at(0, 40), Position::metres(100, -50));
        assert_eq!((at(1, 0), at(1, 9)), (Position::metres(10, 10), Position::metres(10, 10)));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let message = |text: &str| Mobility::parse_csv(text).unwrap_err().to_string();
        assert_eq!(
            message("0,0,0,0\n1,0,0\n"),
            "line 2: not understood: write t, node, x, y: seconds, a node's number, metres"
        );
        assert_eq!(message("1,0,0,0\n1,0,5,5"), "line 2: the times of node 0 must increase");
        assert_eq!(message("1,2000,0,0"), "line 1: node 2000: nodes are numbered 0 to 1023");
        assert_eq!(message("1,1,0,0"), "node 0 has no place, but a node with a higher number has");
        assert_eq!(message("t,node,x,y\n"), "there is no node in it");
        assert!(message("9999999,0,0,0").starts_with("line 1: places lie within"));
    }
}

//! Movements as ns-2's generator `setdest` writes them:
//!
//! ```text
//! $node_(0) set X_ 83.36
//! $node_(0) set Y_ 239.43
//! $ns_ at 50.0 "$node_(0) setdest 369.46 170.51 3.37"
//! ```
//!
//! At the time named a node sets out from wherever it is for a place in metres, at a speed in metres
//! per second; speed zero means that it stops. Heights (`Z_`), what concerns the god object and
//! comments are skipped.

use weir_units::Instant;

use super::{Leg, Mobility, TraceFileError, is_too_far};
use crate::decimal::scaled;
use crate::placement::Placement;
use crate::position::Position;

impl Mobility {
    /// Reads a file of ns-2's `setdest`.
    pub fn parse_setdest(text: &str) -> Result<Self, TraceFileError> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut moves = 0;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let command = command(text).ok_or(TraceFileError::Line { line, allowed: ALLOWED })?;
            let Some((number, command)) = command else { continue };
            let node = usize::try_from(number).unwrap_or(usize::MAX);
            if node >= Placement::MAX_NODES {
                return Err(TraceFileError::Node { line, node: number });
            }
            if command.is_too_far() {
                return Err(TraceFileError::TooFar { line });
            }
            moves += 1;
            if moves > Self::MOST_LEGS {
                return Err(TraceFileError::TooLong);
            }
            if nodes.len() <= node {
                nodes.resize(node + 1, Node::default());
            }
            nodes[node].take(command);
        }
        if nodes.is_empty() {
            return Err(TraceFileError::Empty);
        }
        let legs = |(number, node): (usize, Node)| {
            node.legs().ok_or(TraceFileError::Missing { node: number as u16 })
        };
        Ok(Self { nodes: nodes.into_iter().enumerate().map(legs).collect::<Result<_, _>>()? })
    }
}

/// What a file says of a node.
#[derive(Clone, Debug, Default)]
struct Node {
    x_mm: Option<i64>,
    y_mm: Option<i64>,
    moves: Vec<Move>,
}

#[derive(Clone, Copy, Debug)]
enum Command {
    X(i64),
    Y(i64),
    Move(Move),
}

/// Times in nanoseconds, speeds in micrometres per second.
#[derive(Clone, Copy, Debug)]
struct Move {
    at: Instant,
    to: Position,
    speed: u64,
}

impl Node {
    fn take(&mut self, command: Command) {
        match command {
            Command::X(x_mm) => self.x_mm = Some(x_mm),
            Command::Y(y_mm) => self.y_mm = Some(y_mm),
            Command::Move(it) => self.moves.push(it),
        }
    }

    /// Its legs; `None` if its start is missing.
    fn legs(mut self) -> Option<Vec<Leg>> {
        let start = Position { x_mm: self.x_mm?, y_mm: self.y_mm? };
        let mut legs = vec![Leg::rest(Instant::ZERO, start)];
        self.moves.sort_by_key(|it| it.at);
        for Move { at, to, speed } in self.moves {
            let here = legs.last().map_or(start, |leg| leg.at(at));
            let leg =
                if speed == 0 { Leg::rest(at, here) } else { Leg::at_speed(at, here, to, speed) };
            legs.push(leg);
        }
        Some(legs)
    }
}

impl Command {
    fn is_too_far(self) -> bool {
        match self {
            Self::X(mm) | Self::Y(mm) => mm.unsigned_abs() > Placement::LONGEST_MM,
            Self::Move(it) => {
                is_too_far(it.to)
                    || it.at.as_nanos() > Mobility::LONGEST_SECS * 1_000_000_000
                    || it.speed > Mobility::LONGEST_SECS * 1_000_000
            }
        }
    }
}

/// The node and command of a line; `Some(None)` if there is none on it, `None` for a mistake.
#[expect(clippy::option_option, reason = "a line may be skipped, or wrong")]
fn command(line: &str) -> Option<Option<(u64, Command)>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') || line.starts_with("$god_ ") {
        return Some(None);
    }
    if let Some(rest) = line.strip_prefix("$ns_ at ") {
        let (time, quoted) = rest.trim().split_once(char::is_whitespace)?;
        let quoted = quoted.trim().strip_prefix('"')?.strip_suffix('"')?.trim();
        if quoted.starts_with("$god_ ") {
            return Some(None);
        }
        let (node, words) = node(quoted)?;
        let [verb, x, y, speed] = words[..] else { return None };
        let at = Instant::from_nanos(unsigned(time, 9)?);
        let to = Position { x_mm: scaled(x, 3)?, y_mm: scaled(y, 3)? };
        let command = Command::Move(Move { at, to, speed: unsigned(speed, 6)? });
        return (verb == "setdest").then_some(Some((node, command)));
    }
    let (node, words) = node(line)?;
    let ["set", axis, value] = words[..] else { return None };
    let value = scaled(value, 3)?;
    match axis {
        "X_" => Some(Some((node, Command::X(value)))),
        "Y_" => Some(Some((node, Command::Y(value)))),
        "Z_" => Some(None),
        _ => None,
    }
}

/// The number in `$node_(3) ...` and the words after it.
fn node(text: &str) -> Option<(u64, Vec<&str>)> {
    let (number, rest) = text.strip_prefix("$node_(")?.split_once(')')?;
    Some((number.parse().ok()?, rest.split_whitespace().collect()))
}

fn unsigned(text: &str, digits: usize) -> Option<u64> {
    u64::try_from(scaled(text, digits)?).ok()
}

const ALLOWED: &str = "write '$node_(N) set X_ METRES', the same with Y_, or \
    '$ns_ at SECONDS \"$node_(N) setdest X Y SPEED\"'";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;
    use weir_units::Duration;

    const FILE: &str = r#"
# nodes: 2, pause: 0.00, max speed: 20.00, max x: 500.00, max y: 300.00
$node_(0) set X_ 100.000000000000
$node_(0) set Y_ 50.000000000000
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 0.5
$node_(1) set Y_ 0
$god_ set-dist 0 1 1
$ns_ at 10.000000000000 "$node_(0) setdest 200.000000000000 50.000000000000 5.000000000000"
$ns_ at 12.5 "$god_ set-dist 0 1 2"
$ns_ at 20.0 "$node_(0) setdest 150.0 0.0 0.0"
$ns_ at 30.0 "$node_(0) setdest 150.0 0.0 10.0"
"#;

    #[test]
    fn nodes_set_out_from_where_they_are() {
        let mobility = Mobility::parse_setdest(FILE).unwrap();
        let at = |secs| mobility.position(NodeId(0), Instant::ZERO + Duration::from_secs(secs));
        assert_eq!(at(5), Position::metres(100, 50));
        assert_eq!(at(15), Position::metres(125, 50));
        assert_eq!(at(29), Position::metres(150, 50), "stopped on the way");
        assert_eq!(at(32), Position::metres(150, 30));
        assert_eq!(at(99), Position::metres(150, 0));
        assert_eq!(mobility.position(NodeId(1), Instant::MAX), Position { x_mm: 500, y_mm: 0 });
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let message = |text: &str| Mobility::parse_setdest(text).unwrap_err().to_string();
        let wrong = message("\n$node_(0) set W_ 1.0");
        assert!(wrong.starts_with("line 2: not understood: write '$node_"));
        assert_eq!(
            message("$node_(0) set X_ 1"),
            "node 0 has no place, but a node with a higher number has"
        );
        assert_eq!(
            message("$node_(5000) set X_ 1"),
            "line 1: node 5000: nodes are numbered 0 to 1023"
        );
        for text in [
            "$ns_ at -1 \"$node_(0) setdest 1 1 1\"",
            "$ns_ at 1 \"$node_(0) setdest 1 1\"",
            "$ns_ at 1 $node_(0) setdest 1 1 1",
            "$ns_ at 1 \"$node_(0) walk 1 1 1\"",
            "puts hello",
        ] {
            assert!(message(text).contains("not understood"), "{text}");
        }
    }
}

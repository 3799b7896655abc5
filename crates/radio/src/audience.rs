//! Who hears whom.
//!
//! A node's hearers are computed when it sends and anything has moved since. What it had sent before
//! has then arrived everywhere: signals take less than SIFS to the farthest hearer.

use weir_units::Duration;

use super::position::Position;
use super::propagation::Propagation;

/// All positions, and who hears each of them.
#[derive(Clone, Debug)]
pub(super) struct Neighbourhoods {
    propagation: Propagation,
    positions: Vec<Position>,
    /// Goes up with each move.
    version: u64,
    audiences: Vec<Neighbourhood>,
}

/// Those who hear one node, the nearest first.
#[derive(Clone, Debug, Default)]
struct Neighbourhood {
    version: u64,
    hearers: Vec<Hearer>,
    /// Those at the same distance, as ranges of `hearers`.
    groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hearer {
    pub(super) node: u16,
    pub(super) readable: bool,
    pub(super) power: u64,
}

/// Hearers whom a signal reaches at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) delay: Duration,
    pub(super) first: u16,
    pub(super) end: u16,
}

impl Neighbourhoods {
    pub(super) fn new(propagation: Propagation, positions: &[Position]) -> Self {
        let audiences = vec![Neighbourhood::default(); positions.len()];
        Self { propagation, positions: positions.to_vec(), version: 1, audiences }
    }

    pub(super) fn set_position(&mut self, node: usize, position: Position) {
        if let Some(place) = self.positions.get_mut(node)
            && *place != position
        {
            *place = position;
            self.version += 1;
        }
    }

    pub(super) fn position(&self, node: usize) -> Option<Position> {
        self.positions.get(node).copied()
    }

    /// How many groups hear `node` from here.
    pub(super) fn refresh(&mut self, node: usize) -> u16 {
        if self.audiences[node].version != self.version {
            self.compute(node);
        }
        self.audiences[node].groups.len() as u16
    }

    pub(super) fn group(&self, node: usize, group: u16) -> Group {
        self.audiences[node].groups[usize::from(group)]
    }

    pub(super) fn hearer(&self, node: usize, index: u16) -> Hearer {
        self.audiences[node].hearers[usize::from(index)]
    }

    fn compute(&mut self, node: usize) {
        let here = self.positions[node];
        let mut found = Vec::new();
        for (other, there) in self.positions.iter().enumerate().filter(|(other, _)| *other != node)
        {
            if let Some(arrival) = self.propagation.arrival(here.distance_mm(*there)) {
                let (power, readable) = (arrival.power, arrival.readable);
                found.push((arrival.delay, Hearer { node: other as u16, readable, power }));
            }
        }
        found.sort_by_key(|(delay, hearer)| (*delay, hearer.node));
        let audience = &mut self.audiences[node];
        audience.version = self.version;
        audience.hearers.clear();
        audience.groups.clear();
        for (delay, hearer) in found {
            let first = audience.hearers.len() as u16;
            audience.hearers.push(hearer);
            match audience.groups.last_mut() {
                Some(group) if group.delay == delay => group.end = first + 1,
                _ => audience.groups.push(Group { delay, first, end: first + 1 }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_in_a_chain_is_read_one_hop_and_sensed_two_hops_away() {
        let chain: Vec<_> = (0..8).map(|i| Position::metres(200 * i, 0)).collect();
        let mut audiences = Neighbourhoods::new(Propagation::TwoRayGround, &chain);
        assert_eq!(audiences.refresh(4), 2);
        let heard = |audiences: &Neighbourhoods, group| {
            let Group { first, end, .. } = audiences.group(4, group);
            let hearers = (first..end).map(|i| audiences.hearer(4, i));
            hearers.map(|hearer| (hearer.node, hearer.readable)).collect::<Vec<_>>()
        };
        assert_eq!(heard(&audiences, 0), [(3, true), (5, true)]);
        assert_eq!(heard(&audiences, 1), [(2, false), (6, false)]);
        assert_eq!(audiences.group(4, 0).delay, Duration::from_nanos(667));
        audiences.set_position(3, Position::metres(100_000, 0));
        assert_eq!(heard(&audiences, 0).len(), 2, "until it is asked again");
        audiences.refresh(4);
        assert_eq!(heard(&audiences, 0), [(5, true)]);
    }

    /// Hops i and i + 3 of a chain: the wanted frame is sixteen times as strong.
    #[test]
    fn one_hop_is_12_db_above_two() {
        let chain: Vec<_> = (0..3).map(|i| Position::metres(200 * i, 0)).collect();
        let mut audiences = Neighbourhoods::new(Propagation::TwoRayGround, &chain);
        audiences.refresh(0);
        let ratio = audiences.hearer(0, 0).power as f64 / audiences.hearer(0, 1).power as f64;
        assert!((ratio - 16.0).abs() < 0.001, "{ratio}");
    }
}

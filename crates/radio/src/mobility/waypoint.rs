//! Random waypoint: walk straight to a random place at a random speed, pause, repeat.
//!
//! Started at random places, the model slows down for a long time: slow legs last longer, so ever more
//! nodes are on slow ones; with a least speed of zero the mean speed goes to zero (Yoon, Liu & Noble,
//! INFOCOM 2003). Hence a least speed above zero, and a start in the steady state (Navidi & Camp,
//! IEEE Transactions on Mobile Computing 3(1), 2004; Le Boudec & Vojnović, INFOCOM 2005):
//!
//! ```text
//! P(paused)  = pause / (pause + E[length] E[1/v])      E[1/v] = ln(v1/v0) / (v1 - v0)
//! paused     : anywhere, with a uniform rest of the pause
//! moving     : ends of the leg with probability in proportion to its length, the node anywhere on it,
//!              speed v0 (v1/v0)^U  (density in proportion to 1/v)
//! ```
//!
//! `E[length]` in a rectangle is Ghosh's mean distance (Bulletin of the Calcutta Mathematical Society
//! 43, 1951). Floats serve only to draw; what is drawn is integers. The same random numbers with speeds that are
//! a multiple gives the same paths, walked faster, as Holland & Vaidya (MobiCom 1999) replay them.

use weir_units::{Duration, Instant, Rng};

use super::{Leg, Mobility, micrometres};
use crate::datagram::NodeId;
use crate::placement::{Area, Placement};
use crate::position::Position;

/// Parameters of random waypoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomWaypoint {
    /// Where nodes walk.
    pub area: Area,
    /// How fast.
    pub speeds: Speeds,
    /// How long they rest at each place.
    pub pause: Duration,
}

/// Speeds in millimetres per second, uniform for each leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speeds {
    /// The slowest, above zero.
    pub slowest: u64,
    /// The fastest.
    pub fastest: u64,
}

/// Parameters that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaypointError {
    /// Speeds out of order, or standing still.
    #[error(
        "speeds of {slowest} to {fastest} mm/s: the slowest is at least 1, the fastest not below it, \
         at most {} m/s",
        Mobility::LONGEST_SECS
    )]
    Speeds {
        /// The slowest.
        slowest: u64,
        /// The fastest.
        fastest: u64,
    },
    /// An empty area, or one that is too large.
    #[error("sides of {width} and {height} mm: they are 1 to {} mm", Placement::LONGEST_MM)]
    Area {
        /// From west to east.
        width: u64,
        /// From south to north.
        height: u64,
    },
    /// Too few or too many nodes.
    #[error("{nodes} nodes: there are 1 to {}", Placement::MAX_NODES)]
    Nodes {
        /// The requested number.
        nodes: u16,
    },
    /// So long and so fast that the legs would fill memory.
    #[error("more than {} movements: simulate a shorter time or slower nodes", Mobility::MOST_LEGS)]
    TooLong,
}

impl Speeds {
    /// Within a tenth of `mean`, as Holland & Vaidya have it.
    pub const fn around(mean: u64) -> Self {
        Self { slowest: mean - mean / 10, fastest: mean + mean / 10 }
    }
}

impl RandomWaypoint {
    /// Draws the ways of `nodes` nodes until `until`; `rng` gives a stream for each node.
    pub fn draw(
        &self,
        nodes: u16,
        until: Instant,
        mut rng: impl FnMut(NodeId) -> Rng,
    ) -> Result<Mobility, WaypointError> {
        self.check(nodes)?;
        let mut left = Mobility::MOST_LEGS;
        let ways = (0..nodes).map(|node| self.way(until, &mut rng(NodeId(node)), &mut left));
        Ok(Mobility { nodes: ways.collect::<Result<_, _>>()? })
    }

    fn check(&self, nodes: u16) -> Result<(), WaypointError> {
        let Speeds { slowest, fastest } = self.speeds;
        if slowest == 0 || fastest < slowest || fastest > Mobility::LONGEST_SECS * 1_000 {
            return Err(WaypointError::Speeds { slowest, fastest });
        }
        let Area { width_mm: width, height_mm: height } = self.area;
        let sides = 1..=Placement::LONGEST_MM;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(WaypointError::Area { width, height });
        }
        if !(1..=Placement::MAX_NODES).contains(&usize::from(nodes)) {
            return Err(WaypointError::Nodes { nodes });
        }
        Ok(())
    }

    fn way(
        &self,
        until: Instant,
        rng: &mut Rng,
        left: &mut usize,
    ) -> Result<Vec<Leg>, WaypointError> {
        let (first, mut start) = self.begin(rng);
        let mut here = first.to;
        let mut legs = vec![first];
        while start < until {
            *left = left.checked_sub(1).ok_or(WaypointError::TooLong)?;
            let to = self.area.draw(rng);
            let leg = Leg::at_speed(start, here, to, self.speed(rng));
            // A leg of no length and no pause would go on for ever.
            start = leg.arrival.max(start + SHORTEST).saturating_add(self.pause);
            here = to;
            legs.push(leg);
        }
        Ok(legs)
    }

    /// What a node does at the beginning, and when its next leg starts.
    fn begin(&self, rng: &mut Rng) -> (Leg, Instant) {
        let pause = self.pause.as_secs_f64();
        let walk = self.area.mean_distance_mm() * self.speeds.mean_inverse();
        if rng.unit_f64() * (pause + walk) < pause {
            let rest = rng.duration_up_to(self.pause);
            return (Leg::rest(Instant::ZERO, self.area.draw(rng)), Instant::ZERO + rest);
        }
        let (from, to) = self.long_leg(rng);
        let speed = self.speeds.draw_inverse(rng);
        let whole = Leg::at_speed(Instant::ZERO, from, to, speed);
        let gone = rng.duration_up_to(whole.arrival.saturating_since(Instant::ZERO));
        let leg = Leg::at_speed(Instant::ZERO, whole.at(Instant::ZERO + gone), to, speed);
        (leg, leg.arrival.max(Instant::ZERO + SHORTEST).saturating_add(self.pause))
    }

    /// The ends of a leg, with probability in proportion to its length.
    fn long_leg(&self, rng: &mut Rng) -> (Position, Position) {
        let far = Position { x_mm: self.area.width_mm as i64, y_mm: self.area.height_mm as i64 };
        let diagonal = micrometres(Position::default(), far);
        loop {
            let (from, to) = (self.area.draw(rng), self.area.draw(rng));
            if rng.below(diagonal) < micrometres(from, to) {
                return (from, to);
            }
        }
    }

    /// The speed of a leg in micrometres per second.
    fn speed(&self, rng: &mut Rng) -> u64 {
        let Speeds { slowest, fastest } = self.speeds;
        1_000 * slowest + rng.below(1_000 * (fastest - slowest) + 1)
    }
}

impl Speeds {
    /// `E[1/v]` in seconds per millimetre.
    fn mean_inverse(self) -> f64 {
        let (v0, v1) = (self.slowest as f64, self.fastest as f64);
        if v0 == v1 { 1.0 / v0 } else { libm::log(v1 / v0) / (v1 - v0) }
    }

    /// A speed in micrometres per second with density in proportion to `1/v`.
    fn draw_inverse(self, rng: &mut Rng) -> u64 {
        let (v0, v1) = (self.slowest as f64, self.fastest as f64);
        libm::round(1e3 * v0 * libm::pow(v1 / v0, rng.unit_f64())) as u64
    }
}

impl Area {
    /// The mean distance of two random places in it (Ghosh 1951).
    fn mean_distance_mm(self) -> f64 {
        let (a, b) = (self.width_mm as f64, self.height_mm as f64);
        let d = libm::sqrt(a * a + b * b);
        let (aa, bb) = (a * a, b * b);
        let polynomial = aa * a / bb + bb * b / aa + d * (3.0 - aa / bb - bb / aa);
        let logarithms = bb / a * libm::log((a + d) / b) + aa / b * libm::log((b + d) / a);
        (polynomial + 2.5 * logarithms) / 15.0
    }
}

/// The least time between the starts of two legs.
const SHORTEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::stream;

    const AREA: Area = Area { width_mm: 1_500_000, height_mm: 300_000 };

    fn draw(seed: u64, speeds: Speeds, pause: Duration) -> Mobility {
        let waypoint = RandomWaypoint { area: AREA, speeds, pause };
        let rng = |node| stream(seed, &format!("way of node {node}"));
        waypoint.draw(1000, Instant::ZERO + Duration::from_secs(900), rng).unwrap()
    }

    /// Mean speed in m/s over all nodes within a tenth of a second, with its standard error, and
    /// the share of nodes that pause.
    fn speed(mobility: &Mobility, secs: u64) -> (f64, f64, f64) {
        let at = Instant::ZERO + Duration::from_secs(secs);
        let tick = Duration::from_millis(100);
        let (before, after) = (mobility.positions(at), mobility.positions(at + tick));
        let speeds: Vec<f64> =
            before.iter().zip(&after).map(|(a, b)| micrometres(*a, *b) as f64 / 1e5).collect();
        let n = speeds.len() as f64;
        let mean = speeds.iter().sum::<f64>() / n;
        let variance = speeds.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let still = speeds.iter().filter(|v| **v == 0.0).count() as f64 / n;
        (mean, libm::sqrt(variance / n), still)
    }

    /// In the steady state the mean speed is `1 / E[1/v]` at every time, from the very first on
    /// (Navidi & Camp). Within four standard errors of a thousand nodes.
    #[test]
    fn the_mean_speed_is_that_of_the_steady_state_at_all_times() {
        let speeds = Speeds { slowest: 1_000, fastest: 20_000 };
        let mobility = draw(3, speeds, Duration::ZERO);
        let expected = 19.0 / libm::log(20.0);
        for secs in [0, 10, 50, 100, 200, 400, 800] {
            let (mean, error, _) = speed(&mobility, secs);
            assert!((mean - expected).abs() < 4.0 * error, "{mean} at {secs} s, not {expected}");
        }
        let (_, error, _) = speed(&mobility, 0);
        assert!(4.0 * error < 10.5 - expected, "a start with uniform speeds (10.5) would be seen");
    }

    /// The share of nodes that pause is `pause / (pause + E[length] E[1/v])`, within four standard
    /// errors of a binomial.
    #[test]
    fn as_many_pause_as_the_steady_state_has() {
        let speeds = Speeds { slowest: 5_000, fastest: 15_000 };
        let pause = Duration::from_secs(40);
        let mobility = draw(4, speeds, pause);
        let walk = AREA.mean_distance_mm() / 1e3 * libm::log(3.0) / 10.0;
        let expected = 40.0 / (40.0 + walk);
        let error = libm::sqrt(expected * (1.0 - expected) / 1000.0);
        for secs in [0, 20, 100, 400] {
            let (_, _, still) = speed(&mobility, secs);
            assert!((still - expected).abs() < 4.0 * error, "{still} at {secs} s, not {expected}");
        }
    }

    /// Of the unit square it is 0.5214 (a classic); of a line a third.
    #[test]
    fn the_mean_distance_is_the_known_one() {
        let square = Area { width_mm: 1_000_000, height_mm: 1_000_000 };
        assert!((square.mean_distance_mm() / 1e6 - 0.521_405_433).abs() < 1e-9);
        let line = Area { width_mm: 1_000_000, height_mm: 1_000 };
        assert!((line.mean_distance_mm() / 1e6 - 1.0 / 3.0).abs() < 1e-4);
    }

    #[test]
    fn no_node_leaves_the_area_and_faster_nodes_walk_the_same_paths() {
        let slow = draw(5, Speeds::around(2_000), Duration::ZERO);
        let fast = draw(5, Speeds::around(20_000), Duration::ZERO);
        for node in 0..50 {
            for secs in [0, 77, 300] {
                let at = |secs| Instant::ZERO + Duration::from_secs(secs);
                let place = slow.position(NodeId(node), at(secs));
                assert!(AREA.contains(place));
            }
            let ends = |mobility: &Mobility| {
                mobility.nodes[usize::from(node)]
                    .iter()
                    .map(|leg| leg.to)
                    .take(3)
                    .collect::<Vec<_>>()
            };
            assert_eq!(ends(&slow)[..2], ends(&fast)[..2]);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let waypoint = RandomWaypoint {
            area: AREA,
            speeds: Speeds { slowest: 0, fastest: 5 },
            pause: Duration::ZERO,
        };
        let rng = |_| stream(1, "way");
        let end = Instant::ZERO + Duration::from_secs(1);
        let error = waypoint.draw(2, end, rng).unwrap_err().to_string();
        assert_eq!(
            error,
            "speeds of 0 to 5 mm/s: the slowest is at least 1, the fastest not below it, at most 1000000 m/s"
        );
        let slow = RandomWaypoint { speeds: Speeds::around(10), ..waypoint };
        assert!(slow.draw(0, end, rng).is_err());
        let point = Area { width_mm: 1, height_mm: 1 };
        let long = RandomWaypoint { area: point, ..slow };
        let ever = long.draw(1, Instant::ZERO + Duration::from_secs(1_000_000_000), rng);
        assert_eq!(ever, Err(WaypointError::TooLong));
    }
}

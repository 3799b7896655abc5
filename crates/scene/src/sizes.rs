//! Flow sizes drawn from a measured distribution.
//!
//! A distribution is given as the studies of data centres give it: points `(size, P(flow ≤ size))`
//! (Alizadeh et al., SIGCOMM 2010, Fig. 4; SIGCOMM 2013, Fig. 4). Between two points it is uniform,
//! so a size is drawn by inverting the piecewise linear function, as the ns-2 scripts of pFabric and
//! the traffic generators after them do:
//!
//! ```text
//! size = x[i-1] + (x[i] − x[i-1]) · (u − p[i-1]) / (p[i] − p[i-1]),   p[i-1] < u ≤ p[i]
//! ```
//!
//! What lies at or below the first point has its size. No flow is empty: a drawn size is at least one
//! byte. Probabilities are counted in parts of 2^53, the resolution of a draw.

use weir_units::{Bytes, Rng};

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeDistribution {
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    size: u64,
    /// The probability of a flow of at most this size, in parts of `WHOLE`.
    below: u64,
}

const WHOLE: u64 = 1 << 53;
/// No distribution in use has a tenth of it.
const MAX_POINTS: usize = 10_000;
/// A flow larger than this is taken for a slip.
const MAX_SIZE: u64 = 1 << 50;

impl SizeDistribution {
    /// From sizes in bytes with the share of flows that are at most so large.
    ///
    /// # Errors
    /// Says which point cannot be: sizes grow, shares do not fall and end with 1, and some flow has a
    /// byte.
    pub fn new(points: &[(u64, f64)]) -> Result<Self, String> {
        if points.is_empty() || points.len() > MAX_POINTS {
            return Err(format!("{} points; a distribution has 1 to {MAX_POINTS}", points.len()));
        }
        for (number, (size, share)) in (1..).zip(points) {
            if !(0.0..=1.0).contains(share) {
                return Err(format!("point {number}: {share} is not a share; it is 0 to 1"));
            }
            if *size > MAX_SIZE {
                return Err(format!("point {number}: {size} bytes; at most {MAX_SIZE}"));
            }
        }
        for (number, pair) in (2..).zip(points.windows(2)) {
            let [(smaller, before), (size, share)] = [pair[0], pair[1]];
            if size <= smaller {
                let allowed = "sizes grow from point to point";
                return Err(format!("point {number}: {size} after {smaller} bytes; {allowed}"));
            }
            if share < before {
                let allowed = "shares are cumulative and do not fall";
                return Err(format!("point {number}: {share} after {before}; {allowed}"));
            }
        }
        let (largest, whole) = points[points.len() - 1];
        if whole < 1.0 {
            return Err(format!("the last share is {whole}; it is 1, since every flow has a size"));
        }
        if largest == 0 {
            return Err("the largest flow has 0 bytes; it has at least one".to_owned());
        }
        let parts = |share: f64| (share * WHOLE as f64) as u64;
        let points = points.iter().map(|&(size, share)| Point { size, below: parts(share) });
        Ok(Self { points: points.collect() })
    }

    /// The size of the next flow; each call draws once.
    pub fn draw(&self, rng: &mut Rng) -> Bytes {
        let u = (rng.next_u64() >> 11) + 1;
        let at = self.points.partition_point(|point| point.below < u);
        let above = self.points[at];
        let Some(below) = at.checked_sub(1).map(|at| self.points[at]) else {
            return Bytes(above.size.max(1));
        };
        let part = u128::from(above.size - below.size) * u128::from(u - below.below);
        let step = part.div_ceil(u128::from(above.below - below.below));
        Bytes((below.size + step as u64).max(1))
    }

    /// No flow has fewer bytes.
    pub(crate) fn least(&self) -> u64 {
        self.points.first().map_or(1, |point| point.size.max(1))
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.pieces().map(|piece| piece.weight * (piece.from + piece.to) / 2.0).sum()
    }

    /// The mean number of segments of `mss` bytes that a flow takes.
    pub fn mean_segments(&self, mss: u32) -> f64 {
        let mss = f64::from(mss);
        // The integral of ⌈x/mss⌉ from 0.
        let integral = |x: f64| {
            let full = (x / mss).floor();
            mss * full * (full + 1.0) / 2.0 + (x - full * mss) * (full + 1.0)
        };
        let segments = |piece: &Piece| match piece.to - piece.from {
            0.0 => (piece.to / mss).ceil().max(1.0),
            width => (integral(piece.to) - integral(piece.from)) / width,
        };
        self.pieces().map(|piece| piece.weight * segments(&piece)).sum()
    }

    /// The first point, and the stretches from each point to the next.
    fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let share = |parts: u64| parts as f64 / WHOLE as f64;
        let first = self.points.first().map(|point| {
            let size = point.size.max(1) as f64;
            Piece { from: size, to: size, weight: share(point.below) }
        });
        let others = self.points.windows(2).map(move |pair| Piece {
            from: pair[0].size as f64,
            to: pair[1].size as f64,
            weight: share(pair[1].below - pair[0].below),
        });
        first.into_iter().chain(others)
    }
}

/// Flows whose sizes are uniform from one size to another.
struct Piece {
    from: f64,
    to: f64,
    weight: f64,
}

#[cfg(test)]
mod tests;

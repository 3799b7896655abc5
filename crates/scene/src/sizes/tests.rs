use weir_units::stream;

use super::*;

const SAMPLES: usize = 100_000;

/// An atom at the first point, a stretch without flows, and a heavy tail.
fn lumpy() -> SizeDistribution {
    let points = [(100, 0.25), (1_000, 0.5), (5_000, 0.5), (10_000, 0.9), (1_000_000, 1.0)];
    SizeDistribution::new(&points).unwrap()
}

fn smooth() -> SizeDistribution {
    SizeDistribution::new(&[(0, 0.0), (10_000, 0.15), (80_000, 0.53), (30_000_000, 1.0)]).unwrap()
}

fn drawn(sizes: &SizeDistribution) -> Vec<u64> {
    let mut rng = stream(7, "flow web sizes");
    let mut drawn: Vec<u64> = (0..SAMPLES).map(|_| sizes.draw(&mut rng).get()).collect();
    drawn.sort_unstable();
    drawn
}

/// The share of flows that have at most `size` bytes.
fn share_up_to(sizes: &SizeDistribution, size: f64) -> f64 {
    let within = |piece: Piece| match piece.to - piece.from {
        0.0 => piece.weight * f64::from(u8::from(piece.to <= size)),
        width => piece.weight * ((size - piece.from) / width).clamp(0.0, 1.0),
    };
    sizes.pieces().map(within).sum()
}

#[test]
fn drawn_sizes_pass_the_test_of_kolmogorov_and_smirnov() {
    // 1.63 / √n is the distance that one sample of a hundred exceeds (Smirnov's asymptotic formula).
    // With an atom the test is conservative.
    let critical = 1.63 / (SAMPLES as f64).sqrt();
    for sizes in [lumpy(), smooth()] {
        let drawn = drawn(&sizes);
        let share = |number: usize| number as f64 / SAMPLES as f64;
        let (mut below, mut distance) = (0, 0f64);
        for same in drawn.chunk_by(|a, b| a == b) {
            // Sizes are whole: just below one is the same as up to the one before.
            let size = same[0] as f64;
            distance = distance.max((share(below) - share_up_to(&sizes, size - 1.0)).abs());
            below += same.len();
            distance = distance.max((share(below) - share_up_to(&sizes, size)).abs());
        }
        assert!(distance > 0.0 && distance < critical, "{distance} against {critical}");
    }
}

#[test]
fn a_stretch_that_no_flow_has_is_never_drawn() {
    let drawn = drawn(&lumpy());
    assert!(drawn.iter().all(|size| !(1_001..=5_000).contains(size)));
    assert_eq!((drawn[0], drawn.iter().filter(|size| **size == 100).count() > 24_000), (100, true));
    assert!(*drawn.last().unwrap() <= 1_000_000);
}

#[test]
fn means_are_those_of_the_pieces() {
    // 0.25·100 + 0.25·550 + 0.4·7500 + 0.1·505000.
    assert!((lumpy().mean() - 53_662.5).abs() < 1e-6);
    let single = SizeDistribution::new(&[(4_344, 1.0)]).unwrap();
    assert_eq!((single.mean(), single.mean_segments(1_448)), (4_344.0, 3.0));
    // Uniform over 0 to two segments: half take one, half take two.
    let uniform = SizeDistribution::new(&[(0, 0.0), (2_896, 1.0)]).unwrap();
    assert!((uniform.mean_segments(1_448) - 1.5).abs() < 1e-12);
    // Uniform up to one segment and a half: two thirds take one.
    let uneven = SizeDistribution::new(&[(0, 0.0), (2_172, 1.0)]).unwrap();
    assert!((uneven.mean_segments(1_448) - 4.0 / 3.0).abs() < 1e-12);
}

#[test]
fn the_mean_of_what_is_drawn_is_the_mean() {
    let sizes = smooth();
    let mean = drawn(&sizes).iter().sum::<u64>() as f64 / SAMPLES as f64;
    // The standard deviation of these sizes is below 1.3 means; four of those of a mean of n draws.
    let allowed = 4.0 * 1.3 * sizes.mean() / (SAMPLES as f64).sqrt();
    assert!((mean - sizes.mean()).abs() < allowed, "{mean} against {}", sizes.mean());
}

#[test]
fn no_flow_is_empty() {
    let sizes = SizeDistribution::new(&[(0, 0.5), (1, 1.0)]).unwrap();
    assert!(drawn(&sizes).iter().all(|size| *size == 1));
}

#[test]
fn points_that_are_no_distribution_are_refused() {
    let refused = |points: &[(u64, f64)]| SizeDistribution::new(points).unwrap_err();
    assert!(refused(&[]).contains("0 points"));
    assert!(refused(&[(1, 0.5), (1, 1.0)]).contains("point 2: 1 after 1 bytes"));
    assert!(refused(&[(1, 0.5), (2, 0.4)]).contains("point 2: 0.4 after 0.5"));
    assert!(refused(&[(1, 0.5), (2, 0.9)]).contains("the last share is 0.9"));
    assert!(refused(&[(1, f64::NAN)]).contains("point 1: NaN"));
    assert!(refused(&[(1, -0.1), (2, 1.0)]).contains("-0.1 is not a share"));
    assert!(refused(&[(0, 1.0)]).contains("0 bytes"));
    assert!(refused(&[(u64::MAX, 1.0)]).contains("at most"));
}

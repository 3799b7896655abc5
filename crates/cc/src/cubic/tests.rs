use super::*;

#[test]
fn cube_roots_are_exact_and_close_to_the_kernels() {
    for root in [0, 1, 2, 3, 1_000, 5_000, 1 << 20, (1 << 42) - 1] {
        let cube = u128::from(root).pow(3_u32);
        assert_eq!(cube_root(cube), root);
        assert_eq!(cube_root(cube + 1), root.max(1));
        assert_eq!(cube_root(cube.saturating_sub(1)), root.saturating_sub(1));
    }
    // K in 1/1024 s for windows so many segments below W_max, as Linux 6.1's table and one Newton
    // step give it.
    let linux = [(1, 1_388), (5, 2_375), (10, 2_991), (20, 3_770), (28, 4_215), (49, 5_088)];
    for (below, k) in linux {
        let ours = cube_root(below * CUBE_PER_SEGMENT);
        assert!(ours.abs_diff(k) * 1_000 <= k * 2, "{below}: {ours} for {k}");
    }
}

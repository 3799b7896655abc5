//! The checks of the fuzz targets, on the inputs in `tests/corpus` and on edited copies of them.
//!
//! Part of every `cargo test`. `fuzz/README.md` describes how to run the checks under libFuzzer.

use proptest::prelude::*;

#[path = "../../../net/tests/fuzzing/corpus.rs"]
mod corpus;
mod files;

#[test]
fn corpora_hold() {
    assert!(corpus::replay("movements", files::check_movements) >= 5);
    assert!(corpus::replay("placements", files::check_placements) >= 5);
}

proptest! {
    #[test]
    fn edited_movements_hold(input in corpus::edited("movements")) {
        files::check_movements(&input);
    }

    #[test]
    fn edited_placements_hold(input in corpus::edited("placements")) {
        files::check_placements(&input);
    }
}

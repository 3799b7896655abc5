//! The checks of the fuzz targets, on the inputs in `tests/corpus` and on edited copies of them.
//!
//! Part of every `cargo test`. `fuzz/README.md` describes how to run the checks under libFuzzer.

use proptest::prelude::*;

#[path = "../../../net/tests/fuzzing/corpus.rs"]
mod corpus;
mod texts;

#[test]
fn corpora_hold() {
    assert!(corpus::replay("scenario", texts::check_scenario) >= 5);
    assert!(corpus::replay("tc", texts::check_tc) >= 5);
}

proptest! {
    #[test]
    fn edited_scenarios_hold(input in corpus::edited("scenario")) {
        texts::check_scenario(&input);
    }

    #[test]
    fn edited_tc_texts_hold(input in corpus::edited("tc")) {
        texts::check_tc(&input);
    }
}

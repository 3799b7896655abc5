//! The checks of the fuzz targets, on the inputs in `tests/corpus` and on edited copies of them.
//!
//! Part of every `cargo test`. `fuzz/README.md` describes how to run the checks under libFuzzer.

use proptest::prelude::*;

mod corpus;
mod files;

#[test]
fn corpora_hold() {
    assert!(corpus::replay("deliveries", files::check_deliveries) >= 5);
}

proptest! {
    #[test]
    fn edited_deliveries_hold(input in corpus::edited("deliveries")) {
        files::check_deliveries(&input);
    }
}

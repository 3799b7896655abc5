//! The checks of the fuzz targets, on the inputs in `tests/corpus` and on edited copies of them.
//!
//! Part of every `cargo test`. `fuzz/README.md` describes how to run the checks under libFuzzer.

use proptest::prelude::*;

mod captures;
#[path = "../../../net/tests/fuzzing/corpus.rs"]
mod corpus;

#[test]
fn corpora_hold() {
    assert!(corpus::replay("capture", captures::check_capture) >= 5);
    assert!(corpus::replay("qlog", captures::check_capture) >= 3);
}

proptest! {
    #[test]
    fn edited_captures_hold(input in corpus::edited("capture")) {
        captures::check_capture(&input);
    }

    #[test]
    fn edited_logs_hold(input in corpus::edited("qlog")) {
        captures::check_capture(&input);
    }

    #[test]
    fn any_bytes_hold(input in prop::collection::vec(any::<u8>(), 0..600)) {
        captures::check_capture(&input);
    }
}

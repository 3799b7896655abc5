//! What the fuzz targets check, on generated inputs and on the inputs kept in `tests/corpus`.
//!
//! These run in every `cargo test`. They are not guided by coverage; `fuzz/README.md` says how to
//! run the same checks under a fuzzer that is.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

mod endpoint;
mod input;
mod seal;

/// Hands every kept input to `check`; returns how many there were.
fn replay(target: &str, check: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let inputs = files.map(|file| fs::read(file.expect("listed").path()).expect("readable"));
    inputs.map(|input| check(&input)).count()
}

#[test]
fn kept_seals_hold() {
    assert!(replay("seal", seal::check) >= 10);
}

#[test]
fn kept_strangers_hold() {
    assert!(replay("endpoint", endpoint::check) >= 10);
}

proptest! {
    #[test]
    fn any_strangers_hold(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        endpoint::check(&bytes);
    }

    #[test]
    fn any_treatment_of_a_seal_holds(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        seal::check(&bytes);
    }
}

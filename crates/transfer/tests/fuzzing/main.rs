//! What the fuzz targets check, on generated inputs and on the inputs kept in `tests/corpus`.
//!
//! These run in every `cargo test`. They are not guided by coverage; `fuzz/README.md` says how to
//! run the same checks under a fuzzer that is.

use proptest::prelude::*;

#[path = "../../../net/tests/fuzzing/corpus.rs"]
mod corpus;
#[path = "../simulation/disk.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod disk;
mod endpoint;
mod frames;
mod input;
#[path = "../simulation/intruder.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod intruder;
mod keys;
#[path = "../simulation/script.rs"]
mod script;
mod seal;
mod session;
#[path = "../simulation/tally.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod tally;

#[test]
fn kept_seals_hold() {
    assert!(corpus::replay("seal", seal::check) >= 10);
}

#[test]
fn kept_sessions_hold() {
    assert!(corpus::replay("session", session::check) >= 5);
}

#[test]
fn kept_keys_hold() {
    assert!(corpus::replay("keys", keys::check) >= 5);
}

#[test]
fn kept_attackers_hold() {
    assert!(corpus::replay("endpoint", endpoint::check) >= 10);
}

#[test]
fn kept_frames_hold() {
    assert!(corpus::replay("frames", frames::check) >= 10);
}

/// The kinds of frames, each with something behind it.
fn plausible_frames() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![Just(b'W'), 1..=5u8, 16..=23u8, any::<u8>()];
    let hello = (any::<[u8; 4]>()).prop_map(|files| [&b"WEIR\x02"[..], &files].concat());
    let frame = (kind, prop::collection::vec(any::<u8>(), 0..80))
        .prop_map(|(kind, rest)| [&[kind], &rest[..]].concat());
    prop::collection::vec(prop_oneof![1 => hello, 5 => frame], 1..4).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_sessions_hold(bytes in prop::collection::vec(any::<u8>(), 0..150)) {
        session::check(&bytes);
    }
}

proptest! {
    #[test]
    fn edited_keys_hold(bytes in corpus::edited("keys")) {
        keys::check(&bytes);
    }

    #[test]
    fn any_attackers_hold(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        endpoint::check(&bytes);
    }

    #[test]
    fn any_frames_hold(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        frames::check(&bytes);
    }

    #[test]
    fn plausible_frames_hold(bytes in plausible_frames()) {
        frames::check(&bytes);
    }

    #[test]
    fn any_treatment_of_a_seal_holds(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        seal::check(&bytes);
    }
}

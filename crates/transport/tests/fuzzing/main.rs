//! What the fuzz targets check, on generated inputs and on the inputs kept in `tests/corpus`.
//!
//! These run in every `cargo test`. They are not guided by coverage; `fuzz/README.md` says how to
//! run the same checks under a fuzzer that is.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

mod connection;
mod wire_parse;

/// Hands every kept input to `check`; returns how many there were.
fn replay(target: &str, check: impl Fn(&[u8])) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let inputs = files.map(|file| fs::read(file.expect("listed").path()).expect("readable"));
    inputs.map(|input| check(&input)).count()
}

#[test]
fn kept_datagrams_hold() {
    assert!(replay("wire_parse", wire_parse::check) >= 10);
}

#[test]
fn kept_operations_hold() {
    assert!(replay("connection", connection::check) >= 10);
}

/// A header that is right so far, so that options and payload are reached.
fn plausible_datagram() -> impl Strategy<Value = Vec<u8>> {
    let option = prop_oneof![
        Just(vec![0]),
        Just(vec![1]),
        Just(vec![2, 4, 5, 168]),
        Just(vec![3, 3, 7]),
        Just(vec![4, 2]),
        any::<[u8; 8]>().prop_map(|fields| [&[8, 10], &fields[..]].concat()),
        prop::collection::vec(any::<[u8; 8]>(), 1..=4).prop_map(|blocks| [
            &[5, 2 + 8 * blocks.len() as u8],
            &blocks.concat()[..]
        ]
        .concat()),
        (any::<u8>(), 0..12u8, any::<[u8; 12]>()).prop_map(|(kind, len, data)| [
            &[kind, len],
            &data[..]
        ]
        .concat()),
    ];
    let fixed = any::<[u8; 20]>();
    let options = prop::collection::vec(option, 0..6);
    (fixed, options, prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(fixed, list, payload)| {
            let mut options = list.concat();
            options.resize(options.len().next_multiple_of(4).min(40), 1);
            let mut bytes = [&fixed[..], &options, &payload].concat();
            bytes[12] = (5 + options.len() as u8 / 4) << 4 | bytes[12] & 15;
            bytes
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        wire_parse::check(&bytes);
    }

    #[test]
    fn plausible_datagrams_hold(bytes in plausible_datagram()) {
        wire_parse::check(&bytes);
    }

    #[test]
    fn any_operations_hold(bytes in prop::collection::vec(any::<u8>(), 0..3_000)) {
        connection::check(&bytes);
    }
}

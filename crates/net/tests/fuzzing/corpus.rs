//! Inputs in `tests/corpus` of a crate, and inputs made from them by small edits.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

/// Returns the inputs of `target` in the corpus.
pub(crate) fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.expect("listed").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

/// Passes every input in the corpus to `check`; returns their number.
pub(crate) fn replay(target: &str, check: impl Fn(&[u8])) -> usize {
    corpus(target).iter().map(|input| check(input)).count()
}

/// An input in the corpus after up to 8 edits.
pub(crate) fn edited(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let edits = prop::collection::vec(any::<(Edit, Index, Index, u8)>(), 0..8);
    (prop::sample::select(corpus(target)), edits).prop_map(|(mut input, edits)| {
        for (edit, one, other, byte) in edits {
            edit.apply(&mut input, one, other, byte);
        }
        input
    })
}

/// A change to an input, at or between two places.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Replace,
    Insert,
    Remove,
    Repeat,
}

impl Edit {
    fn apply(self, input: &mut Vec<u8>, one: Index, other: Index, byte: u8) {
        let (one, other) = (one.index(input.len() + 1), other.index(input.len() + 1));
        let range = one.min(other)..one.max(other);
        match self {
            Self::Replace if one < input.len() => input[one] = byte,
            Self::Replace | Self::Insert => input.insert(one, byte),
            Self::Remove => drop(input.drain(range)),
            Self::Repeat => {
                let copy = input[range.start..range.end.min(range.start + 100)].to_vec();
                drop(input.splice(one..one, copy));
            }
        }
    }
}

impl Arbitrary for Edit {
    type Parameters = ();
    type Strategy = prop::sample::Select<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop::sample::select(vec![Self::Replace, Self::Insert, Self::Remove, Self::Repeat])
    }
}

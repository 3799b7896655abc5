use std::fs;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;
use crate::file::SystemDisk;
use crate::file::testing::{TempDir, header_of, noise};

const ATTRIBUTES: Attributes = Attributes { mode: 0o640, modified: (1_000_000_000, 7) };

fn open(folder: &TempDir, header: &Header) -> io::Result<Partial> {
    Partial::open(&SystemDisk::shared(), folder.path(), header)
}

/// What happens to a file that is arriving.
#[derive(Clone, Debug)]
enum Op {
    /// Bytes arrive: an offset relative to the complete prefix, and a length.
    Arrive {
        from: i64,
        len: usize,
    },
    /// Zeros are passed over, if they are next.
    Skip,
    Note,
    /// The process is killed: what was only in its memory is gone.
    Kill,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (-2_000..4_000i64, 1..3_000usize).prop_map(|(from, len)| Op::Arrive { from, len }),
        2 => (Just(0i64), 30_000..70_000usize).prop_map(|(from, len)| Op::Arrive { from, len }),
        2 => Just(Op::Skip),
        1 => Just(Op::Note),
        1 => Just(Op::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_order_of_pieces_and_any_cuts_give_the_file(
        size in 0..300_000usize,
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let folder = TempDir::new();
        let mut content = noise(size);
        // Two holes, one of which is the end.
        let holes = [size / 4..size / 2, size / 4 * 3..size];
        holes.iter().for_each(|hole| content[hole.clone()].fill(0));
        let header = header_of("x", &content);
        let mut partial = open(&folder, &header).expect("a writable folder");
        for op in ops {
            match op {
                Op::Skip => {
                    let at = partial.prefix() as usize;
                    for hole in holes.iter().filter(|hole| hole.contains(&at)) {
                        partial.skip(at as u64, (hole.end - at) as u64).expect("space");
                    }
                }
                Op::Arrive { from, len } => {
                    let start = (partial.prefix() as i64 + from).clamp(0, size as i64) as usize;
                    let end = (start + len).min(size);
                    partial.write(start as u64, &content[start..end]).expect("space");
                }
                Op::Note => partial.note().expect("space"),
                Op::Kill => {
                    // A complete file needs no journal.
                    let (noted, complete) = (partial.noted, partial.is_complete());
                    drop(partial);
                    partial = open(&folder, &header).expect("it is there");
                    prop_assert!(
                        partial.prefix() == noted || complete && partial.is_complete(),
                        "{} where {noted} was noted", partial.prefix()
                    );
                }
            }
        }
        let rest = partial.prefix() as usize;
        partial.write(rest as u64, &content[rest..]).expect("space");
        prop_assert!(partial.is_complete());
        prop_assert!(partial.seal().expect("space").is_some());
        prop_assert_eq!(fs::read(partial.path()).expect("it is there"), content);
    }
}

#[test]
fn two_sessions_with_one_file_get_one_each() {
    let folder = TempDir::new();
    let content = noise(1000);
    let header = header_of("x", &content);
    let mut first = open(&folder, &header).expect("writable");
    let mut second = open(&folder, &header).expect("writable");
    assert!(folder.names().is_empty(), "there is nothing to write yet");
    for (partial, len) in [(&mut first, 400), (&mut second, 300)] {
        partial.write(0, &content[..len]).expect("space");
        partial.note().expect("space");
    }
    assert_ne!(first.path(), second.path());
    drop(first);
    let third = open(&folder, &header).expect("writable");
    assert_eq!(third.prefix(), 400);
}

/// Two sessions had the file, and their receiver was killed.
#[test]
fn of_several_partial_files_the_one_with_the_most_bytes_is_opened() {
    for [one, two] in [[400, 700], [700, 400]] {
        let folder = TempDir::new();
        let content = noise(1000);
        let header = header_of("x", &content);
        let mut both = [open(&folder, &header), open(&folder, &header)].map(Result::unwrap);
        for (partial, len) in both.iter_mut().zip([one, two]) {
            partial.write(0, &content[..len]).expect("space");
            partial.note().expect("space");
        }
        drop(both);
        assert_eq!(open(&folder, &header).expect("writable").prefix(), 700);
        assert_eq!(folder.names().len(), 1, "the other is of no use");
    }
}

/// The process was killed, or the power failed, after the journal was cut and before the rename.
#[test]
fn a_file_of_the_announced_size_without_a_journal_counts_as_there() {
    let folder = TempDir::new();
    let content = noise(1000);
    let header = header_of("x", &content);
    let mut first = open(&folder, &header).expect("writable");
    first.write(0, &content).expect("space");
    first.seal().expect("space");
    drop(first);
    let mut second = open(&folder, &header).expect("writable");
    assert!(second.is_complete());
    assert!(second.seal().expect("readable").is_some());
}

#[test]
fn a_journal_of_another_file_or_a_damaged_one_counts_for_nothing() {
    let folder = TempDir::new();
    let content = noise(1000);
    let header = header_of("x", &content);
    let path = {
        let mut partial = open(&folder, &header).expect("writable");
        partial.write(0, &content[..400]).expect("space");
        partial.note().expect("space");
        partial.path().to_owned()
    };
    let mut bytes = fs::read(&path).expect("it is there");
    *bytes.last_mut().expect("a journal") ^= 1;
    fs::write(&path, &bytes).expect("writable");
    assert_eq!(open(&folder, &header).expect("writable").prefix(), 0);
    assert_eq!(fs::metadata(&path).expect("it is there").len(), 0, "it begins anew");
}

#[test]
fn other_bytes_than_announced_do_not_verify() {
    let folder = TempDir::new();
    let content = noise(100_000);
    let mut partial = open(&folder, &header_of("x", &content)).expect("writable");
    let mut wrong = content;
    wrong[70_000] ^= 1;
    partial.write(0, &wrong).expect("space");
    assert!(partial.is_complete() && partial.seal().expect("readable").is_none());
    let path = partial.path().to_owned();
    partial.discard().expect("removable");
    assert!(!path.exists());
}

#[test]
fn what_others_put_in_the_place_of_a_partial_file_is_left_alone() {
    let (folder, content) = (TempDir::new(), noise(1000));
    let header = header_of("x", &content);
    let place = open(&folder, &header).expect("readable").path().to_owned();
    let elsewhere = folder.path().join("elsewhere");
    let plant: [fn(&Path, &Path); 4] = [
        |place, target| std::os::unix::fs::symlink(target, place).expect("links"),
        |place, _| fs::create_dir(place).expect("writable"),
        |place, target| {
            fs::write(target, [3; 2000]).expect("writable");
            fs::hard_link(target, place).expect("links");
        },
        |place, _| {
            fs::write(place, b"").expect("writable");
            fs::set_permissions(place, std::os::unix::fs::PermissionsExt::from_mode(0o000))
                .expect("ours");
        },
    ];
    for (n, plant) in plant.into_iter().enumerate() {
        plant(&place, &elsewhere);
        let before = fs::read(&elsewhere).ok();
        let mut partial = open(&folder, &header).expect("there are other names");
        partial.write(0, &content).expect("space");
        // The superuser may open whatever has no permissions.
        assert!(n == 3 || partial.path() != place, "{}", partial.path().display());
        let watch = partial.seal().expect("readable").expect("the right content");
        let name = folder.path().join(n.to_string());
        assert!(partial.give_name(&name, &watch, &ATTRIBUTES).expect("free"));
        partial.discard().expect("removable");
        assert_eq!(fs::read(&name).expect("it is there"), content);
        assert_eq!(fs::read(&elsewhere).ok(), before);
        let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir(&place));
        let _ = fs::remove_file(&elsewhere);
    }
}

/// What the issue of a partial file is that another program changes once all of it is there.
#[test]
fn what_changes_after_it_was_hashed_gets_no_name() {
    let content = noise(300_000);
    let header = header_of("x", &content);
    let change: [fn(&Path); 6] = [
        |place| {
            fs::File::options()
                .write(true)
                .open(place)
                .and_then(|file| FileExt::write_all_at(&file, b"!", 9))
                .expect("ours")
        },
        |place| {
            fs::File::options()
                .write(true)
                .open(place)
                .and_then(|file| file.set_len(9))
                .expect("ours")
        },
        |place| fs::rename(place, place.with_extension("gone")).expect("ours"),
        |place| fs::remove_file(place).expect("ours"),
        |place| fs::hard_link(place, place.with_extension("other")).expect("links"),
        |place| {
            fs::remove_file(place).expect("ours");
            std::os::unix::fs::symlink("/etc/passwd", place).expect("links");
        },
    ];
    for (n, change) in change.into_iter().enumerate() {
        let folder = TempDir::new();
        let mut partial = open(&folder, &header).expect("writable");
        partial.write(0, &content).expect("space");
        let watch = partial.seal().expect("readable").expect("the right content");
        change(partial.path());
        let name = folder.path().join("x");
        let named = partial.give_name(&name, &watch, &ATTRIBUTES);
        let replaced_only = n == 2;
        assert_eq!(named.expect("links"), replaced_only, "{n}");
        assert_eq!(fs::read(&name).ok(), replaced_only.then(|| content.clone()), "{n}");
    }
}

/// What a session leaves, while another one that began with nothing has not written yet, stays.
/// An error is none of the two answers: taken for "not there", it made a file that was right a mismatch.
#[test]
fn a_name_that_cannot_be_looked_up_is_an_error() {
    let folder = TempDir::new();
    let mut partial = open(&folder, &header_of("x", b"y")).expect("writable");
    partial.write(0, b"y").expect("space");
    let file = partial.file().expect("ours");
    let found = |path: &Path| file.is_at(path).map_err(|error| error.kind());
    assert_eq!(found(partial.path()), Ok(true));
    assert_eq!(found(&folder.path().join("x")), Ok(false));
    assert_eq!(found(&partial.path().join("x")), Ok(false), "a file has no names in it");
    let too_long = folder.path().join("x".repeat(300));
    assert_eq!(found(&too_long), Err(std::io::ErrorKind::InvalidFilename));
}

#[test]
fn a_new_partial_file_takes_no_place_that_another_session_has_left() {
    let folder = TempDir::new();
    let content = noise(1000);
    let header = header_of("x", &content);
    let mut late = open(&folder, &header).expect("writable");
    let mut other = open(&folder, &header).expect("writable");
    other.write(0, &content[..400]).expect("space");
    other.leave().expect("space");
    late.write(0, &content[..100]).expect("space");
    drop(late);
    assert_eq!(open(&folder, &header).expect("writable").prefix(), 400);
}

#[test]
fn bytes_that_span_what_is_ahead_reach_what_lies_behind_it() {
    let (folder, content) = (TempDir::new(), noise(3_000));
    let mut partial = open(&folder, &header_of("x", &content)).expect("a writable folder");
    for range in [1_000..1_500, 2_000..3_000, 0..2_000] {
        partial.write(range.start as u64, &content[range]).expect("space");
    }
    assert!(partial.is_complete(), "{}", partial.prefix());
    assert!(partial.seal().expect("readable").is_some());
}

#[test]
fn a_repair_whose_session_is_gone_leaves_a_complete_file() {
    let (folder, content) = (TempDir::new(), noise(600_000));
    let mut partial = open(&folder, &header_of("x", &content)).expect("a writable folder");
    partial.write(0, &vec![0; content.len()]).expect("space");
    partial.repair(&[0..262_144, 524_288..600_000]).expect("space");
    partial.write(0, &content[..1_000]).expect("space");
    assert_eq!(partial.prefix(), 1_000);
    partial.end_repair().expect("space");
    assert!(partial.is_complete());
    assert!(partial.seal().expect("readable").is_none(), "the damage is found again");
}

//! The hash of a file, and its parts with theirs, so that damage costs a part and not the file.
//!
//! A part is a subtree of BLAKE3's tree, its hash that subtree's chaining value: the hash of the file
//! follows from those of its parts (BLAKE3 specification §2.1, §2.4). A receiver that knows the former can find
//! whether a list of the latter is right, and with it which parts of a file are.

use std::io;
use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use super::disk::{DiskFile, read_exact};
use super::frame::Hash;

/// The size and hash of what is in a file. `watch` receives now and then how much is read; its error
/// ends the reading.
pub(crate) fn hash_of(
    file: &dyn DiskFile,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<(u64, Hash)> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut reported = 0;
    let mut data_until = 0;
    loop {
        // Zeros that the disk does not store are not read. Where the next of them begin is asked once.
        if hasher.count() >= data_until {
            let at = hasher.count();
            data_until = match file.hole_at(at) {
                Some(end) => {
                    hash_zeros(&mut hasher, end - at);
                    watch(end)?;
                    continue;
                }
                None => file.next_hole(at).unwrap_or(u64::MAX),
            };
        }
        let left = usize::try_from(data_until - hasher.count()).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        match file.read_at(&mut buffer[..len], hasher.count()) {
            Ok(0) => return Ok((hasher.count(), *hasher.finalize().as_bytes())),
            Ok(len) => hasher.update(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if hasher.count() >= reported + (64 << 20) {
            reported = hasher.count();
            watch(reported)?;
        }
    }
}

fn hash_zeros(hasher: &mut Hasher, mut len: u64) {
    let zeros = [0; 64 << 10];
    while len > 0 {
        let some = len.min(zeros.len() as u64);
        hasher.update(&zeros[..some as usize]);
        len -= some;
    }
}

/// How long each part of a file of `size` bytes is, but the last.
pub(crate) fn part_len(size: u64) -> u64 {
    size.div_ceil(MOST_PARTS).next_power_of_two().max(SHORTEST_PART)
}

/// How many parts a file of `size` bytes has.
pub(crate) fn part_count(size: u64) -> usize {
    size.div_ceil(part_len(size)) as usize
}

/// The hashes of the parts of the first `size` bytes of a file.
pub(crate) fn hash_parts(file: &dyn DiskFile, size: u64) -> io::Result<Vec<Hash>> {
    let mut buffer = vec![0; SHORTEST_PART as usize];
    let mut hash_part = |part: Range<u64>| {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(part.start);
        let mut at = part.start;
        while at < part.end {
            let len = (part.end - at).min(SHORTEST_PART) as usize;
            read_exact(file, at, &mut buffer[..len])?;
            hasher.update(&buffer[..len]);
            at += len as u64;
        }
        Ok(hasher.finalize_non_root())
    };
    parts(size).map(&mut hash_part).collect()
}

/// The hash of the file with these parts; `None` if there are fewer than two.
pub(crate) fn hash_of_parts(parts: &[Hash]) -> Option<Hash> {
    let (left, right) = split(parts)?;
    Some(*merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes())
}

/// Which bytes of a file of `size` bytes are in parts whose hashes differ.
pub(crate) fn differing(size: u64, one: &[Hash], other: &[Hash]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let differing = parts(size).zip(one.iter().zip(other)).filter(|(_, (one, other))| one != other);
    for (part, _) in differing {
        match ranges.last_mut().filter(|last| last.end == part.start) {
            Some(last) => last.end = part.end,
            None => ranges.push(part),
        }
    }
    ranges
}

fn parts(size: u64) -> impl Iterator<Item = Range<u64>> {
    let len = part_len(size);
    (0..size.div_ceil(len)).map(move |n| n * len..((n + 1) * len).min(size))
}

/// The chaining value of the subtree over `parts`.
fn subtree(parts: &[Hash]) -> Hash {
    match split(parts) {
        Some((left, right)) => merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash),
        None => parts.first().copied().unwrap_or_default(),
    }
}

/// The left subtree is the largest full one that leaves something to the right one.
fn split(parts: &[Hash]) -> Option<(&[Hash], &[Hash])> {
    (parts.len() > 1).then(|| parts.split_at(parts.len().next_power_of_two() / 2))
}

/// No list of hashes is longer than 128 KiB.
const MOST_PARTS: u64 = 4_096;
/// So long that hashing uses the whole width of a processor.
const SHORTEST_PART: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::testing::{TempDir, noise};
    use crate::file::{Disk, SystemDisk};

    fn parts_of(content: &[u8]) -> Vec<Hash> {
        let folder = TempDir::new();
        let path = folder.path().join("x");
        std::fs::write(&path, content).expect("writable");
        let file = SystemDisk.open(&path).expect("readable");
        hash_parts(file.as_ref(), content.len() as u64).expect("readable")
    }

    #[test]
    fn the_hash_of_a_file_follows_from_those_of_its_parts() {
        let part = SHORTEST_PART as usize;
        for size in [part + 1, 2 * part, 2 * part + 1_000, 3 * part, 5 * part + 7, 8 * part] {
            let content = noise(size);
            let parts = parts_of(&content);
            assert_eq!(parts.len(), part_count(size as u64));
            let hash = *blake3::hash(&content).as_bytes();
            assert_eq!(hash_of_parts(&parts), Some(hash), "{size}");
        }
        assert_eq!(hash_of_parts(&parts_of(&noise(part))), None);
        assert_eq!(hash_of_parts(&[]), None);
    }

    #[test]
    fn parts_that_differ_are_found_and_joined() {
        let (part, mut content) = (SHORTEST_PART, noise(1_200_000));
        let right = parts_of(&content);
        for at in [0, 300_000, 1_199_999] {
            content[at] ^= 1;
        }
        let ranges = differing(1_200_000, &right, &parts_of(&content));
        assert_eq!(ranges, [0..2 * part, 4 * part..1_200_000]);
    }

    #[test]
    fn large_files_have_large_parts() {
        assert_eq!((part_len(0), part_count(0)), (256 << 10, 0));
        assert_eq!((part_len(1 << 30), part_count(1 << 30)), (256 << 10, 4_096));
        assert_eq!((part_len((1 << 30) + 1), part_count((1 << 30) + 1)), (512 << 10, 2_049));
        assert_eq!(part_count(i64::MAX as u64), 4_096);
    }
}

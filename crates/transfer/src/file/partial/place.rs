//! Where partial files lie: hidden names, one for each session that receives a content.

use std::path::{Path, PathBuf};

use crate::file::disk::Disk;
use crate::file::frame::Hash;

/// How hidden names begin.
const HIDDEN_PREFIX: &str = ".weir-";
/// How the names of those end that a later session goes on with.
pub(super) const RESUMABLE: &str = "part";
/// And of those that none does.
pub(super) const LOOSE: &str = "loose";
/// And of marks of folders.
const MARK: &str = "folder";

/// Whether this is the name of a partial file.
pub(crate) fn is_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [RESUMABLE, LOOSE].map(|ending| format!(".{ending}"));
    name.starts_with(HIDDEN_PREFIX) && endings.iter().any(|ending| name.ends_with(ending))
}

/// The name of the mark that a sender has made the folder `name`.
pub(crate) fn mark_of(name: &str) -> String {
    let id = id_of(blake3::hash(name.as_bytes()).as_bytes());
    format!("{HIDDEN_PREFIX}{id}.{MARK}")
}

/// Removes what sessions that are over have left of a content that the folder has by now. What cannot
/// be removed does no harm.
pub(crate) fn remove_leftovers(disk: &dyn Disk, folder: &Path, hash: &Hash) {
    for path in places(folder, hash, RESUMABLE).filter(|path| disk.entry(path).is_some()) {
        if let Ok(Some(_ours)) = disk.lock_to_remove(&path) {
            let _ = disk.remove(&path);
        }
    }
}

/// Where parts of a content may lie, a place for each session that is at it.
pub(super) fn places(folder: &Path, hash: &Hash, ending: &str) -> impl Iterator<Item = PathBuf> {
    let id = id_of(hash);
    (1..=MAX_AT_ONCE).map(move |n| numbered(folder, &id, ending, n))
}

/// The place of the `n`-th session, from 1.
pub(super) fn place(folder: &Path, hash: &Hash, ending: &str, n: u32) -> PathBuf {
    numbered(folder, &id_of(hash), ending, n)
}

fn numbered(folder: &Path, id: &str, ending: &str, n: u32) -> PathBuf {
    let number = if n == 1 { String::new() } else { format!("-{n}") };
    folder.join(format!("{HIDDEN_PREFIX}{id}{number}.{ending}"))
}

/// The first 16 bytes of a hash, in hexadecimal.
fn id_of(hash: &[u8; 32]) -> String {
    let (head, _) = hash.split_at(16);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(head);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// Sessions that receive the same file.
pub(super) const MAX_AT_ONCE: u32 = 16;

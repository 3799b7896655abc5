//! What the tests of this module share.

use std::fs;
use std::path::Path;

use super::frame::Header;

/// A folder that is gone when the test is over.
pub(crate) struct TempDir(tempfile::TempDir);

impl TempDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a writable temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The names in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("readable");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("readable").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into()).collect();
        names.sort();
        names
    }
}

/// Bytes without a pattern, the same for the same length.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&len.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn header_of(name: &str, content: &[u8]) -> Header {
    let hash = *blake3::hash(content).as_bytes();
    Header { name: name.to_owned(), size: content.len() as u64, hash }
}

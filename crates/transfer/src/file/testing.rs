//! What the tests of this module share.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::disk::{Disk, DiskFile, Entry, Helpers, OpenFolder, StoredFile, SystemDisk, Watch};
use super::frame::{Attributes, Header};
use super::path::SafePath;

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
    Header::new(name, content.len() as u64, hash)
}

/// The system's disk, with as little free space as a test wants, and counters.
#[derive(Debug, Default)]
pub(crate) struct TestDisk {
    /// What is free, if not what the system says.
    pub(crate) free: Option<u64>,
    /// How often a name was looked up.
    pub(crate) lookups: AtomicU64,
    /// Bytes that were read.
    pub(crate) read: Arc<AtomicU64>,
    /// Files that were removed while no process held their lock.
    pub(crate) unlocked_removals: AtomicU64,
}

impl TestDisk {
    fn counted(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TestFile(file, Arc::clone(&self.read)))
    }
}

impl Disk for TestDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.counted(SystemDisk.open(path)?))
    }

    fn open_locked(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        Ok(SystemDisk.open_locked(path)?.map(|file| self.counted(file)))
    }

    fn lock_to_remove(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        SystemDisk.lock_to_remove(path)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        SystemDisk.entry(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if SystemDisk.open_locked(path)?.is_some() {
            self.unlocked_removals.fetch_add(1, Ordering::Relaxed);
        }
        SystemDisk.remove(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        SystemDisk.sync_folder(path)
    }

    fn free_space(&self, path: &Path) -> Option<u64> {
        self.free.or_else(|| SystemDisk.free_space(path))
    }

    fn files(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        SystemDisk.files(folder)
    }

    fn files_below(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        SystemDisk.files_below(folder)
    }

    fn helpers(&self) -> Helpers {
        SystemDisk.helpers()
    }

    fn enter(&self, root: &Path, path: &SafePath) -> io::Result<OpenFolder> {
        SystemDisk.enter(root, path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        SystemDisk.make_folder(path)
    }

    fn folder_id(&self, path: &Path) -> Option<(u64, u64)> {
        SystemDisk.folder_id(path)
    }

    fn set_folder_attributes(&self, path: &Path, attributes: &Attributes) -> io::Result<()> {
        SystemDisk.set_folder_attributes(path, attributes)
    }

    fn make_link(&self, path: &Path, target: &str) -> io::Result<()> {
        SystemDisk.make_link(path, target)
    }

    fn link_target(&self, path: &Path) -> Option<PathBuf> {
        SystemDisk.link_target(path)
    }

    fn set_link_time(&self, path: &Path, modified: (i64, u32)) -> io::Result<()> {
        SystemDisk.set_link_time(path, modified)
    }
}

/// A file, and where the bytes that are read of it are counted.
#[derive(Debug)]
struct TestFile(Arc<dyn DiskFile>, Arc<AtomicU64>);

impl DiskFile for TestFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(buf, offset)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_size(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn watch(&self) -> io::Result<Watch> {
        self.0.watch()
    }

    fn is_unchanged(&self, since: &Watch) -> io::Result<bool> {
        self.0.is_unchanged(since)
    }

    fn attributes(&self) -> io::Result<Attributes> {
        self.0.attributes()
    }

    fn set_mode(&self, mode: u16) -> io::Result<()> {
        self.0.set_mode(mode)
    }

    fn set_modified(&self, modified: (i64, u32)) -> io::Result<()> {
        self.0.set_modified(modified)
    }

    fn names(&self) -> io::Result<u64> {
        self.0.names()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.0.is_at(path)
    }

    fn give_name(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.give_name(from, to)
    }
}

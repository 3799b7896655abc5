//! The file operations that the file service needs, so that a simulation can take the system's place.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FlockOperation, OFlags, flock};
use weir_units::Duration;

/// Operations on folders.
pub trait Disk: Debug + Send + Sync {
    /// Opens a plain file to be read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens the file at `path` to be read and written, made if it is not there, locked for the caller that
    /// holds the result; `None` if it is locked already. A link is not followed.
    ///
    /// # Errors
    /// What the system reports.
    fn open_locked(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>>;

    /// What is at `path`, if anything is; a link is not followed.
    fn entry(&self, path: &Path) -> Option<Entry>;

    /// Renames without replacing anything.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], or what else the system reports.
    fn rename_to_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system reports.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Brings the names in a folder to the disk.
    ///
    /// # Errors
    /// What the system reports.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// How many bytes may still be written to a folder, where the system tells.
    fn free_space(&self, path: &Path) -> Option<u64>;

    /// The plain files in a folder.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn files(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        let _ = folder;
        Ok(Vec::new())
    }

    /// Who writes and hashes long files.
    fn helpers(&self) -> Helpers;
}

/// Operations on an open file.
pub trait DiskFile: Debug + Send + Sync {
    /// How long it is.
    ///
    /// # Errors
    /// What the system reports.
    fn size(&self) -> io::Result<u64>;

    /// Reads at `offset`; returns how much there was.
    ///
    /// # Errors
    /// What the system reports.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`.
    ///
    /// # Errors
    /// What the system reports; part of it may be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts it, or fills it up with zeros.
    ///
    /// # Errors
    /// What the system reports.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Brings the content to the disk.
    ///
    /// # Errors
    /// What the system reports.
    fn sync(&self) -> io::Result<()>;

    /// What changes whenever the content does; `None` if another change now might not show in it.
    ///
    /// # Errors
    /// What the system reports.
    fn state(&self) -> io::Result<Option<FileState>> {
        Ok(None)
    }
}

/// A state of a file: a file with another one may have another content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileState {
    /// Its device,
    pub device: u64,
    /// number there,
    pub inode: u64,
    /// and length.
    pub size: u64,
    /// When its content was last changed, in seconds and nanoseconds,
    pub modified: (i64, i64),
    /// and when anything of it was.
    pub changed: (i64, i64),
}

/// A file in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes of the disk it takes.
    pub occupied: u64,
    /// For how long its content has been the same.
    pub age: Duration,
}

/// What a folder has under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A plain file of this size.
    File(u64),
    /// Something else.
    Other,
}

/// Who does what a helper thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Helpers {
    /// Threads, where there are several cores.
    #[default]
    Threads,
    /// The caller that needs the result, at the last moment: a simulation has no threads.
    Inline,
}

/// Reads until `buf` is full or the file ends.
pub(crate) fn read_full(file: &dyn DiskFile, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads as much as `buf` holds.
pub(crate) fn read_exact(file: &dyn DiskFile, offset: u64, buf: &mut [u8]) -> io::Result<()> {
    let filled = read_full(file, offset, buf)?;
    if filled == buf.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The disk of the system.
#[derive(Debug)]
pub struct SystemDisk;

impl SystemDisk {
    /// Converts the error of a caller that may try another name.
    pub fn shared() -> Arc<dyn Disk> {
        Arc::new(Self)
    }
}

impl Disk for SystemDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        // To open a pipe would wait for its other end.
        let there = fs::metadata(path)?;
        if !there.is_file() {
            let what = if there.is_dir() { "a directory" } else { "no plain file" };
            return Err(io::Error::other(format!("it is {what}; name files")));
        }
        Ok(Arc::new(File::open(path)?))
    }

    fn open_locked(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            // Its former owner may have renamed or removed it meanwhile.
            let ours = file.metadata()?;
            let same =
                |there: &fs::Metadata| (there.dev(), there.ino()) == (ours.dev(), ours.ino());
            match fs::symlink_metadata(path) {
                Ok(there) if same(&there) => return Ok(Some(Arc::new(file))),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let there = fs::symlink_metadata(path).ok()?;
        Some(if there.is_file() { Entry::File(there.len()) } else { Entry::Other })
    }

    fn rename_to_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            use rustix::io::Errno;
            match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
                // Not every file system can.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                result => return Ok(result?),
            }
        }
        fs::hard_link(from, to)?;
        fs::remove_file(from)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn free_space(&self, path: &Path) -> Option<u64> {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn files(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        let now = SystemTime::now();
        let stored = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let there = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let age = now.duration_since(there.modified().ok()?).unwrap_or_default();
            Some(StoredFile {
                path: entry.path(),
                occupied: there.blocks().saturating_mul(BLOCK),
                age: Duration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
            })
        };
        Ok(fs::read_dir(folder)?.filter_map(stored).collect())
    }

    fn helpers(&self) -> Helpers {
        Helpers::Threads
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buf, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn state(&self) -> io::Result<Option<FileState>> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let there = self.metadata()?;
        let state = FileState {
            device: there.dev(),
            inode: there.ino(),
            size: there.len(),
            modified: (there.mtime(), there.mtime_nsec()),
            changed: (there.ctime(), there.ctime_nsec()),
        };
        let last = state.modified.0.max(state.changed.0);
        let age = i64::try_from(now.as_secs()).unwrap_or(i64::MAX).saturating_sub(last);
        Ok((age > COARSEST_TIMES).then_some(state))
    }
}

/// The unit of `st_blocks` (POSIX leaves it open, Linux and macOS have this one).
const BLOCK: u64 = 512;
/// Some file systems keep times in steps of two seconds.
const COARSEST_TIMES: i64 = 2;

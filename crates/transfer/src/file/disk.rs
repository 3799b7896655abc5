//! The file operations that the file service needs, so that a simulation can take the system's place.

mod system;

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_units::Duration;

pub use self::system::SystemDisk;
pub(crate) use self::system::attributes_of;
use super::frame::Attributes;
use super::path::SafePath;

/// Operations on folders.
pub trait Disk: Debug + Send + Sync {
    /// Opens a plain file to be read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens the file at `path` to be read and written, made if it is not there, locked for the caller that
    /// holds the result; `None` if the caller has to take another name: it is locked already, or no plain file of
    /// the caller's own that has this name only. A link is not followed.
    ///
    /// # Errors
    /// What the system reports.
    fn open_locked(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>>;

    /// Locks the plain file at `path`, so that the caller may remove that name; `None` if it is locked already, or
    /// something else. A link is not followed.
    ///
    /// # Errors
    /// What the system reports.
    fn lock_to_remove(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.open_locked(path)
    }

    /// What is at `path`, if anything is; a link is not followed.
    fn entry(&self, path: &Path) -> Option<Entry>;

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

    /// The same, and all plain files and folders in the folders in it.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn files_below(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        self.files(folder)
    }

    /// Who writes and hashes long files.
    fn helpers(&self) -> Helpers;

    /// Opens the folder in which `path` is, below `root`: real folders all the way. No link is followed.
    ///
    /// # Errors
    /// Also if something else is in the way.
    fn enter(&self, root: &Path, path: &SafePath) -> io::Result<OpenFolder>;

    /// Makes a folder that only its owner may use, or lets its owner use one that is there; returns whether it was
    /// made. A link is not followed.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if something else has the name, or what else the system reports.
    fn make_folder(&self, path: &Path) -> io::Result<bool>;

    /// The number of a folder and when it was made, which differ from those of another one that gets its name, also
    /// after the system has started again; `None` if there is none. A link is not followed.
    fn folder_id(&self, path: &Path) -> Option<(u64, u64)>;

    /// Gives a folder its permissions and time.
    ///
    /// # Errors
    /// What the system reports.
    fn set_folder_attributes(&self, path: &Path, attributes: &Attributes) -> io::Result<()>;

    /// Makes a symbolic link, whose target need not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], or what else the system reports.
    fn make_link(&self, path: &Path, target: &str) -> io::Result<()>;

    /// Where a symbolic link leads; `None` if there is none.
    fn link_target(&self, path: &Path) -> Option<PathBuf>;

    /// Gives a symbolic link its time.
    ///
    /// # Errors
    /// What the system reports.
    fn set_link_time(&self, path: &Path, modified: (i64, u32)) -> io::Result<()>;
}

/// A folder that stays the same one while this lives, whatever gets its name meanwhile.
#[derive(Clone, Debug)]
pub struct OpenFolder {
    path: PathBuf,
    _held: Option<Arc<OwnedFd>>,
}

impl OpenFolder {
    /// A folder that nothing holds.
    pub fn unheld(path: PathBuf) -> Self {
        Self { path, _held: None }
    }

    /// A path of it, for as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
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

    /// The same, also where another change now might not show in it.
    ///
    /// # Errors
    /// What the system reports.
    fn present_state(&self) -> io::Result<FileState> {
        Ok(FileState::default())
    }

    /// From now on a change of the content by any program shows in [`is_unchanged`](Self::is_unchanged).
    ///
    /// # Errors
    /// What the system reports.
    fn watch(&self) -> io::Result<Watch>;

    /// Whether the content is what it was at a [`watch`](Self::watch).
    ///
    /// # Errors
    /// What the system reports.
    fn is_unchanged(&self, since: &Watch) -> io::Result<bool>;

    /// Its permissions and its time of modification.
    ///
    /// # Errors
    /// What the system reports.
    fn attributes(&self) -> io::Result<Attributes>;

    /// Gives it permissions.
    ///
    /// # Errors
    /// What the system reports.
    fn set_mode(&self, mode: u16) -> io::Result<()>;

    /// Sets its time of modification, which ends a [`watch`](Self::watch).
    ///
    /// # Errors
    /// What the system reports.
    fn set_modified(&self, modified: (i64, u32)) -> io::Result<()>;

    /// Where the hole ends in which `offset` is, which the disk does not store; `None` if there is data.
    fn hole_at(&self, offset: u64) -> Option<u64> {
        let _ = offset;
        None
    }

    /// Where the first hole begins from `offset` on, if there is one before the end.
    fn next_hole(&self, offset: u64) -> Option<u64> {
        let _ = offset;
        None
    }

    /// How many names it has; 0 once it was removed.
    ///
    /// # Errors
    /// What the system reports.
    fn names(&self) -> io::Result<u64>;

    /// Whether `path` is a name of this file. A link is not followed.
    ///
    /// # Errors
    /// What the system reports, unless it is that nothing is there.
    fn is_at(&self, path: &Path) -> io::Result<bool>;

    /// Gives this file, whatever is at its name `from` by now, the name `to`, which nothing may have yet. It may
    /// lose the name `from`.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`], or what else the system reports.
    fn give_name(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// What shows whether a file has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// How long it was.
    pub size: u64,
    /// A time of modification that no writing sets, in seconds and nanoseconds.
    pub modified: (i64, i64),
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
    /// A folder.
    Folder,
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

//! The disk of the system.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, SeekFrom, Timespec, Timestamps, flock, futimens,
    openat, utimensat,
};
#[cfg(target_os = "linux")]
use rustix::fs::{RenameFlags, linkat, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;
use weir_units::Duration;

use super::{Disk, DiskFile, Entry, FileState, Helpers, OpenFolder, StoredFile, Watch};
use crate::file::frame::Attributes;
use crate::file::path::SafePath;

/// The disk of the system.
#[derive(Debug)]
pub struct SystemDisk;

impl SystemDisk {
    /// The disk, for those that share it.
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
        let folder = path.parent().unwrap_or(Path::new("."));
        let folder_owner = fs::metadata(folder).map(|folder| folder.uid());
        // A file of another user can be changed by that user for as long as it is there.
        let is_own = |file: &Metadata| {
            file.nlink() == 1
                && (file.uid() == geteuid().as_raw()
                    || folder_owner.as_ref().is_ok_and(|owner| *owner == file.uid()))
        };
        lock(path, OpenOptions::new().read(true).write(true).create(true).truncate(false), is_own)
    }

    fn lock_to_remove(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        lock(path, OpenOptions::new().read(true), |_| true)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let there = fs::symlink_metadata(path).ok()?;
        Some(match there.file_type() {
            kind if kind.is_file() => Entry::File(there.len()),
            kind if kind.is_dir() => Entry::Folder,
            _ => Entry::Other,
        })
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
        let there = |entry: &fs::DirEntry| entry.metadata().ok().filter(Metadata::is_file);
        let stored = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            stored(entry.path(), &there(&entry)?)
        };
        Ok(fs::read_dir(folder)?.filter_map(stored).collect())
    }

    fn files_below(&self, folder: &Path) -> io::Result<Vec<StoredFile>> {
        let mut found = Vec::new();
        let mut entries = fs::read_dir(folder)?;
        // One at a time is open, however many there are.
        let mut folders = Vec::new();
        loop {
            // What is gone by now takes nothing.
            for entry in entries.flatten() {
                let Ok(there) = entry.metadata() else { continue };
                if there.is_dir() {
                    folders.push(entry.path());
                }
                if there.is_file() || there.is_dir() {
                    found.extend(stored(entry.path(), &there));
                }
            }
            entries = loop {
                match folders.pop().map(fs::read_dir) {
                    Some(Ok(entries)) => break entries,
                    Some(Err(_)) => {}
                    None => return Ok(found),
                }
            };
        }
    }

    fn helpers(&self) -> Helpers {
        Helpers::Threads
    }

    fn enter(&self, root: &Path, path: &SafePath) -> io::Result<OpenFolder> {
        let mut folders = path.folders().peekable();
        if folders.peek().is_none() {
            return Ok(OpenFolder::unheld(root.to_owned()));
        }
        let mut joined = root.to_owned();
        let mut held = openat(CWD, root, FOLDER, Mode::empty())?;
        for name in folders {
            held =
                openat(&held, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| {
                    match error {
                        Errno::NOTDIR | Errno::LOOP => {
                            io::Error::other(format!("'{name}' is no folder there"))
                        }
                        Errno::NOENT => io::Error::other(format!("there is no folder '{name}'")),
                        other => other.into(),
                    }
                })?;
            joined.push(name);
        }
        Ok(OpenFolder { path: path_of(&held).unwrap_or(joined), _held: Some(Arc::new(held)) })
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            made => return Ok(made.map(|()| true)?),
        }
        let there = fs::symlink_metadata(path)?;
        if !there.is_dir() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if there.mode() & 0o700 != 0o700 {
            let held = openat(CWD, path, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
            let by_descriptor = path_of(&held).unwrap_or(path.to_owned());
            let mode = there.mode() & 0o777 | 0o700;
            fs::set_permissions(by_descriptor, Permissions::from_mode(mode))?;
        }
        Ok(false)
    }

    fn folder_id(&self, path: &Path) -> Option<(u64, u64)> {
        let there = fs::symlink_metadata(path).ok().filter(Metadata::is_dir)?;
        let born =
            there.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        Some((there.ino(), born.map_or(0, |since| since.as_nanos() as u64)))
    }

    fn set_folder_attributes(&self, path: &Path, attributes: &Attributes) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(attributes.mode.into()))?;
        Ok(utimensat(CWD, path, &times(attributes.modified), AtFlags::empty())?)
    }

    fn make_link(&self, path: &Path, target: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, path)
    }

    fn link_target(&self, path: &Path) -> Option<PathBuf> {
        fs::read_link(path).ok()
    }

    fn set_link_time(&self, path: &Path, modified: (i64, u32)) -> io::Result<()> {
        Ok(utimensat(CWD, path, &times(modified), AtFlags::SYMLINK_NOFOLLOW)?)
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
        let state = self.present_state()?;
        let last = state.modified.0.max(state.changed.0);
        let age = i64::try_from(now.as_secs()).unwrap_or(i64::MAX).saturating_sub(last);
        Ok((age > COARSEST_TIMES).then_some(state))
    }

    fn present_state(&self) -> io::Result<FileState> {
        let there = self.metadata()?;
        Ok(FileState {
            device: there.dev(),
            inode: there.ino(),
            size: there.len(),
            modified: (there.mtime(), there.mtime_nsec()),
            changed: (there.ctime(), there.ctime_nsec()),
        })
    }

    fn watch(&self) -> io::Result<Watch> {
        // Writing sets the present time: no clock of a file system is so coarse that this is the same.
        let time = SystemTime::now() - std::time::Duration::from_secs(WATCH_AGE);
        File::set_modified(self, time)?;
        let there = self.metadata()?;
        Ok(Watch { size: there.len(), modified: (there.mtime(), there.mtime_nsec()) })
    }

    fn is_unchanged(&self, since: &Watch) -> io::Result<bool> {
        let there = self.metadata()?;
        let now = Watch { size: there.len(), modified: (there.mtime(), there.mtime_nsec()) };
        Ok(now == *since)
    }

    fn attributes(&self) -> io::Result<Attributes> {
        Ok(attributes_of(&self.metadata()?))
    }

    fn set_mode(&self, mode: u16) -> io::Result<()> {
        self.set_permissions(Permissions::from_mode(mode.into()))
    }

    fn set_modified(&self, modified: (i64, u32)) -> io::Result<()> {
        Ok(futimens(self, &times(modified))?)
    }

    fn hole_at(&self, offset: u64) -> Option<u64> {
        // lseek(2): there is no data up to the end.
        let data = match rustix::fs::seek(self, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => self.metadata().ok()?.len(),
            data => data.ok()?,
        };
        (data > offset).then_some(data)
    }

    fn next_hole(&self, offset: u64) -> Option<u64> {
        let hole = rustix::fs::seek(self, SeekFrom::Hole(offset)).ok()?;
        (hole < self.metadata().ok()?.len()).then_some(hole)
    }

    fn names(&self) -> io::Result<u64> {
        Ok(self.metadata()?.nlink())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(there) => Ok(is_same(&there, &self.metadata()?)),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(false),
                _ => Err(error),
            },
        }
    }

    fn give_name(&self, from: &Path, to: &Path) -> io::Result<()> {
        match link(self, to) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
            linked => return linked,
        }
        // Not every file system has links. Another program that puts something else in the file's place between two
        // of the following steps is found out at the last of them.
        if !self.is_at(from)? {
            return Err(io::ErrorKind::NotFound.into());
        }
        rename_to_new(from, to)?;
        if !self.is_at(to)? {
            rename_to_new(to, from)?;
        }
        Ok(())
    }
}

fn stored(path: PathBuf, there: &Metadata) -> Option<StoredFile> {
    let age = SystemTime::now().duration_since(there.modified().ok()?).unwrap_or_default();
    let age = Duration::from_nanos(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
    Some(StoredFile { path, occupied: there.blocks().saturating_mul(BLOCK), age })
}

/// What is kept of a file or folder of the system.
pub(crate) fn attributes_of(there: &Metadata) -> Attributes {
    let nanos = u32::try_from(there.mtime_nsec()).unwrap_or(0);
    Attributes { mode: (there.mode() & 0o777) as u16, modified: (there.mtime(), nanos) }
}

/// The time of modification alone: that of the last access stays.
fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    let omitted = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    let modified = Timespec { tv_sec: seconds, tv_nsec: nanos.into() };
    Timestamps { last_access: omitted, last_modification: modified }
}

/// A path that leads to an open folder, whatever has its name by now, where the system has such.
fn path_of(folder: &OwnedFd) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    (cfg!(target_os = "linux") && path.exists()).then_some(path)
}

/// Opens and locks the plain file at `path`, if it is `suitable`. A link is not followed, nor a pipe waited for.
fn lock(
    path: &Path,
    options: &mut OpenOptions,
    suitable: impl Fn(&Metadata) -> bool,
) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // Until it is whole, it is for no other user: its own permissions come with its name.
    let options = options.custom_flags(flags.bits() as i32).mode(0o600);
    loop {
        let file = match options.open(path) {
            Ok(file) => file,
            // There is something that cannot be opened.
            Err(_) if fs::symlink_metadata(path).is_ok() => return Ok(None),
            Err(error) => return Err(error),
        };
        let ours = file.metadata()?;
        if !ours.is_file() || !suitable(&ours) {
            return Ok(None);
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        // Its former owner may have renamed or removed it meanwhile.
        match fs::symlink_metadata(path) {
            Ok(there) if is_same(&there, &ours) => return Ok(Some(Arc::new(file))),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Gives an open file another name.
#[cfg(target_os = "linux")]
fn link(file: &File, to: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // open(2): without privileges a descriptor is linked by its name in /proc.
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Renames without replacing anything.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        result => return Ok(result?),
    }
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// How folders are opened: on Linux, also those that may not be read.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
/// The unit of `st_blocks` (POSIX leaves it open, Linux and macOS have this one).
const BLOCK: u64 = 512;
/// Some file systems keep times in steps of two seconds.
const COARSEST_TIMES: i64 = 2;
/// By how many seconds the time of a watched file is before the present.
const WATCH_AGE: u64 = 10;

//! What is sent of the paths that a user names: files, and all that is in folders.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_sockets::clock;
use weir_units::Instant;

use super::{Progress, TransferError, WATCH_INTERVAL, Watch};
use crate::file::{
    Disk, Header, MAX_PATH, OutgoingFile, OutgoingKind, SafePath, SystemDisk, attributes_of, plain,
};

/// Something in a folder that is not sent.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// Where it is,
    pub path: PathBuf,
    /// and why it is not sent.
    pub reason: String,
    /// Whether it belongs to the folder's content. A socket, a pipe and a device do not.
    pub is_missing: bool,
}

/// What is to be sent: folders before what is in them, then files, links, and the ends of folders, of the innermost
/// first.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) files: Vec<OutgoingFile>,
    pub(super) skipped: Vec<Skipped>,
}

/// Finds what there is, and reads every file once, for its hash.
pub(super) fn prepare(paths: &[PathBuf], watch: &mut Watch<'_>) -> Result<Prepared, TransferError> {
    let mut found = Found { disk: Some(SystemDisk::shared()), ..Found::default() };
    for path in paths {
        let cannot =
            |error| TransferError::system(&format!("cannot send '{}'", path.display()), &error);
        let there = fs::metadata(path).map_err(cannot)?;
        if there.is_dir() {
            found.add_tree(path, &there).map_err(cannot)?;
        } else {
            found.files.push((path.clone(), None));
        }
    }
    found.read(watch)
}

/// What there is, before files are read.
#[derive(Debug, Default)]
struct Found {
    disk: Option<Arc<dyn Disk>>,
    folders: Vec<OutgoingFile>,
    /// Each with its path in a folder, if it is in one.
    files: Vec<(PathBuf, Option<String>)>,
    links: Vec<OutgoingFile>,
    skipped: Vec<Skipped>,
}

impl Found {
    fn add_tree(&mut self, path: &Path, there: &Metadata) -> io::Result<()> {
        // The present folder has a name too.
        let name = match path.file_name() {
            Some(name) => name.to_owned(),
            None => fs::canonicalize(path)?.file_name().unwrap_or_default().to_owned(),
        };
        let Some(name) = name.to_str().filter(|name| !name.is_empty()) else {
            return Err(io::Error::other("a folder without a name that can be sent"));
        };
        // What cannot be read of the outermost folder is no detail of it.
        fs::read_dir(path)?;
        let mut folders = vec![(path.to_owned(), name.to_owned(), there.clone())];
        while let Some((path, name, there)) = folders.pop() {
            let mut entries = match fs::read_dir(&path).and_then(Iterator::collect) {
                Ok(entries) => entries,
                Err(error) => {
                    self.skip(&path, plain(&error));
                    Vec::<fs::DirEntry>::new()
                }
            };
            self.folders.push(self.entry(&path, OutgoingKind::Folder, &name, &there));
            entries.sort_by_key(fs::DirEntry::file_name);
            let before = folders.len();
            for entry in entries {
                self.add_entry(&entry, &name, &mut folders);
            }
            folders[before..].reverse();
        }
        Ok(())
    }

    fn add_entry(
        &mut self,
        entry: &fs::DirEntry,
        folder: &str,
        folders: &mut Vec<(PathBuf, String, Metadata)>,
    ) {
        let path = entry.path();
        let there = match entry.metadata() {
            Ok(there) => there,
            Err(error) => return self.skip(&path, plain(&error)),
        };
        let name = entry.file_name();
        let Some(name) = name.to_str().map(|name| format!("{folder}/{name}")) else {
            return self.skip(&path, "its name is not UTF-8".to_owned());
        };
        if name.len() > MAX_PATH {
            return self.skip(&path, format!("its path is longer than {MAX_PATH} bytes"));
        }
        match there.file_type() {
            kind if kind.is_dir() => folders.push((path, name, there)),
            kind if kind.is_file() => self.files.push((path, Some(name))),
            kind if kind.is_symlink() => self.add_link(&path, &name, &there),
            _ => {
                let reason = "a socket, pipe or device".to_owned();
                self.skipped.push(Skipped { path, reason, is_missing: false });
            }
        }
    }

    fn add_link(&mut self, path: &Path, name: &str, there: &Metadata) {
        let target = match fs::read_link(path) {
            Ok(target) => target,
            Err(error) => return self.skip(path, plain(&error)),
        };
        let Some(target) = target.to_str() else {
            return self.skip(path, "a link to a name that is not UTF-8".to_owned());
        };
        // The receiver says what is wrong with the path itself.
        let checked = SafePath::new(name).map_or(Ok(()), |path| path.check_target(target));
        if let Err(reason) = checked {
            return self.skip(path, reason);
        }
        let kind = OutgoingKind::Link { target: target.to_owned() };
        self.links.push(self.entry(path, kind, name, there));
    }

    fn skip(&mut self, path: &Path, reason: String) {
        self.skipped.push(Skipped { path: path.to_owned(), reason, is_missing: true });
    }

    fn entry(&self, path: &Path, kind: OutgoingKind, name: &str, there: &Metadata) -> OutgoingFile {
        let disk = self.disk.clone().unwrap_or_else(SystemDisk::shared);
        let header = Header { attributes: attributes_of(there), ..Header::new(name, 0, [0; 32]) };
        OutgoingFile::entry(disk, path, kind, header)
    }

    fn read(mut self, watch: &mut Watch<'_>) -> Result<Prepared, TransferError> {
        let mut ends = self.folders.clone();
        ends.reverse();
        ends.iter_mut().for_each(|folder| folder.kind = OutgoingKind::FolderEnd);
        let mut reader = Reader { watch, all: self.files.len() as u64, watched_at: clock::now() };
        let mut files = std::mem::take(&mut self.folders);
        for (done, (path, name)) in std::mem::take(&mut self.files).into_iter().enumerate() {
            match reader.read(&path, done as u64)? {
                Ok(mut file) => {
                    if let Some(name) = name {
                        file.header.name = name;
                    }
                    files.push(file);
                }
                Err(error) if name.is_some() => self.skip(&path, plain(&error)),
                Err(error) => {
                    let what = format!("cannot send '{}'", path.display());
                    return Err(TransferError::system(&what, &error));
                }
            }
        }
        files.append(&mut self.links);
        files.append(&mut ends);
        Ok(Prepared { files, skipped: self.skipped })
    }
}

/// Reads files and says how far it is.
struct Reader<'a, 'b> {
    watch: &'a mut Watch<'b>,
    all: u64,
    watched_at: Instant,
}

impl Reader<'_, '_> {
    /// # Errors
    /// If the watcher ends the transfer; inside, why the file cannot be read.
    fn read(&mut self, path: &Path, done: u64) -> Result<io::Result<OutgoingFile>, TransferError> {
        let progress = Progress {
            name: path.display().to_string(),
            hashing: true,
            files_done: done,
            files: self.all,
            ..Progress::default()
        };
        let mut interrupted = false;
        let now = clock::now();
        if now.saturating_since(self.watched_at) >= WATCH_INTERVAL {
            self.watched_at = now;
            interrupted |= (self.watch)(&progress).is_break();
        }
        let file = OutgoingFile::prepare(path, &mut |bytes_done, bytes| {
            let progress = Progress { bytes_done, bytes, ..progress.clone() };
            interrupted |= (self.watch)(&progress).is_break();
            if interrupted { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        if interrupted { Err(TransferError::Interrupted) } else { Ok(file) }
    }
}

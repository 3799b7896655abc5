//! Folders and links: what has a name but no content.
//!
//! A sender may only name what is in a folder that it has announced, and only a folder that a sender has made is
//! opened for another: what else lies next to it stays as it is. A link is made where nothing is, is never followed,
//! and stays in its folder wherever it leads.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::disk::{Disk, Entry, OpenFolder};
use super::frame::{Attributes, Verdict};
use super::partial::mark_of;
use super::path::SafePath;
use super::plain;

/// The outermost folders that a session has announced, each with the name that it has here.
#[derive(Debug, Default)]
pub(super) struct OpenTrees(BTreeMap<String, String>);

impl OpenTrees {
    /// Where `path` lies here: what is in a folder, in the folder that was opened under that name.
    ///
    /// # Errors
    /// If its outermost folder was not announced.
    pub(super) fn locate(&self, path: &SafePath) -> Result<SafePath, String> {
        let (top, is_folder) = path.top();
        if !is_folder {
            return Ok(path.clone());
        }
        let known = self.0.get(top).map(|here| path.below(here));
        known.ok_or_else(|| format!("the folder '{top}' was not announced"))
    }

    /// The same for a folder, which may be an outermost one.
    pub(super) fn locate_folder(&self, path: &SafePath) -> Result<SafePath, String> {
        match path.top() {
            (top, false) if self.0.contains_key(top) => Ok(path.below(&self.0[top])),
            (top, false) => Err(format!("the folder '{top}' was not announced")),
            (_, true) => self.locate(path),
        }
    }

    /// The memory that it takes, in bytes.
    pub(super) fn held(&self) -> usize {
        let cost = |(name, here): (&String, &String)| name.len() + here.len() + COST_OF_A_NAME;
        self.0.iter().map(cost).sum()
    }

    /// Makes a folder, or opens one that is there. Its names come to the disk with what is in it.
    pub(super) fn open(&mut self, disk: &dyn Disk, root: &Path, path: &SafePath) -> Verdict {
        let opened = match path.top() {
            (_, true) => self.locate(path).and_then(|here| {
                let folder = disk.enter(root, &here).map_err(|error| plain(&error))?;
                let made = make(disk, &folder.path().join(here.name()), here.name())?;
                Ok((here.to_string(), made))
            }),
            (top, false) if self.0.len() >= MOST_TREES && !self.0.contains_key(top) => {
                Err(format!("more than {MOST_TREES} folders next to each other"))
            }
            (top, false) => {
                let opened = open_tree(disk, root, path);
                if let Ok((here, _)) = &opened {
                    self.0.insert(top.to_owned(), here.clone());
                }
                opened
            }
        };
        match opened {
            Ok((name, true)) => Verdict::Kept { name },
            Ok((name, false)) => Verdict::Already { name },
            Err(reason) => Verdict::Refused { reason },
        }
    }
}

/// The first name, or number of it, that is free or has a folder that a sender has made.
fn open_tree(disk: &dyn Disk, root: &Path, path: &SafePath) -> Result<(String, bool), String> {
    for number in 0..=MAX_NUMBER {
        let name = path.numbered(number).to_string();
        let (at, mark) = (root.join(&name), root.join(mark_of(&name)));
        match disk.entry(&at) {
            None => {
                let made = make(disk, &at, &name)?;
                let noted = write_mark(disk, &at, &mark);
                noted.map_err(|error| format!("cannot note '{name}': {}", plain(&error)))?;
                return Ok((name, made));
            }
            Some(Entry::Folder) if has_mark(disk, &at, &mark) => {
                let made = make(disk, &at, &name)?;
                return Ok((name, made));
            }
            Some(_) => {}
        }
    }
    Err(format!("'{path}' and {MAX_NUMBER} numbered ones are taken"))
}

fn make(disk: &dyn Disk, path: &Path, name: &str) -> Result<bool, String> {
    disk.make_folder(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("'{name}' is there, and no folder"),
        _ => format!("cannot make '{name}': {}", plain(&error)),
    })
}

/// Notes that a sender has made this folder: another one of the same name is not the same.
fn write_mark(disk: &dyn Disk, folder: &Path, mark: &Path) -> io::Result<()> {
    let Some(id) = disk.folder_id(folder) else { return Err(io::ErrorKind::NotFound.into()) };
    let Some(file) = disk.open_locked(mark)? else {
        return Err(io::Error::other("something else has the name of its mark"));
    };
    file.set_size(0)?;
    file.write_all_at(&content_of(id), 0)?;
    file.sync()
}

fn has_mark(disk: &dyn Disk, folder: &Path, mark: &Path) -> bool {
    let Some(id) = disk.folder_id(folder).filter(|_| disk.entry(mark).is_some()) else {
        return false;
    };
    let read = || {
        let Some(file) = disk.open_locked(mark)? else { return Ok(false) };
        let mut there = [0; MARK_LEN + 1];
        let len = super::disk::read_full(file.as_ref(), 0, &mut there)?;
        io::Result::Ok(there[..len] == content_of(id))
    };
    read().unwrap_or(false)
}

fn content_of((number, born): (u64, u64)) -> [u8; MARK_LEN] {
    let mut content = [0; MARK_LEN];
    content[..8].copy_from_slice(&number.to_be_bytes());
    content[8..].copy_from_slice(&born.to_be_bytes());
    content
}

/// Makes a link that stays in its folder, as was checked, unless the same one is there.
pub(super) fn make_link(
    disk: &dyn Disk,
    root: &Path,
    path: &SafePath,
    target: &str,
    modified: (i64, u32),
) -> io::Result<Verdict> {
    let folder = disk.enter(root, path)?;
    let at = folder.path().join(path.name());
    let name = path.to_string();
    let verdict = match disk.make_link(&at, target) {
        Ok(()) => Verdict::Kept { name },
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if disk.link_target(&at).as_deref() != Some(Path::new(target)) {
                return Ok(Verdict::Refused { reason: format!("'{name}' is there already") });
            }
            Verdict::Already { name }
        }
        Err(error) => return Err(error),
    };
    // Another user's link keeps its time.
    let _ = disk.set_link_time(&at, modified);
    sync_up(disk, root, path, &folder)?;
    Ok(verdict)
}

/// All that is in a folder has come.
pub(super) fn end_folder(
    disk: &dyn Disk,
    root: &Path,
    path: &SafePath,
    attributes: &Attributes,
) -> io::Result<Verdict> {
    let inside = disk.enter(root, &path.inside())?;
    disk.set_folder_attributes(inside.path(), attributes)?;
    disk.sync_folder(inside.path())?;
    sync_up(disk, root, path, &disk.enter(root, path)?)?;
    Ok(Verdict::Kept { name: path.to_string() })
}

/// Brings the names of `path` to the disk: in its open `folder`, and of each folder that this is in.
pub(super) fn sync_up(
    disk: &dyn Disk,
    root: &Path,
    path: &SafePath,
    folder: &OpenFolder,
) -> io::Result<()> {
    disk.sync_folder(folder.path())?;
    let mut next = path.folder();
    while let Some(above) = next {
        disk.sync_folder(disk.enter(root, &above)?.path())?;
        next = above.folder();
    }
    Ok(())
}

/// How many outermost folders a session may have.
const MOST_TREES: usize = 1_000;
/// What a name takes next to its bytes.
const COST_OF_A_NAME: usize = 100;
/// How many folders of one name there may be.
const MAX_NUMBER: u32 = 999;
const MARK_LEN: usize = 16;

//! Another program that writes to the receiver's folder: at any operation of the disk it changes a partial file, or
//! puts something else in its place.

use std::path::{Path, PathBuf};

use weir_units::{Rng, stream};

use super::disk::{Inode, State};

/// What another program does, and when.
#[derive(Debug)]
pub(crate) struct Intruder {
    /// In which operations of the disk it comes first, and what it does then.
    plan: Vec<(u64, Change)>,
    rng: Rng,
}

/// What it does to a partial file.
#[derive(Clone, Copy, Debug)]
enum Change {
    FlipBit,
    Hole,
    Cut,
    Append,
    /// Another file of the same length in its place, which differs in a bit or does not.
    OtherFile,
    /// A symbolic link in its place.
    Link,
    /// Another name for it.
    OtherName,
    Remove,
}

impl Intruder {
    /// A program that changes partial files a few times, at operations below `operations` after it has started.
    pub(crate) fn of(seed: u64, operations: u64) -> Self {
        let mut rng = stream(seed, "another program on the disk");
        let mut plan: Vec<_> = (0..=rng.below(3))
            .map(|_| (rng.below(operations), ALL[rng.below(ALL.len() as u64) as usize]))
            .collect();
        plan.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        Self { plan, rng }
    }

    /// Its times are counted from this operation on.
    pub(super) fn after(mut self, now: u64) -> Self {
        self.plan.iter_mut().for_each(|(at, _)| *at += now);
        self
    }

    pub(super) fn on_operation(&mut self, disk: &mut State) {
        while self.plan.last().is_some_and(|(at, _)| *at <= disk.operations) {
            let Some(path) = self.choose(disk) else { return };
            let Some((_, change)) = self.plan.pop() else { return };
            self.change(disk, &path, change);
            disk.tally.count("changes by another program");
        }
    }

    /// A partial file that has no final name yet.
    fn choose(&mut self, disk: &State) -> Option<PathBuf> {
        let partial = |(path, inode): &(&PathBuf, &u64)| {
            is_partial(path) && !disk.inodes[*inode].is_published
        };
        let all: Vec<_> = disk.names.iter().filter(partial).map(|(path, _)| path).collect();
        let at = self.rng.below(all.len().max(1) as u64) as usize;
        all.get(at).map(|path| (*path).clone())
    }

    fn change(&mut self, disk: &mut State, path: &Path, change: Change) {
        let inode = disk.names[path];
        let Some(file) = disk.inodes.get_mut(&inode) else { return };
        let len = file.content.len();
        let at = self.rng.below(len.max(1) as u64) as usize;
        match change {
            Change::FlipBit => flip(file, at),
            Change::Hole => file.content[at..].iter_mut().take(4_096).for_each(|byte| *byte = 0),
            Change::Cut => file.content.truncate(at),
            Change::Append => file.content.push(7),
            Change::OtherFile => {
                let mut other = file.clone();
                if self.rng.below(3) > 0 {
                    flip(&mut other, at);
                }
                self.replace(disk, path, other);
            }
            Change::Link => {
                let link =
                    Inode { content: b"elsewhere".to_vec(), is_link: true, ..Inode::default() };
                self.replace(disk, path, link);
            }
            Change::OtherName => {
                let name = format!("{OTHER}{}", disk.operations);
                disk.name(&path.with_file_name(name), inode);
            }
            Change::Remove => drop(disk.unname(path)),
        }
        if let Some(file) = disk.inodes.get_mut(&inode) {
            file.changes += 1;
            file.dirty = true;
        }
    }

    fn replace(&self, disk: &mut State, path: &Path, by: Inode) {
        let inode = disk.take_number();
        disk.inodes.insert(inode, by);
        disk.unname(path);
        disk.name(path, inode);
    }
}

/// Whether a name is one that the receiver gives to partial files.
pub(super) fn is_partial(path: &Path) -> bool {
    path.to_string_lossy().contains("/.weir-")
}

/// Whether the other program has given a file this name.
pub(super) fn is_its(path: &Path) -> bool {
    path.to_string_lossy().contains(OTHER)
}

fn flip(file: &mut Inode, at: usize) {
    if let Some(byte) = file.content.get_mut(at) {
        *byte ^= 1;
    }
}

const OTHER: &str = "another-name-";
const ALL: [Change; 8] = [
    Change::FlipBit,
    Change::Hole,
    Change::Cut,
    Change::Append,
    Change::OtherFile,
    Change::Link,
    Change::OtherName,
    Change::Remove,
];

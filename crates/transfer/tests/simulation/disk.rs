//! A disk with a page cache: what was not synced is lost, in part or as a whole, when the machine goes
//! down, and stays when only a process does.
//!
//! A machine has one folder space and any number of processes, each with its handle ([`ProcessDisk`]).
//! Every operation is counted; at the number that was chosen the process or the machine dies before, in
//! the middle of, or after it. A dead process has no effect on anything any more.

// Fuzzing includes this file from another folder.
#[path = "disk/open_file.rs"]
mod open_file;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use weir_transfer::file::{
    Attributes, Disk, DiskFile, Entry, Helpers, OpenFolder, SafePath, Watch,
};
use weir_units::{Rng, stream};

use super::intruder::{self, Intruder};
use super::tally::Tally;

/// The disk of a machine, which outlives its processes.
#[derive(Clone, Debug)]
pub(crate) struct Machine(Arc<Mutex<State>>);

/// What a process sees of its machine's disk.
#[derive(Clone, Debug)]
pub(crate) struct ProcessDisk {
    machine: Machine,
    process: u64,
}

/// What dies at a disk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Process,
    Machine,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) names: BTreeMap<PathBuf, u64>,
    /// The names that survive the machine, and what was done to them since.
    durable_names: BTreeMap<PathBuf, u64>,
    unsynced: Vec<NameChange>,
    /// Which handle has locked an inode.
    locks: BTreeMap<u64, u64>,
    next: u64,
    /// The process that runs.
    process: Option<u64>,
    /// At which operation something dies.
    doom: Option<(u64, Death)>,
    died: Option<Death>,
    pub(super) rng: Rng,
    /// Another program that writes to the folder, and when it does, in operations.
    intruder: Option<Intruder>,
    /// How many bytes there may be.
    capacity: u64,
    /// One of this many operations fails with an input/output error,
    error_every: Option<u64>,
    /// and the one with this number.
    error_at: Option<u64>,
    pub(super) operations: u64,
    pub(super) tally: Tally,
    /// Names that a file was given for good, in order.
    published: Vec<PathBuf>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) content: Vec<u8>,
    /// What survives the machine.
    pub(super) durable: Vec<u8>,
    pub(super) dirty: bool,
    /// Changes of the content, which the time of modification shows.
    pub(super) changes: i64,
    /// It has its final name: it is not the receiver's any more.
    pub(super) is_published: bool,
    /// A symbolic link, whose target is the content.
    pub(super) is_link: bool,
    /// A folder: what is in it has a path below its own.
    pub(super) is_folder: bool,
    pub(super) attributes: Attributes,
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Create(PathBuf, u64),
    Remove(PathBuf),
}

/// An open file.
#[derive(Debug)]
struct OpenFile {
    disk: ProcessDisk,
    inode: u64,
    handle: u64,
}

impl Machine {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(Arc::new(Mutex::new(State {
            inodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced: Vec::new(),
            locks: BTreeMap::new(),
            next: 1,
            process: None,
            doom: None,
            died: None,
            rng: stream(seed, name),
            intruder: None,
            capacity: DISK,
            error_every: None,
            error_at: None,
            operations: 0,
            tally: Tally::default(),
            published: Vec::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no thread panics with it")
    }

    /// Starts the machine's process.
    pub(crate) fn start(&self) -> ProcessDisk {
        let mut state = self.state();
        let process = state.take_number();
        state.process = Some(process);
        state.died = None;
        ProcessDisk { machine: self.clone(), process }
    }

    /// Kills the process, if there is one.
    pub(crate) fn kill(&self, death: Death) {
        let mut state = self.state();
        state.die(death);
        state.died = None;
    }

    /// Who died at an operation since this was last asked.
    pub(crate) fn take_death(&self) -> Option<Death> {
        self.state().died.take()
    }

    /// A process dies after this many operations.
    pub(crate) fn doom(&self, after: u64, death: Death) {
        let mut state = self.state();
        state.doom = Some((state.operations + after, death));
    }

    /// There is space again, and nothing fails.
    pub(crate) fn mend(&self) {
        let mut state = self.state();
        state.capacity = DISK;
        state.error_every = None;
        state.error_at = None;
    }

    /// Nothing dies at an operation any more.
    pub(crate) fn spare(&self) {
        self.state().doom = None;
    }

    /// From now on only this many more bytes can be written.
    pub(crate) fn fill_up(&self, left: u64) {
        let mut state = self.state();
        state.capacity = state.used() + left;
    }

    /// From now on one of this many operations fails.
    pub(crate) fn fail_every(&self, operations: u64) {
        self.state().error_every = Some(operations);
    }

    /// The operation fails that comes after this many others.
    pub(crate) fn fail_once(&self, after: u64) {
        let mut state = self.state();
        state.error_at = Some(state.operations + after);
    }

    /// From now on another program changes the receiver's partial files.
    pub(crate) fn intrude(&self, intruder: Intruder) {
        let mut state = self.state();
        let now = state.operations;
        state.intruder = Some(intruder.after(now));
    }

    /// Puts a file there for good.
    pub(crate) fn put(&self, path: &Path, content: &[u8]) {
        let mut state = self.state();
        let inode = state.take_number();
        let attributes = attributes_of(content.len());
        let (content, durable) = (content.to_vec(), content.to_vec());
        let file = Inode { content, durable, attributes, ..Inode::default() };
        state.inodes.insert(inode, file);
        state.names.insert(path.to_owned(), inode);
        state.durable_names.insert(path.to_owned(), inode);
        for folder in path.ancestors().skip(1).filter(|folder| folder.components().count() > 2) {
            if state.names.contains_key(folder) {
                continue;
            }
            let inode = state.take_number();
            state.inodes.insert(inode, Inode { is_folder: true, ..Inode::default() });
            state.names.insert(folder.to_owned(), inode);
            state.durable_names.insert(folder.to_owned(), inode);
        }
    }

    pub(crate) fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        Some(state.inodes[state.names.get(path)?].content.clone())
    }

    /// What is kept of a file or folder next to its content.
    pub(crate) fn attributes(&self, path: &Path) -> Option<Attributes> {
        let state = self.state();
        Some(state.inodes[state.names.get(path)?].attributes)
    }

    pub(crate) fn is_folder(&self, path: &Path) -> bool {
        let state = self.state();
        state.names.get(path).is_some_and(|inode| state.inodes[inode].is_folder)
    }

    /// The bytes of the partial file of a content, if there is one.
    pub(crate) fn partial(&self, hash: &[u8; 32]) -> Option<Vec<u8>> {
        let id: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let state = self.state();
        let mut names = state.names.iter();
        let (_, inode) = names.find(|(name, _)| name.to_string_lossy().contains(&id))?;
        Some(state.inodes[inode].content.clone())
    }

    /// The names in the folders, and how much is behind each.
    pub(crate) fn names(&self) -> Vec<(PathBuf, usize)> {
        let state = self.state();
        let len = |inode: &u64| state.inodes[inode].content.len();
        state.names.iter().map(|(name, inode)| (name.clone(), len(inode))).collect()
    }

    /// Names that files were given since this was last asked, but for those that were taken back.
    pub(crate) fn take_published(&self) -> Vec<PathBuf> {
        let mut state = self.state();
        let mut published = std::mem::take(&mut state.published);
        published.retain(|path| {
            let inode = state.names.get(path).and_then(|inode| state.inodes.get(inode));
            // A process that dies before it has looked at the file again has said nothing of it.
            state.intruder.is_none() || inode.is_some_and(|inode| inode.is_published)
        });
        published
    }

    pub(crate) fn tally(&self) -> Tally {
        let state = self.state();
        let mut tally = state.tally.clone();
        tally.add("disk operations", state.operations);
        tally
    }
}

impl State {
    pub(super) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn used(&self) -> u64 {
        let named: BTreeSet<_> = self.names.values().collect();
        named.into_iter().map(|inode| self.inodes[inode].content.len() as u64).sum()
    }

    fn names_of(&self, inode: u64) -> u64 {
        self.names.values().filter(|named| **named == inode).count() as u64
    }

    pub(super) fn name(&mut self, path: &Path, inode: u64) {
        self.names.insert(path.to_owned(), inode);
        self.unsynced.push(NameChange::Create(path.to_owned(), inode));
    }

    fn make(&mut self, path: &Path, inode: Inode) {
        let number = self.take_number();
        self.inodes.insert(number, inode);
        self.name(path, number);
    }

    pub(super) fn unname(&mut self, path: &Path) -> Option<u64> {
        let inode = self.names.remove(path)?;
        self.unsynced.push(NameChange::Remove(path.to_owned()));
        Some(inode)
    }

    fn die(&mut self, death: Death) {
        self.process = None;
        self.locks.clear();
        self.doom = None;
        self.died = Some(death);
        if death == Death::Machine {
            self.lose_power();
        }
        // A file without a name is gone with the process that had it open.
        let State { inodes, names, durable_names, unsynced, .. } = self;
        let created = unsynced.iter().filter_map(|change| match change {
            NameChange::Create(_, inode) => Some(inode),
            _ => None,
        });
        let named: BTreeSet<_> =
            names.values().chain(durable_names.values()).chain(created).copied().collect();
        inodes.retain(|inode, _| named.contains(inode));
    }

    /// What was not synced arrives on the disk sector by sector, or does not.
    fn lose_power(&mut self) {
        let unsynced = std::mem::take(&mut self.unsynced);
        // A journalling file system keeps the order; another may keep any of them.
        let in_order = self.rng.below(2) == 0;
        let kept = self.rng.below(unsynced.len() as u64 + 1);
        for (n, change) in unsynced.into_iter().enumerate() {
            let keeps = if in_order { (n as u64) < kept } else { self.rng.below(2) == 0 };
            if keeps {
                apply(&mut self.durable_names, change);
            } else {
                self.tally.count("names lost without power");
            }
        }
        self.durable_names = reachable(&self.durable_names, &self.inodes);
        self.names = self.durable_names.clone();
        for inode in self.inodes.values_mut().filter(|inode| inode.dirty) {
            self.tally.add("sectors lost without power", inode.tear(&mut self.rng));
        }
    }

    /// Counts an operation of `process` and decides its fate.
    fn begin(&mut self, process: u64) -> io::Result<Fate> {
        if self.process != Some(process) {
            return Err(io::Error::other("the process is dead"));
        }
        self.operations += 1;
        if let Some(mut intruder) = self.intruder.take() {
            intruder.on_operation(self);
            self.intruder = Some(intruder);
        }
        if let Some((at, death)) = self.doom
            && self.operations >= at
        {
            return Ok(match self.rng.below(3) {
                0 => Fate::Before(death),
                1 => Fate::Amid(death),
                _ => Fate::After(death),
            });
        }
        let fails_now = self.error_at.take_if(|at| self.operations >= *at).is_some();
        if fails_now || self.error_every.is_some_and(|every| self.rng.below(every) == 0) {
            self.tally.count("input/output errors");
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(Fate::Done)
    }

    /// An operation that cannot be half done.
    fn act<R>(
        &mut self,
        process: u64,
        act: impl FnOnce(&mut Self) -> io::Result<R>,
    ) -> io::Result<R> {
        match self.begin(process)? {
            Fate::Done => act(self),
            Fate::Before(death) => Err(self.end(death)),
            Fate::Amid(death) | Fate::After(death) => {
                let _ = act(self);
                Err(self.end(death))
            }
        }
    }

    fn end(&mut self, death: Death) -> io::Error {
        self.die(death);
        io::Error::other("the process is dead")
    }

    /// How much is written by a process that dies meanwhile: the kernel looks for that between pages.
    fn whole_pages(&mut self, offset: u64, len: usize) -> usize {
        let (first, last) = (offset / PAGE + 1, (offset + len as u64) / PAGE);
        if last < first {
            return 0;
        }
        let pages = self.rng.below(last - first + 2);
        if pages == 0 { 0 } else { ((first + pages - 1) * PAGE - offset) as usize }
    }

    fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let used = self.used();
        let Some(file) = self.inodes.get_mut(&inode) else { return Err(gone()) };
        let end = offset as usize + bytes.len();
        let grows = end.saturating_sub(file.content.len()) as u64;
        let fits = self.capacity.saturating_sub(used).min(grows);
        let written = bytes.len() - ((grows - fits) as usize).min(bytes.len());
        if written > 0 {
            let end = offset as usize + written;
            file.content.resize(file.content.len().max(end), 0);
            file.content[offset as usize..end].copy_from_slice(&bytes[..written]);
            file.dirty = true;
            file.changes += 1;
        }
        if written < bytes.len() {
            self.tally.count("writes to a full disk");
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// What becomes of an operation.
enum Fate {
    Done,
    Before(Death),
    Amid(Death),
    After(Death),
}

impl NameChange {
    fn path(&self) -> &Path {
        match self {
            Self::Create(path, _) | Self::Remove(path) => path,
        }
    }
}

/// The names whose folders are there: those at the top are always.
fn reachable(
    names: &BTreeMap<PathBuf, u64>,
    inodes: &BTreeMap<u64, Inode>,
) -> BTreeMap<PathBuf, u64> {
    let is_folder = |path: &Path| {
        let inode = names.get(path).and_then(|inode| inodes.get(inode));
        path.components().count() <= 2 || inode.is_some_and(|inode| inode.is_folder)
    };
    let is_reachable = |path: &Path| path.ancestors().skip(1).all(is_folder);
    names
        .iter()
        .filter(|(path, _)| is_reachable(path))
        .map(|(path, n)| (path.clone(), *n))
        .collect()
}

fn apply(names: &mut BTreeMap<PathBuf, u64>, change: NameChange) {
    match change {
        NameChange::Create(name, inode) => {
            names.insert(name, inode);
        }
        NameChange::Remove(name) => {
            names.remove(&name);
        }
    }
}

impl Inode {
    fn is_file(&self) -> bool {
        !self.is_link && !self.is_folder
    }

    /// What shows whether the content changes.
    fn state(&mut self) -> Watch {
        Watch { size: self.content.len() as u64, modified: (self.changes, 0) }
    }

    /// The content after the machine went down: of each sector and of the length the old or the new.
    /// Returns how many sectors are old.
    fn tear(&mut self, rng: &mut Rng) -> u64 {
        let mut torn = 0;
        let new = std::mem::take(&mut self.content);
        let longer = rng.below(3) > 0;
        let len = if longer { new.len() } else { self.durable.len() };
        // Sometimes all arrived, or nothing.
        let percent = [0, 50, 90, 100][rng.below(4) as usize];
        let mut content = std::mem::take(&mut self.durable);
        content.resize(len, 0);
        for (n, sector) in content.chunks_mut(SECTOR).enumerate() {
            let Some(new) = new.get(n * SECTOR..) else { break };
            let new = &new[..new.len().min(sector.len())];
            if sector[..new.len()] == *new {
                continue;
            }
            if rng.below(100) < percent {
                sector[..new.len()].copy_from_slice(new);
            } else {
                torn += 1;
            }
        }
        self.content.clone_from(&content);
        self.durable = content;
        self.dirty = false;
        torn
    }
}

impl ProcessDisk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.machine.state()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state().process == Some(self.process)
    }

    /// Locks a file for the caller; `None` if another one has it, or it is not `suitable`.
    fn lock(
        &self,
        path: &Path,
        suitable: impl Fn(&State, u64) -> bool,
    ) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let lock = |state: &mut State| {
            let handle = state.take_number();
            let inode = match state.names.get(path) {
                Some(inode) => *inode,
                None => {
                    let inode = state.take_number();
                    state.inodes.insert(inode, Inode::default());
                    state.name(path, inode);
                    inode
                }
            };
            if state.locks.contains_key(&inode) || !suitable(state, inode) {
                return Ok(None);
            }
            state.locks.insert(inode, handle);
            Ok(Some((inode, handle)))
        };
        let locked = self.state().act(self.process, lock)?;
        Ok(locked.map(|(inode, handle)| self.file(inode, handle)))
    }

    fn file(&self, inode: u64, handle: u64) -> Arc<dyn DiskFile> {
        Arc::new(OpenFile { disk: self.clone(), inode, handle })
    }
}

impl Disk for ProcessDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let found = |state: &mut State| state.names.get(path).copied().ok_or_else(gone);
        let inode = self.state().act(self.process, found)?;
        Ok(self.file(inode, 0))
    }

    fn open_locked(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.lock(path, |state, inode| state.names_of(inode) == 1 && state.inodes[&inode].is_file())
    }

    fn lock_to_remove(&self, path: &Path) -> io::Result<Option<Arc<dyn DiskFile>>> {
        if !self.state().names.contains_key(path) {
            return Ok(None);
        }
        self.lock(path, |state, inode| state.inodes[&inode].is_file())
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let find = |state: &mut State| state.names.get(path).copied().ok_or_else(gone);
        let mut state = self.state();
        let inode = state.act(self.process, find).ok()?;
        let there = state.inodes.get(&inode)?;
        Some(match there {
            Inode { is_folder: true, .. } => Entry::Folder,
            Inode { is_link: true, .. } => Entry::Other,
            file => Entry::File(file.content.len() as u64),
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let remove = |state: &mut State| state.unname(path).map(drop).ok_or_else(gone);
        self.state().act(self.process, remove)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let sync = |state: &mut State| {
            for change in std::mem::take(&mut state.unsynced) {
                if change.path().parent() == Some(folder) {
                    apply(&mut state.durable_names, change);
                } else {
                    state.unsynced.push(change);
                }
            }
            Ok(())
        };
        self.state().act(self.process, sync)
    }

    fn free_space(&self, _: &Path) -> Option<u64> {
        let free = |state: &mut State| Ok(state.capacity.saturating_sub(state.used()));
        self.state().act(self.process, free).ok()
    }

    fn helpers(&self) -> Helpers {
        Helpers::Inline
    }

    fn enter(&self, root: &Path, path: &SafePath) -> io::Result<OpenFolder> {
        let folders: Vec<_> = path.folders().collect();
        let walk = |state: &mut State| {
            let mut at = root.to_owned();
            for name in folders {
                at.push(name);
                let inode = state.names.get(&at).ok_or_else(gone)?;
                if !state.inodes.get(inode).is_some_and(|inode| inode.is_folder) {
                    return Err(io::Error::other("no folder"));
                }
            }
            Ok(OpenFolder::unheld(at))
        };
        self.state().act(self.process, walk)
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        let make = |state: &mut State| {
            if let Some(inode) = state.names.get(path) {
                return match state.inodes[inode].is_folder {
                    true => Ok(false),
                    false => Err(io::ErrorKind::AlreadyExists.into()),
                };
            }
            state.make(path, Inode { is_folder: true, ..Inode::default() });
            state.tally.count("folders");
            Ok(true)
        };
        self.state().act(self.process, make)
    }

    fn folder_id(&self, path: &Path) -> Option<(u64, u64)> {
        let find = |state: &mut State| {
            let inode = *state.names.get(path).ok_or_else(gone)?;
            if state.inodes[&inode].is_folder { Ok((0, inode)) } else { Err(gone()) }
        };
        self.state().act(self.process, find).ok()
    }

    fn set_folder_attributes(&self, path: &Path, attributes: &Attributes) -> io::Result<()> {
        let set = |state: &mut State| {
            let inode = *state.names.get(path).ok_or_else(gone)?;
            state.inodes.entry(inode).and_modify(|inode| inode.attributes = *attributes);
            Ok(())
        };
        self.state().act(self.process, set)
    }

    fn make_link(&self, path: &Path, target: &str) -> io::Result<()> {
        let make = |state: &mut State| {
            if state.names.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let content = target.as_bytes().to_vec();
            let durable = content.clone();
            state.make(path, Inode { content, durable, is_link: true, ..Inode::default() });
            state.tally.count("links");
            Ok(())
        };
        self.state().act(self.process, make)
    }

    fn link_target(&self, path: &Path) -> Option<PathBuf> {
        let read = |state: &mut State| {
            let link = &state.inodes[state.names.get(path).ok_or_else(gone)?];
            let target = String::from_utf8_lossy(&link.content).into_owned();
            if link.is_link { Ok(PathBuf::from(target)) } else { Err(gone()) }
        };
        self.state().act(self.process, read).ok()
    }

    fn set_link_time(&self, path: &Path, modified: (i64, u32)) -> io::Result<()> {
        let set = |state: &mut State| {
            let inode = *state.names.get(path).ok_or_else(gone)?;
            state.inodes.entry(inode).and_modify(|inode| inode.attributes.modified = modified);
            Ok(())
        };
        self.state().act(self.process, set)
    }
}

/// Some that differ from file to file.
pub(crate) fn attributes_of(len: usize) -> Attributes {
    Attributes { mode: 0o600 + (len % 64) as u16, modified: (len as i64, 5) }
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// What there is space for: more than all honest files take, less than an attacker may announce.
const DISK: u64 = 256 << 20;
const PAGE: u64 = 4_096;
const SECTOR: usize = 512;
/// `EIO` of Linux and macOS.
const EIO: i32 = 5;

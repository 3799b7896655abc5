//! The last steps of a file, which may take as long as a disk does: they have a thread of their own,
//! so that nobody else's transfer waits for them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use blake3::Hasher;

use super::disk::{Disk, DiskFile, Entry};
use super::frame::{Hash, Verdict};
use super::name::numbered;
use super::partial::{Partial, remove_leftovers};
use crate::clock;

/// A thread that compares, verifies and keeps files. Dropping it waits for what it has to do.
#[derive(Debug)]
pub struct Keeper {
    tasks: Sender<Option<Task>>,
    worker: Worker,
}

/// Who does what the keeper has to do.
#[derive(Debug)]
enum Worker {
    /// A thread, until it is waited for.
    Thread(Option<JoinHandle<()>>),
    /// Whoever calls [`Keeper::work`].
    Caller(Receiver<Option<Task>>),
}

/// A session's way to the keeper.
#[derive(Debug)]
pub(crate) struct Desk {
    tasks: Sender<Option<Task>>,
    own: Sender<Report>,
    reports: Receiver<Report>,
    waiting: usize,
}

/// What the keeper found or did.
#[derive(Debug)]
pub(crate) enum Report {
    /// Under which name the folder has the file already.
    Found { file: u32, name: Option<String>, hash: Hash },
    /// How the file ended, and when its hash was known on the machine's monotonic clock.
    Done { file: u32, verdict: io::Result<Verdict>, verified_ns: u64 },
}

#[derive(Debug)]
struct Task {
    file: u32,
    name: String,
    job: Job,
    report: Sender<Report>,
}

#[derive(Debug)]
enum Job {
    Find { disk: Arc<dyn Disk>, folder: PathBuf, size: u64, hash: Hash },
    Keep(Box<Partial>),
}

impl Keeper {
    /// A keeper with its thread.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn start() -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel::<Option<Task>>();
        let work = move || {
            while let Ok(Some(task)) = inbox.recv() {
                task.carry_out();
            }
        };
        let thread = std::thread::Builder::new().name("weir-keeper".into()).spawn(work)?;
        Ok(Self { tasks, worker: Worker::Thread(Some(thread)) })
    }

    /// A keeper without a thread, for simulations: it does nothing by itself.
    pub fn without_thread() -> Self {
        let (tasks, inbox) = mpsc::channel();
        Self { tasks, worker: Worker::Caller(inbox) }
    }

    /// Does the next task of a keeper without a thread. Returns whether there was one.
    pub fn work(&self) -> bool {
        let Worker::Caller(inbox) = &self.worker else { return false };
        let Ok(Some(task)) = inbox.try_recv() else { return false };
        task.carry_out();
        true
    }

    pub(crate) fn desk(&self) -> Desk {
        let (own, reports) = mpsc::channel();
        Desk { tasks: self.tasks.clone(), own, reports, waiting: 0 }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.tasks.send(None);
        if let Worker::Thread(thread) = &mut self.worker
            && let Some(thread) = thread.take()
        {
            let _ = thread.join();
        }
    }
}

impl Desk {
    /// Looks for the same content under `name` or a number of it.
    pub(crate) fn find(
        &mut self,
        file: u32,
        name: &str,
        disk: &Arc<dyn Disk>,
        folder: &Path,
        (size, hash): (u64, Hash),
    ) {
        let (disk, folder) = (Arc::clone(disk), folder.to_owned());
        self.ask(file, name, Job::Find { disk, folder, size, hash });
    }

    /// Verifies a complete file and gives it its name.
    pub(crate) fn keep(&mut self, file: u32, name: &str, partial: Partial) {
        self.ask(file, name, Job::Keep(Box::new(partial)));
    }

    /// Whether there is anything to wait for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn poll(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        self.waiting -= 1;
        Some(report)
    }

    fn ask(&mut self, file: u32, name: &str, job: Job) {
        let task = Task { file, name: name.to_owned(), job, report: self.own.clone() };
        // Without a keeper the program is about to end.
        if self.tasks.send(Some(task)).is_ok() {
            self.waiting += 1;
        }
    }
}

/// Whether the folder has anything under `name` or its numbers that could be the same file.
pub(crate) fn has_candidate(disk: &dyn Disk, folder: &Path, name: &str, size: u64) -> bool {
    let mut there = names(name).map_while(|name| disk.entry(&folder.join(name)));
    there.any(|entry| entry == Entry::File(size))
}

impl Task {
    fn carry_out(self) {
        let Self { file, name, job, report } = self;
        let found = match job {
            Job::Find { disk, folder, size, hash } => {
                let name = find(disk.as_ref(), &folder, &name, size, &hash);
                Report::Found { file, name, hash }
            }
            Job::Keep(partial) => {
                let mut verified_ns = 0;
                let verdict = keep(*partial, &name, &mut verified_ns);
                Report::Done { file, verdict, verified_ns }
            }
        };
        // A session that has ended does not want to know.
        let _ = report.send(found);
    }
}

fn keep(mut partial: Partial, name: &str, verified_ns: &mut u64) -> io::Result<Verdict> {
    let same = partial.verify()?;
    *verified_ns = clock::monotonic_nanos();
    if !same {
        partial.discard()?;
        return Ok(Verdict::Mismatch);
    }
    partial.seal()?;
    let folder = partial.path().parent().unwrap_or(Path::new(".")).to_owned();
    let (size, hash) = partial.content();
    let disk = partial.disk().as_ref();
    for name in names(name) {
        let path = folder.join(&name);
        match disk.rename_to_new(partial.path(), &path) {
            Ok(()) => {
                disk.sync_folder(&folder)?;
                remove_leftovers(disk, &folder, hash);
                return Ok(Verdict::Kept { name });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_same(disk, &path, size, hash) {
                    // Whoever gave it that name may have died before the name was on the disk.
                    disk.sync_folder(&folder)?;
                    partial.discard()?;
                    return Ok(Verdict::Already { name });
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("'{name}' and {MAX_NUMBER} numbered ones are taken")))
}

/// Where the folder has the same content, safely. The search ends at the first name that is free.
fn find(disk: &dyn Disk, folder: &Path, name: &str, size: u64, hash: &Hash) -> Option<String> {
    let taken = names(name).take_while(|name| disk.entry(&folder.join(name)).is_some());
    let mut taken = taken.filter(|name| is_same(disk, &folder.join(name), size, hash));
    // Whoever gave it that name may have died before the name was on the disk.
    taken.next().filter(|_| disk.sync_folder(folder).is_ok())
}

fn names(name: &str) -> impl Iterator<Item = String> + '_ {
    (0..=MAX_NUMBER).map(|n| numbered(name, n))
}

fn is_same(disk: &dyn Disk, path: &Path, size: u64, hash: &Hash) -> bool {
    let read = || hash_of(disk.open(path)?.as_ref(), &mut |_| Ok(()));
    disk.entry(path) == Some(Entry::File(size)) && read().is_ok_and(|(_, there)| there == *hash)
}

/// The size and hash of what is in a file. `watch` is told now and then how much is read; its error
/// ends the reading.
pub(crate) fn hash_of(
    file: &dyn DiskFile,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<(u64, Hash)> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut told = 0;
    loop {
        match file.read_at(&mut buffer, hasher.count()) {
            Ok(0) => return Ok((hasher.count(), *hasher.finalize().as_bytes())),
            Ok(len) => hasher.update(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if hasher.count() >= told + (64 << 20) {
            told = hasher.count();
            watch(told)?;
        }
    }
}

/// How many files of one name a folder gets.
const MAX_NUMBER: u32 = 999;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::SystemDisk;
    use crate::file::testing::{TempDir, header_of, noise};

    fn received(folder: &TempDir, content: &[u8]) -> Partial {
        let disk = SystemDisk::shared();
        let mut partial =
            Partial::open(&disk, folder.path(), &header_of("x", content)).expect("writable");
        partial.write(0, content).expect("room");
        partial
    }

    fn kept(folder: &TempDir, name: &str, content: &[u8]) -> Verdict {
        keep(received(folder, content), name, &mut 0).expect("a working file system")
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number_unless_the_content_is_the_same() {
        let folder = TempDir::new();
        let (one, other) = (noise(1000), noise(1001));
        assert_eq!(kept(&folder, "a.txt", &one), Verdict::Kept { name: "a.txt".into() });
        assert_eq!(kept(&folder, "a.txt", &one), Verdict::Already { name: "a.txt".into() });
        assert_eq!(kept(&folder, "a.txt", &other), Verdict::Kept { name: "a (1).txt".into() });
        assert_eq!(kept(&folder, "a.txt", &other), Verdict::Already { name: "a (1).txt".into() });
        assert_eq!(folder.names(), ["a (1).txt", "a.txt"]);
        assert_eq!(fs::read(folder.path().join("a.txt")).expect("it is there"), one);
    }

    #[test]
    fn what_the_folder_has_is_found_by_content() {
        let folder = TempDir::new();
        let (one, other) = (noise(1000), noise(1001));
        kept(&folder, "a", &one);
        kept(&folder, "a", &other);
        let found = |content: &[u8]| {
            let header = header_of("a", content);
            assert!(has_candidate(&SystemDisk, folder.path(), "a", header.size));
            find(&SystemDisk, folder.path(), "a", header.size, &header.hash)
        };
        assert_eq!(found(&other).as_deref(), Some("a (1)"));
        assert_eq!(found(&[7; 1001]), None);
        assert!(!has_candidate(&SystemDisk, folder.path(), "a", 999));
        assert!(!has_candidate(&SystemDisk, folder.path(), "b", 1000));
    }

    #[test]
    fn a_link_under_the_name_is_neither_followed_nor_replaced() {
        let folder = TempDir::new();
        let (target, content) = (folder.path().join("target"), noise(10));
        fs::write(&target, &content).expect("writable");
        std::os::unix::fs::symlink(&target, folder.path().join("a")).expect("links");
        assert_eq!(kept(&folder, "a", &content), Verdict::Kept { name: "a (1)".into() });
        assert_eq!(folder.names(), ["a", "a (1)", "target"]);
    }

    #[test]
    fn the_keeper_ends_what_it_began() {
        let folder = TempDir::new();
        let content = noise(5000);
        let keeper = Keeper::start().expect("a thread");
        let mut desk = keeper.desk();
        desk.keep(7, "a", received(&folder, &content));
        assert!(desk.is_waiting());
        drop(keeper);
        let Some(Report::Done { file: 7, verdict, verified_ns }) = desk.poll() else {
            panic!("a report about file 7");
        };
        assert_eq!(verdict.expect("no error"), Verdict::Kept { name: "a".into() });
        assert!(verified_ns > 0);
    }
}

//! The last steps of a file, which may take as long as a disk does: they have threads of their own,
//! so that no other transfer waits for them.

mod known;
mod queue;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use weir_sockets::clock;

use self::known::Known;
use self::queue::{Next, Queue};
use super::disk::{Disk, DiskFile, Entry};
use super::frame::{Hash, Verdict};
use super::name::numbered;
use super::partial::{Partial, remove_leftovers};
use super::parts::{differing, hash_of};
use super::quota::FolderQuota;

/// Threads that compare, verify and keep files. Dropping it waits for the files that they have to keep.
#[derive(Debug)]
pub struct Finalizer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Queue<Task>,
    known: Known,
}

/// Handle of a session to the finalizer.
#[derive(Debug)]
pub(crate) struct FinalizerHandle {
    shared: Arc<Shared>,
    session: u64,
    own: Sender<Report>,
    reports: Receiver<Report>,
    /// Complete files without a report.
    keeping: usize,
    /// The look-up that is open: for which file, and whether its result is wanted.
    look_up: Option<(u32, Arc<AtomicBool>)>,
}

/// What the finalizer found or did.
#[derive(Debug)]
pub(crate) enum Report {
    /// Under which name the folder has the file already.
    Found { file: u32, name: Option<String>, hash: Hash },
    /// Which parts of a complete file have other hashes than they should.
    Compared { file: u32, compared: io::Result<(Box<Partial>, Vec<Range<u64>>)> },
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
    Find {
        disk: Arc<dyn Disk>,
        folder: PathBuf,
        size: u64,
        hash: Hash,
        wanted: Arc<AtomicBool>,
    },
    Tidy(Arc<FolderQuota>),
    Compare {
        partial: Box<Partial>,
        parts: Vec<Hash>,
    },
    /// The mark is dropped when the file has its verdict.
    Keep {
        partial: Box<Partial>,
        _mark: Arc<()>,
    },
}

impl Finalizer {
    /// A finalizer with its threads.
    ///
    /// # Errors
    /// If the system has no threads for it.
    pub fn start() -> io::Result<Self> {
        let mut finalizer = Self::without_thread();
        for _ in 0..THREADS {
            let shared = Arc::clone(&finalizer.shared);
            let work = move || while shared.work(Queue::next) {};
            let thread = std::thread::Builder::new().name("weir-finalizer".into()).spawn(work)?;
            finalizer.threads.push(thread);
        }
        Ok(finalizer)
    }

    /// A finalizer without a thread, for simulations: it does nothing by itself.
    pub fn without_thread() -> Self {
        Self { shared: Arc::default(), threads: Vec::new() }
    }

    /// Does the next task of a finalizer without a thread. Returns whether there was one.
    pub fn work(&self) -> bool {
        self.shared.work(Queue::try_next)
    }

    /// Looks after a folder, unless that is about to be done.
    pub(crate) fn clean_up(&self, upkeep: &Arc<FolderQuota>) {
        if upkeep.claim() {
            let (report, _) = mpsc::channel();
            let job = Job::Tidy(Arc::clone(upkeep));
            self.shared.queue.find(NO_SESSION, Task { file: 0, name: String::new(), job, report });
        }
    }

    pub(crate) fn handle(&self) -> FinalizerHandle {
        let (own, reports) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let session = shared.queue.session();
        FinalizerHandle { shared, session, own, reports, keeping: 0, look_up: None }
    }
}

impl Drop for Finalizer {
    fn drop(&mut self) {
        self.shared.queue.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl FinalizerHandle {
    /// Looks for the same content under `name` or a number of it. A session has one look-up at a time:
    /// the one before it is given up.
    pub(crate) fn find(
        &mut self,
        file: u32,
        name: &str,
        disk: &Arc<dyn Disk>,
        folder: &Path,
        (size, hash): (u64, Hash),
    ) {
        self.cancel_look_up();
        let wanted = Arc::new(AtomicBool::new(true));
        self.look_up = Some((file, Arc::clone(&wanted)));
        let (disk, folder) = (Arc::clone(disk), folder.to_owned());
        let job = Job::Find { disk, folder, size, hash, wanted };
        self.shared.queue.find(self.session, self.task(file, name, job));
    }

    /// The result of the open look-up is not wanted any more.
    pub(crate) fn cancel_look_up(&mut self) {
        if let Some((_, wanted)) = self.look_up.take() {
            wanted.store(false, Ordering::Relaxed);
        }
    }

    /// Verifies a complete file and gives it its name. What is returned can be upgraded until the file
    /// has its verdict.
    pub(crate) fn keep(&mut self, file: u32, name: &str, partial: Partial) -> Weak<()> {
        let mark = Arc::new(());
        let done = Arc::downgrade(&mark);
        let job = Job::Keep { partial: Box::new(partial), _mark: mark };
        self.shared.queue.keep(self.session, self.task(file, name, job));
        self.keeping += 1;
        done
    }

    /// Compares the parts of a complete file with those that it should have.
    pub(crate) fn compare(&mut self, file: u32, name: &str, partial: Partial, parts: Vec<Hash>) {
        let job = Job::Compare { partial: Box::new(partial), parts };
        self.shared.queue.keep(self.session, self.task(file, name, job));
        self.keeping += 1;
    }

    /// Whether there is anything to wait for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.keeping > 0 || self.look_up.is_some()
    }

    /// Whether too many files wait for their verdicts to take another.
    pub(crate) fn is_full(&self) -> bool {
        self.keeping >= MOST_WAITING
    }

    pub(crate) fn poll(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        match &report {
            Report::Done { .. } | Report::Compared { .. } => self.keeping -= 1,
            Report::Found { file, .. } => {
                self.look_up.take_if(|(looked_up, _)| looked_up == file);
            }
        }
        Some(report)
    }

    fn task(&self, file: u32, name: &str, job: Job) -> Task {
        Task { file, name: name.to_owned(), job, report: self.own.clone() }
    }
}

impl Drop for FinalizerHandle {
    fn drop(&mut self) {
        self.cancel_look_up();
    }
}

impl Shared {
    /// Does the next task, if there is one.
    fn work(&self, next: impl FnOnce(&Queue<Task>) -> Option<Next<Task>>) -> bool {
        match next(&self.queue) {
            Some(Next::Keep(task)) => self.known.run_task(task),
            Some(Next::Find(task)) => {
                self.known.run_task(task);
                self.queue.found();
            }
            None => return false,
        }
        true
    }
}

impl Known {
    fn run_task(&self, Task { file, name, job, report }: Task) {
        let found = match job {
            Job::Find { disk, folder, size, hash, wanted } => {
                let name = self.find(disk.as_ref(), &folder, &name, (size, &hash), &wanted);
                if !wanted.load(Ordering::Relaxed) {
                    return;
                }
                Report::Found { file, name, hash }
            }
            Job::Tidy(upkeep) => return upkeep.clean_up(),
            Job::Compare { partial, parts } => {
                Report::Compared { file, compared: compare(partial, &parts) }
            }
            Job::Keep { partial, _mark } => {
                let mut verified_ns = 0;
                let verdict = self.keep(*partial, &name, &mut verified_ns);
                Report::Done { file, verdict, verified_ns }
            }
        };
        // A session that has ended does not want to know.
        let _ = report.send(found);
    }

    fn keep(&self, mut partial: Partial, name: &str, verified_ns: &mut u64) -> io::Result<Verdict> {
        let sealed = partial.seal()?;
        *verified_ns = clock::monotonic_nanos();
        let Some(watch) = sealed else {
            partial.keep_damaged()?;
            return Ok(Verdict::Mismatch);
        };
        let folder = partial.path().parent().unwrap_or(Path::new(".")).to_owned();
        let (size, hash) = (partial.content().0, *partial.content().1);
        let disk = Arc::clone(partial.disk());
        for name in names(name) {
            let path = folder.join(&name);
            match partial.give_name(&path, &watch) {
                Ok(true) => {
                    disk.sync_folder(&folder)?;
                    // Its hidden name, if it still has that, and what sessions that are over have left.
                    partial.discard()?;
                    remove_leftovers(disk.as_ref(), &folder, &hash);
                    return Ok(Verdict::Kept { name });
                }
                Ok(false) => {
                    // Another program has changed it since it was hashed.
                    partial.keep_damaged()?;
                    return Ok(Verdict::Mismatch);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.is_same(disk.as_ref(), &path, (size, &hash), &AtomicBool::new(true)) {
                        // The process that gave it that name may have died before the name was on the disk.
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

    /// Where the folder has the same content, for as long as that is `wanted`. The search ends at the
    /// first name that is free.
    fn find(
        &self,
        disk: &dyn Disk,
        folder: &Path,
        name: &str,
        content: (u64, &Hash),
        wanted: &AtomicBool,
    ) -> Option<String> {
        let is_taken = |name: &String| disk.entry(&folder.join(name)).is_some();
        let taken = names(name).take_while(|name| wanted.load(Ordering::Relaxed) && is_taken(name));
        let mut same = taken.filter(|name| self.is_same(disk, &folder.join(name), content, wanted));
        // The process that gave it that name may have died before the name was on the disk.
        same.next().filter(|_| disk.sync_folder(folder).is_ok())
    }

    fn is_same(
        &self,
        disk: &dyn Disk,
        path: &Path,
        (size, hash): (u64, &Hash),
        wanted: &AtomicBool,
    ) -> bool {
        let read = || self.hash_of(disk.open(path)?.as_ref(), wanted);
        disk.entry(path) == Some(Entry::File(size)) && read().is_ok_and(|there| there == *hash)
    }

    /// The hash of a file, which is read only if it has changed since it was read before.
    fn hash_of(&self, file: &dyn DiskFile, wanted: &AtomicBool) -> io::Result<Hash> {
        let before = file.state()?;
        if let Some(hash) = before.and_then(|state| self.get(&state)) {
            return Ok(hash);
        }
        let (_, hash) = hash_of(file, &mut |_| match wanted.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        })?;
        if let Some(state) = before.filter(|_| file.state().is_ok_and(|after| after == before)) {
            self.note(state, hash);
        }
        Ok(hash)
    }
}

fn compare(
    mut partial: Box<Partial>,
    parts: &[Hash],
) -> io::Result<(Box<Partial>, Vec<Range<u64>>)> {
    let there = partial.hash_parts()?;
    let damaged = differing(partial.content().0, &there, parts);
    Ok((partial, damaged))
}

fn names(name: &str) -> impl Iterator<Item = String> + '_ {
    (0..=MAX_NUMBER).map(|n| numbered(name, n))
}

/// How many files of one name a folder gets.
const MAX_NUMBER: u32 = 999;
/// Whose look-up the upkeep of a folder is.
const NO_SESSION: u64 = 0;
/// One for a look-up, the others for complete files, each of which may wait for a disk for long.
const THREADS: usize = 4;
/// Complete files of one session, each of which is open.
const MOST_WAITING: usize = 4;

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
        partial.write(0, content).expect("space");
        partial
    }

    fn kept(folder: &TempDir, name: &str, content: &[u8]) -> Verdict {
        let known = Known::default();
        known.keep(received(folder, content), name, &mut 0).expect("a working file system")
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
            let content = (header.size, &header.hash);
            let wanted = AtomicBool::new(true);
            Known::default().find(&SystemDisk, folder.path(), "a", content, &wanted)
        };
        assert_eq!(found(&other).as_deref(), Some("a (1)"));
        assert_eq!(found(&[7; 1001]), None);
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
        let finalizer = Finalizer::start().expect("a thread");
        let mut handle = finalizer.handle();
        handle.keep(7, "a", received(&folder, &content));
        assert!(handle.is_waiting());
        drop(finalizer);
        let Some(Report::Done { file: 7, verdict, verified_ns }) = handle.poll() else {
            panic!("a report about file 7");
        };
        assert_eq!(verdict.expect("no error"), Verdict::Kept { name: "a".into() });
        assert!(verified_ns > 0);
    }
}

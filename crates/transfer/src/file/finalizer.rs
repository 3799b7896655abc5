//! The last steps of a file, which may take as long as a disk does: they have threads of their own,
//! so that no other transfer waits for them.

mod known;
mod queue;

use std::collections::BTreeMap;
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
use super::entries::{end_folder, make_link, sync_up};
use super::frame::{Attributes, EntryHeader, EntryKind, Hash, Verdict};
use super::partial::{Partial, remove_leftovers};
use super::parts::{differing, hash_of};
use super::path::SafePath;
use super::plain;
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
    /// Complete files and entries without a report.
    keeping: usize,
    /// Questions without one, by the file that they are about.
    questions: BTreeMap<u32, Arc<Question>>,
    /// The look-up that is open: for which file, and whether its result is wanted.
    look_up: Option<(u32, Arc<AtomicBool>)>,
}

/// What the finalizer found or did.
#[derive(Debug)]
pub(crate) enum Report {
    /// Under which name the folder has the file already.
    Found { file: u32, name: Option<String> },
    /// The same of a file that was asked about.
    Asked { file: u32, name: Option<String> },
    /// Which parts of a complete file have other hashes than they should.
    Compared { file: u32, compared: io::Result<(Box<Partial>, Vec<Range<u64>>)> },
    /// How the file ended, and when its hash was known on the machine's monotonic clock.
    Done { file: u32, verdict: io::Result<Verdict>, verified_ns: u64 },
}

#[derive(Debug)]
struct Task {
    file: u32,
    job: Job,
    report: Sender<Report>,
}

/// A file that the folder may have.
#[derive(Clone, Debug)]
pub(crate) struct Sought {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
    pub(crate) path: SafePath,
    pub(crate) size: u64,
    pub(crate) hash: Hash,
    pub(crate) attributes: Attributes,
}

/// The state of a question.
#[derive(Debug, Default)]
struct Question {
    /// A thread is at it.
    begun: AtomicBool,
    /// Its session is over.
    dropped: AtomicBool,
}

impl Question {
    /// Whether it is for the caller to begin, or to drop before anyone does.
    fn take(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }
}

/// What a file is to become.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) path: SafePath,
    pub(crate) attributes: Attributes,
}

#[derive(Debug)]
enum Job {
    Find(Sought, Arc<AtomicBool>),
    Ask(Sought, Arc<Question>),
    /// A link, or the end of a folder.
    Entry(Arc<dyn Disk>, PathBuf, SafePath, EntryHeader),
    Tidy(Arc<FolderQuota>),
    Compare {
        partial: Box<Partial>,
        parts: Vec<Hash>,
    },
    /// The mark is dropped when the file has its verdict.
    Keep {
        partial: Box<Partial>,
        destination: Destination,
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
            self.shared.queue.find(NO_SESSION, Task { file: 0, job, report });
        }
    }

    pub(crate) fn handle(&self) -> FinalizerHandle {
        let (own, reports) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let session = shared.queue.session();
        let (keeping, questions, look_up) = (0, BTreeMap::new(), None);
        FinalizerHandle { shared, session, own, reports, keeping, questions, look_up }
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
    /// Looks for the same content under its name or a number of it. A session has one look-up at a time:
    /// the one before it is given up.
    pub(crate) fn find(&mut self, file: u32, sought: Sought) {
        self.cancel_look_up();
        let wanted = Arc::new(AtomicBool::new(true));
        self.look_up = Some((file, Arc::clone(&wanted)));
        self.shared.queue.find(self.session, self.task(file, Job::Find(sought, wanted)));
    }

    /// Looks the same way for a file that may be announced later.
    pub(crate) fn ask(&mut self, file: u32, sought: Sought) {
        let question = Arc::new(Question::default());
        let job = Job::Ask(sought, Arc::clone(&question));
        self.questions.insert(file, question);
        self.shared.queue.ask(self.session, self.task(file, job));
    }

    /// Drops a question with which no thread has begun; returns whether there was one.
    pub(crate) fn drop_question(&mut self, file: u32) -> bool {
        let dropped = self.questions.get(&file).is_some_and(|question| question.take());
        if dropped {
            self.questions.remove(&file);
        }
        dropped
    }

    /// Makes a link, or ends a folder.
    pub(crate) fn enter(
        &mut self,
        disk: &Arc<dyn Disk>,
        root: &Path,
        path: SafePath,
        entry: EntryHeader,
    ) {
        let file = entry.number;
        let job = Job::Entry(Arc::clone(disk), root.to_owned(), path, entry);
        self.shared.queue.keep(self.session, self.task(file, job));
        self.keeping += 1;
    }

    /// The memory that a question takes until it is answered, in bytes: its task in a queue that may be half empty, its
    /// paths, and its places in maps.
    pub(crate) fn cost_of(sought: &Sought) -> usize {
        let paths = 2 * (sought.folder.as_os_str().len() + sought.path.to_string().len());
        2 * size_of::<Task>() + paths + 200
    }

    /// Nothing is wanted any more that was asked.
    pub(crate) fn drop_questions(&mut self) {
        for question in std::mem::take(&mut self.questions).values() {
            question.dropped.store(true, Ordering::Relaxed);
        }
        self.shared.queue.forget(self.session);
    }

    /// The result of the open look-up is not wanted any more.
    pub(crate) fn cancel_look_up(&mut self) {
        if let Some((_, wanted)) = self.look_up.take() {
            wanted.store(false, Ordering::Relaxed);
        }
    }

    /// Verifies a complete file and gives it its name. What is returned can be upgraded until the file
    /// has its verdict.
    pub(crate) fn keep(
        &mut self,
        file: u32,
        destination: Destination,
        partial: Partial,
    ) -> Weak<()> {
        let mark = Arc::new(());
        let done = Arc::downgrade(&mark);
        let job = Job::Keep { partial: Box::new(partial), destination, _mark: mark };
        self.shared.queue.keep(self.session, self.task(file, job));
        self.keeping += 1;
        done
    }

    /// Compares the parts of a complete file with those that it should have.
    pub(crate) fn compare(&mut self, file: u32, partial: Partial, parts: Vec<Hash>) {
        let job = Job::Compare { partial: Box::new(partial), parts };
        self.shared.queue.keep(self.session, self.task(file, job));
        self.keeping += 1;
    }

    /// Whether there is anything to wait for.
    pub(crate) fn is_waiting(&self) -> bool {
        self.keeping > 0 || !self.questions.is_empty() || self.look_up.is_some()
    }

    /// Whether too many files wait for their verdicts to take another.
    pub(crate) fn is_full(&self) -> bool {
        self.keeping >= MOST_WAITING
    }

    pub(crate) fn poll(&mut self) -> Option<Report> {
        let report = self.reports.try_recv().ok()?;
        match &report {
            Report::Done { .. } | Report::Compared { .. } => self.keeping -= 1,
            Report::Asked { file, .. } => drop(self.questions.remove(file)),
            Report::Found { file, .. } => {
                self.look_up.take_if(|(looked_up, _)| looked_up == file);
            }
        }
        Some(report)
    }

    fn task(&self, file: u32, job: Job) -> Task {
        Task { file, job, report: self.own.clone() }
    }
}

impl Drop for FinalizerHandle {
    fn drop(&mut self) {
        self.cancel_look_up();
        self.drop_questions();
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
    fn run_task(&self, Task { file, job, report }: Task) {
        let found = match job {
            Job::Find(sought, wanted) => {
                let is_wanted = || wanted.load(Ordering::Relaxed);
                let name = self.find_and_tidy(&sought, &is_wanted);
                if !wanted.load(Ordering::Relaxed) {
                    return;
                }
                Report::Found { file, name }
            }
            Job::Ask(sought, question) => {
                if !question.take() {
                    return;
                }
                let is_wanted = || !question.dropped.load(Ordering::Relaxed);
                Report::Asked { file, name: self.find_and_tidy(&sought, &is_wanted) }
            }
            Job::Entry(disk, root, path, EntryHeader { attributes, kind, .. }) => {
                let verdict = match kind {
                    EntryKind::Link { target } => {
                        make_link(disk.as_ref(), &root, &path, &target, attributes.modified)
                    }
                    EntryKind::Folder | EntryKind::FolderEnd => {
                        end_folder(disk.as_ref(), &root, &path, &attributes)
                    }
                };
                let verdict =
                    verdict.map_err(|error| format!("cannot write it: {}", plain(&error)));
                let verdict = verdict.unwrap_or_else(|reason| Verdict::Refused { reason });
                Report::Done { file, verdict: Ok(verdict), verified_ns: clock::monotonic_nanos() }
            }
            Job::Tidy(upkeep) => return upkeep.clean_up(),
            Job::Compare { partial, parts } => {
                Report::Compared { file, compared: compare(partial, &parts) }
            }
            Job::Keep { partial, destination, _mark } => {
                let mut verified_ns = 0;
                let verdict = self.keep(*partial, &destination, &mut verified_ns);
                Report::Done { file, verdict, verified_ns }
            }
        };
        // A session that has ended does not want to know.
        let _ = report.send(found);
    }

    fn keep(
        &self,
        mut partial: Partial,
        to: &Destination,
        verified_ns: &mut u64,
    ) -> io::Result<Verdict> {
        let sealed = partial.seal()?;
        *verified_ns = clock::monotonic_nanos();
        let Some(watch) = sealed else {
            partial.keep_damaged()?;
            return Ok(Verdict::Mismatch);
        };
        let Destination { path, attributes } = to;
        let root = partial.path().parent().unwrap_or(Path::new(".")).to_owned();
        let (size, hash) = (partial.content().0, *partial.content().1);
        let disk = Arc::clone(partial.disk());
        let folder = match disk.enter(&root, path) {
            Ok(folder) => folder,
            // Another program has changed it since the file was announced.
            Err(error) => {
                partial.discard()?;
                return Ok(Verdict::Refused { reason: plain(&error) });
            }
        };
        for path in numbers(path) {
            let named = folder.path().join(path.name());
            match partial.give_name(&named, &watch, attributes) {
                Ok(true) => {
                    sync_up(disk.as_ref(), &root, &path, &folder)?;
                    // Its hidden name, if it still has that, and what sessions that are over have left.
                    partial.discard()?;
                    remove_leftovers(disk.as_ref(), &root, &hash);
                    return Ok(Verdict::Kept { name: path.to_string() });
                }
                Ok(false) => {
                    // Another program has changed it since it was hashed.
                    partial.keep_damaged()?;
                    return Ok(Verdict::Mismatch);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.is_same(disk.as_ref(), &named, (size, &hash), &|| true) {
                        set_attributes(disk.as_ref(), &named, attributes);
                        // The process that gave it that name may have died before the name was on the disk.
                        sync_up(disk.as_ref(), &root, &path, &folder)?;
                        partial.discard()?;
                        return Ok(Verdict::Already { name: path.to_string() });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("'{path}' and {MAX_NUMBER} numbered ones are taken")))
    }

    /// The name of a file that the folder has, without what sessions that are over have left of it.
    fn find_and_tidy(&self, sought: &Sought, is_wanted: &dyn Fn() -> bool) -> Option<String> {
        let found = self.find(sought, is_wanted)?;
        remove_leftovers(sought.disk.as_ref(), &sought.folder, &sought.hash);
        Some(found.to_string())
    }

    /// Where the folder has the same content, for as long as that is `wanted`. The search ends at the
    /// first name that is free.
    fn find(&self, sought: &Sought, is_wanted: &dyn Fn() -> bool) -> Option<SafePath> {
        let Sought { disk, folder: root, path, size, hash, attributes } = sought;
        let disk = disk.as_ref();
        let folder = disk.enter(root, path).ok()?;
        let at = |path: &SafePath| folder.path().join(path.name());
        let is_taken = |path: &SafePath| disk.entry(&at(path)).is_some();
        let taken = numbers(path).take_while(|path| is_wanted() && is_taken(path));
        let mut same = taken.filter(|path| self.is_same(disk, &at(path), (*size, hash), is_wanted));
        let found = same.next()?;
        set_attributes(disk, &at(&found), attributes);
        // The process that gave it that name may have died before the name was on the disk.
        sync_up(disk, root, &found, &folder).is_ok().then_some(found)
    }

    fn is_same(
        &self,
        disk: &dyn Disk,
        path: &Path,
        (size, hash): (u64, &Hash),
        is_wanted: &dyn Fn() -> bool,
    ) -> bool {
        let read = || self.hash_of(disk.open(path)?.as_ref(), is_wanted);
        disk.entry(path) == Some(Entry::File(size)) && read().is_ok_and(|there| there == *hash)
    }

    /// The hash of a file, which is read only if it has changed since it was read before.
    fn hash_of(&self, file: &dyn DiskFile, is_wanted: &dyn Fn() -> bool) -> io::Result<Hash> {
        let before = file.state()?;
        if let Some(hash) = before.and_then(|state| self.get(&state)) {
            return Ok(hash);
        }
        let (_, hash) = hash_of(file, &mut |_| match is_wanted() {
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

/// Gives a file that is there the permissions and time that its sender has. Where another user owns it, it keeps its
/// own: what counts is its content.
fn set_attributes(disk: &dyn Disk, path: &Path, wanted: &Attributes) {
    let set = || {
        let file = disk.open(path)?;
        let there = file.attributes()?;
        if there.mode != wanted.mode {
            file.set_mode(wanted.mode)?;
        }
        if there.modified != wanted.modified {
            file.set_modified(wanted.modified)?;
        }
        io::Result::Ok(())
    };
    let _ = set();
}

fn numbers(path: &SafePath) -> impl Iterator<Item = SafePath> + '_ {
    (0..=MAX_NUMBER).map(|n| path.numbered(n))
}

/// How many files of one name a folder gets.
const MAX_NUMBER: u32 = 999;
/// Whose look-up the upkeep of a folder is.
const NO_SESSION: u64 = 0;
/// Two for look-ups and questions, the others for complete files, each of which may wait for a disk for long.
const THREADS: usize = 4;
/// Complete files of one session, each of which is open.
const MOST_WAITING: usize = 4;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::testing::{TempDir, header_of, noise};
    use crate::file::{Header, SystemDisk};

    fn received(folder: &TempDir, content: &[u8]) -> Partial {
        let disk = SystemDisk::shared();
        let mut partial =
            Partial::open(&disk, folder.path(), &header_of("x", content)).expect("writable");
        partial.write(0, content).expect("space");
        partial
    }

    fn to(name: &str) -> Destination {
        let path = SafePath::new(name).expect("a safe path");
        Destination { path, attributes: Attributes::default() }
    }

    fn kept(folder: &TempDir, name: &str, content: &[u8]) -> Verdict {
        let known = Known::default();
        known.keep(received(folder, content), &to(name), &mut 0).expect("a working file system")
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
            let Header { size, hash, attributes, .. } = header_of("a", content);
            let (disk, folder) = (SystemDisk::shared(), folder.path().to_owned());
            let sought = Sought { disk, folder, path: to("a").path, size, hash, attributes };
            Known::default().find(&sought, &|| true).map(|path| path.to_string())
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
        handle.keep(7, to("a"), received(&folder, &content));
        assert!(handle.is_waiting());
        drop(finalizer);
        let Some(Report::Done { file: 7, verdict, verified_ns }) = handle.poll() else {
            panic!("a report about file 7");
        };
        assert_eq!(verdict.expect("no error"), Verdict::Kept { name: "a".into() });
        assert!(verified_ns > 0);
    }
}

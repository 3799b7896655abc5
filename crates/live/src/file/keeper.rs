//! The last steps of a file, which may take as long as a disk does: they have a thread of their own,
//! so that nobody else's transfer waits for them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use blake3::Hasher;

use super::frame::{Hash, Verdict};
use super::name::numbered;
use super::partial::{Partial, remove_leftovers};
use crate::clock;

/// A thread that compares, verifies and keeps files. Dropping it waits for what it has to do.
#[derive(Debug)]
pub struct Keeper {
    tasks: Sender<Option<Task>>,
    thread: Option<JoinHandle<()>>,
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

struct Task {
    file: u32,
    name: String,
    job: Job,
    report: Sender<Report>,
}

enum Job {
    Find { folder: PathBuf, size: u64, hash: Hash },
    Keep(Box<Partial>),
}

impl Keeper {
    pub(crate) fn start() -> io::Result<Self> {
        let (tasks, inbox) = mpsc::channel::<Option<Task>>();
        let work = move || {
            while let Ok(Some(task)) = inbox.recv() {
                // A session that has ended does not want to know.
                let _ = task.report.send(carry_out(task.file, &task.name, task.job));
            }
        };
        let thread = std::thread::Builder::new().name("weir-keeper".into()).spawn(work)?;
        Ok(Self { tasks, thread: Some(thread) })
    }

    pub(crate) fn desk(&self) -> Desk {
        let (own, reports) = mpsc::channel();
        Desk { tasks: self.tasks.clone(), own, reports, waiting: 0 }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.tasks.send(None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Desk {
    /// Looks for the same content under `name` or a number of it.
    pub(crate) fn find(&mut self, file: u32, name: &str, folder: &Path, size: u64, hash: Hash) {
        self.ask(file, name, Job::Find { folder: folder.to_owned(), size, hash });
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
pub(crate) fn has_candidate(folder: &Path, name: &str, size: u64) -> bool {
    names(name).map_while(|name| size_of(&folder.join(name))).any(|there| there == Some(size))
}

fn carry_out(file: u32, name: &str, job: Job) -> Report {
    match job {
        Job::Find { folder, size, hash } => {
            let name = find(&folder, name, size, &hash);
            Report::Found { file, name, hash }
        }
        Job::Keep(partial) => {
            let mut verified_ns = 0;
            let verdict = keep(*partial, name, &mut verified_ns);
            Report::Done { file, verdict, verified_ns }
        }
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
    for name in names(name) {
        let path = folder.join(&name);
        match rename_to_new(partial.path(), &path) {
            Ok(()) => {
                File::open(&folder)?.sync_all()?;
                remove_leftovers(&folder, hash);
                return Ok(Verdict::Kept { name });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if is_same(&path, size, hash) {
                    partial.discard()?;
                    return Ok(Verdict::Already { name });
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("'{name}' and {MAX_NUMBER} numbered ones are taken")))
}

/// Where the folder has the same content. The search ends at the first name that is free.
fn find(folder: &Path, name: &str, size: u64, hash: &Hash) -> Option<String> {
    let taken = names(name).take_while(|name| size_of(&folder.join(name)).is_some());
    let mut taken = taken.filter(|name| is_same(&folder.join(name), size, hash));
    taken.next()
}

fn names(name: &str) -> impl Iterator<Item = String> + '_ {
    (0..=MAX_NUMBER).map(|n| numbered(name, n))
}

/// The size of what is at `path`, `Some(None)` if that is no plain file.
fn size_of(path: &Path) -> Option<Option<u64>> {
    let there = fs::symlink_metadata(path).ok()?;
    Some(there.is_file().then_some(there.len()))
}

fn is_same(path: &Path, size: u64, hash: &Hash) -> bool {
    size_of(path) == Some(Some(size))
        && hash_of(path, &mut |_| Ok(())).is_ok_and(|(_, there)| there == *hash)
}

/// The size and hash of what is in a file. `watch` is told now and then how much is read; its error
/// ends the reading.
pub(crate) fn hash_of(
    path: &Path,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<(u64, Hash)> {
    let (mut file, mut hasher) = (File::open(path)?, Hasher::new());
    let mut buffer = vec![0; 256 << 10];
    let mut told = 0;
    loop {
        match file.read(&mut buffer) {
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

/// Renames without replacing anything.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
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

/// How many files of one name a folder gets.
const MAX_NUMBER: u32 = 999;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::testing::{TempDir, header_of, noise};

    fn received(folder: &TempDir, content: &[u8]) -> Partial {
        let mut partial = Partial::open(folder.path(), &header_of("x", content)).expect("writable");
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
            assert!(has_candidate(folder.path(), "a", header.size));
            find(folder.path(), "a", header.size, &header.hash)
        };
        assert_eq!(found(&other).as_deref(), Some("a (1)"));
        assert_eq!(found(&[7; 1001]), None);
        assert!(!has_candidate(folder.path(), "a", 999));
        assert!(!has_candidate(folder.path(), "b", 1000));
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

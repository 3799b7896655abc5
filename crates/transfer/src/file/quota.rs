//! What a folder takes of the disk, and partial files that no sender continues.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weir_sockets::places::Origin;
use weir_units::{Bytes, Duration};

use super::disk::{Disk, StoredFile};
use super::litter::{Litter, Surplus, sort, surplus};
use super::partial::is_partial;

/// Keeps a folder within its quota and free of partial files that have expired.
#[derive(Debug)]
pub(crate) struct FolderQuota {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    quota: Option<Bytes>,
    expiry: Duration,
    /// What the files in the folder took when it was looked at last,
    occupied: AtomicU64,
    /// and what was written since.
    written: AtomicU64,
    /// What of `occupied` were partial files that no session had. They make space for those that come.
    left: AtomicU64,
    /// Where partial files came from, and how many have been begun since the folder was looked at last.
    origins: Mutex<HashMap<PathBuf, Origin>>,
    begun: AtomicU64,
    /// A check is scheduled.
    is_due: AtomicBool,
}

impl FolderQuota {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        folder: &Path,
        quota: Option<Bytes>,
        expiry: Duration,
    ) -> Self {
        Self {
            disk,
            folder: folder.to_owned(),
            quota,
            expiry,
            occupied: AtomicU64::new(0),
            written: AtomicU64::new(0),
            left: AtomicU64::new(0),
            origins: Mutex::default(),
            begun: AtomicU64::new(0),
            is_due: AtomicBool::new(false),
        }
    }

    /// How often it is worth to look at the folder.
    pub(crate) fn interval(&self) -> Duration {
        let soon = self.quota.is_some() || self.begun.load(Ordering::Relaxed) > MANY;
        if soon { SOON } else { EVERY }
    }

    /// Schedules a call of [`clean_up`](Self::clean_up); returns whether none was scheduled.
    pub(crate) fn claim(&self) -> bool {
        !self.is_due.swap(true, Ordering::Relaxed)
    }

    /// Removes partial files that have expired and those that are too many, and looks how much the rest takes.
    pub(crate) fn clean_up(&self) {
        self.is_due.store(false, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
        let written = self.written.load(Ordering::Relaxed);
        // A folder that cannot be read takes what it took before.
        let found = match self.quota {
            Some(_) => self.disk.files_below(&self.folder),
            None => self.disk.files(&self.folder),
        };
        let Ok(mut files) = found else { return };
        files.retain(|file| !self.has_expired(file) || !self.remove(&file.path));
        let gone = self.remove_surplus(&files);
        files.retain(|file| !gone.contains(&file.path));
        let mut occupied = files.iter().map(occupies).sum();
        if let Some(quota) = self.quota {
            let left = self.make_space(&files, quota.get(), &mut occupied);
            self.left.store(left, Ordering::Relaxed);
        }
        self.occupied.store(occupied, Ordering::Relaxed);
        self.written.fetch_sub(written, Ordering::Relaxed);
    }

    /// Records from where a partial file comes, whose first bytes have been written.
    pub(crate) fn on_begun(&self, path: &Path, origin: Origin) {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        origins.insert(path.to_owned(), origin);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes what addresses, networks and all have above their shares. Returns what that was.
    fn remove_surplus(&self, files: &[StoredFile]) -> HashSet<PathBuf> {
        let litter = self.litter(files);
        let mut gone = HashSet::new();
        for Surplus { count, files } in surplus(&litter) {
            let above = files.iter().map(|litter| &litter.file.path);
            let removed = above.filter(|path| gone.contains(*path) || self.remove(path));
            let removed: Vec<_> = removed.take(count).cloned().collect();
            gone.extend(removed);
        }
        gone
    }

    /// Removes partial files until the folder takes no more than its quota. Returns what those take that are left.
    fn make_space(&self, files: &[StoredFile], quota: u64, occupied: &mut u64) -> u64 {
        let mut litter = self.litter(files);
        sort(&mut litter);
        let mut left = 0;
        for Litter { file, .. } in litter {
            let Ok(Some(_lock)) = self.disk.lock_to_remove(&file.path) else { continue };
            if *occupied > quota && self.disk.remove(&file.path).is_ok() {
                *occupied = occupied.saturating_sub(occupies(file));
            } else {
                left += occupies(file);
            }
        }
        left
    }

    fn litter<'a>(&self, files: &'a [StoredFile]) -> Vec<Litter<'a>> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        let partial: HashSet<_> =
            files.iter().map(|file| &file.path).filter(|path| self.is_partial(path)).collect();
        origins.retain(|path, _| partial.contains(path));
        let partial = files.iter().filter(|file| self.is_partial(&file.path));
        partial.map(|file| Litter { file, origin: origins.get(&file.path).copied() }).collect()
    }

    /// Counts bytes that were written.
    pub(crate) fn on_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether the folder takes more than it may, but for partial files that no session has.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.quota.is_some_and(|quota| self.used() > quota.get())
    }

    /// Why `bytes` more bytes are too many, if they are.
    pub(crate) fn refusal(&self, bytes: u64) -> Option<String> {
        let quota = self.quota?.get();
        let left = quota.saturating_sub(self.used());
        (bytes > left).then(|| format!("{bytes} bytes; the quota of {quota} has {left} left"))
    }

    fn used(&self) -> u64 {
        let written = self.written.load(Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        self.occupied.load(Ordering::Relaxed).saturating_add(written).saturating_sub(left)
    }

    fn has_expired(&self, file: &StoredFile) -> bool {
        self.is_partial(&file.path) && file.age >= self.expiry
    }

    /// Whether it is one of this folder's: what has such a name in a folder in it is none.
    fn is_partial(&self, path: &Path) -> bool {
        path.parent() == Some(&self.folder) && is_partial(path)
    }

    /// Removes a partial file that no session has.
    fn remove(&self, path: &Path) -> bool {
        // Held until it is removed: a session that took it in between would lose what it writes.
        let Ok(Some(_lock)) = self.disk.lock_to_remove(path) else { return false };
        self.disk.remove(path).is_ok()
    }
}

/// What a file counts for at least: an empty one takes a name and an inode.
pub(crate) const LEAST_OCCUPIED: u64 = 4_096;
const EVERY: Duration = Duration::from_secs(60);
/// Where there is a quota, and where many partial files are begun.
const SOON: Duration = Duration::from_secs(1);
/// More than honest senders begin in a minute, and less than the share of an address.
const MANY: u64 = 16;

fn occupies(file: &StoredFile) -> u64 {
    file.occupied.max(LEAST_OCCUPIED)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::SystemTime;

    use super::*;
    use crate::file::SystemDisk;
    use crate::file::testing::{TempDir, TestDisk};

    #[test]
    fn partial_files_expire_unless_a_session_has_them() {
        let folder = TempDir::new();
        let old = ["visible", ".weir-1.part", ".weir-2.loose", ".weir-3.part", ".weir-note"];
        for name in old {
            let file = File::create(folder.path().join(name)).expect("writable");
            let hour_ago = SystemTime::now() - std::time::Duration::from_secs(3_600);
            file.set_modified(hour_ago).expect("times");
        }
        fs::write(folder.path().join(".weir-4.part"), b"new").expect("writable");
        let locked = SystemDisk.open_locked(&folder.path().join(".weir-3.part"));
        let expiry = Duration::from_secs(1_800);
        FolderQuota::new(SystemDisk::shared(), folder.path(), None, expiry).clean_up();
        assert_eq!(folder.names(), [".weir-3.part", ".weir-4.part", ".weir-note", "visible"]);
        assert!(locked.is_ok_and(|file| file.is_some()));
    }

    #[test]
    fn an_expired_file_is_locked_until_it_is_removed() {
        let folder = TempDir::new();
        fs::write(folder.path().join(".weir-1.part"), b"old").expect("writable");
        let disk = Arc::new(TestDisk::default());
        let shared: Arc<dyn Disk> = Arc::<TestDisk>::clone(&disk);
        FolderQuota::new(shared, folder.path(), None, Duration::ZERO).clean_up();
        assert!(folder.names().is_empty());
        assert_eq!(disk.unlocked_removals.load(Ordering::Relaxed), 0);
    }

    /// Attackers fill a folder with partial files, which make space for the files of others.
    #[test]
    fn partial_files_that_no_session_has_make_space() {
        let folder = TempDir::new();
        let path = |n: usize| folder.path().join(format!(".weir-{n}.part"));
        for n in 0..5 {
            fs::write(path(n), vec![1; 20_000 * (n + 1)]).expect("writable");
        }
        let held = SystemDisk.open_locked(&path(0)).expect("writable");
        let upkeep =
            FolderQuota::new(SystemDisk::shared(), folder.path(), Some(Bytes(250_000)), EVERY);
        upkeep.clean_up();
        assert_eq!(folder.names(), [".weir-0.part", ".weir-3.part", ".weir-4.part"]);
        assert_eq!(upkeep.refusal(200_000), None, "only what a session has counts");
        upkeep.on_written(100_000);
        fs::write(folder.path().join("new"), vec![1; 100_000]).expect("writable");
        assert!(!upkeep.is_exceeded());
        upkeep.clean_up();
        assert_eq!(folder.names(), [".weir-0.part", ".weir-4.part", "new"]);
        drop(held);
    }

    #[test]
    fn an_address_leaves_only_so_many_partial_files() {
        let folder = TempDir::new();
        let upkeep = FolderQuota::new(SystemDisk::shared(), folder.path(), None, EVERY);
        let begin = |n: usize, ip: &str, len: usize| {
            let path = folder.path().join(format!(".weir-{n}.part"));
            fs::write(&path, vec![1; len]).expect("writable");
            upkeep.on_begun(&path, Origin::of(ip.parse().expect("an address")));
        };
        (0..100).for_each(|n| begin(n, "192.0.2.1", 1));
        begin(100, "203.0.113.9", 1);
        assert_eq!(upkeep.interval(), SOON);
        upkeep.clean_up();
        let names = folder.names();
        assert_eq!(names.len(), 33);
        assert!(names.contains(&".weir-100.part".to_owned()), "another address");
        assert_eq!(upkeep.interval(), EVERY);
    }

    #[test]
    fn a_quota_counts_empty_files_too() {
        let folder = TempDir::new();
        for n in 0..25 {
            fs::write(folder.path().join(n.to_string()), b"").expect("writable");
        }
        let upkeep =
            FolderQuota::new(SystemDisk::shared(), folder.path(), Some(Bytes(100_000)), EVERY);
        upkeep.clean_up();
        assert!(upkeep.is_exceeded());
        assert!(upkeep.refusal(LEAST_OCCUPIED).is_some());
    }

    #[test]
    fn a_quota_counts_what_is_there_and_what_was_written_since() {
        let folder = TempDir::new();
        fs::write(folder.path().join("a"), vec![1; 40_000]).expect("writable");
        let quota = Some(Bytes(100_000));
        let upkeep = FolderQuota::new(SystemDisk::shared(), folder.path(), quota, EVERY);
        upkeep.clean_up();
        assert_eq!(upkeep.refusal(50_000), None);
        upkeep.on_written(50_000);
        assert!(!upkeep.is_exceeded());
        let reason = upkeep.refusal(20_000).expect("too much");
        assert!(reason.starts_with("20000 bytes; the quota of 100000 has "), "{reason}");
        upkeep.on_written(50_000);
        assert!(upkeep.is_exceeded());
        upkeep.clean_up();
        assert_eq!(upkeep.refusal(50_000), None, "it was not written to the folder");
    }
}

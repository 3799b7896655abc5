//! What a folder takes of the disk, and partial files that no sender continues.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use weir_units::{Bytes, Duration};

use super::disk::{Disk, StoredFile};
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
            is_due: AtomicBool::new(false),
        }
    }

    /// How often it is worth to look at the folder.
    pub(crate) fn interval(&self) -> Duration {
        if self.quota.is_some() { EVERY_WITH_QUOTA } else { EVERY }
    }

    /// Schedules a call of [`clean_up`](Self::clean_up); returns whether none was scheduled.
    pub(crate) fn claim(&self) -> bool {
        !self.is_due.swap(true, Ordering::Relaxed)
    }

    /// Removes what has expired, and looks how much the rest takes.
    pub(crate) fn clean_up(&self) {
        self.is_due.store(false, Ordering::Relaxed);
        let written = self.written.load(Ordering::Relaxed);
        // A folder that cannot be read takes what it took before.
        let Ok(files) = self.disk.files(&self.folder) else { return };
        let stays = |file: &&StoredFile| !self.has_expired(file) || !self.remove(&file.path);
        let occupied =
            files.iter().filter(stays).map(|file| file.occupied.max(LEAST_OCCUPIED)).sum();
        self.occupied.store(occupied, Ordering::Relaxed);
        self.written.fetch_sub(written, Ordering::Relaxed);
    }

    /// Counts bytes that were written.
    pub(crate) fn on_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether the folder takes more than it may.
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
        self.occupied.load(Ordering::Relaxed).saturating_add(written)
    }

    fn has_expired(&self, file: &StoredFile) -> bool {
        is_partial(&file.path) && file.age >= self.expiry
    }

    /// Removes a partial file that no session has.
    fn remove(&self, path: &Path) -> bool {
        // Held until it is removed: a session that took it in between would lose what it writes.
        let Ok(Some(_lock)) = self.disk.open_locked(path) else { return false };
        self.disk.remove(path).is_ok()
    }
}

/// What a file counts for at least: an empty one takes a name and an inode.
pub(crate) const LEAST_OCCUPIED: u64 = 4_096;
const EVERY: Duration = Duration::from_secs(60);
const EVERY_WITH_QUOTA: Duration = Duration::from_secs(1);

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

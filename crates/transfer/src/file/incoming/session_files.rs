//! The files of a session: those that have no verdict yet, and of the others as many as will be reported.

use std::rc::Rc;

use weir_sockets::clock;

use crate::file::frame::{Tally, Verdict};
use crate::file::memory::Share;

/// What is known of a file that someone sends.
#[derive(Clone, Debug)]
pub struct IncomingFile {
    /// Its number in its session, from 0.
    pub number: u32,
    /// What it is.
    pub kind: IncomingKind,
    /// Its name or path, made safe.
    pub name: String,
    /// Its length.
    pub size: u64,
    /// What of it was there before.
    pub resumed_from: u64,
    /// How much is there.
    pub arrived: u64,
    /// What became of its datagrams so far, if it comes in such.
    pub tally: Option<Tally>,
    /// How it ended, if it did.
    pub verdict: Option<Verdict>,
    /// The machine's monotonic clock when its header came,
    pub began_ns: u64,
    /// when its last byte was in the file,
    pub arrived_ns: Option<u64>,
    /// and when its hash was known to be right or wrong.
    pub verified_ns: Option<u64>,
}

/// What something is that was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// The end of a folder, which has a row of its own only if that failed.
    FolderEnd,
    /// A symbolic link.
    Link,
}

impl IncomingFile {
    pub(super) fn new(number: u32, kind: IncomingKind, name: String, size: u64) -> Self {
        Self {
            number,
            kind,
            name,
            size,
            resumed_from: 0,
            arrived: 0,
            tally: None,
            verdict: None,
            began_ns: clock::monotonic_nanos(),
            arrived_ns: None,
            verified_ns: None,
        }
    }

    /// The memory that its row takes, in bytes.
    pub(super) fn cost(&self) -> usize {
        let verdict = match &self.verdict {
            Some(Verdict::Kept { name: text } | Verdict::Already { name: text })
            | Some(Verdict::Refused { reason: text }) => text.len(),
            Some(Verdict::Mismatch) | None => 0,
        };
        // Of rows an eighth is spare, and each text is an allocation.
        size_of::<Self>() * 9 / 8 + self.name.len() + verdict + 2 * 32
    }
}

/// The files of a session, in the order in which they were announced.
#[derive(Debug)]
pub(super) struct SessionFiles {
    rows: Vec<IncomingFile>,
    announced: u32,
    /// The present one,
    present: u32,
    /// and how long it is, if there is one.
    size: Option<u64>,
    /// How many have a verdict.
    settled: u32,
    /// Rows of files that were kept, and of those that were not, which cost their sender little.
    kept: usize,
    others: usize,
    omitted: Omitted,
    share: Rc<Share>,
}

/// How many files have no row, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// They arrived.
    pub kept: u64,
    /// The folder had them.
    pub already: u64,
    /// Their hash was wrong.
    pub mismatch: u64,
    /// They were refused.
    pub refused: u64,
    /// Their sender went on without them.
    pub incomplete: u64,
}

impl SessionFiles {
    pub(super) fn new(share: Rc<Share>) -> Self {
        let (rows, omitted) = (Vec::new(), Omitted::default());
        let (announced, present, settled, kept, others) = (0, 0, 0, 0, 0);
        Self { rows, announced, present, size: None, settled, kept, others, omitted, share }
    }

    /// Those that have a row.
    pub(super) fn rows(&self) -> &[IncomingFile] {
        &self.rows
    }

    /// Those that have none.
    pub(super) fn omitted(&self) -> Omitted {
        self.omitted
    }

    /// How many were announced, and how many of these have a verdict.
    pub(super) fn announced(&self) -> u32 {
        self.announced
    }

    pub(super) fn settled(&self) -> u32 {
        self.settled
    }

    /// The number of the present file.
    pub(super) fn number(&self) -> u32 {
        self.present
    }

    /// The length of the present file, which may have no row any more.
    pub(super) fn size(&self) -> Option<u64> {
        self.size
    }

    /// The present file.
    pub(super) fn present(&mut self) -> Option<&mut IncomingFile> {
        self.get_mut(self.number())
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut IncomingFile> {
        let at = self.find(number)?;
        self.rows.get_mut(at)
    }

    /// Adds a file or an entry.
    pub(super) fn push(&mut self, file: IncomingFile) {
        debug_assert_eq!(file.number, self.announced, "files are numbered in their order");
        self.announced += 1;
        if self.rows.len() == self.rows.capacity() {
            // A vector that doubles would hold up to twice what is counted.
            self.rows.reserve_exact(4 + self.rows.len() / 8);
        }
        self.rows.push(file);
    }

    /// A file that was added becomes the present one.
    pub(super) fn begin(&mut self, number: u32, size: u64) {
        self.present = number;
        self.size = Some(size);
        if let Some(file) = self.present() {
            file.began_ns = clock::monotonic_nanos();
        }
    }

    /// Records how a file ended; returns whether that was not known.
    pub(super) fn settle(&mut self, number: u32, verdict: Verdict) -> bool {
        let Some(at) = self.find(number).filter(|at| self.rows[*at].verdict.is_none()) else {
            return false;
        };
        self.settled += 1;
        let is_known = self.rows[at].kind == IncomingKind::FolderEnd
            && matches!(verdict, Verdict::Kept { .. });
        self.rows[at].verdict = Some(verdict);
        if is_known {
            self.rows.remove(at);
        } else {
            self.bound(at);
        }
        true
    }

    /// The sender goes on without a file that has no verdict.
    pub(super) fn abandon(&mut self, number: u32) {
        if let Some(at) = self.find(number).filter(|at| self.rows[*at].verdict.is_none()) {
            self.bound(at);
        }
    }

    /// Nothing more will be known of `these` files.
    pub(super) fn abandon_all(&mut self, these: impl Fn(u32) -> bool) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| {
            let stays = row.verdict.is_some() || !these(row.number) || self.may_stay(row);
            if !stays {
                self.omit(row);
            }
            stays
        });
        self.rows = rows;
    }

    /// Others have got the memory: rows stay only of files that were or may still be kept, as far as there is more.
    pub(super) fn free(&mut self) {
        (self.kept, self.others) = (0, 0);
        let mut rows = std::mem::take(&mut self.rows);
        rows.retain(|row| {
            let may_be_kept = matches!(row.verdict, Some(Verdict::Kept { .. }) | None);
            let stays = may_be_kept && self.may_stay(row);
            if !stays {
                self.omit(row);
            }
            stays
        });
        rows.shrink_to_fit();
        self.rows = rows;
    }

    /// Counts a file that has ended, and forgets the rest of it if there are many.
    fn bound(&mut self, at: usize) {
        let mut rows = std::mem::take(&mut self.rows);
        if !self.may_stay(&rows[at]) {
            self.omit(&rows.remove(at));
        }
        self.rows = rows;
    }

    /// Whether there is space for the row of a file that has ended; it then counts.
    fn may_stay(&mut self, row: &IncomingFile) -> bool {
        let is_kept = matches!(row.verdict, Some(Verdict::Kept { .. }));
        let (rows, most) = match is_kept {
            true => (&mut self.kept, MOST_KEPT),
            false => (&mut self.others, MOST_OTHERS),
        };
        let may = *rows < most && self.share.take_spare(row.cost());
        *rows += usize::from(may);
        may
    }

    fn omit(&mut self, row: &IncomingFile) {
        let Omitted { kept, already, mismatch, refused, incomplete } = &mut self.omitted;
        *match row.verdict {
            Some(Verdict::Kept { .. }) => kept,
            Some(Verdict::Already { .. }) => already,
            Some(Verdict::Mismatch) => mismatch,
            Some(Verdict::Refused { .. }) => refused,
            None => incomplete,
        } += 1;
    }

    fn find(&self, number: u32) -> Option<usize> {
        self.rows.binary_search_by_key(&number, |file| file.number).ok()
    }
}

/// Rows of one session about files that were kept, and about others.
const MOST_KEPT: usize = 10_000;
const MOST_OTHERS: usize = 1_000;

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;
    use crate::file::memory::Memory;

    #[test]
    fn refusals_are_counted_when_there_are_many() {
        let memory = Memory::new(Bytes(1 << 20));
        let mut files = SessionFiles::new(memory.share(0));
        for number in 0..10_000 {
            files.push(IncomingFile::new(number, IncomingKind::File, "x".to_owned(), 5));
            if number % 1_000 == 0 {
                assert!(files.settle(number, Verdict::Kept { name: "x".to_owned() }));
            } else if number % 2 == 0 {
                assert!(files.settle(number, Verdict::Refused { reason: "no".to_owned() }));
            } else {
                files.abandon(number);
            }
        }
        assert_eq!(files.rows().len(), 1_000 + 10);
        let Omitted { refused, incomplete, .. } = files.omitted();
        assert_eq!(refused + incomplete, 10_000 - 10 - 1_000);
        let kept = |file: &&IncomingFile| matches!(file.verdict, Some(Verdict::Kept { .. }));
        assert_eq!(files.rows().iter().filter(kept).count(), 10);
    }
}

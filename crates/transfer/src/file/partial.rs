//! A file that is arriving: under a hidden name, and resumable.
//!
//! What arrives in order is gathered and written in pieces that are worth it, of a long file in a thread of its
//! own; what arrives early is written to its place at once. Behind the content, in a sector of its own, a journal
//! says up to where the file is whole. A process that is killed leaves what it has written in the system's page
//! cache, so the next one goes on from there.
//!
//! Other programs may write to the folder too. So what counts is not what was received but what is on the disk when
//! all of it is there: it is read and hashed through the descriptor that gets the name, and a change of the file
//! until it has the name is noticed. No name is trusted meanwhile, nor any link followed.

mod journal;
mod place;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_transport::{RangeSet, Reassembly};

use super::disk::{Disk, DiskFile, Watch, read_exact};
use super::frame::{Attributes, Hash, Header};
use super::parts::{hash_of, hash_parts, part_count};
use super::writer::{WriteFailed, Writer};
use journal::{JOURNAL_LEN, journal, journal_at, read_journal};
use place::{LOOSE, MAX_AT_ONCE, RESUMABLE, place, places};
pub(crate) use place::{is_partial, mark_of, remove_leftovers};

/// A file that is arriving.
#[derive(Debug)]
pub(crate) struct Partial {
    disk: Arc<dyn Disk>,
    /// The hidden file. One that does not exist yet is made when there is something to write.
    file: Option<Arc<dyn DiskFile>>,
    path: PathBuf,
    size: u64,
    hash: Hash,
    /// Everything below has arrived; the end of it is in `staging`.
    prefix: u64,
    staging: Vec<u8>,
    ahead: RangeSet,
    /// How many ranges `ahead` may have.
    max_ahead: usize,
    writer: Writer,
    /// What the journal says, if there is one.
    noted: u64,
    has_journal: bool,
    /// Parts of a complete file are being replaced. Until all are, the journal says that it is complete:
    /// what is damaged is found again.
    repairing: bool,
    /// Whether a later session may go on with it.
    resumable: bool,
}

impl Partial {
    /// Opens the partial file of `header` in `folder` to go on with it, or prepares a new one. If another
    /// session has it, this one gets its own. Of several that a killed receiver has left, the one with the most
    /// bytes is opened and the others are removed.
    pub(crate) fn open(disk: &Arc<dyn Disk>, folder: &Path, header: &Header) -> io::Result<Self> {
        let mut most: Option<Self> = None;
        for path in places(folder, &header.hash, RESUMABLE) {
            if disk.entry(&path).is_none() {
                continue;
            }
            let Some(file) = disk.open_locked(&path)? else { continue };
            let found = Self::resume(disk, file, path, header)?;
            let less = match &mut most {
                Some(most) if found.prefix > most.prefix => std::mem::replace(most, found),
                Some(_) => found,
                None => {
                    most = Some(found);
                    continue;
                }
            };
            less.discard()?;
        }
        Ok(most.unwrap_or_else(|| Self::new(disk, folder, header, RESUMABLE)))
    }

    /// A partial file that takes nothing over from earlier sessions, nor leaves anything to later ones.
    pub(crate) fn fresh(disk: &Arc<dyn Disk>, folder: &Path, header: &Header) -> Self {
        let partial = Self::new(disk, folder, header, LOOSE);
        Self { max_ahead: MAX_RANGES_FRESH, resumable: false, ..partial }
    }

    /// A partial file of nothing yet, which has no place on the disk.
    fn new(disk: &Arc<dyn Disk>, folder: &Path, header: &Header, ending: &str) -> Self {
        Self {
            disk: Arc::clone(disk),
            file: None,
            path: place(folder, &header.hash, ending, 1),
            size: header.size,
            hash: header.hash,
            prefix: 0,
            staging: Vec::new(),
            ahead: RangeSet::new(),
            max_ahead: MAX_RANGES,
            writer: Writer::new(disk.helpers()),
            noted: 0,
            has_journal: false,
            repairing: false,
            resumable: true,
        }
    }

    fn resume(
        disk: &Arc<dyn Disk>,
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        header: &Header,
    ) -> io::Result<Self> {
        let size = header.size;
        let mut journal = [0; JOURNAL_LEN];
        let len = file.size()?;
        let known = len > size && read_exact(file.as_ref(), journal_at(size), &mut journal).is_ok();
        let noted = if known { read_journal(&journal, header) } else { None };
        // Without a journal it was complete, and about to get its name.
        let prefix = noted.or_else(|| (len == size).then_some(size));
        if prefix.is_none() && len > 0 {
            file.set_size(0)?;
        }
        let prefix = prefix.unwrap_or(0);
        let folder = path.parent().unwrap_or(Path::new("."));
        let new = Self::new(disk, folder, header, RESUMABLE);
        let has_journal = noted.is_some();
        Ok(Self { file: Some(file), path, prefix, noted: prefix, has_journal, ..new })
    }

    /// How much there is without a hole.
    pub(crate) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Whether every byte is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.prefix == self.size
    }

    /// Keeps bytes of the file, whatever of them there was before.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        if offset > self.prefix {
            let file = self.file()?;
            if !self.has_journal {
                // A file of full length without one is complete.
                let journal = journal(self.noted, self.size, &self.hash);
                file.write_all_at(&journal, journal_at(self.size))?;
                self.has_journal = true;
            }
            file.write_all_at(bytes, offset)?;
            let known = self.ahead.insert(offset..end, self.max_ahead);
            return known.map(drop).ok_or_else(|| io::Error::other("too many holes"));
        }
        if end <= self.prefix {
            return Ok(());
        }
        self.append(&bytes[(self.prefix - offset) as usize..])?;
        // An earlier session's segments may have been cut differently: these bytes may span a whole range.
        self.advance(self.prefix)
    }

    /// Passes over zeros that the sender's disk does not store, from within what is there without a hole.
    pub(crate) fn skip(&mut self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset + len;
        if offset > self.prefix || end <= self.prefix {
            return Ok(());
        }
        self.flush()?;
        self.file()?;
        self.advance(end)
    }

    /// The first `prefix` bytes are there, and perhaps more behind them.
    fn advance(&mut self, prefix: u64) -> io::Result<()> {
        self.prefix = prefix;
        while let Some(next) = self.ahead.first().filter(|next| next.start <= self.prefix) {
            self.flush()?;
            self.prefix = self.prefix.max(next.end);
            self.ahead.remove_below(self.prefix);
        }
        Ok(())
    }

    /// Copies what arrived out of order in `other`, a partial file of the same content that is no
    /// further. Its session has acknowledged those bytes: they are not sent again.
    pub(crate) fn absorb(&mut self, other: &Self) -> io::Result<()> {
        // Bytes ahead that an earlier session has left are sent again; there must be space for new ranges.
        let mut ahead = RangeSet::new();
        for range in self.ahead.iter().take(Reassembly::MAX_RANGES) {
            ahead.insert(range, Reassembly::MAX_RANGES);
        }
        self.ahead = ahead;
        let Some(file) = &other.file else { return Ok(()) };
        let mut buffer = Vec::new();
        for range in other.ahead.iter() {
            let mut at = range.start.max(self.prefix);
            while at < range.end {
                buffer.resize((range.end - at).min(CHUNK as u64) as usize, 0);
                read_exact(file.as_ref(), at, &mut buffer)?;
                self.write(at, &buffer)?;
                at += buffer.len() as u64;
            }
        }
        Ok(())
    }

    /// Writes out what is gathered, and how far that goes.
    pub(crate) fn note(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.noted != self.prefix && !self.repairing {
            let journal = journal(self.prefix, self.size, &self.hash);
            let file = self.file()?;
            let at = journal_at(self.size);
            let noted = self.writer.note(file.as_ref(), &journal, at, self.prefix);
            noted.map_err(|unwritten| unwritten.error)?;
            self.noted = self.prefix;
            self.has_journal = true;
        }
        Ok(())
    }

    /// How many bytes have been written since the journal was.
    pub(crate) fn unnoted(&self) -> u64 {
        self.prefix.saturating_sub(self.noted)
    }

    /// Waits until all that has come is in the file.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.settle().map_err(|unwritten| self.lose(unwritten))
    }

    /// All has come: waits until it is in the file. Should the process be killed before the file gets its
    /// name, the journal says that it is complete, or there is none.
    pub(crate) fn complete(&mut self) -> io::Result<()> {
        if self.has_journal {
            self.note()?;
        }
        // Also if it is empty.
        self.file()?;
        self.settle()?;
        self.rest();
        Ok(())
    }

    /// Brings the content, and nothing else, to the disk, and reads it from there. Returns what shows whether it
    /// changes afterwards; `None` if its hash is another one than was announced. The journal stays until the
    /// content is safe.
    pub(crate) fn seal(&mut self) -> io::Result<Option<Watch>> {
        self.settle()?;
        let file = self.file()?;
        if self.has_journal {
            file.sync()?;
        }
        file.set_size(self.size)?;
        (self.has_journal, self.noted) = (false, self.prefix);
        // What another program has mapped is written back and protected: what it writes from now on shows.
        file.sync()?;
        let watch = file.watch()?;
        let right = self.is_complete()
            && hash_of(file.as_ref(), &mut |_| Ok(()))? == (self.size, self.hash)
            && file.is_unchanged(&watch)?;
        Ok(right.then_some(watch))
    }

    /// Gives the file that was sealed a name that is free, with its permissions and time. Returns whether it is what
    /// was sealed: else nothing has the name.
    pub(crate) fn give_name(
        &mut self,
        to: &Path,
        watch: &Watch,
        attributes: &Attributes,
    ) -> io::Result<bool> {
        let file = self.file()?;
        if file.names()? != 1 || !file.is_unchanged(watch)? {
            return Ok(false);
        }
        file.give_name(&self.path, to)?;
        if file.is_at(to)? && file.is_unchanged(watch)? {
            // Until then only its owner may open it. Should the process be killed, the next session gives it these.
            file.set_mode(attributes.mode)?;
            file.set_modified(attributes.modified)?;
            return Ok(true);
        }
        if file.is_at(to)? {
            self.disk.remove(to)?;
            // Else a power failure could bring the name back, and take the next one for it.
            self.disk.sync_folder(to.parent().unwrap_or(Path::new(".")))?;
        }
        Ok(false)
    }

    /// Where it is, or is to be once there is something of it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, once there is something of it.
    pub(crate) fn made_at(&self) -> Option<&Path> {
        self.file.as_ref().map(|_| &*self.path)
    }

    /// On which disk.
    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// What it is to become.
    pub(crate) fn content(&self) -> (u64, &Hash) {
        (self.size, &self.hash)
    }

    /// The hashes of the parts of what is there.
    pub(crate) fn hash_parts(&mut self) -> io::Result<Vec<Hash>> {
        self.settle()?;
        hash_parts(self.file()?.as_ref(), self.size)
    }

    /// Of a complete file, wants these ranges again, which are in order and apart.
    pub(crate) fn repair(&mut self, damaged: &[Range<u64>]) -> io::Result<()> {
        self.settle()?;
        let Some(first) = damaged.first() else { return Ok(()) };
        let mut good = first.end;
        for range in &damaged[1..] {
            self.ahead.insert(good..range.start, self.max_ahead);
            good = range.end;
        }
        if good < self.size {
            self.ahead.insert(good..self.size, self.max_ahead);
        }
        self.prefix = first.start;
        self.writer = Writer::new(self.disk.helpers());
        self.repairing = true;
        Ok(())
    }

    /// Ends a repair whose session is gone. What its parts' hashes are is known to that session only, so the file
    /// counts as complete again, as after a restart: its hash is wrong, and the next session repairs the rest.
    pub(crate) fn end_repair(&mut self) -> io::Result<()> {
        if self.repairing {
            self.settle()?;
            self.ahead = RangeSet::new();
            self.prefix = self.size;
            self.writer = Writer::new(self.disk.helpers());
            self.repairing = false;
        }
        Ok(())
    }

    /// Leaves a complete file with a wrong hash to a session that repairs it, if the hashes of its parts are known.
    pub(crate) fn keep_damaged(self) -> io::Result<()> {
        if self.resumable && part_count(self.size) > 1 { self.leave() } else { self.discard() }
    }

    /// Leaves it to a later session, unless there is nothing to go on from.
    pub(crate) fn leave(mut self) -> io::Result<()> {
        let nothing = self.prefix == 0 && !self.repairing;
        if nothing { self.discard() } else { self.note() }
    }

    /// Frees the memory for gathering bytes if it is not in use.
    pub(crate) fn rest(&mut self) {
        if self.staging.is_empty() {
            self.staging = Vec::new();
        }
    }

    /// The memory for gathering bytes.
    pub(crate) fn staging_memory(&self) -> usize {
        self.staging.capacity()
    }

    /// The memory for the ranges that arrived early: here, and in the connection that brought them.
    pub(crate) fn range_memory(&self) -> usize {
        // A vector that grows has up to twice the space it needs.
        self.ahead.len() * size_of::<Range<u64>>() * 2 * 2
    }

    /// Writes out what is gathered, and frees the memory.
    pub(crate) fn unstage(&mut self) -> io::Result<()> {
        self.flush()?;
        self.rest();
        Ok(())
    }

    /// Removes it, unless another program has put something else in its place.
    pub(crate) fn discard(self) -> io::Result<()> {
        match &self.file {
            Some(file) if file.is_at(&self.path)? => self.disk.remove(&self.path),
            _ => Ok(()),
        }
    }

    /// The hidden file, made if there is none. What other sessions have left stays theirs.
    fn file(&mut self) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        let folder = self.path.parent().unwrap_or(Path::new(".")).to_owned();
        let ending = if self.resumable { RESUMABLE } else { LOOSE };
        let hash = self.hash;
        for path in places(&folder, &hash, ending) {
            if self.resumable && self.disk.entry(&path).is_some() {
                continue;
            }
            if let Some(file) = self.disk.open_locked(&path)? {
                if !self.resumable {
                    file.set_size(0)?;
                }
                (self.file, self.path) = (Some(Arc::clone(&file)), path);
                return Ok(file);
            }
        }
        Err(io::Error::other(format!("all {MAX_AT_ONCE} places of its partial files are taken")))
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let last = self.prefix + bytes.len() as u64 == self.size;
        if last && self.staging.is_empty() {
            // A small file comes all at once.
            self.file()?.write_all_at(bytes, self.prefix)?;
            self.prefix += bytes.len() as u64;
            return Ok(());
        }
        while !bytes.is_empty() {
            let space = CHUNK - self.prefix as usize % CHUNK;
            let (part, rest) = bytes.split_at(bytes.len().min(space));
            self.reserve(part.len());
            self.staging.extend_from_slice(part);
            self.prefix += part.len() as u64;
            if part.len() == space || self.is_complete() {
                self.flush()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Makes space for `len` more gathered bytes. The space grows with them, so that few bytes of a long file
    /// take little memory.
    fn reserve(&mut self, len: usize) {
        let (needed, space) = (self.staging.len() + len, self.staging.capacity());
        if needed > space {
            let left = usize::try_from(self.size - self.prefix).unwrap_or(usize::MAX);
            let most = CHUNK.min(self.staging.len().saturating_add(left));
            let wanted = needed.max(2 * space).max(LEAST_STAGING).min(most);
            self.staging.reserve_exact(wanted - self.staging.len());
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.staging.is_empty() {
            return Ok(());
        }
        let file = self.file()?;
        let at = self.prefix - self.staging.len() as u64;
        let piece = std::mem::take(&mut self.staging);
        let empty = self.writer.take(&file, piece, at, self.size - self.prefix);
        self.staging = empty.map_err(|unwritten| self.lose(unwritten))?;
        Ok(())
    }

    /// What is not written is not there, should anyone go on from here.
    fn lose(&mut self, unwritten: WriteFailed) -> io::Error {
        self.prefix = self.prefix.min(unwritten.at);
        if self.noted > self.prefix {
            // What was to be noted after it is not noted either.
            self.noted = 0;
        }
        self.staging.clear();
        self.writer = Writer::new(self.disk.helpers());
        unwritten.error
    }
}

/// Bytes gathered before writing: less than a core's cache. A power of two, at whose multiples in the file pieces end.
const CHUNK: usize = 256 << 10;
/// The first memory for gathering.
const LEAST_STAGING: usize = 16 << 10;
/// The connection keeps no more ranges apart; bytes that were known before it may come to these.
const MAX_RANGES: usize = 2 * Reassembly::MAX_RANGES;
/// A file that is not sent again has as many holes only if it cannot become whole.
const MAX_RANGES_FRESH: usize = 256;

#[cfg(test)]
mod tests;

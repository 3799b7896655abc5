//! A file on its way to a receiver.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_sockets::clock;

use crate::file::brought::TransferredBytes;
use crate::file::disk::{Disk, DiskFile, FileState, SystemDisk};
use crate::file::frame::{Hash, Header, Tally, Verdict};
use crate::file::parts::{hash_of, hash_of_parts, hash_parts, part_count};
use crate::file::plain;

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A file with its content.
    File,
    /// A folder, before what is in it,
    Folder,
    /// and once all of that is there: it gets its permissions and time.
    FolderEnd,
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
    },
}

/// A file that is to be sent, or a folder or link, and what is known of its way.
#[derive(Clone, Debug)]
pub struct OutgoingFile {
    /// What it is.
    pub kind: OutgoingKind,
    /// Where it is,
    pub path: PathBuf,
    /// and on which disk.
    pub disk: Arc<dyn Disk>,
    /// What is sent to the receiver about it.
    pub header: Header,
    /// Its state before it was read.
    state: FileState,
    /// What the receiver had of it before, once it has said so.
    pub resumed_from: Option<u64>,
    /// How much of it is there, as far as the receiver has said.
    pub arrived: u64,
    /// The same over all connections, with what was lost there.
    pub(super) brought: TransferredBytes,
    /// What became of its datagrams, if it was sent in such.
    pub tally: Option<Tally>,
    /// The hashes of its parts, once its receiver has got another content than announced.
    pub(super) parts: Option<Arc<[Hash]>>,
    /// How often that happened.
    repairs: u32,
    /// How it ended, if it did,
    pub verdict: Option<Verdict>,
    /// and when that was known, on the machine's monotonic clock.
    pub ended_ns: Option<u64>,
}

impl OutgoingFile {
    /// Reads the file at `path` of the system's disk once, for its hash. `watch` receives now and then
    /// how many bytes of how many are done; its error ends the reading.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn prepare(
        path: &Path,
        watch: &mut dyn FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<Self> {
        Self::prepare_on(SystemDisk::shared(), path, watch)
    }

    /// As [`prepare`](Self::prepare) does, with a file of another disk.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn prepare_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        watch: &mut dyn FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<Self> {
        let file = disk.open(path)?;
        let state = file.present_state()?;
        let attributes = file.attributes()?;
        let all = file.size()?;
        let (size, hash): (u64, Hash) = hash_of(file.as_ref(), &mut |done| watch(done, all))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let header = Header { attributes, ..Header::new(name, size, hash) };
        Ok(Self { state, ..Self::entry(disk, path, OutgoingKind::File, header) })
    }

    /// A folder or a link, of which the header has the name and attributes.
    pub fn entry(disk: Arc<dyn Disk>, path: &Path, kind: OutgoingKind, header: Header) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            disk,
            header,
            state: FileState::default(),
            resumed_from: None,
            arrived: 0,
            brought: TransferredBytes::default(),
            tally: None,
            parts: None,
            repairs: 0,
            verdict: None,
            ended_ns: None,
        }
    }

    /// Whether it has a content.
    pub fn is_file(&self) -> bool {
        self.kind == OutgoingKind::File
    }

    /// Whether another connection has to announce it again although it is there: what is in a folder may be sent only
    /// after it, and changes its time.
    pub(crate) fn surrounds_others(&self) -> bool {
        matches!(self.kind, OutgoingKind::Folder | OutgoingKind::FolderEnd)
    }

    /// It is to be announced again.
    pub(crate) fn reopen(&mut self) {
        self.verdict = None;
        self.ended_ns = None;
    }

    /// After a mismatch: makes it ready to be sent again, now with the hashes of its parts, so that only
    /// what is damaged is. Returns whether there is a point in that: not if it was done often, or the
    /// file has another content by now.
    pub(crate) fn prepare_repair(&mut self) -> io::Result<bool> {
        if self.repairs >= MOST_REPAIRS {
            return Ok(false);
        }
        if self.repairs == 0 {
            let (file, size) = (self.open()?, self.header.size);
            if part_count(size) > 1 {
                let parts = hash_parts(file.as_ref(), size)?;
                if file.size()? != size || hash_of_parts(&parts) != Some(self.header.hash) {
                    return Ok(false);
                }
                self.parts = Some(parts.into());
            } else if hash_of(file.as_ref(), &mut |_| Ok(()))? != (size, self.header.hash) {
                return Ok(false);
            }
        }
        self.repairs += 1;
        self.brought.on_mismatch();
        self.reopen();
        Ok(true)
    }

    /// Whether it is another file now than the one that was read first, or has changed in any way since. The one that
    /// its receiver has kept has the content of `header.hash` nevertheless.
    pub fn has_changed(&self) -> bool {
        if !self.is_file() {
            return false;
        }
        self.open().and_then(|file| file.present_state()).map_or(true, |now| now != self.state)
    }

    pub(in crate::file) fn open(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.path).map_err(|error| named(&self.path, error))
    }

    /// More after every connection that has made progress.
    pub(crate) fn progress(&self) -> u64 {
        self.brought.total() + u64::from(self.verdict.is_some() && !self.surrounds_others())
    }

    /// It is acknowledged up to `end`, and `new` bytes before that were not.
    pub(super) fn on_acked(&mut self, end: u64, new: u64) {
        // Until then the receiver may have more, and what is acknowledged is sent a second time.
        if self.resumed_from.is_some() {
            self.arrived = self.arrived.max(end);
        }
        match self.parts {
            Some(_) => self.brought.on_repaired(new),
            None => self.brought.on_acked(end),
        }
    }

    pub(in crate::file) fn on_verdict(&mut self, verdict: Verdict) {
        if matches!(verdict, Verdict::Kept { .. } | Verdict::Already { .. }) {
            self.arrived = self.header.size;
        }
        self.verdict = Some(verdict);
        self.ended_ns = Some(clock::monotonic_nanos());
    }
}

/// An error that says which file it is about.
pub(in crate::file) fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), plain(&error)))
}

/// How often a file is sent again because its receiver has got another content: each time less of it is.
const MOST_REPAIRS: u32 = 10;

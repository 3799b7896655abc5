//! The sending end of a session: files become a stream.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_sockets::clock;
use weir_transport::{Connection, ConnectionError, Event};
use weir_units::{Bytes, Instant};

use super::brought::Brought;
use super::disk::{Disk, DiskFile, SystemDisk};
use super::finalizer::hash_of;
use super::frame::{
    Announcement, Answer, Frame, FrameError, Hash, Header, MAX_PARTS, Tally, Verdict,
};
use super::inbox::Inbox;
use super::parts::{hash_of_parts, hash_parts, part_count};
use super::plain;
use super::read_ahead::ReadAhead;
use crate::endpoint::Application;

/// A file that is to be sent, and what is known of its way.
#[derive(Clone, Debug)]
pub struct OutgoingFile {
    /// Where it is,
    pub path: PathBuf,
    /// and on which disk.
    pub disk: Arc<dyn Disk>,
    /// What is sent to the receiver about it.
    pub header: Header,
    /// What the receiver had of it before, once it has said so.
    pub resumed_from: Option<u64>,
    /// How much of it is there, as far as the receiver has said.
    pub arrived: u64,
    /// The same over all connections, with what was lost there.
    brought: Brought,
    /// What became of its datagrams, if it was sent in such.
    pub tally: Option<Tally>,
    /// The hashes of its parts, once its receiver has got another content than announced.
    parts: Option<Arc<[Hash]>>,
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
        let all = file.size()?;
        let (size, hash): (u64, Hash) = hash_of(file.as_ref(), &mut |done| watch(done, all))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self {
            path: path.to_owned(),
            disk,
            header: Header { name, size, hash },
            resumed_from: None,
            arrived: 0,
            brought: Brought::default(),
            tally: None,
            parts: None,
            repairs: 0,
            verdict: None,
            ended_ns: None,
        })
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
        self.verdict = None;
        self.ended_ns = None;
        Ok(true)
    }

    pub(super) fn open(&self) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.path).map_err(|error| named(&self.path, error))
    }

    /// More after every connection that has made progress.
    pub(crate) fn progress(&self) -> u64 {
        self.brought.total() + u64::from(self.verdict.is_some())
    }

    /// It is acknowledged up to `end`, and `new` bytes before that were not.
    fn on_acked(&mut self, end: u64, new: u64) {
        // Until then the receiver may have more, and what is acknowledged is sent a second time.
        if self.resumed_from.is_some() {
            self.arrived = self.arrived.max(end);
        }
        match self.parts {
            Some(_) => self.brought.on_repaired(new),
            None => self.brought.on_acked(end),
        }
    }

    pub(super) fn on_verdict(&mut self, verdict: Verdict) {
        if matches!(verdict, Verdict::Kept { .. } | Verdict::Already { .. }) {
            self.arrived = self.header.size;
        }
        self.verdict = Some(verdict);
        self.ended_ns = Some(clock::monotonic_nanos());
    }
}

/// The sending end of a session.
#[derive(Debug)]
pub struct Outgoing {
    files: Vec<OutgoingFile>,
    /// The file to announce next.
    next: usize,
    present: Option<Present>,
    /// What the stream consists of, from the oldest byte that may be needed again.
    spans: VecDeque<Span>,
    /// Handed to the connection up to here, and requested up to there.
    written: u64,
    asked: u64,
    ended: bool,
    inbox: Inbox,
    read_ahead: ReadAhead,
    /// When the receiver last said anything, and last acknowledged anything.
    heard_at: Option<Instant>,
    acked_at: Option<Instant>,
    acked: u64,
    failure: Option<Failure>,
}

/// Why a session cannot end well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection broke: another one may do better.
    Broken(ConnectionError),
    /// The receiver has ended the session: another one may do better.
    Ended(String),
    /// The receiver wants no more.
    Refused(String),
    /// What the receiver says makes no sense.
    Nonsense(FrameError),
    /// The receiver left without a verdict on every file.
    Left,
}

/// The file whose pieces are being written.
#[derive(Debug)]
struct Present {
    file: Arc<dyn DiskFile>,
    /// The next piece begins here.
    at: u64,
    /// The receiver has said from where on it wants the file.
    welcome: bool,
    /// It has said that it does not know yet, or is to say what is damaged.
    held: bool,
    /// What of it is damaged, before `at`.
    damaged: VecDeque<Range<u64>>,
}

#[derive(Debug)]
struct Span {
    start: u64,
    len: u64,
    what: SpanContent,
}

#[derive(Debug)]
enum SpanContent {
    Frame(Vec<u8>),
    /// Bytes of a file, by its place in the list, from an offset on.
    Piece(Arc<dyn DiskFile>, usize, u64),
}

impl Present {
    fn damaged_bytes(&self) -> u64 {
        self.damaged.iter().map(|range| range.end - range.start).sum()
    }
}

impl Outgoing {
    /// Sends `files`.
    pub fn new(files: Vec<OutgoingFile>) -> Self {
        let mut outgoing = Self {
            files,
            next: 0,
            present: None,
            spans: VecDeque::new(),
            written: 0,
            asked: 0,
            ended: false,
            inbox: Inbox::new(ANSWER_BUFFER),
            read_ahead: ReadAhead::default(),
            heard_at: None,
            acked_at: None,
            acked: 0,
            failure: None,
        };
        outgoing.say(&Announcement::Hello { files: outgoing.files.len() as u32 });
        outgoing
    }

    /// The files and what became of them so far.
    pub fn files(&self) -> &[OutgoingFile] {
        &self.files
    }

    /// The files and what became of them.
    pub fn into_files(self) -> Vec<OutgoingFile> {
        self.files
    }

    /// Why the session cannot end well, if so.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether every file has its verdict.
    pub fn is_settled(&self) -> bool {
        self.files.iter().all(|file| file.verdict.is_some())
    }

    /// Whether it is the receiver's turn to say something: everything is written, or no more is wanted
    /// for now.
    pub fn is_waiting(&self) -> bool {
        self.ended || self.is_held()
    }

    /// When the receiver last said or acknowledged anything.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard_at.max(self.acked_at)
    }

    /// The file that is being sent.
    pub fn present(&self) -> Option<&OutgoingFile> {
        self.next.checked_sub(1).map(|at| &self.files[at])
    }

    fn say(&mut self, frame: &Announcement) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.append(bytes.len() as u64, SpanContent::Frame(bytes));
    }

    fn append(&mut self, len: u64, what: SpanContent) {
        let start = self.spans.back().map_or(self.written, |last| last.start + last.len);
        self.spans.push_back(Span { start, len, what });
    }

    fn end(&self) -> u64 {
        self.spans.back().map_or(self.written, |last| last.start + last.len)
    }

    /// Fills the stream so that the connection does not run dry before the next turn.
    fn compose(&mut self) -> io::Result<()> {
        while !self.ended && !self.is_held() && self.end() < self.asked + self.ahead() {
            match &self.present {
                Some(_) => self.compose_piece(),
                None if self.next < self.files.len() => self.announce()?,
                None => {
                    self.say(&Announcement::End);
                    self.ended = true;
                }
            }
        }
        Ok(())
    }

    /// Whether the receiver wants no more of the present file for now.
    fn is_held(&self) -> bool {
        let undecided = |at: usize| self.files[at].verdict.is_none();
        self.present.as_ref().is_some_and(|present| present.held) && undecided(self.next - 1)
    }

    fn ahead(&self) -> u64 {
        match &self.present {
            Some(Present { welcome: false, .. }) => AHEAD_UNASKED,
            _ => AHEAD,
        }
    }

    fn announce(&mut self) -> io::Result<()> {
        let outgoing = &mut self.files[self.next];
        outgoing.brought.on_announced();
        let file = outgoing.open()?;
        let header = outgoing.header.clone();
        self.next += 1;
        let parts = outgoing.parts.clone();
        let held = parts.is_some();
        match parts {
            Some(parts) => {
                self.say(&Announcement::Repair(header));
                for hashes in parts.chunks(MAX_PARTS) {
                    self.say(&Announcement::Parts(hashes.to_vec()));
                }
            }
            None => self.say(&Announcement::File(header)),
        }
        let damaged = VecDeque::new();
        self.present = Some(Present { file, at: 0, welcome: false, held, damaged });
        Ok(())
    }

    /// Reads the beginning of the first file while the receiver is asked whether it is there.
    fn prepare(&mut self) -> io::Result<()> {
        let piece = self.spans.iter().find_map(|span| match &span.what {
            SpanContent::Piece(file, number, _) => Some((file, number)),
            SpanContent::Frame(_) => None,
        });
        let Some((file, number)) = piece else { return Ok(()) };
        let read = self.read_ahead.prepare(file);
        read.map_err(|error| named(&self.files[*number].path, error))
    }

    /// The next piece of the present file: a small one while the receiver may yet say that it has the
    /// beginning, then all the rest at once.
    fn compose_piece(&mut self) {
        let Some(present) = &mut self.present else { return };
        let number = self.next - 1;
        let outgoing = &self.files[number];
        let size = outgoing.header.size;
        let left = size.saturating_sub(present.at);
        let damaged = present.damaged.pop_front().filter(|_| outgoing.verdict.is_none());
        if outgoing.verdict.is_some() || left == 0 && damaged.is_none() {
            self.present = None;
            return;
        }
        let file = Arc::clone(&present.file);
        let Range { start: offset, end } = damaged.unwrap_or_else(|| {
            let start = present.at;
            present.at += if present.welcome { left } else { left.min(UNASKED_PIECE) };
            start..present.at
        });
        let len = end - offset;
        self.say(&Announcement::Data { offset, len });
        self.append(len, SpanContent::Piece(file, number, offset));
    }

    fn read_answers(&mut self) -> Result<(), FrameError> {
        while let Some((answer, len)) = Answer::parse(self.inbox.ready())? {
            self.inbox.advance(self.inbox.base() + len as u64);
            self.on_answer(answer)?;
        }
        Ok(())
    }

    fn on_answer(&mut self, answer: Answer) -> Result<(), FrameError> {
        match answer {
            Answer::Have { file, prefix } => {
                let number = self.announced(file)?;
                let outgoing = &mut self.files[number];
                if prefix > outgoing.header.size {
                    return Err(FrameError::Order("more of a file than there is"));
                }
                outgoing.resumed_from.get_or_insert(prefix);
                let present = self.present.as_mut().filter(|_| number + 1 == self.next);
                let damaged = present.as_ref().map_or(0, |present| present.damaged_bytes());
                outgoing.brought.on_present(prefix.saturating_sub(damaged));
                outgoing.arrived = outgoing.arrived.max(prefix);
                if let Some(present) = present {
                    present.at = present.at.max(prefix);
                    present.welcome = true;
                    present.held = false;
                }
            }
            Answer::Verdict { file, verdict } => {
                let number = self.announced(file)?;
                self.files[number].on_verdict(verdict);
            }
            Answer::Count { .. } => {
                return Err(FrameError::Order("a count of datagrams that were not sent"));
            }
            Answer::Working => {}
            Answer::Damaged { file, offset, len } => {
                let number = self.announced(file)?;
                if offset.saturating_add(len) > self.files[number].header.size {
                    return Err(FrameError::Order("more of a file than there is"));
                }
                let present = self.present.as_mut().filter(|_| number + 1 == self.next);
                if let Some(present) =
                    present.filter(|it| !it.welcome && it.damaged.len() < MOST_DAMAGED)
                {
                    present.damaged.push_back(offset..offset + len);
                }
            }
            Answer::Wait { file } => {
                let number = self.announced(file)?;
                if let Some(present) = self.present.as_mut().filter(|_| number + 1 == self.next) {
                    present.held = !present.welcome;
                }
            }
            Answer::Broken { reason } => {
                self.failure.get_or_insert(Failure::Ended(reason));
            }
            Answer::Failed { reason } => {
                self.failure.get_or_insert(Failure::Refused(reason));
            }
        }
        Ok(())
    }

    /// The place of file `number` in the list, if it was announced.
    fn announced(&self, number: u32) -> Result<usize, FrameError> {
        let number = number as usize;
        let known = number < self.next;
        known.then_some(number).ok_or(FrameError::Order("an answer about no file"))
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Failed(error) if !self.is_settled() => {
                self.failure.get_or_insert(Failure::Broken(error));
            }
            Event::Finished | Event::Closed if !self.is_settled() => {
                self.failure.get_or_insert(Failure::Left);
            }
            _ => {}
        }
    }

    /// Everything below `acked` is at the receiver.
    fn on_acked(&mut self, now: Instant, acked: u64) {
        if acked == self.acked {
            return;
        }
        let before = std::mem::replace(&mut self.acked, acked);
        self.acked_at = Some(now);
        while let Some(span) = self.spans.front().filter(|span| span.start < acked) {
            let len = span.len.min(acked - span.start);
            if let SpanContent::Piece(_, number, offset) = span.what {
                let known = before.saturating_sub(span.start).min(len);
                self.files[number].on_acked(offset + len, len - known);
            }
            if len < span.len {
                break;
            }
            self.spans.pop_front();
        }
    }

    /// The span in which `offset` lies.
    fn find(&self, offset: u64) -> Option<usize> {
        let after = self.spans.partition_point(|span| span.start <= offset);
        after.checked_sub(1).filter(|at| offset < self.spans[*at].start + self.spans[*at].len)
    }
}

impl Application for Outgoing {
    fn fill(&mut self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        let first =
            self.find(offset).ok_or_else(|| io::Error::other("bytes requested that are gone"))?;
        self.asked = self.asked.max(offset + buf.len() as u64);
        for span in self.spans.range(first..) {
            if buf.is_empty() {
                break;
            }
            let skip = offset - span.start;
            let len = (span.len - skip).min(buf.len() as u64) as usize;
            let (part, rest) = buf.split_at_mut(len);
            match &span.what {
                SpanContent::Frame(bytes) => part.copy_from_slice(&bytes[skip as usize..][..len]),
                SpanContent::Piece(file, number, at) => {
                    let read = self.read_ahead.read(file, at + skip, part);
                    read.map_err(|error| named(&self.files[*number].path, error))?;
                }
            }
            offset += len as u64;
            buf = rest;
        }
        Ok(())
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inbox.insert(offset, bytes)
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        if connection.read(now, u64::MAX) > 0 {
            self.heard_at = Some(now);
        }
        if let Err(error) = self.read_answers() {
            self.failure.get_or_insert(Failure::Nonsense(error));
        }
        while let Some(event) = connection.poll_event() {
            self.on_event(event);
        }
        if self.failure.is_some() {
            connection.abort(now);
            return Ok(());
        }
        self.compose()?;
        if !connection.is_synchronised() {
            self.prepare()?;
        }
        connection.write(now, self.end() - self.written);
        self.written = self.end();
        if self.ended {
            connection.close(now);
        }
        self.on_acked(now, connection.stats().acked_bytes);
        let delivered = connection.stats().delivered_bytes;
        connection.set_recv_window(Bytes(self.inbox.edge() - delivered.min(self.inbox.edge())));
        Ok(())
    }
}

/// An error that says which file it is about.
pub(super) fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), plain(&error)))
}

/// How often a file is sent again because its receiver has got another content: each time less of it is.
const MOST_REPAIRS: u32 = 10;
/// Ranges that are damaged; a file has no more parts.
const MOST_DAMAGED: usize = 4_096;
/// How much is composed ahead of what the connection has requested: less while the receiver may yet say
/// that it has it.
const AHEAD: u64 = 1 << 20;
const AHEAD_UNASKED: u64 = 256 << 10;
/// A piece before the receiver has said from where on it wants the file.
const UNASKED_PIECE: u64 = 64 << 10;
const ANSWER_BUFFER: usize = 64 << 10;

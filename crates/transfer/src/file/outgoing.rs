//! The sending end of a session: files become a stream.

mod file;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use weir_transport::{Connection, ConnectionError, Event};
use weir_units::{Bytes, Instant};

pub(super) use self::file::named;
pub use self::file::{OutgoingFile, OutgoingKind};
use super::disk::DiskFile;
use super::frame::{Announcement, Answer, EntryHeader, EntryKind, Frame, FrameError, MAX_PARTS};
use super::inbox::Inbox;
use super::read_ahead::ReadAhead;
use crate::endpoint::Application;

/// The sending end of a session.
#[derive(Debug)]
pub struct Outgoing {
    files: Vec<OutgoingFile>,
    /// Whether the receiver is asked first which files it has.
    asks: bool,
    /// Everything before this was announced or asked about.
    introduced: usize,
    /// The file to announce next, of those that are wanted: everything before has its turn behind it.
    next: usize,
    /// Which of those that were asked about are wanted.
    wanted: BTreeSet<usize>,
    /// How many have no verdict: ends of folders, and all else.
    open_ends: usize,
    open: usize,
    /// Nothing can be written until the receiver has answered.
    blocked: bool,
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

impl Failure {
    /// What an event of the connection is to a session that is not settled.
    pub(super) fn of(event: Event) -> Option<Self> {
        match event {
            Event::Failed(error) => Some(Self::Broken(error)),
            Event::Finished | Event::Closed => Some(Self::Left),
            _ => None,
        }
    }
}

/// The file whose pieces are being written.
#[derive(Debug)]
struct Present {
    /// Its place in the list.
    number: usize,
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
    /// Sends `files`: folders before what is in them, and their ends last.
    pub fn new(mut files: Vec<OutgoingFile>) -> Self {
        for (number, file) in files.iter_mut().enumerate() {
            file.header.number = number as u32;
        }
        let is_open = |file: &&OutgoingFile| file.verdict.is_none();
        let (ends, others): (Vec<_>, Vec<_>) =
            files.iter().filter(is_open).partition(|file| file.kind == OutgoingKind::FolderEnd);
        let mut outgoing = Self {
            // One file is sent at once: if the receiver has it, it says so soon enough.
            asks: files.len() > 1,
            open_ends: ends.len(),
            open: others.len(),
            files,
            introduced: 0,
            wanted: BTreeSet::new(),
            blocked: false,
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
        self.open + self.open_ends == 0
    }

    /// Whether it is the receiver's turn to say something: everything is written, or no more is wanted
    /// for now.
    pub fn is_waiting(&self) -> bool {
        self.ended || self.blocked || self.is_held()
    }

    /// When the receiver last said or acknowledged anything.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard_at.max(self.acked_at)
    }

    /// The file that is being sent.
    pub fn present(&self) -> Option<&OutgoingFile> {
        let sent = self.present.as_ref().map(|present| present.number);
        sent.or(self.next.checked_sub(1)).map(|at| &self.files[at])
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

    /// Fills the stream so that the connection does not run dry before the next step.
    fn compose(&mut self) -> io::Result<()> {
        self.blocked = false;
        while !self.ended && !self.is_held() && self.end() < self.asked + self.ahead() {
            if self.present.is_some() {
                self.compose_piece();
                continue;
            }
            self.introduce();
            match self.files.get(self.next) {
                None => {
                    self.say(&Announcement::End);
                    self.ended = true;
                }
                Some(file)
                    if file.verdict.is_some() || !file.is_file() && self.next < self.introduced =>
                {
                    self.next += 1;
                }
                Some(file) if file.is_file() && (!self.asks || self.wanted.remove(&self.next)) => {
                    self.announce()?;
                }
                Some(_) => {
                    self.blocked = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Announces entries and asks about files, some way ahead of the one that is sent.
    fn introduce(&mut self) {
        while let Some(file) = self.files.get(self.introduced) {
            let is_far = self.introduced >= self.next + MOST_ASKED;
            let is_early = file.kind == OutgoingKind::FolderEnd && self.open > 0;
            if is_far || is_early || file.is_file() && !self.asks {
                break;
            }
            let header = file.header.clone();
            let kind = match &file.kind {
                OutgoingKind::File => None,
                OutgoingKind::Folder => Some(EntryKind::Folder),
                OutgoingKind::FolderEnd => Some(EntryKind::FolderEnd),
                OutgoingKind::Link { target } => Some(EntryKind::Link { target: target.clone() }),
            };
            self.introduced += 1;
            let (number, path, attributes) =
                (header.number, header.name.clone(), header.attributes);
            self.say(&match kind {
                Some(kind) => Announcement::Entry(EntryHeader { number, path, attributes, kind }),
                None => Announcement::Ask(header),
            });
        }
    }

    /// Whether the receiver wants no more of the present file for now.
    fn is_held(&self) -> bool {
        let present = self.present.as_ref().filter(|present| present.held);
        present.is_some_and(|present| self.files[present.number].verdict.is_none())
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
        let (number, header) = (self.next, outgoing.header.clone());
        self.next += 1;
        self.introduced = self.introduced.max(self.next);
        let parts = outgoing.parts.clone();
        // Its beginning is there: only the receiver knows from where on it wants the rest.
        let held = parts.is_some() || outgoing.brought.is_there_in_part();
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
        self.present = Some(Present { number, file, at: 0, welcome: false, held, damaged });
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
        let number = present.number;
        let outgoing = &self.files[number];
        let size = outgoing.header.size;
        let left = size.saturating_sub(present.at);
        let damaged = present.damaged.pop_front().filter(|_| outgoing.verdict.is_none());
        if outgoing.verdict.is_some() || left == 0 && damaged.is_none() {
            self.present = None;
            return;
        }
        let file = Arc::clone(&present.file);
        let is_repair = damaged.is_some();
        let Range { start: offset, end } = damaged.unwrap_or_else(|| {
            let (start, end) = (present.at, present.at + left);
            let most = if present.welcome { end } else { end.min(start + UNASKED_PIECE) };
            present.at = match hole_from(file.as_ref(), start, end) {
                Some(hole) => hole,
                None => next_hole(file.as_ref(), start, end).min(most),
            };
            start..present.at
        });
        let is_hole = !is_repair && hole_from(file.as_ref(), offset, size).is_some();
        if is_hole {
            return self.say(&Announcement::Hole { offset, len: end - offset });
        }
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
                let present = self.present.as_mut().filter(|present| number == present.number);
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
                let file = &mut self.files[number];
                if file.verdict.is_none() {
                    match file.kind {
                        OutgoingKind::FolderEnd => self.open_ends -= 1,
                        _ => self.open -= 1,
                    }
                }
                file.on_verdict(verdict);
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
                let present = self.present.as_mut().filter(|present| number == present.number);
                if let Some(present) =
                    present.filter(|it| !it.welcome && it.damaged.len() < MOST_DAMAGED)
                {
                    present.damaged.push_back(offset..offset + len);
                }
            }
            Answer::Wait { file } => {
                let number = self.announced(file)?;
                let present = self.present.as_mut().filter(|present| number == present.number);
                if let Some(present) = present {
                    present.held = !present.welcome;
                }
            }
            Answer::Wanted { file } => {
                let number = self.announced(file)?;
                if !self.asks || number < self.next {
                    return Err(FrameError::Order("an answer to no question"));
                }
                self.wanted.insert(number);
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
        let known = number < self.introduced;
        known.then_some(number).ok_or(FrameError::Order("an answer about no file"))
    }

    fn on_event(&mut self, event: Event) {
        if let Some(failure) = Failure::of(event).filter(|_| !self.is_settled()) {
            self.failure.get_or_insert(failure);
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

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
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

/// Where the hole ends that begins at `start` of a file, if there is one that is worth not being sent.
fn hole_from(file: &dyn DiskFile, start: u64, size: u64) -> Option<u64> {
    let end = file.hole_at(start)?.min(size);
    (end >= start.saturating_add(SHORTEST_HOLE)).then_some(end)
}

/// Where the next such hole begins after `start`, or the file ends.
fn next_hole(file: &dyn DiskFile, mut start: u64, size: u64) -> u64 {
    while let Some(hole) = file.next_hole(start).filter(|hole| *hole < size) {
        match hole_from(file, hole, size) {
            Some(_) => return hole,
            // A short one is sent like data.
            None => start = file.hole_at(hole).unwrap_or(size).max(hole + 1),
        }
    }
    size
}

/// Shorter holes are sent as zeros.
const SHORTEST_HOLE: u64 = 64 << 10;
/// Files that are asked about before the next one is sent: what a round trip of 50 ms takes at 5000 files a second.
const MOST_ASKED: usize = 256;
/// Ranges that are damaged; a file has no more parts.
const MOST_DAMAGED: usize = 4_096;
/// How much is composed ahead of what the connection has requested: less while the receiver may yet say
/// that it has it.
const AHEAD: u64 = 1 << 20;
const AHEAD_UNASKED: u64 = 256 << 10;
/// A piece before the receiver has said from where on it wants the file.
const UNASKED_PIECE: u64 = 64 << 10;
const ANSWER_BUFFER: usize = 64 << 10;

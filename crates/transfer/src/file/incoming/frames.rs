//! What the sender says, frame by frame, and which of its files are welcome.

use std::sync::Arc;

use weir_units::Instant;

use super::{
    ASK_PATIENCE, Asked, Folder, Incoming, IncomingFile, IncomingKind, KNOWN_SENDER_BUFFER,
    NO_MEMORY, State, Wait,
};
use crate::file::disk::Entry;
use crate::file::finalizer::{Destination, FinalizerHandle, Sought};
use crate::file::frame::{
    Announcement, Answer, EntryHeader, EntryKind, Frame, FrameError, Hash, Header, Verdict,
};
use crate::file::inbox::Inbox;
use crate::file::partial::Partial;
use crate::file::parts::{hash_of_parts, part_count};
use crate::file::path::{SafePath, printable};
use crate::file::quota::LEAST_OCCUPIED;
use crate::file::unreliable::DatagramFile;

impl Incoming {
    /// Reads frames for as long as everything before them has arrived.
    pub(super) fn read_frames(&mut self, delivered: u64) -> Result<(), FrameError> {
        while delivered >= self.piece.end && self.may_read() {
            let Some((frame, len)) = Announcement::parse(self.inbox.ready())? else { break };
            if self.defers(&frame) || self.is_ending && !is_of_the_file(&frame) {
                break;
            }
            self.inbox.advance(self.inbox.base() + len as u64);
            self.count_frame();
            self.on_frame(frame)?;
        }
        Ok(())
    }

    fn count_frame(&mut self) {
        self.frames_left -= 1;
        self.frames_read += 1;
    }

    /// Reads the frame at the start of what has just come, all before which is there, so that it need
    /// not be kept first. Returns its length; `None` if it is to be kept: for want of the rest of it,
    /// because its meaning depends on the time, or because it makes a folder, of which a step bounds the number.
    pub(super) fn read_frame_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let waits = |frame: &Announcement| match frame {
            Announcement::Datagram { .. } | Announcement::Sent { .. } => true,
            Announcement::Entry(entry) => entry.kind == EntryKind::Folder,
            _ => false,
        };
        let (frame, len) = Announcement::parse(bytes).ok()?.filter(|(frame, _)| !waits(frame))?;
        if self.defers(&frame) {
            return None;
        }
        self.inbox.advance(self.inbox.base() + len as u64);
        self.count_frame();
        if let Err(error) = self.on_frame(frame) {
            self.on_frame_error(error);
        }
        Some(len)
    }

    /// Whether the frame must wait until the present file has its verdict: without space, only the look-up can
    /// give one, which the next file or the end would stop.
    fn defers(&self, frame: &Announcement) -> bool {
        self.awaits_verdict() && !is_of_the_file(frame)
    }

    fn on_frame(&mut self, frame: Announcement) -> Result<(), FrameError> {
        match (&self.state, frame) {
            (State::New, Announcement::Hello { files }) => self.on_hello(files),
            (State::New, _) => return Err(FrameError::Magic),
            (State::Receiving, Announcement::Ask(header)) => self.on_ask(&header)?,
            (State::Receiving, Announcement::Entry(entry)) => self.on_entry(entry)?,
            (State::Receiving, Announcement::Hole { offset, len }) => self.on_hole(offset, len)?,
            (State::Receiving, Announcement::File(header)) => self.on_file(&header)?,
            (State::Receiving, Announcement::Repair(header)) => self.on_repair(header)?,
            (State::Receiving, Announcement::Parts(hashes)) => self.on_parts(hashes)?,
            (State::Receiving, Announcement::Data { offset, len }) => self.on_piece(offset, len)?,
            (State::Receiving, Announcement::Datagram { header, piece }) => {
                self.on_loose(&header, piece)?;
            }
            (State::Receiving, Announcement::Sent { datagrams }) => {
                if let Some(datagram) = &mut self.datagram {
                    datagram.on_sent(self.turned_at, datagrams);
                }
            }
            (State::Receiving, Announcement::End) => {
                self.let_go();
                self.state = State::Ended;
            }
            (State::Receiving, Announcement::Hello { .. }) => {
                return Err(FrameError::Order("a second greeting"));
            }
            (State::Ended | State::Failed(_), _) => {
                return Err(FrameError::Order("something after the end"));
            }
        }
        Ok(())
    }

    fn on_hello(&mut self, files: u32) {
        self.announced = files;
        if files > self.folder.max_files {
            let max = self.folder.max_files;
            return self.fail(format!("{files} files at once; at most {max} are taken"));
        }
        self.state = State::Receiving;
        self.inbox.widen(KNOWN_SENDER_BUFFER);
    }

    fn on_file(&mut self, header: &Header) -> Result<(), FrameError> {
        if self.admit(header)? {
            self.begin(header);
        }
        Ok(())
    }

    fn on_repair(&mut self, header: Header) -> Result<(), FrameError> {
        if !self.admit(&header)? {
            return Ok(());
        }
        if self.share.claim(memory_of_parts(&header)) {
            self.repair = Some((header, Vec::new()));
        } else {
            self.break_off(NO_MEMORY.to_owned());
        }
        Ok(())
    }

    fn on_parts(&mut self, hashes: Vec<Hash>) -> Result<(), FrameError> {
        // Those of a file that was refused come nevertheless.
        let Some((header, mut parts)) = self.repair.take() else { return Ok(()) };
        let count = part_count(header.size);
        parts.extend(hashes);
        if parts.len() < count {
            self.repair = Some((header, parts));
            return Ok(());
        }
        self.share.give_back(memory_of_parts(&header));
        if parts.len() > count || hash_of_parts(&parts) != Some(header.hash) {
            return Err(FrameError::Order("parts of another file"));
        }
        self.begin_repair(&header, parts);
        Ok(())
    }

    /// Finds out what of a file is damaged, if it is all there.
    fn begin_repair(&mut self, header: &Header, parts: Vec<Hash>) {
        match Partial::open(&self.folder.disk, &self.folder.path, header) {
            Ok(partial) if partial.is_complete() => {
                let number = self.number();
                self.handle.compare(number, partial, parts);
            }
            Ok(partial) => self.begin_with(header, partial),
            Err(error) => self.on_disk_error(&error),
        }
    }

    pub(super) fn forget_repair(&mut self) {
        if let Some((header, _)) = self.repair.take() {
            self.share.give_back(memory_of_parts(&header));
        }
    }

    fn on_loose(&mut self, header: &Header, piece: u32) -> Result<(), FrameError> {
        if !self.admit(header)? {
            return Ok(());
        }
        if let Some(reason) = self.no_space(header, 0) {
            self.settle(self.number(), Verdict::Refused { reason });
            return Ok(());
        }
        let (now, folder) = (self.turned_at, &self.folder);
        let begun =
            DatagramFile::begin(now, &folder.disk, &folder.path, header, piece, &self.share);
        match begun {
            Ok(Ok(datagram)) => {
                self.datagram = Some(datagram);
                self.outbox.push(&Answer::Have { file: self.number(), prefix: 0 });
            }
            Ok(Err(reason)) => self.settle(self.number(), Verdict::Refused { reason }),
            Err(error) => self.on_disk_error(&error),
        }
        Ok(())
    }

    /// Records a file that was announced; returns whether it may come.
    fn admit(&mut self, header: &Header) -> Result<bool, FrameError> {
        self.let_go();
        let number = header.number;
        let path = self.locate(&header.name);
        let was_asked = self.forget_question(number);
        self.handle.drop_question(number);
        if !was_asked {
            self.record(number, IncomingKind::File, &header.name, &path, header.size)?;
        }
        self.files.begin(number, header.size);
        let path = path.and_then(|path| match self.too_large(header) {
            Some(reason) => Err(reason),
            None => Ok(path),
        });
        match path {
            Ok(path) => {
                let attributes = header.attributes;
                self.destination = Some(Destination { path, attributes });
                Ok(true)
            }
            Err(reason) => {
                self.settle(number, Verdict::Refused { reason });
                Ok(false)
            }
        }
    }

    /// Records what is named for the first time in this session.
    fn record(
        &mut self,
        number: u32,
        kind: IncomingKind,
        name: &str,
        path: &Result<SafePath, String>,
        size: u64,
    ) -> Result<(), FrameError> {
        if number != self.files.announced() {
            return Err(FrameError::Order("a file with another number than the next"));
        }
        if number >= self.announced {
            return Err(FrameError::Order("more files than announced"));
        }
        let name = path.as_ref().map_or_else(|_| printable(name), SafePath::to_string);
        self.files.push(IncomingFile::new(number, kind, name, size));
        Ok(())
    }

    /// Where something with this name goes here.
    fn locate(&self, name: &str) -> Result<SafePath, String> {
        SafePath::new(name).and_then(|path| self.trees.locate(&path))
    }

    /// Answers whether a file is there. Where nothing has its name, that is known at once.
    fn on_ask(&mut self, header: &Header) -> Result<(), FrameError> {
        if self.asked.len() >= MOST_ASKED {
            return Err(FrameError::Order("too many questions at once"));
        }
        let (number, path) = (header.number, self.locate(&header.name));
        self.record(number, IncomingKind::File, &header.name, &path, header.size)?;
        let path = match (path, self.too_large(header)) {
            (Ok(path), None) => path,
            (Err(reason), _) | (_, Some(reason)) => {
                self.settle(number, Verdict::Refused { reason });
                return Ok(());
            }
        };
        let mut cost = self.files.get_mut(number).map_or(0, |file| file.cost()) + COST_OF_ASKED;
        let may_be_there = self.entry_at(&path).is_some();
        let since = may_be_there.then_some(self.turned_at);
        if may_be_there {
            let sought = self.sought(path, header);
            cost += FinalizerHandle::cost_of(&sought);
            self.handle.ask(number, sought);
        } else {
            self.outbox.push(&Answer::Wanted { file: number });
        }
        self.asked.insert(number, Asked { since, cost });
        self.asked_cost += cost;
        Ok(())
    }

    /// Returns whether there was one about this file.
    pub(super) fn forget_question(&mut self, file: u32) -> bool {
        let asked = self.asked.remove(&file);
        self.asked_cost -= asked.as_ref().map_or(0, |asked| asked.cost);
        asked.is_some()
    }

    /// Nothing more will be announced.
    pub(super) fn forget_questions(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        self.asked_cost = 0;
        self.handle.drop_questions();
        self.files.abandon_all(|number| asked.contains_key(&number));
    }

    /// Senders that have waited for long send what may be there: others' large files are being read.
    pub(super) fn answer_late(&mut self, now: Instant) {
        for (&file, asked) in &mut self.asked {
            let is_late = |since| now.saturating_since(since) >= ASK_PATIENCE;
            if asked.since.is_some_and(is_late) && self.handle.drop_question(file) {
                asked.since = None;
                self.outbox.push(&Answer::Wanted { file });
            }
        }
    }

    fn on_entry(&mut self, entry: EntryHeader) -> Result<(), FrameError> {
        let number = entry.number;
        let named = SafePath::new(&entry.path);
        let path = match &entry.kind {
            // The outermost ones are what opens others.
            EntryKind::Folder => named.clone(),
            EntryKind::FolderEnd => named.clone().and_then(|path| self.trees.locate_folder(&path)),
            EntryKind::Link { target } => {
                let path = named.clone().and_then(|path| self.trees.locate(&path));
                path.and_then(|path| path.check_target(target).map(|()| path))
            }
        };
        let kind = match entry.kind {
            EntryKind::Folder => IncomingKind::Folder,
            EntryKind::FolderEnd => IncomingKind::FolderEnd,
            EntryKind::Link { .. } => IncomingKind::Link,
        };
        self.record(number, kind, &entry.path, &path, 0)?;
        let path = match path {
            Ok(_) if !self.folder.takes_folders => Err(NO_FOLDERS.to_owned()),
            path => path,
        };
        match (path, &entry.kind) {
            (Err(reason), _) => self.settle(number, Verdict::Refused { reason }),
            (Ok(path), EntryKind::Folder) => self.open_folder(number, &path),
            (Ok(path), _) => {
                let Folder { disk, path: root, .. } = &self.folder;
                self.handle.enter(disk, root, path, entry);
            }
        }
        Ok(())
    }

    fn open_folder(&mut self, number: u32, path: &SafePath) {
        let verdict = match self.shared.upkeep.refusal(LEAST_OCCUPIED) {
            Some(reason) => Verdict::Refused { reason },
            None => self.trees.open(self.folder.disk.as_ref(), &self.folder.path, path),
        };
        if matches!(verdict, Verdict::Kept { .. }) {
            self.shared.upkeep.on_written(LEAST_OCCUPIED);
            self.frames_left = self.frames_left.saturating_sub(WORK_OF_A_FOLDER);
            self.frames_read += u64::from(WORK_OF_A_FOLDER);
        }
        self.settle(number, verdict);
        self.charge();
    }

    /// Zeros of the present file that are not sent.
    fn on_hole(&mut self, offset: u64, len: u64) -> Result<(), FrameError> {
        let Some(size) = self.files.size() else {
            return Err(FrameError::Order("data before its file"));
        };
        let known = self.claim.as_ref().and_then(|claim| claim.with(|partial| partial.prefix()));
        if offset > known.unwrap_or(size) || offset.saturating_add(len) > size {
            return Err(FrameError::Piece { offset, len });
        }
        if let Some(Err(error)) = self.claim.as_ref().and_then(|claim| claim.skip(offset, len)) {
            self.on_disk_error(&error);
        }
        self.on_progress();
        Ok(())
    }

    /// What is where something of the folder goes.
    pub(super) fn entry_at(&self, path: &SafePath) -> Option<Entry> {
        let Folder { disk, path: root, .. } = &self.folder;
        let folder = disk.enter(root, path).ok()?;
        disk.entry(&folder.path().join(path.name()))
    }

    pub(super) fn sought(&self, path: SafePath, header: &Header) -> Sought {
        let Folder { disk, path: folder, .. } = &self.folder;
        let (disk, folder) = (Arc::clone(disk), folder.clone());
        let Header { size, hash, attributes, .. } = *header;
        Sought { disk, folder, path, size, hash, attributes }
    }

    fn too_large(&self, header: &Header) -> Option<String> {
        let max = self.folder.max_size.filter(|max| header.size > max.get())?;
        Some(format!("{} bytes; at most {} are taken", header.size, max.get()))
    }

    /// Why there is no space for a file of which `prefix` bytes are there, if there is none.
    fn no_space(&self, header: &Header, prefix: u64) -> Option<String> {
        let bytes = header.size - prefix;
        // Where the system does not tell, writing will.
        let free = self.folder.disk.free_space(&self.folder.path);
        if let Some(free) = free.filter(|free| bytes > *free) {
            return Some(format!("{bytes} bytes; the disk has {free} left"));
        }
        let counted = if prefix > 0 { bytes } else { bytes.max(LEAST_OCCUPIED) };
        self.shared.upkeep.refusal(counted)
    }

    fn begin(&mut self, header: &Header) {
        match Partial::open(&self.folder.disk, &self.folder.path, header) {
            Ok(partial) => self.begin_with(header, partial),
            Err(error) => self.on_disk_error(&error),
        }
    }

    fn begin_with(&mut self, header: &Header, partial: Partial) {
        let (number, prefix) = (self.number(), partial.prefix());
        let is_there = self.is_name_taken();
        if let Some(reason) = self.no_space(header, prefix) {
            let _ = partial.leave();
            if !is_there {
                return self.settle(number, Verdict::Refused { reason });
            }
            self.wait = Some(Wait::NoSpace(reason));
            self.look_up((header.size, header.hash));
            return self.outbox.push(&Answer::Wait { file: number });
        }
        let claims = &self.shared.claims;
        let path = self.destination.as_ref().map(|destination| &destination.path);
        self.wait = match path.and_then(|path| claims.finishing(&header.hash, path)) {
            Some(mark) => Some(Wait::Finish(mark)),
            None => claims
                .competitor(&header.hash)
                .map(|competitor| Wait::CompetingSession(competitor, None)),
        };
        self.claim = Some(claims.claim(header.hash, partial));
        let Some(file) = self.files.present() else { return };
        file.resumed_from = prefix;
        if is_there {
            self.look_up((header.size, header.hash));
        }
        match self.wait {
            None => self.send_resume_offset(prefix),
            Some(_) => self.outbox.push(&Answer::Wait { file: number }),
        }
        self.on_progress();
    }

    /// Whether the folder has anything under the name of the present file. If so it may be the same, under
    /// this name or with a number: the finalizer searches, for there may be many.
    pub(super) fn is_name_taken(&self) -> bool {
        let destination = self.destination.as_ref();
        destination.is_some_and(|destination| self.entry_at(&destination.path).is_some())
    }

    /// Looks whether the folder has the present file.
    pub(super) fn look_up(&mut self, (size, hash): (u64, Hash)) {
        let Some(Destination { path, attributes }) = self.destination.clone() else { return };
        let Folder { disk, path: folder, .. } = &self.folder;
        let (disk, folder) = (Arc::clone(disk), folder.clone());
        let sought = Sought { disk, folder, path, size, hash, attributes };
        self.handle.find(self.number(), sought);
    }

    /// Says from where on the present file is wanted.
    pub(super) fn send_resume_offset(&mut self, prefix: u64) {
        self.wait = None;
        self.outbox.push(&Answer::Have { file: self.number(), prefix });
    }

    fn on_piece(&mut self, offset: u64, len: u64) -> Result<(), FrameError> {
        let Some(size) = self.files.size() else {
            return Err(FrameError::Order("data before its file"));
        };
        let known = self.claim.as_ref().and_then(|claim| claim.with(|partial| partial.prefix()));
        let known = known.unwrap_or(size);
        let beyond = offset.saturating_add(len) > size;
        let start = self.inbox.base();
        match start.checked_add(len) {
            Some(end) if !beyond && offset <= known => self.piece = start..end,
            _ => return Err(FrameError::Piece { offset, len }),
        }
        self.offset = offset;
        let mut inbox = std::mem::replace(&mut self.inbox, Inbox::new(0));
        let end = self.piece.end;
        inbox.hand_over(end, |at, bytes| self.place(at, bytes));
        self.inbox = inbox;
        self.on_progress();
        Ok(())
    }
}

/// What making a folder counts as, in frames besides its own: the two take a turn. It is done at once, and takes 0.1 to
/// 0.3 ms, as long as ten datagrams do or longer.
const WORK_OF_A_FOLDER: u32 = 15;
/// Files that were asked about and not announced, of one session: what a sender asks about while its next file is on
/// the way.
const MOST_ASKED: usize = 512;
/// What a place in the map of these takes, whose nodes are half full.
const COST_OF_ASKED: usize = 64;
const NO_FOLDERS: &str = "the receiver takes no folders";

/// Whether it describes bytes of the present file.
fn is_of_the_file(frame: &Announcement) -> bool {
    matches!(frame, Announcement::Data { .. } | Announcement::Hole { .. })
}

/// What the hashes of a file's parts take.
fn memory_of_parts(header: &Header) -> usize {
    part_count(header.size) * size_of::<Hash>()
}

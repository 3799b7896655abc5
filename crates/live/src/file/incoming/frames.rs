//! What the sender says, frame by frame, and which of its files are welcome.

use super::{Arriving, Folder, Incoming, KNOWN_SENDERS_ROOM, State};
use crate::clock;
use crate::file::frame::{Announcement, Answer, Frame, FrameError, Header, Verdict};
use crate::file::inbox::Inbox;
use crate::file::keeper::has_candidate;
use crate::file::name::safe_name;
use crate::file::partial::Partial;
use crate::file::unreliable::LooseFile;

impl Incoming {
    /// Reads frames for as long as everything before them has arrived.
    pub(super) fn read_frames(&mut self, delivered: u64) -> Result<(), FrameError> {
        while delivered >= self.piece.end && !matches!(self.state, State::Failed(_)) {
            let Some((frame, len)) = Announcement::parse(self.inbox.ready())? else { break };
            self.inbox.advance(self.inbox.base() + len as u64);
            self.on_frame(frame)?;
        }
        Ok(())
    }

    /// Reads the frame at the start of what has just come, all before which is there, so that it need
    /// not be kept first. Returns its length; `None` if it is to be kept: for want of the rest of it, or
    /// because its meaning depends on the time.
    pub(super) fn read_frame_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let timed = |frame: &Announcement| {
            matches!(frame, Announcement::Loose { .. } | Announcement::Sent { .. })
        };
        let (frame, len) = Announcement::parse(bytes).ok()?.filter(|(frame, _)| !timed(frame))?;
        self.inbox.advance(self.inbox.base() + len as u64);
        if let Err(error) = self.on_frame(frame) {
            self.fail(error.to_string());
        }
        Some(len)
    }

    fn on_frame(&mut self, frame: Announcement) -> Result<(), FrameError> {
        match (&self.state, frame) {
            (State::Stranger, Announcement::Hello { files }) => self.on_hello(files),
            (State::Stranger, _) => return Err(FrameError::Magic),
            (State::Receiving, Announcement::File(header)) => self.on_file(&header)?,
            (State::Receiving, Announcement::Data { offset, len }) => self.on_piece(offset, len)?,
            (State::Receiving, Announcement::Loose { header, piece }) => {
                self.on_loose(&header, piece)?;
            }
            (State::Receiving, Announcement::Sent { datagrams }) => {
                if let Some(loose) = &mut self.loose {
                    loose.on_sent(self.turned_at, datagrams);
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
        self.inbox.widen(KNOWN_SENDERS_ROOM);
    }

    fn on_file(&mut self, header: &Header) -> Result<(), FrameError> {
        if self.admit(header)? {
            self.begin(header);
        }
        Ok(())
    }

    fn on_loose(&mut self, header: &Header, piece: u32) -> Result<(), FrameError> {
        if !self.admit(header)? {
            return Ok(());
        }
        let (now, folder) = (self.turned_at, &self.folder);
        match LooseFile::begin(now, &folder.disk, &folder.path, header, piece) {
            Ok(Ok(loose)) => {
                self.loose = Some(loose);
                self.outbox.push(&Answer::Have { file: self.number(), prefix: 0 });
            }
            Ok(Err(reason)) => self.settle(self.number(), Verdict::Refused { reason }),
            Err(error) => self.on_disk_error(&error),
        }
        Ok(())
    }

    /// Notes a file that was announced; returns whether it may come.
    fn admit(&mut self, header: &Header) -> Result<bool, FrameError> {
        self.let_go();
        if self.files.len() as u64 >= u64::from(self.announced) {
            return Err(FrameError::Order("more files than announced"));
        }
        self.files.push(Arriving {
            name: safe_name(&header.name),
            size: header.size,
            resumed_from: 0,
            arrived: 0,
            tally: None,
            verdict: None,
            began_ns: clock::monotonic_nanos(),
            arrived_ns: None,
            verified_ns: None,
        });
        if let Some(reason) = self.too_large(header) {
            self.settle(self.number(), Verdict::Refused { reason });
            return Ok(false);
        }
        Ok(true)
    }

    fn too_large(&self, header: &Header) -> Option<String> {
        let size = header.size;
        if let Some(max) = self.folder.max_size.filter(|max| size > max.get()) {
            return Some(format!("{size} bytes; at most {} are taken", max.get()));
        }
        // Where the system does not tell, writing will.
        let free = self.folder.disk.free_space(&self.folder.path)?;
        (size > free).then(|| format!("{size} bytes; the disk has room for {free}"))
    }

    fn begin(&mut self, header: &Header) {
        let partial = match Partial::open(&self.folder.disk, &self.folder.path, header) {
            Ok(partial) => partial,
            Err(error) => return self.on_disk_error(&error),
        };
        let (number, prefix) = (self.number(), partial.prefix());
        self.rival = self.claims.rival(&header.hash);
        self.rival_decides_at = None;
        self.claim = Some(self.claims.claim(header.hash, partial));
        let Some(file) = self.files.last_mut() else { return };
        file.resumed_from = prefix;
        let name = file.name.clone();
        let Folder { disk, path, .. } = &self.folder;
        if has_candidate(disk.as_ref(), path, &name, header.size) {
            self.desk.find(number, &name, disk, path, (header.size, header.hash));
        }
        if self.rival.is_none() {
            self.welcome(prefix);
        }
        self.on_progress();
    }

    /// Says from where on the present file is wanted. Until then its sender goes on in small pieces.
    pub(super) fn welcome(&mut self, prefix: u64) {
        self.outbox.push(&Answer::Have { file: self.number(), prefix });
    }

    fn on_piece(&mut self, offset: u64, len: u64) -> Result<(), FrameError> {
        let Some(file) = self.files.last() else {
            return Err(FrameError::Order("data before its file"));
        };
        let known = self.claim.as_ref().and_then(|claim| claim.with(|partial| partial.prefix()));
        let known = known.unwrap_or(file.size);
        let beyond = offset.saturating_add(len) > file.size;
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

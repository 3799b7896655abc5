//! The receiving end of a session: a stranger's stream becomes files in a folder.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use weir_transport::{Connection, ConnectionError, Event};
use weir_units::{Bytes, Duration, Instant};

use super::claims::{Claim, Claims, Health, Rival};
use super::frame::{Announcement, Answer, Frame, FrameError, Header, Verdict};
use super::inbox::Inbox;
use super::keeper::{Desk, Report, has_candidate};
use super::name::safe_name;
use super::outbox::Outbox;
use super::partial::{Partial, remove_leftovers};
use super::plain;
use super::unreliable::{LooseFile, Tally};
use super::window::Window;
use crate::clock;
use crate::endpoint::Application;

/// Where files go, and what is refused.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// The largest file; without it, what the disk has room for.
    pub max_size: Option<Bytes>,
    /// The most files of one session.
    pub max_files: u32,
    /// What is offered at first, and at most once the path has shown what it carries.
    pub window: Range<Bytes>,
}

/// What is known of a file that someone sends.
#[derive(Clone, Debug)]
pub struct Arriving {
    /// Its name, made safe.
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

/// The receiving end of a session.
#[derive(Debug)]
pub struct Incoming {
    folder: Folder,
    desk: Desk,
    inbox: Inbox,
    outbox: Outbox,
    window: Window,
    state: State,
    /// How many files were announced at the beginning.
    announced: u32,
    files: Vec<Arriving>,
    /// The file whose pieces come now, unless it is not wanted.
    claim: Option<Rc<Claim>>,
    claims: Rc<Claims>,
    /// Another session that has the same file: perhaps it can be taken over.
    rival: Option<Rival>,
    rival_decides_at: Option<Instant>,
    /// The file that comes in datagrams now.
    loose: Option<LooseFile>,
    /// The piece that comes now: where it lies in the stream, and its offset in the file.
    piece: Range<u64>,
    offset: u64,
    turned_at: Instant,
    srtt: Duration,
    noted_at: Instant,
    /// When the sender was last told anything while it waits for verdicts.
    told_at: Instant,
    said_at: Option<Instant>,
    broken: Option<ConnectionError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known of the other end: it gets little room.
    Stranger,
    Receiving,
    /// The sender has said everything.
    Ended,
    /// One of the two has broken it off.
    Failed(String),
}

impl Incoming {
    pub(crate) fn new(folder: Folder, claims: Rc<Claims>, desk: Desk) -> Self {
        Self {
            inbox: Inbox::new(STRANGERS_ROOM),
            outbox: Outbox::default(),
            window: Window::new(folder.window.start, folder.window.end),
            state: State::Stranger,
            announced: 0,
            files: Vec::new(),
            claim: None,
            claims,
            rival: None,
            rival_decides_at: None,
            loose: None,
            piece: 0..0,
            offset: 0,
            turned_at: Instant::ZERO,
            srtt: UNKNOWN_RTT,
            noted_at: Instant::ZERO,
            told_at: Instant::ZERO,
            said_at: None,
            broken: None,
            folder,
            desk,
        }
    }

    /// The files that were announced so far.
    pub fn files(&self) -> &[Arriving] {
        &self.files
    }

    /// How many files the sender means to send.
    pub fn announced(&self) -> u32 {
        self.announced
    }

    /// Whether the sender has said what it wants.
    pub fn is_known(&self) -> bool {
        self.state != State::Stranger
    }

    /// Why the session cannot end well, if so.
    pub fn failure(&self) -> Option<String> {
        match (&self.state, &self.broken) {
            (State::Failed(reason), _) => Some(reason.clone()),
            (State::Stranger | State::Receiving, Some(error)) => Some(error.to_string()),
            _ => None,
        }
    }

    /// When everything was said that this end has to say.
    pub fn said_at(&self) -> Option<Instant> {
        self.said_at
    }

    /// Whether every file of the session has its verdict.
    fn is_settled(&self) -> bool {
        self.files.iter().all(|file| file.verdict.is_some())
    }

    fn fail(&mut self, reason: String) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        self.outbox.push(&Answer::Failed { reason: reason.clone() });
        self.state = State::Failed(reason);
        self.let_go();
    }

    /// Puts the present file aside: what arrived of it stays.
    fn let_go(&mut self) {
        self.rival = None;
        if let Some(claim) = self.claim.take() {
            // If even this is impossible, the next session begins further back.
            let _ = claim.with(Partial::note);
        }
        self.loose = None;
    }

    /// Bytes of the present piece.
    fn place(&mut self, at: u64, bytes: &[u8]) {
        let Some(claim) = &self.claim else { return };
        let offset = self.offset + (at - self.piece.start);
        match claim.write(offset, bytes) {
            Ok(()) => self.on_progress(),
            Err(error) => self.on_disk_error(&error),
        }
    }

    fn on_disk_error(&mut self, error: &io::Error) {
        let name = self.files.last().map_or("", |file| file.name.as_str());
        self.fail(format!("cannot write '{name}': {}", plain(error)));
    }

    /// The present file grew; perhaps it is all there.
    fn on_progress(&mut self) {
        let (Some(claim), Some(file)) = (&self.claim, self.files.last_mut()) else { return };
        let step = claim.with(|partial| {
            file.arrived = partial.prefix();
            let noted = if partial.unnoted() < NOTED_AFTER { Ok(()) } else { partial.note() };
            noted.map(|()| partial.is_complete())
        });
        match step {
            Some(Ok(true)) => self.on_complete(),
            Some(Err(error)) => self.on_disk_error(&error),
            Some(Ok(false)) | None => {}
        }
    }

    fn on_complete(&mut self) {
        self.rival = None;
        let number = self.number();
        let partial = self.claim.take().and_then(|claim| claim.take());
        let (Some(mut partial), Some(file)) = (partial, self.files.last_mut()) else { return };
        file.arrived_ns = Some(clock::monotonic_nanos());
        // What little remains to be hashed is done at once, and the rest where nobody waits for it.
        if partial.unhashed() <= HASHED_AT_ONCE {
            match partial.verify() {
                Ok(true) => file.verified_ns = Some(clock::monotonic_nanos()),
                Ok(false) => {}
                Err(error) => return self.on_disk_error(&error),
            }
        }
        self.desk.keep(number, &file.name, partial);
    }

    /// The number of the present file.
    fn number(&self) -> u32 {
        self.files.len().saturating_sub(1) as u32
    }

    /// Reads frames for as long as everything before them has arrived.
    fn read_frames(&mut self, delivered: u64) -> Result<(), FrameError> {
        while delivered >= self.piece.end && !matches!(self.state, State::Failed(_)) {
            let Some((frame, len)) = Announcement::parse(self.inbox.ready())? else { break };
            self.inbox.advance(self.inbox.base() + len as u64);
            self.on_frame(frame)?;
        }
        Ok(())
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
        match LooseFile::begin(self.turned_at, &self.folder.path, header, piece) {
            Ok(Ok(loose)) => {
                self.loose = Some(loose);
                self.outbox.push(&Answer::Have { file: self.number(), prefix: 0 });
            }
            Ok(Err(reason)) => self.settle(self.number(), Verdict::Refused { reason }),
            Err(error) => self.on_disk_error(&error),
        }
        Ok(())
    }

    /// Counts what came in datagrams, once nothing more is to be expected.
    fn end_loose(&mut self, now: Instant, srtt: Duration) {
        let over = |loose: &mut LooseFile| loose.ends_at(srtt).is_some_and(|at| at <= now);
        let Some(loose) = self.loose.take_if(over) else { return };
        let (number, tally) = (self.number(), loose.tally());
        self.outbox.push(&Answer::Count { file: number, tally });
        let Some(file) = self.files.last_mut() else { return };
        file.tally = Some(tally);
        match loose.finish() {
            Some(partial) => self.desk.keep(number, &file.name, partial),
            None => self.settle(number, Verdict::Mismatch),
        }
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
        let disk = rustix::fs::statvfs(&self.folder.path).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        (size > free).then(|| format!("{size} bytes; the disk has room for {free}"))
    }

    fn begin(&mut self, header: &Header) {
        let partial = match Partial::open(&self.folder.path, header) {
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
        if has_candidate(&self.folder.path, &name, header.size) {
            self.desk.find(number, &name, &self.folder.path, header.size, header.hash);
        }
        if self.rival.is_none() {
            self.welcome(prefix);
        }
        self.on_progress();
    }

    /// Says from where on the present file is wanted. Until then its sender goes on in small pieces.
    fn welcome(&mut self, prefix: u64) {
        self.outbox.push(&Answer::Have { file: self.number(), prefix });
    }

    /// Another session has the same file: its sender is alive, or was killed and is back with us.
    fn watch_rival(&mut self, now: Instant) {
        let (Some(rival), Some(claim)) = (&mut self.rival, &self.claim) else { return };
        let mut own = claim.with(|partial| partial.prefix()).unwrap_or(0);
        match rival.look(now) {
            Health::Unknown => {
                self.rival_decides_at = Some(rival.decides_at(now));
                return;
            }
            Health::Independent => {}
            Health::Gone(partial) => {
                let further = partial.prefix() >= own;
                own = own.max(partial.prefix());
                let other = if further { claim.replace(*partial) } else { Some(*partial) };
                let _ = other.map(Partial::discard);
                if let Some(file) = self.files.last_mut() {
                    file.resumed_from = own;
                }
            }
        }
        self.rival = None;
        self.welcome(own);
        self.on_progress();
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
        Ok(())
    }

    fn settle(&mut self, number: u32, verdict: Verdict) {
        let Some(file) = self.files.get_mut(number as usize) else { return };
        if file.verdict.is_none() {
            self.outbox.push(&Answer::Verdict { file: number, verdict: verdict.clone() });
            file.verdict = Some(verdict);
        }
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Found { file, name: Some(name), hash } => {
                if file == self.number()
                    && let Some(claim) = self.claim.take()
                {
                    self.rival = None;
                    let _ = claim.take().map(Partial::discard);
                }
                remove_leftovers(&self.folder.path, &hash);
                self.settle(file, Verdict::Already { name });
            }
            Report::Found { name: None, .. } => {}
            Report::Done { file, verdict: Ok(verdict), verified_ns } => {
                if let Some(file) = self.files.get_mut(file as usize) {
                    file.verified_ns.get_or_insert(verified_ns);
                }
                self.settle(file, verdict);
            }
            Report::Done { verdict: Err(error), .. } => self.on_disk_error(&error),
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Failed(error) => {
                self.broken = Some(error);
                self.let_go();
            }
            Event::Finished if self.state == State::Receiving || self.state == State::Stranger => {
                self.fail("the sender ended early".to_owned());
            }
            _ => {}
        }
    }

    /// Whether nothing more is to be said.
    fn is_done(&self) -> bool {
        match self.state {
            State::Ended => self.is_settled() || !self.desk.is_waiting(),
            State::Failed(_) => true,
            State::Stranger | State::Receiving => false,
        }
    }

    /// A sender that waits for verdicts hears that someone is at work on them.
    fn reassure(&mut self, now: Instant) {
        if !self.desk.is_waiting() {
            self.told_at = now;
        } else if now.saturating_since(self.told_at) >= TOLD_EVERY {
            self.told_at = now;
            self.outbox.push(&Answer::Working);
        }
    }

    /// What is to be done for the present file in every turn: a little hashing, and now and then, for
    /// slow transfers too, its journal.
    fn tend(&mut self, now: Instant) {
        let Some(claim) = &self.claim else { return };
        if claim.is_lost() {
            return self.fail("the same file is coming from another sender".to_owned());
        }
        let note = now.saturating_since(self.noted_at) >= NOTED_EVERY;
        if note {
            self.noted_at = now;
        }
        let tended = claim.with(|partial| {
            partial.catch_up(HASHED_PER_TURN)?;
            if note { partial.note() } else { Ok(()) }
        });
        if let Some(Err(error)) = tended {
            self.on_disk_error(&error);
        }
    }
}

impl Application for Incoming {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.outbox.fill(offset, buf)
    }

    fn store(&mut self, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
        if matches!(self.state, State::Failed(_)) {
            return Ok(());
        }
        if at < self.piece.end {
            let mine = (self.piece.end - at).min(bytes.len() as u64) as usize;
            let known = self.piece.start.saturating_sub(at).min(mine as u64) as usize;
            self.place(at + known as u64, &bytes[known..mine]);
            at += mine as u64;
            bytes = &bytes[mine..];
        }
        if bytes.is_empty() { Ok(()) } else { self.inbox.insert(at, bytes) }
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        self.turned_at = now;
        while let Some(report) = self.desk.poll() {
            self.on_report(report);
        }
        let delivered = connection.stats().delivered_bytes;
        if let Err(error) = self.read_frames(delivered) {
            self.fail(error.to_string());
        }
        while let Some(event) = connection.poll_event() {
            self.on_event(event);
        }
        connection.read(now, u64::MAX);
        self.srtt = connection.snapshot().srtt.unwrap_or(UNKNOWN_RTT);
        self.end_loose(now, self.srtt);
        self.watch_rival(now);
        self.tend(now);
        self.reassure(now);
        self.outbox.write(now, connection);
        if self.is_done() {
            self.said_at.get_or_insert(now);
            connection.close(now);
        }
        let window = self.window.update(now, delivered, self.srtt);
        // Nothing is offered that could not be placed.
        let room = self.inbox.edge() - delivered.min(self.inbox.edge());
        connection.set_recv_window(Bytes(window.min(room)));
        Ok(())
    }

    fn next_time(&self) -> Option<Instant> {
        let waiting = self.desk.is_waiting().then(|| self.turned_at + ASKED_EVERY);
        let noting = self.claim.as_ref().and_then(|claim| claim.with(|partial| partial.unnoted()));
        let noting = noting.filter(|bytes| *bytes > 0).map(|_| self.noted_at + NOTED_EVERY);
        let rival = self.rival_decides_at.filter(|_| self.rival.is_some());
        let counting = self.loose.as_ref().and_then(|loose| loose.ends_at(self.srtt));
        [waiting, noting, rival, counting].into_iter().flatten().min()
    }

    fn store_loose(&mut self, now: Instant, number: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some((loose, file)) = self.loose.as_mut().zip(self.files.last_mut()) {
            loose.store(now, number, bytes);
            file.arrived = loose.tally().bytes;
            file.arrived_ns = Some(clock::monotonic_nanos());
        }
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// What may come from someone who has not said anything yet, and from others before it is known what it
/// is: bytes that have to be kept in memory.
const STRANGERS_ROOM: usize = 64 << 10;
const KNOWN_SENDERS_ROOM: usize = 1 << 20;
/// Until there is a measurement.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);
/// How often the journal is written.
const NOTED_AFTER: u64 = 4 << 20;
const NOTED_EVERY: Duration = Duration::from_millis(200);
/// How much is hashed in a turn of what was written without being hashed: a millisecond or two.
const HASHED_PER_TURN: u64 = 4 << 20;
const HASHED_AT_ONCE: u64 = 4 << 20;
/// How often a sender that waits hears of us.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How soon the keeper's reports are looked for.
const ASKED_EVERY: Duration = Duration::from_micros(300);

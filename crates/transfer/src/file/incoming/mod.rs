//! The receiving end of a session: a peer's stream becomes files in a folder.
//!
//! What the sender says is understood in `frames.rs`; how bytes become a file that is kept or not stands in
//! `keeping.rs`, and what is known of each in `session_files.rs`.

mod frames;
mod keeping;
mod session_files;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Weak;

use weir_sockets::clock;
use weir_sockets::places::Origin;
use weir_transport::{Connection, ConnectionError, Event};
use weir_units::{Bytes, Duration, Instant};

use self::session_files::SessionFiles;
pub use self::session_files::{IncomingFile, IncomingKind, Omitted};
use super::claims::{Claim, CompetingSession};
use super::entries::OpenTrees;
use super::finalizer::{Destination, FinalizerHandle};
use super::folder::Folder;
use super::frame::{Answer, FrameError, Hash, Header};
use super::inbox::Inbox;
use super::memory::Share;
use super::outbox::Outbox;
use super::partial::Partial;
use super::shared::SharedState;
use super::unreliable::DatagramFile;
use super::window::Window;
use crate::endpoint::Application;

/// The receiving end of a session.
#[derive(Debug)]
pub struct Incoming {
    folder: Folder,
    /// Where its sender is, and the file for which that was recorded.
    origin: Option<Origin>,
    noted_origin_of: Option<u32>,
    handle: FinalizerHandle,
    inbox: Inbox,
    outbox: Outbox,
    window: Window,
    state: State,
    /// How many files were announced at the beginning.
    announced: u32,
    files: SessionFiles,
    /// Files that were asked about and not announced yet.
    asked: BTreeMap<u32, Asked>,
    /// The folders that were announced.
    trees: OpenTrees,
    /// What the present file is to become.
    destination: Option<Destination>,
    /// The file whose pieces come now, unless it is not wanted.
    claim: Option<Rc<Claim>>,
    /// The claim that another session has taken over, until it is known whether this one's sender lives.
    lost: Option<Rc<Claim>>,
    shared: Rc<SharedState>,
    /// The memory that this session holds, what of it is for early bytes, ranges and answers, and what is for
    /// gathering bytes of the present file.
    share: Rc<Share>,
    charged: usize,
    staged: usize,
    /// Why the offset at which the present file continues has not been sent yet.
    wait: Option<Wait>,
    /// The file that is to be repaired, while the hashes of its parts arrive.
    repair: Option<(Header, Vec<Hash>)>,
    /// The file that comes in datagrams now.
    datagram: Option<DatagramFile>,
    /// All of the stream before this has been stored, perhaps more.
    whole: u64,
    /// How many frames may be read before the next step, and were read in all.
    frames_left: u32,
    frames_read: u64,
    /// After how long the finalizer is asked again: the longer it takes, the less often.
    asked_every: Duration,
    /// What the memory of `asked` is.
    asked_cost: usize,
    /// The piece that comes now: where it lies in the stream, and its offset in the file.
    piece: Range<u64>,
    offset: u64,
    turned_at: Instant,
    /// When the finalizer was asked last.
    polled_at: Instant,
    srtt: Duration,
    noted_at: Instant,
    /// Time of the last frame to a sender that waits for verdicts.
    reported_at: Instant,
    finished_at: Option<Instant>,
    broken: Option<ConnectionError>,
    /// The sender's side of the stream has ended.
    finished: bool,
    /// The connection is over, or about to be: of what was said before only bytes of the present file are of use.
    is_ending: bool,
}

/// A file that was asked about.
#[derive(Debug)]
struct Asked {
    /// Since when its sender waits for an answer, if it does.
    since: Option<Instant>,
    /// The memory that it takes, in bytes.
    cost: usize,
}

/// What must be known before the offset at which a file continues is sent.
#[derive(Debug)]
enum Wait {
    /// Another session has the same file: perhaps it can be taken over, as is known at this time.
    CompetingSession(CompetingSession, Option<Instant>),
    /// The same content came in another session and is being verified and synced.
    Finish(Weak<()>),
    /// It is compared with what the folder has.
    LookUp,
    /// So is one for which there is no space: it is refused with this reason if it is not there.
    NoSpace(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known of the other end: it gets little memory.
    New,
    Receiving,
    /// The sender has said everything.
    Ended,
    /// One of the two has broken it off.
    Failed(String),
}

impl Incoming {
    pub(crate) fn new(folder: Folder, shared: Rc<SharedState>, handle: FinalizerHandle) -> Self {
        let share = shared.memory.share(COST_OF_A_SESSION);
        Self {
            files: SessionFiles::new(Rc::clone(&share)),
            share,
            charged: 0,
            staged: 0,
            inbox: Inbox::new(UNKNOWN_SENDER_BUFFER),
            outbox: Outbox::default(),
            window: Window::new(folder.window.start, folder.window.end),
            state: State::New,
            announced: 0,
            asked: BTreeMap::new(),
            trees: OpenTrees::default(),
            destination: None,
            claim: None,
            lost: None,
            shared,
            wait: None,
            repair: None,
            datagram: None,
            whole: 0,
            frames_left: FRAMES_PER_TURN,
            frames_read: 0,
            asked_every: ASKED_EVERY,
            asked_cost: 0,
            piece: 0..0,
            offset: 0,
            turned_at: Instant::ZERO,
            polled_at: Instant::ZERO,
            srtt: UNKNOWN_RTT,
            noted_at: Instant::ZERO,
            reported_at: Instant::ZERO,
            finished_at: None,
            broken: None,
            finished: false,
            is_ending: false,
            folder,
            origin: None,
            noted_origin_of: None,
            handle,
        }
    }

    /// The same session, whose sender has this address.
    pub(crate) fn coming_from(mut self, ip: IpAddr) -> Self {
        self.origin = Some(Origin::of(ip));
        self
    }

    /// The files that were announced so far, but for those that are only counted.
    pub fn files(&self) -> &[IncomingFile] {
        self.files.rows()
    }

    /// How many were announced that [`files`](Self::files) leaves out.
    pub fn omitted(&self) -> Omitted {
        self.files.omitted()
    }

    /// How many files have a verdict.
    pub fn settled(&self) -> u32 {
        self.files.settled()
    }

    /// How many files the sender means to send.
    pub fn announced(&self) -> u32 {
        self.announced
    }

    /// Whether the sender has said what it wants.
    pub fn is_known(&self) -> bool {
        self.state != State::New
    }

    /// Why the session cannot end well, if so.
    pub fn failure(&self) -> Option<String> {
        match (&self.state, &self.broken) {
            (State::Failed(reason), _) => Some(reason.clone()),
            (State::New | State::Receiving, Some(error)) => Some(error.to_string()),
            _ => None,
        }
    }

    /// When everything was said that this end has to say.
    pub fn finished_at(&self) -> Option<Instant> {
        self.finished_at
    }

    /// Whether every file of the session has its verdict.
    fn is_settled(&self) -> bool {
        self.files.settled() == self.files.announced()
    }

    /// The memory that the session is charged for.
    pub fn charged_memory(&self) -> Bytes {
        self.share.held()
    }

    /// The memory that early and gathered bytes, answers, hashes of parts and the bits of datagrams take, counted
    /// anew.
    pub fn held_memory(&self) -> Bytes {
        let parts = self.repair.as_ref().map_or(0, |(_, parts)| size_of_val(&parts[..]));
        let bits = self.datagram.as_ref().map_or(0, DatagramFile::memory);
        let file = self.of_partial(|partial| partial.range_memory() + partial.staging_memory());
        Bytes((self.inbox.measure() + self.outbox.held() + file + parts + bits) as u64)
    }

    /// Whether others need the memory that the session holds.
    pub fn is_evicted(&self) -> bool {
        self.share.is_evicted()
    }

    /// Ends the session; another one would end the same way.
    fn fail(&mut self, reason: String) {
        self.end(Answer::Failed { reason: reason.clone() }, reason);
    }

    /// Ends the session; the sender may try another one.
    fn break_off(&mut self, reason: String) {
        self.end(Answer::Broken { reason: reason.clone() }, reason);
    }

    fn end(&mut self, answer: Answer, reason: String) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        self.outbox.push(&answer);
        self.state = State::Failed(reason);
        self.let_go();
        self.forget_questions();
        self.trees = OpenTrees::default();
        self.inbox = Inbox::new(0);
        self.charge();
    }

    /// Others have got the memory that this session was charged for. What is left of it is charged anew: an answer may
    /// wait for long until it is acknowledged.
    fn end_evicted(&mut self) -> io::Result<()> {
        let is_over = matches!(self.state, State::Failed(_));
        self.break_off(NO_MEMORY.to_owned());
        self.share.release();
        (self.charged, self.staged) = (0, 0);
        self.files.free();
        self.charge();
        match is_over || self.is_evicted() {
            true => Err(io::Error::other(NO_MEMORY)),
            false => Ok(()),
        }
    }

    fn on_frame_error(&mut self, error: FrameError) {
        match error {
            FrameError::Version(_) => self.fail(error.to_string()),
            // A checksum of 16 bits misses some damage.
            _ => self.break_off(error.to_string()),
        }
    }

    /// What `measure` says of the present file, if a part of it is here.
    fn of_partial(&self, measure: impl FnOnce(&Partial) -> usize) -> usize {
        let claim = self.claim.as_ref();
        claim.and_then(|claim| claim.with(|partial| measure(partial))).unwrap_or(0)
    }

    /// Accounts for the memory of inbox, outbox and present file.
    fn charge(&mut self) {
        self.charge_staging();
        let ranges = self.of_partial(Partial::range_memory);
        let rows = self.asked_cost + self.trees.held();
        let held = self.inbox.held() + self.outbox.held() + ranges + rows;
        let before = std::mem::replace(&mut self.charged, held);
        if held <= before {
            self.share.give_back(before - held);
        } else if !self.share.claim(held - before) {
            self.break_off(NO_MEMORY.to_owned());
        }
    }

    /// Accounts for the memory in which bytes of the present file are gathered. Where none can be spared, they
    /// are written at once.
    fn charge_staging(&mut self) {
        let mut held = self.of_partial(Partial::staging_memory);
        if held > self.staged && !self.share.take_spare(held - self.staged) {
            let unstaged = self.claim.as_ref().and_then(|claim| claim.with(Partial::unstage));
            if let Some(Err(error)) = unstaged {
                self.on_disk_error(&error);
            }
            held = self.of_partial(Partial::staging_memory);
        }
        let before = std::mem::replace(&mut self.staged, held);
        self.share.give_back(before.saturating_sub(held));
    }

    /// Whether the sender may say more: not while much waits for its acknowledgement or for verdicts, nor
    /// when it has said much this step.
    fn may_read(&self) -> bool {
        let failed = matches!(self.state, State::Failed(_));
        !failed
            && self.frames_left > 0
            && !self.handle.is_full()
            && self.outbox.len() < MOST_UNHEARD
    }

    /// Whether there is no space for the present file, and it may be there.
    fn awaits_verdict(&self) -> bool {
        matches!(self.wait, Some(Wait::NoSpace(_)))
    }

    /// Puts the present file aside: what arrived of it stays.
    fn let_go(&mut self) {
        let undecided = self.wait.take().is_some() || self.repair.is_some();
        self.forget_repair();
        self.handle.cancel_look_up();
        if undecided || self.claim.is_some() || self.datagram.is_some() {
            self.files.abandon(self.number());
        }
        if let Some(partial) = self.claim.take().and_then(|claim| claim.take()) {
            // If even this is impossible, the next session begins further back.
            let _ = partial.leave();
        }
        self.datagram = None;
    }

    /// The number of the present file.
    fn number(&self) -> u32 {
        self.files.number()
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Failed(error) => {
                self.broken = Some(error);
                self.let_go();
            }
            Event::Finished => self.finished = true,
            _ => {}
        }
    }

    /// Whether nothing more is to be said.
    fn is_done(&self) -> bool {
        match self.state {
            State::Ended => self.is_settled() || !self.handle.is_waiting(),
            State::Failed(_) => true,
            State::New | State::Receiving => false,
        }
    }

    /// A sender that waits for verdicts hears that someone is at work on them.
    fn reassure(&mut self, now: Instant) {
        if !self.handle.is_waiting() && self.wait.is_none() {
            self.reported_at = now;
        } else if now.saturating_since(self.reported_at) >= REPORT_INTERVAL {
            self.reported_at = now;
            self.outbox.push(&Answer::Working);
        }
    }
}

impl Application for Incoming {
    fn is_established(&self) -> bool {
        self.files.announced() > 0
    }

    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.outbox.fill(offset, buf)
    }

    fn store(&mut self, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
        let in_order = at == self.whole;
        if in_order {
            self.whole += bytes.len() as u64;
        }
        while !matches!(self.state, State::Failed(_)) && !bytes.is_empty() {
            if at < self.piece.end {
                let mine = (self.piece.end - at).min(bytes.len() as u64) as usize;
                let known = self.piece.start.saturating_sub(at).min(mine as u64) as usize;
                self.place(at + known as u64, &bytes[known..mine]);
                at += mine as u64;
                bytes = &bytes[mine..];
                if at == self.piece.end {
                    self.on_progress();
                }
                continue;
            }
            let next = in_order && self.may_read() && self.inbox.awaits(at);
            let Some(len) = next.then(|| self.read_frame_in(bytes)).flatten() else {
                self.inbox.insert(at, bytes)?;
                self.charge();
                break;
            };
            at += len as u64;
            bytes = &bytes[len..];
        }
        Ok(())
    }

    fn work(&self) -> u64 {
        self.frames_read
    }

    fn must_end(&self) -> bool {
        self.is_evicted()
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        self.turned_at = now;
        self.is_ending = connection.is_closed() || self.is_evicted();
        self.frames_left = FRAMES_PER_TURN;
        self.outbox.forget(connection.stats().acked_bytes);
        self.take_reports(now);
        self.on_progress();
        let delivered = connection.stats().delivered_bytes;
        self.whole = delivered;
        if let Err(error) = self.read_frames(delivered) {
            self.on_frame_error(error);
        }
        while let Some(event) = connection.poll_event() {
            self.on_event(event);
        }
        self.mark_contested();
        let over = self.finished && self.may_read() && !self.awaits_verdict();
        if over && matches!(self.state, State::Receiving | State::New) {
            self.break_off("the sender ended early".to_owned());
        }
        if self.is_evicted() {
            self.end_evicted()?;
        }
        self.charge();
        connection.read(now, u64::MAX);
        self.srtt = connection.snapshot().srtt.unwrap_or(UNKNOWN_RTT);
        self.end_datagrams(now, self.srtt);
        self.reconsider(now);
        self.answer_late(now);
        self.maintain(now);
        self.reassure(now);
        self.charge();
        self.outbox.write(now, connection);
        if self.is_done() {
            self.finished_at.get_or_insert(now);
            connection.close(now);
        }
        self.frames_left = self.frames_left.min(FRAMES_BETWEEN_TURNS);
        let window = self.window.update(now, delivered, self.srtt);
        // Nothing is offered that could not be placed.
        let space = self.inbox.edge() - delivered.min(self.inbox.edge());
        connection.set_recv_window(Bytes(window.min(space)));
        Ok(())
    }

    fn next_time(&self) -> Option<Instant> {
        let waiting = self.handle.is_waiting().then(|| self.polled_at + self.asked_every);
        let noting = self.claim.as_ref().and_then(|claim| claim.with(|partial| partial.unnoted()));
        let noting = noting.filter(|bytes| *bytes > 0).map(|_| self.noted_at + NOTED_EVERY);
        let wait = match &self.wait {
            Some(Wait::CompetingSession(_, at)) => *at,
            Some(Wait::Finish(_)) => Some(self.turned_at + FINISH_ASKED_EVERY),
            Some(Wait::LookUp | Wait::NoSpace(_)) | None => None,
        };
        let reading = (self.frames_left == 0).then_some(self.turned_at);
        let counting = self.datagram.as_ref().and_then(|datagram| datagram.ends_at(self.srtt));
        [waiting, noting, wait, counting, reading].into_iter().flatten().min()
    }

    fn store_loose(&mut self, now: Instant, number: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some((datagram, file)) = self.datagram.as_mut().zip(self.files.present()) {
            datagram.store(now, number, bytes);
            let new = datagram.tally().bytes - file.arrived;
            file.arrived = datagram.tally().bytes;
            file.arrived_ns = Some(clock::monotonic_nanos());
            self.on_written(new);
        }
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Bytes that are kept in memory for a sender without a valid frame yet, and for one with.
const UNKNOWN_SENDER_BUFFER: usize = 64 << 10;
const KNOWN_SENDER_BUFFER: usize = 1 << 20;
/// Answers without an acknowledgement, in bytes, after which no more frames are read.
const MOST_UNHEARD: usize = 64 << 10;
/// A header makes the receiver open a file, which takes as long as some kilobytes of data do. Between two
/// steps of a session all others have theirs.
const FRAMES_PER_TURN: u32 = 16;
/// And as they arrive, so that what comes of many senders at once is soon read.
const FRAMES_BETWEEN_TURNS: u32 = 4;
/// What a session and its connection take while nothing has arrived, in bytes: 4.5 kB of it in the table of connections,
/// and 6 kB in allocations of both.
pub(crate) const COST_OF_A_SESSION: usize = 12 << 10;
const NO_MEMORY: &str = "the receiver has no memory for what came early";
/// Until there is a measurement.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);
/// How often the journal is written at least, while anything arrives.
const NOTED_EVERY: Duration = Duration::from_millis(200);
/// Interval of reports to a sender that waits.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of polls for the finalizer's reports, at first and at last.
const ASKED_EVERY: Duration = Duration::from_micros(300);
const ASKED_AT_LEAST_EVERY: Duration = Duration::from_millis(40);
/// How long a sender waits for the answer about a file with which no thread has begun. What it sends then is looked up
/// meanwhile.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// How soon it is noticed that another session's file has its verdict.
const FINISH_ASKED_EVERY: Duration = Duration::from_millis(5);

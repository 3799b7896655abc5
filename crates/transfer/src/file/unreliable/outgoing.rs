//! The sending end: offers a file, pours its datagrams out, asks what arrived.

use std::io;
use std::sync::Arc;

use weir_transport::{Connection, Event};
use weir_units::{Bytes, Duration, Instant, Rate};

use crate::endpoint::{Application, Datagram};
use crate::file::disk::DiskFile;
use crate::file::frame::{Announcement, Answer, Frame, FrameError};
use crate::file::inbox::Inbox;
use crate::file::outbox::Outbox;
use crate::file::read_ahead::ReadAhead;
use crate::file::{Failure, OutgoingFile};

/// How datagrams leave.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOptions {
    /// The file's bytes in each datagram, at most [`Datagram::MAX_LEN`].
    pub piece: u32,
    /// The rate at which they leave, counted in the file's bytes; without it, as the socket takes them.
    pub rate: Option<Rate>,
}

/// The sending end of a session over bare UDP.
#[derive(Debug)]
pub struct OutgoingDatagrams {
    files: Vec<OutgoingFile>,
    pouring: DatagramOptions,
    /// The place of the present file in the list.
    present: usize,
    stage: Stage,
    /// When the next datagram may leave.
    next_at: Instant,
    /// What rounding has left of earlier intervals.
    carry: u64,
    inbox: Inbox,
    outbox: Outbox,
    read_ahead: ReadAhead,
    heard_at: Option<Instant>,
    last_sent_at: Option<Instant>,
    failure: Option<Failure>,
}

#[derive(Debug)]
enum Stage {
    /// The next file is to be offered, or there is none.
    Between,
    /// It was offered.
    Offered(Arc<dyn DiskFile>),
    /// Its datagrams leave; the next begins at this offset.
    DatagramOptions(Arc<dyn DiskFile>, u64),
    /// All are sent but perhaps the last one, and the receiver knows their number.
    Announced(Arc<dyn DiskFile>),
    /// Everything is said.
    Over,
}

impl OutgoingDatagrams {
    /// Sends `files`, one after the other.
    pub fn new(mut files: Vec<OutgoingFile>, pouring: DatagramOptions) -> Self {
        for (number, file) in files.iter_mut().enumerate() {
            file.header.number = number as u32;
        }
        let mut outbox = Outbox::default();
        outbox.push(&Announcement::Hello { files: files.len() as u32 });
        Self {
            files,
            pouring,
            present: 0,
            stage: Stage::Between,
            next_at: Instant::ZERO,
            carry: 0,
            inbox: Inbox::new(ANSWER_BUFFER),
            outbox,
            read_ahead: ReadAhead::default(),
            heard_at: None,
            last_sent_at: None,
            failure: None,
        }
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

    /// When the receiver last said anything.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard_at
    }

    /// When the receiver last said anything or a datagram last left.
    pub fn active_at(&self) -> Option<Instant> {
        self.heard_at.max(self.last_sent_at)
    }

    /// How many bytes of the present file have left.
    pub fn bytes_sent(&self) -> u64 {
        match &self.stage {
            Stage::Between | Stage::Offered(_) | Stage::Over => 0,
            Stage::DatagramOptions(_, at) => *at,
            Stage::Announced(_) => self.present().map_or(0, |outgoing| outgoing.header.size),
        }
    }

    /// The file that is being sent.
    pub fn present(&self) -> Option<&OutgoingFile> {
        self.files.get(self.present)
    }

    /// Offers the next file, or says that there is none.
    fn offer(&mut self) -> io::Result<()> {
        let Some(outgoing) = self.files.get(self.present) else {
            self.outbox.push(&Announcement::End);
            self.stage = Stage::Over;
            return Ok(());
        };
        let file = outgoing.open()?;
        let (header, piece) = (outgoing.header.clone(), self.pouring.piece);
        self.outbox.push(&Announcement::Datagram { header, piece });
        self.stage = Stage::Offered(file);
        Ok(())
    }

    fn on_answer(&mut self, now: Instant, answer: Answer) -> Result<(), FrameError> {
        let about_present = |file: u32| match file as usize == self.present {
            true => Ok(()),
            false => Err(FrameError::Order("an answer about no file")),
        };
        match answer {
            Answer::Have { file, .. } => {
                about_present(file)?;
                match std::mem::replace(&mut self.stage, Stage::Between) {
                    Stage::Offered(file) => {
                        self.stage = Stage::DatagramOptions(file, 0);
                        self.next_at = now;
                    }
                    other => self.stage = other,
                }
            }
            Answer::Count { file, tally } => {
                about_present(file)?;
                self.files[self.present].arrived = tally.bytes;
                self.files[self.present].tally = Some(tally);
            }
            Answer::Verdict { file, verdict } => {
                about_present(file)?;
                self.files[self.present].on_verdict(verdict);
                self.present += 1;
                self.stage = Stage::Between;
            }
            Answer::Wanted { .. } => return Err(FrameError::Order("an answer to no question")),
            Answer::Working | Answer::Wait { .. } | Answer::Damaged { .. } => {}
            Answer::Broken { reason } => {
                self.failure.get_or_insert(Failure::Ended(reason));
            }
            Answer::Failed { reason } => {
                self.failure.get_or_insert(Failure::Refused(reason));
            }
        }
        Ok(())
    }

    fn read_answers(&mut self, now: Instant) -> Result<(), FrameError> {
        while let Some((answer, len)) = Answer::parse(self.inbox.ready())? {
            self.inbox.advance(self.inbox.base() + len as u64);
            self.on_answer(now, answer)?;
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) {
        if let Some(failure) = Failure::of(event).filter(|_| !self.is_settled()) {
            self.failure.get_or_insert(failure);
        }
    }

    /// Once all have left, the receiver is sent their number.
    fn announce_count(&mut self) {
        let Some(size) = self.present().map(|outgoing| outgoing.header.size) else { return };
        let next = match &self.stage {
            Stage::DatagramOptions(file, at) if *at >= size => Stage::Announced(Arc::clone(file)),
            _ => return,
        };
        let datagrams = size.div_ceil(u64::from(self.pouring.piece));
        self.outbox.push(&Announcement::Sent { datagrams });
        self.stage = next;
    }

    /// How long a datagram of `len` bytes takes at the requested rate.
    fn interval(&mut self, len: u64) -> Duration {
        let Some(rate) = self.pouring.rate else { return Duration::ZERO };
        rate.transmit_time(Bytes(len), &mut self.carry)
    }
}

impl Application for OutgoingDatagrams {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.outbox.fill(offset, buf)
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inbox.insert(offset, bytes)
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        if connection.read(now, u64::MAX) > 0 {
            self.heard_at = Some(now);
        }
        if let Err(error) = self.read_answers(now) {
            self.failure.get_or_insert(Failure::Nonsense(error));
        }
        while let Some(event) = connection.poll_event() {
            self.on_event(event);
        }
        if self.failure.is_some() {
            connection.abort(now);
            return Ok(());
        }
        self.announce_count();
        if matches!(self.stage, Stage::Between) {
            self.offer()?;
        }
        self.outbox.forget(connection.stats().acked_bytes);
        self.outbox.write(now, connection);
        if matches!(self.stage, Stage::Over) {
            connection.close(now);
        }
        let delivered = connection.stats().delivered_bytes;
        let space = self.inbox.edge() - delivered.min(self.inbox.edge());
        connection.set_recv_window(Bytes(space));
        Ok(())
    }

    fn next_time(&self) -> Option<Instant> {
        matches!(self.stage, Stage::DatagramOptions(..)).then_some(self.next_at)
    }

    fn poll_loose(&mut self, now: Instant) -> Option<Datagram> {
        let size = self.present()?.header.size;
        let Stage::DatagramOptions(_, at) = &mut self.stage else { return None };
        if *at >= size || now < self.next_at {
            return None;
        }
        let (number, len) = (*at, (size - *at).min(u64::from(self.pouring.piece)));
        *at += len;
        self.last_sent_at = Some(now);
        // What a late wake-up has missed is made up for, within reason.
        let floor = Instant::from_nanos(now.as_nanos().saturating_sub(MAX_DEBT.as_nanos()));
        self.next_at = self.next_at.max(floor) + self.interval(len);
        Some(Datagram { number, len: len as usize })
    }

    fn fill_loose(&mut self, datagram: Datagram, buf: &mut [u8]) -> io::Result<()> {
        match &self.stage {
            Stage::DatagramOptions(file, _) | Stage::Announced(file) => {
                self.read_ahead.read(file, datagram.number, buf)
            }
            _ => Err(io::Error::other("bytes requested that are gone")),
        }
    }
}

const ANSWER_BUFFER: usize = 64 << 10;
/// A sender that was kept from sending for longer does not make up for it at once.
const MAX_DEBT: Duration = Duration::from_millis(10);

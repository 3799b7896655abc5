//! One connection with what lives on it.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use weir_sockets::places::Pace;
use weir_sockets::socket::{DatagramSink, is_too_long};
use weir_transport::wire::{self, Parsed};
use weir_transport::{Connection, Flags, Segment, Transmit};
use weir_units::{Duration, Ecn, Instant};

use super::application::{Application, Datagram};
use super::cookie::{CookieExchange, CookieField, emit_noted};
use super::framing::Framing;
use super::key::Key;
use super::limits::Limits;
use super::outbox::{Addressing, Outbox};
use crate::seal::{NamedKey, Opened, Refusal};

/// One connection with what lives on it.
pub(super) struct Peer<A> {
    pub(super) key: Key,
    /// Which of this machine's addresses the remote talks to.
    local: Option<IpAddr>,
    pub(super) connection: Connection,
    pub(super) application: A,
    framing: Framing,
    /// The key that let it in, if one did.
    pub(super) admitted_by: Option<Arc<NamedKey>>,
    /// For when this is in the endpoint's book of deadlines.
    pub(super) deadline: Option<Instant>,
    /// It is on the list for the present step.
    pub(super) touched: bool,
    introduction: CookieExchange,
    /// When the peer was last heard of.
    pub(super) heard_at: Instant,
    /// How many bytes arrived in loose datagrams.
    loose: u64,
    /// These, and stream bytes that arrived in order or were acknowledged.
    progress: u64,
    /// How fast that grows since the peer has said what the connection is for.
    pub(super) pace: Pace,
    /// The work that was done for it, and as much of it as counts after some time.
    work: u64,
    load: u64,
    loaded_at: Instant,
    /// Sent next: what did not fit into the outbox.
    queue: VecDeque<Queued>,
    /// The present flight began with a claim.
    claimed: bool,
    /// What broke it, other than the peer.
    pub(super) error: Option<io::Error>,
}

/// What leaves in a datagram.
#[derive(Clone, Copy, Debug)]
enum Queued {
    Segment(Transmit),
    /// A SYN with its note.
    Noted(Segment, CookieField),
    Datagram(Datagram),
}

/// How far sending went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing more may leave now.
    All,
    /// There may be more.
    Some,
}

impl<A> Peer<A> {
    /// A connection that is being opened from here.
    pub(super) fn connecting(
        now: Instant,
        key: Key,
        connection: Connection,
        application: A,
        framing: Framing,
    ) -> Self {
        let introduction = match framing {
            Framing::Clear => CookieExchange::Asking(Vec::new()),
            Framing::Sealed(_) => CookieExchange::Done,
        };
        Self { introduction, ..Self::new(now, key, connection, application, framing) }
    }

    /// A connection that a remote peer has opened, to the address `local` of this machine.
    pub(super) fn accepted(
        now: Instant,
        key: Key,
        local: Option<IpAddr>,
        connection: Connection,
        application: A,
        framing: Framing,
    ) -> Self {
        Self { local, ..Self::new(now, key, connection, application, framing) }
    }

    fn new(
        now: Instant,
        key: Key,
        connection: Connection,
        application: A,
        framing: Framing,
    ) -> Self {
        Self {
            key,
            local: None,
            connection,
            application,
            framing,
            admitted_by: None,
            introduction: CookieExchange::Done,
            heard_at: now,
            loose: 0,
            progress: 0,
            pace: Pace::new(now),
            work: 0,
            load: 0,
            loaded_at: now,
            deadline: None,
            touched: false,
            queue: VecDeque::new(),
            claimed: false,
            error: None,
        }
    }
}

impl<A: Application> Peer<A> {
    /// Processes a datagram. What is to be sent back at once is appended to `answer`.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        ecn: Ecn,
        scratch: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) {
        let Self { framing, connection, application, introduction, heard_at, .. } = self;
        let done = match framing.open(now, datagram, scratch) {
            Opened::Segment(segment) => {
                *heard_at = now;
                self.loose += Datagram::parse(segment).map_or(0, |(_, bytes)| bytes.len() as u64);
                handle(connection, application, introduction, now, segment, ecn)
            }
            Opened::Answer(bytes) => {
                answer.extend(bytes);
                Ok(())
            }
            Opened::Refused(refusal) => Err(refused(refusal)),
            Opened::StatelessReset => {
                if now.saturating_since(*heard_at) >= SILENCE {
                    connection.handle_reset(now);
                }
                Ok(())
            }
            Opened::Nothing => Ok(()),
        };
        if let Err(error) = done {
            self.fail(now, error);
        }
    }

    /// Processes the segment that it begins with.
    pub(super) fn begin(&mut self, now: Instant, segment: &[u8], ecn: Ecn) {
        let Self { connection, application, introduction, .. } = self;
        if let Err(error) = handle(connection, application, introduction, now, segment, ecn) {
            self.fail(now, error);
        }
    }

    pub(super) fn expire(&mut self, now: Instant, limits: &Limits) {
        if self.connection.next_timeout(now).is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        if self.patience_ends(limits).is_some_and(|at| at <= now) {
            let waited = now.saturating_since(self.heard_at).as_secs_f64();
            let what = format!("nothing was heard of {} for {waited:.0} s", self.key.remote);
            self.fail(now, io::Error::new(io::ErrorKind::TimedOut, what));
        }
    }

    /// Returns how much work that was.
    pub(super) fn step(&mut self, now: Instant, limits: &Limits) -> u64 {
        if let Err(error) = self.application.on_step(now, &mut self.connection) {
            self.fail(now, error);
        }
        let stats = self.connection.stats();
        let progress = stats.delivered_bytes + stats.acked_bytes + self.loose;
        if self.application.is_established() {
            self.pace.add(now, progress - self.progress, limits.places.grace);
        }
        self.progress = progress;
        self.note_work(now)
    }

    fn note_work(&mut self, now: Instant) -> u64 {
        let done = self.application.work() - self.work;
        self.work += done;
        let seconds = now.saturating_since(self.loaded_at).as_nanos() / 1_000_000_000;
        if seconds > 0 {
            self.load = self.load.checked_shr(seconds.min(64) as u32).unwrap_or(0);
            self.loaded_at = now;
        }
        self.load += done;
        done
    }

    /// The work that was done for it, half of it after a second: those for whom it is least have the next turn. One
    /// that is over needs no more, and frees memory.
    pub(super) fn load(&self) -> u64 {
        let ends = self.connection.is_closed() || self.application.must_end();
        if ends { 0 } else { 1 + self.load }
    }

    pub(super) fn next_time(&self, now: Instant, limits: &Limits) -> Option<Instant> {
        let own = self.connection.next_timeout(now);
        let patience = self.patience_ends(limits);
        [own, self.application.next_time(), patience].into_iter().flatten().min()
    }

    /// When the peer has been silent for too long.
    fn patience_ends(&self, limits: &Limits) -> Option<Instant> {
        let introduced = self.introduction.is_over();
        let patience = match introduced && self.connection.is_synchronised() {
            true => limits.idle,
            false => limits.handshake,
        };
        (!self.connection.is_finished()).then(|| self.heard_at.saturating_add(patience))
    }

    /// Hands what may leave to the sink, up to a few batches. Returns the sink's error: after
    /// [`io::ErrorKind::WouldBlock`] nothing is lost, after others the batch is.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        sink: &impl DatagramSink,
        outbox: &mut Outbox,
        scratch: &mut Vec<u8>,
    ) -> io::Result<Sent> {
        for _ in 0..BATCHES_A_TURN {
            loop {
                let Some(leaving) = self.next_leaving(now) else {
                    return outbox.send(sink).map(|()| Sent::All);
                };
                let len = self.framing.wrapped_len(leaving.len());
                let way = Addressing { to: self.key.remote, from: self.local, ecn: leaving.ecn() };
                if !outbox.takes(way, len, sink.max_segments()) {
                    self.queue.push_front(leaving);
                    break;
                }
                if let Err(error) =
                    outbox.push(way, len, |out| self.write(now, &leaving, scratch, out))
                {
                    self.fail(now, error);
                }
            }
            outbox.send(sink)?;
        }
        Ok(Sent::Some)
    }

    /// What leaves next. While the peer may know nothing of us, the SYN and its cookie go before and
    /// after everything that leaves together.
    fn next_leaving(&mut self, now: Instant) -> Option<Queued> {
        while let Some(waiting) = self.queue.pop_front() {
            if !self.is_outdated(&waiting) {
                return Some(waiting);
            }
        }
        let next = self.poll(now);
        let Some((syn, cookie)) = self.introduction.claim() else { return next };
        if next.is_some() == self.claimed {
            return next;
        }
        self.claimed = next.is_some();
        self.queue.extend(next);
        Some(Queued::Noted(syn, cookie))
    }

    /// Whether bytes of a segment were acknowledged while it waited, so that the application may have
    /// discarded them: a segment repeated in vain (simulation, seed 402299). To recovery it is lost.
    fn is_outdated(&self, waiting: &Queued) -> bool {
        let acked = self.connection.stats().acked_bytes;
        matches!(waiting, Queued::Segment(Transmit { segment, offset, .. })
            if segment.payload_len > 0 && *offset < acked)
    }

    fn poll(&mut self, now: Instant) -> Option<Queued> {
        if let Some(transmit) = self.connection.poll_transmit(now) {
            let segment = transmit.segment;
            return Some(match self.introduction.on_leaving(&segment) {
                Some(note) => Queued::Noted(segment, note),
                None => Queued::Segment(transmit),
            });
        }
        self.application.poll_loose(now).map(Queued::Datagram)
    }

    fn write(
        &mut self,
        now: Instant,
        leaving: &Queued,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Self { framing, application, .. } = self;
        let ports = self.key.ports;
        match leaving {
            Queued::Segment(transmit) => {
                let fill = |payload: &mut [u8]| match payload.is_empty() {
                    true => Ok(()),
                    false => application.fill(transmit.offset, payload),
                };
                framing.wrap(now, &transmit.segment, ports, fill, scratch, out)
            }
            Queued::Noted(segment, note) => {
                emit_noted(segment, ports, note, out);
                Ok(())
            }
            Queued::Datagram(datagram) => {
                let fill = |payload: &mut [u8]| application.fill_loose(*datagram, payload);
                framing.wrap_datagram(now, *datagram, ports, fill, scratch, out)
            }
        }
    }

    /// The socket refused a batch, which is lost: an address that cannot be reached may be reachable
    /// again soon (RFC 9293 §3.9.2.2), a datagram that is too long will stay so.
    pub(super) fn on_send_error(&mut self, now: Instant, error: io::Error) {
        if is_too_long(&error) {
            let what = "a datagram is longer than the system can send: choose a smaller mss";
            self.fail(now, io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }

    /// Breaks the connection off.
    pub(super) fn fail(&mut self, now: Instant, error: io::Error) {
        self.error.get_or_insert(error);
        self.connection.abort(now);
    }
}

impl Queued {
    /// Without its framing.
    fn len(&self) -> usize {
        match self {
            Self::Segment(Transmit { segment, .. }) => {
                segment.header_len() + segment.payload_len as usize
            }
            Self::Noted(segment, note) => segment.header_len() + note.len(),
            Self::Datagram(datagram) => Datagram::HEADER_LEN + datagram.len,
        }
    }

    fn ecn(&self) -> Ecn {
        match self {
            Self::Segment(transmit) => transmit.ecn,
            Self::Noted(..) | Self::Datagram(_) => Ecn::NotEct,
        }
    }
}

/// Hands a segment to the connection, and what is new in it to what lives there. Any datagram may come
/// here: what is no segment is nothing.
fn handle<A: Application>(
    connection: &mut Connection,
    application: &mut A,
    introduction: &mut CookieExchange,
    now: Instant,
    segment: &[u8],
    ecn: Ecn,
) -> io::Result<()> {
    if let Some((number, payload)) = Datagram::parse(segment) {
        return application.store_loose(now, number, payload);
    }
    let Ok(mut parsed) = wire::parse(segment) else { return Ok(()) };
    if !introduction.on_arrival(now, &mut parsed) {
        return Ok(());
    }
    let Parsed { segment, payload, .. } = parsed;
    if let Some(new) = connection.handle_segment(now, &segment, ecn) {
        let from = new.skip as usize;
        application.store(new.offset, &payload[from..from + new.len as usize])?;
    }
    let reset = segment.flags.contains(Flags::RST) && connection.is_closed();
    match Refusal::in_reset(payload).filter(|_| reset) {
        Some(refusal) => Err(refused(refusal)),
        None => Ok(()),
    }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, refusal)
}

/// A live receiver sends something within this time: then no third party is believed that it is gone. It
/// is longer than the second in which a receiver that verifies a file says that it works.
const SILENCE: Duration = Duration::from_secs(2);
/// Number of batches after which the receiving side has its turn: acknowledgements should not grow old.
const BATCHES_A_TURN: usize = 4;

#[cfg(test)]
mod tests;

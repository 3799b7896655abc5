//! One connection with what lives on it.

use std::io;
use std::net::IpAddr;

use weir_transport::wire::{self, Parsed};
use weir_transport::{Connection, EcnField, Flags, Transmit};
use weir_units::Instant;

use super::application::{Application, Loose};
use super::envelope::Envelope;
use super::outbox::{Outbox, Way};
use super::table::Key;
use crate::seal::{Opened, Refusal};
use crate::socket::Socket;

/// One connection with what lives on it.
pub(super) struct Peer<A> {
    pub(super) key: Key,
    /// Which of this machine's addresses the remote talks to.
    local: Option<IpAddr>,
    pub(super) connection: Connection,
    pub(super) application: A,
    envelope: Envelope,
    /// For when this is in the endpoint's book of deadlines.
    pub(super) deadline: Option<Instant>,
    /// It is on the list for the present turn.
    pub(super) touched: bool,
    /// What found no room in the outbox.
    held: Option<Leaving>,
    /// What broke it, other than the peer.
    pub(super) error: Option<io::Error>,
}

/// What leaves in a datagram.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    Segment(Transmit),
    Loose(Loose),
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
    pub(super) fn new(
        key: Key,
        local: Option<IpAddr>,
        connection: Connection,
        application: A,
        envelope: Envelope,
    ) -> Self {
        Self {
            key,
            local,
            connection,
            application,
            envelope,
            deadline: None,
            touched: false,
            held: None,
            error: None,
        }
    }
}

impl<A: Application> Peer<A> {
    /// Takes in a datagram. What is to be sent back at once is appended to `answer`.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        ecn: EcnField,
        room: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) {
        let Self { envelope, connection, application, .. } = self;
        let done = match envelope.open(datagram, room) {
            Opened::Segment(segment) => handle(connection, application, now, segment, ecn),
            Opened::Answer(bytes) => {
                answer.extend(bytes);
                Ok(())
            }
            Opened::Refused(refusal) => Err(refused(refusal)),
            Opened::Nothing => Ok(()),
        };
        if let Err(error) = done {
            self.fail(now, error);
        }
    }

    /// Takes in the segment that it begins with.
    pub(super) fn begin(&mut self, now: Instant, segment: &[u8], ecn: EcnField) {
        let Self { connection, application, .. } = self;
        if let Err(error) = handle(connection, application, now, segment, ecn) {
            self.fail(now, error);
        }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        if self.connection.next_timeout(now).is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
    }

    pub(super) fn turn(&mut self, now: Instant) {
        if let Err(error) = self.application.on_turn(now, &mut self.connection) {
            self.fail(now, error);
        }
    }

    pub(super) fn next_time(&self, now: Instant) -> Option<Instant> {
        let own = self.connection.next_timeout(now);
        [own, self.application.next_time()].into_iter().flatten().min()
    }

    /// Hands what may leave to the socket, up to a few batches; the last one stays in the outbox.
    /// Returns the socket's error: after [`io::ErrorKind::WouldBlock`] nothing is lost, after others
    /// the batch is.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        socket: &Socket,
        outbox: &mut Outbox,
        scratch: &mut Vec<u8>,
    ) -> io::Result<Sent> {
        for _ in 0..BATCHES_A_TURN {
            loop {
                let Some(leaving) = self.next_leaving(now) else { return Ok(Sent::All) };
                let len = self.envelope.wrapped_len(leaving.len());
                let way = Way { to: self.key.remote, from: self.local, ect: leaving.ect() };
                if !outbox.takes(way, len, socket.max_segments()) {
                    self.held = Some(leaving);
                    break;
                }
                if let Err(error) = outbox.push(way, len, |out| self.write(&leaving, scratch, out))
                {
                    self.fail(now, error);
                }
            }
            outbox.send(socket)?;
        }
        Ok(Sent::Some)
    }

    fn next_leaving(&mut self, now: Instant) -> Option<Leaving> {
        let segment = || self.connection.poll_transmit(now).map(Leaving::Segment);
        self.held
            .take()
            .or_else(segment)
            .or_else(|| self.application.poll_loose(now).map(Leaving::Loose))
    }

    fn write(
        &mut self,
        leaving: &Leaving,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Self { envelope, application, .. } = self;
        let ports = self.key.ports;
        match leaving {
            Leaving::Segment(transmit) => {
                let fill = |payload: &mut [u8]| match payload.is_empty() {
                    true => Ok(()),
                    false => application.fill(transmit.offset, payload),
                };
                envelope.wrap(&transmit.segment, ports, fill, scratch, out)
            }
            Leaving::Loose(loose) => {
                let fill = |payload: &mut [u8]| application.fill_loose(*loose, payload);
                envelope.wrap_loose(*loose, ports, fill, scratch, out)
            }
        }
    }

    /// The socket refused a batch, which is lost: an address that cannot be reached may be reachable
    /// again soon (RFC 9293 §3.9.2.2), a datagram that is too long will stay so.
    pub(super) fn on_send_error(&mut self, now: Instant, error: io::Error) {
        if is_too_long(&error) {
            self.fail(now, error);
        }
    }

    /// Breaks the connection off.
    pub(super) fn fail(&mut self, now: Instant, error: io::Error) {
        self.error.get_or_insert(error);
        self.connection.abort(now);
    }
}

impl Leaving {
    /// Without its envelope.
    fn len(&self) -> usize {
        match self {
            Self::Segment(Transmit { segment, .. }) => {
                segment.header_len() + segment.payload_len as usize
            }
            Self::Loose(loose) => Loose::HEADER_LEN + loose.len,
        }
    }

    fn ect(&self) -> bool {
        matches!(self, Self::Segment(Transmit { ect: true, .. }))
    }
}

/// Hands a segment to the connection, and what is new in it to what lives there. Any datagram may come
/// here: what is no segment is nothing.
fn handle<A: Application>(
    connection: &mut Connection,
    application: &mut A,
    now: Instant,
    segment: &[u8],
    ecn: EcnField,
) -> io::Result<()> {
    if let Some((number, payload)) = Loose::parse(segment) {
        return application.store_loose(now, number, payload);
    }
    let Ok(Parsed { segment, payload, .. }) = wire::parse(segment) else { return Ok(()) };
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

fn is_too_long(error: &io::Error) -> bool {
    quinn_udp::is_msg_size_err(error)
}

/// After so many it is the receiving side's turn: acknowledgements should not grow old.
const BATCHES_A_TURN: usize = 4;

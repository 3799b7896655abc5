//! What happens to datagrams that belong to no connection.

use std::net::SocketAddr;

use weir_sockets::places::{Census, Slot};
use weir_sockets::socket::Arrival;
use weir_transport::wire::{self, Parsed, Ports};
use weir_transport::{Config, Connection, Flags, Segment};
use weir_units::{Instant, Rng, stream};

use super::Application;
use super::cookie::{CookieField, Cookies, SynOutcome, emit_noted};
use super::framing::Framing;
use super::key::Key;
use super::limits::{Limits, TokenBucket};
use super::peer::Peer;
use super::table::{ConnectionId, Table};
use crate::seal::{self, Gate};

/// Lets connections in, and answers strays.
pub(super) struct Acceptor<A> {
    /// With which connections are sealed, if they are.
    pub(super) gate: Option<Gate>,
    pub(super) listener: Option<Listener<A>>,
    pub(super) limits: Limits,
    cookies: Cookies,
    resets: TokenBucket,
}

/// How connections are accepted.
pub(super) struct Listener<A> {
    pub(super) config: Config,
    pub(super) accept: Box<dyn FnMut(SocketAddr) -> Option<A>>,
}

/// A new connection.
pub(super) struct Admission<A> {
    pub(super) peer: Peer<A>,
    /// The connection that it replaces.
    pub(super) evicted: Option<ConnectionId>,
}

/// A datagram of no connection.
pub(super) struct UnmatchedDatagram<'a> {
    pub(super) now: Instant,
    /// Whose it would be.
    pub(super) key: Key,
    pub(super) arrival: &'a Arrival<'a>,
    pub(super) datagram: &'a [u8],
}

impl<A: Application> Acceptor<A> {
    /// An acceptor that admits no connection, with cookies under `secret`.
    pub(super) fn new(secret: [u8; 32]) -> Self {
        Self {
            gate: None,
            listener: None,
            limits: Limits::default(),
            cookies: Cookies::new(secret),
            resets: TokenBucket::per_second(RESETS_PER_SECOND),
        }
    }

    /// Processes a datagram, which may begin a connection. What is to be sent back at once, never more
    /// than came, is appended to `answer`.
    pub(super) fn handle_unmatched(
        &mut self,
        unmatched: &UnmatchedDatagram<'_>,
        table: &Table<A>,
        rng: &mut Rng,
        answer: &mut Vec<u8>,
    ) -> Option<Admission<A>> {
        let Some(gate) = &mut self.gate else {
            seal::refuse_sealed(unmatched.datagram, answer);
            return self.meet_in_clear(unmatched, table, answer);
        };
        seal::refuse_in_clear(unmatched.datagram, answer);
        if !answer.is_empty() {
            return None;
        }
        if seal::is_data(unmatched.datagram) {
            if self.resets.take(unmatched.now) {
                seal::answer_with_reset(unmatched.datagram, answer);
            }
            return None;
        }
        let from = unmatched.key.remote;
        let newcomer = gate.receive(unmatched.now, from, unmatched.datagram, answer)?;
        let parsed = wire::parse(&newcomer.syn).ok().filter(|syn| is_opening(&syn.segment));
        let evicted = slot(&self.limits, unmatched, table).filter(|_| parsed.is_some())?;
        let listener = self.listener.as_mut()?;
        let application = (listener.accept)(from)?;
        let connection = Connection::listen(&listener.config, stream(rng.next_u64(), "connection"));
        let framing = Framing::Sealed(newcomer.seal);
        let (now, key, local) = (unmatched.now, unmatched.key, unmatched.arrival.to);
        let mut peer = Peer::accepted(now, key, local, connection, application, framing);
        peer.admitted_by = Some(newcomer.key);
        peer.begin(now, &newcomer.syn, unmatched.arrival.ecn);
        Some(Admission { peer, evicted })
    }

    fn meet_in_clear(
        &mut self,
        unmatched: &UnmatchedDatagram<'_>,
        table: &Table<A>,
        answer: &mut Vec<u8>,
    ) -> Option<Admission<A>> {
        let UnmatchedDatagram { now, key, datagram, arrival } = *unmatched;
        let parsed = wire::parse(datagram).ok()?;
        let listener = self.listener.as_mut().filter(|_| is_opening(&parsed.segment));
        let Some(listener) = listener else {
            self.reset(now, key.ports, &parsed, answer);
            return None;
        };
        match self.cookies.receive(now, key.remote, &listener.config, &parsed) {
            SynOutcome::Nothing => None,
            SynOutcome::Answer(segment, cookie) => {
                emit_noted(&segment, key.ports, &cookie, answer);
                None
            }
            SynOutcome::Stale(cookie) => {
                let reset = Segment {
                    ack: parsed.segment.seq + 1,
                    flags: Flags::RST.with(Flags::ACK),
                    ..Segment::default()
                };
                emit_noted(&reset, key.ports, &cookie, answer);
                None
            }
            SynOutcome::Admitted(connection) => {
                // A peer without a free slot gets no answer and asks again (Linux without `tcp_abort_on_overflow`).
                let evicted = slot(&self.limits, unmatched, table)?;
                let Some(application) = (listener.accept)(key.remote) else {
                    refuse(now, *connection, key.ports, &parsed, answer);
                    return None;
                };
                let framing = Framing::Clear;
                let peer = Peer::accepted(now, key, arrival.to, *connection, application, framing);
                Some(Admission { peer, evicted })
            }
        }
    }

    /// RFC 9293 §3.10.7.1: a segment of no connection is answered with a reset, but not every time.
    fn reset(&mut self, now: Instant, ports: Ports, parsed: &Parsed<'_>, answer: &mut Vec<u8>) {
        let stray = &parsed.segment;
        if stray.flags.contains(Flags::RST) || !self.resets.take(now) {
            return;
        }
        let reset = if stray.flags.contains(Flags::ACK) {
            Segment { seq: stray.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            // With a SYN travels a note, no data.
            let len = if stray.flags.contains(Flags::SYN) { 1 } else { stray.seq_len() };
            Segment {
                ack: stray.seq + len,
                flags: Flags::RST.with(Flags::ACK),
                ..Segment::default()
            }
        };
        wire::emit(&reset, ports, &[], answer);
    }
}

/// Whether there is a slot for a new connection, and which one it replaces.
fn slot<A>(
    limits: &Limits,
    unmatched: &UnmatchedDatagram<'_>,
    table: &Table<A>,
) -> Option<Option<ConnectionId>> {
    let mut census = Census::of(unmatched.key.remote.ip());
    for (id, peer) in table.iter().filter(|(_, peer)| !peer.connection.is_closed()) {
        census.count(peer.key.remote.ip(), peer.pace, id);
    }
    match census.slot(unmatched.now, &limits.places) {
        Slot::Free => Some(None),
        Slot::InPlaceOf(id) => Some(Some(id)),
        Slot::None => None,
    }
}

fn is_opening(segment: &Segment) -> bool {
    segment.flags.contains(Flags::SYN)
        && !segment.flags.contains(Flags::ACK)
        && !segment.flags.contains(Flags::RST)
}

/// Resets a connection that was answered for; the cookie shows that this is meant.
fn refuse(
    now: Instant,
    mut connection: Connection,
    ports: Ports,
    claim: &Parsed<'_>,
    answer: &mut Vec<u8>,
) {
    connection.abort(now);
    if let (Some(reset), Ok(cookie)) =
        (connection.poll_transmit(now), CookieField::try_from(claim.payload))
    {
        emit_noted(&reset.segment, ports, &cookie, answer);
    }
}

/// Rate of answers to unmatched datagrams.
const RESETS_PER_SECOND: u64 = 200;

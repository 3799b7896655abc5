//! The connections of an endpoint as a state machine: datagrams and the time in, datagrams and the next
//! deadline out.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use weir_sockets::socket::{Arrival, DatagramSink};
use weir_transport::wire::Ports;
use weir_transport::{Config, Connection};
use weir_units::{Duration, Instant, Rng, stream};

use super::acceptor::{Acceptor, Listener, UnmatchedDatagram};
use super::application::Application;
use super::framing::{self, Framing};
use super::key::Key;
use super::limits::Limits;
use super::outbox::Outbox;
use super::peer::{Peer, Sent};
use super::table::{ConnectionId, Table};
use crate::seal::{Gate, Keys};

/// The connections of an endpoint, without socket, clock and source of randomness.
pub struct Core<A> {
    table: Table<A>,
    acceptor: Acceptor<A>,
    outbox: Outbox,
    ended: VecDeque<Ended<A>>,
    /// Random ports and initial sequence numbers.
    rng: Rng,
    /// The sink has no space for what is in the outbox.
    blocked: bool,
    /// Whether handshakes continue after ICMP says that no socket listens.
    ignores_refusals: bool,
    /// Kept for its memory.
    turning: Vec<ConnectionId>,
    scratch: Vec<u8>,
    answer: Vec<u8>,
}

/// A connection that is over.
pub struct Ended<A> {
    /// Its number.
    pub id: ConnectionId,
    /// Who was at the other end.
    pub remote: SocketAddr,
    /// The name of the key that it came with, if that has one.
    pub key_name: Option<String>,
    /// What lived on it.
    pub application: A,
    /// Its last state.
    pub connection: Connection,
    /// What broke it on this side: the application's error or the socket's. What the peer or its
    /// silence did is an event of the connection, which the application has read.
    pub error: Option<io::Error>,
}

/// The random bytes of an endpoint, new for each process.
#[derive(Clone, Copy)]
pub struct Randomness {
    /// Under which cookies are made.
    pub secret: [u8; 32],
    /// The seed for ports and initial sequence numbers.
    pub seed: u64,
}

impl<A: Application> Core<A> {
    /// An endpoint without connections.
    pub fn new(randomness: Randomness) -> Self {
        Self {
            table: Table::default(),
            acceptor: Acceptor::new(randomness.secret),
            outbox: Outbox::new(),
            ended: VecDeque::new(),
            rng: stream(randomness.seed, "endpoint"),
            blocked: false,
            ignores_refusals: false,
            turning: Vec::new(),
            scratch: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Seals all connections from now on: those that are opened here with the first key, those that come
    /// with any of them. Those that come without are refused, and those end that came with a key which is
    /// none of these. Cookies are made under `secret`.
    pub fn seal_with(&mut self, now: Instant, keys: Keys, secret: [u8; 32]) {
        let removed =
            |peer: &Peer<A>| peer.admitted_by.as_ref().is_some_and(|key| !keys.contains(key));
        let these = self.table.iter().filter(|(_, peer)| removed(peer));
        for id in these.map(|(id, _)| id).collect::<Vec<_>>() {
            if let Some(peer) = self.table.get_mut(id) {
                let what = "the sender's key was removed";
                peer.fail(now, io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
            self.table.touch(id);
        }
        self.acceptor.gate = Some(Gate::new(keys, secret));
    }

    /// Sets the bounds on what unknown peers may cost.
    pub fn set_limits(&mut self, limits: Limits) {
        self.acceptor.limits = limits;
    }

    /// Accepts connections with `config`, on each of which lives what `accept` makes for the address
    /// that it comes from; `None` refuses.
    pub fn listen(
        &mut self,
        config: Config,
        accept: impl FnMut(SocketAddr) -> Option<A> + 'static,
    ) {
        let config = suited(&config);
        self.acceptor.listener = Some(Listener { config, accept: Box::new(accept) });
    }

    /// Opens a connection to `remote`; the first segment leaves at once, so that whatever is to be
    /// prepared can be while its answer is on the way.
    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: &Config,
        application: A,
        sink: &impl DatagramSink,
    ) -> ConnectionId {
        let ports = self.free_ports(remote);
        let rng = stream(self.rng.next_u64(), "connection");
        let connection = Connection::connect(&suited(config), now, rng);
        let framing = match &self.acceptor.gate {
            Some(gate) => Framing::Sealed(gate.initiate()),
            None => Framing::Clear,
        };
        let key = Key { remote, ports };
        let peer = Peer::connecting(now, key, connection, application, framing);
        let id = self.table.insert(peer);
        self.transmit_for(now, id, sink);
        id
    }

    /// Hands datagrams that arrived together to their connections. Returns whether one without a
    /// connection was answered, so that more is about to come.
    pub fn receive(
        &mut self,
        now: Instant,
        arrival: &Arrival<'_>,
        sink: &impl DatagramSink,
    ) -> bool {
        let Self { table, acceptor, rng, scratch, answer, .. } = self;
        let mut expecting = false;
        let mut last: Option<(Key, ConnectionId)> = None;
        for datagram in arrival.datagrams() {
            let Some(ports) = framing::ports(datagram) else { continue };
            let key = Key::of_arrival(arrival.from, ports);
            if last.is_none_or(|(before, _)| before != key) {
                last = table.find(&key).map(|id| (key, id));
                if let Some((_, id)) = last {
                    table.touch(id);
                }
            }
            if let Some(peer) = last.and_then(|(_, id)| table.get_mut(id)) {
                peer.receive(now, datagram, arrival.ecn, scratch, answer);
            } else {
                let unmatched = UnmatchedDatagram { now, key, arrival, datagram };
                if let Some(admission) = acceptor.handle_unmatched(&unmatched, table, rng, answer) {
                    if let Some(id) = admission.evicted {
                        table.evict(now, id);
                    }
                    table.insert(admission.peer);
                }
                if answer.len() > datagram.len() {
                    // A SYN-ACK has options that a scanty SYN has not: no victim is flooded
                    // through us, not even a little.
                    answer.clear();
                }
                expecting |= !answer.is_empty();
            }
            if !answer.is_empty() {
                // The peer asks again if this is lost.
                let _ = sink.send(&arrival.answer(answer));
                answer.clear();
            }
        }
        expecting
    }

    /// From now on handshakes continue although no socket listens: the peer was there, and may be back soon.
    pub fn ignore_refusals(&mut self) {
        self.ignores_refusals = true;
    }

    /// Ends handshakes with ports of `by` where no socket listens. Later such news is no reason to end
    /// anything (RFC 5927 §4.1): the peer may be back soon.
    pub fn on_refusal(&mut self, now: Instant, by: IpAddr) {
        if self.ignores_refusals {
            return;
        }
        let opening = |peer: &Peer<A>| !peer.connection.is_synchronised();
        let refused = |peer: &Peer<A>| peer.key.remote.ip() == by && opening(peer);
        let these = self.table.iter().filter(|(_, peer)| refused(peer));
        for id in these.map(|(id, _)| id).collect::<Vec<_>>() {
            if let Some(peer) = self.table.get_mut(id) {
                let what = format!("no program listens on UDP address {}", peer.key.remote);
                peer.fail(now, io::Error::new(io::ErrorKind::ConnectionRefused, what));
            }
            self.table.touch(id);
        }
    }

    /// Does what is due at `now`: deadlines that have passed, a step for each connection of which something was heard,
    /// and what may leave. After much work for peers the rest of these steps waits for the next call, so that arrivals
    /// are read again soon, and those for whom most was done come last.
    pub fn step(&mut self, now: Instant, sink: &impl DatagramSink) {
        while let Some(id) = self.table.pop_due(now) {
            if let Some(peer) = self.table.get_mut(id) {
                peer.expire(now, &self.acceptor.limits);
            }
            self.table.touch(id);
        }
        let mut turning = std::mem::take(&mut self.turning);
        self.table.take_ready(&mut turning);
        let load = |id: &ConnectionId| self.table.get(*id).map_or(0, Peer::load);
        turning.sort_by_cached_key(load);
        let mut left = WORK_PER_STEP;
        for id in &turning {
            match left {
                0 => self.table.touch(*id),
                _ => left = left.saturating_sub(self.serve(now, *id, sink)),
            }
        }
        self.turning = turning;
    }

    /// Tries again to send what the sink had no space for.
    pub fn unblock(&mut self, sink: &impl DatagramSink) {
        if std::mem::take(&mut self.blocked)
            && let Err(error) = self.outbox.send(sink)
        {
            self.blocked = error.kind() == io::ErrorKind::WouldBlock;
        }
    }

    /// Whether the sink had no space for what is to be sent.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether there is something to do at once.
    pub fn is_busy(&self) -> bool {
        self.table.has_ready()
    }

    /// When something is due next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.table.next_deadline()
    }

    /// The connections and what lives on them.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection, &A)> {
        self.table.iter().map(|(id, peer)| (id, &peer.connection, &peer.application))
    }

    /// A connection and what lives on it.
    pub fn get(&self, id: ConnectionId) -> Option<(&Connection, &A)> {
        self.table.get(id).map(|peer| (&peer.connection, &peer.application))
    }

    /// What lives on a connection, to be changed from outside; it gets a step.
    pub fn application_mut(&mut self, id: ConnectionId) -> Option<&mut A> {
        self.table.touch(id);
        self.table.get_mut(id).map(|peer| &mut peer.application)
    }

    /// Aborts a connection; the reset is sent in the next step.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        if let Some(peer) = self.table.get_mut(id) {
            peer.connection.abort(now);
        }
        self.table.touch(id);
    }

    /// A connection that is over, oldest first.
    pub fn next_ended(&mut self) -> Option<Ended<A>> {
        self.ended.pop_front()
    }

    /// Returns how much work that was.
    fn serve(&mut self, now: Instant, id: ConnectionId, sink: &impl DatagramSink) -> u64 {
        let Some(peer) = self.table.get_mut(id) else { return 0 };
        let work = peer.step(now, &self.acceptor.limits);
        let again = self.transmit_for(now, id, sink);
        let Some(peer) = self.table.get(id) else { return work };
        let next = peer.next_time(now, &self.acceptor.limits);
        if peer.connection.is_closed() && !again {
            self.reap(id);
            // All that are over go in this step: else they could be more than there are places.
            return 0;
        }
        self.table.set_deadline(id, next);
        if again {
            self.table.touch(id);
        }
        work
    }

    /// Sends what of a connection may leave. Returns whether there is more to be done.
    fn transmit_for(&mut self, now: Instant, id: ConnectionId, sink: &impl DatagramSink) -> bool {
        let Some(peer) = self.table.get_mut(id) else { return false };
        if self.blocked {
            return true;
        }
        match peer.transmit(now, sink, &mut self.outbox, &mut self.scratch) {
            Ok(sent) => sent == Sent::Some,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.blocked = true;
                true
            }
            Err(error) => {
                peer.on_send_error(now, error);
                true
            }
        }
    }

    fn reap(&mut self, id: ConnectionId) {
        if let Some(peer) = self.table.remove(id) {
            self.ended.push_back(Ended {
                id,
                remote: peer.key.remote,
                key_name: peer.admitted_by.and_then(|key| key.name.clone()),
                application: peer.application,
                connection: peer.connection,
                error: peer.error,
            });
        }
    }

    /// Port fields that tell a new connection from all others with `remote`.
    fn free_ports(&mut self, remote: SocketAddr) -> Ports {
        loop {
            let source = self.rng.next_u32() as u16;
            let ports = Ports { source, destination: remote.port() };
            if self.table.find(&Key { remote, ports }).is_none() {
                return ports;
            }
        }
    }
}

/// The configuration with what a driver among other programs needs: its turn may come late.
fn suited(config: &Config) -> Config {
    Config {
        pacing_catch_up: config.pacing_catch_up.max(CATCH_UP),
        pacing_catch_up_after_loss: Some(CATCH_UP_AFTER_LOSS),
        ..config.clone()
    }
}

/// Work for peers in a step.
const WORK_PER_STEP: u64 = 64;
/// A time slice or two of another program.
const CATCH_UP: Duration = Duration::from_millis(4);
/// As long as one of Linux's bursts takes (`tcp_tso_autosize`). What is made up for arrives as a burst at a queue that
/// may be short: RFC 9002 §7.7 asks to bound bursts, unless the sender knows that larger ones do no harm.
const CATCH_UP_AFTER_LOSS: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;

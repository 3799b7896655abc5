//! Connections over one UDP socket, driven by the machine's clock.
//!
//! An [`Endpoint`] owns the socket and is turned by one thread: each [`turn`](Endpoint::turn) waits for
//! datagrams or for the earliest deadline, hands all that arrived to the connections, lets what lives
//! on them act, and then sends. So one acknowledgement answers all that arrived together, and what
//! leaves together takes one system call.

mod application;
mod cookie;
mod door;
mod envelope;
mod limits;
mod outbox;
mod peer;
mod table;
mod vigil;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use weir_transport::wire::Ports;
use weir_transport::{Config, Connection};
use weir_units::{Duration, Instant, Rng, stream};

pub use self::application::{Application, Loose};
use self::door::{Door, Listener, Stranger};
pub use self::envelope::Envelope;
pub use self::limits::Limits;
use self::outbox::Outbox;
use self::peer::{Peer, Sent};
pub use self::table::ConnectionId;
use self::table::{Key, Table};
use self::vigil::Vigil;
use crate::clock::{self, Alarm, Interest};
use crate::seal::{self, Gate};
use crate::socket::{BindError, Inbox, Socket};

/// Connections over one UDP socket.
pub struct Endpoint<A> {
    socket: Socket,
    inbox: Inbox,
    outbox: Outbox,
    table: Table<A>,
    door: Door<A>,
    ended: VecDeque<Ended<A>>,
    /// Luck for ports and initial sequence numbers.
    rng: Rng,
    /// Wakes this thread on time, from the first turn on.
    alarm: Option<Alarm>,
    vigil: Vigil,
    /// The system had no room for what is in the outbox.
    blocked: bool,
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
    /// What lived on it.
    pub application: A,
    /// Its last state.
    pub connection: Connection,
    /// What broke it on this side: the application's error or the socket's. What the peer or its
    /// silence did is an event of the connection, which the application has read.
    pub error: Option<io::Error>,
}

impl<A: Application> Endpoint<A> {
    /// An endpoint on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// Why the address cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let socket = Socket::bind(address)?;
        let (secret, luck) = luck();
        Ok(Self {
            socket,
            inbox: Inbox::new(BATCHES_AT_ONCE),
            outbox: Outbox::new(),
            table: Table::default(),
            door: Door::new(secret),
            ended: VecDeque::new(),
            rng: stream(luck, "endpoint"),
            alarm: None,
            vigil: Vigil::default(),
            blocked: false,
            turning: Vec::new(),
            scratch: Vec::new(),
            answer: Vec::new(),
        })
    }

    /// Seals all connections from now on with `key`; those that come without it are refused.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn seal_with(&mut self, key: seal::Key) -> io::Result<()> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        self.door.gate = Some(Gate::new(key, secret));
        Ok(())
    }

    /// Bounds what strangers may cost, from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.door.limits = limits;
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Accepts connections with `config`, on each of which lives what `accept` makes for the address
    /// that it comes from; `None` refuses.
    pub fn listen(
        &mut self,
        config: Config,
        accept: impl FnMut(SocketAddr) -> Option<A> + 'static,
    ) {
        let config = suited(&config);
        self.door.listener = Some(Listener { config, accept: Box::new(accept) });
    }

    /// Opens a connection to `remote`; the first segment leaves at once, so that whatever is to be
    /// prepared can be while its answer is on the way.
    pub fn connect(&mut self, remote: SocketAddr, config: &Config, application: A) -> ConnectionId {
        let now = clock::now();
        // Without it nothing but time is lost.
        let _ = self.socket.hear_refusals();
        let ports = self.free_ports(remote);
        let luck = stream(self.rng.next_u64(), "connection");
        let connection = Connection::connect(&suited(config), now, luck);
        let envelope = match &self.door.gate {
            Some(gate) => Envelope::Sealed(gate.initiate()),
            None => Envelope::Clear,
        };
        let key = Key { remote, ports };
        self.vigil.begin(now);
        let peer = Peer::connecting(now, key, connection, application, envelope);
        let id = self.table.insert(peer);
        self.transmit_for(now, id);
        id
    }

    /// Waits for arrivals or deadlines, at most `max_wait`, and does everything that is due.
    ///
    /// # Errors
    /// What makes the socket useless.
    pub fn turn(&mut self, max_wait: Duration) -> io::Result<()> {
        self.alarm.get_or_insert_with(Alarm::set);
        self.unblock();
        let mut arrived = self.socket.receive(&mut self.inbox)?;
        let mut woken = false;
        if !arrived && (self.blocked || !self.table.has_touched()) {
            arrived = self.hold_vigil()?;
            if !arrived {
                woken = self.wait(max_wait)?;
                self.unblock();
                arrived = self.socket.receive(&mut self.inbox)?;
            }
        }
        let mut now = clock::now();
        if arrived {
            self.dispatch(now);
            now = self.take_in_more(now)?;
        } else if woken {
            self.heed_refusals(now);
        }
        while let Some(id) = self.table.pop_due(now) {
            if let Some(peer) = self.table.get_mut(id) {
                peer.expire(now, &self.door.limits);
            }
            self.table.touch(id);
        }
        self.serve(now);
        Ok(())
    }

    /// The connections and what lives on them.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection, &A)> {
        self.table.iter().map(|(id, peer)| (id, &peer.connection, &peer.application))
    }

    /// A connection and what lives on it.
    pub fn get(&self, id: ConnectionId) -> Option<(&Connection, &A)> {
        self.table.get(id).map(|peer| (&peer.connection, &peer.application))
    }

    /// What lives on a connection, to be changed from outside; it gets a turn.
    pub fn application_mut(&mut self, id: ConnectionId) -> Option<&mut A> {
        self.table.touch(id);
        self.table.get_mut(id).map(|peer| &mut peer.application)
    }

    /// Breaks a connection off; the peer is told at the next turn.
    pub fn abort(&mut self, id: ConnectionId) {
        if let Some(peer) = self.table.get_mut(id) {
            peer.connection.abort(clock::now());
        }
        self.table.touch(id);
    }

    /// A connection that is over, oldest first.
    pub fn next_ended(&mut self) -> Option<Ended<A>> {
        self.ended.pop_front()
    }

    /// Looks for arrivals for as long as it is worth while to stay awake for them.
    fn hold_vigil(&mut self) -> io::Result<bool> {
        while self.vigil.lasts(clock::now()) {
            if self.socket.receive(&mut self.inbox)? {
                return Ok(true);
            }
            // Whoever is to answer may have been put on the same core.
            std::thread::yield_now();
        }
        Ok(false)
    }

    fn wait(&self, max_wait: Duration) -> io::Result<bool> {
        let now = clock::now();
        let until_due = self.table.next_deadline().map(|at| at.saturating_since(now));
        let wait = until_due.map_or(max_wait, |due| due.min(max_wait));
        let interest = if self.blocked { Interest::ReadableOrWritable } else { Interest::Readable };
        self.socket.wait(interest, wait)
    }

    /// Tries again to send what the system had no room for.
    fn unblock(&mut self) {
        if std::mem::take(&mut self.blocked)
            && let Err(error) = self.outbox.send(&self.socket)
        {
            self.blocked = error.kind() == io::ErrorKind::WouldBlock;
        }
    }

    /// What else has arrived belongs to this turn, up to a bound. Returns the time.
    fn take_in_more(&mut self, mut now: Instant) -> io::Result<Instant> {
        for _ in 1..CALLS_A_TURN {
            if !self.socket.receive(&mut self.inbox)? {
                break;
            }
            now = clock::now();
            self.dispatch(now);
        }
        Ok(now)
    }

    /// Hands what arrived to the connections.
    fn dispatch(&mut self, now: Instant) {
        let Self { socket, inbox, table, door, rng, vigil, scratch, answer, .. } = self;
        let mut last: Option<(Key, ConnectionId)> = None;
        for arrival in inbox.arrivals() {
            for datagram in arrival.datagrams() {
                let Some(ports) = envelope::ports(datagram) else { continue };
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
                    let stranger = Stranger { now, key, arrival: &arrival, datagram };
                    if let Some(peer) = door.meet(&stranger, table, rng, answer) {
                        table.insert(peer);
                    }
                    if answer.len() > datagram.len() {
                        // A SYN-ACK has options that a scanty SYN has not: nobody is flooded
                        // through us, not even a little.
                        answer.clear();
                    }
                    if !answer.is_empty() {
                        vigil.begin(now);
                    }
                }
                if !answer.is_empty() {
                    // Whoever asked asks again if this is lost.
                    let _ = socket.send(&arrival.answer(answer));
                    answer.clear();
                }
            }
        }
    }

    /// Ends handshakes with ports where nobody listens. Later such news is no reason to end anything
    /// (RFC 5927 §4.1): the peer may be back soon.
    fn heed_refusals(&mut self, now: Instant) {
        while let Some(by) = self.socket.next_refusal() {
            let opening = |peer: &Peer<A>| !peer.connection.is_synchronised();
            let refused = |peer: &Peer<A>| peer.key.remote.ip() == by && opening(peer);
            let these = self.table.iter().filter(|(_, peer)| refused(peer));
            for id in these.map(|(id, _)| id).collect::<Vec<_>>() {
                if let Some(peer) = self.table.get_mut(id) {
                    let what = format!("nobody listens on UDP address {}", peer.key.remote);
                    peer.fail(now, io::Error::new(io::ErrorKind::ConnectionRefused, what));
                }
                self.table.touch(id);
            }
        }
    }

    /// Gives everyone who is touched a turn and sends what may leave.
    fn serve(&mut self, now: Instant) {
        let mut turning = std::mem::take(&mut self.turning);
        self.table.take_touched(&mut turning);
        for id in &turning {
            self.serve_one(now, *id);
        }
        self.turning = turning;
    }

    fn serve_one(&mut self, now: Instant, id: ConnectionId) {
        let Some(peer) = self.table.get_mut(id) else { return };
        peer.turn(now);
        let again = self.transmit_for(now, id);
        let Some(peer) = self.table.get(id) else { return };
        let next = peer.next_time(now, &self.door.limits);
        if peer.connection.is_closed() && !again {
            return self.bury(id);
        }
        self.table.set_deadline(id, next);
        if again {
            self.table.touch(id);
        }
    }

    /// Sends what of a connection may leave. Returns whether there is more to be done.
    fn transmit_for(&mut self, now: Instant, id: ConnectionId) -> bool {
        let Some(peer) = self.table.get_mut(id) else { return false };
        if self.blocked {
            return true;
        }
        match peer.transmit(now, &self.socket, &mut self.outbox, &mut self.scratch) {
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

    fn bury(&mut self, id: ConnectionId) {
        if let Some(peer) = self.table.remove(id) {
            self.ended.push_back(Ended {
                id,
                remote: peer.key.remote,
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
    Config { pacing_catch_up: config.pacing_catch_up.max(CATCH_UP), ..config.clone() }
}

/// So much is taken in before it is handed on: half a megabyte at once would have left the core's second
/// cache before its checksums are looked at.
const BATCHES_AT_ONCE: usize = 2;
/// And so often, before all of it is answered at once.
const CALLS_A_TURN: usize = 4;

/// A time slice or two of another program.
const CATCH_UP: Duration = Duration::from_millis(4);

/// What nobody can guess. Without the system's help it still differs from run to run.
fn luck() -> ([u8; 32], u64) {
    let mut secret = [0; 32];
    if getrandom::fill(&mut secret).is_err() {
        secret[..8].copy_from_slice(&clock::monotonic_nanos().to_be_bytes());
    }
    let luck = getrandom::u64().unwrap_or_else(|_| clock::monotonic_nanos());
    (secret, luck)
}

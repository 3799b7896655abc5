//! Connections over one UDP socket, driven by the machine's clock.
//!
//! An [`Endpoint`] owns the socket and is driven by one thread: each [`step`](Endpoint::step) waits for
//! datagrams or for the earliest deadline, hands all that arrived to the connections, lets what lives
//! on them act, and then sends. So one acknowledgement answers all that arrived together, and what
//! leaves together takes one system call. What is done with datagrams and deadlines is [`Core`]'s, which
//! knows neither socket nor clock.

mod acceptor;
mod application;
mod busy_poll;
mod cookie;
mod core;
mod framing;
mod key;
mod limits;
mod outbox;
mod peer;
mod table;

use std::io;
use std::net::SocketAddr;

use weir_sockets::clock::{self, Alarm, Interest};
use weir_sockets::socket::{BindError, Inbox, Socket};
use weir_transport::{Config, Connection};
use weir_units::{Duration, Instant};

pub use self::application::{Application, Datagram};
use self::busy_poll::BusyPoll;
pub use self::core::{Core, Ended, Randomness};
pub use self::framing::Framing;
pub use self::limits::Limits;
pub use self::table::ConnectionId;
use crate::seal::Keys;

/// Connections over one UDP socket.
pub struct Endpoint<A> {
    socket: Socket,
    inbox: Inbox,
    core: Core<A>,
    /// Wakes this thread on time, from the first step on.
    alarm: Option<Alarm>,
    busy_poll: BusyPoll,
}

impl<A: Application> Endpoint<A> {
    /// An endpoint on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// Why the address cannot be had, or that the system has no random bytes.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let randomness = randomness().map_err(|error| BindError { address, error })?;
        Ok(Self {
            socket: Socket::bind(address)?,
            inbox: Inbox::new(BATCHES_AT_ONCE),
            core: Core::new(randomness),
            alarm: None,
            busy_poll: BusyPoll::default(),
        })
    }

    /// Seals all connections from now on as [`Core::seal_with`] does.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn seal_with(&mut self, keys: impl Into<Keys>) -> io::Result<()> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        self.core.seal_with(clock::now(), keys.into(), secret);
        Ok(())
    }

    /// Sets the bounds on what unknown peers may cost.
    pub fn set_limits(&mut self, limits: Limits) {
        self.core.set_limits(limits);
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The connections as a state machine, and where their datagrams leave.
    pub fn parts(&mut self) -> (&mut Core<A>, &Socket) {
        (&mut self.core, &self.socket)
    }

    /// Accepts connections as [`Core::listen`] does.
    pub fn listen(
        &mut self,
        config: Config,
        accept: impl FnMut(SocketAddr) -> Option<A> + 'static,
    ) {
        self.core.listen(config, accept);
    }

    /// Opens a connection as [`Core::connect`] does.
    pub fn connect(&mut self, remote: SocketAddr, config: &Config, application: A) -> ConnectionId {
        let now = clock::now();
        self.expect_answers(now);
        self.core.connect(now, remote, config, application, &self.socket)
    }

    /// Answers of a new peer are about to come.
    pub(crate) fn expect_answers(&mut self, now: Instant) {
        // Without it nothing but time is lost.
        let _ = self.socket.enable_icmp_errors();
        self.busy_poll.begin(now);
    }

    /// Waits for arrivals or deadlines, at most `max_wait`, and does everything that is due.
    ///
    /// # Errors
    /// What makes the socket useless.
    pub fn step(&mut self, max_wait: Duration) -> io::Result<()> {
        self.alarm.get_or_insert_with(Alarm::set);
        self.core.unblock(&self.socket);
        let mut arrived = self.socket.receive(&mut self.inbox)?;
        let mut woken = false;
        if !arrived && (self.core.is_blocked() || !self.core.is_busy()) {
            arrived = self.hold_vigil()?;
            if !arrived {
                woken = self.wait(max_wait)?;
                self.core.unblock(&self.socket);
                arrived = self.socket.receive(&mut self.inbox)?;
            }
        }
        let mut now = clock::now();
        if arrived {
            let bytes = self.dispatch(now);
            now = self.receive_more(now, bytes)?;
        } else if woken {
            while let Some(by) = self.socket.next_unreachable() {
                self.core.on_refusal(now, by);
            }
        }
        self.core.step(now, &self.socket);
        Ok(())
    }

    /// The connections and what lives on them.
    pub fn connections(&self) -> impl Iterator<Item = (ConnectionId, &Connection, &A)> {
        self.core.connections()
    }

    /// A connection and what lives on it.
    pub fn get(&self, id: ConnectionId) -> Option<(&Connection, &A)> {
        self.core.get(id)
    }

    /// What lives on a connection, to be changed from outside; it gets a step.
    pub fn application_mut(&mut self, id: ConnectionId) -> Option<&mut A> {
        self.core.application_mut(id)
    }

    /// Aborts a connection; the reset is sent in the next step.
    pub fn abort(&mut self, id: ConnectionId) {
        self.core.abort(clock::now(), id);
    }

    /// A connection that is over, oldest first.
    pub fn next_ended(&mut self) -> Option<Ended<A>> {
        self.core.next_ended()
    }

    /// Polls for arrivals for as long as busy polling pays.
    fn hold_vigil(&mut self) -> io::Result<bool> {
        while self.busy_poll.is_active(clock::now()) {
            if self.socket.receive(&mut self.inbox)? {
                return Ok(true);
            }
            // The peer may have been scheduled on the same core.
            std::thread::yield_now();
        }
        Ok(false)
    }

    fn wait(&self, max_wait: Duration) -> io::Result<bool> {
        let now = clock::now();
        let until_due = self.core.next_deadline().map(|at| at.saturating_since(now));
        let wait = until_due.map_or(max_wait, |due| due.min(max_wait));
        let blocked = self.core.is_blocked();
        let interest = if blocked { Interest::ReadableOrWritable } else { Interest::Readable };
        self.socket.wait(interest, wait)
    }

    /// What else has arrived belongs to this step, up to a bound. Returns the time.
    fn receive_more(&mut self, mut now: Instant, mut bytes: usize) -> io::Result<Instant> {
        for _ in 1..CALLS_PER_STEP {
            if bytes > BYTES_PER_STEP || !self.socket.receive(&mut self.inbox)? {
                break;
            }
            now = clock::now();
            bytes += self.dispatch(now);
        }
        Ok(now)
    }

    /// Hands what arrived to the connections. Returns its length.
    fn dispatch(&mut self, now: Instant) -> usize {
        let mut bytes = 0;
        for arrival in self.inbox.arrivals() {
            bytes += arrival.len();
            if self.core.receive(now, &arrival, &self.socket) {
                self.busy_poll.begin(now);
            }
        }
        bytes
    }
}

/// Receive batches per dispatch: half a megabyte at once would have left the core's second
/// cache before its checksums are looked at.
const BATCHES_AT_ONCE: usize = 2;
/// And this many bytes, before all of it is answered at once: of one sender that is four calls, of many that send
/// single datagrams more.
const BYTES_PER_STEP: usize = 384 << 10;
const CALLS_PER_STEP: usize = 32;

fn randomness() -> io::Result<Randomness> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    Ok(Randomness { secret, seed: getrandom::u64()? })
}

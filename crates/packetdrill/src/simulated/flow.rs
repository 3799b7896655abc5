//! A connection with what its host knows of it.

mod writes;

use weir_transport::{Connection, ConnectionError, Event, Flags, Segment, State};
use weir_units::{Duration, Ecn, Instant};

use self::writes::Held;
use crate::fast_open::FastOpen;

/// A connection of the script.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) connection: Connection,
    pub(super) failure: Option<ConnectionError>,
    /// The socket that accepts it, until one has.
    pub(super) listener: Option<i32>,
    /// The application has closed its descriptor.
    pub(super) orphaned: bool,
    /// The host has forgotten it.
    pub(super) gone: bool,
    /// The application has shut the reading side down.
    pub(super) reads_no_more: bool,
    /// The handshake was over, or data on its SYN made it so.
    pub(super) connected: bool,
    /// The peer will send no more.
    pub(super) finished: bool,
    /// The option of its first SYN, or of the answer.
    pub(super) option: Option<FastOpen>,
    pub(super) early: EarlyFlow,
    pub(super) held: Held,
    /// How often something has happened that wakes who waits for it.
    pub(super) wakes: u64,
    /// A writer has found no space.
    pub(super) is_full: bool,
    pub(super) received_at: Instant,
    pub(super) busy: Stopwatch,
    pub(super) starved: Stopwatch,
}

/// What its own SYN was to carry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyFlow {
    /// It had the option, or data.
    pub(super) asked: bool,
    /// It had the option: the answer may grant a cookie.
    pub(super) option: bool,
    /// Bytes of data.
    pub(super) data: u32,
}

/// How long something has been so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stopwatch {
    since: Option<Instant>,
    total: Duration,
}

impl Stopwatch {
    pub(super) fn set(&mut self, now: Instant, runs: bool) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_since(since);
        }
        self.since = runs.then_some(now);
    }

    pub(super) fn micros(self, now: Instant) -> i64 {
        let running = self.since.map(|since| now.saturating_since(since)).unwrap_or_default();
        (self.total + running).as_micros() as i64
    }
}

impl Flow {
    pub(super) fn new(connection: Connection, now: Instant) -> Self {
        let held = Held::new(connection.config().nagle);
        Self {
            connection,
            failure: None,
            listener: None,
            orphaned: false,
            gone: false,
            reads_no_more: false,
            connected: false,
            finished: false,
            option: None,
            early: EarlyFlow::default(),
            held,
            wakes: 0,
            is_full: false,
            received_at: now,
            busy: Stopwatch::default(),
            starved: Stopwatch::default(),
        }
    }

    /// What the connection sends now, and what it reports.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<(Segment, Ecn, Option<FastOpen>)> {
        let mut sent = Vec::new();
        if self.gone {
            return sent;
        }
        loop {
            while let Some(transmit) = self.connection.poll_transmit(now) {
                // Only a first SYN, and the first answer to one, have the option.
                let option = self.option.take();
                let mut segment = transmit.segment;
                let end = transmit.offset + u64::from(segment.payload_len);
                let syn = segment.flags.contains(Flags::SYN);
                if segment.payload_len > 0 && !syn && self.held.is_write_end(end) {
                    segment.flags = segment.flags.with(Flags::PSH);
                }
                sent.push((segment, transmit.ecn, option));
            }
            while let Some(event) = self.connection.poll_event() {
                self.on_event(now, event);
            }
            if !self.feed(now) {
                break;
            }
        }
        let open = matches!(self.connection.state(), State::Established | State::CloseWait);
        let written = self.connection.unacknowledged().get() > 0;
        self.busy.set(now, open && written);
        let sent_all = self.connection.unsent().get() == 0;
        self.starved.set(now, open && self.is_full && sent_all);
        if self.is_full && self.connection.has_send_space() {
            self.is_full = false;
            self.wakes += 1;
        }
        sent
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Failed(error) => {
                self.failure = Some(error);
                self.wakes += 1;
            }
            Event::Connected => {
                self.connected = true;
                self.received_at = now;
                self.wakes += 1;
            }
            Event::Readable => self.wakes += 1,
            Event::Finished => {
                self.finished = true;
                self.wakes += 1;
            }
            _ => {}
        }
    }

    /// A segment arrives. Returns whether its data is to be stored.
    pub(super) fn receive(&mut self, now: Instant, segment: &Segment, ecn: Ecn) -> bool {
        let stored = self.connection.handle_segment(now, segment, ecn).is_some();
        if stored {
            self.received_at = now;
        }
        self.release(now);
        stored
    }

    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let own = self.connection.next_timeout(now);
        let timeout = Instant::earlier(own, self.held.deadline());
        if self.gone { None } else { timeout }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.gone {
            return;
        }
        if self.connection.next_timeout(now).is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
        }
        if self.held.deadline().is_some_and(|at| at <= now) {
            self.release_all();
        }
    }

    /// The state that a host reports: a connection that data on a SYN has opened is not established.
    pub(super) fn state(&self) -> State {
        match self.connection.state() {
            State::Established if self.connection.is_unconfirmed() => State::SynReceived,
            state => state,
        }
    }

    /// The application closes the connection's descriptor.
    pub(super) fn close(&mut self, now: Instant) {
        self.orphaned = true;
        if self.connection.state() == State::SynSent {
            // RFC 9293 §3.10.4: nothing is sent.
            self.gone = true;
        } else if self.connection.readable() > 0 {
            // RFC 2525 §2.17: the peer learns that its data was not read.
            self.connection.abort(now);
        } else {
            self.finish(now);
        }
    }

    pub(super) fn busy_micros(&self, now: Instant) -> i64 {
        self.busy.micros(now)
    }

    pub(super) fn since_received(&self, now: Instant) -> Duration {
        now.saturating_since(self.received_at)
    }
}

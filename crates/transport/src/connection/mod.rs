//! The connection: handshake, transfer, close (RFC 9293), as a state machine without a clock.

mod emit;
mod error;
mod fast_open;
mod input;
mod opening;
mod quick_start;

use std::collections::VecDeque;

use weir_cc::{CongestionController, Fixed};
use weir_units::{Bytes, Duration, Echo, Ecn, Instant, Rate, Rng};

pub use self::error::ConnectionError;
use crate::receiver::{Receiver, window_scale};
use crate::segment::{Segment, SeqNum};
use crate::sender::Sender;
use crate::stats::{Flight, Snapshot, Stats};
use crate::{Config, HostProfile, PathEvent, RouteState, on_tick};

/// One end of a connection.
///
/// After every call that takes `now`, drain [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event), then ask [`next_timeout`](Self::next_timeout).
///
/// ```
/// use weir_transport::{Config, Connection, Flags};
/// use weir_units::{Duration, Instant, stream};
///
/// let now = Instant::from_nanos(1);
/// let mut client = Connection::connect(&Config::default(), now, stream(1, "client"));
/// let syn = client.poll_transmit(now).expect("a SYN").segment;
/// assert_eq!(syn.flags, Flags::SYN);
/// assert_eq!(syn.options.mss, Some(1_448));
///
/// // Without an answer the SYN is repeated after a second, on a tick of Linux's timer wheel.
/// let retry = client.next_timeout(now).expect("a timer runs");
/// let second = Duration::from_secs(1);
/// assert!(retry > now + second && retry < now + second + Duration::from_millis(64));
/// client.handle_timeout(retry);
/// assert_eq!(client.poll_transmit(retry).map(|t| t.segment.seq), Some(syn.seq));
/// ```
#[derive(Debug)]
pub struct Connection {
    config: Config,
    state: State,
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    /// The requested rate.
    quick_start: Option<quick_start::Request>,
    /// Initial sequence numbers: ours and the peer's.
    iss: SeqNum,
    irs: SeqNum,
    /// Agreed upon in the handshake.
    terms: Agreed,
    /// The peer's newest timestamp (RFC 7323 §4.3), and the offset acknowledged last.
    ts_recent: u32,
    ts_recent_at: Instant,
    last_ack_sent: u64,
    challenges: Challenges,
    time_wait_until: Option<Instant>,
    reset_due: Option<Segment>,
    /// [`Event::Readable`] comes before all of `events`: where nothing else happens, which is nearly
    /// always, the list stays empty.
    readable_first: bool,
    events: VecDeque<Event>,
    stats: Stats,
    rtt_sample: Option<Duration>,
}

/// The states of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has sent and received a SYN.
    SynReceived,
    /// Transfers data.
    Established,
    /// Has closed, and its FIN is not acknowledged.
    FinWait1,
    /// Has closed, and its FIN is acknowledged.
    FinWait2,
    /// The peer has closed.
    CloseWait,
    /// Both have closed at once, and the FIN is not acknowledged.
    Closing,
    /// The peer closed first, and the FIN is not acknowledged.
    LastAck,
    /// Both have closed; answers late segments.
    TimeWait,
    /// Over.
    Closed,
}

/// The handshake's own retransmissions.
#[derive(Debug, Default)]
struct Handshake {
    started_at: Option<Instant>,
    sent_at: Option<Instant>,
    retries: u32,
    /// A SYN or SYN-ACK must go out.
    due: bool,
    /// The answer to a SYN-ACK must go out alone.
    confirmation_due: bool,
    early: fast_open::Early,
    /// Bytes that our SYN carries, if it was to carry any.
    syn_data: Option<u32>,
    data_accepted: bool,
}

/// Acknowledgements that answer what may be forged: RFC 5961 §7 bounds them, lest an attacker make the
/// ends talk.
#[derive(Debug, Default)]
struct Challenges {
    since: Instant,
    sent: u32,
}

impl Challenges {
    /// Whether one more may be sent now.
    fn admit(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) >= CHALLENGE_INTERVAL {
            *self = Self { since: now, sent: 0 };
        }
        self.sent += 1;
        self.sent <= CHALLENGES
    }
}

/// RFC 5961 §7's example.
const CHALLENGES: u32 = 10;
const CHALLENGE_INTERVAL: Duration = Duration::from_secs(5);

/// What both sides offered.
#[derive(Clone, Copy, Debug, Default)]
struct Agreed {
    timestamps: bool,
    sack: bool,
    ecn: bool,
    /// Both sides understand feedback: what the handshake returned of it, or is to return.
    feedback: Option<Echo>,
    /// The answer to a request for a rate.
    approval: Option<Echo>,
    peer_mss: u32,
    /// Shifts for the windows that we send and receive (RFC 7323 §2).
    our_scale: u8,
    peer_scale: u8,
    /// Both sides offer the option, even if neither needs to shift.
    scaling: bool,
}

/// What a handshake has agreed upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// Timestamps (RFC 7323 §3).
    pub timestamps: bool,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Scaled windows (RFC 7323 §2).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
}

/// A segment that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The header; its payload is for the driver to supply.
    pub segment: Segment,
    /// Where the payload lies in the stream; of an acknowledgement alone, what of the peer's stream it
    /// expects next.
    pub offset: u64,
    /// The ECN field of its packet.
    pub ecn: Ecn,
}

/// The part of a segment's payload that is new.
pub use crate::reassembly::Stored as Arrived;

/// Something that the application should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done.
    Connected,
    /// More bytes are readable.
    Readable,
    /// The peer will send no more, and everything it sent is readable.
    Finished,
    /// Everything written, and the FIN, was acknowledged.
    Flushed,
    /// Both sides are done, and nothing is remembered any more.
    Closed,
    /// The route-failure policy entered this state.
    Route(RouteState),
    /// The connection broke.
    Failed(ConnectionError),
}

impl Connection {
    /// Opens a connection: its SYN comes out of [`poll_transmit`](Self::poll_transmit).
    ///
    /// If the configured controller cannot be built, the connection is closed from the start, and
    /// [`poll_event`](Self::poll_event) returns [`Event::Failed`]. The same holds for [`listen`](Self::listen).
    pub fn connect(config: &Config, now: Instant, rng: Rng) -> Self {
        let mut connection = Self::new(config, rng, State::SynSent);
        connection.handshake.started_at = Some(now);
        connection.handshake.due = !connection.is_closed();
        connection
    }

    /// Waits for a peer to open a connection.
    pub fn listen(config: &Config, rng: Rng) -> Self {
        Self::new(config, rng, State::Listen)
    }

    fn new(config: &Config, mut rng: Rng, state: State) -> Self {
        let mut config = config.clone();
        config.sack &= config.stack.recovery.reads_sack();
        let mss = Bytes(u64::from(config.mss));
        let controller = config.stack.controller.build(mss, config.initial_window());
        let (state, controller, events) = match controller {
            Ok(controller) => (state, controller, VecDeque::new()),
            Err(error) => {
                let unbounded: Box<dyn CongestionController> = Box::new(Fixed::new(None, mss));
                let failed = Event::Failed(ConnectionError::Controller(error));
                (State::Closed, unbounded, VecDeque::from([failed]))
            }
        };
        Self {
            state,
            iss: SeqNum(rng.next_u32()),
            quick_start: quick_start::Request::new(&config, &mut rng),
            irs: SeqNum::default(),
            sender: Sender::new(&config, controller, rng),
            receiver: Receiver::new(&config),
            handshake: Handshake::default(),
            terms: Agreed { our_scale: window_scale(&config), ..Agreed::default() },
            ts_recent: 0,
            ts_recent_at: Instant::ZERO,
            challenges: Challenges::default(),
            last_ack_sent: 0,
            time_wait_until: None,
            reset_due: None,
            readable_first: false,
            events,
            stats: Stats::default(),
            rtt_sample: None,
            config,
        }
    }

    /// The application makes `bytes` more available to send.
    pub fn write(&mut self, _now: Instant, bytes: u64) {
        if self.may_write() {
            self.sender.write(bytes);
        }
    }

    /// As [`write`](Self::write), but only as much as fits the send buffer now. Returns how much that is.
    pub fn write_fitting(&mut self, _now: Instant, bytes: u64) -> u64 {
        if self.may_write() { self.sender.write_fitting(bytes) } else { 0 }
    }

    /// Changes the size of the send buffer ([`Config::send_buffer`]), which then no longer grows.
    pub fn set_send_buffer(&mut self, size: Bytes) {
        self.sender.set_send_buffer(size, self.config.send_overhead);
    }

    /// Takes back what was written and never sent, as if the application had written only as much
    /// as could be sent at once. Without effect after [`close`](Self::close).
    pub fn withdraw(&mut self, _now: Instant) {
        self.sender.withdraw();
    }

    /// No more will be written: a FIN follows what was.
    pub fn close(&mut self, now: Instant) {
        match self.state {
            State::Listen => self.end(now),
            State::SynSent | State::SynReceived | State::Established => {
                self.sender.finish();
                if self.state == State::Established {
                    self.state = State::FinWait1;
                }
            }
            State::CloseWait => {
                self.sender.finish();
                self.state = State::LastAck;
            }
            _ => {}
        }
    }

    /// Aborts the connection with a reset.
    pub fn abort(&mut self, now: Instant) {
        if !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait) {
            self.reset_due = Some(self.reset_segment(now));
        }
        if !self.is_closed() {
            self.end(now);
        }
    }

    /// Ends the connection as a reset of the peer does: it has none any more, as something else than a segment
    /// has shown.
    pub fn handle_reset(&mut self, now: Instant) {
        match self.state {
            State::Closed => {}
            State::TimeWait => self.end(now),
            _ => self.fail(now, ConnectionError::Reset),
        }
    }

    /// Consumes up to `max` bytes that arrived in order; returns how many there were.
    pub fn read(&mut self, now: Instant, max: u64) -> u64 {
        self.receiver.read(now, max)
    }

    /// Offers from now on a window of `bytes`, at most what `recv_buffer` allows. It opens at once,
    /// and no longer grows by itself; it closes as the peer fills it, for nothing that was offered is
    /// taken back (RFC 9293 §3.8.6.2.1).
    pub fn set_recv_window(&mut self, bytes: Bytes) {
        self.receiver.set_window(bytes.get());
    }

    /// Switches Nagle's rule on or off ([`Config::nagle`]).
    pub fn set_nagle(&mut self, on: bool) {
        self.sender.set_nagle(on);
    }

    /// Sets the time without progress after which the connection fails ([`Config::max_wait`]).
    pub fn set_max_wait(&mut self, wait: Option<Duration>) {
        self.config.max_wait = wait;
    }

    /// Sets how often a SYN is sent again before the connection fails ([`Config::max_syn_retransmits`]).
    pub fn set_max_syn_retransmits(&mut self, most: u32) {
        self.config.max_syn_retransmits = Some(most);
    }

    /// Bytes that arrived in order and were not consumed.
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// The network says something about the path. Notices of its failure and repair have no effect before
    /// the handshake is done and after the connection's end.
    pub fn handle_path_event(&mut self, now: Instant, event: PathEvent) {
        let transfers = self.is_synchronised() && !self.is_finished();
        if transfers || matches!(event, PathEvent::Hops(_)) {
            if let PathEvent::Hops(hops) = event {
                self.receiver.on_hops(hops);
            }
            self.sender.on_path_event(now, event, &mut self.stats);
            self.report_route_states();
        }
    }

    /// Deadlines may have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.receiver.on_timeout(now);
        match self.state {
            // As in Linux, nothing but the SYN is repeated until it is acknowledged (`tcp_fastopen_synack_timer`).
            state if self.is_unconfirmed() && state != State::Closed => self.handshake_timeout(now),
            State::SynSent | State::SynReceived => self.handshake_timeout(now),
            State::TimeWait => {
                if self.time_wait_until.is_some_and(|at| at <= now) {
                    self.end(now);
                }
            }
            State::Listen | State::Closed => {}
            _ => {
                self.sender.on_timeout(now, &mut self.stats);
                self.report_route_states();
                self.give_up_if_fruitless(now);
            }
        }
    }

    /// The earliest deadline; pass it to [`handle_timeout`](Self::handle_timeout).
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let machine = match self.state {
            state if self.is_unconfirmed() && state != State::Closed => self.handshake_deadline(),
            State::SynSent | State::SynReceived => self.handshake_deadline(),
            State::TimeWait => self.time_wait_until,
            State::Listen | State::Closed => None,
            _ => Instant::earlier(self.sender.next_timeout(now), self.patience_ends()),
        };
        let ack = if self.state == State::Closed { None } else { self.receiver.ack_deadline() };
        Instant::earlier(machine, ack)
    }

    /// The next event, oldest first.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.readable_first) {
            return Some(Event::Readable);
        }
        self.events.pop_front()
    }

    /// The newest RTT sample since this was last asked.
    pub fn poll_rtt_sample(&mut self) -> Option<Duration> {
        self.rtt_sample.take()
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the handshake is done, whatever came after it.
    pub fn is_synchronised(&self) -> bool {
        !matches!(self.state, State::Listen | State::SynSent | State::SynReceived)
    }

    /// Whether the connection is over: closed, failed or aborted.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether both sides have said and heard all; only TIME-WAIT may remain.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// What was written and not yet acknowledged.
    pub fn unacknowledged(&self) -> Bytes {
        Bytes(self.sender.written().saturating_sub(self.sender.una()))
    }

    /// What was written and not yet sent.
    pub fn unsent(&self) -> Bytes {
        Bytes(self.sender.written().saturating_sub(self.sender.nxt()))
    }

    /// Whether the send buffer has enough space to wake a writer who waits for it: a third of it
    /// (`sk_stream_is_writeable`).
    pub fn has_send_space(&self) -> bool {
        self.sender.has_space()
    }

    /// What the handshake has agreed upon.
    pub fn negotiated(&self) -> Negotiated {
        Negotiated {
            timestamps: self.terms.timestamps,
            sack: self.terms.sack,
            window_scaling: self.terms.scaling,
            ecn: self.terms.ecn,
        }
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Accounts the time up to now in the counters of what held the sender back.
    pub fn account_time(&mut self, now: Instant) {
        self.sender.book(now, &mut self.stats);
    }

    /// The state of the sending side.
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot()
    }

    /// The controller's internal variables
    /// ([`CongestionController::variables`](weir_cc::CongestionController::variables)).
    pub fn variables(&self) -> Vec<weir_cc::Variable> {
        self.sender.variables()
    }

    /// The part of the snapshot that changes with every segment.
    #[inline]
    pub fn flight(&self) -> Flight {
        self.sender.flight()
    }

    /// The rate at which data was delivered lately, by the newest sample that the application did not
    /// bound.
    pub fn delivery_rate(&self) -> Option<Rate> {
        self.sender.delivery_rate()
    }

    /// The connection's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether to offer and accept ECN: as configured, else if the controller needs it.
    fn offers_ecn(&self) -> bool {
        self.config.ecn.unwrap_or(self.sender.needs_ecn())
    }

    fn may_write(&self) -> bool {
        matches!(
            self.state,
            State::Listen
                | State::SynSent
                | State::SynReceived
                | State::Established
                | State::CloseWait
        )
    }

    fn handshake_deadline(&self) -> Option<Instant> {
        let rto = self.config.fixed_rto.unwrap_or_else(|| {
            let (patient, longest) = match self.config.host_profile {
                HostProfile::Kernel => (0, Duration::MAX),
                HostProfile::UserSpace => (LINEAR_SYN_TIMEOUTS, LONGEST_SYN_TIMEOUT),
            };
            let doublings = self.handshake.retries.saturating_sub(patient).min(16);
            let initial = self.config.initial_rto;
            initial.saturating_mul(1 << doublings).min(longest.max(initial))
        });
        let (sent_at, wait) = (self.handshake.sent_at?, rto.min(self.config.max_rto));
        let retry = if self.config.fires_on_ticks() {
            on_tick(sent_at, wait)
        } else {
            sent_at.saturating_add(wait)
        };
        let patience = self.handshake.started_at.zip(self.config.max_wait);
        let end = patience.map_or(Instant::MAX, |(at, wait)| at.saturating_add(wait));
        Some(retry.min(end))
    }

    fn handshake_timeout(&mut self, now: Instant) {
        if self.handshake_deadline().is_none_or(|at| at > now) {
            return;
        }
        let since = self.handshake.started_at.unwrap_or(now);
        let waited = now.saturating_since(since);
        let impatient = self.config.max_wait.is_some_and(|max| waited >= max);
        let most = self.config.max_syn_retransmits.unwrap_or(self.config.max_retransmits);
        if self.handshake.retries >= most || impatient {
            let retransmits = self.handshake.retries;
            return self.fail(now, ConnectionError::NoAnswer { retransmits, waited });
        }
        self.handshake.retries += 1;
        self.handshake.due = true;
        self.stats.timeouts += 1;
    }

    /// When `max_wait` is over, if anything waits for an answer.
    fn patience_ends(&self) -> Option<Instant> {
        let wait = self.config.max_wait?;
        Some(self.sender.stalled_since()?.saturating_add(wait))
    }

    fn give_up_if_fruitless(&mut self, now: Instant) {
        let retransmits = self.sender.fruitless();
        let impatient = self.patience_ends().is_some_and(|at| at <= now);
        if retransmits > self.config.max_retransmits || impatient {
            let waited = now.saturating_since(self.sender.stalled_since().unwrap_or(now));
            self.reset_due = Some(self.reset_segment(now));
            let retransmits = retransmits.min(self.config.max_retransmits);
            self.fail(now, ConnectionError::TimedOut { retransmits, waited });
        }
    }

    fn report_route_states(&mut self) {
        while let Some(state) = self.sender.poll_route_state() {
            self.events.push_back(Event::Route(state));
        }
    }

    fn fail(&mut self, now: Instant, error: ConnectionError) {
        self.stop(now);
        self.events.push_back(Event::Failed(error));
    }

    fn end(&mut self, now: Instant) {
        self.stop(now);
        self.events.push_back(Event::Closed);
    }

    fn stop(&mut self, now: Instant) {
        self.state = State::Closed;
        self.time_wait_until = None;
        self.handshake.due = false;
        self.sender.stop(now, &mut self.stats);
    }
}

/// How many timeouts of a handshake are of the same length before they double: as many as in Linux since
/// 6.5 (`tcp_syn_linear_timeouts`). Where much is lost, doubling at once makes the handshake the
/// longest part of a short transfer.
const LINEAR_SYN_TIMEOUTS: u32 = 4;
/// In user space: as often as a host may begin to ask (RFC 6298 §2.1) it may go on to. By doubling alone the last
/// third of a patience of 10 or 30 s would pass without a SYN, however good the path is by then.
const LONGEST_SYN_TIMEOUT: Duration = Duration::from_secs(1);

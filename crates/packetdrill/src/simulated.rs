//! Weir's transport as an endpoint, in virtual time, with the socket interface of a kernel.
//!
//! Differences between the two sides of the translation:
//!
//! * The MSS option counts the payload without the timestamps option in our transport, with it in TCP (RFC 6691).
//! * Linux estimates how long the peer's segments are; ours expects segments as long as its own, which here
//!   are those of the peer's SYN.
//! * A closed socket has no reader: new data is answered with a reset (RFC 2525 §2.17), as in Linux.

mod sockets;

use std::collections::{BTreeMap, VecDeque};

use weir_cc::RecoveryState;
use weir_transport::{Config, Connection, ConnectionError, Event, Flags, Segment, Snapshot, State};
use weir_units::{Bytes, Duration, Ecn, Instant, stream};

use self::sockets::Socket;
use crate::endpoint::{Endpoint, EndpointError, Returned, Sent};
use crate::info::{INFINITE_SSTHRESH, Info, Name};
use crate::script::{Call, Settings, Sysctl};

/// A connection of Weir's transport under the control of a script.
#[derive(Debug)]
pub struct Simulated {
    config: Config,
    accepts_ecn: bool,
    offers_ecn: bool,
    now: Instant,
    sockets: BTreeMap<i32, Socket>,
    connection: Option<Connection>,
    failure: Option<ConnectionError>,
    /// The application has closed the connection's descriptor.
    orphaned: bool,
    sent: VecDeque<Sent>,
}

impl Simulated {
    /// A host without sockets, whose TCP has these settings.
    pub fn new(settings: &Settings) -> Self {
        let ecn = settings.sysctl(Sysctl::Ecn);
        let config = Config::new(settings.stack.clone())
            .with_mss(MSS)
            .with_recv_buffer(RECV_BUFFER)
            .with_sack(settings.sysctl(Sysctl::Sack) == 1)
            .with_timestamps(settings.sysctl(Sysctl::Timestamps) == 1)
            .with_slow_start_after_idle(settings.sysctl(Sysctl::SlowStartAfterIdle) == 1);
        Self {
            config,
            accepts_ecn: ecn > 0,
            offers_ecn: ecn == 1,
            now: START,
            sockets: BTreeMap::new(),
            connection: None,
            failure: None,
            orphaned: false,
            sent: VecDeque::new(),
        }
    }

    /// The configuration of a connection; ECN also if the controller needs it.
    fn config(&self, ecn: bool) -> Config {
        self.config.clone().with_ecn(ecn.then_some(true))
    }

    /// Collects what the connection sends and reports.
    fn settle(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(transmit) = connection.poll_transmit(self.now) {
            let mut segment = transmit.segment;
            if let Some(mss) = &mut segment.options.mss {
                // What this host announces does not depend on the peer.
                *mss = u16::try_from(self.config.mss).unwrap_or(u16::MAX);
            }
            let at = self.now.saturating_since(START);
            self.sent.push_back(Sent { at, segment, ecn: transmit.ecn });
        }
        while let Some(event) = connection.poll_event() {
            if let Event::Failed(error) = event {
                self.failure = Some(error);
            }
        }
    }

    /// A host answers a segment of no connection with a reset (RFC 9293 §3.10.7.1).
    fn refuse(&mut self, segment: &Segment) {
        let reset = if segment.flags.contains(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            let ack = segment.seq + segment.seq_len();
            Segment { ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
        };
        if !segment.flags.contains(Flags::RST) {
            let at = self.now.saturating_since(START);
            self.sent.push_back(Sent { at, segment: reset, ecn: Ecn::NotEct });
        }
    }

    fn read(&mut self, bytes: u32) -> Returned {
        let Some(connection) = &mut self.connection else { return Returned::Error("ENOTCONN") };
        if connection.readable() > 0 {
            return Returned::Value(connection.read(self.now, u64::from(bytes)) as i64);
        }
        let ended = matches!(
            connection.state(),
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed
        );
        match self.failure.take() {
            Some(error) => Returned::Error(errno(&error)),
            None if ended => Returned::Value(0),
            None => Returned::Blocks("EAGAIN"),
        }
    }

    fn write(&mut self, bytes: u32) -> Returned {
        if let Some(error) = self.failure.take() {
            return Returned::Error(errno(&error));
        }
        let Some(connection) = &mut self.connection else { return Returned::Error("ENOTCONN") };
        match connection.state() {
            State::Established | State::CloseWait => {
                connection.write(self.now, u64::from(bytes));
                Returned::Value(i64::from(bytes))
            }
            State::Listen => Returned::Error("ENOTCONN"),
            State::SynSent | State::SynReceived => Returned::Blocks("EAGAIN"),
            _ => Returned::Error("EPIPE"),
        }
    }

    /// The application closes the connection's descriptor.
    fn close(&mut self) {
        self.orphaned = true;
        let Some(connection) = &mut self.connection else { return };
        if connection.state() == State::SynSent {
            // RFC 9293 §3.10.4: nothing was written, so nothing is sent.
            self.connection = None;
        } else if connection.readable() > 0 {
            // RFC 2525 §2.17: the peer learns that its data was not read.
            connection.abort(self.now);
        } else {
            connection.close(self.now);
        }
    }
}

impl Endpoint for Simulated {
    fn now(&self) -> Duration {
        self.now.saturating_since(START)
    }

    fn advance(&mut self, until: Duration) -> Result<(), EndpointError> {
        let until = START + until;
        for _ in 0..MAX_STEPS {
            let timeout = self.connection.as_ref().and_then(|c| c.next_timeout(self.now));
            let Some(at) = timeout.filter(|at| *at <= until) else {
                self.now = self.now.max(until);
                return Ok(());
            };
            self.now = self.now.max(at);
            if let Some(connection) = &mut self.connection {
                connection.handle_timeout(self.now);
            }
            self.settle();
            if !self.sent.is_empty() || self.failure.is_some() {
                return Ok(());
            }
        }
        Err(EndpointError(format!("the connection's timers expired {MAX_STEPS} times in a row")))
    }

    fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    fn inject(&mut self, segment: &Segment, ecn: Ecn) -> Result<(), EndpointError> {
        let mut segment = *segment;
        if let Some(mss) = &mut segment.options.mss
            && segment.options.timestamps.is_some()
            && self.config.timestamps
        {
            *mss = mss.saturating_sub(TIMESTAMPS_LEN);
        }
        let is_open = self.connection.is_none() && segment.flags.contains(Flags::SYN);
        if is_open && self.sockets.values().any(|socket| socket.listening) {
            let mss = segment.options.mss.map_or(DEFAULT_MSS, u32::from).min(self.config.mss);
            let config = self.config(self.accepts_ecn).with_mss(mss);
            self.connection = Some(Connection::listen(&config, stream(1, "packetdrill")));
        }
        let now = self.now;
        let Some(connection) = &mut self.connection else {
            self.refuse(&segment);
            return Ok(());
        };
        let stored = connection.handle_segment(now, &segment, ecn).is_some();
        if self.orphaned && stored {
            self.connection = None;
            self.refuse(&segment);
        }
        self.settle();
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<Returned, EndpointError> {
        let returned = self.dispatch(call)?;
        self.settle();
        Ok(returned)
    }

    fn info(&mut self) -> Result<Info, EndpointError> {
        let now = self.now;
        let Some(connection) = &mut self.connection else {
            return Err(EndpointError("there is no connection".to_owned()));
        };
        connection.account_time(now);
        Ok(info(connection))
    }
}

/// The fields of `struct tcp_info`. Linux counts in segments.
fn info(connection: &Connection) -> Info {
    let (snapshot, stats) = (connection.snapshot(), connection.stats());
    let segments = |bytes: Bytes| bytes.get().div_ceil(snapshot.mss.get()) as i64;
    let micros = |time: Option<Duration>| time.unwrap_or_default().as_micros() as i64;
    let Snapshot { cwnd, ssthresh, .. } = snapshot;
    let mss = snapshot.mss.get();
    let mut info = Info::default();
    info.set(Name::State, state(connection.state()));
    info.set(Name::CaState, ca_state(snapshot.state));
    info.set(Name::SndCwnd, (cwnd.get() / mss) as i64);
    let threshold = ssthresh.map(|at| (at.get() / mss) as i64);
    info.set(Name::SndSsthresh, threshold.unwrap_or(INFINITE_SSTHRESH));
    info.set(Name::Unacked, segments(snapshot.unacked));
    info.set(Name::Sacked, segments(snapshot.sacked));
    info.set(Name::Lost, segments(snapshot.lost));
    info.set(Name::Retrans, segments(snapshot.resent));
    info.set(Name::TotalRetrans, stats.retransmits as i64);
    info.set(Name::DsackDups, stats.retransmits_spurious as i64);
    info.set(Name::SndMss, mss as i64);
    info.set(Name::Rtt, micros(snapshot.srtt));
    info.set(Name::Rttvar, micros(snapshot.rttvar));
    info.set(Name::Rto, micros(Some(snapshot.rto)));
    info.set(Name::MinRtt, micros(snapshot.min_rtt));
    info.set(Name::BytesAcked, stats.acked_bytes as i64);
    info.set(Name::RwndLimited, stats.rwnd_limited.as_micros() as i64);
    info
}

/// Linux's number of a state (`linux/tcp_states.h`).
const fn state(state: State) -> i64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

const fn ca_state(state: RecoveryState) -> i64 {
    match state {
        RecoveryState::Open => 0,
        RecoveryState::Disorder => 1,
        RecoveryState::Cwr => 2,
        RecoveryState::Recovery => 3,
        RecoveryState::Loss => 4,
    }
}

fn errno(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::Refused => "ECONNREFUSED",
        ConnectionError::Reset => "ECONNRESET",
        _ => "ETIMEDOUT",
    }
}

/// When scripts start: as late as a guest's run after its boot, so that timestamps are not zero.
const START: Instant = Instant::from_nanos(10_000_000_000);
/// Ethernet's, without the headers of IP and TCP.
const MSS: u32 = 1_460;
/// What a SYN without the option means (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;
/// With padding.
const TIMESTAMPS_LEN: u16 = 12;
/// The largest receive buffer of Linux (`net.ipv4.tcp_rmem`).
const RECV_BUFFER: Bytes = Bytes(6 << 20);
/// More expiries without anything sent are an endless loop.
const MAX_STEPS: u32 = 1_000_000;

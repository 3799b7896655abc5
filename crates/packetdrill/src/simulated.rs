//! Weir's transport as an endpoint, in virtual time, with the socket interface of a kernel.
//!
//! Differences between the two sides of the translation:
//!
//! * The MSS option counts the payload without the timestamps option in our transport, with it in TCP (RFC 6691).
//! * Linux estimates how long the peer's segments are; ours expects them to be as long as those it may send.
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
    syn_retries: u32,
    syn_ack_retries: u32,
    accepts_ecn: bool,
    offers_ecn: bool,
    now: Instant,
    sockets: BTreeMap<i32, Socket>,
    connection: Option<Connection>,
    failure: Option<ConnectionError>,
    /// The application has closed the connection's descriptor.
    orphaned: bool,
    /// It has shut the reading side down.
    reads_no_more: bool,
    sent: VecDeque<Sent>,
}

impl Simulated {
    /// A host without sockets, whose TCP has these settings.
    pub fn new(settings: &Settings) -> Self {
        let ecn = settings.sysctl(Sysctl::Ecn);
        let config = Config::new(settings.stack.clone())
            .with_mss(MSS)
            .with_nagle(true)
            .with_max_retransmits(settings.sysctl(Sysctl::Retries) as u32)
            .with_sack(settings.sysctl(Sysctl::Sack) == 1)
            .with_timestamps(settings.sysctl(Sysctl::Timestamps) == 1)
            .with_slow_start_after_idle(settings.sysctl(Sysctl::SlowStartAfterIdle) == 1);
        let config = with_receive_memory(config, settings.receive_memory);
        Self {
            config,
            syn_ack_retries: settings.sysctl(Sysctl::SynAckRetries) as u32,
            syn_retries: settings.sysctl(Sysctl::SynRetries) as u32,
            accepts_ecn: ecn > 0,
            offers_ecn: ecn == 1,
            now: START,
            sockets: BTreeMap::new(),
            connection: None,
            failure: None,
            orphaned: false,
            reads_no_more: false,
            sent: VecDeque::new(),
        }
    }

    /// The configuration of a connection; ECN also if the controller needs it.
    fn config(&self, ecn: bool, syn_retries: u32) -> Config {
        let config = self.config.clone().with_ecn(ecn.then_some(true));
        config.with_max_syn_retransmits(Some(syn_retries))
    }

    /// Collects what the connection sends and reports.
    fn settle(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(transmit) = connection.poll_transmit(self.now) {
            let at = self.now.saturating_since(START);
            self.sent.push_back(Sent { at, segment: transmit.segment, ecn: transmit.ecn });
        }
        while let Some(event) = connection.poll_event() {
            if let Event::Failed(error) = event {
                self.failure = Some(error);
            }
        }
    }

    fn is_listening(&self) -> bool {
        self.sockets.values().any(|socket| socket.listening)
    }

    /// A host answers a segment of no connection with a reset (RFC 9293 §3.10.7.1); one that listens drops what
    /// neither opens nor acknowledges anything (§3.10.7.2).
    fn refuse(&mut self, segment: &Segment) {
        if self.is_listening() && !segment.flags.contains(Flags::ACK) {
            return;
        }
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
            None if ended || self.reads_no_more => Returned::Value(0),
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
            && *mss > 0
        {
            *mss = mss.saturating_sub(TIMESTAMPS_LEN).max(1);
        }
        let others = [Flags::ACK, Flags::RST, Flags::FIN];
        let opens = segment.flags.contains(Flags::SYN)
            && !others.iter().any(|flag| segment.flags.contains(*flag));
        if self.connection.is_none() && opens && self.is_listening() {
            let config = self.config(self.accepts_ecn, self.syn_ack_retries);
            self.connection = Some(Connection::listen(&config, stream(1, "packetdrill")));
        }
        let now = self.now;
        // A connection that has ended is no more, except that its descriptor reports how.
        let open = self.connection.as_mut().filter(|connection| !connection.is_closed());
        let Some(connection) = open else {
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

/// The window's scale is that of the largest buffer, and the first window half of the first one, in whole
/// segments and at most 64 KB (`tcp_select_initial_window`).
fn with_receive_memory(config: Config, memory: Option<[u64; 3]>) -> Config {
    let [_, first, largest] = memory.unwrap_or(RECEIVE_MEMORY);
    let config = config.with_recv_buffer(Bytes(largest));
    let (half, mss) = (first / 2, u64::from(MSS));
    if half >= u64::from(u16::MAX) {
        return config;
    }
    let window = if half > mss { half - half % mss } else { half.max(1) };
    config.with_initial_recv_window(Some(Bytes(window)))
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
/// With padding.
const TIMESTAMPS_LEN: u16 = 12;
/// Linux's default (`net.ipv4.tcp_rmem`).
const RECEIVE_MEMORY: [u64; 3] = [4_096, 131_072, 6 << 20];
/// More expiries without anything sent are an endless loop.
const MAX_STEPS: u32 = 1_000_000;

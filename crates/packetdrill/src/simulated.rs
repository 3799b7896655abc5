//! Weir's transport as an endpoint, in virtual time, with the socket interface of a kernel.
//!
//! Differences between the two sides of the translation:
//!
//! * The MSS option counts the payload without the timestamps option in our transport, with it in TCP (RFC 6691).
//! * Linux estimates how long the peer's segments are; ours expects them to be as long as those it may send.
//! * A closed socket has no reader: new data is answered with a reset (RFC 2525 §2.17), as in Linux.

mod early;
mod flow;
mod options;
mod ready;
mod report;
mod socket;
mod sockets;

use std::collections::{BTreeMap, VecDeque};

use weir_transport::{Config, Connection, DelayedAck, Flags, Segment, State};
use weir_units::{Bytes, Duration, Ecn, Instant, stream};

use self::early::{Cache, Decision};
use self::flow::Flow;
use self::ready::Epoll;
use self::socket::Socket;
use crate::endpoint::{Endpoint, EndpointError, Received, Returned, Sent};
use crate::info::Info;
use crate::script::{Call, Settings, Sysctl};

/// A host with Weir's transport under the control of a script.
#[derive(Debug)]
pub struct Simulated {
    settings: Settings,
    now: Instant,
    sockets: BTreeMap<i32, Socket>,
    epolls: BTreeMap<i32, Epoll>,
    /// All connections of the script; packets are those of the newest.
    flows: Vec<Flow>,
    /// A socket has begun to listen since the newest connection was opened: a SYN opens another one.
    awaits_syn: bool,
    /// What is remembered of the peer.
    cache: Cache,
    /// When a call that waits for events gives up.
    deadline: Option<Instant>,
    sent: VecDeque<Sent>,
}

impl Simulated {
    /// A host without sockets, whose TCP has these settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            now: START,
            sockets: BTreeMap::new(),
            epolls: BTreeMap::new(),
            flows: Vec::new(),
            awaits_syn: false,
            cache: Cache::default(),
            deadline: None,
            sent: VecDeque::new(),
        }
    }

    /// The configuration of a new socket.
    fn base_config(&self) -> Config {
        let settings = &self.settings;
        let on = |sysctl| settings.sysctl(sysctl) == 1;
        let config = Config::new(settings.stack.clone())
            .with_mss(self.mss())
            .with_nagle(true)
            .with_max_retransmits(settings.sysctl(Sysctl::Retries) as u32)
            .with_max_syn_retransmits(Some(settings.sysctl(Sysctl::SynRetries) as u32))
            .with_sack(on(Sysctl::Sack))
            .with_timestamps(on(Sysctl::Timestamps))
            .with_window_scaling(on(Sysctl::WindowScaling))
            .with_pace_window(settings.paces)
            .with_slow_start_after_idle(on(Sysctl::SlowStartAfterIdle));
        let config = match settings.freebsd {
            true => config.with_delayed_ack(Some(DelayedAck::Rfc1122)),
            false => config,
        };
        let config = match settings.send_memory {
            None => config,
            Some([_, first, most]) => {
                config.with_send_buffer(Some(Bytes(first))).with_max_send_buffer(Some(Bytes(most)))
            }
        };
        with_receive_memory(config, settings, self.mss())
    }

    /// The largest payload, without the headers of IP and TCP.
    fn mss(&self) -> u32 {
        let header = if self.settings.ipv6 { IPV6_HEADER } else { IPV4_HEADER };
        u32::from(self.settings.mtu).saturating_sub(header + TCP_HEADER)
    }

    /// The number of the newest connection; 0 if there was none.
    fn newest(&self) -> u32 {
        self.flows.len() as u32
    }

    fn current(&mut self) -> Option<&mut Flow> {
        self.flows.last_mut().filter(|flow| !flow.gone)
    }

    fn is_listening(&self) -> bool {
        self.sockets.values().any(Socket::is_listening)
    }

    /// Whether a segment with these flags is the first of a connection.
    fn opens(&self, flags: Flags) -> bool {
        let others = [Flags::ACK, Flags::RST, Flags::FIN];
        let is_syn = flags.contains(Flags::SYN) && !others.iter().any(|flag| flags.contains(*flag));
        let free = self.awaits_syn || self.flows.last().is_none_or(|flow| flow.gone);
        is_syn && free && self.is_listening()
    }

    /// Collects what the connections send and report.
    fn settle(&mut self) {
        let (now, newest) = (self.now, self.newest());
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let number = index as u32 + 1;
            for (segment, ecn, fast_open) in flow.settle(now) {
                let at = now.saturating_since(START);
                if number == newest {
                    self.sent.push_back(Sent { at, segment, ecn, fast_open, connection: number });
                }
            }
        }
    }

    /// Opens a connection for a SYN to a socket that listens.
    fn accept_syn(&mut self, arriving: &Received) {
        let listener = self.sockets.iter().rev().find(|(_, socket)| socket.is_listening());
        let Some((fd, socket)) = listener else { return };
        let retries = self.settings.sysctl(Sysctl::SynAckRetries) as u32;
        let accepts_ecn = self.settings.sysctl(Sysctl::Ecn) > 0;
        let config = socket.config.clone().with_max_syn_retransmits(Some(retries));
        let config = config.with_ecn(accepts_ecn.then_some(true));
        let mut connection = Connection::listen(&config, stream(1, "packetdrill"));
        let key = socket.fast_open_key.unwrap_or(self.settings.fast_open_key);
        let enabled = socket.takes_early_data;
        let decision = early::decide(&self.settings, enabled, key, arriving);
        let grant = match decision {
            Decision::Open => {
                connection.open_with_syn();
                None
            }
            Decision::Grant(option) => Some(option),
            Decision::Ignore => None,
        };
        let flow = Flow { listener: Some(*fd), option: grant, ..Flow::new(connection, self.now) };
        self.flows.push(flow);
        self.awaits_syn = false;
    }

    /// A host answers a segment of no connection with a reset (RFC 9293 §3.10.7.1); one that listens drops what
    /// neither opens nor acknowledges anything (§3.10.7.2).
    fn refuse(&mut self, segment: &Segment) {
        let acks = segment.flags.contains(Flags::ACK);
        if (self.is_listening() && !acks) || segment.flags.contains(Flags::RST) {
            return;
        }
        let reset = if acks {
            Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
        } else {
            let ack = segment.seq + segment.seq_len();
            Segment { ack, flags: Flags::RST.with(Flags::ACK), ..Segment::default() }
        };
        let (at, connection) = (self.now.saturating_since(START), self.newest());
        let (segment, ecn, fast_open) = (reset, Ecn::NotEct, None);
        self.sent.push_back(Sent { at, segment, ecn, fast_open, connection });
    }
}

impl Endpoint for Simulated {
    fn now(&self) -> Duration {
        self.now.saturating_since(START)
    }

    fn advance(&mut self, until: Duration) -> Result<(), EndpointError> {
        let until = START + until;
        for _ in 0..MAX_STEPS {
            let timeouts = self.flows.iter().filter_map(|flow| flow.next_timeout(self.now));
            let timeout = timeouts.chain(self.deadline).min();
            let Some(at) = timeout.filter(|at| *at <= until) else {
                self.now = self.now.max(until);
                return Ok(());
            };
            self.now = self.now.max(at);
            for flow in &mut self.flows {
                flow.handle_timeout(self.now);
            }
            self.settle();
            let ended = self.deadline.is_some_and(|deadline| deadline <= self.now);
            let failed = self.flows.last().is_some_and(|flow| flow.failure.is_some());
            if !self.sent.is_empty() || failed || ended {
                return Ok(());
            }
        }
        Err(EndpointError(format!("the connection's timers expired {MAX_STEPS} times in a row")))
    }

    fn poll_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }

    fn next_connection(&self, flags: Flags) -> u32 {
        self.newest() + u32::from(self.opens(flags))
    }

    fn inject(&mut self, arriving: &Received) -> Result<(), EndpointError> {
        let mut segment = arriving.segment;
        if self.opens(segment.flags) {
            self.accept_syn(arriving);
        }
        let now = self.now;
        // A connection that has ended is no more, except that its descriptor reports how.
        let open = self.flows.last_mut().filter(|flow| !flow.gone && !flow.connection.is_closed());
        let Some(flow) = open else {
            self.refuse(&segment);
            return Ok(());
        };
        if let Some(mss) = &mut segment.options.mss
            && segment.options.timestamps.is_some()
            && flow.connection.config().timestamps
            && *mss > 0
        {
            *mss = mss.saturating_sub(TIMESTAMPS_LEN).max(1);
        }
        let asked = flow.connection.state() == State::SynSent && flow.early.asked;
        let stored = flow.receive(now, &segment, arriving.ecn);
        if asked && flow.connection.is_synchronised() && !flow.connection.is_closed() {
            early::learn(&mut self.cache, flow, arriving, arriving.segment.options.mss);
        }
        if flow.orphaned && stored {
            flow.gone = true;
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

    fn configure(&mut self, settings: &Settings) -> Result<(), EndpointError> {
        if settings.flushes != self.settings.flushes {
            self.cache = Cache::default();
        }
        let stack = self.settings.stack.clone();
        self.settings = Settings { stack, ..settings.clone() };
        Ok(())
    }

    fn count(&mut self, state: i64) -> Result<u32, EndpointError> {
        let listening = self.sockets.values().filter(|socket| socket.is_listening());
        let listening = listening.count() * usize::from(state == report::state(State::Listen));
        let open = self.flows.iter().filter(|flow| !flow.gone);
        let found = open.filter(|flow| report::state(flow.state()) == state).count();
        Ok((found + listening) as u32)
    }

    fn info(&mut self) -> Result<Info, EndpointError> {
        let (now, mss) = (self.now, self.mss());
        match self.current() {
            Some(flow) => Ok(flow.info(now, mss)),
            None => Err(EndpointError("there is no connection".to_owned())),
        }
    }
}

/// The window's scale is that of the largest buffer, and the first window half of the first one, in whole
/// segments and at most 64 KB (`tcp_select_initial_window`).
fn with_receive_memory(config: Config, settings: &Settings, mss: u32) -> Config {
    let [_, first, largest] = settings.receive_memory.unwrap_or(RECEIVE_MEMORY);
    let config = config.with_recv_buffer(Bytes(largest));
    let (half, mss) = (first / 2, u64::from(mss));
    if settings.freebsd && half >= u64::from(u16::MAX) {
        return config; // its 65,535 bytes are no whole number of segments
    }
    let window = if half > mss { half - half % mss } else { half.max(1) };
    config.with_initial_recv_window(Some(Bytes(window.min(u64::from(u16::MAX)))))
}

/// When scripts start: as late as a guest's run after its boot, so that timestamps are not zero.
const START: Instant = Instant::from_nanos(10_000_000_000);
const IPV4_HEADER: u32 = 20;
const IPV6_HEADER: u32 = 40;
const TCP_HEADER: u32 = 20;
/// With padding.
const TIMESTAMPS_LEN: u16 = 12;
/// Linux's default (`net.ipv4.tcp_rmem`).
const RECEIVE_MEMORY: [u64; 3] = [4_096, 131_072, 6 << 20];
/// More expiries without anything sent are an endless loop.
const MAX_STEPS: u32 = 1_000_000;

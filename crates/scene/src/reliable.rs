//! A flow over a reliable connection.

use weir_cc::RecoveryState;
use weir_radio::Notice;
use weir_trace::{AckRow, SampleRow};
use weir_transport::{
    Config, Connection, Event, Flags, HostProfile, LimitingEnd, PathEvent, Segment, Snapshot,
    Stats, Transmit, WindowLimit,
};
use weir_units::feedback::Telemetry;
use weir_units::{Bytes, Duration, Echo, Feedback, Instant, Rate, Rng};

use crate::app::Client;
use crate::check::{StreamCheck, WindowCheck, check_in_flight};
use crate::collective::Transfer;
use crate::flow_stats::{FlowEnd, Totals};
use crate::last_sample::LastSample;
use crate::medium::Medium;
use crate::packet::{Body, IP_HEADER, Load, Packet};
use crate::queue::Event as NetEvent;
use crate::side::Side;
use crate::spec::{HostPair, Workload};
use crate::stream_flow::StreamFlow;

/// A flow over a reliable connection.
pub(crate) struct ReliableFlow {
    pub(crate) stream: StreamFlow,
    config: Config,
    /// Made when the flow starts.
    ends: Option<[End; 2]>,
    rngs: Option<[Rng; 2]>,
    pub(crate) acks: Vec<AckRow>,
    /// How many of the sender's acknowledgements are still to be recorded.
    acks_left: usize,
    /// The application has written everything, and closes as soon as it may.
    closes: bool,
    /// How many links or hops the newest segment had crossed to the sender, and to the receiver.
    hops: [u8; 2],
    /// Only of a connection of a flow of many.
    pub(crate) origin: Option<Origin>,
}

/// Which connection of which flow of many it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) source: u32,
    pub(crate) number: u64,
    /// The hosts between which it runs, if they were drawn.
    pub(crate) ends: Option<HostPair>,
    /// What it does in a collective operation: others may wait for it.
    pub(crate) transfer: Option<Transfer>,
}

/// What a flow over a reliable connection begins with.
pub(crate) struct FlowInit {
    pub(crate) index: u32,
    /// Of both ends.
    pub(crate) config: Config,
    pub(crate) workload: Workload,
    pub(crate) client: Client,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    /// The sender's, and the receiver's.
    pub(crate) rngs: [Rng; 2],
    /// Number of the sender's acknowledgements that are recorded.
    pub(crate) max_acks: usize,
    pub(crate) origin: Option<Origin>,
}

/// One end of the connection.
struct End {
    conn: Connection,
    window: WindowCheck,
    stream: StreamCheck,
    /// The window and the state of the recovery epoch after the previous event.
    last: (Bytes, RecoveryState),
    /// Records of hops that the next acknowledgement returns.
    records: Option<Box<Telemetry>>,
}

impl ReliableFlow {
    pub(crate) fn new(init: FlowInit) -> Self {
        let FlowInit { index, config, workload, client, start, stop, rngs, max_acks, origin } =
            init;
        Self {
            stream: StreamFlow::new(index, workload, client, start, stop),
            config,
            ends: None,
            rngs: Some(rngs),
            acks: Vec::new(),
            acks_left: max_acks,
            closes: false,
            hops: [0; 2],
            origin,
        }
    }

    /// The size of a transfer that has one.
    pub(crate) fn size(&self) -> Option<Bytes> {
        match self.stream.workload {
            Workload::File { size } => Some(size),
            _ => None,
        }
    }

    /// Bytes delivered, if these are all of a transfer that has a size.
    pub(crate) fn whole(&self) -> Option<u64> {
        self.stream.stats.completed().map(|_| self.stream.stats.delivered)
    }

    pub(crate) fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        let side = Side::at_end_of(packet.direction);
        let (Some(ends), Body::Segment { segment, .. }) = (&mut self.ends, &packet.body) else {
            return net
                .notes()
                .violate(format!("flow {} cannot receive {packet:?}", self.stream.index));
        };
        // What the network damaged fails the checksum.
        if packet.corrupted {
            return;
        }
        let with_hops;
        let segment = match segment.options.feedback {
            Some(Feedback::QuickStart(_)) => {
                with_hops = note_hops(segment, packet, net);
                &with_hops
            }
            _ => segment,
        };
        let end = &mut ends[side as usize];
        if self.acks_left > 0 && side == Side::Sender && !segment.flags.contains(Flags::SYN) {
            self.acks_left -= 1;
            self.acks.push(ack_row(self.stream.index, net.now(), &end.conn));
        }
        end.window.on_received(segment);
        if M::Load::HAS_TELEMETRY {
            end.on_records(segment, net.records());
        }
        if reads_hops(side, &self.config) && packet.hop != self.hops[side as usize] {
            self.hops[side as usize] = packet.hop;
            end.conn.handle_path_event(net.now(), PathEvent::Hops(packet.hop));
        }
        let stored = end.conn.handle_segment(net.now(), segment, packet.ecn);
        if let Some(at) = stored {
            end.stream.on_stored(at.offset, at.len);
            if let Err(what) = net.check_stored(packet, &at) {
                net.notes().violate(what);
            }
        }
        if side == Side::Receiver && segment.payload_len > 0 {
            net.notes().data_packets += 1;
            self.stream.stats.on_arrival(net.now(), packet);
        }
        self.pump(side, net);
    }

    /// The network tells one end of its route.
    pub(crate) fn on_notice<M: Medium>(&mut self, side: Side, notice: Notice, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let event = match notice {
            Notice::Failed { sequence } => PathEvent::RouteFailed { sequence },
            Notice::Restored { expected } => PathEvent::RouteRestored { expected },
        };
        ends[side as usize].conn.handle_path_event(net.now(), event);
        self.pump(side, net);
    }

    pub(crate) fn on_wake<M: Medium>(&mut self, side: Side, net: &mut M) {
        let now = net.now();
        if !self.stream.take_wake(side, now) {
            return;
        }
        if self.ends.is_none() {
            self.begin(net);
        }
        if self.stream.is_stopped(side, now) {
            self.halt(net);
        }
        let Some(ends) = &mut self.ends else { return };
        let conn = &mut ends[side as usize].conn;
        let timeouts = conn.stats().timeouts;
        if conn.next_timeout(now).is_some_and(|at| at <= now) {
            conn.handle_timeout(now);
        }
        if conn.stats().timeouts > timeouts {
            net.log(self.stream.index, "timeout", "");
        }
        if side == Side::Sender && !self.stream.over {
            let demand = self.stream.client.on_time(now);
            if demand.withdraw {
                conn.withdraw(now);
            }
            if demand.write > 0 {
                conn.write(now, demand.write);
            }
            self.closes |= demand.close;
            self.close_if_connected(net);
        }
        self.pump(side, net);
    }

    pub(crate) fn begin_measurement<M: Medium>(&mut self, net: &mut M) {
        let totals = self.ends.is_some().then(|| self.totals(net));
        self.stream.begin_measurement(net.now(), totals);
    }

    pub(crate) fn end_measurement<M: Medium>(&mut self, net: &mut M, ending: FlowEnd) {
        if !self.stream.stats.is_closed() {
            let totals = self.totals(net);
            self.stream.stats.close(net.now(), totals, ending);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stream.over
    }

    pub(crate) fn sample(&mut self, now: Instant) -> Option<SampleRow> {
        let ends = self.ends.as_mut().filter(|_| self.stream.is_sampled(now))?;
        let sender = &mut ends[Side::Sender as usize].conn;
        sender.account_time(now);
        let snapshot = sender.snapshot();
        let goodput_mbps = self.stream.last_sample.advance(now, self.stream.stats.delivered);
        let millis = |duration: Option<Duration>| duration.map(Duration::as_millis_f64);
        Some(SampleRow {
            flow: self.stream.index,
            t_s: now.as_secs_f64(),
            cwnd_bytes: snapshot.cwnd.get(),
            ssthresh_bytes: snapshot.ssthresh.map(|bytes| bytes.get()),
            bytes_in_flight: snapshot.bytes_in_flight.get(),
            srtt_ms: millis(snapshot.srtt),
            rtt_ms: millis(snapshot.latest_rtt),
            rttvar_ms: millis(snapshot.rttvar),
            rto_ms: snapshot.rto.as_millis_f64(),
            pacing_mbps: snapshot.pacing_rate.map(|rate| rate.as_mbit_f64()),
            delivery_mbps: sender.delivery_rate().map(|rate| rate.as_mbit_f64()),
            goodput_mbps,
            retransmits: sender.stats().retransmits,
            acked_bytes: sender.stats().acked_bytes,
            time_busy_s: None,
            time_rwnd_limited_s: Some(sender.stats().rwnd_limited.as_secs_f64()),
            time_sndbuf_limited_s: None,
            state: state_name(snapshot.state),
            phase: snapshot.phase,
            cc: sender.variables(),
        })
    }

    /// Counters, state and delivery rate of the sender; `None` before it began.
    pub(crate) fn sender_state(
        &mut self,
        now: Instant,
    ) -> Option<(&Stats, Snapshot, Option<Rate>)> {
        let sender = &mut self.ends.as_mut()?[Side::Sender as usize].conn;
        sender.account_time(now);
        Some((sender.stats(), sender.snapshot(), sender.delivery_rate()))
    }

    fn begin<M: Medium>(&mut self, net: &mut M) {
        let Some([ours, theirs]) = self.rngs.take() else { return };
        let now = net.now();
        let end = |conn: Connection| {
            let last = (conn.flight().cwnd, RecoveryState::Open);
            End {
                conn,
                window: WindowCheck::default(),
                stream: StreamCheck::default(),
                last,
                records: None,
            }
        };
        let sender = Connection::connect(&self.config, now, ours);
        let receiver = Connection::listen(&self.config, theirs);
        self.ends = Some([end(sender), end(receiver)]);
        self.stream.last_sample = LastSample::new(now);
        net.log(self.stream.index, "start", "");
        if self.stream.warm {
            self.begin_measurement(net);
        }
    }

    /// Stops the flow: its connection is aborted.
    fn halt<M: Medium>(&mut self, net: &mut M) {
        self.stream.stop = None;
        self.end_measurement(net, FlowEnd::Stopped);
        if let Some(ends) = &mut self.ends {
            ends[Side::Sender as usize].conn.abort(net.now());
        }
        net.log(self.stream.index, "stopped", "");
        self.stream.over = true;
    }

    /// After anything happened to one end: reads, answers, sends, and sets its wake-up.
    fn pump<M: Medium>(&mut self, side: Side, net: &mut M) {
        self.read(side, net);
        self.take_events(side, net);
        if side == Side::Sender {
            self.close_if_connected(net);
        }
        self.transmit(side, net);
        self.arm(side, net);
    }

    fn read<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let End { conn, stream, .. } = &mut ends[side as usize];
        let bytes = conn.readable();
        if bytes == 0 {
            return;
        }
        let now = net.now();
        if self.config.host_profile == HostProfile::Kernel && net.net().more_arrives() {
            // A kernel takes in all that arrives at one instant before it runs the application.
            return self.stream.arm(side, Some(now), net);
        }
        let bytes = conn.read(now, bytes);
        if let Err(what) = stream.on_read(bytes) {
            net.notes().violate(format!("flow {}: {what}", self.stream.index));
        }
        let answer = self.stream.on_read(side, bytes, net);
        if answer > 0 {
            self.transmit_before_application(side, net);
            if let Some(ends) = &mut self.ends {
                ends[side as usize].conn.write(now, answer);
            }
        }
        if self.stream.completes(side) {
            self.on_complete(net);
        }
    }

    /// The receiver has all of a file.
    #[cold]
    fn on_complete<M: Medium>(&mut self, net: &mut M) {
        self.end_measurement(net, FlowEnd::Completed);
        net.log(self.stream.index, "completed", "");
        if self.origin.is_some_and(|origin| origin.transfer.is_some()) {
            let now = net.now();
            net.net_mut().schedule(now, NetEvent::Arrival(self.stream.index));
        }
    }

    /// Closes as an application does whose calls return in order: after the connection is there, and what was written
    /// has left as far as it may.
    fn close_if_connected<M: Medium>(&mut self, net: &mut M) {
        let waits = self.config.host_profile == HostProfile::Kernel;
        let sender = Side::Sender as usize;
        let Some(ends) = &self.ends else { return };
        if !self.closes || (waits && !ends[sender].conn.is_synchronised()) {
            return;
        }
        self.closes = false;
        self.transmit_before_application(Side::Sender, net);
        if let Some(ends) = &mut self.ends {
            ends[sender].conn.close(net.now());
        }
    }

    /// Sends what a kernel sends before the application's next call: an acknowledgement that is due leaves before the
    /// answer is written (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`), and data that may leave before the FIN.
    fn transmit_before_application<M: Medium>(&mut self, side: Side, net: &mut M) {
        if self.config.host_profile == HostProfile::Kernel {
            self.transmit(side, net);
        }
    }

    fn take_events<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let conn = &mut ends[side as usize].conn;
        let mut failure = None;
        while let Some(event) = conn.poll_event() {
            match event {
                Event::Finished if side == Side::Receiver => conn.close(net.now()),
                Event::Connected if side == Side::Sender => {
                    self.stream.client.on_connected(net.now());
                    self.stream.stats.connected = Some(net.now());
                    net.log(self.stream.index, "connected", "");
                }
                Event::Route(state) if side == Side::Sender => {
                    net.log(self.stream.index, state.as_str(), "");
                }
                Event::Failed(error) => failure = Some(error.to_string()),
                _ => {}
            }
        }
        let finished =
            side == Side::Receiver && conn.is_finished() && self.stream.stats.is_closed();
        if let Some(why) = failure.filter(|_| !self.stream.over) {
            net.log(self.stream.index, "failed", &why);
            self.end_measurement(net, FlowEnd::Failed(why));
            self.stream.over = true;
        }
        self.stream.over |= finished;
    }

    fn transmit<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let End { conn, window, last, records, .. } = &mut ends[side as usize];
        let now = net.now();
        let mut sent = 0;
        let mut resends = net.notes().resends(conn.stats());
        let may_send = |net: &mut M| {
            side == Side::Receiver || net.sender_waits_until(self.stream.index).is_none()
        };
        while may_send(net)
            && let Some(transmit) = conn.poll_transmit(now)
        {
            if let Err(what) = window.on_sent(&transmit.segment, transmit.offset) {
                net.notes().violate(format!("flow {}: {what}", self.stream.index));
            }
            sent += u64::from(transmit.segment.payload_len);
            let packet = packet(self.stream.index, side, now, &transmit);
            if side == Side::Sender && transmit.segment.payload_len > 0 {
                self.stream.stats.sent_ip_bytes += u64::from(packet.ip_len);
            }
            if let Some(before) = resends {
                let now = net.notes().resends(conn.stats());
                net.notes().on_sent(&packet, before, now.unwrap_or(before));
                resends = now;
            }
            match records.take_if(|_| M::Load::HAS_TELEMETRY && returns_records(&transmit.segment))
            {
                Some(records) => net.send_with(packet, &records),
                None => net.send(packet),
            }
        }
        if side == Side::Receiver && sent == 0 {
            return;
        }
        let flight = conn.flight();
        let (cwnd_before, state_before) = std::mem::replace(last, (flight.cwnd, flight.state));
        if let Err(what) = check_in_flight(&flight, cwnd_before, sent, self.config.mss) {
            net.notes().violate(format!("flow {}: {what}", self.stream.index));
        }
        if side == Side::Receiver {
            return;
        }
        if let Some(rtt) = conn.poll_rtt_sample() {
            self.stream.stats.on_rtt(rtt);
        }
        self.stream.stats.cwnd.set(now, flight.cwnd);
        if flight.state != state_before {
            net.log(self.stream.index, state_name(flight.state), "");
        }
    }

    fn arm<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &self.ends else { return };
        let deadline = ends[side as usize].conn.next_timeout(net.now());
        self.stream.arm(side, deadline, net);
    }

    fn totals<M: Medium>(&mut self, net: &mut M) -> Totals {
        let mut totals = self.stream.totals(net);
        if let Some(ends) = &mut self.ends {
            let sender = &mut ends[Side::Sender as usize].conn;
            sender.account_time(net.now());
            totals.stats = *sender.stats();
        }
        totals
    }
}

impl End {
    /// A packet came with records of the hops that it or an earlier one in the other direction has passed.
    fn on_records(&mut self, segment: &Segment, records: Option<Telemetry>) {
        match (segment.options.feedback, records) {
            (Some(Feedback::Int), Some(records)) => self.records = Some(Box::new(records)),
            _ if returns_records(segment) => {
                if let Some(records) = records {
                    self.conn.handle_telemetry(&records);
                }
            }
            _ => {}
        }
    }
}

/// Whether a packet with this segment has space for records that it returns: hops do not record themselves in it.
fn returns_records(segment: &Segment) -> bool {
    segment.options.echo == Some(Echo::Int) && segment.options.feedback.is_none()
}

/// Whether the end at `side` learns the length of its route.
fn reads_hops(side: Side, config: &Config) -> bool {
    let limited = config.window_limit.map(WindowLimit::end) == Some(LimitingEnd::Receiver);
    side == Side::Sender || limited
}

/// The segment with what IP's TTL would tell a rate request; over radio every node is a router.
fn note_hops<M: Medium>(segment: &Segment, packet: &Packet, net: &M) -> Segment {
    let mut segment = *segment;
    if let Some(Feedback::QuickStart(request)) = &mut segment.options.feedback {
        request.hops = match net.routers(packet.flow, packet.direction) {
            0 => packet.hop,
            routers => routers,
        };
    }
    segment
}

fn packet(flow: u32, side: Side, sent: Instant, transmit: &Transmit) -> Packet {
    let segment = transmit.segment;
    Packet {
        flow,
        direction: side.direction(),
        hop: 0,
        ecn: transmit.ecn,
        corrupted: false,
        ip_len: IP_HEADER + segment.header_len() as u32 + segment.payload_len,
        stamp: 0,
        sent,
        queued: Duration::ZERO,
        body: Body::Segment { segment, offset: transmit.offset },
        load: (),
    }
}

/// What the sender knows.
fn ack_row(flow: u32, now: Instant, sender: &Connection) -> AckRow {
    let snapshot = sender.snapshot();
    AckRow {
        flow,
        t_s: now.as_secs_f64(),
        acked_bytes: sender.stats().acked_bytes,
        cwnd_bytes: snapshot.cwnd.get(),
        ssthresh_bytes: snapshot.ssthresh.map(Bytes::get),
        srtt_ms: snapshot.srtt.map(Duration::as_millis_f64),
    }
}

/// The name of an epoch's state in the tables.
pub(crate) fn state_name(state: RecoveryState) -> &'static str {
    match state {
        RecoveryState::Open => "open",
        RecoveryState::Disorder => "disorder",
        RecoveryState::Cwr => "cwr",
        RecoveryState::Recovery => "recovery",
        RecoveryState::Loss => "loss",
    }
}

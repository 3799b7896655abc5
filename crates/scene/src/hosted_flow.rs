//! A flow over a transport that is not ours, in virtual time.

use std::sync::Arc;

use weir_trace::{FlowRow, SampleRow};
use weir_units::{Duration, Instant, Rng};

use crate::app::{Client, Server};
use crate::datagrams::Datagrams;
use crate::flow_stats::{FlowEnd, FlowStats, Totals};
use crate::foreign::{ForeignEnd, ForeignEvent, ForeignStack};
use crate::last_sample::LastSample;
use crate::medium::Medium;
use crate::packet::{Body, IP_HEADER, Packet, UDP_HEADER};
use crate::side::Side;
use crate::spec::Workload;

/// A flow over a transport that is not ours.
pub(crate) struct HostedFlow {
    index: u32,
    stack: Arc<dyn ForeignStack>,
    workload: Workload,
    stop: Option<Instant>,
    client: Client,
    server: Server,
    /// Made when the flow starts.
    ends: Option<[Box<dyn ForeignEnd>; 2]>,
    rngs: Option<[Rng; 2]>,
    /// Datagrams in flight to the sender, and to the receiver.
    in_flight: [Datagrams; 2],
    /// When each end's pending wake-up is due.
    armed: [Option<Instant>; 2],
    over: bool,
    /// The warm-up is over: whatever begins now is measured from its beginning.
    warm: bool,
    /// When the previous sample was taken, and what had been delivered then.
    last_sample: LastSample,
    /// Datagrams that the sender sent, and their payload.
    sent: u64,
    sent_bytes: u64,
    pub(crate) flow_stats: FlowStats,
}

/// What such a flow begins with.
pub(crate) struct HostedInit {
    pub(crate) index: u32,
    pub(crate) stack: Arc<dyn ForeignStack>,
    pub(crate) workload: Workload,
    pub(crate) client: Client,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    /// The sender's, and the receiver's.
    pub(crate) rngs: [Rng; 2],
}

impl HostedFlow {
    pub(crate) fn new(init: HostedInit) -> Self {
        let HostedInit { index, stack, workload, client, start, stop, rngs } = init;
        Self {
            index,
            stack,
            stop,
            client,
            server: Server::new(workload.clone()),
            workload,
            ends: None,
            rngs: Some(rngs),
            in_flight: Default::default(),
            armed: [Some(start), None],
            over: false,
            warm: false,
            last_sample: LastSample::new(start),
            sent: 0,
            sent_bytes: 0,
            flow_stats: FlowStats::new(start),
        }
    }

    pub(crate) fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        let side = Side::at_end_of(packet.direction);
        let (Some(ends), Body::Datagram { number, .. }) = (&mut self.ends, packet.body) else {
            return net.notes().violate(format!("flow {} cannot receive {packet:?}", self.index));
        };
        let Some(datagram) = self.in_flight[side as usize].take(number) else {
            // A duplicate: every QUIC stack drops it (RFC 9000 §12.3).
            return;
        };
        // What the network damaged fails authentication.
        if packet.corrupted || self.over {
            return self.in_flight[side as usize].recycle(datagram);
        }
        ends[side as usize].handle_datagram(net.now(), packet.ecn, &datagram);
        self.in_flight[side as usize].recycle(datagram);
        if side == Side::Receiver {
            net.notes().data_packets += 1;
            self.flow_stats.on_arrival(net.now(), packet);
        }
        self.pump(side, net);
    }

    pub(crate) fn on_wake<M: Medium>(&mut self, side: Side, net: &mut M) {
        let now = net.now();
        if self.over || self.armed[side as usize].is_none_or(|at| at > now) {
            return;
        }
        self.armed[side as usize] = None;
        if self.ends.is_none() {
            self.begin(net);
        }
        if side == Side::Sender && self.stop.is_some_and(|stop| stop <= now) {
            return self.halt(net);
        }
        let Some(ends) = &mut self.ends else { return };
        let end = &mut ends[side as usize];
        if end.next_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
        if side == Side::Sender {
            let demand = self.client.on_time(now);
            if demand.write > 0 {
                end.write(now, demand.write);
            }
            if demand.close {
                end.finish(now);
            }
        }
        self.pump(side, net);
    }

    pub(crate) fn open_books<M: Medium>(&mut self, net: &mut M) {
        self.warm = true;
        if self.ends.is_some() {
            let totals = self.totals(net);
            self.flow_stats.open(net.now(), totals);
        }
    }

    pub(crate) fn close_books<M: Medium>(&mut self, net: &mut M, ending: FlowEnd) {
        if !self.flow_stats.is_closed() {
            let totals = self.totals(net);
            self.flow_stats.close(net.now(), totals, ending);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn sample(&mut self, now: Instant) -> Option<SampleRow> {
        let began_before = self.last_sample.is_before(now) && !self.flow_stats.is_closed();
        let ends = self.ends.as_mut().filter(|_| began_before)?;
        let sender = &mut ends[Side::Sender as usize];
        let (state, phase) = (sender.state(), sender.phase());
        let goodput_mbps = self.last_sample.advance(now, self.flow_stats.delivered);
        Some(SampleRow {
            flow: self.index,
            t_s: now.as_secs_f64(),
            cwnd_bytes: state.cwnd.get(),
            ssthresh_bytes: state.ssthresh.map(|bytes| bytes.get()),
            bytes_in_flight: state.in_flight.get(),
            srtt_ms: state.srtt.map(Duration::as_millis_f64),
            rtt_ms: state.rtt.map(Duration::as_millis_f64),
            pacing_mbps: state.pacing.map(|rate| rate.as_mbit_f64()),
            goodput_mbps,
            retransmits: state.lost,
            acked_bytes: state.acked,
            delivery_mbps: state.delivery.map(|rate| rate.as_mbit_f64()),
            state: "open",
            phase: phase.unwrap_or("none"),
            ..SampleRow::default()
        })
    }

    /// Makes null in its row what no such stack reports.
    pub(crate) fn forget_unknown(row: &mut FlowRow) {
        row.retransmits_fast = None;
        row.retransmits_rto = None;
        row.retransmits_tlp = None;
        row.timeouts = None;
        row.time_cwnd_limited_s = None;
        row.time_app_limited_s = None;
        row.time_rto_s = None;
    }

    fn begin<M: Medium>(&mut self, net: &mut M) {
        let Some(rngs) = self.rngs.take() else { return };
        let now = net.now();
        match self.stack.open(now, rngs) {
            Ok(ends) => self.ends = Some(ends),
            Err(why) => return net.notes().violate(format!("flow {}: {why}", self.index)),
        }
        self.last_sample = LastSample::new(now);
        net.log(self.index, "start", "");
        if self.warm {
            self.open_books(net);
        }
    }

    /// Stops the flow: its connection is closed at once.
    fn halt<M: Medium>(&mut self, net: &mut M) {
        self.stop = None;
        self.close_books(net, FlowEnd::Stopped);
        net.log(self.index, "stopped", "");
        if let Some(ends) = &mut self.ends {
            ends[Side::Sender as usize].abort(net.now());
        }
        self.transmit(Side::Sender, net);
        self.over = true;
    }

    /// After anything happened to one end: reads, answers, sends, and sets its wake-up.
    fn pump<M: Medium>(&mut self, side: Side, net: &mut M) {
        self.read(side, net);
        self.transmit(side, net);
        self.take_events(side, net);
        if side == Side::Sender {
            self.note_state(net);
        }
        self.arm(side, net);
    }

    fn read<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let end = &mut ends[side as usize];
        let bytes = end.read();
        if bytes == 0 {
            return;
        }
        let now = net.now();
        match side {
            Side::Sender => {
                self.client.on_read(bytes);
                while let Some(answer) = self.client.poll_answer(now) {
                    self.flow_stats.on_answer(&answer);
                }
                let surplus = self.client.surplus();
                if surplus > 0 {
                    net.notes()
                        .violate(format!("flow {}: {surplus} bytes answer nothing", self.index));
                }
            }
            Side::Receiver => {
                self.flow_stats.delivered += bytes;
                let answer = self.server.on_read(bytes);
                if answer > 0 {
                    end.write(now, answer);
                }
                let all = matches!(self.workload, Workload::File { size }
                    if size.get() == self.flow_stats.delivered);
                if all && !self.flow_stats.is_closed() {
                    self.close_books(net, FlowEnd::Completed);
                    net.log(self.index, "completed", "");
                }
            }
        }
    }

    fn take_events<M: Medium>(&mut self, side: Side, net: &mut M) {
        while let Some(event) = self.next_event(side) {
            match event {
                ForeignEvent::Connected if side == Side::Sender => {
                    self.client.on_connected(net.now());
                    net.log(self.index, "connected", "");
                }
                ForeignEvent::Finished if side == Side::Sender => self.over = true,
                ForeignEvent::Failed(why) if !self.over => {
                    net.log(self.index, "failed", &why);
                    self.close_books(net, FlowEnd::Failed(why));
                    self.over = true;
                }
                ForeignEvent::Damaged { offset } => net.notes().violate(format!(
                    "flow {}: other bytes than those sent arrived at {offset}",
                    self.index
                )),
                _ => {}
            }
        }
    }

    fn next_event(&mut self, side: Side) -> Option<ForeignEvent> {
        self.ends.as_mut()?[side as usize].poll_event()
    }

    fn transmit<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let (end, now) = (&mut ends[side as usize], net.now());
        // Datagrams are kept by the end that they go to.
        let towards = &mut self.in_flight[1 - side as usize];
        while side == Side::Receiver || net.sender_waits_until(self.index).is_none() {
            let mut datagram = towards.blank();
            let Some(ecn) = end.poll_transmit(now, &mut datagram) else {
                return towards.recycle(datagram);
            };
            let payload = datagram.len() as u32;
            let number = towards.put(datagram);
            let packet = Packet {
                flow: self.index,
                direction: side.direction(),
                hop: 0,
                ecn,
                corrupted: false,
                ip_len: IP_HEADER + UDP_HEADER + payload,
                stamp: 0,
                sent: now,
                queued: Duration::ZERO,
                body: Body::Datagram { number, payload },
                load: (),
            };
            if side == Side::Sender {
                self.sent += 1;
                self.sent_bytes += u64::from(payload);
                self.flow_stats.sent_ip_bytes += u64::from(packet.ip_len);
            }
            net.send(packet);
        }
    }

    /// Notes what the sender knows now.
    fn note_state<M: Medium>(&mut self, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let sender = &mut ends[Side::Sender as usize];
        while let Some(rtt) = sender.poll_rtt_sample() {
            self.flow_stats.on_rtt(rtt);
        }
        self.flow_stats.cwnd.set(net.now(), sender.state().cwnd);
    }

    /// Each end has one wake-up pending at most, and it may be early: deadlines mostly move away.
    fn arm<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = self.ends.as_mut().filter(|_| !self.over) else { return };
        let mut deadline = ends[side as usize].next_timeout();
        if side == Side::Sender {
            let waits_until = net.sender_waits_until(self.index);
            deadline = Instant::earlier(deadline, self.client.next_time());
            deadline = Instant::earlier(deadline, Instant::earlier(self.stop, waits_until));
        }
        let armed = &mut self.armed[side as usize];
        if let Some(at) = deadline.filter(|at| armed.is_none_or(|armed| *at < armed)) {
            let at = at.max(net.now());
            *armed = Some(at);
            net.wake(at, self.index, side);
        }
    }

    fn totals<M: Medium>(&mut self, net: &mut M) -> Totals {
        let mut totals = Totals {
            dropped: net.notes().dropped_data[self.index as usize],
            delivered: self.flow_stats.delivered,
            sent_ip_bytes: self.flow_stats.sent_ip_bytes,
            unanswered: self.client.unanswered(),
            ..Totals::default()
        };
        totals.stats.data_segments_sent = self.sent;
        totals.stats.data_bytes_sent = self.sent_bytes;
        if let Some(ends) = &mut self.ends {
            totals.stats.retransmits = ends[Side::Sender as usize].state().lost;
        }
        totals
    }
}

//! A flow over a transport that is not ours, in virtual time.

use std::sync::Arc;

use weir_trace::{FlowRow, SampleRow};
use weir_units::{Duration, Instant, Rng};

use crate::app::Client;
use crate::datagrams::Datagrams;
use crate::flow_stats::{FlowEnd, Totals};
use crate::foreign::{ForeignEnd, ForeignEvent, ForeignStack};
use crate::last_sample::LastSample;
use crate::medium::Medium;
use crate::packet::{Body, IP_HEADER, Packet, UDP_HEADER};
use crate::side::Side;
use crate::spec::Workload;
use crate::stream_flow::StreamFlow;

/// A flow over a transport that is not ours.
pub(crate) struct HostedFlow {
    pub(crate) stream: StreamFlow,
    stack: Arc<dyn ForeignStack>,
    /// Made when the flow starts.
    ends: Option<[Box<dyn ForeignEnd>; 2]>,
    rngs: Option<[Rng; 2]>,
    /// Datagrams in flight to the sender, and to the receiver.
    in_flight: [Datagrams; 2],
    /// Datagrams that the sender sent, and their payload.
    sent: u64,
    sent_bytes: u64,
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
            stream: StreamFlow::new(index, workload, client, start, stop),
            stack,
            ends: None,
            rngs: Some(rngs),
            in_flight: Default::default(),
            sent: 0,
            sent_bytes: 0,
        }
    }

    pub(crate) fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        let side = Side::at_end_of(packet.direction);
        let (Some(ends), Body::Datagram { number, .. }) = (&mut self.ends, packet.body) else {
            return net
                .notes()
                .violate(format!("flow {} cannot receive {packet:?}", self.stream.index));
        };
        let Some(datagram) = self.in_flight[side as usize].take(number) else {
            // A duplicate: every QUIC stack drops it (RFC 9000 §12.3).
            return;
        };
        // What the network damaged fails authentication.
        if packet.corrupted || self.stream.over {
            return self.in_flight[side as usize].recycle(datagram);
        }
        ends[side as usize].handle_datagram(net.now(), packet.ecn, &datagram);
        self.in_flight[side as usize].recycle(datagram);
        if side == Side::Receiver {
            net.notes().data_packets += 1;
            self.stream.stats.on_arrival(net.now(), packet);
        }
        self.pump(side, net);
    }

    pub(crate) fn on_wake<M: Medium>(&mut self, side: Side, net: &mut M) {
        let now = net.now();
        if self.stream.over || !self.stream.take_wake(side, now) {
            return;
        }
        if self.ends.is_none() {
            self.begin(net);
        }
        if self.stream.is_stopped(side, now) {
            return self.halt(net);
        }
        let Some(ends) = &mut self.ends else { return };
        let end = &mut ends[side as usize];
        if end.next_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
        if side == Side::Sender {
            let demand = self.stream.client.on_time(now);
            if demand.write > 0 {
                end.write(now, demand.write);
            }
            if demand.close {
                end.finish(now);
            }
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
        let sender = &mut ends[Side::Sender as usize];
        let (state, phase) = (sender.state(), sender.phase());
        let goodput_mbps = self.stream.last_sample.advance(now, self.stream.stats.delivered);
        Some(SampleRow {
            flow: self.stream.index,
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
            Err(why) => return net.notes().violate(format!("flow {}: {why}", self.stream.index)),
        }
        self.stream.last_sample = LastSample::new(now);
        net.log(self.stream.index, "start", "");
        if self.stream.warm {
            self.begin_measurement(net);
        }
    }

    /// Stops the flow: its connection is closed at once.
    fn halt<M: Medium>(&mut self, net: &mut M) {
        self.stream.stop = None;
        self.end_measurement(net, FlowEnd::Stopped);
        net.log(self.stream.index, "stopped", "");
        if let Some(ends) = &mut self.ends {
            ends[Side::Sender as usize].abort(net.now());
        }
        self.transmit(Side::Sender, net);
        self.stream.over = true;
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
        let answer = self.stream.on_read(side, bytes, net);
        if answer > 0 {
            end.write(now, answer);
        }
        if self.stream.completes(side) {
            self.end_measurement(net, FlowEnd::Completed);
            net.log(self.stream.index, "completed", "");
        }
    }

    fn take_events<M: Medium>(&mut self, side: Side, net: &mut M) {
        while let Some(event) = self.next_event(side) {
            match event {
                ForeignEvent::Connected if side == Side::Sender => {
                    self.stream.client.on_connected(net.now());
                    net.log(self.stream.index, "connected", "");
                }
                ForeignEvent::Finished if side == Side::Sender => self.stream.over = true,
                ForeignEvent::Failed(why) if !self.stream.over => {
                    net.log(self.stream.index, "failed", &why);
                    self.end_measurement(net, FlowEnd::Failed(why));
                    self.stream.over = true;
                }
                ForeignEvent::Damaged { offset } => net.notes().violate(format!(
                    "flow {}: other bytes than those sent arrived at {offset}",
                    self.stream.index
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
        while side == Side::Receiver || net.sender_waits_until(self.stream.index).is_none() {
            let mut datagram = towards.blank();
            let Some(ecn) = end.poll_transmit(now, &mut datagram) else {
                return towards.recycle(datagram);
            };
            let payload = datagram.len() as u32;
            let number = towards.put(datagram);
            let packet = Packet {
                flow: self.stream.index,
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
                self.stream.stats.sent_ip_bytes += u64::from(packet.ip_len);
            }
            net.send(packet);
        }
    }

    /// Notes what the sender knows now.
    fn note_state<M: Medium>(&mut self, net: &mut M) {
        let Some(ends) = &mut self.ends else { return };
        let sender = &mut ends[Side::Sender as usize];
        while let Some(rtt) = sender.poll_rtt_sample() {
            self.stream.stats.on_rtt(rtt);
        }
        self.stream.stats.cwnd.set(net.now(), sender.state().cwnd);
    }

    fn arm<M: Medium>(&mut self, side: Side, net: &mut M) {
        let Some(ends) = self.ends.as_mut().filter(|_| !self.stream.over) else { return };
        let deadline = ends[side as usize].next_timeout();
        self.stream.arm(side, deadline, net);
    }

    fn totals<M: Medium>(&mut self, net: &mut M) -> Totals {
        let mut totals = self.stream.totals(net);
        totals.stats.data_segments_sent = self.sent;
        totals.stats.data_bytes_sent = self.sent_bytes;
        if let Some(ends) = &mut self.ends {
            totals.stats.retransmits = ends[Side::Sender as usize].state().lost;
        }
        totals
    }
}

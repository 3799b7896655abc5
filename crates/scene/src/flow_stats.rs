//! Statistics of a flow, from the start of its measured interval to its end.

use weir_trace::{FlowRow, Histogram, RequestRow};
use weir_transport::Stats;
use weir_units::{Duration, Instant};

use crate::aggregate::Measured;
use crate::meter::WindowMeter;
use crate::packet::Packet;
use crate::requests::{Answer, RequestBook};
use crate::spec::{FlowSpec, TransportSpec};

/// What is written down about one flow.
#[derive(Debug, Default)]
pub(crate) struct FlowStats {
    /// When the flow began, jitter included.
    pub(crate) start: Instant,
    /// When the sender's handshake was over.
    pub(crate) connected: Option<Instant>,
    /// Bytes handed to the receiving application.
    pub(crate) delivered: u64,
    /// IP bytes of the data packets sent.
    pub(crate) sent_ip_bytes: u64,
    pub(crate) rtt: Histogram,
    /// From one end to the other, of each data packet.
    pub(crate) delay: Histogram,
    pub(crate) queue_delay: Histogram,
    /// Links or hops that data packets crossed, all together.
    hops: u64,
    pub(crate) cwnd: WindowMeter,
    /// Only of flows that make requests.
    pub(crate) requests: Option<Box<RequestBook>>,
    opened: Option<(Instant, Totals)>,
    closed: Option<(Instant, Totals, FlowEnd)>,
}

/// Counters at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// The sender's.
    pub(crate) stats: Stats,
    /// Data packets that the network dropped.
    pub(crate) dropped: u64,
    pub(crate) delivered: u64,
    pub(crate) sent_ip_bytes: u64,
    /// Requests that wait for an answer.
    pub(crate) unanswered: u64,
}

impl Totals {
    /// Adds what tables show of a flow's measured interval.
    pub(crate) fn add(&mut self, flow: &FlowStats) {
        let (Some((_, first)), Some((_, last, _))) = (&flow.opened, &flow.closed) else { return };
        self.dropped += last.dropped - first.dropped;
        self.delivered += last.delivered - first.delivered;
        self.sent_ip_bytes += last.sent_ip_bytes - first.sent_ip_bytes;
        let (sum, a, b) = (&mut self.stats, &first.stats, &last.stats);
        sum.data_segments_sent += b.data_segments_sent - a.data_segments_sent;
        sum.data_bytes_sent += b.data_bytes_sent - a.data_bytes_sent;
        sum.retransmits += b.retransmits - a.retransmits;
        sum.retransmits_fast += b.retransmits_fast - a.retransmits_fast;
        sum.retransmits_rto += b.retransmits_rto - a.retransmits_rto;
        sum.retransmits_tlp += b.retransmits_tlp - a.retransmits_tlp;
        sum.retransmits_spurious += b.retransmits_spurious - a.retransmits_spurious;
        sum.timeouts += b.timeouts - a.timeouts;
        sum.cwnd_limited += b.cwnd_limited - a.cwnd_limited;
        sum.rwnd_limited += b.rwnd_limited - a.rwnd_limited;
        sum.app_limited += b.app_limited - a.app_limited;
        sum.rto_wait += b.rto_wait - a.rto_wait;
    }
}

/// How a flow ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// It delivered all that it had.
    Completed,
    /// It was stopped.
    Stopped,
    /// The run was over first.
    OutOfTime,
    /// It failed, and why.
    Failed(String),
}

impl FlowStats {
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, ..Self::default() }
    }

    /// The measured interval begins: what came before is left out.
    pub(crate) fn open(&mut self, now: Instant, totals: Totals) {
        if self.is_closed() {
            return;
        }
        self.opened = Some((now, totals));
        self.rtt = Histogram::new();
        self.delay = Histogram::new();
        self.queue_delay = Histogram::new();
        self.hops = 0;
        self.cwnd.restart(now);
        if let Some(requests) = &mut self.requests {
            requests.restart();
        }
    }

    /// The flow has ended; the first ending counts.
    pub(crate) fn close(&mut self, now: Instant, totals: Totals, ending: FlowEnd) {
        if !self.is_closed() {
            self.cwnd.book(now);
            self.closed = Some((now, totals, ending));
        }
    }

    /// A data packet arrived whole.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Instant, packet: &Packet) {
        if !self.is_closed() {
            self.delay.record(now.saturating_since(packet.sent));
            self.queue_delay.record(packet.queued);
            self.hops += u64::from(packet.hop);
        }
    }

    /// The sender measured a round trip.
    #[inline]
    pub(crate) fn on_rtt(&mut self, rtt: Duration) {
        if !self.is_closed() {
            self.rtt.record(rtt);
        }
    }

    /// A request was answered.
    pub(crate) fn on_answer(&mut self, answer: &Answer) {
        if let Some(requests) = self.requests.as_mut().filter(|_| self.closed.is_none()) {
            requests.record(answer);
        }
    }

    /// Sets the number of its data packets that the network dropped while it was measured.
    pub(crate) fn set_dropped(&mut self, packets: u64) {
        if let (Some((_, first)), Some((_, last, _))) = (&self.opened, &mut self.closed) {
            last.dropped = first.dropped + packets;
        }
    }

    /// Processes what a connection of a flow of many met in the measured interval.
    pub(crate) fn absorb(&mut self, connection: &Self) {
        if connection.opened.is_some() && !self.is_closed() {
            self.rtt.merge(&connection.rtt);
            self.delay.merge(&connection.delay);
            self.queue_delay.merge(&connection.queue_delay);
            self.hops += connection.hops;
        }
    }

    pub(crate) fn take_requests(&mut self) -> Vec<RequestRow> {
        self.requests.as_mut().map_or_else(Vec::new, |requests| requests.take_rows())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// From when to when a flow of a given size lasted, if it delivered all.
    pub(crate) fn completed(&self) -> Option<(Instant, Instant)> {
        let (end, _, ending) = self.closed.as_ref()?;
        (*ending == FlowEnd::Completed).then_some((self.start, *end))
    }

    /// Why the flow failed, if it did.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.closed {
            Some((.., FlowEnd::Failed(why))) => Some(why),
            _ => None,
        }
    }

    /// What was counted in the measured interval.
    pub(crate) fn counts(&self) -> Totals {
        let mut counts = Totals::default();
        counts.add(self);
        counts
    }

    /// What crossed the network in the measured interval, if there was one.
    pub(crate) fn measured(&self) -> Option<Measured> {
        let ((from, first), (to, last, _)) = (self.opened.as_ref()?, self.closed.as_ref()?);
        Some(Measured {
            from: *from,
            to: *to,
            delivered: last.delivered - first.delivered,
            sent_ip_bytes: last.sent_ip_bytes - first.sent_ip_bytes,
        })
    }

    /// The row of table `flows`; `capacity_mbps` gives the capacity that its share refers to.
    pub(crate) fn row(
        &self,
        flow: u32,
        spec: &FlowSpec,
        capacity_mbps: impl Fn(Instant, Instant) -> Option<f64>,
    ) -> FlowRow {
        let mut row = FlowRow {
            flow,
            name: spec.name.clone(),
            stack: stack_name(spec),
            start_s: self.start.as_secs_f64(),
            ..FlowRow::default()
        };
        let Some((to, last, ending)) = &self.closed else { return row };
        self.fill_ending(&mut row, spec, *to, ending);
        let Some((from, first)) = &self.opened else { return row };
        fill_counts(&mut row, first, last);
        let seconds = to.saturating_since(*from).as_secs_f64();
        if seconds > 0.0 {
            let goodput = row.delivered_bytes as f64 * 8e-6 / seconds;
            let sent = last.sent_ip_bytes - first.sent_ip_bytes;
            row.goodput_mbps = Some(goodput);
            row.throughput_mbps = Some(sent as f64 * 8e-6 / seconds);
            row.share = capacity_mbps(*from, *to).map(|capacity| goodput / capacity);
        }
        row.set_rtt(&self.rtt.spread());
        row.set_delay(&self.delay.spread());
        row.set_queue_delay(&self.queue_delay.spread());
        let arrived = self.delay.count();
        row.hops_mean = (arrived > 0).then(|| self.hops as f64 / arrived as f64);
        if !matches!(spec.transport, TransportSpec::Udp(_)) {
            row.cwnd_bytes_mean = self.cwnd.mean();
            row.cwnd_bytes_max = Some(self.cwnd.max().get());
        }
        if let Some(requests) = &self.requests {
            requests.fill(&mut row, last.unanswered);
        }
        row
    }

    fn fill_ending(&self, row: &mut FlowRow, spec: &FlowSpec, end: Instant, ending: &FlowEnd) {
        let finite = spec.workload.is_finite();
        row.end_s = (*ending != FlowEnd::OutOfTime || !finite).then(|| end.as_secs_f64());
        row.completed = match ending {
            FlowEnd::Completed => true,
            FlowEnd::Stopped | FlowEnd::OutOfTime => !finite,
            FlowEnd::Failed(_) => false,
        };
        if spec.workload.has_completion_time() && *ending == FlowEnd::Completed {
            row.fct_s = Some(end.saturating_since(self.start).as_secs_f64());
        }
        if let FlowEnd::Failed(why) = ending {
            row.failure = Some(why.clone());
        }
    }
}

fn fill_counts(row: &mut FlowRow, first: &Totals, last: &Totals) {
    let (a, b) = (&first.stats, &last.stats);
    row.delivered_bytes = last.delivered - first.delivered;
    row.sent_segments = b.data_segments_sent - a.data_segments_sent;
    row.sent_bytes = b.data_bytes_sent - a.data_bytes_sent;
    row.retransmits = b.retransmits - a.retransmits;
    row.retransmits_fast = Some(b.retransmits_fast - a.retransmits_fast);
    row.retransmits_rto = Some(b.retransmits_rto - a.retransmits_rto);
    row.retransmits_tlp = Some(b.retransmits_tlp - a.retransmits_tlp);
    row.retransmits_spurious = b.retransmits_spurious - a.retransmits_spurious;
    row.timeouts = Some(b.timeouts - a.timeouts);
    row.retransmit_ratio = ratio(row.retransmits, row.sent_segments);
    row.loss_ratio = Some(ratio(last.dropped - first.dropped, row.sent_segments));
    let seconds = |earlier: Duration, later: Duration| (later - earlier).as_secs_f64();
    row.time_cwnd_limited_s = Some(seconds(a.cwnd_limited, b.cwnd_limited));
    row.time_rwnd_limited_s = seconds(a.rwnd_limited, b.rwnd_limited);
    row.time_app_limited_s = Some(seconds(a.app_limited, b.app_limited));
    row.time_rto_s = Some(seconds(a.rto_wait, b.rto_wait));
}

fn stack_name(spec: &FlowSpec) -> String {
    match &spec.transport {
        TransportSpec::Reliable(config) => config.stack.to_string(),
        TransportSpec::Udp(_) => "udp".to_owned(),
        TransportSpec::Foreign(stack) => stack.name(),
        TransportSpec::Program(programs) => programs.name.clone(),
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

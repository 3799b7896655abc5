//! A flow whose connection is not ours, as the kernel's: its applications, and the statistics of what it
//! tells.
//!
//! Its world opens and drives the connection. It asks the [`KernelFlow`] what the application wants,
//! reports arrivals to it, and hands it a [`ConnectionSample`] whenever the recorder requests one.

use weir_cc::RecoveryState;
use weir_trace::{FlowRow, Histogram, RequestRow, SampleRow};
use weir_units::{Bytes, Duration, Instant, Rate, stream};

use crate::app::{Client, WriteRequest};
use crate::flow_stats::{FlowEnd, FlowStats, Totals};
use crate::last_sample::LastSample;
use crate::reliable::state_name;
use crate::requests::RequestBook;
use crate::spec::{FlowSpec, MeasureSpec};

/// A flow between ends that are not ours.
#[derive(Debug)]
pub struct KernelFlow {
    index: u32,
    client: Client,
    /// When the previous sample was taken, and what had been delivered then.
    last_sample: LastSample,
    /// Whether readings tell how often the timer fired.
    tells_timeouts: bool,
    /// Whether any has a congestion window.
    tells_cwnd: bool,
    pub(crate) flow_stats: FlowStats,
}

/// State of a connection that is not ours at one time. Counters are since it opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ConnectionSample {
    /// Bytes that the receiving application had taken.
    pub delivered: u64,
    /// Bytes acknowledged, in order.
    pub acked: u64,
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// Their payload.
    pub bytes: u64,
    /// Their IP packets.
    pub ip_bytes: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Of these, those found to have been unnecessary.
    pub spurious: u64,
    /// How often the retransmission timer fired, where it tells.
    pub timeouts: Option<u64>,
    /// The congestion window.
    pub cwnd: Bytes,
    /// The slow-start threshold, where it is finite.
    pub ssthresh: Option<Bytes>,
    /// Sent, neither acknowledged nor declared lost.
    pub in_flight: Bytes,
    /// The smoothed RTT, once there is one.
    pub srtt: Option<Duration>,
    /// How far samples lie from it, on average.
    pub rttvar: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The rate at which segments leave, where they are paced.
    pub pacing: Option<Rate>,
    /// The rate at which data was delivered lately.
    pub delivery: Option<Rate>,
    /// The state of the recovery epoch.
    pub state: RecoveryState,
    /// Time in which there was something to send or to be acknowledged.
    pub busy: Duration,
    /// Of this, time during which the receiver's window held the sender back.
    pub rwnd_limited: Duration,
    /// Of this, time during which its own buffer did.
    pub sndbuf_limited: Duration,
}

/// What the network did to a flow's data packets while the flow was measured.
#[derive(Clone, Debug, Default)]
pub struct PathStats {
    /// Packets dropped.
    pub dropped: u64,
    /// How long those that arrived had waited in queues.
    pub queue_delay: Histogram,
}

impl KernelFlow {
    /// The flow, before it begins. Its random streams are those of any other flow of this name.
    pub fn new(index: u32, spec: &FlowSpec, measure: &MeasureSpec, seed: u64) -> Self {
        let start = spec.drawn_start(seed);
        let application = stream(seed, &format!("flow {} application", spec.name));
        let mut flow_stats = FlowStats::new(start);
        if spec.workload.has_responses() {
            flow_stats.requests = Some(Box::new(RequestBook::new(index, measure.max_requests)));
        }
        Self {
            index,
            client: Client::new(spec.workload.clone(), start, application),
            last_sample: LastSample::new(start),
            tells_timeouts: false,
            tells_cwnd: false,
            flow_stats,
        }
    }

    /// When it begins, jitter included.
    pub fn start(&self) -> Instant {
        self.flow_stats.start
    }

    /// When its application next wants to do something by itself.
    pub fn next_time(&self) -> Option<Instant> {
        self.client.next_time()
    }

    /// What the application wants by now.
    pub fn on_time(&mut self, now: Instant) -> WriteRequest {
        self.client.on_time(now)
    }

    /// The connection is up.
    pub fn on_connected(&mut self, now: Instant) {
        self.client.on_connected(now);
    }

    /// Bytes of answers arrived.
    ///
    /// # Errors
    /// If nothing had been requested, which is a bug.
    pub fn on_answer(&mut self, now: Instant, bytes: u64) -> Result<(), String> {
        self.client.on_read(bytes);
        while let Some(answer) = self.client.poll_answer(now) {
            self.flow_stats.on_answer(&answer);
        }
        match self.client.surplus() {
            0 => Ok(()),
            surplus => Err(format!("flow {}: {surplus} bytes answer nothing", self.index)),
        }
    }

    /// The measured interval begins.
    pub fn begin_measurement(&mut self, now: Instant, reading: &ConnectionSample) {
        let totals = self.totals(reading);
        self.flow_stats.open(now, totals);
    }

    /// The flow has ended; the first ending counts.
    pub fn end_measurement(&mut self, now: Instant, reading: &ConnectionSample, ending: FlowEnd) {
        self.tells_timeouts = reading.timeouts.is_some();
        let totals = self.totals(reading);
        self.flow_stats.close(now, totals, ending);
    }

    /// Whether it has ended.
    pub fn is_closed(&self) -> bool {
        self.flow_stats.is_closed()
    }

    /// Why it failed, if it did and had delivered nothing in the measured interval.
    pub fn failure_without_data(&self) -> Option<&str> {
        self.flow_stats.failure().filter(|_| self.flow_stats.counts().delivered == 0)
    }

    /// A row of table `samples`; none after the flow's end.
    pub fn sample(&mut self, now: Instant, reading: &ConnectionSample) -> Option<SampleRow> {
        if !self.last_sample.is_before(now) || self.flow_stats.is_closed() {
            return None;
        }
        self.tells_cwnd |= reading.cwnd > Bytes::ZERO;
        self.flow_stats.cwnd.set(now, reading.cwnd);
        if let Some(srtt) = reading.srtt {
            self.flow_stats.on_rtt(srtt);
        }
        let goodput_mbps = self.last_sample.advance(now, reading.delivered);
        let millis = |duration: Option<Duration>| duration.map(Duration::as_millis_f64);
        Some(SampleRow {
            flow: self.index,
            t_s: now.as_secs_f64(),
            cwnd_bytes: reading.cwnd.get(),
            ssthresh_bytes: reading.ssthresh.map(Bytes::get),
            bytes_in_flight: reading.in_flight.get(),
            srtt_ms: millis(reading.srtt),
            rtt_ms: None,
            rttvar_ms: millis(reading.rttvar),
            rto_ms: reading.rto.as_millis_f64(),
            pacing_mbps: reading.pacing.map(Rate::as_mbit_f64),
            delivery_mbps: reading.delivery.map(Rate::as_mbit_f64),
            goodput_mbps,
            retransmits: reading.retransmits,
            acked_bytes: reading.acked,
            time_busy_s: Some(reading.busy.as_secs_f64()),
            time_rwnd_limited_s: Some(reading.rwnd_limited.as_secs_f64()),
            time_sndbuf_limited_s: Some(reading.sndbuf_limited.as_secs_f64()),
            state: state_name(reading.state),
            phase: "none",
            cc: Vec::new(),
        })
    }

    /// What the network did to it, which those who drive its ends do not see.
    pub fn set_passage(&mut self, passage: PathStats) {
        self.flow_stats.queue_delay = passage.queue_delay;
        self.flow_stats.set_dropped(passage.dropped);
    }

    /// What it cannot tell is null in its row.
    pub(crate) fn forget_unknown(&self, row: &mut FlowRow) {
        row.retransmits_fast = None;
        row.retransmits_rto = None;
        row.retransmits_tlp = None;
        row.timeouts = row.timeouts.filter(|_| self.tells_timeouts);
        row.time_cwnd_limited_s = None;
        row.time_app_limited_s = None;
        row.time_rto_s = None;
        row.cwnd_bytes_mean = row.cwnd_bytes_mean.filter(|_| self.tells_cwnd);
        row.cwnd_bytes_max = row.cwnd_bytes_max.filter(|_| self.tells_cwnd);
    }

    pub(crate) fn take_requests(&mut self) -> Vec<RequestRow> {
        self.flow_stats.take_requests()
    }

    fn totals(&self, reading: &ConnectionSample) -> Totals {
        let mut totals = Totals {
            delivered: reading.delivered,
            sent_ip_bytes: reading.ip_bytes,
            unanswered: self.client.unanswered(),
            ..Totals::default()
        };
        totals.stats.data_segments_sent = reading.segments;
        totals.stats.data_bytes_sent = reading.bytes;
        totals.stats.retransmits = reading.retransmits;
        totals.stats.retransmits_spurious = reading.spurious;
        totals.stats.timeouts = reading.timeouts.unwrap_or_default();
        totals.stats.rwnd_limited = reading.rwnd_limited;
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Ends, TransportSpec, Workload};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn flow(workload: Workload) -> (FlowSpec, KernelFlow) {
        let spec = FlowSpec {
            name: "a".to_owned(),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport: TransportSpec::Reliable(Box::default()),
            workload,
            start: at(100),
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        let flow = KernelFlow::new(0, &spec, &MeasureSpec::default(), 1);
        (spec, flow)
    }

    fn reading(delivered: u64) -> ConnectionSample {
        let segments = delivered / 1_000;
        ConnectionSample {
            delivered,
            segments,
            cwnd: Bytes(delivered),
            ..ConnectionSample::default()
        }
    }

    #[test]
    fn books_cover_what_lies_between_two_readings() {
        let (spec, mut flow) = flow(Workload::File { size: Bytes(9_000) });
        assert_eq!(
            flow.on_time(at(100)),
            WriteRequest { write: 9_000, close: true, withdraw: false }
        );
        flow.begin_measurement(at(1_000), &reading(1_000));
        let row = flow.sample(at(1_100), &reading(2_000)).expect("a row");
        // From its start on, since no sample came before.
        assert_eq!((row.cwnd_bytes, row.goodput_mbps), (2_000, 0.016));
        flow.end_measurement(at(2_000), &reading(9_000), FlowEnd::Completed);
        flow.end_measurement(at(3_000), &reading(0), FlowEnd::OutOfTime);
        assert_eq!(flow.sample(at(3_000), &reading(9_000)), None, "it is over");
        flow.set_passage(PathStats { dropped: 2, queue_delay: Histogram::new() });
        let mut row = flow.flow_stats.row(0, &spec, |_, _| Some(0.128));
        flow.forget_unknown(&mut row);
        assert_eq!(
            (row.delivered_bytes, row.sent_segments, row.loss_ratio),
            (8_000, 8, Some(0.25))
        );
        assert_eq!((row.goodput_mbps, row.share), (Some(0.064), Some(0.5)));
        assert_eq!((row.fct_s, row.completed), (Some(1.9), true));
        assert_eq!((row.timeouts, row.retransmits_fast, row.time_rto_s), (None, None, None));
    }

    #[test]
    fn answers_to_nothing_are_a_fault() {
        let (request, response, gap) = (Bytes(10), Bytes(100), Duration::ZERO);
        let (_, mut flow) = flow(Workload::Request { request, response, gap });
        assert_eq!(flow.next_time(), None, "it waits for the connection");
        flow.on_connected(at(140));
        assert_eq!(flow.on_time(at(140)).write, 10);
        assert_eq!(flow.on_answer(at(180), 100), Ok(()));
        assert_eq!(flow.flow_stats.take_requests()[0].latency_ms, 40.0);
        flow.end_measurement(at(190), &reading(10), FlowEnd::OutOfTime);
        assert!(flow.on_answer(at(200), 1).unwrap_err().contains("1 bytes answer nothing"));
    }
}

//! One struct per result table, one field per column.

use weir_units::Duration;

use crate::histogram::{Histogram, Spread};

/// Table `flows`: one row per flow. Counts, rates, delays and times cover the measured interval,
/// from the later of the flow's start and the end of the warm-up to the flow's end; `start_s`,
/// `end_s`, `fct_s`, `completed` and `failure` are about its whole life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    /// The flow's index in the scenario.
    pub flow: u32,
    /// Its name.
    pub name: String,
    /// Its transport as the scenario writes it: `rack/cubic`, `udp`.
    pub stack: String,
    /// When it began (jitter included).
    pub start_s: f64,
    /// When it ended: the last byte arrived, it was stopped, or it failed.
    pub end_s: Option<f64>,
    /// From its start to the arrival of its last byte at the receiving application; only for
    /// a file, and for all iterations of an all-reduce.
    pub fct_s: Option<f64>,
    /// `fct_s` over the shortest that it could have been: size over the rate of the slowest link
    /// forward, and a round trip without queues.
    pub slowdown: Option<f64>,
    /// Whether it did all that it was asked to: delivered its size, or ran until it was stopped.
    pub completed: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Bytes handed to the receiving application, in order.
    pub delivered_bytes: u64,
    /// `delivered_bytes` over the measured interval; null for a flow that ended before it began.
    pub goodput_mbps: Option<f64>,
    /// IP bytes of data packets that the sender put on the wire, over the measured interval.
    pub throughput_mbps: Option<f64>,
    /// Goodput over the capacity of the monitored link on the flow's route; of the slowest link
    /// where none is monitored.
    pub share: Option<f64>,
    /// Data segments sent, retransmissions included.
    pub sent_segments: u64,
    /// Payload bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Of these, repairs triggered by acknowledgements; null where the kernel does not report it.
    pub retransmits_fast: Option<u64>,
    /// Of these, repairs after a retransmission timeout; null where the kernel does not tell.
    pub retransmits_rto: Option<u64>,
    /// Of these, tail loss probes; null where the kernel does not tell.
    pub retransmits_tlp: Option<u64>,
    /// Of these, those found to have been unnecessary.
    pub retransmits_spurious: u64,
    /// `retransmits / sent_segments`.
    pub retransmit_ratio: f64,
    /// Data packets that the network dropped over data packets sent.
    pub loss_ratio: Option<f64>,
    /// Retransmission timeouts; null where the kernel does not tell.
    pub timeouts: Option<u64>,
    /// Mean of the raw round-trip time samples; where the kernel keeps these to itself, of its smoothed
    /// RTT in table `samples`, as are the columns below.
    pub rtt_ms_mean: Option<f64>,
    /// Median RTT sample.
    pub rtt_ms_p50: Option<f64>,
    /// 95th percentile of the RTT samples.
    pub rtt_ms_p95: Option<f64>,
    /// 99th percentile of the RTT samples.
    pub rtt_ms_p99: Option<f64>,
    /// Smallest RTT sample.
    pub rtt_ms_min: Option<f64>,
    /// Largest RTT sample.
    pub rtt_ms_max: Option<f64>,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Mean time that an arriving data packet took from one end to the other; null where packets are the
    /// kernel's, as are the columns below.
    pub delay_ms_mean: Option<f64>,
    /// Median of it.
    pub delay_ms_p50: Option<f64>,
    /// 95th percentile of it.
    pub delay_ms_p95: Option<f64>,
    /// 99th percentile of it.
    pub delay_ms_p99: Option<f64>,
    /// The longest.
    pub delay_ms_max: Option<f64>,
    /// Links, or hops over radio, that an arriving data packet had crossed on average.
    pub hops_mean: Option<f64>,
    /// How often the route over radio between the flow's ends changed, at either end; null over links.
    pub route_changes: Option<u64>,
    /// The node of a radio network where its sender is; null over links.
    pub from_node: Option<u32>,
    /// The node where its receiver is; null over links.
    pub to_node: Option<u32>,
    /// Mean time that an arriving data packet had waited in queues, all hops together.
    pub queue_delay_ms_mean: Option<f64>,
    /// Median of it.
    pub queue_delay_ms_p50: Option<f64>,
    /// 95th percentile of it.
    pub queue_delay_ms_p95: Option<f64>,
    /// 99th percentile of it.
    pub queue_delay_ms_p99: Option<f64>,
    /// The longest.
    pub queue_delay_ms_max: Option<f64>,
    /// Data packets that arrived.
    pub queue_delay_samples: u64,
    /// Requests answered; null where the flow makes none.
    pub requests: Option<u64>,
    /// Of these, the number of first ones with a row in table `requests`; the columns below are about all.
    pub requests_kept: Option<u64>,
    /// Requests made but not answered by the flow's end, whenever they were made.
    pub requests_unanswered: Option<u64>,
    /// Mean time from a request to its complete answer.
    pub request_latency_ms_mean: Option<f64>,
    /// Median of it.
    pub request_latency_ms_p50: Option<f64>,
    /// 90th percentile of it.
    pub request_latency_ms_p90: Option<f64>,
    /// 99th percentile of it.
    pub request_latency_ms_p99: Option<f64>,
    /// 99.9th percentile of it.
    pub request_latency_ms_p999: Option<f64>,
    /// The longest.
    pub request_latency_ms_max: Option<f64>,
    /// The congestion window, averaged over time.
    pub cwnd_bytes_mean: Option<f64>,
    /// Its largest value.
    pub cwnd_bytes_max: Option<u64>,
    /// Time during which the congestion window held the sender back; null where the kernel does not
    /// tell.
    pub time_cwnd_limited_s: Option<f64>,
    /// Time during which the receiver's window did.
    pub time_rwnd_limited_s: f64,
    /// Time during which the application had nothing to send; null where the kernel does not tell.
    pub time_app_limited_s: Option<f64>,
    /// Time spent waiting for a retransmission timeout; null where the kernel does not tell.
    pub time_rto_s: Option<f64>,
}

impl FlowRow {
    /// Fills in the RTT columns.
    pub fn set_rtt(&mut self, rtt: &Spread) {
        self.rtt_ms_mean = rtt.mean_ms;
        self.rtt_ms_p50 = rtt.p50_ms;
        self.rtt_ms_p95 = rtt.p95_ms;
        self.rtt_ms_p99 = rtt.p99_ms;
        self.rtt_ms_min = rtt.min_ms;
        self.rtt_ms_max = rtt.max_ms;
        self.rtt_samples = rtt.samples;
    }

    /// Fills in the columns about the way from one end to the other.
    pub fn set_delay(&mut self, delay: &Spread) {
        self.delay_ms_mean = delay.mean_ms;
        self.delay_ms_p50 = delay.p50_ms;
        self.delay_ms_p95 = delay.p95_ms;
        self.delay_ms_p99 = delay.p99_ms;
        self.delay_ms_max = delay.max_ms;
    }

    /// Fills in the queueing delay columns.
    pub fn set_queue_delay(&mut self, delay: &Spread) {
        self.queue_delay_ms_mean = delay.mean_ms;
        self.queue_delay_ms_p50 = delay.p50_ms;
        self.queue_delay_ms_p95 = delay.p95_ms;
        self.queue_delay_ms_p99 = delay.p99_ms;
        self.queue_delay_ms_max = delay.max_ms;
        self.queue_delay_samples = delay.samples;
    }

    /// Fills in the columns about requests: the latencies of those that were answered, and how many
    /// were not.
    pub fn set_requests(&mut self, latencies: &Histogram, unanswered: u64) {
        let millis = |latency: Option<Duration>| latency.map(Duration::as_millis_f64);
        let at = |permille| millis(latencies.percentile(permille));
        self.requests = Some(latencies.count());
        self.requests_unanswered = Some(unanswered);
        self.request_latency_ms_mean = latencies.spread().mean_ms;
        self.request_latency_ms_p50 = at(500);
        self.request_latency_ms_p90 = at(900);
        self.request_latency_ms_p99 = at(990);
        self.request_latency_ms_p999 = at(999);
        self.request_latency_ms_max = millis(latencies.max());
    }
}

/// Table `samples`: the state of a flow's sender at regular times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleRow {
    /// The flow.
    pub flow: u32,
    /// When.
    pub t_s: f64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; null while infinite or where the controller has none.
    pub ssthresh_bytes: Option<u64>,
    /// Sent, neither acknowledged nor declared lost.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
    /// The newest RTT sample.
    pub rtt_ms: Option<f64>,
    /// How far RTT samples lie from `srtt_ms`, on average.
    pub rttvar_ms: Option<f64>,
    /// Retransmission timeout, with back-off.
    pub rto_ms: f64,
    /// Pacing rate, where there is one.
    pub pacing_mbps: Option<f64>,
    /// Rate at which data was delivered lately, by the sender's own estimate (the newest that the
    /// application did not bound).
    pub delivery_mbps: Option<f64>,
    /// Goodput since the previous sample.
    pub goodput_mbps: f64,
    /// Segments sent again since the flow began.
    pub retransmits: u64,
    /// Bytes that the receiver had acknowledged, in order, since the flow began.
    pub acked_bytes: u64,
    /// Time since the flow began in which there was something to send or to be acknowledged; only the
    /// kernel keeps this.
    pub time_busy_s: Option<f64>,
    /// Time since the flow began during which the receiver's window held the sender back.
    pub time_rwnd_limited_s: Option<f64>,
    /// Time since the flow began during which the sender's own buffer did; only the kernel has one.
    pub time_sndbuf_limited_s: Option<f64>,
    /// State of the recovery epoch: `open`, `disorder`, `cwr`, `recovery`, `loss`.
    pub state: &'static str,
    /// The controller's own phase: `slow_start`, `probe_bw`, …
    pub phase: &'static str,
    /// The controller's internal variables. Each is a column `cc.NAME`.
    pub cc: Vec<(&'static str, f64)>,
}

/// Table `acks`: one row per segment that a sender received after the handshake, with the sender's
/// state just before it took the segment in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AckRow {
    /// The flow.
    pub flow: u32,
    /// When the segment arrived.
    pub t_s: f64,
    /// Bytes that had been acknowledged, in order.
    pub acked_bytes: u64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; null while infinite or where the controller has none.
    pub ssthresh_bytes: Option<u64>,
    /// Smoothed round-trip time.
    pub srtt_ms: Option<f64>,
}

/// Table `queues`: the state of a link's queue at regular times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueRow {
    /// The link.
    pub link: u32,
    /// When.
    pub t_s: f64,
    /// Packets in the queue, the one being sent included.
    pub packets: u64,
    /// Bytes in the queue, the packet being sent included.
    pub bytes: u64,
    /// How long the packet that left last had waited.
    pub queue_delay_ms: f64,
    /// Packets that the queue refused or dropped, since the beginning.
    pub drops: u64,
    /// Packets marked, since the beginning.
    pub marks: u64,
    /// Bytes sent over what the link could have sent since the previous sample; null where it has
    /// no capacity.
    pub utilisation: Option<f64>,
}

/// Table `links`: one row per link, over the run without its warm-up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// The link's index in the scenario.
    pub link: u32,
    /// Its name.
    pub name: String,
    /// Whether it is a bottleneck that the scenario watches: the first such link is what the
    /// summary's utilisation is about.
    pub monitored: bool,
    /// Its mean capacity; null where it is infinite.
    pub capacity_mbps: Option<f64>,
    /// Bytes sent over what it could have sent; null where that is infinite.
    pub utilisation: Option<f64>,
    /// Packets offered to it.
    pub offered_packets: u64,
    /// Packets that came out of it.
    pub delivered_packets: u64,
    /// Bytes that came out of it.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue: u64,
    /// Packets dropped because the switch had no memory left for the port.
    pub dropped_buffer: u64,
    /// Packets lost to impairments.
    pub dropped_loss: u64,
    /// Packets dropped by active queue management.
    pub dropped_aqm: u64,
    /// Packets that a policer dropped.
    pub dropped_policer: u64,
    /// Packets that the queue marked (ECN).
    pub marked: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// Extra copies made.
    pub duplicated: u64,
    /// Packets held back so that later ones overtook them.
    pub reordered: u64,
    /// Packets in the queue, the one being sent included, averaged over time.
    pub queue_packets_mean: f64,
    /// The most packets that waited.
    pub queue_packets_max: u64,
    /// Mean time that a packet waited.
    pub queue_delay_ms_mean: Option<f64>,
    /// Median of it.
    pub queue_delay_ms_p50: Option<f64>,
    /// 95th percentile of it.
    pub queue_delay_ms_p95: Option<f64>,
    /// 99th percentile of it.
    pub queue_delay_ms_p99: Option<f64>,
    /// The longest.
    pub queue_delay_ms_max: Option<f64>,
    /// How often priority flow control made it pause; null where there is none.
    pub pauses: Option<u64>,
    /// Share of the time for which it did.
    pub paused_ratio: Option<f64>,
}

impl LinkRow {
    /// Fills in the queueing delay columns.
    pub fn set_queue_delay(&mut self, delay: &Spread) {
        self.queue_delay_ms_mean = delay.mean_ms;
        self.queue_delay_ms_p50 = delay.p50_ms;
        self.queue_delay_ms_p95 = delay.p95_ms;
        self.queue_delay_ms_p99 = delay.p99_ms;
        self.queue_delay_ms_max = delay.max_ms;
    }
}

/// Table `requests`: one row per answered request, as many of each flow as the scenario asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestRow {
    /// The flow.
    pub flow: u32,
    /// Which request of the flow, counted from 0.
    pub request: u64,
    /// When it was made.
    pub t_s: f64,
    /// From then until its answer was complete.
    pub latency_ms: f64,
}

/// Table `arrivals`: one row per connection of a flow of many that came in the measured
/// interval, in order, as many of each flow as the scenario asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrivalRow {
    /// The flow.
    pub flow: u32,
    /// Which connection of the flow, counted from 0.
    pub arrival: u64,
    /// Number of the host where it begins, in a fabric with `from` or `to` of `*`.
    pub from_node: Option<u32>,
    /// Number of the host where it ends, likewise.
    pub to_node: Option<u32>,
    /// When it came: the handshake begins.
    pub start_s: f64,
    /// Bytes to be transferred.
    pub size_bytes: u64,
    /// From then to the arrival of the last byte at the receiving application; null if that did not
    /// come in time.
    pub fct_s: Option<f64>,
    /// `fct_s` over the shortest that it could have been without a handshake: size over the rate of the
    /// slowest link forward, and a round trip without queues.
    pub slowdown: Option<f64>,
    /// The same as HPCC's evaluation prints it: without the handshake, the ideal time with headers and with
    /// a packet's transmission at each hop, and at least 1.
    pub slowdown_hpcc: Option<f64>,
    /// Whether the last byte arrived; if not, the run was over first, or there is a `failure`.
    pub completed: bool,
    /// Bytes handed to the receiving application, in order.
    pub delivered_bytes: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Why the connection failed, if it did.
    pub failure: Option<String>,
}

/// Table `events`: single happenings, as many as the scenario asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventRow {
    /// When.
    pub t_s: f64,
    /// The flow it concerns.
    pub flow: Option<u32>,
    /// The link it happened on.
    pub link: Option<u32>,
    /// What happened: `start`, `connected`, `dropped`, `timeout`, `finished`, `failed`, …
    pub kind: &'static str,
    /// Stream offset or datagram number.
    pub seq: Option<u64>,
    /// Bytes.
    pub len: Option<u32>,
    /// In words.
    pub detail: String,
}

/// The one row that stands for the run as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryRow {
    /// Jain's fairness index over the flows' goodputs; null with fewer than two flows.
    pub jain_index: Option<f64>,
    /// Utilisation of the monitored link over the run without its warm-up.
    pub utilisation: Option<f64>,
    /// Goodput of all flows together, over the time in which at least one was measured.
    pub goodput_mbps: Option<f64>,
    /// Throughput of all flows together, over the same time.
    pub throughput_mbps: Option<f64>,
    /// Events that the world handled, those of a radio network's own agenda among them.
    pub events: u64,
    /// Data packets that arrived at their receivers.
    pub data_packets: u64,
    /// Hash over every delivery: time, link, flow, sequence number.
    pub trace_hash: u64,
    /// Simulated time, or real time where that is the world's.
    pub sim_s: f64,
    /// The links whose ports paused each other in a cycle, which ended the run; null without one.
    pub deadlock: Option<String>,
    /// How well a run in real time kept to the time: `good`, or what was not. Null in the simulator,
    /// as are the columns below.
    pub health: Option<String>,
    /// Median of the times by which packets left their links, and timers fired, later than due.
    pub late_ms_p50: Option<f64>,
    /// Their 99th percentile.
    pub late_ms_p99: Option<f64>,
    /// The largest.
    pub late_ms_max: Option<f64>,
    /// Share of them within a millisecond: what was achieved of what the links' rates ask for.
    pub on_time_ratio: Option<f64>,
    /// Datagrams that the machine lost although no link dropped them.
    pub unasked_drops: Option<u64>,
    /// Processor time of the world's thread over real time.
    pub cpu_ratio: Option<f64>,
    /// Settings of the kernel's connections, made before they opened; null where they are ours.
    pub settings: Option<String>,
}

/// Jain's fairness index `(Σx)² / (n · Σx²)` (Jain, Chiu, Hawe, 1984): 1 when all are equal, `1/n`
/// when one has everything. `None` for fewer than two values, or when all are zero.
pub fn jain_index(values: &[f64]) -> Option<f64> {
    jain_of_sums(values.len(), values.iter().sum(), values.iter().map(|x| x * x).sum())
}

/// [`jain_index`] from the sums of `count` values and of their squares.
pub fn jain_of_sums(count: usize, sum: f64, squares: f64) -> Option<f64> {
    (count >= 2 && squares > 0.0).then(|| sum * sum / (count as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_a_share_for_a_winner() {
        assert_eq!(jain_index(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain_index(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[1.0]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }
}

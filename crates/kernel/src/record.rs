//! Record of one host's part in a run: everything that its flows were given, so that another machine can
//! replay it.

use serde::{Deserialize, Serialize};
use weir_cc::RecoveryState;
use weir_scene::{ConnectionSample, FlowEnd, KernelFlow, WriteRequest};
use weir_trace::SampleRow;
use weir_units::{Bytes, Duration, Instant, Rate};

/// What one host has measured. Times are nanoseconds of the run on the host's clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRecord {
    /// Flows that it sent.
    pub(super) sent: Vec<SentFlow>,
    /// Flows that it received.
    pub(super) received: Vec<ReceivedFlow>,
    /// Number of actions of applications and samples, and how many of them were late.
    pub(super) actions: [u64; 2],
    /// Processor time of each thread.
    pub(super) cpu: Vec<u64>,
    /// Datagrams of our own flows for which its receive buffer had no space.
    pub(super) dropped: u64,
    /// Time that the run took.
    pub(super) real: u64,
    /// Release of the kernel and its TCP settings.
    pub(super) settings: String,
}

/// The sending end of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentFlow {
    /// Index of the flow in the scenario.
    pub(super) flow: u32,
    /// In the order of time.
    pub(super) steps: Vec<(u64, Step)>,
    /// Rows of table `events`: time, index of the kind in [`EVENT_KINDS`], detail.
    pub(super) events: Vec<(u64, usize, String)>,
}

/// The receiving end of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceivedFlow {
    /// Index of the flow in the scenario.
    pub(super) flow: u32,
    /// Bytes received until a time.
    pub(super) log: Vec<(u64, u64)>,
    /// When all of a file had arrived.
    pub(super) completed: Option<u64>,
}

/// Something that a flow was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// The connection was open.
    Connected,
    /// The application was due.
    Due,
    /// Number of bytes of answers.
    Answer(u64),
    /// State of the connection when the warm-up was over.
    Open(Numbers),
    /// State of the connection at a sample.
    Sample(Numbers),
    /// State of the connection at the end of the flow.
    Close(Numbers, Ending),
}

/// How the sending end of a flow ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// The other end closed the connection after all data.
    Closed,
    /// It was stopped.
    Stopped,
    /// The run was over first.
    OutOfTime,
    /// It failed, and why.
    Failed(String),
}

/// A [`ConnectionSample`] in numbers, without what the receiver has read.
pub(super) type Numbers = [Option<u64>; 19];

/// What happens to the sending end of a flow, by its name in table `events`.
pub(super) const EVENT_KINDS: [&str; 11] = [
    "start",
    "connected",
    "completed",
    "stopped",
    "failed",
    "timeout",
    "open",
    "disorder",
    "cwr",
    "recovery",
    "loss",
];

/// A flow of the kernel's, with a log of what it was given if another machine is to replay it.
#[derive(Debug)]
pub(super) struct LoggedFlow {
    flow: KernelFlow,
    log: Option<Vec<(u64, Step)>>,
}

impl LoggedFlow {
    /// A flow whose other end is on this machine too.
    pub(super) fn plain(flow: KernelFlow) -> Self {
        Self { flow, log: None }
    }

    /// A flow whose other end is on another machine.
    pub(super) fn logged(flow: KernelFlow) -> Self {
        Self { flow, log: Some(Vec::new()) }
    }

    pub(super) fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    pub(super) fn start(&self) -> Instant {
        self.flow.start()
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        self.flow.next_time()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.flow.is_closed()
    }

    pub(super) fn on_time(&mut self, now: Instant) -> WriteRequest {
        self.note(now, || Step::Due);
        self.flow.on_time(now)
    }

    pub(super) fn on_connected(&mut self, now: Instant) {
        self.note(now, || Step::Connected);
        self.flow.on_connected(now);
    }

    pub(super) fn on_answer(&mut self, now: Instant, bytes: u64) -> Result<(), String> {
        self.note(now, || Step::Answer(bytes));
        self.flow.on_answer(now, bytes)
    }

    pub(super) fn begin_measurement(&mut self, now: Instant, reading: &ConnectionSample) {
        self.note(now, || Step::Open(numbers(reading)));
        self.flow.begin_measurement(now, reading);
    }

    pub(super) fn end_measurement(
        &mut self,
        now: Instant,
        reading: &ConnectionSample,
        ending: FlowEnd,
    ) {
        if !self.flow.is_closed() {
            self.note(now, || Step::Close(numbers(reading), ending.clone().into()));
        }
        self.flow.end_measurement(now, reading, ending);
    }

    pub(super) fn sample(&mut self, now: Instant, reading: &ConnectionSample) -> Option<SampleRow> {
        if self.log.is_none() {
            return self.flow.sample(now, reading);
        }
        if !self.flow.is_closed() {
            self.note(now, || Step::Sample(numbers(reading)));
        }
        // Its row is made where all records are put together.
        None
    }

    pub(super) fn into_flow(self) -> KernelFlow {
        self.flow
    }

    pub(super) fn into_steps(self) -> Vec<(u64, Step)> {
        self.log.unwrap_or_default()
    }

    fn note(&mut self, now: Instant, step: impl FnOnce() -> Step) {
        if let Some(log) = &mut self.log {
            log.push((now.as_nanos(), step()));
        }
    }
}

impl From<FlowEnd> for Ending {
    fn from(end: FlowEnd) -> Self {
        match end {
            FlowEnd::Completed => Self::Closed,
            FlowEnd::Stopped => Self::Stopped,
            FlowEnd::OutOfTime => Self::OutOfTime,
            FlowEnd::Failed(why) => Self::Failed(why),
        }
    }
}

/// The fields of a sample in a fixed order; [`sample`] is the inverse.
pub(super) fn numbers(reading: &ConnectionSample) -> Numbers {
    let nanos = |duration: Duration| duration.as_nanos();
    let bits = |rate: Rate| rate.as_bits_per_sec();
    let state = STATES.iter().position(|state| *state == reading.state);
    [
        Some(reading.acked),
        Some(reading.segments),
        Some(reading.bytes),
        Some(reading.ip_bytes),
        Some(reading.retransmits),
        Some(reading.spurious),
        reading.timeouts,
        Some(nanos(reading.busy)),
        Some(nanos(reading.rwnd_limited)),
        Some(nanos(reading.sndbuf_limited)),
        Some(reading.cwnd.get()),
        reading.ssthresh.map(Bytes::get),
        Some(reading.in_flight.get()),
        reading.srtt.map(nanos),
        reading.rttvar.map(nanos),
        Some(nanos(reading.rto)),
        reading.pacing.map(bits),
        reading.delivery.map(bits),
        state.map(|index| index as u64),
    ]
}

/// The sample with these fields, and what the receiver had read.
pub(super) fn sample(numbers: &Numbers, delivered: u64) -> ConnectionSample {
    let count = |index: usize| numbers[index].unwrap_or_default();
    let time = |index: usize| numbers[index].map(Duration::from_nanos);
    let rate = |index: usize| numbers[index].map(Rate::from_bits_per_sec);
    ConnectionSample {
        delivered,
        acked: count(0),
        segments: count(1),
        bytes: count(2),
        ip_bytes: count(3),
        retransmits: count(4),
        spurious: count(5),
        timeouts: numbers[6],
        busy: time(7).unwrap_or_default(),
        rwnd_limited: time(8).unwrap_or_default(),
        sndbuf_limited: time(9).unwrap_or_default(),
        cwnd: Bytes(count(10)),
        ssthresh: numbers[11].map(Bytes),
        in_flight: Bytes(count(12)),
        srtt: time(13),
        rttvar: time(14),
        rto: time(15).unwrap_or_default(),
        pacing: rate(16),
        delivery: rate(17),
        state: STATES.get(count(18) as usize).copied().unwrap_or_default(),
    }
}

/// The first of the numbers are counters, which never decrease.
pub(super) const COUNTERS: usize = 10;

const STATES: [RecoveryState; 5] = [
    RecoveryState::Open,
    RecoveryState::Disorder,
    RecoveryState::Cwr,
    RecoveryState::Recovery,
    RecoveryState::Loss,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_after_it_was_sent() {
        let reading = ConnectionSample {
            delivered: 7,
            acked: 1,
            segments: 2,
            bytes: 3,
            ip_bytes: 4,
            retransmits: 5,
            spurious: 6,
            timeouts: Some(8),
            cwnd: Bytes(9),
            ssthresh: None,
            in_flight: Bytes(10),
            srtt: Some(Duration::from_millis(11)),
            rttvar: None,
            rto: Duration::from_millis(12),
            pacing: Some(Rate::from_mbit(13)),
            delivery: None,
            state: RecoveryState::Recovery,
            busy: Duration::from_millis(14),
            rwnd_limited: Duration::from_millis(15),
            sndbuf_limited: Duration::from_millis(16),
        };
        assert_eq!(sample(&numbers(&reading), 7), reading);
    }
}

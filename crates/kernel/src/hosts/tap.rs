//! What a path test records of our own flows that a host sends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use weir_scene::{Packet, Wire};
use weir_trace::{CapturedPacket, PcapngWriter};
use weir_units::{Duration, Instant};

/// The record of one host, complete after the run.
#[derive(Debug, Default)]
pub struct PathLog {
    /// A capture: a pcapng file with the headers of packets, which have the addresses and ports of a simulated run.
    pub packets: Vec<u8>,
    /// Round trips of requests that share a flow with its other data.
    pub latencies: Vec<FlowLatency>,
    /// Datagrams that a packet filter of this host dropped.
    pub refused: u64,
}

/// The time until data was acknowledged, with all data before it, that an application had ready at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLatency {
    /// Index of the flow.
    pub flow: u32,
    /// Since the start of the run.
    pub asked: Duration,
    /// Until the acknowledgement.
    pub latency: Duration,
}

/// Where the record is after the run.
pub type SharedPathLog = Arc<Mutex<PathLog>>;

/// Recorder of one host, while the run is in progress.
pub(super) struct Tap {
    file: PcapngWriter<Vec<u8>>,
    wire: Wire,
    /// Packets that are still recorded.
    left: u64,
    requests: BTreeMap<u32, Requests>,
    latencies: Vec<FlowLatency>,
    refused: u64,
    log: SharedPathLog,
}

/// Requests of one flow, one at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    /// Bytes of the flow that were sent so far.
    sent: u64,
    /// When the next request is due.
    due: Instant,
    /// When the one that is unanswered was made, and how many bytes its answer acknowledges.
    asked: Option<(Instant, u64)>,
}

impl Tap {
    pub(super) fn new(log: SharedPathLog) -> Self {
        let interfaces = ["host".to_owned()];
        let file = PcapngWriter::new(Vec::new(), "weir", &interfaces, HEADERS);
        Self {
            file: file.expect("memory takes it"),
            wire: Wire::default(),
            left: MOST_PACKETS,
            requests: BTreeMap::new(),
            latencies: Vec::new(),
            refused: 0,
            log,
        }
    }

    /// Records a packet that was sent or received.
    pub(super) fn record(&mut self, packet: &Packet, at: Instant) {
        let Some(left) = self.left.checked_sub(1) else { return };
        self.left = left;
        let captured = CapturedPacket {
            interface: 0,
            nanos: (at - Instant::ZERO).as_nanos(),
            bytes: self.wire.bytes(packet),
            len: packet.ip_len,
            is_damaged: false,
        };
        self.file.write(&captured).expect("memory takes it");
    }

    /// A flow sends its bytes up to `end`.
    pub(super) fn on_sent(&mut self, flow: u32, end: u64) {
        let requests = self.requests.entry(flow).or_default();
        requests.sent = requests.sent.max(end);
    }

    /// The other end has acknowledged `acked` bytes of a flow.
    pub(super) fn on_acked(&mut self, flow: u32, acked: u64, now: Instant) {
        let Some(requests) = self.requests.get_mut(&flow) else { return };
        if let Some((at, end)) = requests.asked
            && acked >= end
        {
            requests.asked = None;
            let asked = at - Instant::ZERO;
            self.latencies.push(FlowLatency { flow, asked, latency: now - at });
        }
        if requests.asked.is_none() && now >= requests.due && requests.sent > 0 {
            // Its first byte is the next one that is sent.
            requests.asked = Some((now, requests.sent + 1));
            requests.due = now + BETWEEN_REQUESTS;
        }
    }

    /// A packet filter of this host dropped a datagram.
    pub(super) fn on_refused(&mut self) {
        self.refused += 1;
    }

    pub(super) fn finish(self) {
        let Self { file, latencies, refused, log, .. } = self;
        *log.lock().expect("no thread panics with it") =
            PathLog { packets: file.into_inner(), latencies, refused };
    }
}

/// The longest headers of IPv4 and TCP.
const HEADERS: u32 = 80;
/// Packets of a capture: about 35 MB.
const MOST_PACKETS: u64 = 300_000;
/// As of the requests of a path test over the kernel's TCP.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_when_the_next_byte_is_acknowledged() {
        let log = SharedPathLog::default();
        let mut tap = Tap::new(log.clone());
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        tap.on_acked(0, 0, at(1));
        tap.on_sent(0, 1_000);
        tap.on_acked(0, 0, at(10));
        tap.on_sent(0, 2_000);
        tap.on_acked(0, 1_000, at(30));
        tap.on_acked(0, 2_000, at(50));
        tap.on_acked(0, 2_000, at(209));
        tap.on_acked(0, 2_000, at(210));
        tap.on_sent(0, 3_000);
        tap.on_acked(0, 3_000, at(310));
        tap.on_refused();
        tap.finish();
        let log = log.lock().unwrap();
        let latency = |asked, latency| FlowLatency {
            flow: 0,
            asked: Duration::from_millis(asked),
            latency: Duration::from_millis(latency),
        };
        assert_eq!(log.latencies, [latency(10, 40), latency(210, 100)]);
        assert_eq!(log.refused, 1);
    }
}

//! Recording of the packets of our own flows that a host sends.

use std::sync::{Arc, Mutex};

use weir_scene::{Packet, Wire};
use weir_trace::{CapturedPacket, PcapngWriter};
use weir_units::Instant;

/// A capture in memory, complete after the run: a pcapng file with the headers of packets, which have the
/// addresses and ports of a simulated run.
pub type PacketLog = Arc<Mutex<Vec<u8>>>;

/// Capture of one host, while the run is in progress.
pub(super) struct Tap {
    file: PcapngWriter<Vec<u8>>,
    wire: Wire,
    /// Packets that are still recorded.
    left: u64,
    log: PacketLog,
}

impl Tap {
    pub(super) fn new(log: PacketLog) -> Self {
        let interfaces = ["host".to_owned()];
        let file = PcapngWriter::new(Vec::new(), "weir", &interfaces, HEADERS);
        Self {
            file: file.expect("memory takes it"),
            wire: Wire::default(),
            left: MOST_PACKETS,
            log,
        }
    }

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

    pub(super) fn finish(self) {
        *self.log.lock().expect("no thread panics with it") = self.file.into_inner();
    }
}

/// The longest headers of IPv4 and TCP.
const HEADERS: u32 = 80;
/// Packets of a capture: about 35 MB.
const MOST_PACKETS: u64 = 300_000;

//! What became of a transfer, for either carrier.

use std::net::SocketAddr;

use weir_sockets::clock;
use weir_transport::{Connection, Stats};
use weir_units::Duration;

use super::TransferError;
use super::tree::Skipped;
use crate::file::{OutgoingFile, Verdict};

/// What became of a transfer.
#[derive(Debug)]
pub struct Sent {
    /// The files, and what became of each.
    pub files: Vec<OutgoingFile>,
    /// What was found in folders and not sent.
    pub skipped: Vec<Skipped>,
    /// Who received them.
    pub remote: SocketAddr,
    /// The machine's monotonic clock just before the first connection was opened,
    pub began_ns: u64,
    /// and when the last verdict was there, or the end.
    pub ended_ns: u64,
    /// Counters over all connections.
    pub segments: u64,
    /// Data segments that were sent again.
    pub retransmits: u64,
    /// Payload bytes that were sent, again or not.
    pub bytes_sent: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// How often the connection was opened anew.
    pub reconnects: u64,
    /// The smoothed round trip at the end.
    pub srtt: Option<Duration>,
    /// Why it is not complete, if anything but the files is to blame.
    pub error: Option<TransferError>,
}

impl Sent {
    pub(super) fn to(remote: SocketAddr) -> Self {
        Self {
            files: Vec::new(),
            skipped: Vec::new(),
            remote,
            began_ns: clock::monotonic_nanos(),
            ended_ns: 0,
            segments: 0,
            retransmits: 0,
            bytes_sent: 0,
            timeouts: 0,
            reconnects: 0,
            srtt: None,
            error: None,
        }
    }

    /// Whether every file is where it should be.
    pub fn is_complete(&self) -> bool {
        let arrived = |verdict: &Option<Verdict>| {
            matches!(verdict, Some(Verdict::Kept { .. } | Verdict::Already { .. }))
        };
        let nothing_missing = !self.skipped.iter().any(|skipped| skipped.is_missing);
        self.error.is_none()
            && nothing_missing
            && self.files.iter().all(|file| arrived(&file.verdict))
    }

    pub(super) fn count(&mut self, connection: &Connection) {
        let Stats { data_segments_sent, retransmits, data_bytes_sent, timeouts, .. } =
            *connection.stats();
        self.segments += data_segments_sent;
        self.retransmits += retransmits;
        self.bytes_sent += data_bytes_sent;
        self.timeouts += timeouts;
        self.srtt = connection.snapshot().srtt.or(self.srtt);
    }
}

//! How much of a file its sender has brought to the receiver, by which it knows whether connections still make
//! progress.

/// How much of a file was brought to the receiver, over all connections.
#[derive(Clone, Debug, Default)]
pub(super) struct TransferredBytes {
    /// What is there now,
    there: u64,
    /// and what was there and had to be sent again.
    lost: u64,
    /// How often the receiver has lost something.
    losses: u32,
    /// Up to where the file was acknowledged on the present connection.
    acked: u64,
}

impl TransferredBytes {
    /// All of it, whatever became of it: more after every connection that has made progress.
    pub(super) fn total(&self) -> u64 {
        self.there + self.lost
    }

    /// Whether an earlier connection has left something of it at the receiver.
    pub(super) fn is_there_in_part(&self) -> bool {
        self.there > 0
    }

    /// The file is announced on another connection.
    pub(super) fn on_announced(&mut self) {
        self.acked = 0;
    }

    /// The receiver reports how many bytes it has. Those that it acknowledged while it was asked are not included.
    pub(super) fn on_present(&mut self, bytes: u64) {
        let there = bytes.max(self.acked);
        let lost = self.there.saturating_sub(there);
        // A receiver that loses everything again and again is given up.
        if lost > 0 && self.losses < MOST_LOSSES {
            self.losses += 1;
            self.lost += lost;
        }
        self.there = there;
    }

    /// The file is acknowledged up to `end`.
    pub(super) fn on_acked(&mut self, end: u64) {
        self.acked = end;
        self.there = self.there.max(end);
    }

    /// Damaged or missing bytes of a file that is repaired were acknowledged.
    pub(super) fn on_repaired(&mut self, bytes: u64) {
        self.there += bytes;
    }

    /// What is there has another hash.
    pub(super) fn on_mismatch(&mut self) {
        self.lost += std::mem::take(&mut self.there);
    }
}

/// How often what a receiver has lost counts as brought.
const MOST_LOSSES: u32 = 10;

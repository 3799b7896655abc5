//! Packet-timed round trips, as all versions of BBR count them (draft-ietf-ccwg-bbr §5.5.1).

use weir_units::Bytes;

/// A round trip: it ends when something sent after its start is delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    pub(crate) count: u64,
    /// Whether the present acknowledgement starts one.
    pub(crate) start: bool,
    next_delivered: Bytes,
}

impl Round {
    /// Processes an acknowledgement, after which `delivered` bytes are delivered, of a segment that left when
    /// `prior_delivered` were. Returns whether it starts a round.
    pub(crate) fn update(&mut self, delivered: Bytes, prior_delivered: Bytes) -> bool {
        self.start = prior_delivered >= self.next_delivered;
        if self.start {
            self.begin(delivered);
            self.count += 1;
        }
        self.start
    }

    /// Begins one that does not count, when `delivered` bytes are delivered.
    pub(crate) fn begin(&mut self, delivered: Bytes) {
        self.next_delivered = delivered;
    }
}

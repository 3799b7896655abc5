//! A segment that is outstanding, and its transmissions in order of time.

use weir_units::Instant;

use weir_cc::host::SendRecord;

/// A segment that was sent and is not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// What it counts for in the sums: its length, or a whole segment's.
    pub(super) weight: u32,
    /// How often it was sent.
    pub(crate) transmissions: u32,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    /// What the rate sampler noted then.
    pub(crate) record: SendRecord,
    pub(crate) fate: Fate,
}

/// What is believed of an outstanding segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// On its way.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Declared lost, not sent again yet.
    Lost,
    /// Declared lost and sent again: on its way once more.
    Resent,
    /// Sent again, and not declared lost any more: both count as on their way (Linux's `tcp_undo_cwnd_reduction` leaves
    /// `retrans_out`).
    Doubled,
}

impl Sent {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Whether nothing says that it is lost or has arrived.
    pub(super) fn is_in_flight(&self) -> bool {
        matches!(self.fate, Fate::InFlight | Fate::Doubled)
    }

    pub(crate) fn was_retransmitted(&self) -> bool {
        self.transmissions > 1
    }

    pub(super) fn transmission(&self) -> Transmission {
        Transmission::new(self.sent_at, self.end(), self.was_retransmitted())
    }
}

/// One transmission, for time order. At the same instant retransmissions count as later than new data,
/// and what is later in the stream as later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transmission {
    pub(crate) sent_at: Instant,
    /// Where the segment ends in the stream; the highest bit says that it was sent before. One number,
    /// because transmissions are compared for every segment acknowledged.
    place: u64,
}

impl Transmission {
    const AGAIN: u64 = 1 << 63;

    pub(crate) fn new(sent_at: Instant, end: u64, again: bool) -> Self {
        Self { sent_at, place: end | if again { Self::AGAIN } else { 0 } }
    }

    pub(super) fn end(&self) -> u64 {
        self.place & !Self::AGAIN
    }

    /// Whether it certainly left before `other`: it is unknown in which order new and old data left
    /// at the same instant.
    pub(crate) fn precedes(&self, other: &Self) -> bool {
        let alike = (self.place ^ other.place) < Self::AGAIN;
        self.sent_at < other.sent_at || (alike && self < other)
    }
}

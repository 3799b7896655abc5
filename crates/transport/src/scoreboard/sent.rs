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
    /// When it was last sent, and the number of that transmission.
    pub(crate) sent_at: Instant,
    pub(super) number: u64,
    /// What the rate sampler noted then.
    pub(crate) record: SendRecord,
    pub(crate) fate: Fate,
    /// RACK looks at it: not at what it has declared lost, if an undo takes that back, until it is sent again
    /// (`tsorted_sent_queue`).
    pub(super) is_timed: bool,
    /// Its copies are pushed as it was.
    pub(crate) is_pushed: bool,
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
    /// Such a segment, acknowledged selectively: its copy counts on (Linux's `tcp_sacktag_one`).
    DoubledSacked,
}

impl Sent {
    pub(crate) fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    /// Whether nothing says that it is lost or has arrived.
    pub(super) fn is_in_flight(&self) -> bool {
        matches!(self.fate, Fate::InFlight | Fate::Doubled)
    }

    pub(crate) fn is_sacked(&self) -> bool {
        matches!(self.fate, Fate::Sacked | Fate::DoubledSacked)
    }

    pub(crate) fn was_retransmitted(&self) -> bool {
        self.transmissions > 1
    }

    pub(super) fn transmission(&self) -> Transmission {
        Transmission { number: self.number, sent_at: self.sent_at, end: self.end() }
    }
}

/// One transmission, in the order in which they left: RACK compares times, and a later number breaks a tie (Linux's
/// `tcp_skb_sent_after`, whose clock no two transmissions share on a real machine).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transmission {
    /// Its number among all.
    pub(super) number: u64,
    pub(crate) sent_at: Instant,
    /// Where the segment ends in the stream.
    pub(super) end: u64,
}

//! Whose timers, delays and estimates an end has, and when it acknowledges.

use weir_units::Duration;

/// What a kernel does for reasons of its own, and what does as well without them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostProfile {
    /// Linux's, so that both can be compared: timers fire on ticks, acknowledgements wait for up to 200 ms.
    #[default]
    Kernel,
    /// * `rack`'s timers fire when they are due (RFC 8985 §6.2, §7.2), 1 ms ahead at least (RFC 9002 §6.1.2).
    /// * An acknowledgement is put off by 5 ms at most.
    /// * A handshake's timeout doubles from the fifth on (Linux's `tcp_syn_linear_timeouts`), up to a second.
    /// * A timeout doubles five times at most: where a quarter is lost both ways, one try in sixty is the
    ///   fifth in a row to fail by chance, and the next should not be seconds away.
    /// * Nor does it grow beyond a second by doubling (picoquic: two), and what a path held through three
    ///   timeouts is not taken for its round trip: a sender goes on soon after an outage.
    /// * `rack` sends two segments after a timeout, the oldest one twice if no other waits: one try in five then
    ///   fails where two in five did (RFC 9002 §6.2.4).
    /// * What leaves while nothing is on its way begins a new interval of the delivery rate
    ///   (draft-cheng-iccrg-delivery-rate-estimation-02 §3.2): waiting for a timeout is not slow delivery.
    /// * Of the time since sending and the timestamp's age, both of which count a wait for lost
    ///   acknowledgements, the shorter is the round trip. The answer to a copy echoes the copy, which RFC 7323 §4.3
    ///   and Linux reject before they look at its timestamp; the answer to a SYN leaves out how long it waited.
    UserSpace,
}

/// When the receiver acknowledges data that arrives in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment at once.
    Off,
    /// Every second full segment, or 40 ms after the first (RFC 1122 §4.2.3.2 allows 500 ms).
    Rfc1122,
    /// As Linux: the first sixteen at once, then every second, with an adaptive delay from 40 ms;
    /// while data is missing, at most one per millisecond after the third duplicate.
    Linux,
    /// By the thresholds of draft-ietf-quic-ack-frequency, or 40 ms after the first segment.
    Frequency(AckFrequency),
}

/// How often a receiver acknowledges (draft-ietf-quic-ack-frequency), in segments instead of packets. A large
/// threshold thins acknowledgements out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Segments that may arrive without an acknowledgement; 0 acknowledges each.
    pub threshold: u32,
    /// How many segments something that is missing may lie behind the newest before this is acknowledged at once; 0
    /// never does so.
    pub reordering: u32,
}

impl Default for AckFrequency {
    /// Every second segment, and each that shows or fills a gap.
    fn default() -> Self {
        Self { threshold: 1, reordering: 1 }
    }
}

impl HostProfile {
    /// The longest that an acknowledgement is put off.
    pub(crate) fn longest_ack_delay(self) -> Duration {
        match self {
            Self::Kernel => Duration::from_millis(200),
            Self::UserSpace => Duration::from_millis(5),
        }
    }
}

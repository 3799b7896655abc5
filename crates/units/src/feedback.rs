//! What routers tell the ends of a path: the record that a data packet carries past them, and what the
//! receiver returns of it.
//!
//! A sender puts a [`Feedback`] into a packet, routers rewrite it as it passes, and the receiver folds what
//! arrives into an [`Echo`] for its next acknowledgement. The record lies here because links and
//! transports, which know nothing of each other, share it.
//!
//! Kinds and their sources: DRAI after TCP Muzha (Hsiao and Lien, 2006), whose layout is not published, so
//! that this one is ours; the anti-ECN bit (Kunniyur, ICC 2003); Quick-Start (RFC 4782); the congestion
//! header of XCP (draft-falk-xcp-spec-03); the rate of RCP (Dukkipati et al., IWQoS 2005); in-band telemetry as
//! HPCC has it (Li et al., SIGCOMM 2019).

use crate::{Duration, Rate};

/// What a data packet carries past routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Feedback {
    /// An index of what a router would have the sender do.
    Drai(Drai),
    /// Whether every link so far has spare capacity.
    AntiEcn(Headroom),
    /// A rate that the sender would start with.
    QuickStart(QuickStart),
    /// XCP's congestion header.
    Xcp(Xcp),
    /// RCP's rate.
    Rcp(Rcp),
    /// A record of every hop, as HPCC's: in a [`Telemetry`] next to the packet.
    Int,
}

/// Which feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedbackKind {
    /// An index of what a router would have the sender do.
    Drai,
    /// Whether every link so far has spare capacity.
    AntiEcn,
    /// A rate that the sender would start with.
    QuickStart,
    /// XCP's congestion header.
    Xcp,
    /// RCP's rate.
    Rcp,
    /// A record of every hop.
    Int,
}

/// TCP Muzha's data rate adjustment index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Drai {
    /// The smallest index on the way, from 1 (slow down) to the number of levels; the sender begins with
    /// the highest.
    pub level: u8,
    /// The number of routers that updated it: 0 distinguishes a path without such routers from one with spare capacity.
    pub hops: u8,
}

/// What a link says of its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Headroom {
    /// Each so far is less used than it could be.
    Spare,
    /// One is fully used.
    Scarce,
}

/// RFC 4782 §3.1's rate request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuickStart {
    /// The requested rate that no router has refused yet.
    pub rate: RateCode,
    /// The QS TTL: each router that agrees takes one off.
    pub ttl: u8,
    /// Routers passed, agreeing or not: what IP's own TTL tells in RFC 4782.
    pub hops: u8,
    /// The QS nonce: two bits for each rate code, the lowest for 1; what a router lowers the rate past is
    /// no longer known.
    pub nonce: u32,
}

/// A rate in four bits (RFC 4782 §3.1): 0 for none, `N` for 40 kbit/s times `2^N`.
///
/// ```
/// use weir_units::Rate;
/// use weir_units::feedback::RateCode;
///
/// let code = RateCode::at_most(Rate::from_mbit(10));
/// assert_eq!((code.get(), code.rate()), (7, Rate::from_bits_per_sec(5_120_000)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateCode(u8);

/// XCP's congestion header (draft-falk-xcp-spec-03 §2.1), in finer units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Xcp {
    /// The sender's round-trip time in microseconds; 0 while it knows none.
    pub rtt_micros: u32,
    /// The time from one packet to the next, the round-trip time over the window, in nanoseconds.
    pub spacing_nanos: u32,
    /// By how many bytes per second the sender is to change its rate.
    pub delta: i32,
}

/// RCP's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rcp {
    /// The smallest rate on the way, in bytes per second.
    pub rate: u32,
    /// The sender's round-trip time in microseconds; 0 while it knows none.
    pub rtt_micros: u32,
}

/// What an acknowledgement returns of the feedback that has arrived since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Echo {
    /// The smallest index.
    Drai(Drai),
    /// Whether every link had spare capacity.
    AntiEcn(Headroom),
    /// The answer to a rate request (RFC 4782 §3.2).
    QuickStart {
        /// What no router refused.
        rate: RateCode,
        /// The difference between the two TTLs: that of the sender unless some router did not take part.
        ttl_diff: u8,
        /// The nonce as it arrived.
        nonce: u32,
    },
    /// The sum of the changes, in bytes per second.
    Xcp(i32),
    /// The newest rate, in bytes per second.
    Rcp(u32),
    /// The newest records of every hop, in a [`Telemetry`] next to the acknowledgement.
    Int,
}

/// In-band telemetry: a record of each hop that a packet has passed, in their order.
///
/// Of more than eight hops the first eight are recorded. It is too large for a TCP option and lies next to the packet:
/// [`Feedback::Int`] and [`Echo::Int`] say that it does.
///
/// ```
/// use weir_units::feedback::{Hop, Telemetry};
///
/// let mut telemetry = Telemetry::default();
/// telemetry.push(Hop { nanos: 7, bytes: 1_500, queue: 0, kbit: 100_000_000 });
/// assert_eq!(telemetry.hops().len(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Telemetry {
    hops: [Hop; Self::MAX],
    len: u8,
}

/// What a link records of itself when it sends a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Hop {
    /// When, in nanoseconds modulo 2^32.
    pub nanos: u32,
    /// Bytes sent before it, modulo 2^32.
    pub bytes: u32,
    /// Bytes that wait behind it.
    pub queue: u32,
    /// The rate in kbit/s.
    pub kbit: u32,
}

impl Feedback {
    /// Which it is.
    pub const fn kind(&self) -> FeedbackKind {
        match self {
            Self::Drai(_) => FeedbackKind::Drai,
            Self::AntiEcn(_) => FeedbackKind::AntiEcn,
            Self::QuickStart(_) => FeedbackKind::QuickStart,
            Self::Xcp(_) => FeedbackKind::Xcp,
            Self::Rcp(_) => FeedbackKind::Rcp,
            Self::Int => FeedbackKind::Int,
        }
    }
}

impl Drai {
    /// A router would have the sender act by `level`: the smallest stands.
    pub fn stamp(&mut self, level: u8) {
        self.level = self.level.min(level);
        self.hops = self.hops.saturating_add(1);
    }
}

impl Echo {
    /// Which it is.
    pub const fn kind(&self) -> FeedbackKind {
        match self {
            Self::Drai(_) => FeedbackKind::Drai,
            Self::AntiEcn(_) => FeedbackKind::AntiEcn,
            Self::QuickStart { .. } => FeedbackKind::QuickStart,
            Self::Xcp(_) => FeedbackKind::Xcp,
            Self::Rcp(_) => FeedbackKind::Rcp,
            Self::Int => FeedbackKind::Int,
        }
    }

    /// What to return for a packet alone.
    pub fn of(feedback: &Feedback) -> Self {
        match *feedback {
            Feedback::Drai(drai) => Self::Drai(drai),
            Feedback::AntiEcn(headroom) => Self::AntiEcn(headroom),
            Feedback::QuickStart(request) => Self::QuickStart {
                rate: request.rate,
                ttl_diff: request.ttl_diff(),
                nonce: request.nonce,
            },
            Feedback::Xcp(header) => Self::Xcp(header.delta),
            Feedback::Rcp(header) => Self::Rcp(header.rate),
            Feedback::Int => Self::Int,
        }
    }

    /// What to return for a further packet too. One acknowledgement speaks for several packets where
    /// acknowledgements are delayed. Feedback of another kind takes the place of what was there.
    ///
    /// ```
    /// use weir_units::feedback::Drai;
    /// use weir_units::{Echo, Feedback};
    ///
    /// let index = |level| Feedback::Drai(Drai { level, hops: 2 });
    /// let echo = Echo::of(&index(4)).and(&index(2));
    /// assert_eq!(echo, Echo::Drai(Drai { level: 2, hops: 2 }), "the smallest index is returned");
    /// ```
    pub fn and(self, feedback: &Feedback) -> Self {
        match (self, Self::of(feedback)) {
            (Self::Drai(a), Self::Drai(b)) => {
                Self::Drai(Drai { level: a.level.min(b.level), hops: a.hops.min(b.hops) })
            }
            (Self::AntiEcn(Headroom::Scarce), Self::AntiEcn(_)) => self,
            (Self::Xcp(a), Self::Xcp(b)) => Self::Xcp(a.saturating_add(b)),
            (_, newest) => newest,
        }
    }
}

impl Telemetry {
    /// The most hops that are recorded.
    pub const MAX: usize = 8;

    /// Appends the record of the next hop, if there is space.
    pub fn push(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(usize::from(self.len)) {
            *place = hop;
            self.len += 1;
        }
    }

    /// The records, from the first hop on.
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.len)]
    }
}

impl Hop {
    /// The link's rate.
    pub fn rate(&self) -> Rate {
        Rate::from_bits_per_sec(u64::from(self.kbit) * 1_000)
    }
}

impl QuickStart {
    /// IP's TTL less this one, if IP's began with 255.
    pub const fn ttl_diff(&self) -> u8 {
        (u8::MAX - self.hops).wrapping_sub(self.ttl)
    }

    /// Lowers the rate to `rate`, and with each step makes the nonce of the higher one unknown
    /// (RFC 4782 §3.4): its two bits become random, from those of `random`.
    pub fn lower_to(&mut self, rate: RateCode, random: u32) {
        if rate < self.rate {
            let kept = (1_u32 << (2 * rate.0)) - 1;
            self.nonce = ((self.nonce & kept) | (random & !kept)) & NONCE;
            self.rate = rate;
        }
    }
}

impl RateCode {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The highest, 1.31 Gbit/s.
    pub const MAX: Self = Self(15);

    /// The code of this number; `None` above 15.
    pub const fn new(code: u8) -> Option<Self> {
        if code <= Self::MAX.0 { Some(Self(code)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The highest that does not exceed `rate`.
    pub const fn at_most(rate: Rate) -> Self {
        let mut code = Self::MAX;
        while code.0 > 0 && code.rate().as_bits_per_sec() > rate.as_bits_per_sec() {
            code.0 -= 1;
        }
        code
    }

    /// The rate that it means.
    pub const fn rate(self) -> Rate {
        if self.0 == 0 { Rate::ZERO } else { Rate::from_bits_per_sec(40_000 << self.0) }
    }
}

/// The thirty bits of a nonce.
pub const NONCE: u32 = (1 << 30) - 1;

/// A time as headers carry it, in microseconds; the longest that fits for a longer one.
pub fn header_micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_small() {
        assert!(size_of::<Option<Feedback>>() <= 16, "{}", size_of::<Option<Feedback>>());
        assert!(size_of::<Option<Echo>>() <= 8, "{}", size_of::<Option<Echo>>());
    }

    #[test]
    fn the_smallest_index_stands_and_each_router_counts() {
        let mut drai = Drai { level: 5, hops: 0 };
        for level in [4, 2, 5] {
            drai.stamp(level);
        }
        assert_eq!(drai, Drai { level: 2, hops: 3 });
    }

    /// RFC 4782 §3.1's table: 80 kbit/s to 1.31072 Gbit/s.
    #[test]
    fn rate_codes_are_those_of_the_standard() {
        assert_eq!(RateCode::new(1).map(RateCode::rate), Some(Rate::from_bits_per_sec(80_000)));
        assert_eq!(RateCode::MAX.rate(), Rate::from_bits_per_sec(1_310_720_000));
        assert_eq!(RateCode::at_most(Rate::from_mbit(10)).rate().as_bits_per_sec(), 5_120_000);
        assert_eq!(RateCode::at_most(Rate::from_bits_per_sec(79_999)), RateCode::NONE);
        assert_eq!(RateCode::new(16), None);
    }

    #[test]
    fn a_lowered_rate_hides_the_nonce_of_the_higher_ones() {
        let mut request = QuickStart { rate: RateCode::MAX, ttl: 7, hops: 0, nonce: NONCE };
        let lower = RateCode::at_most(Rate::from_bits_per_sec(160_000));
        request.lower_to(lower, 0);
        assert_eq!((request.rate, request.nonce), (lower, 0b1111));
        request.lower_to(RateCode::MAX, 0);
        assert_eq!(request.rate, lower, "nothing is raised");
    }

    #[test]
    fn ttls_differ_by_the_routers_that_did_not_agree() {
        let sent = QuickStart { rate: RateCode::MAX, ttl: 77, hops: 0, nonce: 0 };
        let agreed = QuickStart { ttl: 75, hops: 2, ..sent };
        let ignored = QuickStart { ttl: 76, hops: 2, ..sent };
        assert_eq!(agreed.ttl_diff(), sent.ttl_diff());
        assert_ne!(ignored.ttl_diff(), sent.ttl_diff());
    }

    #[test]
    fn one_acknowledgement_speaks_for_several_packets() {
        let drai = |level, hops| Feedback::Drai(Drai { level, hops });
        let joined = Echo::of(&drai(4, 2)).and(&drai(2, 3)).and(&drai(5, 2));
        assert_eq!(joined, Echo::Drai(Drai { level: 2, hops: 2 }));
        let bit = |headroom| Feedback::AntiEcn(headroom);
        let joined =
            Echo::of(&bit(Headroom::Spare)).and(&bit(Headroom::Scarce)).and(&bit(Headroom::Spare));
        assert_eq!(joined, Echo::AntiEcn(Headroom::Scarce));
        let xcp = |delta| Feedback::Xcp(Xcp { rtt_micros: 1, spacing_nanos: 1, delta });
        assert_eq!(Echo::of(&xcp(700)).and(&xcp(-300)), Echo::Xcp(400));
        let rcp = |rate| Feedback::Rcp(Rcp { rate, rtt_micros: 1 });
        assert_eq!(Echo::of(&rcp(700)).and(&rcp(900)), Echo::Rcp(900));
    }
}

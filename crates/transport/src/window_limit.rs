//! A bound on outstanding bytes, in addition to the congestion window and the peer's.
//!
//! ```text
//! 8          eight segments: what ns-2 calls window_
//! cwl        max(2, floor(RTHC / 5 + 1/2)) segments, RTHC = hops out + hops back
//! cwl(1/8)   the same with another share of RTHC: Fu et al.'s h / 4 for a chain of h hops
//!
//! receiver-cwl, receiver-cwl(1/8)   the same, offered by the receiver as its window
//! receiver-drai                     offered by the receiver, by the routers' indices
//! ```
//!
//! Sources: the adaptive congestion window limit of Chen, Xue and Nahrstedt (ICC 2003): no path carries
//! more than one packet per hop of its round trip, and an 802.11 chain about a fifth of that, because
//! packets within some four hops interfere. Fu et al. (INFOCOM 2003) for h / 4. The paper's own table
//! could not be had; the formula is ours. Deviation: it bounds what is sent as the peer's window does,
//! not `cwnd` itself, so that it holds for any controller and in recovery; a window that is not used does
//! not grow (`cwnd_validation`). Before the network tells the number of hops, nothing is bounded.
//!
//! A receiver offers the smaller of its buffer and the limit, with no change to the sender. What it
//! offered before the route became shorter stands (RFC 9293 §3.8.6.2.1). A window is offered in units of
//! 2^scale bytes, so the limit is rounded up to them, and the scale is no larger than the largest limit
//! needs (RFC 7323 §2.2): with the scale of a buffer of 64 MiB, two segments of 1000 bytes were none.
//!
//! `receiver-drai` is a proposal of TCP Muzha's slides (2006): the receiver estimates the window "according
//! to the router feedback" and sets it as the one that it offers. The slides say no more; here it follows
//! their table of five indices, once for each window that arrives.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A bound on what is outstanding, in segments.
///
/// ```
/// use weir_transport::{LimitingEnd, WindowLimit};
///
/// let limit: WindowLimit = "receiver-cwl".parse()?;
/// assert_eq!(limit, WindowLimit::Hops { per_segment: 5, end: LimitingEnd::Receiver });
/// assert!("0".parse::<WindowLimit>().is_err());
/// # Ok::<(), weir_transport::WindowLimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLimit {
    /// A fixed number of segments.
    Segments(u32),
    /// One segment for this number of hops of the round trip.
    Hops {
        /// How many.
        per_segment: u32,
        /// Who applies it.
        end: LimitingEnd,
    },
    /// What the routers' indices make of it, offered by the receiver.
    Indices,
}

/// The end of a connection that applies a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitingEnd {
    /// It sends no more.
    Sender,
    /// It offers no larger window.
    Receiver,
}

/// A limit at the end that applies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitInForce {
    limit: Option<WindowLimit>,
    /// The route's length, once the network has reported it.
    pub(crate) hops: Option<u8>,
}

impl LimitInForce {
    /// `limit`, if `end` applies it.
    pub(crate) fn new(limit: Option<WindowLimit>, end: LimitingEnd) -> Self {
        Self { limit: limit.filter(|limit| limit.end() == end), hops: None }
    }

    pub(crate) fn bytes(&self, mss: u64) -> Option<u64> {
        self.limit.and_then(|limit| limit.segments(self.hops)).map(|segments| segments * mss)
    }

    /// The limit for the longest route.
    pub(crate) fn largest(&self, mss: u64) -> Option<u64> {
        Self { hops: Some(u8::MAX), ..*self }.bytes(mss)
    }
}

/// A limit that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}': allowed is a number of segments from 1 to 1000000, cwl, cwl(1/2) to cwl(1/100), \
     receiver-cwl, receiver-cwl(1/2) to receiver-cwl(1/100), or receiver-drai"
)]
pub struct WindowLimitError(String);

impl WindowLimit {
    /// Who applies it.
    pub fn end(self) -> LimitingEnd {
        match self {
            Self::Segments(_) => LimitingEnd::Sender,
            Self::Hops { end, .. } => end,
            Self::Indices => LimitingEnd::Receiver,
        }
    }

    /// The bound for a route of `hops`; of indices, the largest that they make.
    pub(crate) fn segments(self, hops: Option<u8>) -> Option<u64> {
        match (self, hops) {
            (Self::Segments(segments), _) => Some(u64::from(segments)),
            (Self::Indices, _) => Some(MOST_BY_INDEX),
            (Self::Hops { .. }, None) => None,
            (Self::Hops { per_segment, .. }, Some(hops)) => {
                let (round_trip, n) = (2 * u64::from(hops), u64::from(per_segment).max(1));
                Some(((2 * round_trip + n) / (2 * n)).max(LEAST))
            }
        }
    }
}

const DEFAULT_PER_SEGMENT: u32 = 5;
const RECEIVER: &str = "receiver-";
const INDICES: &str = "receiver-drai";
/// With one segment out, a receiver that delays acknowledgements would be waited for each time.
pub(crate) const LEAST: u64 = 2;
/// Indices go from 1 to this.
pub(crate) const INDEX_LEVELS: u8 = 5;
/// The largest that indices make: more than a path of radio links holds.
pub(crate) const MOST_BY_INDEX: u64 = 1_000;
const MOST_SEGMENTS: u32 = 1_000_000;

impl FromStr for WindowLimit {
    type Err = WindowLimitError;

    fn from_str(text: &str) -> Result<Self, WindowLimitError> {
        if text.trim() == INDICES {
            return Ok(Self::Indices);
        }
        let (end, share) = match text.trim().strip_prefix(RECEIVER) {
            Some(share) => (LimitingEnd::Receiver, share),
            None => (LimitingEnd::Sender, text.trim()),
        };
        let number =
            |n: &str, allowed: RangeInclusive<u32>| n.parse().ok().filter(|n| allowed.contains(n));
        let limit = match share.strip_prefix("cwl(1/").and_then(|rest| rest.strip_suffix(')')) {
            Some(n) => number(n, 2..=100).map(|per_segment| Self::Hops { per_segment, end }),
            None if share == "cwl" => Some(Self::Hops { per_segment: DEFAULT_PER_SEGMENT, end }),
            None => number(text.trim(), 1..=MOST_SEGMENTS).map(Self::Segments),
        };
        limit.ok_or_else(|| WindowLimitError(text.to_owned()))
    }
}

impl fmt::Display for WindowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Hops { end: LimitingEnd::Receiver, .. } = self {
            f.write_str(RECEIVER)?;
        }
        match self {
            Self::Indices => f.write_str(INDICES),
            Self::Segments(segments) => segments.fmt(f),
            Self::Hops { per_segment: DEFAULT_PER_SEGMENT, .. } => f.write_str("cwl"),
            Self::Hops { per_segment, .. } => write!(f, "cwl(1/{per_segment})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str, hops: impl IntoIterator<Item = u8>) -> Vec<u64> {
        let limit: WindowLimit = text.parse().unwrap();
        hops.into_iter().filter_map(|hops| limit.segments(Some(hops))).collect()
    }

    #[test]
    fn a_chain_of_n_hops_holds_a_fifth_of_its_round_trip() {
        // floor(2 h / 5 + 1/2) by hand, at least 2.
        assert_eq!(limits("cwl", 1..=10), [2, 2, 2, 2, 2, 2, 3, 3, 4, 4]);
        assert_eq!(limits("cwl", [16, 32, 255]), [6, 13, 102]);
        assert_eq!(limits("cwl(1/8)", [4, 8, 16, 32]), [2, 2, 4, 8], "h / 4");
        assert_eq!("cwl".parse::<WindowLimit>().unwrap().segments(None), None);
        assert_eq!(limits("8", [1, 32]), [8, 8]);
    }

    #[test]
    fn a_limit_reads_back_as_it_prints() {
        let known = ["1", "8", "cwl", "cwl(1/8)", "receiver-cwl", "receiver-cwl(1/8)", INDICES];
        for text in known {
            assert_eq!(text.parse::<WindowLimit>().unwrap().to_string(), text);
        }
        let more = ["receiver-", "receiver-8", "receiver-cwl(1/1)"];
        for text in ["0", "-1", "8p", "cwl()", "cwl(1/1)", "cwl(2/8)", "cwl(1/8", ""]
            .into_iter()
            .chain(more)
        {
            let message = text.parse::<WindowLimit>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("'{text}': allowed is")), "{message}");
        }
    }
}

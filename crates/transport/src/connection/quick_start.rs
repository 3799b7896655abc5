//! Quick-Start on the SYN (RFC 4782): a rate that every router on the way approves takes the place of the
//! initial window.
//!
//! The request asks for a rate; the peer returns what was left of it, with the difference of the two TTLs
//! and the nonce. The difference shows whether every router took part, the nonce that no router raised the rate
//! again on the way or at the far end. The window is then
//!
//! ```text
//! cwnd = rate RTT MSS / (MSS + headers)      spread over one round trip (RFC 4782 §4.4)
//! ```
//!
//! A loss among what it let out takes the connection back to its usual initial window, in slow start
//! (RFC 4782 §4.6.2).
//!
//! Deviations: the request goes with the SYN and never again; no report of the approved rate follows.

use weir_units::feedback::{NONCE, QuickStart, RateCode};
use weir_units::{Bytes, Duration, Echo, Rate, Rng};

use crate::Config;

/// A request on its way.
#[derive(Debug)]
pub(super) struct Request {
    asked: QuickStart,
}

impl Request {
    /// A request for what the configuration says, if anything, with a TTL and a nonce from `rng`.
    pub(super) fn new(config: &Config, rng: &mut Rng) -> Option<Self> {
        let rate = RateCode::at_most(config.quick_start?);
        let random = rng.next_u64();
        let nonce = random as u32 & NONCE;
        // RFC 4782 §3.1: the TTL is drawn too, so that no router can infer the difference.
        let asked = QuickStart { rate, ttl: (random >> 32) as u8, hops: 0, nonce };
        (rate > RateCode::NONE).then_some(Self { asked })
    }

    /// What the SYN carries.
    pub(super) fn asked(&self) -> QuickStart {
        self.asked
    }

    /// The rate that was approved, if the answer is to be believed (RFC 4782 §4.3).
    pub(super) fn approved(&self, answer: &Echo) -> Option<Rate> {
        let Echo::QuickStart { rate, ttl_diff, nonce } = *answer else { return None };
        let known = (1_u32 << (2 * rate.get())) - 1;
        let honest = ttl_diff == self.asked.ttl_diff()
            && (nonce ^ self.asked.nonce) & known == 0
            && rate <= self.asked.rate;
        (honest && rate > RateCode::NONE).then(|| rate.rate())
    }
}

/// The window in bytes of payload that a rate of packets means, in whole segments.
pub(super) fn window(rate: Rate, rtt: Duration, mss: u32, header: usize) -> Bytes {
    let packet = u64::from(mss) + header as u64 + IP_HEADER;
    let segments = rate.bytes_in(rtt).get() / packet;
    Bytes(segments * u64::from(mss))
}

const IP_HEADER: u64 = 20;

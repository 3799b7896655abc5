//! The window that a receiver offers by the length of the route.

use crate::window_limit::LimitInForce;
use crate::{Config, LimitingEnd};

/// The receiver's window limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferLimit {
    limit: LimitInForce,
    /// The bytes that one unit of the window field stands for.
    unit: u64,
}

impl OfferLimit {
    pub(super) fn new(config: &Config) -> Self {
        Self { limit: in_force(config), unit: 1 << window_scale(config) }
    }

    pub(super) fn set_hops(&mut self, hops: u8) {
        self.limit.hops = Some(hops);
    }

    /// The limit in whole units: fewer would not hold all its segments.
    pub(super) fn bytes(&self, mss: u64) -> Option<u64> {
        self.limit.bytes(mss).map(|bytes| bytes.next_multiple_of(self.unit))
    }
}

/// The smallest shift with which the largest window fits 16 bits (RFC 7323 §2.2, §2.3: at most 14).
pub(crate) fn window_scale(config: &Config) -> u8 {
    if !config.window_scaling {
        return 0;
    }
    let limit = in_force(config).largest(u64::from(config.mss)).unwrap_or(u64::MAX);
    let largest = config.largest_recv_buffer().get().min(limit);
    (0..14).find(|shift| largest >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

fn in_force(config: &Config) -> LimitInForce {
    LimitInForce::new(config.window_limit, LimitingEnd::Receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(limit: &str, mss: u32) -> Config {
        let window_limit = Some(limit.parse().expect("a limit"));
        Config { window_limit, mss, ..Config::default() }
    }

    #[test]
    fn the_scale_is_that_of_the_buffer_or_of_the_largest_limit() {
        // 64 MiB; 102 segments of 1000 and 1448 bytes; 255 of 1448.
        assert_eq!(window_scale(&Config::default()), 11);
        assert_eq!(window_scale(&config("cwl", 1_000)), 11, "the sender applies it");
        assert_eq!(window_scale(&config("receiver-cwl", 1_000)), 1);
        assert_eq!(window_scale(&config("receiver-cwl", 1_448)), 2);
        assert_eq!(window_scale(&config("receiver-cwl(1/2)", 1_448)), 3);
    }

    #[test]
    fn the_limit_holds_whole_segments_in_whole_units() {
        for (mss, bytes) in [(1_000, 2_000), (1_447, 2_896), (1_448, 2_896)] {
            let mut limit = OfferLimit::new(&config("receiver-cwl", mss));
            assert_eq!(limit.bytes(u64::from(mss)), None);
            limit.set_hops(4);
            assert_eq!(limit.bytes(u64::from(mss)), Some(bytes));
        }
    }
}

//! The window that a receiver offers by the length of the route, or by what the routers say.

use weir_units::feedback::Drai;

use crate::window_limit::{LEAST, LimitInForce, MOST_BY_INDEX};
use crate::{Config, DelayedAck, HostProfile, LimitingEnd, WindowLimit};

/// The receiver's window limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferLimit {
    limit: LimitInForce,
    by_index: Option<IndexWindow>,
    /// The bytes that one unit of the window field stands for.
    unit: u64,
    /// What rounding up adds at most.
    rest: u64,
}

/// A window that follows the routers' indices, 1 to 5 (TCP Muzha's table): halved, one less, the same,
/// one more, doubled.
///
/// A receiver measures no round trip. The table applies once all that was offered by then has
/// arrived, with the smallest index of it: a round trip later if the sender uses the window, and later
/// if not, as then it needs no larger one.
#[derive(Clone, Copy, Debug)]
struct IndexWindow {
    /// None where no router on the path says anything: nothing is bounded.
    segments: Option<u64>,
    smallest: u8,
    round_end: u64,
}

impl IndexWindow {
    const NEW: Self = Self { segments: Some(LEAST), smallest: u8::MAX, round_end: 0 };

    fn on_index(&mut self, index: Drai, rcv_nxt: u64, edge: u64) {
        if index.hops == 0 {
            *self = Self { segments: None, ..Self::NEW };
            return;
        }
        self.smallest = self.smallest.min(index.level);
        if rcv_nxt < self.round_end {
            return;
        }
        let window = self.segments.unwrap_or(LEAST);
        let next = match self.smallest {
            1 => window / 2,
            2 => window - 1,
            3 => window,
            4 => window + 1,
            _ => window * 2,
        };
        let segments = Some(next.clamp(LEAST, MOST_BY_INDEX));
        *self = Self { segments, smallest: u8::MAX, round_end: edge };
    }
}

impl OfferLimit {
    pub(super) fn new(config: &Config) -> Self {
        let follows = config.window_limit == Some(WindowLimit::Indices);
        let by_index = follows.then_some(IndexWindow::NEW);
        let unit = 1 << window_scale(config);
        let rest = if config.host_profile == HostProfile::Kernel { unit - 1 } else { 0 };
        Self { limit: in_force(config), by_index, unit, rest }
    }

    /// A packet with data has met routers that say so; `edge` is what was offered until now. Returns
    /// whether the limit follows them.
    pub(super) fn on_index(&mut self, index: Drai, rcv_nxt: u64, edge: u64) -> bool {
        if let Some(window) = &mut self.by_index {
            window.on_index(index, rcv_nxt, edge);
        }
        self.by_index.is_some()
    }

    pub(super) fn set_hops(&mut self, hops: u8) {
        self.limit.hops = Some(hops);
    }

    /// Windows are not scaled.
    pub(super) fn unscale(&mut self) {
        (self.unit, self.rest) = (1, 0);
    }

    pub(super) fn is_scaled(&self) -> bool {
        self.unit > 1
    }

    /// A window; a kernel rounds it up to whole units of the scale, so that scaling takes nothing away.
    #[inline]
    pub(super) fn rounded_up(&self, bytes: u64) -> u64 {
        bytes.saturating_add(self.rest) & !self.rest
    }

    /// The largest window that the header's field holds.
    pub(super) fn most(&self) -> u64 {
        self.unit * u64::from(u16::MAX)
    }

    /// The limit in whole units: fewer would not hold all its segments.
    pub(super) fn bytes(&self, mss: u64) -> Option<u64> {
        let bytes = match self.by_index {
            Some(window) => window.segments.map(|segments| segments * mss),
            None => self.limit.bytes(mss),
        };
        bytes.map(|bytes| bytes.next_multiple_of(self.unit))
    }
}

/// The smallest shift with which the largest window fits 16 bits (RFC 7323 §2.2, §2.3: at most 14).
pub(crate) fn window_scale(config: &Config) -> u8 {
    if !config.window_scaling {
        return 0;
    }
    let limit = in_force(config).largest(u64::from(config.mss)).unwrap_or(u64::MAX);
    let most = config.largest_recv_buffer();
    // Linux decides by `tcp_rmem`, of which windows get half; for a buffer that keeps its size by the half that it
    // offers at first, and the quarter more that it measures later fits no further (`tcp_select_initial_window`,
    // `tcp_select_window`).
    let largest = match (config.max_recv_buffer, config.initial_recv_window) {
        (Some(_), _) if config.delayed_ack() == DelayedAck::Linux => most * 2,
        (None, Some(first)) if most.get() <= first.get() + first.get() / 4 => first.min(most),
        _ => most,
    };
    let largest = largest.get().min(limit);
    (0..14).find(|shift| largest >> shift <= u64::from(u16::MAX)).unwrap_or(14)
}

fn in_force(config: &Config) -> LimitInForce {
    LimitInForce::new(config.window_limit, LimitingEnd::Receiver)
}

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

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

    /// What a buffer that keeps its size offers at first decides, although more of it is offered later; of one that
    /// grows, twice what it offers at last.
    #[test]
    fn the_scale_is_that_of_the_first_window_or_of_the_memory() {
        let sized = |first, buffer| Config {
            initial_recv_window: first,
            recv_buffer: Bytes(buffer),
            max_recv_buffer: None,
            ..Config::default()
        };
        assert_eq!(window_scale(&sized(None, 150_000)), 2);
        let larger = sized(Some(Bytes(65_535)), 64 << 20);
        assert_eq!(window_scale(&larger), 11, "more than what a segment's measure adds");
        let fixed = sized(Some(Bytes(120_000)), 150_000);
        assert_eq!(window_scale(&fixed), 1);
        assert_eq!(OfferLimit::new(&fixed).most(), 131_070);
        let growing = Config { max_recv_buffer: Some(Bytes(150_000)), ..fixed };
        assert_eq!(window_scale(&growing), 3);
    }

    #[test]
    fn the_window_follows_the_smallest_index_of_what_was_offered() {
        let mut limit = OfferLimit::new(&config("receiver-drai", 1_024));
        let mut at = 0_u64;
        // Indices of one window, and the segments that the next one has.
        for (indices, next) in [
            (&[5][..], 4),
            (&[5, 5, 5, 5], 8),
            (&[5, 4, 5, 5], 9),
            (&[3, 5], 9),
            (&[4, 2, 5], 8),
            (&[1, 5], 4),
            (&[1], 2),
            (&[1], 2),
        ] {
            let edge = at + 100;
            for (n, level) in indices.iter().enumerate() {
                let is_last = n + 1 == indices.len();
                let rcv_nxt = if is_last { at } else { at.saturating_sub(1) };
                assert!(limit.on_index(Drai { level: *level, hops: 3 }, rcv_nxt, edge));
            }
            assert_eq!(limit.bytes(1_024), Some(next * 1_024), "{indices:?}");
            at = edge;
        }
        limit.on_index(Drai { level: 5, hops: 0 }, at, at);
        assert_eq!(limit.bytes(1_024), None, "no router says anything");
        let mut other = OfferLimit::new(&config("receiver-cwl", 1_024));
        assert!(!other.on_index(Drai { level: 5, hops: 3 }, 0, 0));
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

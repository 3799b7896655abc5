//! Where a switch with priority flow control puts what comes in at a port.
//!
//! Source: the switch of HPCC's simulator (`switch-mmu`, alibaba-edu/High-Precision-Congestion-Control), whose
//! rules follow switches of Broadcom. Per port that packets come in at:
//!
//! ```text
//! threshold  = alpha · (pool − shared by all ports),  pool = total − every port's headroom and reserve
//! a packet is held by the reserve while that has memory, then by the pool while the port's share of it is
//!   at most the threshold, and else by the headroom; without any it is dropped
//! a packet that leaves frees headroom first, then the pool, then the reserve
//! pause  when headroom is in use, or the share of the pool is at the threshold
//! resume when no headroom is in use, and the share is zero or 3 KB below the threshold
//! ```
//!
//! Deviations: faster ports have the same alpha; and a packet never takes more of the pool than it has.

use weir_units::Bytes;

use crate::spec::Alpha;

/// Memory of a switch that its ports share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub(super) size: Bytes,
    pub(super) used: Bytes,
    pub(super) alpha: Alpha,
    /// What each port has for itself.
    pub(super) reserve: Bytes,
}

/// What a switch holds of what came in at one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ingress {
    /// In the reserve and the pool.
    held: Bytes,
    /// In the headroom.
    in_headroom: Bytes,
    /// Size of the headroom.
    pub(super) headroom: Bytes,
}

/// Where a packet is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the reserve, the pool, or partly in each.
    Usual,
    /// In the headroom.
    Headroom,
}

impl Pool {
    pub(super) fn threshold(&self) -> Bytes {
        self.alpha.of(self.size.saturating_sub(self.used))
    }

    /// What a port has of the pool if it holds this.
    fn share(&self, held: Bytes) -> Bytes {
        held.saturating_sub(self.reserve)
    }
}

impl Ingress {
    pub(super) fn new(headroom: Bytes) -> Self {
        Self { headroom, ..Self::default() }
    }

    /// Where a packet of this length goes; `None` if there is no memory for it.
    pub(super) fn place(&self, pool: &Pool, len: Bytes) -> Option<Place> {
        let share = pool.share(self.held + len);
        let more = share - pool.share(self.held);
        let free = pool.size.saturating_sub(pool.used);
        if share == Bytes::ZERO || (share <= pool.threshold() && more <= free) {
            return Some(Place::Usual);
        }
        (self.in_headroom + len <= self.headroom).then_some(Place::Headroom)
    }

    /// Holds a packet.
    pub(super) fn take(&mut self, pool: &mut Pool, len: Bytes, place: Place) {
        match place {
            Place::Usual => self.set_held(pool, self.held + len),
            Place::Headroom => self.in_headroom += len,
        }
    }

    /// A packet has left the switch.
    pub(super) fn release(&mut self, pool: &mut Pool, len: Bytes) {
        let of_headroom = self.in_headroom.min(len);
        self.in_headroom -= of_headroom;
        self.set_held(pool, self.held - (len - of_headroom));
    }

    /// Whether its neighbour has to pause.
    pub(super) fn pauses(&self, pool: &Pool) -> bool {
        let share = pool.share(self.held);
        self.in_headroom > Bytes::ZERO || (share > Bytes::ZERO && share >= pool.threshold())
    }

    /// Whether its neighbour may send again.
    pub(super) fn resumes(&self, pool: &Pool) -> bool {
        let share = pool.share(self.held);
        self.in_headroom == Bytes::ZERO
            && (share == Bytes::ZERO || share + HYSTERESIS <= pool.threshold())
    }

    /// Everything that it holds.
    pub(super) fn total(&self) -> Bytes {
        self.held + self.in_headroom
    }

    /// What it has of the pool.
    pub(super) fn of_pool(&self, pool: &Pool) -> Bytes {
        pool.share(self.held)
    }

    /// Whether it holds no more beyond the threshold than it may.
    pub(super) fn is_sound(&self) -> bool {
        self.in_headroom <= self.headroom
    }

    fn set_held(&mut self, pool: &mut Pool, held: Bytes) {
        pool.used = pool.used + pool.share(held) - pool.share(self.held);
        self.held = held;
    }
}

const HYSTERESIS: Bytes = Bytes(3_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Pool {
        let alpha = Alpha { times: 1, over: 2 };
        Pool { size: Bytes(30_000), used: Bytes::ZERO, alpha, reserve: Bytes(2_000) }
    }

    #[test]
    fn packets_fill_the_reserve_then_the_pool_then_the_headroom() {
        let mut pool = pool();
        let mut port = Ingress::new(Bytes(2_500));
        let mut seen = Vec::new();
        while let Some(place) = port.place(&pool, Bytes(1_000)) {
            port.take(&mut pool, Bytes(1_000), place);
            seen.push((place, pool.used.get(), port.pauses(&pool)));
        }
        // It takes at most half of what is free: n KB while n <= (30 - (n - 1)) / 2.
        let usual = |n: u64| (Place::Usual, n.saturating_sub(2) * 1_000, n == 12);
        let mut expected: Vec<_> = (1..=12).map(usual).collect();
        expected.extend([(Place::Headroom, 10_000, true); 2]);
        assert_eq!(seen, expected);
        assert!(port.is_sound() && port.total() == Bytes(14_000));
    }

    #[test]
    fn what_leaves_frees_the_headroom_first_and_resumes_3_kb_below_the_threshold() {
        let mut pool = pool();
        let mut port = Ingress::new(Bytes(2_000));
        while let Some(place) = port.place(&pool, Bytes(1_000)) {
            port.take(&mut pool, Bytes(1_000), place);
        }
        let mut left = 0;
        while !port.resumes(&pool) {
            port.release(&mut pool, Bytes(1_000));
            left += 1;
        }
        // Two of the headroom; then n KB of the pool with n + 3 <= (30 - n) / 2: n = 8.
        assert_eq!((left, pool.used), (4, Bytes(8_000)));
        (0..10).for_each(|_| port.release(&mut pool, Bytes(1_000)));
        assert_eq!((port.total(), pool.used), (Bytes::ZERO, Bytes::ZERO));
    }

    #[test]
    fn a_port_within_its_reserve_never_pauses() {
        let mut pool = Pool { used: Bytes(30_000), ..pool() };
        let mut port = Ingress::new(Bytes(1_500));
        port.take(&mut pool, Bytes(2_000), Place::Usual);
        assert!(!port.pauses(&pool) && port.resumes(&pool));
        assert_eq!(port.place(&pool, Bytes(1)), Some(Place::Headroom), "the pool is full");
        assert_eq!(port.place(&pool, Bytes(1_501)), None);
    }
}

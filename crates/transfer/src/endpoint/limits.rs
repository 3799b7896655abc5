//! Limits on what unknown peers may cost.

use std::net::IpAddr;

use weir_units::{Duration, Instant};

/// Limits on what unknown peers may cost an endpoint. How much each connection may hold is its application's matter,
/// which opens the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one IP address; of IPv6 from one /64, of which a host has all addresses.
    pub per_address: usize,
    /// Connections from one network: an IPv4 /24 or an IPv6 /48, as they are given to one site.
    pub per_network: usize,
    /// Where one of these is reached, a connection is evicted on which nothing new was delivered in either
    /// direction for this long. What arrives before its peer has said what it is for does not count.
    pub evictable: Duration,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a peer may be silent.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            per_address: 256,
            per_network: 512,
            evictable: Duration::from_secs(5),
            handshake: Duration::from_secs(30),
            idle: Duration::from_secs(60),
        }
    }
}

/// Where connections come from, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    address: u128,
    network: u128,
}

impl Origin {
    pub(super) fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let mapped = ip.to_ipv6_mapped().to_bits();
                Self { address: mapped, network: mapped >> 8 << 8 }
            }
            IpAddr::V6(ip) => {
                let bits = ip.to_bits();
                Self { address: bits >> 64 << 64, network: bits >> 80 << 80 }
            }
        }
    }
}

/// Whether another connection from one place would be too many, and whose end would change that.
pub(super) struct OriginCounts<T> {
    origin: Origin,
    /// In all, from the same network, from the same address: how many there are, and the least recently active.
    counted: [(usize, Option<(Instant, T)>); 3],
}

/// Outcome of the search for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot<T> {
    /// One more.
    Free,
    /// One in place of this one.
    InPlaceOf(T),
    None,
}

impl<T: Copy> OriginCounts<T> {
    pub(super) fn of(ip: IpAddr) -> Self {
        Self { origin: Origin::of(ip), counted: [(0, None); 3] }
    }

    /// Counts a connection that was last active at an instant.
    pub(super) fn count(&mut self, ip: IpAddr, active_at: Instant, id: T) {
        let origin = Origin::of(ip);
        let same =
            [true, origin.network == self.origin.network, origin.address == self.origin.address];
        for ((count, oldest), _) in self.counted.iter_mut().zip(same).filter(|(_, same)| *same) {
            *count += 1;
            if oldest.is_none_or(|(before, _)| active_at < before) {
                *oldest = Some((active_at, id));
            }
        }
    }

    /// The narrowest limit that is reached decides which one is evicted: then the other limits hold too.
    pub(super) fn slot(&self, now: Instant, limits: &Limits) -> Slot<T> {
        let most = [limits.connections, limits.per_network, limits.per_address];
        let reached = self.counted.iter().zip(most).filter(|((count, _), most)| count >= most);
        match reached.last() {
            None => Slot::Free,
            Some(((_, Some((active_at, id))), _))
                if now.saturating_since(*active_at) >= limits.evictable =>
            {
                Slot::InPlaceOf(*id)
            }
            Some(_) => Slot::None,
        }
    }
}

/// Token bucket: a burst, and a rate per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    most: u64,
    left: u64,
    counted: Instant,
}

impl TokenBucket {
    pub(super) fn per_second(most: u64) -> Self {
        Self { most, left: most, counted: Instant::ZERO }
    }

    /// Whether one more is allowed; it then counts.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let one = Duration::from_secs(1) / self.most;
        let earned = now.saturating_since(self.counted).as_nanos() / one.as_nanos();
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(self.most);
            self.counted = now;
        }
        let allowed = self.left > 0;
        self.left -= u64::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// The slot for one more from `from` at 10 s, among connections from `there`, active at these
    /// seconds.
    fn slot(from: &str, there: &[(&str, u64)]) -> Slot<usize> {
        let limits = Limits { connections: 4, per_network: 3, per_address: 2, ..Limits::default() };
        let mut census = OriginCounts::of(from.parse().expect("an address"));
        for (id, (ip, active_at)) in there.iter().enumerate() {
            census.count(ip.parse().expect("an address"), at(*active_at), id);
        }
        census.slot(at(10), &limits)
    }

    #[test]
    fn an_address_a_network_and_all_have_their_limit() {
        let two = [("192.0.2.1", 9), ("192.0.2.1", 9)];
        assert_eq!(slot("192.0.2.1", &two[..1]), Slot::Free);
        assert_eq!(slot("192.0.2.1", &two), Slot::None);
        assert_eq!(slot("::ffff:192.0.2.1", &two), Slot::None, "the same address");
        assert_eq!(slot("192.0.2.2", &two), Slot::Free);
        let three = [two[0], two[1], ("192.0.2.2", 9)];
        assert_eq!(slot("192.0.2.3", &three), Slot::None);
        assert_eq!(slot("192.0.3.1", &three), Slot::Free);
        let four = [three[0], three[1], three[2], ("198.51.100.1", 9)];
        assert_eq!(slot("203.0.113.1", &four), Slot::None);
        let host = [("2001:db8:1:2::1", 9), ("2001:db8:1:2::2", 9)];
        assert_eq!(slot("2001:db8:1:2::3", &host), Slot::None, "one host has a /64");
        assert_eq!(slot("2001:db8:1:3::3", &host), Slot::Free);
        let site = [host[0], host[1], ("2001:db8:1:4::1", 9)];
        assert_eq!(slot("2001:db8:1:5::1", &site), Slot::None, "one site has a /48");
    }

    #[test]
    fn the_least_recently_active_is_evicted() {
        let two = [("192.0.2.1", 5), ("192.0.2.1", 4)];
        assert_eq!(slot("192.0.2.1", &two), Slot::InPlaceOf(1));
        let four = [("192.0.2.1", 9), ("192.0.2.1", 6), ("198.51.100.1", 1), ("198.51.100.2", 2)];
        assert_eq!(slot("203.0.113.1", &four), Slot::InPlaceOf(2));
        assert_eq!(slot("192.0.2.1", &four), Slot::None, "only one of its own would help it");
    }

    #[test]
    fn an_allowance_comes_back_with_time() {
        let mut allowance = TokenBucket::per_second(10);
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let take =
            |allowance: &mut TokenBucket, ms| (0..100).filter(|_| allowance.take(at(ms))).count();
        assert_eq!(take(&mut allowance, 0), 10);
        assert_eq!(take(&mut allowance, 50), 0);
        assert_eq!(take(&mut allowance, 350), 3);
        assert_eq!(take(&mut allowance, 60_000), 10);
    }
}

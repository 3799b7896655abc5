//! Places for peers, which are limited in number: which peer gets one, and which one loses it.
//!
//! Peers that are idle or slow must not keep others out by taking all places. So a newcomer replaces a peer that brings
//! little, first of the network that has most places: many addresses of one network count as one, and an honest peer
//! that is alone in its network loses its place last. Has no clock.

use std::cmp::Reverse;
use std::net::IpAddr;

use weir_units::{Duration, Instant};

/// How many places there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub all: usize,
    /// For one network: an IPv4 /24 or an IPv6 /48, as they are given to one site.
    pub per_network: usize,
    /// For one address; of IPv6 for one /64, of which a host has all addresses.
    pub per_address: usize,
    /// A peer that has been there for this long must have been as fast as `least_rate` during it.
    pub grace: Duration,
    /// New bytes a second that keep a place.
    pub least_rate: u64,
    /// A newcomer keeps its place for this long, unless another one brings more, and for as long as what it brought
    /// lasts at `least_rate`.
    pub stay: Duration,
}

/// Where a peer is, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    address: u128,
    network: u128,
}

impl Origin {
    /// Its address; of IPv6 the /64.
    pub fn address(&self) -> u128 {
        self.address
    }

    /// Its network: an IPv4 /24 or an IPv6 /48.
    pub fn network(&self) -> u128 {
        self.network
    }

    /// Of an address.
    pub fn of(ip: IpAddr) -> Self {
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

/// How fast a connection brings something new.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The present interval: when it began, what was new in it,
    since: Instant,
    bytes: u64,
    /// and what was new in the one before, each second.
    before: Option<u64>,
}

impl Pace {
    /// Of someone who comes now.
    pub fn new(now: Instant) -> Self {
        Self { since: now, bytes: 0, before: None }
    }

    /// Counts new bytes. An interval is `grace` long, or longer if nothing is new.
    pub fn add(&mut self, now: Instant, bytes: u64, grace: Duration) {
        if now.saturating_since(self.since) >= grace {
            *self = Self { before: Some(self.rate(now)), ..Self::new(now) };
        }
        self.bytes += bytes;
    }

    /// New bytes a second in the present interval; a second after its beginning at the earliest.
    pub fn rate(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_since(self.since).max(Duration::from_secs(1));
        (u128::from(self.bytes) * 1_000_000_000 / u128::from(elapsed.as_nanos())) as u64
    }

    /// The rate over `grace` or longer; `None` if it was not there for so long.
    fn known(&self, now: Instant, grace: Duration) -> Option<u64> {
        let over = now.saturating_since(self.since) >= grace;
        if over { Some(self.rate(now)) } else { self.before.map(|rate| rate.max(self.rate(now))) }
    }

    /// Whether it is below the least rate since it came, or in both intervals. Who has just come gives way only to
    /// someone who brings more.
    fn is_slow(&self, now: Instant, bounds: &Bounds, brings: u64) -> bool {
        if let Some(before) = self.before {
            return before.max(self.rate(now)) < bounds.least_rate;
        }
        let elapsed = now.saturating_since(self.since);
        let paid = u128::from(self.bytes) * 1_000_000_000;
        (elapsed >= bounds.stay || brings > self.bytes)
            && paid < u128::from(bounds.least_rate) * u128::from(elapsed.as_nanos())
    }
}

/// The connections that there are, when there comes another one.
pub struct Census<T> {
    /// Where the newcomer is from,
    origin: Origin,
    /// and the bytes that it brings with its arrival.
    brings: u64,
    there: Vec<(Origin, Pace, T)>,
}

/// Outcome of the search for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// One more.
    Free,
    /// One in place of this one.
    InPlaceOf(T),
    /// All keep theirs.
    None,
}

impl<T: Copy> Census<T> {
    /// For a newcomer from this address.
    pub fn of(ip: IpAddr) -> Self {
        Self { origin: Origin::of(ip), brings: 0, there: Vec::new() }
    }

    /// The newcomer brings this many bytes with its arrival.
    pub fn bringing(self, brings: u64) -> Self {
        Self { brings, ..self }
    }

    /// Counts someone who is there.
    pub fn count(&mut self, ip: IpAddr, pace: Pace, id: T) {
        self.there.push((Origin::of(ip), pace, id));
    }

    /// The narrowest limit that is reached decides among which one is evicted: then the other limits hold too. Of
    /// those below the least rate it is the slowest one of the network (within a network: address) that has most.
    /// If none is below, it is the slowest of the network that has most, should that have as many as the newcomer's
    /// even then. If it has not, it is the slowest of those that were below the least rate since they came, again
    /// first of the network that has most.
    pub fn slot(mut self, now: Instant, bounds: &Bounds) -> Slot<T> {
        let own = self.origin;
        let same = |group: fn(&Origin) -> u128| {
            self.there.iter().filter(|(origin, ..)| group(origin) == group(&own)).count()
        };
        let group: fn(&Origin) -> u128 = if same(Origin::address) >= bounds.per_address {
            self.there.retain(|(origin, ..)| origin.address == own.address);
            Origin::address
        } else if same(Origin::network) >= bounds.per_network {
            self.there.retain(|(origin, ..)| origin.network == own.network);
            Origin::address
        } else if self.there.len() >= bounds.all {
            Origin::network
        } else {
            return Slot::Free;
        };
        self.there.sort_by_key(|(origin, ..)| group(origin));
        let mut groups: Vec<_> =
            self.there.chunk_by(|(one, ..), (other, ..)| group(one) == group(other)).collect();
        groups.sort_by_key(|members| Reverse(members.len()));
        let too_slow =
            |pace: &Pace| pace.known(now, bounds.grace).filter(|rate| *rate < bounds.least_rate);
        let is_own = |members: &&Group<'_, T>| group(&members[0].0) == group(&own);
        let own_count = groups.iter().find(is_own).map_or(0, |members| members.len());
        let over_share = groups.partition_point(|members| members.len() > own_count + 1);
        let slow = |pace: &Pace| pace.is_slow(now, bounds, self.brings).then(|| pace.rate(now));
        slowest(&groups, too_slow)
            .or_else(|| slowest(&groups[..over_share], |pace| Some(pace.rate(now))))
            .or_else(|| slowest(&groups, slow))
            .map_or(Slot::None, Slot::InPlaceOf)
    }
}

/// The connections of a network or an address.
type Group<'a, T> = &'a [(Origin, Pace, T)];

/// Of those that have a `rate`, the slowest one of the largest groups; of equally slow ones the one whose
/// interval began first. Groups that are equally large count as one, so that no address comes before others.
fn slowest<T: Copy>(groups: &[Group<'_, T>], rate: impl Fn(&Pace) -> Option<u64>) -> Option<T> {
    let equal = groups.chunk_by(|one, other| one.len() == other.len());
    equal
        .filter_map(|groups| {
            let members = groups.iter().flat_map(|members| members.iter());
            let rated = members.filter_map(|(_, pace, id)| Some((rate(pace)?, pace.since, *id)));
            rated.min_by_key(|(rate, since, _)| (*rate, *since)).map(|(.., id)| id)
        })
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds {
        all: 1_024,
        per_network: 512,
        per_address: 256,
        grace: Duration::from_secs(5),
        least_rate: 1_024,
        stay: Duration::from_secs(1),
    };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// The slot for one more from `from` at 20 s, among connections from `there`, of which each began at a second
    /// and has brought this number of bytes since.
    fn slot(from: &str, there: &[(&str, u64, u64)]) -> Slot<usize> {
        let bounds = Bounds { all: 4, per_network: 3, per_address: 2, ..BOUNDS };
        let mut census = Census::of(from.parse().expect("an address"));
        for (id, (ip, began, bytes)) in there.iter().enumerate() {
            let pace = Pace { bytes: *bytes, ..Pace::new(at(*began)) };
            census.count(ip.parse().expect("an address"), pace, id);
        }
        census.slot(at(20), &bounds)
    }

    #[test]
    fn an_address_a_network_and_all_have_their_limit() {
        let from = |ip| (ip, 20, 0);
        let two = [from("192.0.2.1"), from("192.0.2.1")];
        assert_eq!(slot("192.0.2.1", &two[..1]), Slot::Free);
        assert_eq!(slot("192.0.2.1", &two), Slot::None);
        assert_eq!(slot("::ffff:192.0.2.1", &two), Slot::None, "the same address");
        assert_eq!(slot("192.0.2.2", &two), Slot::Free);
        let three = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(from);
        assert_eq!(slot("192.0.2.4", &three), Slot::None);
        assert_eq!(slot("192.0.3.1", &three), Slot::Free);
        let four = ["192.0.2.1", "198.51.100.1", "198.18.0.1", "198.18.1.1"].map(from);
        assert_eq!(slot("203.0.113.1", &four), Slot::None);
        let host = ["2001:db8:1:2::1", "2001:db8:1:2::2"].map(from);
        assert_eq!(slot("2001:db8:1:2::3", &host), Slot::None, "one host has a /64");
        assert_eq!(slot("2001:db8:1:3::3", &host), Slot::Free);
        let site = ["2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1:4::1"].map(from);
        assert_eq!(slot("2001:db8:1:5::1", &site), Slot::None, "one site has a /48");
    }

    #[test]
    fn the_slowest_below_the_least_rate_is_evicted() {
        let two = [("192.0.2.1", 10, 9_000), ("192.0.2.1", 10, 8_000)];
        assert_eq!(slot("192.0.2.1", &two), Slot::InPlaceOf(1));
        let fast = [("192.0.2.1", 10, 20_000), ("192.0.2.1", 16, 0)];
        assert_eq!(slot("192.0.2.1", &fast), Slot::InPlaceOf(1), "there is no other");
        let fast = [("192.0.2.1", 10, 20_000), ("192.0.2.1", 20, 0)];
        assert_eq!(slot("192.0.2.1", &fast), Slot::None, "one is fast, one has just come");
        let four = [
            ("198.51.100.1", 10, 0),
            ("192.0.2.1", 10, 200),
            ("192.0.2.2", 10, 100),
            ("198.18.0.1", 10, 0),
        ];
        assert_eq!(slot("203.0.113.1", &four), Slot::InPlaceOf(2), "of the network with two");
    }

    /// Else who has the lowest address is always the one that goes.
    #[test]
    fn of_equally_large_networks_the_slowest_is_evicted() {
        let four = [
            ("10.0.0.1", 10, 900),
            ("192.0.2.1", 10, 300),
            ("198.51.100.1", 10, 100),
            ("198.18.0.1", 10, 200),
        ];
        assert_eq!(slot("203.0.113.1", &four), Slot::InPlaceOf(2));
        let four = [
            ("10.0.0.1", 18, 900),
            ("192.0.2.1", 17, 300),
            ("198.51.100.1", 17, 300),
            ("198.18.0.1", 16, 300),
        ];
        assert_eq!(slot("203.0.113.1", &four), Slot::InPlaceOf(3), "the oldest of equals");
    }

    /// 512 bytes last for half a second at 1024 bytes a second.
    #[test]
    fn what_a_newcomer_brought_keeps_its_place_for_a_while() {
        let bounds = Bounds { all: 1, stay: Duration::from_millis(20), ..BOUNDS };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let slot_for = |brings, bytes, ms| {
            let mut census = Census::of("192.0.2.1".parse().expect("an address")).bringing(brings);
            let pace = Pace { bytes, ..Pace::new(at(0)) };
            census.count("198.51.100.1".parse().expect("an address"), pace, 0);
            census.slot(at(ms), &bounds)
        };
        let slot = |bytes, ms| slot_for(1, bytes, ms);
        assert_eq!(slot(512, 499), Slot::None);
        assert_eq!(slot(512, 501), Slot::InPlaceOf(0));
        assert_eq!(slot(1, 19), Slot::None);
        assert_eq!(slot(1, 20), Slot::InPlaceOf(0));
        assert_eq!(slot_for(2, 1, 1), Slot::InPlaceOf(0), "it brings more");
        assert_eq!(slot_for(1_472, 512, 499), Slot::None, "what the other brought still lasts");
    }

    #[test]
    fn a_network_with_more_than_its_share_loses_a_place() {
        let fast = |ip, bytes: u64| (ip, 10, 20_000 + bytes);
        let four = [
            fast("192.0.2.1", 300),
            fast("192.0.2.2", 100),
            fast("198.51.100.1", 0),
            fast("198.18.0.1", 0),
        ];
        assert_eq!(slot("203.0.113.1", &four), Slot::InPlaceOf(1), "of the network with two");
        assert_eq!(slot("198.18.0.2", &four), Slot::None, "it would have two itself");
        let network = [("192.0.2.1", 20, 9), ("192.0.2.1", 20, 5), ("192.0.2.2", 20, 0)];
        assert_eq!(slot("192.0.2.3", &network), Slot::InPlaceOf(1), "of the address with two");
        assert_eq!(slot("192.0.2.2", &network), Slot::None);
    }

    #[test]
    fn a_byte_now_and_then_is_no_progress() {
        let mut pace = Pace::new(at(0));
        for second in 0..60 {
            pace.add(at(second), 1, BOUNDS.grace);
            let known = pace.known(at(second), BOUNDS.grace);
            assert!(known.is_none_or(|rate| rate <= 2), "{known:?}");
            assert_eq!(known.is_some(), second >= 5);
        }
        pace.add(at(61), 1 << 20, BOUNDS.grace);
        assert!(pace.known(at(62), BOUNDS.grace).is_some_and(|rate| rate > 100_000));
        assert_eq!(pace.known(at(50_000), BOUNDS.grace), Some(20), "it decays");
    }
}

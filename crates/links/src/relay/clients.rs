//! The clients of a relay: bounded in number, forgotten when idle, replaced when slow. Has no clock.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use weir_sockets::places::{Bounds, Census, Pace, Slot};
use weir_units::{Duration, Instant};

/// Clients by number and by address. `S` is what the relay keeps for each.
#[derive(Debug)]
pub(crate) struct Clients<S> {
    by_address: HashMap<SocketAddr, u32>,
    table: BTreeMap<u32, Client<S>>,
    next: u32,
    places: Bounds,
    idle: Duration,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client<S> {
    pub(crate) address: SocketAddr,
    pub(crate) own: S,
    used: Instant,
    pace: Pace,
}

/// There are as many clients as there may be, all in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// When all places are taken, the slowest client below this rate loses its own to a newcomer,
const LEAST_RATE: u64 = 1_024;
/// which it had for this long: longer than a sender waits for a timeout;
const GRACE: Duration = Duration::from_secs(2);
/// a newcomer, once what it and its server sent would have taken longer at that rate. Anyone can send from any number
/// of addresses, so a longer stay for each would fill all places. This bounds how many sockets are made.
const STAY: Duration = Duration::from_millis(20);

impl<S> Clients<S> {
    /// None yet, at most `limit`, each until it has been `idle` for so long.
    pub(crate) fn new(limit: usize, idle: Duration) -> Self {
        let places = Bounds {
            all: limit,
            per_network: usize::MAX,
            per_address: usize::MAX,
            grace: GRACE,
            least_rate: LEAST_RATE,
            stay: STAY,
        };
        Self { by_address: HashMap::new(), table: BTreeMap::new(), next: 0, places, idle }
    }

    /// The client at `address`.
    pub(crate) fn find(&self, address: SocketAddr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// Makes space for another from `ip`, which brings `bytes` bytes: with none left, a slow client is forgotten and
    /// returned, first one of the network that has most of them.
    pub(crate) fn make_space(
        &mut self,
        ip: IpAddr,
        now: Instant,
        bytes: u64,
    ) -> Result<Option<Client<S>>, Full> {
        if self.table.len() < self.places.all {
            return Ok(None);
        }
        let mut census = Census::of(ip).bringing(bytes);
        for (id, client) in &self.table {
            census.count(client.address.ip(), client.pace, *id);
        }
        match census.slot(now, &self.places) {
            Slot::Free => Ok(None),
            Slot::InPlaceOf(id) => Ok(self.remove(id)),
            Slot::None => Err(Full),
        }
    }

    /// Adds a client.
    pub(crate) fn add(&mut self, address: SocketAddr, own: S, now: Instant) -> u32 {
        let id = self.next;
        // Numbers of the living are not given twice, however long the relay runs.
        self.next = self.next.wrapping_add(1);
        while self.table.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.by_address.insert(address, id);
        let client = Client { address, own, used: now, pace: Pace::new(now) };
        self.table.insert(id, client);
        id
    }

    /// A client by number.
    pub(crate) fn by_number(&self, id: u32) -> Option<&Client<S>> {
        self.table.get(&id)
    }

    /// Takes note of bytes of a client, or of its server for it.
    pub(crate) fn touch(&mut self, id: u32, now: Instant, bytes: u64) {
        if let Some(client) = self.table.get_mut(&id) {
            client.used = client.used.max(now);
            client.pace.add(now, bytes, GRACE);
        }
    }

    /// Forgets those that have been idle for too long, and returns them.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Client<S>> {
        let is_idle = |client: &Client<S>| now.saturating_since(client.used) >= self.idle;
        let idle: Vec<u32> =
            self.table.iter().filter(|(_, client)| is_idle(client)).map(|(id, _)| *id).collect();
        idle.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    fn remove(&mut self, id: u32) -> Option<Client<S>> {
        let client = self.table.remove(&id)?;
        self.by_address.remove(&client.address);
        Some(client)
    }

    /// All, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Client<S>)> {
        self.table.iter().map(|(id, client)| (*id, client))
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn clients_are_known_until_they_have_been_idle() {
        let mut clients = Clients::new(2, Duration::from_secs(60));
        let first = clients.add(address(1), "a", at(0));
        let second = clients.add(address(2), "b", at(0));
        assert_eq!(clients.find(address(1)), Some(first));
        clients.touch(first, at(30), 1);
        assert_eq!(clients.expire(at(59)).len(), 0);
        let gone = clients.expire(at(60));
        assert_eq!(gone.iter().map(|client| client.own).collect::<Vec<_>>(), ["b"]);
        assert!(clients.by_number(second).is_none() && clients.find(address(2)).is_none());
        let space = clients.make_space(address(3).ip(), at(60), 1);
        assert!(space.is_ok_and(|gone| gone.is_none()));
        clients.touch(first, at(80), 1);
        assert_eq!(clients.expire(at(100)).len(), 0);
        assert_eq!(clients.expire(at(140)).len(), 1);
        assert_eq!(clients.len(), 0);
    }

    #[test]
    fn a_slow_client_is_replaced() {
        let mut clients = Clients::new(2, Duration::from_secs(60));
        let ip = address(3).ip();
        let fast = clients.add(address(1), "a", at(0));
        clients.add(address(2), "b", at(1));
        clients.touch(fast, at(1), 10_000);
        assert!(clients.make_space(ip, at(1), 0).is_err(), "the other has just come");
        let gone = clients.make_space(ip, at(4), 0).expect("space").expect("a client is replaced");
        assert_eq!(gone.own, "b");
        assert!(clients.find(address(2)).is_none());
        assert!(clients.make_space(ip, at(4), 0).is_ok_and(|gone| gone.is_none()));
    }

    /// Attackers from ever new addresses, each of which sends a datagram of some bytes in turn.
    struct Attackers {
        addresses: Vec<SocketAddr>,
        bytes: u64,
        sent: usize,
    }

    impl Attackers {
        fn new(addresses: Vec<SocketAddr>, bytes: u64) -> Self {
            Self { addresses, bytes, sent: 0 }
        }

        /// One of each of this many networks.
        fn of_networks(count: u16, bytes: u64) -> Self {
            let address = |n: u16| ([10, (n >> 8) as u8, n as u8, 1], 5_000).into();
            Self::new((0..count).map(address).collect(), bytes)
        }

        /// The next `count` of them.
        fn send(&mut self, count: usize, clients: &mut Clients<()>, now: Instant) {
            for _ in 0..count {
                let one = self.addresses[self.sent % self.addresses.len()];
                self.sent += 1;
                arrive(clients, one, now, self.bytes);
            }
        }
    }

    /// A datagram of a client; returns whether it is relayed.
    fn arrive(clients: &mut Clients<()>, from: SocketAddr, now: Instant, bytes: u64) -> bool {
        let id = clients.find(from).or_else(|| {
            clients.make_space(from.ip(), now, bytes).ok()?;
            Some(clients.add(from, (), now))
        });
        id.inspect(|id| clients.touch(*id, now, bytes)).is_some()
    }

    /// In milliseconds: shortly after attackers that send once a second, and so are its timeouts.
    const BEGIN: u64 = 5_007;

    /// A small file next to attackers that send `per_ms` datagrams in each of the first `busy` milliseconds of a
    /// second: an opening of 56 bytes, again after 1 s, 3 s and so on, each of its three round trips with an answer
    /// of as many bytes. Returns after how many milliseconds all was answered, if it was within 60 s.
    fn honest_ends(
        mut attackers: Attackers,
        (busy, per_ms): (u64, usize),
        round_trip: u64,
    ) -> Option<u64> {
        let mut clients = Clients::new(100, Duration::from_secs(60));
        let honest: SocketAddr = "9.1.2.3:9".parse().expect("an address");
        let (mut due, mut timeout, mut answered, mut step) = (BEGIN, 1_000, None, 0);
        for ms in 0..60_000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            if ms % 1_000 < busy {
                attackers.send(per_ms, &mut clients, now);
            }
            let place = clients.find(honest);
            if answered.is_some_and(|(at, id)| at == ms && place == Some(id)) {
                clients.touch(place?, now, 56);
                step += 1;
                due = ms;
            }
            if step == 3 {
                return Some(ms - BEGIN);
            }
            if due == ms {
                let bytes = if step == 2 { 1_100 } else { 56 };
                arrive(&mut clients, honest, now, bytes);
                answered = clients.find(honest).map(|id| (ms + round_trip, id));
                (due, timeout) = (ms + timeout, 2 * timeout);
            }
        }
        None
    }

    #[test]
    fn many_of_one_network_keep_no_one_out() {
        let of_one = || Attackers::new((1..=150).map(address).collect(), 1);
        assert_eq!(honest_ends(of_one(), (150, 1), 40), Some(120));
    }

    /// A byte a second of each of 1000 networks, spread over the second or at once: neither keeps an honest client
    /// out, however long its path is.
    #[test]
    fn drips_of_many_networks_keep_no_one_out() {
        for pattern in [(1_000, 1), (20, 50), (1, 1_000)] {
            for round_trip in [1, 40, 300] {
                let took = honest_ends(Attackers::of_networks(1_000, 1), pattern, round_trip);
                assert!(took == Some(3 * round_trip), "{pattern:?} {round_trip} {took:?}");
            }
        }
    }

    /// At 1024 bytes a second for each of 100 places they do: this is what an attack costs.
    #[test]
    fn places_cost_the_least_rate() {
        let half = honest_ends(Attackers::of_networks(1_000, 50), (1_000, 1), 40);
        assert_eq!(half, Some(120));
        let twice = honest_ends(Attackers::of_networks(2_000, 205), (1_000, 1), 40);
        assert_eq!(twice, None);
    }

    #[test]
    fn a_client_that_comes_back_is_another() {
        let mut clients = Clients::new(2, Duration::from_secs(1));
        let first = clients.add(address(1), (), at(0));
        clients.expire(at(5));
        assert_ne!(clients.add(address(1), (), at(6)), first);
    }
}

//! The clients of a relay: bounded in number, forgotten when idle. Has no clock.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use weir_units::{Duration, Instant};

/// Clients by number and by address. `S` is what the relay keeps for each.
#[derive(Debug)]
pub(crate) struct Clients<S> {
    by_address: HashMap<SocketAddr, u32>,
    table: BTreeMap<u32, Client<S>>,
    next: u32,
    limit: usize,
    idle: Duration,
}

/// A client.
#[derive(Debug)]
pub(crate) struct Client<S> {
    pub(crate) address: SocketAddr,
    pub(crate) own: S,
    used: Instant,
}

/// There are as many clients as there may be, all in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A client keeps its place for so long after it was last heard: longer than a sender waits for a timeout.
const LIVELY: Duration = Duration::from_secs(2);

impl<S> Clients<S> {
    /// None yet, at most `limit`, each until it has been `idle` for so long.
    pub(crate) fn new(limit: usize, idle: Duration) -> Self {
        Self { by_address: HashMap::new(), table: BTreeMap::new(), next: 0, limit, idle }
    }

    /// The client at `address`, which is in use at `now`.
    pub(crate) fn find(&mut self, address: SocketAddr, now: Instant) -> Option<u32> {
        let id = *self.by_address.get(&address)?;
        self.touch(id, now);
        Some(id)
    }

    /// Makes space for another: with none left, the client that was silent longest is forgotten and returned,
    /// unless all have been heard lately.
    pub(crate) fn make_space(&mut self, now: Instant) -> Result<Option<Client<S>>, Full> {
        if self.table.len() < self.limit {
            return Ok(None);
        }
        let eldest = self.table.iter().min_by_key(|(_, client)| client.used);
        let silent = |client: &Client<S>| now.saturating_since(client.used) >= LIVELY;
        let (id, _) = eldest.filter(|(_, client)| silent(client)).ok_or(Full)?;
        let id = *id;
        Ok(self.remove(id))
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
        self.table.insert(id, Client { address, own, used: now });
        id
    }

    /// A client by number.
    pub(crate) fn by_number(&self, id: u32) -> Option<&Client<S>> {
        self.table.get(&id)
    }

    /// Takes note that a client is in use.
    pub(crate) fn touch(&mut self, id: u32, now: Instant) {
        if let Some(client) = self.table.get_mut(&id) {
            client.used = client.used.max(now);
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
        assert_eq!(clients.make_space(at(1)).err(), Some(Full));
        assert_eq!(clients.find(address(1), at(30)), Some(first));
        assert_eq!(clients.expire(at(59)).len(), 0);
        let gone = clients.expire(at(60));
        assert_eq!(gone.iter().map(|client| client.own).collect::<Vec<_>>(), ["b"]);
        assert!(clients.by_number(second).is_none() && clients.find(address(2), at(60)).is_none());
        assert!(clients.make_space(at(60)).is_ok_and(|gone| gone.is_none()));
        clients.touch(first, at(80));
        assert_eq!(clients.expire(at(100)).len(), 0);
        assert_eq!(clients.expire(at(140)).len(), 1);
        assert_eq!(clients.len(), 0);
    }

    #[test]
    fn the_client_that_was_silent_longest_is_replaced() {
        let mut clients = Clients::new(2, Duration::from_secs(60));
        let first = clients.add(address(1), "a", at(0));
        clients.add(address(2), "b", at(1));
        clients.touch(first, at(3));
        assert!(clients.make_space(at(2)).is_err(), "both were heard a moment ago");
        let gone = clients.make_space(at(4)).expect("space").expect("a client is replaced");
        assert_eq!(gone.own, "b");
        assert!(clients.find(address(2), at(4)).is_none());
        assert!(clients.make_space(at(4)).is_ok_and(|gone| gone.is_none()));
    }

    #[test]
    fn a_client_that_comes_back_is_another() {
        let mut clients = Clients::new(2, Duration::from_secs(1));
        let first = clients.add(address(1), (), at(0));
        clients.expire(at(5));
        assert_ne!(clients.add(address(1), (), at(6)), first);
    }
}

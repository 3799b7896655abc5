//! AODV's routing table (RFC 3561 §2, §6.1, §6.2).
//!
//! Routes expire when they are looked up, not by a timer of their own. An expired route's
//! sequence number is raised (§6.1), which keeps a node from believing an older route of its own
//! that a neighbour still has.

use std::collections::BTreeMap;

use weir_units::{Duration, Instant};

use crate::datagram::NodeId;
use crate::routing::newer;

/// Routes by destination.
#[derive(Clone, Debug)]
pub(super) struct RouteTable {
    routes: BTreeMap<NodeId, Route>,
    delete_period: Duration,
}

/// What a node knows of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) next_hop: NodeId,
    pub(super) hops: u8,
    /// The destination's sequence number, if one is known for certain.
    pub(super) sequence: Option<u32>,
    pub(super) state: State,
    /// End of the lifetime; of a dead route, when it is forgotten.
    pub(super) until: Instant,
    /// Who routes over this node (§6.2), at most [`PRECURSORS`].
    precursors: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Valid,
    Invalid,
    /// Dead, but its parcels wait for local repair.
    InRepair,
}

/// What a message says of a route.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) next_hop: NodeId,
    pub(super) hops: u8,
    pub(super) sequence: Option<u32>,
    pub(super) until: Instant,
}

/// What came of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing: the route that is there is fresher or shorter.
    Kept,
    /// The route is in the table, with the next hop that it had.
    Refreshed,
    /// There is a route where none was, or over another neighbour.
    Changed,
}

/// The most destinations.
pub(super) const ROUTES: usize = 1024;
const PRECURSORS: usize = 32;

impl RouteTable {
    pub(super) fn new(delete_period: Duration) -> Self {
        Self { routes: BTreeMap::new(), delete_period }
    }

    /// The route to `destination`, dead or alive.
    pub(super) fn get(&mut self, now: Instant, destination: NodeId) -> Option<&mut Route> {
        let route = self.routes.get_mut(&destination)?;
        route.age(now, self.delete_period);
        if route.state == State::Invalid && route.until <= now {
            self.routes.remove(&destination);
            return None;
        }
        self.routes.get_mut(&destination)
    }

    /// The route to `destination`, if it may be used.
    pub(super) fn valid(&mut self, now: Instant, destination: NodeId) -> Option<&mut Route> {
        self.get(now, destination).filter(|route| route.state == State::Valid)
    }

    /// Takes a route into the table if it is better than what is there (§6.2): a newer sequence
    /// number, the same and fewer hops, the same where the old route is dead, or none known before.
    pub(super) fn offer(&mut self, now: Instant, destination: NodeId, offer: Offer) -> Taken {
        self.make_space(now, destination);
        let Some(old) = self.get(now, destination) else {
            self.routes.insert(destination, Route::from(offer));
            return Taken::Changed;
        };
        let better = match (offer.sequence, old.sequence) {
            (Some(new), Some(known)) => {
                let worse = old.state == State::Valid && offer.hops >= old.hops;
                newer(new, known) || new == known && !worse
            }
            (Some(_), None) => true,
            // A neighbour heard from: what is known of it stays true, its distance is one hop.
            (None, _) => old.state != State::Valid || offer.hops < old.hops,
        };
        let same = old.state == State::Valid && old.next_hop == offer.next_hop;
        if !better {
            let refreshed = same && offer.hops == old.hops && old.sequence == offer.sequence
                || same && offer.sequence.is_none();
            if refreshed {
                old.until = old.until.max(offer.until);
                return Taken::Refreshed;
            }
            return Taken::Kept;
        }
        let until = if same { old.until.max(offer.until) } else { offer.until };
        let sequence = offer.sequence.or(old.sequence);
        let precursors = std::mem::take(&mut old.precursors);
        *old = Route { sequence, until, precursors, ..Route::from(offer) };
        if same { Taken::Refreshed } else { Taken::Changed }
    }

    /// The destinations whose valid routes go over `next_hop`.
    pub(super) fn over(&mut self, now: Instant, next_hop: NodeId) -> Vec<NodeId> {
        let period = self.delete_period;
        self.routes.values_mut().for_each(|route| route.age(now, period));
        let uses = |route: &Route| route.state == State::Valid && route.next_hop == next_hop;
        self.routes.iter().filter(|(_, route)| uses(route)).map(|(to, _)| *to).collect()
    }

    /// Whether any route is in use.
    pub(super) fn any_valid(&self, now: Instant) -> bool {
        self.routes.values().any(|route| route.state == State::Valid && route.until > now)
    }

    /// The route to `destination` is dead: with the sequence number that a message names, or one
    /// more than was known. Returns the sequence number to report, and whether any node used it.
    pub(super) fn invalidate(
        &mut self,
        now: Instant,
        destination: NodeId,
        sequence: Option<u32>,
    ) -> Option<(u32, bool)> {
        let period = self.delete_period;
        let route = self.routes.get_mut(&destination)?;
        route.kill(now, period);
        if let Some(reported) = sequence {
            let known = route.sequence.filter(|known| !newer(reported, *known));
            route.sequence = Some(known.unwrap_or(reported));
        }
        let used = !route.precursors.is_empty();
        route.precursors.clear();
        Some((route.sequence.unwrap_or(0), used))
    }

    /// The route to `destination` is dead, but its parcels wait and its precursors are not notified.
    pub(super) fn begin_repair(&mut self, now: Instant, destination: NodeId) {
        if let Some(route) = self.routes.get_mut(&destination) {
            route.kill(now, self.delete_period);
            route.state = State::InRepair;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// A full table forgets dead routes whose time is up, or else the one that ends first.
    fn make_space(&mut self, now: Instant, destination: NodeId) {
        if self.routes.len() < ROUTES || self.routes.contains_key(&destination) {
            return;
        }
        self.routes.retain(|_, route| route.state == State::InRepair || route.until > now);
        if self.routes.len() < ROUTES {
            return;
        }
        let first = self.routes.iter().min_by_key(|(_, route)| route.until).map(|(to, _)| *to);
        if let Some(first) = first {
            self.routes.remove(&first);
        }
    }
}

impl Route {
    /// The route is used: it lives on for `life`.
    pub(super) fn touch(&mut self, now: Instant, life: Duration) {
        self.until = self.until.max(now.saturating_add(life));
    }

    pub(super) fn add_precursor(&mut self, node: NodeId) {
        if !self.precursors.contains(&node) && self.precursors.len() < PRECURSORS {
            self.precursors.push(node);
        }
    }

    /// Its lifetime may be over.
    fn age(&mut self, now: Instant, delete_period: Duration) {
        if self.state == State::Valid && self.until <= now {
            let ended = self.until;
            self.kill(ended, delete_period);
        }
    }

    fn kill(&mut self, now: Instant, delete_period: Duration) {
        if self.state == State::Valid {
            self.sequence = self.sequence.map(|sequence| sequence.wrapping_add(1));
        }
        self.state = State::Invalid;
        self.until = now.saturating_add(delete_period);
    }
}

impl From<Offer> for Route {
    fn from(offer: Offer) -> Self {
        let Offer { next_hop, hops, sequence, until } = offer;
        Self { next_hop, hops, sequence, state: State::Valid, until, precursors: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D: NodeId = NodeId(9);

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn offer(next_hop: u16, hops: u8, sequence: u32) -> Offer {
        Offer { next_hop: NodeId(next_hop), hops, sequence: Some(sequence), until: at(10) }
    }

    fn table() -> RouteTable {
        RouteTable::new(Duration::from_secs(15))
    }

    #[test]
    fn fresher_wins_then_shorter() {
        let mut table = table();
        assert_eq!(table.offer(at(0), D, offer(1, 5, 10)), Taken::Changed);
        assert_eq!(table.offer(at(0), D, offer(2, 1, 9)), Taken::Kept);
        assert_eq!(table.offer(at(0), D, offer(2, 5, 10)), Taken::Kept);
        assert_eq!(table.offer(at(0), D, offer(2, 4, 10)), Taken::Changed);
        assert_eq!(table.offer(at(0), D, offer(3, 9, 11)), Taken::Changed);
        assert_eq!(table.valid(at(0), D).unwrap().next_hop, NodeId(3));
    }

    #[test]
    fn an_expired_route_believes_only_what_is_fresher() {
        let mut table = table();
        table.offer(at(0), D, offer(1, 5, 10));
        assert_eq!(table.valid(at(10), D), None);
        assert_eq!(table.get(at(10), D).unwrap().sequence, Some(11));
        assert_eq!(table.offer(at(10), D, offer(2, 1, 10)), Taken::Kept);
        assert_eq!(
            table.offer(at(10), D, Offer { until: at(20), ..offer(2, 1, 11) }),
            Taken::Changed
        );
        assert!(table.get(at(34), D).is_some());
        assert_eq!(table.get(at(35), D), None, "forgotten after DELETE_PERIOD");
    }

    #[test]
    fn broken_routes_tell_their_precursors_once() {
        let mut table = table();
        table.offer(at(0), D, offer(1, 5, 10));
        table.get(at(0), D).unwrap().add_precursor(NodeId(4));
        assert_eq!(table.over(at(0), NodeId(1)), [D]);
        assert_eq!(table.invalidate(at(0), D, None), Some((11, true)));
        assert_eq!(table.over(at(0), NodeId(1)), []);
        assert_eq!(table.invalidate(at(0), D, Some(20)), Some((20, false)));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = table();
        for number in 0..3000 {
            table.offer(at(0), NodeId(number), offer(1, 1, 1));
        }
        assert_eq!(table.len(), ROUTES);
    }
}

//! ABR's routes at one node, and how long it has known its neighbours.

use std::collections::BTreeMap;

use weir_units::{Duration, Instant};

use crate::datagram::NodeId;
use crate::routing::messages::RouteKey;

/// Routes that go over this node.
#[derive(Clone, Debug)]
pub(super) struct RouteTable {
    routes: BTreeMap<RouteKey, Route>,
    life: Duration,
}

/// A route as one node on it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// The neighbour towards the source.
    pub(super) upstream: Option<NodeId>,
    /// The neighbour towards the destination.
    pub(super) downstream: Option<NodeId>,
    /// Hops to the source.
    pub(super) hops_up: u8,
    /// Hops to the destination.
    pub(super) hops_down: u8,
    /// Of the reply that set it up.
    pub(super) number: u32,
    pub(super) state: State,
    pub(super) until: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Whole,
    /// This node looks for a way around a break; parcels wait.
    Repair {
        deadline: Instant,
    },
    /// A node further on looks for one; parcels wait (TCP-BuS), but not for ever.
    Frozen {
        deadline: Instant,
    },
    /// Only the way to the source is left.
    Broken,
}

/// Associativity ticks by neighbour.
#[derive(Clone, Debug, Default)]
pub(super) struct Neighbours {
    known: BTreeMap<NodeId, Neighbour>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    ticks: u16,
    last: Instant,
}

/// The most routes.
pub(super) const ROUTES: usize = 1024;
/// The most neighbours: more than any channel carries.
const NEIGHBOURS: usize = 256;

impl RouteTable {
    pub(super) fn new(life: Duration) -> Self {
        Self { routes: BTreeMap::new(), life }
    }

    /// The route, if it was used lately; by asking it is used.
    pub(super) fn get(&mut self, now: Instant, key: RouteKey) -> Option<&mut Route> {
        let until = now.saturating_add(self.life);
        let route = self.routes.get_mut(&key).filter(|route| route.until > now)?;
        route.until = until;
        Some(route)
    }

    pub(super) fn insert(&mut self, now: Instant, key: RouteKey, mut route: Route) {
        if self.routes.len() >= ROUTES && !self.routes.contains_key(&key) {
            self.routes.retain(|_, route| route.until > now);
            let first = self.routes.iter().min_by_key(|(_, route)| route.until);
            let full = self.routes.len() >= ROUTES;
            if let Some(key) = first.map(|(key, _)| *key).filter(|_| full) {
                self.routes.remove(&key);
            }
        }
        route.until = now.saturating_add(self.life);
        self.routes.insert(key, route);
    }

    pub(super) fn remove(&mut self, key: RouteKey) {
        self.routes.remove(&key);
    }

    /// The route is unused. Its number stays: an older reply must not set it up again.
    pub(super) fn forget(&mut self, now: Instant, key: RouteKey) {
        if let Some(route) = self.get(now, key) {
            let Route { number, until, .. } = *route;
            *route = Route {
                upstream: None,
                downstream: None,
                hops_up: u8::MAX,
                hops_down: u8::MAX,
                number,
                state: State::Broken,
                until,
            };
        }
    }

    /// How many routes go over this node.
    pub(super) fn load(&self, now: Instant) -> u16 {
        let whole = |route: &&Route| route.until > now && route.state == State::Whole;
        self.routes.values().filter(whole).count() as u16
    }

    /// A route that has been under repair, or frozen, for long enough.
    pub(super) fn overdue(&self, now: Instant) -> Option<RouteKey> {
        let due = |route: &Route| route.deadline().is_some_and(|deadline| deadline <= now);
        self.routes.iter().find(|(_, route)| due(route)).map(|(key, _)| *key)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.routes.values().filter_map(Route::deadline).min()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }
}

impl Route {
    fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Repair { deadline } | State::Frozen { deadline } => Some(deadline),
            State::Whole | State::Broken => None,
        }
    }
}

impl Neighbours {
    /// A beacon came: one tick more, unless too many are missing.
    pub(super) fn on_beacon(&mut self, now: Instant, from: NodeId, patience: Duration) {
        if self.known.len() >= NEIGHBOURS && !self.known.contains_key(&from) {
            self.known.retain(|_, it| now.saturating_since(it.last) <= patience);
            if self.known.len() >= NEIGHBOURS {
                return;
            }
        }
        let known = self.known.entry(from).or_insert(Neighbour { ticks: 0, last: now });
        let silent = now.saturating_since(known.last) > patience;
        let before = if silent { 0 } else { known.ticks };
        *known = Neighbour { ticks: before.saturating_add(1), last: now };
    }

    /// The ticks of a neighbour that has been heard lately.
    pub(super) fn ticks(&self, now: Instant, of: NodeId, patience: Duration) -> u16 {
        let known = self.known.get(&of);
        let lately = known.filter(|it| now.saturating_since(it.last) <= patience);
        lately.map_or(0, |it| it.ticks)
    }

    /// The link to `neighbour` has failed.
    pub(super) fn forget(&mut self, neighbour: NodeId) {
        self.known.remove(&neighbour);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_grow_with_beacons_and_begin_anew_after_silence() {
        let patience = Duration::from_secs(2);
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut neighbours = Neighbours::default();
        (1..=7).for_each(|secs| neighbours.on_beacon(at(secs), NodeId(1), patience));
        assert_eq!(neighbours.ticks(at(8), NodeId(1), patience), 7);
        assert_eq!(neighbours.ticks(at(10), NodeId(1), patience), 0, "not heard for three seconds");
        neighbours.on_beacon(at(10), NodeId(1), patience);
        assert_eq!(neighbours.ticks(at(10), NodeId(1), patience), 1);
    }

    #[test]
    fn the_table_is_bounded_and_unused_routes_expire() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut table = RouteTable::new(Duration::from_secs(60));
        let route = Route {
            upstream: None,
            downstream: Some(NodeId(1)),
            hops_up: 0,
            hops_down: 1,
            number: 1,
            state: State::Whole,
            until: at(0),
        };
        let key = |n| RouteKey { source: NodeId(n), destination: NodeId(1) };
        (0..2000).for_each(|n| table.insert(at(0), key(n), route));
        assert_eq!((table.len(), table.load(at(1))), (ROUTES, ROUTES as u16));
        assert!(table.get(at(59), key(1999)).is_some());
        assert!(table.get(at(118), key(1999)).is_some(), "it was used");
        assert!(table.get(at(118), key(1998)).is_none());
    }
}

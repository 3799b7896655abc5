//! DSR's route cache and request table (RFC 4728 §4.1, §4.3).
//!
//! A path cache: whole paths that begin at this node. A path serves every node on it. Links that
//! break are cut out of all paths, in both directions.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_units::{Duration, Instant};

use crate::datagram::NodeId;
use crate::routing::messages::SourceRoute;

/// Paths from this node.
#[derive(Clone, Debug)]
pub(super) struct RouteCache {
    timeout: Duration,
    paths: Vec<Cached>,
}

#[derive(Clone, Debug)]
struct Cached {
    path: Arc<[NodeId]>,
    until: Instant,
}

/// Floods that were seen: the last [`IDS`] of each of the last [`INITIATORS`] nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestTable {
    initiators: VecDeque<(NodeId, VecDeque<u32>)>,
}

/// The most paths: ns-2's secondary cache.
pub(super) const PATHS: usize = 64;
/// `RequestTableSize`.
pub(super) const INITIATORS: usize = 64;
/// `RequestTableIds`.
const IDS: usize = 16;

impl RouteCache {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, paths: Vec::new() }
    }

    /// Keeps `path`, which begins at this node; whether it was new.
    pub(super) fn add(&mut self, now: Instant, path: &[NodeId]) -> bool {
        if path.len() < 2 || path.len() > SourceRoute::LONGEST || has_loop(path) {
            return false;
        }
        let until = now.saturating_add(self.timeout);
        if let Some(known) = self.paths.iter_mut().find(|it| it.path.starts_with(path)) {
            known.until = known.until.max(until);
            return false;
        }
        self.paths.retain(|it| it.until > now && !path.starts_with(&it.path));
        if self.paths.len() >= PATHS {
            let first = (0..self.paths.len()).min_by_key(|i| self.paths[*i].until);
            first.into_iter().for_each(|i| drop(self.paths.swap_remove(i)));
        }
        self.paths.push(Cached { path: path.into(), until });
        true
    }

    /// The shortest path to `destination`, which thereby lives on.
    pub(super) fn find(&mut self, now: Instant, destination: NodeId) -> Option<Arc<[NodeId]>> {
        let timeout = self.timeout;
        let hops = |it: &Cached| it.path.iter().position(|node| *node == destination);
        let alive = self.paths.iter_mut().filter(|it| it.until > now);
        let (hops, best) = alive.filter_map(|it| Some((hops(it)?, it))).min_by_key(|it| it.0)?;
        best.until = now.saturating_add(timeout);
        if hops == 0 {
            return None;
        }
        let whole = hops + 1 == best.path.len();
        Some(if whole { best.path.clone() } else { best.path[..=hops].into() })
    }

    /// Whether there is a path to `destination`.
    pub(super) fn reaches(&self, now: Instant, destination: NodeId) -> bool {
        self.paths.iter().any(|it| it.until > now && it.path[1..].contains(&destination))
    }

    /// Nothing passes between `a` and `b` any more.
    pub(super) fn remove_link(&mut self, a: NodeId, b: NodeId) {
        for known in &mut self.paths {
            let breaks = |pair: &[NodeId]| pair == [a, b] || pair == [b, a];
            if let Some(last) = known.path.windows(2).position(breaks) {
                known.path = known.path[..=last].into();
            }
        }
        self.paths.retain(|it| it.path.len() > 1);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }
}

impl RequestTable {
    /// Whether this is the first copy of the flood; from now on it is not.
    pub(super) fn is_first(&mut self, initiator: NodeId, id: u32) -> bool {
        let known = self.initiators.iter().position(|(node, _)| *node == initiator);
        let (_, mut ids) =
            known.and_then(|i| self.initiators.remove(i)).unwrap_or((initiator, VecDeque::new()));
        let first = !ids.contains(&id);
        if first {
            if ids.len() == IDS {
                ids.pop_front();
            }
            ids.push_back(id);
        }
        if self.initiators.len() == INITIATORS {
            self.initiators.pop_front();
        }
        self.initiators.push_back((initiator, ids));
        first
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.initiators.len()
    }
}

/// Whether a node is on the path more than once.
pub(super) fn has_loop(path: &[NodeId]) -> bool {
    (1..path.len()).any(|i| path[..i].contains(&path[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(nodes: &[u16]) -> Vec<NodeId> {
        nodes.iter().map(|node| NodeId(*node)).collect()
    }

    fn cache(paths: &[&[u16]]) -> RouteCache {
        let mut cache = RouteCache::new(Duration::from_secs(300));
        for nodes in paths {
            assert!(cache.add(Instant::ZERO, &path(nodes)));
        }
        cache
    }

    fn found(cache: &mut RouteCache, to: u16) -> Option<Vec<u16>> {
        let path = cache.find(Instant::ZERO, NodeId(to))?;
        Some(path.iter().map(|node| node.0).collect())
    }

    #[test]
    fn the_shortest_way_wins_and_a_path_serves_all_its_nodes() {
        let mut cache = cache(&[&[0, 1, 2, 3, 4], &[0, 5, 4]]);
        assert_eq!(found(&mut cache, 4), Some(vec![0, 5, 4]));
        assert_eq!(found(&mut cache, 3), Some(vec![0, 1, 2, 3]));
        assert_eq!((found(&mut cache, 0), found(&mut cache, 9)), (None, None));
        assert!(!cache.add(Instant::ZERO, &path(&[0, 1, 2])), "nothing new");
        assert!(!cache.add(Instant::ZERO, &path(&[0, 1, 0, 7])), "a circle");
    }

    #[test]
    fn broken_links_are_cut_out_in_both_directions() {
        let mut cache = cache(&[&[0, 1, 2, 3], &[0, 5, 3, 2, 6]]);
        cache.remove_link(NodeId(2), NodeId(3));
        assert_eq!(found(&mut cache, 2), Some(vec![0, 1, 2]));
        assert_eq!(found(&mut cache, 3), Some(vec![0, 5, 3]));
        assert_eq!(found(&mut cache, 6), None);
        cache.remove_link(NodeId(0), NodeId(1));
        assert_eq!((found(&mut cache, 1), cache.len()), (None, 1));
    }

    #[test]
    fn unused_paths_are_forgotten() {
        let mut cache = cache(&[&[0, 1]]);
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert!(cache.find(at(299), NodeId(1)).is_some(), "and used");
        assert!(cache.reaches(at(598), NodeId(1)));
        assert!(!cache.reaches(at(599), NodeId(1)));
    }

    #[test]
    fn the_request_table_is_bounded_and_forgets_the_oldest() {
        let mut table = RequestTable::default();
        assert!(table.is_first(NodeId(1), 1));
        assert!(!table.is_first(NodeId(1), 1));
        for id in 2..20 {
            table.is_first(NodeId(1), id);
        }
        assert!(table.is_first(NodeId(1), 1), "16 later floods have come");
        for node in 0..1000 {
            table.is_first(NodeId(node), 1);
        }
        assert_eq!(table.len(), INITIATORS);
    }
}

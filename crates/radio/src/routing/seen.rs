//! Which floods a node has taken part in already.

use std::collections::VecDeque;

use weir_units::{Duration, Instant};

use crate::datagram::NodeId;

/// Originator and number of recent floods: the last [`Seen::LIMIT`] of them, each for `life`.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    life: Duration,
    floods: VecDeque<(Instant, NodeId, u32)>,
}

impl Seen {
    /// More than any node takes part in within the seconds that floods are remembered.
    pub(super) const LIMIT: usize = 256;

    pub(super) fn new(life: Duration) -> Self {
        Self { life, floods: VecDeque::new() }
    }

    /// Whether this is the first copy of flood `id` of `originator`; from now on it is not.
    pub(super) fn is_first(&mut self, now: Instant, originator: NodeId, id: u32) -> bool {
        while self.floods.front().is_some_and(|(until, ..)| *until <= now) {
            self.floods.pop_front();
        }
        if self.floods.iter().any(|(_, of, number)| (*of, *number) == (originator, id)) {
            return false;
        }
        if self.floods.len() == Self::LIMIT {
            self.floods.pop_front();
        }
        self.floods.push_back((now.saturating_add(self.life), originator, id));
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.floods.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_new_once_until_it_is_forgotten() {
        let mut seen = Seen::new(Duration::from_secs(6));
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert!(seen.is_first(at(0), NodeId(1), 7));
        assert!(!seen.is_first(at(5), NodeId(1), 7));
        assert!(seen.is_first(at(5), NodeId(2), 7));
        assert!(seen.is_first(at(6), NodeId(1), 7));
        for id in 0..1000 {
            seen.is_first(at(7), NodeId(3), id);
        }
        assert_eq!(seen.len(), Seen::LIMIT);
    }
}

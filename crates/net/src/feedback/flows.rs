//! How many conversations have sent through here of late.

use std::collections::VecDeque;

use weir_units::{Duration, Instant};

/// The conversations of the last second, the newest at the back.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentFlows {
    seen: VecDeque<(u32, Instant)>,
}

impl RecentFlows {
    pub(super) fn note(&mut self, now: Instant, conversation: u32) {
        self.forget_before(now);
        if let Some(place) = self.seen.iter().rposition(|(known, _)| *known == conversation) {
            self.seen.remove(place);
        } else if self.seen.len() == MOST {
            self.seen.pop_front();
        }
        self.seen.push_back((conversation, now));
    }

    /// At least one.
    pub(super) fn count(&mut self, now: Instant) -> u64 {
        self.forget_before(now);
        self.seen.len().max(1) as u64
    }

    fn forget_before(&mut self, now: Instant) {
        while self.seen.front().is_some_and(|(_, at)| now.saturating_since(*at) >= MEMORY) {
            self.seen.pop_front();
        }
    }
}

const MEMORY: Duration = Duration::from_secs(1);
/// Further ones are not distinguished.
const MOST: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_last_second_count_once_each() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut flows = RecentFlows::default();
        assert_eq!(flows.count(at(0)), 1);
        for (millis, flow) in [(0, 1), (100, 2), (200, 1), (300, 3)] {
            flows.note(at(millis), flow);
        }
        assert_eq!(flows.count(at(300)), 3);
        assert_eq!(flows.count(at(1_150)), 2, "the second is forgotten, the first came again");
        assert_eq!(flows.count(at(5_000)), 1);
    }

    #[test]
    fn it_is_bounded() {
        let mut flows = RecentFlows::default();
        (0..5_000).for_each(|flow| flows.note(Instant::ZERO, flow));
        assert_eq!(flows.count(Instant::ZERO), MOST as u64);
    }
}

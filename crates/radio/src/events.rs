//! What is due, in the order of time and then of arming.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use weir_units::Instant;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A frame begins at a group of hearers.
    Begin { frame: u32, group: u16 },
    /// It ends there.
    End { frame: u32, group: u16 },
    /// The deadline of a node's MAC, or one that was put off, if `generation` is still the one it had.
    Mac { node: u16, generation: u32 },
    /// The deadline of a node's router.
    Router { node: u16, generation: u32 },
    /// A datagram reaches the interface.
    Interface { datagram: u32 },
}

#[derive(Clone, Debug, Default)]
pub(super) struct TimerQueue {
    heap: BinaryHeap<Entry>,
    armed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    time: Instant,
    number: u64,
    due: Due,
}

impl TimerQueue {
    #[inline]
    pub(super) fn push(&mut self, time: Instant, due: Due) {
        self.armed += 1;
        self.heap.push(Entry { time, number: self.armed, due });
    }

    /// The next, if it is due by `now`.
    #[inline]
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Instant, Due)> {
        if self.heap.peek()?.time > now {
            return None;
        }
        self.heap.pop().map(|entry| (entry.time, entry.due))
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.time)
    }
}

impl Ord for Entry {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_leave_in_the_order_of_their_arming() {
        let mut agenda = TimerQueue::default();
        let at = Instant::from_nanos;
        for (time, datagram) in [(5, 0), (3, 1), (5, 2), (3, 3), (4, 4)] {
            agenda.push(at(time), Due::Interface { datagram });
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop(at(4))).collect();
        let due = |datagram| Due::Interface { datagram };
        assert_eq!(order, [(at(3), due(1)), (at(3), due(3)), (at(4), due(4))]);
        assert_eq!(agenda.next_time(), Some(at(5)));
    }
}

//! A set of byte positions kept as sorted, disjoint, half-open ranges.
//!
//! Both sides of a connection need one: the receiver for what arrived out of order, the sender for
//! what was acknowledged selectively. There are few ranges at a time and new ones mostly touch the
//! first or the last, so a sorted queue beats a tree.

use std::collections::VecDeque;
use std::ops::Range;

/// Sorted, disjoint ranges of `u64` positions; ranges that touch are merged.
///
/// ```
/// use weir_transport::RangeSet;
///
/// let mut arrived = RangeSet::new();
/// assert_eq!(arrived.insert(0..100, 16), Some(100));
/// assert_eq!(arrived.insert(200..300, 16), Some(100));
/// assert_eq!(arrived.insert(50..150, 16), Some(50), "new positions only");
/// assert!(arrived.missing_in(0..300).eq([150..200]));
/// assert_eq!(arrived.insert(400..500, 2), None, "that would be a third range");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
    /// Positions in all of them.
    total: u64,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { ranges: VecDeque::new(), total: 0 }
    }

    /// Adds `range` and returns how many positions are new. Refuses with `None`, unchanged, if the
    /// set would then hold more than `max_ranges` ranges: what a peer sends must not decide how much
    /// memory is taken. Extending the first or the last range, or appending, takes constant time.
    pub fn insert(&mut self, range: Range<u64>, max_ranges: usize) -> Option<u64> {
        if range.is_empty() {
            return Some(0);
        }
        let first = self.first_ending_at_or_after(range.start);
        let touching = self.ranges.range(first..).take_while(|r| r.start <= range.end);
        let (count, known) =
            touching.fold((0, 0), |(count, known), r| (count + 1, known + (r.end - r.start)));
        if count == 0 {
            if self.ranges.len() >= max_ranges {
                return None;
            }
            let new = range.end - range.start;
            self.total += new;
            self.ranges.insert(first, range);
            return Some(new);
        }
        let merged = self.ranges[first].start.min(range.start)
            ..self.ranges[first + count - 1].end.max(range.end);
        let new = merged.end - merged.start - known;
        self.total += new;
        self.ranges[first] = merged;
        if count > 1 {
            self.ranges.drain(first + 1..first + count);
        }
        Some(new)
    }

    /// Removes every position below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        while let Some(first) = self.ranges.front_mut().filter(|r| r.start < bound) {
            let end = first.end.min(bound);
            self.total -= end - first.start;
            first.start = end;
            if first.is_empty() {
                self.ranges.pop_front();
            }
        }
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.total = 0;
    }

    /// Whether `position` is in the set.
    pub fn contains(&self, position: u64) -> bool {
        self.range_at(position).is_some()
    }

    /// The range that `position` is in.
    pub fn range_at(&self, position: u64) -> Option<Range<u64>> {
        let range = self.ranges.get(self.first_ending_at_or_after(position.saturating_add(1)))?;
        range.contains(&position).then(|| range.clone())
    }

    /// The gaps of `within`: its parts that are not in the set, ascending.
    pub fn missing_in(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = within.start;
        let mut next = self.first_ending_at_or_after(at);
        std::iter::from_fn(move || {
            while at < within.end {
                let known = self.ranges.get(next).filter(|r| r.start < within.end);
                next += 1;
                let (gap, resume) = match known {
                    Some(r) => (at..r.start, at.max(r.end)),
                    None => (at..within.end, within.end),
                };
                at = resume;
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// The ranges, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// How many positions are in the set.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The index of the first range whose end is at or above `position`; the ends are tried first.
    fn first_ending_at_or_after(&self, position: u64) -> usize {
        let (Some(first), Some(last)) = (self.ranges.front(), self.ranges.back()) else {
            return 0;
        };
        if position <= first.end {
            0
        } else if position > last.end {
            self.ranges.len()
        } else if position >= last.start {
            self.ranges.len() - 1
        } else {
            self.ranges.partition_point(|r| r.end < position)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(Range<u64>),
        RemoveBelow(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let position = 0..120u64;
        prop_oneof![
            8 => (position.clone(), 0..12u64).prop_map(|(at, len)| Op::Insert(at..at + len)),
            1 => position.prop_map(Op::RemoveBelow),
        ]
    }

    /// The same operations on a set of single positions.
    fn apply(model: &mut BTreeSet<u64>, op: &Op) -> u64 {
        match op.clone() {
            Op::Insert(range) => range.filter(|at| model.insert(*at)).count() as u64,
            Op::RemoveBelow(bound) => {
                model.retain(|at| *at >= bound);
                0
            }
        }
    }

    fn assert_well_formed(set: &RangeSet) {
        assert!(set.iter().all(|r| !r.is_empty()), "{set:?}");
        let touching = set.iter().zip(set.iter().skip(1)).any(|(a, b)| a.end >= b.start);
        assert!(!touching, "{set:?}");
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_positions(
            ops in prop::collection::vec(op(), 1..60),
            within in (0..120u64, 0..60u64),
            max_ranges in 1..12usize,
        ) {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for op in &ops {
                let before = set.clone();
                let inserted = match op.clone() {
                    Op::Insert(range) => set.insert(range, max_ranges),
                    Op::RemoveBelow(bound) => {
                        set.remove_below(bound);
                        Some(0)
                    }
                };
                match inserted {
                    Some(new) => prop_assert_eq!(new, apply(&mut model, op)),
                    None => {
                        prop_assert_eq!(&set, &before);
                        prop_assert_eq!(set.len(), max_ranges);
                    }
                }
                assert_well_formed(&set);
                prop_assert!(set.len() <= max_ranges);
                prop_assert!(set.iter().flatten().eq(model.iter().copied()));
            }
            for position in 0..140 {
                prop_assert_eq!(set.contains(position), model.contains(&position));
                let found = set.range_at(position);
                prop_assert_eq!(found.clone(), set.iter().find(|r| r.contains(&position)));
            }
            let within = within.0..within.0 + within.1;
            let gaps: Vec<Range<u64>> = set.missing_in(within.clone()).collect();
            prop_assert!(gaps.iter().all(|gap| !gap.is_empty()));
            let missing: Vec<u64> = gaps.into_iter().flatten().collect();
            prop_assert!(within.filter(|at| !model.contains(at)).eq(missing));
            prop_assert_eq!(set.first(), set.iter().next());
            prop_assert_eq!(set.last(), set.iter().next_back());
        }
    }

    #[test]
    fn a_full_set_still_grows_its_ranges() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(10..20, 1), Some(10));
        assert_eq!(set.insert(30..40, 1), None);
        assert_eq!(set.insert(20..30, 1), Some(10));
        assert_eq!((set.first(), set.len()), (Some(10..30), 1));
    }
}

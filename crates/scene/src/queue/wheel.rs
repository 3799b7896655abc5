//! A hierarchical timing wheel: 11 levels of 64 slots cover all 64 bits of a nanosecond count.
//!
//! An entry lives at the level of the highest bit (in groups of six) in which its time differs from
//! the wheel's, in the slot that those six bits name. When a slot above the lowest level comes up,
//! the earliest of its entries leaves, and the others move down as far as its time allows. A slot of
//! the lowest level holds entries of one exact time. Entries of one time are always in one slot, in
//! the order in which they came, so ties need no number.
//!
//! A few entries, as a run of a flow or two has, are quicker to keep in order: the wheel is then empty. It
//! takes over when there are too many, and gives them back when few are left.

use weir_units::Instant;

use super::{Event, EventQueue};

/// A power of two, as no index below it needs a check: eleven are in use.
const LEVELS: usize = 16;
const SLOTS: usize = 64;
const BITS: u32 = 6;
const NONE: u32 = u32::MAX;
/// The most entries that are kept in order.
const FEW: usize = 24;
/// So few go back from the wheel. Far fewer than it takes over, so that they seldom move.
const FEW_AGAIN: usize = 8;

/// See the module above.
pub struct WheelQueue {
    /// All entries while they are few, the earliest last; of one time, the first that came last.
    few: Vec<Entry>,
    /// How many entries the wheel has.
    many: usize,
    /// No entry is earlier than this.
    now: u64,
    /// Per level, a bit for each slot that holds something.
    occupied: [u64; LEVELS],
    /// A bit for each level that holds something.
    levels: u16,
    slots: Box<[[List; SLOTS]; LEVELS]>,
    nodes: Vec<Node>,
    free: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    at: u64,
    event: Event,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

struct Node {
    at: u64,
    event: Event,
    next: u32,
}

impl Default for WheelQueue {
    fn default() -> Self {
        let empty = List { first: NONE, last: NONE };
        Self {
            few: Vec::with_capacity(FEW),
            many: 0,
            now: 0,
            occupied: [0; LEVELS],
            levels: 0,
            slots: Box::new([[empty; SLOTS]; LEVELS]),
            nodes: Vec::new(),
            free: NONE,
        }
    }
}

impl EventQueue for WheelQueue {
    fn push(&mut self, at: Instant, event: Event) {
        let entry = Entry { at: at.as_nanos(), event };
        debug_assert!(entry.at >= self.now, "the past cannot be scheduled");
        if self.many == 0 {
            if self.few.len() < FEW {
                return self.insert(entry);
            }
            self.hand_over();
        }
        self.add(entry);
    }

    #[inline]
    fn pop(&mut self) -> Option<(Instant, Event)> {
        if self.many == 0 {
            let Entry { at, event } = self.few.pop()?;
            self.now = at;
            return Some((Instant::from_nanos(at), event));
        }
        let first = self.take_next();
        if self.many <= FEW_AGAIN {
            self.take_back();
        }
        first
    }

    fn peek(&mut self) -> Option<Instant> {
        if let Some(first) = self.few.last() {
            return Some(Instant::from_nanos(first.at));
        }
        let (level, slot) = self.first_slot()?;
        let earliest = self.earliest(self.slots[level][slot].first);
        Some(Instant::from_nanos(self.nodes[earliest as usize].at))
    }

    #[cfg(test)]
    fn entries(&self) -> usize {
        let mut free = 0;
        let mut index = self.free;
        while let Some(node) = self.nodes.get(index as usize) {
            free += 1;
            index = node.next;
        }
        assert_eq!(self.nodes.len() - free, self.many);
        self.many + self.few.len()
    }
}

impl WheelQueue {
    /// Puts an entry among the few, behind those of the same time: most are due soon.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mut place = self.few.len();
        self.few.push(entry);
        while place > 0 && self.few[place - 1].at <= entry.at {
            self.few[place] = self.few[place - 1];
            place -= 1;
        }
        self.few[place] = entry;
    }

    /// There are too many to keep in order: the wheel takes over.
    #[cold]
    fn hand_over(&mut self) {
        while let Some(first) = self.few.pop() {
            self.add(first);
        }
    }

    /// Few are left in the wheel: it becomes empty. Time stands where it is.
    #[cold]
    fn take_back(&mut self) {
        let now = self.now;
        while let Some((at, event)) = self.take_next() {
            self.few.push(Entry { at: at.as_nanos(), event });
        }
        self.few.reverse();
        self.now = now;
    }

    #[inline(always)]
    fn add(&mut self, entry: Entry) {
        let node = Node { at: entry.at, event: entry.event, next: NONE };
        self.many += 1;
        let index = self.free;
        if let Some(slot) = self.nodes.get_mut(index as usize) {
            self.free = slot.next;
            *slot = node;
            self.append(index);
        } else {
            self.nodes.push(node);
            self.append(self.nodes.len() as u32 - 1);
        }
    }

    #[inline(always)]
    fn take_next(&mut self) -> Option<(Instant, Event)> {
        let (level, slot) = self.first_slot()?;
        let list = self.slots[level % LEVELS][slot % SLOTS];
        if level == 0 || list.first == list.last {
            return Some(self.take_first(level, slot));
        }
        Some(self.take_earliest(level, slot))
    }

    /// The slot that comes up first: entries of a lower level are all earlier than those above.
    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level % LEVELS].trailing_zeros() as usize))
    }

    #[inline]
    fn take_first(&mut self, level: usize, slot: usize) -> (Instant, Event) {
        let list = &mut self.slots[level % LEVELS][slot % SLOTS];
        let index = list.first;
        let next = self.nodes[index as usize].next;
        list.first = next;
        if next == NONE {
            self.clear(level, slot);
        }
        self.take(index)
    }

    /// Takes the earliest entry of the first slot; the others move down as far as its time allows.
    #[inline(never)]
    fn take_earliest(&mut self, level: usize, slot: usize) -> (Instant, Event) {
        let first = self.slots[level % LEVELS][slot % SLOTS].first;
        let earliest = self.earliest(first);
        self.clear(level, slot);
        self.now = self.nodes[earliest as usize].at;
        let mut index = first;
        while index != NONE {
            let next = self.nodes[index as usize].next;
            if index != earliest {
                self.nodes[index as usize].next = NONE;
                self.append(index);
            }
            index = next;
        }
        self.take(earliest)
    }

    /// Takes an entry that no list holds any more: time moves on to it.
    fn take(&mut self, index: u32) -> (Instant, Event) {
        let node = &mut self.nodes[index as usize];
        node.next = self.free;
        self.free = index;
        self.many -= 1;
        self.now = node.at;
        (Instant::from_nanos(node.at), node.event)
    }

    /// The first of the earliest entries of a list.
    fn earliest(&self, first: u32) -> u32 {
        let mut earliest = first;
        let mut index = self.nodes[first as usize].next;
        while index != NONE {
            let node = &self.nodes[index as usize];
            if node.at < self.nodes[earliest as usize].at {
                earliest = index;
            }
            index = node.next;
        }
        earliest
    }

    fn clear(&mut self, level: usize, slot: usize) {
        let occupied = &mut self.occupied[level % LEVELS];
        *occupied &= !(1 << (slot % SLOTS));
        self.levels &= !(u16::from(*occupied == 0) << (level % LEVELS));
    }

    fn append(&mut self, index: u32) {
        let at = self.nodes[index as usize].at;
        let differing = (at ^ self.now).checked_ilog2().unwrap_or(0);
        let level = (differing / BITS) as usize;
        let slot = (at >> (level as u32 * BITS)) as usize % SLOTS;
        let list = &mut self.slots[level % LEVELS][slot];
        let occupied = &mut self.occupied[level % LEVELS];
        if *occupied >> slot & 1 == 0 {
            *occupied |= 1 << slot;
            self.levels |= 1 << (level % LEVELS);
            *list = List { first: index, last: index };
        } else {
            self.nodes[list.last as usize].next = index;
            list.last = index;
        }
    }
}

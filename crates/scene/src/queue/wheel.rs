//! A hierarchical timing wheel: 11 levels of 64 slots cover all 64 bits of a nanosecond count.
//!
//! An entry lives at the level of the highest bit (in groups of six) in which its time differs from
//! the wheel's, in the slot that those six bits name. When a slot above the lowest level comes up,
//! the earliest of its entries leaves, and the others move down as far as its time allows. A slot of
//! the lowest level holds entries of one exact time. Entries of one time are always in one slot, in
//! the order in which they came, so ties need no number.

use weir_units::Instant;

use super::{Event, EventQueue};

const LEVELS: usize = 11;
const SLOTS: usize = 64;
const BITS: u32 = 6;
const NONE: u32 = u32::MAX;

/// See the module above.
pub struct WheelQueue {
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
        let node = Node { at: at.as_nanos(), event, next: NONE };
        debug_assert!(node.at >= self.now, "the past cannot be scheduled");
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

    #[inline]
    fn pop(&mut self) -> Option<(Instant, Event)> {
        let (level, slot) = self.first_slot()?;
        let list = self.slots[level][slot];
        if level == 0 || list.first == list.last {
            return Some(self.take_first(level, slot));
        }
        Some(self.take_earliest(level, slot))
    }

    fn peek(&mut self) -> Option<Instant> {
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
        self.nodes.len() - free
    }
}

impl WheelQueue {
    /// The slot that comes up first: entries of a lower level are all earlier than those above.
    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    #[inline]
    fn take_first(&mut self, level: usize, slot: usize) -> (Instant, Event) {
        let index = self.slots[level][slot].first;
        let next = self.nodes[index as usize].next;
        self.slots[level][slot].first = next;
        if next == NONE {
            self.clear(level, slot);
        }
        self.take(index)
    }

    /// Takes the earliest entry of the first slot; the others move down as far as its time allows.
    #[inline(never)]
    fn take_earliest(&mut self, level: usize, slot: usize) -> (Instant, Event) {
        let first = self.slots[level][slot].first;
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
        self.occupied[level] &= !(1 << slot);
        self.levels &= !(u16::from(self.occupied[level] == 0) << level);
    }

    fn append(&mut self, index: u32) {
        let at = self.nodes[index as usize].at;
        let differing = (at ^ self.now).checked_ilog2().unwrap_or(0);
        let level = (differing / BITS) as usize;
        let slot = (at >> (level as u32 * BITS)) as usize % SLOTS;
        let list = &mut self.slots[level][slot];
        if self.occupied[level] >> slot & 1 == 0 {
            self.occupied[level] |= 1 << slot;
            self.levels |= 1 << level;
            *list = List { first: index, last: index };
        } else {
            self.nodes[list.last as usize].next = index;
            list.last = index;
        }
    }
}

//! A list in order of what is due soon, and a hierarchical timing wheel for the rest.
//!
//! The list holds every entry before the horizon. When it is empty, the first slots of the wheel move into
//! it, and the horizon moves on. When it is too long, its later part goes to the wheel, and the horizon
//! moves back. So entries that follow each other lie side by side, and a run of few flows needs the list only.
//!
//! The wheel has 11 levels of 64 slots, which cover all 64 bits of a nanosecond count. An entry lives at the
//! level of the highest bit (in groups of six) in which its time differs from the last one before the horizon,
//! in the slot that those six bits name. When a slot with many entries comes up, they move down as far as their
//! time allows. A slot of the lowest level holds entries of one exact time. Entries of one time are always in
//! one place, in the order in which they came, so ties need no number.

use weir_units::Instant;

use super::{Event, EventQueue};

/// A power of two, as no index below it needs a check.
const LEVELS: usize = 16;
const SLOTS: usize = 64;
const BITS: u32 = 6;
/// The highest level in use.
const TOP: usize = 10;
const NONE: u32 = u32::MAX;
/// The list takes slots until it has this number of entries.
const ENOUGH: usize = 64;
/// A slot with more entries than this moves down a level first.
const SLOT_MOST: usize = 64;
/// A longer list gives entries back.
const MOST: usize = 192;
/// How many it keeps then, or a few more.
const KEPT: usize = 96;

/// See the module above.
pub struct WheelQueue {
    /// All entries before the horizon, the earliest last; of one time, the first that came last.
    near: Vec<Entry>,
    /// The wheel has the entries from here on.
    horizon: u64,
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
    entry: Entry,
    next: u32,
}

impl Default for WheelQueue {
    fn default() -> Self {
        let empty = List { first: NONE, last: NONE };
        Self {
            near: Vec::with_capacity(MOST + 1),
            horizon: 0,
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
        if entry.at >= self.horizon {
            return self.add(entry);
        }
        self.insert(entry);
        if self.near.len() > MOST {
            self.give_back();
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Instant, Event)> {
        let first = self.near.pop().or_else(|| {
            self.refill();
            self.near.pop()
        });
        first.map(|Entry { at, event }| (Instant::from_nanos(at), event))
    }

    fn peek(&mut self) -> Option<Instant> {
        if let Some(first) = self.near.last() {
            return Some(Instant::from_nanos(first.at));
        }
        // The list stays empty: what is pushed next may be earlier than the first slot.
        let (level, slot) = self.first_slot()?;
        self.entries_of(self.slots[level][slot]).map(|entry| Instant::from_nanos(entry.at)).min()
    }

    #[cfg(test)]
    fn entries(&self) -> usize {
        let mut free = 0;
        let mut index = self.free;
        while let Some(node) = self.nodes.get(index as usize) {
            free += 1;
            index = node.next;
        }
        self.nodes.len() - free + self.near.len()
    }
}

impl WheelQueue {
    /// Puts an entry into the list, behind those of the same time: most are due soon.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        let mut place = self.near.len();
        self.near.push(entry);
        while place > 0 && self.near[place - 1].at <= entry.at {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = entry;
    }

    /// Moves the wheel's first slots into the list, which is empty.
    #[inline(never)]
    fn refill(&mut self) {
        while self.near.len() < ENOUGH {
            let Some((level, slot)) = self.first_slot() else {
                self.horizon = u64::MAX;
                break;
            };
            let list = self.slots[level][slot];
            if level > 0 && self.entries_of(list).nth(SLOT_MOST).is_some() {
                if !self.near.is_empty() {
                    break;
                }
                self.spread(level, slot);
            } else {
                self.take(level, slot);
            }
        }
        self.near.reverse();
    }

    /// Moves a slot into the list, whose order is ascending here. The horizon moves behind the slot.
    fn take(&mut self, level: usize, slot: usize) {
        let mut index = self.clear(level, slot).first;
        let from = self.near.len();
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            self.near.push(node.entry);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = index;
            index = next;
        }
        if level > 0 {
            self.near[from..].sort_by_key(|entry| entry.at);
        }
        self.horizon = end_of_slot(level, self.near[from].at).saturating_add(1);
    }

    /// Moves the entries of a slot, before which there are none, as far down as their times allow.
    #[inline(never)]
    fn spread(&mut self, level: usize, slot: usize) {
        let mut index = self.clear(level, slot).first;
        let at = self.nodes[index as usize].entry.at;
        self.horizon = (at & !span(level)) + 1;
        while index != NONE {
            let next = std::mem::replace(&mut self.nodes[index as usize].next, NONE);
            self.append(index);
            index = next;
        }
    }

    /// The list is too long: its later entries go to the wheel. Those of one time stay together.
    #[inline(never)]
    fn give_back(&mut self) {
        let others = self.near.len() - KEPT;
        let (kept, gone) = (self.near[others].at, self.near[others / 2].at);
        let mut ends = (0..=TOP).rev().map(|level| end_of_slot(level, kept));
        let Some(end) = ends.find(|end| *end < gone) else { return };
        self.move_horizon_back(end);
        let mut near = std::mem::take(&mut self.near);
        let others = near.partition_point(|entry| entry.at > end);
        near.drain(..others).rev().for_each(|entry| self.add(entry));
        self.near = near;
    }

    /// Sets the horizon behind `end`, which lies before it. Where the two differ first, the entries of the
    /// levels below share what the old horizon has, so that they belong into that slot.
    fn move_horizon_back(&mut self, end: u64) {
        let old = self.reference();
        let level = level_of(old ^ end);
        for lower in 0..level {
            while self.occupied[lower] != 0 {
                let list = self.clear(lower, self.occupied[lower].trailing_zeros() as usize);
                self.join(level, slot_of(level, old), list);
            }
        }
        self.horizon = end + 1;
    }

    #[inline(always)]
    fn add(&mut self, entry: Entry) {
        let node = Node { entry, next: NONE };
        let index = self.free;
        if let Some(free) = self.nodes.get_mut(index as usize) {
            self.free = free.next;
            *free = node;
            self.append(index);
        } else {
            self.nodes.push(node);
            self.append(self.nodes.len() as u32 - 1);
        }
    }

    /// Puts a node that no list holds where its time says.
    fn append(&mut self, index: u32) {
        let at = self.nodes[index as usize].entry.at;
        let level = level_of(at ^ self.reference());
        self.join(level, slot_of(level, at), List { first: index, last: index });
    }

    /// Adds a list to the end of a slot's.
    #[inline(always)]
    fn join(&mut self, level: usize, slot: usize, added: List) {
        let list = &mut self.slots[level % LEVELS][slot % SLOTS];
        let occupied = &mut self.occupied[level % LEVELS];
        if *occupied >> (slot % SLOTS) & 1 == 0 {
            *occupied |= 1 << (slot % SLOTS);
            self.levels |= 1 << (level % LEVELS);
            *list = added;
        } else {
            self.nodes[list.last as usize].next = added.first;
            list.last = added.last;
        }
    }

    /// Empties a slot that holds something; returns what it held.
    fn clear(&mut self, level: usize, slot: usize) -> List {
        let occupied = &mut self.occupied[level % LEVELS];
        *occupied &= !(1 << (slot % SLOTS));
        self.levels &= !(u16::from(*occupied == 0) << (level % LEVELS));
        self.slots[level % LEVELS][slot % SLOTS]
    }

    /// The slot that comes up first: entries of a lower level are all earlier than those above.
    fn first_slot(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level % LEVELS].trailing_zeros() as usize))
    }

    fn entries_of(&self, list: List) -> impl Iterator<Item = &Entry> {
        let node = |index: u32| self.nodes.get(index as usize);
        std::iter::successors(node(list.first), move |last| node(last.next)).map(|node| &node.entry)
    }

    /// The last time before the horizon: what places in the wheel refer to.
    fn reference(&self) -> u64 {
        self.horizon.saturating_sub(1)
    }
}

/// The level of times whose highest differing bit this is.
fn level_of(difference: u64) -> usize {
    (difference.checked_ilog2().unwrap_or(0) / BITS) as usize
}

/// The slot of a time at a level.
fn slot_of(level: usize, at: u64) -> usize {
    (at >> (level as u32 * BITS)) as usize % SLOTS
}

/// The last time of the slot that has `at`.
fn end_of_slot(level: usize, at: u64) -> u64 {
    at | span(level)
}

/// The length of a slot less one: the bits in which its times differ.
fn span(level: usize) -> u64 {
    (1 << (level as u32 * BITS)) - 1
}

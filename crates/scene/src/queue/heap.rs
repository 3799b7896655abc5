//! A 4-ary heap ordered by time and a growing number.

use std::cmp::Ordering;

use dary_heap::{PeekMut, QuaternaryHeap};
use weir_units::Instant;

use super::{Event, EventQueue};

/// See the module above.
#[derive(Default)]
pub struct HeapQueue {
    heap: QuaternaryHeap<Entry>,
    pushed: u64,
    /// The top was popped but still sits there: most events push one successor, which then takes
    /// its place with one sift instead of two.
    top_is_gone: bool,
}

struct Entry {
    at: Instant,
    number: u64,
    event: Event,
}

impl EventQueue for HeapQueue {
    fn push(&mut self, at: Instant, event: Event) {
        let entry = Entry { at, number: self.pushed, event };
        self.pushed += 1;
        if !self.top_is_gone {
            self.heap.push(entry);
            return;
        }
        self.top_is_gone = false;
        if let Some(mut top) = self.heap.peek_mut() {
            *top = entry;
        }
    }

    fn pop(&mut self) -> Option<(Instant, Event)> {
        if self.top_is_gone {
            self.heap.peek_mut().map(PeekMut::pop);
        }
        let top = self.heap.peek().map(|top| (top.at, top.event));
        self.top_is_gone = top.is_some();
        top
    }

    fn peek(&mut self) -> Option<Instant> {
        if std::mem::take(&mut self.top_is_gone) {
            self.heap.pop();
        }
        self.heap.peek().map(|top| top.at)
    }

    #[cfg(test)]
    fn entries(&self) -> usize {
        self.heap.len() - usize::from(self.top_is_gone)
    }
}

/// The heap keeps its greatest entry on top, so the earliest must compare greatest.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }
}

//! Frames on the air, and a record of those that were.

use weir_units::Instant;

use super::datagram::NodeId;
use super::dcf::{FrameKind, Header};
use super::ifq::Packet;

/// A frame on the air.
#[derive(Clone, Debug)]
pub(super) struct Frame<P, M> {
    pub(super) header: Header,
    pub(super) start: Instant,
    /// Of a broadcast; a packet to one node stays at its sender.
    pub(super) body: Option<Packet<P, M>>,
    /// Whose packet it is, or is about.
    pub(super) flow: Option<u32>,
    /// How many nodes have read it that were to read it.
    pub(super) readers: u16,
    /// How many groups of hearers it has yet to reach the end at.
    pub(super) groups: u16,
}

/// A frame that was on the air, for animations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// When it began at its sender.
    pub start: Instant,
    /// When it ended there.
    pub end: Instant,
    /// Its sender.
    pub node: NodeId,
    /// Who was to read it.
    pub to: NodeId,
    /// What it was.
    pub kind: FrameKind,
    /// The flow whose packet it carried or announced.
    pub flow: Option<u32>,
    /// How many of those that were to read it did; zero if it was lost.
    pub readers: u16,
}

/// The first so many frames since the record was last emptied.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameLog {
    records: Vec<FrameRecord>,
    capacity: usize,
}

/// Things that stay where they are until they are taken, and then make room.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<P, M> Frame<P, M> {
    pub(super) fn end(&self) -> Instant {
        self.start + self.header.airtime
    }
}

impl FrameLog {
    pub(super) fn new(capacity: usize) -> Self {
        Self { records: Vec::new(), capacity }
    }

    pub(super) fn push<P, M>(&mut self, frame: &Frame<P, M>) {
        if self.records.len() < self.capacity {
            let Header { kind, from, to, .. } = frame.header;
            let Frame { start, flow, readers, .. } = *frame;
            let end = frame.end();
            self.records.push(FrameRecord { start, end, node: from, to, kind, flow, readers });
        }
    }

    pub(super) fn drain(&mut self) -> Vec<FrameRecord> {
        std::mem::take(&mut self.records)
    }
}

impl<T> Slab<T> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(key) = self.free.pop() {
            self.slots[key as usize] = Some(value);
            return key;
        }
        self.slots.push(Some(value));
        (self.slots.len() - 1) as u32
    }

    pub(super) fn get(&self, key: u32) -> Option<&T> {
        self.slots.get(key as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        self.slots.get_mut(key as usize)?.as_mut()
    }

    pub(super) fn take(&mut self, key: u32) -> Option<T> {
        let value = self.slots.get_mut(key as usize)?.take()?;
        self.free.push(key);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_reuses_what_was_taken() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.take(a), Some('a'));
        assert_eq!(slab.take(a), None);
        assert_eq!(slab.insert('c'), a);
        assert_eq!(slab.get(b), Some(&'b'));
        assert_eq!(slab.iter().collect::<String>(), "cb");
    }
}

//! Frames on the air, and a record of those that were.

use weir_units::{Feedback, Instant};

use super::datagram::NodeId;
use super::dcf::{FrameKind, Header};
use super::ifq::Packet;
use super::position::Position;
use weir_net::Parcel;

/// A frame on the air.
#[derive(Clone, Debug)]
pub(super) struct Frame<P, M> {
    pub(super) header: Header,
    pub(super) start: Instant,
    /// Of a broadcast; a packet to one node stays at its sender.
    pub(super) body: Option<Packet<P, M>>,
    /// What the record needs to know while there is one.
    pub(super) origin: Option<Origin>,
    /// How many nodes have read it that were to read it.
    pub(super) readers: u16,
    /// How many groups of hearers it has yet to reach the end at.
    pub(super) groups: u16,
}

/// Where a frame began, and with what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) place: Position,
    pub(super) waiting: u32,
    pub(super) cargo: Option<FrameCargo>,
}

/// The packet of a flow that a frame carried or announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCargo {
    /// Its flow.
    pub flow: u32,
    /// Where its data lies in the stream; `None` for what carries none, as acknowledgements.
    pub seq: Option<u64>,
    /// Whether it travels towards the flow's receiver.
    pub is_forward: bool,
    /// The data rate adjustment index that it bears, the node's own say included.
    pub mark: Option<u8>,
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
    /// Where that was.
    pub place: Position,
    /// How many packets waited for its MAC.
    pub waiting: u32,
    /// Who was to read it.
    pub to: NodeId,
    /// What it was.
    pub kind: FrameKind,
    /// What it carried or announced, if that was a flow's.
    pub cargo: Option<FrameCargo>,
    /// How many of those that were to read it did; zero if it was lost.
    pub readers: u16,
}

/// The first `limit` frames since the record was last emptied.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameLog {
    records: Vec<FrameRecord>,
    capacity: usize,
}

/// Values at fixed indices; a taken value's slot is used again.
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

impl FrameCargo {
    pub(super) fn of<P: Parcel>(parcel: &mut P) -> Self {
        let mark = match parcel.feedback() {
            Some(Feedback::Drai(drai)) => Some(drai.level),
            _ => None,
        };
        let seq = parcel.carries_data().then(|| parcel.sequence());
        Self { flow: parcel.flow(), seq, is_forward: parcel.is_forward(), mark }
    }
}

impl FrameLog {
    pub(super) fn new(capacity: usize) -> Self {
        Self { records: Vec::new(), capacity }
    }

    pub(super) fn has_space(&self) -> bool {
        self.records.len() < self.capacity
    }

    pub(super) fn push<P, M>(&mut self, frame: &Frame<P, M>) {
        let Some(Origin { place, waiting, cargo }) = frame.origin.filter(|_| self.has_space())
        else {
            return;
        };
        let Header { kind, from: node, to, .. } = frame.header;
        let Frame { start, readers, .. } = *frame;
        let end = frame.end();
        self.records.push(FrameRecord {
            start,
            end,
            node,
            place,
            waiting,
            to,
            kind,
            cargo,
            readers,
        });
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

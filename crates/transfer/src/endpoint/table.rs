//! The connections of an endpoint: by number, by whom a datagram belongs to, by deadline.

use std::collections::{BTreeSet, HashMap};
use std::io;

use weir_units::Instant;

use super::Application;
use super::key::Key;
use super::peer::Peer;

/// Names a connection for as long as its endpoint lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// First, so that those made earlier come first.
    serial: u64,
    slot: usize,
}

/// The connections of an endpoint.
pub(super) struct Table<A> {
    /// Each in its slot, with the serial number of its present connection.
    slots: Vec<Option<(u64, Peer<A>)>>,
    vacant: Vec<usize>,
    by_key: HashMap<Key, ConnectionId>,
    deadlines: BTreeSet<(Instant, ConnectionId)>,
    /// Those for whom there is something to do this step.
    touched: Vec<ConnectionId>,
    next: u64,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            by_key: HashMap::new(),
            deadlines: BTreeSet::new(),
            touched: Vec::new(),
            next: 0,
        }
    }
}

impl<A> Table<A> {
    /// Adds a connection; it gets a step.
    pub(super) fn insert(&mut self, peer: Peer<A>) -> ConnectionId {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            if self.slots.len() == self.slots.capacity() {
                // A connection takes kilobytes: a table that doubles would hold twice what is there.
                self.slots.reserve_exact(8 + self.slots.len() / 8);
            }
            self.slots.push(None);
            self.slots.len() - 1
        });
        let id = ConnectionId { serial: self.next, slot };
        self.next += 1;
        self.by_key.insert(peer.key, id);
        self.slots[slot] = Some((id.serial, peer));
        self.touch(id);
        id
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Peer<A>> {
        let slot = self.slots.get_mut(id.slot)?;
        let (_, peer) = slot.take_if(|(serial, _)| *serial == id.serial)?;
        self.vacant.push(id.slot);
        self.by_key.remove(&peer.key);
        if let Some(at) = peer.deadline {
            self.deadlines.remove(&(at, id));
        }
        Some(peer)
    }

    pub(super) fn find(&self, key: &Key) -> Option<ConnectionId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Peer<A>> {
        let (serial, peer) = self.slots.get(id.slot)?.as_ref()?;
        (*serial == id.serial).then_some(peer)
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Peer<A>> {
        let (serial, peer) = self.slots.get_mut(id.slot)?.as_mut()?;
        (*serial == id.serial).then_some(peer)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Peer<A>)> {
        self.slots.iter().enumerate().filter_map(|(slot, taken)| {
            let (serial, peer) = taken.as_ref()?;
            Some((ConnectionId { serial: *serial, slot }, peer))
        })
    }

    /// Puts a connection on the list for this step.
    pub(super) fn touch(&mut self, id: ConnectionId) {
        if let Some(peer) = self.get_mut(id)
            && !std::mem::replace(&mut peer.touched, true)
        {
            self.touched.push(id);
        }
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.touched.is_empty()
    }

    /// The list for this step, into `list`, which is emptied first.
    pub(super) fn take_ready(&mut self, list: &mut Vec<ConnectionId>) {
        list.clear();
        std::mem::swap(&mut self.touched, list);
        for id in list {
            if let Some(peer) = self.get_mut(*id) {
                peer.touched = false;
            }
        }
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Takes the next connection whose deadline has passed out of the book of deadlines.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<ConnectionId> {
        let (_, id) = *self.deadlines.first().filter(|(at, _)| *at <= now)?;
        self.set_deadline(id, None);
        Some(id)
    }

    /// Records when a connection next wants a step.
    pub(super) fn set_deadline(&mut self, id: ConnectionId, at: Option<Instant>) {
        let Some(peer) = self.get_mut(id) else { return };
        if peer.deadline == at {
            return;
        }
        if let Some(before) = std::mem::replace(&mut peer.deadline, at) {
            self.deadlines.remove(&(before, id));
        }
        if let Some(at) = at {
            self.deadlines.insert((at, id));
        }
    }
}

impl<A: Application> Table<A> {
    /// Ends a connection in favour of another; its reset is sent this step.
    pub(super) fn evict(&mut self, now: Instant, id: ConnectionId) {
        if let Some(peer) = self.get_mut(id) {
            let what = "it was the slowest, and was replaced by another";
            peer.fail(now, io::Error::new(io::ErrorKind::TimedOut, what));
        }
        self.touch(id);
    }
}

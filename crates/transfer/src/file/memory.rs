//! Memory that a receiver holds for its senders, any of which may be hostile: one limit for all sessions.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use weir_units::Bytes;

/// The memory of all sessions of a receiver.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    used: Cell<usize>,
    shares: RefCell<Vec<Weak<Share>>>,
    has_evicted: Cell<bool>,
}

/// What one session holds of it, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Rc<Memory>,
    /// For as long as it is there,
    fixed: usize,
    /// and what it holds more at present.
    held: Cell<usize>,
    evicted: Cell<bool>,
}

impl Memory {
    pub(crate) fn new(limit: Bytes) -> Rc<Self> {
        let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        Rc::new(Self {
            limit,
            used: Cell::new(0),
            shares: RefCell::default(),
            has_evicted: Cell::new(false),
        })
    }

    /// A share for a new session, of `fixed` bytes that it has until its end. Where the limit is reached, the largest
    /// sessions have to end.
    pub(crate) fn share(self: &Rc<Self>, fixed: usize) -> Rc<Share> {
        self.used.set(self.used.get() + fixed);
        while self.used.get() > self.limit
            && let Some(largest) = self.largest().filter(|share| share.held.get() > 0)
        {
            largest.evict();
        }
        let (held, evicted) = (Cell::new(0), Cell::new(false));
        let share = Rc::new(Share { memory: Rc::clone(self), fixed, held, evicted });
        let mut shares = self.shares.borrow_mut();
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Rc::downgrade(&share));
        share
    }

    /// How much all sessions hold.
    pub(crate) fn used(&self) -> Bytes {
        Bytes(self.used.get() as u64)
    }

    /// Whether a session has to end since this was asked last.
    pub(crate) fn has_evicted(&self) -> bool {
        self.has_evicted.take()
    }

    /// The session that holds the most of those that may stay.
    fn largest(&self) -> Option<Rc<Share>> {
        let shares = self.shares.borrow();
        let shares = shares.iter().filter_map(Weak::upgrade).filter(|share| !share.evicted.get());
        shares.max_by_key(|share| share.held.get())
    }
}

impl Share {
    /// Takes `bytes` more, if the limit allows it.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let used = self.memory.used.get().saturating_add(bytes);
        let fits = used <= self.memory.limit;
        if fits {
            self.memory.used.set(used);
            self.held.set(self.held.get() + bytes);
        }
        fits
    }

    /// Takes `bytes` more for what it can do without: not of the half that is for what it cannot.
    pub(crate) fn take_spare(&self, bytes: usize) -> bool {
        self.memory.used.get().saturating_add(bytes) <= self.memory.limit / 2 && self.take(bytes)
    }

    /// How much the session holds.
    pub(crate) fn held(&self) -> Bytes {
        Bytes((self.fixed + self.held.get()) as u64)
    }

    /// Takes `bytes` more. Where the limit is reached the session that would hold the most has to end: a
    /// session that holds the most, unless it is this one. Returns whether this session may stay.
    pub(crate) fn claim(&self, bytes: usize) -> bool {
        let wanted = self.held.get().saturating_add(bytes);
        while !self.take(bytes) {
            let largest = self.memory.largest().filter(|share| share.held.get() >= wanted);
            let Some(largest) = largest else {
                self.evicted.set(true);
                return false;
            };
            largest.evict();
        }
        true
    }

    /// Returns `bytes` of what it holds.
    pub(crate) fn give_back(&self, bytes: usize) {
        let bytes = bytes.min(self.held.get());
        self.held.set(self.held.get() - bytes);
        self.memory.used.set(self.memory.used.get() - bytes);
    }

    /// Begins anew with nothing, after the session has freed what it held.
    pub(crate) fn release(&self) {
        self.give_back(self.held.get());
        self.evicted.set(false);
    }

    /// Whether the session has to end, because others need the memory.
    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.get()
    }

    /// The session frees its memory in its next step.
    fn evict(&self) {
        self.evicted.set(true);
        self.memory.has_evicted.set(true);
        self.give_back(self.held.get());
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.held.get());
        self.memory.used.set(self.memory.used.get() - self.fixed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_holder_has_to_end() {
        let memory = Memory::new(Bytes(100));
        let [large, small, new] = [(); 3].map(|()| memory.share(0));
        assert!(large.take(60) && small.take(30) && !new.take(11));
        assert!(new.claim(11));
        assert_eq!([&large, &small, &new].map(|share| share.is_evicted()), [true, false, false]);
        assert_eq!(memory.used.get(), 41);
        drop((large, small));
        assert_eq!(memory.used.get(), 11);
        assert!(!new.claim(90), "it is the largest itself");
        assert!(new.is_evicted());
    }

    #[test]
    fn what_can_be_spared_is_half() {
        let memory = Memory::new(Bytes(100));
        let [one, two] = [(); 2].map(|()| memory.share(0));
        assert!(one.take_spare(40) && !two.take_spare(11) && two.take_spare(10));
        assert!(two.claim(50));
        assert!(!one.is_evicted());
    }

    #[test]
    fn who_would_hold_the_most_ends_and_no_other() {
        let memory = Memory::new(Bytes(100));
        let [one, two, new] = [(); 3].map(|()| memory.share(0));
        assert!(one.take(40) && two.take(40));
        assert!(!new.claim(60));
        assert_eq!([&one, &two, &new].map(|share| share.is_evicted()), [false, false, true]);
    }

    #[test]
    fn what_a_session_always_has_counts_until_its_end() {
        let memory = Memory::new(Bytes(100));
        let [large, small] = [(); 2].map(|()| memory.share(10));
        assert!(large.take(50) && small.take(20));
        let new = memory.share(20);
        assert_eq!([&large, &small, &new].map(|share| share.is_evicted()), [true, false, false]);
        assert_eq!(memory.used.get(), 60, "a session that has to end is there until it has ended");
        drop(large);
        assert_eq!(memory.used.get(), 50);
        drop((small, new));
        assert_eq!(memory.used.get(), 0);
    }
}

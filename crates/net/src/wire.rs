//! Parcels in flight between a link's server and its far end.

use std::collections::VecDeque;

use weir_units::{Duration, Instant};

/// A parcel in flight.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<P> {
    pub(crate) arrival: Instant,
    pub(crate) sojourn: Duration,
    pub(crate) overtaken: bool,
    pub(crate) parcel: P,
}

/// The parcels in flight, in the order of their arrivals.
#[derive(Clone, Debug)]
pub(crate) struct Wire<P> {
    under_way: VecDeque<InFlight<P>>,
    /// When the first of them arrives, cached: it is read far more often than it changes.
    next: Instant,
}

impl<P> Wire<P> {
    pub(crate) fn new() -> Self {
        Self { under_way: VecDeque::new(), next: Instant::MAX }
    }

    /// Adds a parcel; returns how many it overtakes that no other had overtaken before.
    #[inline]
    pub(crate) fn push(&mut self, entry: InFlight<P>) -> u64 {
        self.next = self.next.min(entry.arrival);
        match self.under_way.back() {
            Some(last) if last.arrival > entry.arrival => self.insert(entry),
            _ => {
                self.under_way.push_back(entry);
                0
            }
        }
    }

    #[cold]
    fn insert(&mut self, entry: InFlight<P>) -> u64 {
        let place = self.under_way.partition_point(|other| other.arrival <= entry.arrival);
        let mut overtaken = 0;
        for other in self.under_way.range_mut(place..) {
            overtaken += u64::from(!other.overtaken);
            other.overtaken = true;
        }
        self.under_way.insert(place, entry);
        overtaken
    }

    /// The next parcel that has arrived by `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant) -> Option<InFlight<P>> {
        if self.next > now {
            return None;
        }
        let first = self.under_way.pop_front();
        self.next = self.under_way.front().map_or(Instant::MAX, |entry| entry.arrival);
        first
    }

    /// When the next parcel arrives; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Instant {
        self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The parcels in flight, the next to arrive first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &InFlight<P>> {
        self.under_way.iter()
    }
}

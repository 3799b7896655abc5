//! Parcels in flight between a link's server and its far end.

use std::collections::VecDeque;
use std::hint::black_box;

use weir_units::{Duration, Instant};

use crate::parcel::Parcel;

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
    /// How many of the next parcels have been read ahead.
    read_ahead: usize,
}

/// How many parcels are read ahead at once.
const READ_AHEAD: usize = 8;

impl<P: Parcel> Wire<P> {
    pub(crate) fn new() -> Self {
        Self { under_way: VecDeque::new(), next: Instant::MAX, read_ahead: 0 }
    }

    /// Adds a parcel; returns how many it overtakes that no other had overtaken before.
    #[inline]
    pub(crate) fn push(&mut self, arrival: Instant, sojourn: Duration, parcel: P) -> u64 {
        self.next = self.next.min(arrival);
        if self.under_way.back().is_some_and(|last| last.arrival > arrival) {
            return self.insert(arrival, sojourn, parcel);
        }
        self.under_way.push_back(InFlight { arrival, sojourn, overtaken: false, parcel });
        0
    }

    #[cold]
    fn insert(&mut self, arrival: Instant, sojourn: Duration, parcel: P) -> u64 {
        let entry = InFlight { arrival, sojourn, overtaken: false, parcel };
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
        match self.read_ahead.checked_sub(1) {
            Some(left) => self.read_ahead = left,
            // What is on a short wire has been read of late.
            None if self.under_way.len() < READ_AHEAD => {}
            None => self.read_ahead(),
        }
        first
    }

    /// Brings the next parcels back into the processor's caches: on a long wire of many flows they
    /// have left them. Memory answers several reads in the time of one.
    #[inline(never)]
    fn read_ahead(&mut self) {
        self.read_ahead = READ_AHEAD - 1;
        let mut read = 0;
        for InFlight { parcel, .. } in self.under_way.range(..READ_AHEAD) {
            read ^= parcel.len().get() ^ parcel.sequence();
        }
        black_box(read);
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

//! What a queue discipline is to a link.

use std::ops::Add;

use weir_units::{Bytes, Duration, Instant};

use crate::droptail::DropTail;
use crate::parcel::Parcel;
use crate::stats::DropCause;

/// So many parcels and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Parcels.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// A parcel that leaves a queue to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued<P> {
    /// The parcel.
    pub parcel: P,
    /// When it entered the queue.
    pub arrived: Instant,
}

/// A parcel that a queue gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped<P> {
    /// The parcel.
    pub parcel: P,
    /// Why.
    pub cause: DropCause,
}

/// A queue discipline: a store that may refuse, mark or drop.
///
/// The link calls it with non-decreasing times that are exact even when the link is touched late, so
/// a discipline may measure sojourn times and run control laws on them. Whatever it drops, the
/// parcel at hand or another, goes to `dropped`.
pub trait Queue<P: Parcel> {
    /// Takes in `parcel`, or drops it or others. `in_service` is what the link is sending just now.
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    );

    /// The parcel to send next.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>>;

    /// A parcel meets an empty queue and a server ready to send it at once.
    fn pass(&mut self, now: Instant, parcel: P, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        self.enqueue(now, parcel, Backlog::default(), dropped);
        self.dequeue(now, dropped).map(|queued| queued.parcel)
    }

    /// What is stored.
    fn backlog(&self) -> Backlog;

    /// Whether nothing is stored.
    fn is_empty(&self) -> bool {
        self.backlog().packets == 0
    }
}

impl Add for Backlog {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl<P> Queued<P> {
    /// How long it had been waiting at `now`.
    pub fn sojourn(&self, now: Instant) -> Duration {
        now.saturating_since(self.arrived)
    }
}

/// The disciplines there are, chosen by match rather than by virtual call: a link asks at every
/// parcel. A new one gets a file, a variant here and one in [`crate::QueueConfig`].
#[derive(Clone, Debug)]
pub(crate) enum AnyQueue<P> {
    DropTail(DropTail<P>),
}

impl<P: Parcel> Queue<P> for AnyQueue<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        match self {
            Self::DropTail(queue) => queue.enqueue(now, parcel, in_service, dropped),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, dropped),
        }
    }

    #[inline]
    fn pass(&mut self, now: Instant, parcel: P, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        match self {
            Self::DropTail(queue) => queue.pass(now, parcel, dropped),
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match self {
            Self::DropTail(queue) => queue.backlog(),
        }
    }
}

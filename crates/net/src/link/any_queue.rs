//! The queue of a link, whichever discipline it is.

use weir_units::{Bytes, Instant, Rng};

use crate::config::LinkConfig;
use crate::disciplines::{Managed, QueueConfig, Site};
use crate::droptail::{DropTail, DropTailConfig};
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};

/// The disciplines there are, chosen by match rather than by virtual call: a link asks at every
/// parcel. The plain FIFO is inlined there, the others stay out of its way.
#[derive(Clone, Debug)]
pub(super) enum AnyQueue<P> {
    DropTail(DropTail<P>),
    Managed(Box<Managed<P>>),
}

impl<P: Parcel> AnyQueue<P> {
    /// The empty queue of a link.
    pub(super) fn new(link: &LinkConfig, stream: &mut impl FnMut(&'static str) -> Rng) -> Self {
        if let QueueConfig::DropTail(config) = link.queue {
            let overhead = config.overhead + link.overhead;
            return Self::DropTail(DropTail::new(DropTailConfig { overhead, ..config }));
        }
        let mut site = Site::new(&link.service, link.overhead, link.mtu, stream);
        let managed = Managed::new(&link.queue, &mut site);
        Self::Managed(Box::new(managed.expect("it is no plain FIFO")))
    }

    /// The parcel to send next, and its length.
    #[inline]
    pub(super) fn take(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Option<(Queued<P>, Bytes)> {
        match self {
            Self::DropTail(queue) => queue.pop_with_len(),
            Self::Managed(queue) => {
                let head = queue.dequeue(now, dropped)?;
                let len = head.parcel.len();
                Some((head, len))
            }
        }
    }

    /// Whether all parcels leave in the order in which they came.
    pub(super) fn is_fifo(&self) -> bool {
        match self {
            Self::DropTail(_) => true,
            Self::Managed(queue) => queue.is_fifo(),
        }
    }
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
            Self::Managed(queue) => queue.enqueue(now, parcel, in_service, dropped),
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        match self {
            Self::DropTail(queue) => queue.dequeue(now, dropped),
            Self::Managed(queue) => queue.dequeue(now, dropped),
        }
    }

    #[inline]
    fn pass(&mut self, now: Instant, parcel: P, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        match self {
            Self::DropTail(_) => Some(parcel),
            Self::Managed(queue) => queue.pass(now, parcel, dropped),
        }
    }

    #[inline]
    fn on_idle(&mut self, since: Instant) {
        if let Self::Managed(queue) = self {
            queue.on_idle(since);
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        match self {
            Self::DropTail(queue) => queue.backlog(),
            Self::Managed(queue) => queue.backlog(),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        match self {
            Self::DropTail(queue) => queue.is_empty(),
            Self::Managed(queue) => queue.is_empty(),
        }
    }

    fn marks(&self) -> u64 {
        match self {
            Self::DropTail(_) => 0,
            Self::Managed(queue) => queue.marks(),
        }
    }
}

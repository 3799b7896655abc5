//! The plain FIFO: arrivals to a full queue are dropped.

use std::collections::VecDeque;

use weir_units::{BufferSize, Bytes, Duration, Instant, Rate};

use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::stats::DropCause;

/// The bound of a drop-tail queue. Time and BDP are resolved beforehand, see [`Limit::resolve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No bound.
    #[default]
    Infinite,
    /// A number of bytes.
    Bytes(Bytes),
    /// A number of parcels, whatever their size.
    Packets(u64),
}

/// What counts against the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// The waiting parcels and the one being sent, as Linux's netem and most network cards do.
    #[default]
    WithService,
    /// The waiting parcels only: a socket buffer, whose datagram has been read when it is served.
    Waiting,
}

/// A drop-tail queue's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropTailConfig {
    /// The bound. A link that holds no parcel at all takes one in spite of it.
    pub limit: Limit,
    /// What counts against it.
    pub counting: Counting,
    /// What each parcel is charged beyond its length, where the bound is in bytes: a kernel's
    /// bookkeeping for a datagram in a socket buffer.
    pub overhead: Bytes,
}

/// A FIFO that drops arrivals when it is full.
///
/// ```
/// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
/// # use packet::Packet;
/// use weir_net::{Backlog, DropCause, DropTail, Limit, Queue};
/// use weir_units::{Bytes, Instant};
///
/// let mut queue = DropTail::new(Limit::Bytes(Bytes(3_000)).into());
/// let mut dropped = Vec::new();
/// for _ in 0..3 {
///     queue.enqueue(Instant::ZERO, Packet::new(1_400), Backlog::default(), &mut dropped);
/// }
/// assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: Bytes(2_800) });
/// assert_eq!(dropped[0].cause, DropCause::Queue);
/// ```
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    max_packets: u64,
    max_bytes: u64,
    overhead: u64,
    counting: Counting,
}

/// A parcel that waits. Its length stands here too: its own memory may have left the processor's
/// caches while it waited, and need not be read before it arrives.
#[derive(Clone, Debug)]
struct Waiting<P> {
    parcel: P,
    arrived: Instant,
    len: Bytes,
}

impl Limit {
    /// The bound that `size` means on a link of `rate` whose flows see `rtt` without queues.
    pub fn resolve(size: BufferSize, rate: Rate, rtt: Duration) -> Self {
        match (size, size.to_bytes(rate, rtt)) {
            (_, Some(bytes)) => Self::Bytes(bytes),
            (BufferSize::Packets(packets), None) => Self::Packets(packets),
            _ => Self::Infinite,
        }
    }

    /// As parcels and bytes.
    pub(crate) fn bounds(self) -> (u64, u64) {
        match self {
            Self::Infinite => (u64::MAX, u64::MAX),
            Self::Bytes(bytes) => (u64::MAX, bytes.get()),
            Self::Packets(packets) => (packets, u64::MAX),
        }
    }
}

impl From<Limit> for DropTailConfig {
    fn from(limit: Limit) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl<P: Parcel> DropTail<P> {
    /// An empty queue.
    pub fn new(config: DropTailConfig) -> Self {
        let (max_packets, max_bytes) = config.limit.bounds();
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            max_packets,
            max_bytes,
            overhead: config.overhead.get(),
            counting: config.counting,
        }
    }

    /// The parcel to send next.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        self.pop_with_len().map(|(head, _)| head)
    }

    /// The parcel to send next, and its length.
    #[inline]
    pub(crate) fn pop_with_len(&mut self) -> Option<(Queued<P>, Bytes)> {
        let Waiting { parcel, arrived, len } = self.waiting.pop_front()?;
        self.bytes -= len.get();
        Some((Queued { parcel, arrived }, len))
    }

    /// The waiting parcel at `index`, the oldest first.
    pub(crate) fn peek(&self, index: usize) -> Option<&P> {
        self.waiting.get(index).map(|waiting| &waiting.parcel)
    }

    /// Takes out the waiting parcel at `index`.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Queued<P>> {
        let Waiting { parcel, arrived, len } = self.waiting.remove(index)?;
        self.bytes -= len.get();
        Some(Queued { parcel, arrived })
    }

    /// How long the head has been waiting at `now`; not at all if there is none.
    pub(crate) fn head_sojourn(&self, now: Instant) -> Duration {
        self.waiting.front().map_or(Duration::ZERO, |head| now.saturating_since(head.arrived))
    }

    /// The bytes stored, with what each parcel is charged beyond its length.
    pub(crate) fn charged(&self) -> Bytes {
        self.charged_with(Backlog::default())
    }

    /// The same, together with what is in service.
    pub(crate) fn charged_with(&self, in_service: Backlog) -> Bytes {
        let Backlog { packets, bytes } = self.backlog() + in_service;
        bytes + Bytes(self.overhead) * packets
    }

    /// Whether it would take the parcel in.
    #[inline]
    pub(crate) fn has_space(&self, parcel: &P, in_service: Backlog) -> bool {
        self.has_space_for(parcel.len(), in_service)
    }

    #[inline]
    fn has_space_for(&self, len: Bytes, in_service: Backlog) -> bool {
        let waiting = self.waiting.len() as u64;
        if waiting + in_service.packets == 0 {
            return true;
        }
        let counted = match self.counting {
            Counting::WithService => in_service,
            Counting::Waiting => Backlog::default(),
        };
        let packets = waiting + counted.packets + 1;
        let bytes = self.bytes + counted.bytes.get() + len.get();
        packets <= self.max_packets && bytes + packets * self.overhead <= self.max_bytes
    }
}

impl<P: Parcel> Queue<P> for DropTail<P> {
    #[inline]
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let len = parcel.len();
        if self.has_space_for(len, in_service) {
            self.bytes += len.get();
            self.waiting.push_back(Waiting { parcel, arrived: now, len });
        } else {
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        self.pop()
    }

    #[inline]
    fn pass(&mut self, _now: Instant, parcel: P, _dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        Some(parcel)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: Bytes(self.bytes) }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

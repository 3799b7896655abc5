//! What a queue discipline is to a link.

use std::ops::Add;

use weir_units::{Bytes, Duration, Instant};

use crate::parcel::{Ecn, Parcel};
use crate::stats::DropCause;

/// A number of parcels and their bytes.
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
///
/// ```
/// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
/// # use packet::Packet;
/// use weir_net::{Backlog, DropTail, DropTailConfig, Queue};
/// use weir_units::{Duration, Instant};
///
/// /// Sends everything that waits in a queue, one packet per millisecond from `now` on.
/// fn longest_wait(queue: &mut impl Queue<Packet>, mut now: Instant) -> Duration {
///     let (mut longest, mut dropped) = (Duration::ZERO, Vec::new());
///     while let Some(queued) = queue.dequeue(now, &mut dropped) {
///         longest = longest.max(queued.sojourn(now));
///         now += Duration::from_millis(1);
///     }
///     longest
/// }
///
/// let mut queue = DropTail::new(DropTailConfig::default());
/// for _ in 0..4 {
///     queue.enqueue(Instant::ZERO, Packet::new(100), Backlog::default(), &mut Vec::new());
/// }
/// assert_eq!(longest_wait(&mut queue, Instant::ZERO), Duration::from_millis(3));
/// assert!(queue.is_empty());
/// ```
pub trait Queue<P: Parcel> {
    /// Enqueues `parcel`, or drops it or others. `in_service` is what the link is sending just now.
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

    /// The server requested a parcel at `since`, when nothing was stored, and has been waiting.
    fn on_idle(&mut self, _since: Instant) {}

    /// What is stored.
    fn backlog(&self) -> Backlog;

    /// How many parcels it has marked so far.
    fn marks(&self) -> u64 {
        0
    }

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

/// Signals congestion with a mark (RFC 3168 §5), if the parcel is capable of ECN: says whether it is.
/// `marks` counts those that no queue had marked before.
pub fn mark<P: Parcel>(parcel: &mut P, marks: &mut u64) -> bool {
    match parcel.ecn() {
        Ecn::NotEct => return false,
        Ecn::Ce => {}
        Ecn::Ect0 | Ecn::Ect1 => {
            parcel.mark_ce();
            *marks += 1;
        }
    }
    true
}

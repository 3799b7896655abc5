//! CoDel: drops at a rising rate while every packet has waited for longer than a target.
//!
//! Source: RFC 8289 (Nichols, Jacobson, McGregor, Iyengar 2018); where it leaves a choice, Linux 6.1's
//! `sch_codel` and `codel_impl.h`.
//!
//! At each dequeue the head has waited for a sojourn time. The queue *stands* once sojourns have been
//! at or above `target` for longer than `interval` without a break; a break is a sojourn below it, or
//! no more than one full-sized packet left behind. While the queue stands, CoDel signals: at once,
//! and then each time that
//!
//! ```text
//! next = last + interval / sqrt(count)
//! ```
//!
//! has come, `count` being the signals so far. When the queue stands again within sixteen intervals
//! of the last one, `count` goes on from where the last episode had got to (RFC 8289 §5.5). A signal drops the head, or marks it if `ecn` is on and the packet is capable.
//! With `ce_threshold` every capable packet whose sojourn is above that is marked too, whether or not
//! the queue stands.
//!
//! As in Linux `1/sqrt(count)` is a fixed-point number of 16 bits, improved by one Newton step per
//! signal (`codel_Newton_step`), so that the first intervals are a little shorter than the formula has
//! them. Deviation: Linux counts time in units of 1024 ns, we in nanoseconds.

use weir_units::{Bytes, Duration, Instant};

use crate::droptail::{DropTail, DropTailConfig, Limit};
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued, mark};
use crate::stats::DropCause;

/// A CoDel queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// The bound; arrivals to a full queue are dropped.
    pub limit: Limit,
    /// The control law.
    pub law: CodelLaw,
}

/// The parameters of CoDel's control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelLaw {
    /// A sojourn that is good enough.
    pub target: Duration,
    /// How long sojourns may exceed it: about the longest round trip.
    pub interval: Duration,
    /// Whether packets that are capable of ECN are marked in place of a drop.
    pub ecn: bool,
    /// Packets capable of ECN that waited for longer than this are marked in any case.
    pub ce_threshold: Option<Duration>,
}

/// A FIFO under CoDel.
///
/// ```
/// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
/// # use packet::Packet;
/// use weir_net::{Backlog, Codel, CodelConfig, CodelLaw, DropCause, Limit, Queue};
/// use weir_units::{Bytes, Duration, Instant};
///
/// let config = CodelConfig { limit: Limit::Packets(1_000), law: CodelLaw::DEFAULT };
/// let mut queue = Codel::new(config, Bytes::ZERO, Bytes(1_500));
/// let mut dropped = Vec::new();
/// for _ in 0..200 {
///     queue.enqueue(Instant::ZERO, Packet::new(1_500), Backlog::default(), &mut dropped);
/// }
/// // A packet leaves every millisecond: sojourns exceed 5 ms for an interval of 100 ms.
/// for ms in 0..150 {
///     queue.dequeue(Instant::ZERO + Duration::from_millis(ms), &mut dropped);
/// }
/// assert!(!dropped.is_empty() && dropped.iter().all(|drop| drop.cause == DropCause::Aqm));
/// ```
#[derive(Clone, Debug)]
pub struct Codel<P> {
    fifo: DropTail<P>,
    law: CodelLaw,
    mtu: Bytes,
    state: CodelState,
    marks: u64,
}

/// What the control law remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CodelState {
    /// When the queue will have stood for an interval, if sojourns are above the target.
    stands_from: Option<Instant>,
    signalling: bool,
    next_signal: Instant,
    /// Signals in this episode.
    pub(crate) count: u32,
    /// The count with which the episode began.
    first_count: u32,
    /// `1/sqrt(count)` in units of 2^-16.
    inverse_root: u16,
}

/// The head of a queue, and how much stays behind it.
pub(crate) struct Head<P> {
    pub(crate) queued: Queued<P>,
    pub(crate) behind: Bytes,
}

/// What a dequeue under the control law works on.
pub(crate) struct Signals<'a, P> {
    pub(crate) law: &'a CodelLaw,
    /// A full-sized packet: no more than this left behind is no standing queue.
    pub(crate) mtu: Bytes,
    pub(crate) dropped: &'a mut Vec<Dropped<P>>,
    pub(crate) marks: &'a mut u64,
}

impl CodelLaw {
    /// The parameters of RFC 8289, without ECN.
    pub const DEFAULT: Self = Self {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        ecn: false,
        ce_threshold: None,
    };

    /// The control law.
    fn after(&self, last: Instant, inverse_root: u16) -> Instant {
        let nanos = (u128::from(self.interval.as_nanos()) * u128::from(inverse_root)) >> 16;
        last.saturating_add(Duration::from_nanos(nanos as u64))
    }
}

impl<P: Parcel> Codel<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: CodelConfig, overhead: Bytes, mtu: Bytes) -> Self {
        let fifo = DropTail::new(DropTailConfig { overhead, ..config.limit.into() });
        Self { fifo, law: config.law, mtu, state: CodelState::default(), marks: 0 }
    }
}

impl<P: Parcel> Queue<P> for Codel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        self.fifo.enqueue(now, parcel, in_service, dropped);
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        let Self { fifo, law, mtu, state, marks } = self;
        let signals = Signals { law, mtu: *mtu, dropped, marks };
        state.dequeue(now, signals, || {
            let queued = fifo.pop()?;
            Some(Head { queued, behind: fifo.charged() })
        })
    }

    fn on_idle(&mut self, _since: Instant) {
        self.state.on_empty();
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

impl CodelState {
    /// The next parcel to send of those that `pop` gives, and the signals that are due.
    pub(crate) fn dequeue<P: Parcel>(
        &mut self,
        now: Instant,
        mut signals: Signals<'_, P>,
        mut pop: impl FnMut() -> Option<Head<P>>,
    ) -> Option<Queued<P>> {
        let mut head = pop();
        let stands = self.stands(now, &signals, head.as_ref());
        if self.signalling {
            self.signalling = stands;
            while self.signalling && now >= self.next_signal {
                self.count = self.count.wrapping_add(1);
                self.improve_root();
                let marked = signals.give(&mut head);
                if !marked {
                    head = pop();
                    self.signalling = self.stands(now, &signals, head.as_ref());
                }
                if self.signalling {
                    self.next_signal = signals.law.after(self.next_signal, self.inverse_root);
                }
                if marked {
                    break;
                }
            }
        } else if stands {
            if !signals.give(&mut head) {
                head = pop();
                self.stands(now, &signals, head.as_ref());
            }
            self.begin_episode(now, signals.law);
        }
        let mut queued = head?.queued;
        if signals.law.ce_threshold.is_some_and(|threshold| queued.sojourn(now) > threshold) {
            mark(&mut queued.parcel, signals.marks);
        }
        Some(queued)
    }

    /// The server asked, and nothing was there.
    pub(crate) fn on_empty(&mut self) {
        self.stands_from = None;
        self.signalling = false;
    }

    /// Whether sojourns have been above the target for an interval, with this head
    /// (`codel_should_drop`).
    fn stands<P>(
        &mut self,
        now: Instant,
        signals: &Signals<'_, P>,
        head: Option<&Head<P>>,
    ) -> bool {
        let waits = head.is_some_and(|head| {
            head.queued.sojourn(now) >= signals.law.target && head.behind > signals.mtu
        });
        if !waits {
            self.stands_from = None;
            return false;
        }
        let from = *self.stands_from.get_or_insert(now.saturating_add(signals.law.interval));
        now > from
    }

    fn begin_episode(&mut self, now: Instant, law: &CodelLaw) {
        self.signalling = true;
        let signals = self.count.wrapping_sub(self.first_count);
        let since = now.saturating_since(self.next_signal);
        if signals > 1 && since < law.interval.saturating_mul(16) {
            self.count = signals;
            self.improve_root();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.first_count = self.count;
        self.next_signal = law.after(now, self.inverse_root);
    }

    /// One Newton step towards `1/sqrt(count)`: x (3 - count x^2) / 2.
    fn improve_root(&mut self) {
        let root = u64::from(self.inverse_root) << 16;
        let square = (root * root) >> 32;
        let rest = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square));
        let next = (rest >> 2).wrapping_mul(root) >> 31;
        self.inverse_root = (next >> 16) as u16;
    }
}

impl<P: Parcel> Signals<'_, P> {
    /// Marks the head, or else drops it; says whether it was marked.
    fn give(&mut self, head: &mut Option<Head<P>>) -> bool {
        if let Some(head) = head
            && self.law.ecn
            && mark(&mut head.queued.parcel, self.marks)
        {
            return true;
        }
        let dropped = head.take().map(|head| head.queued.parcel);
        let cause = DropCause::Aqm;
        self.dropped.extend(dropped.map(|parcel| Dropped { parcel, cause }));
        false
    }
}

#[cfg(test)]
mod tests;

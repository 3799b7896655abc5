//! What a queue discipline is to a link.

use std::ops::Add;

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::codel::Codel;
use crate::config::{LinkConfig, QueueConfig, Service};
use crate::droptail::{DropTail, DropTailConfig};
use crate::ecn_step::EcnStep;
use crate::fq_codel::FqCodel;
use crate::parcel::{Ecn, Parcel};
use crate::red::Red;
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

    /// The server asked for a parcel at `since`, when nothing was stored, and has been waiting.
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
pub(crate) fn mark<P: Parcel>(parcel: &mut P, marks: &mut u64) -> bool {
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

/// The disciplines there are, chosen by match rather than by virtual call: a link asks at every
/// parcel. A new one gets a file, a variant here and one in [`crate::QueueConfig`]. All but the
/// simplest are boxed, to keep links small.
#[derive(Clone, Debug)]
pub(crate) enum AnyQueue<P> {
    DropTail(DropTail<P>),
    Codel(Box<Codel<P>>),
    FqCodel(Box<FqCodel<P>>),
    Red(Box<Red<P>>),
    EcnStep(Box<EcnStep<P>>),
}

/// The same for whichever discipline it is.
macro_rules! each {
    ($queue:expr, $name:ident => $what:expr) => {
        match $queue {
            AnyQueue::DropTail($name) => $what,
            AnyQueue::Codel($name) => $what,
            AnyQueue::FqCodel($name) => $what,
            AnyQueue::Red($name) => $what,
            AnyQueue::EcnStep($name) => $what,
        }
    };
}

impl<P: Parcel> AnyQueue<P> {
    /// The empty queue of a link.
    pub(crate) fn new(link: &LinkConfig, stream: &mut impl FnMut(&'static str) -> Rng) -> Self {
        let overhead = link.overhead;
        let mtu = link.mtu.unwrap_or(FULL_SIZE) + overhead;
        match link.queue {
            QueueConfig::DropTail(config) => {
                let overhead = config.overhead + overhead;
                Self::DropTail(DropTail::new(DropTailConfig { overhead, ..config }))
            }
            QueueConfig::Codel(config) => Self::Codel(Box::new(Codel::new(config, overhead, mtu))),
            QueueConfig::FqCodel(config) => {
                let luck = stream("fq-codel");
                Self::FqCodel(Box::new(FqCodel::new(config, overhead, mtu, luck)))
            }
            QueueConfig::Red(config) => {
                // See red.rs: below a token bucket idle times do not count.
                let rate = match &link.service {
                    Service::Rate(rate) => Some(rate.initial),
                    _ => None,
                };
                let rate = rate.filter(|rate| *rate > Rate::ZERO);
                let time = rate.map(|rate| rate.transmit_time(mtu, &mut 0));
                Self::Red(Box::new(Red::new(config, overhead, time, stream("red"))))
            }
            QueueConfig::EcnStep(config) => Self::EcnStep(Box::new(EcnStep::new(config, overhead))),
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
        each!(self, queue => queue.enqueue(now, parcel, in_service, dropped));
    }

    #[inline]
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        each!(self, queue => queue.dequeue(now, dropped))
    }

    #[inline]
    fn pass(&mut self, now: Instant, parcel: P, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        each!(self, queue => queue.pass(now, parcel, dropped))
    }

    #[inline]
    fn on_idle(&mut self, since: Instant) {
        each!(self, queue => queue.on_idle(since));
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, queue => queue.backlog())
    }

    fn marks(&self) -> u64 {
        each!(self, queue => queue.marks())
    }
}

/// A full-sized IP packet on a link without an MTU of its own: Ethernet's.
const FULL_SIZE: Bytes = Bytes(1_500);

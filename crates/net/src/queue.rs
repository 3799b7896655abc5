//! What a queue discipline is to a link.

use std::ops::Add;

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::cake::Cake;
use crate::codel::Codel;
use crate::config::{LinkConfig, QueueConfig, Service};
use crate::droptail::{DropTail, DropTailConfig};
use crate::dualpi2::DualPi2;
use crate::ecn_step::EcnStep;
use crate::fq::Fq;
use crate::fq_codel::FqCodel;
use crate::fq_pie::FqPie;
use crate::parcel::{Ecn, Parcel};
use crate::pie::Pie;
use crate::red::Red;
use crate::sfq::Sfq;
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
/// parcel. The plain FIFO is inlined there, the others stay out of its way.
#[derive(Clone, Debug)]
pub(crate) enum AnyQueue<P> {
    DropTail(DropTail<P>),
    Managed(Box<Managed<P>>),
}

/// The disciplines that decide. A new one gets a file, a variant here and one in
/// [`crate::QueueConfig`].
#[derive(Clone, Debug)]
pub(crate) enum Managed<P> {
    Codel(Codel<P>),
    FqCodel(FqCodel<P>),
    Red(Red<P>),
    Pie(Pie<P>),
    Fq(Fq<P>),
    FqPie(FqPie<P>),
    Cake(Cake<P>),
    DualPi2(DualPi2<P>),
    EcnStep(EcnStep<P>),
    Sfq(Sfq<P>),
}

/// The same for whichever discipline it is.
macro_rules! each {
    ($queue:expr, $name:ident => $what:expr) => {
        match $queue {
            Managed::Codel($name) => $what,
            Managed::FqCodel($name) => $what,
            Managed::Red($name) => $what,
            Managed::Pie($name) => $what,
            Managed::Fq($name) => $what,
            Managed::FqPie($name) => $what,
            Managed::Cake($name) => $what,
            Managed::DualPi2($name) => $what,
            Managed::EcnStep($name) => $what,
            Managed::Sfq($name) => $what,
        }
    };
}

impl<P: Parcel> AnyQueue<P> {
    /// The empty queue of a link.
    pub(crate) fn new(link: &LinkConfig, stream: &mut impl FnMut(&'static str) -> Rng) -> Self {
        let overhead = link.overhead;
        let mtu = link.mtu.unwrap_or(FULL_SIZE) + overhead;
        let managed = match link.queue {
            QueueConfig::DropTail(config) => {
                let overhead = config.overhead + overhead;
                return Self::DropTail(DropTail::new(DropTailConfig { overhead, ..config }));
            }
            QueueConfig::Codel(config) => Managed::Codel(Codel::new(config, overhead, mtu)),
            QueueConfig::FqCodel(config) => {
                Managed::FqCodel(FqCodel::new(config, overhead, mtu, stream("fq-codel")))
            }
            QueueConfig::Red(config) => {
                // See red.rs: below a token bucket idle times do not count.
                let rate = match &link.service {
                    Service::Rate(rate) => Some(rate.initial),
                    _ => None,
                };
                let rate = rate.filter(|rate| *rate > Rate::ZERO);
                let time = rate.map(|rate| rate.transmit_time(mtu, &mut 0));
                Managed::Red(Red::new(config, overhead, time, stream("red")))
            }
            QueueConfig::Pie(config) => {
                Managed::Pie(Pie::new(config, overhead, mtu, stream("pie")))
            }
            QueueConfig::Fq(config) => Managed::Fq(Fq::new(config, overhead, stream("fq"))),
            QueueConfig::FqPie(config) => {
                Managed::FqPie(FqPie::new(config, overhead, mtu, stream("fq-pie")))
            }
            QueueConfig::Cake(ref config) => {
                let rate = link.rate().filter(|rate| *rate > Rate::ZERO);
                Managed::Cake(Cake::new(config.clone(), rate, overhead, mtu, stream("cake")))
            }
            QueueConfig::DualPi2(config) => Managed::DualPi2(DualPi2::new(config, overhead, mtu)),
            QueueConfig::EcnStep(config) => Managed::EcnStep(EcnStep::new(config, overhead)),
            QueueConfig::Sfq(config) => Managed::Sfq(Sfq::new(config, overhead, stream("sfq"))),
        };
        Self::Managed(Box::new(managed))
    }

    /// Whether all parcels leave in the order in which they came.
    pub(crate) fn is_fifo(&self) -> bool {
        let Self::Managed(queue) = self else { return true };
        match **queue {
            Managed::Codel(_) | Managed::Red(_) | Managed::Pie(_) | Managed::EcnStep(_) => true,
            Managed::FqCodel(_)
            | Managed::Fq(_)
            | Managed::FqPie(_)
            | Managed::Cake(_)
            | Managed::DualPi2(_)
            | Managed::Sfq(_) => false,
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
            Self::DropTail(queue) => queue.pop(),
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

impl<P: Parcel> Queue<P> for Managed<P> {
    #[inline(never)]
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        each!(self, queue => queue.enqueue(now, parcel, in_service, dropped));
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        each!(self, queue => queue.dequeue(now, dropped))
    }

    #[inline(never)]
    fn pass(&mut self, now: Instant, parcel: P, dropped: &mut Vec<Dropped<P>>) -> Option<P> {
        each!(self, queue => queue.pass(now, parcel, dropped))
    }

    #[inline(never)]
    fn on_idle(&mut self, since: Instant) {
        each!(self, queue => queue.on_idle(since));
    }

    #[inline(never)]
    fn backlog(&self) -> Backlog {
        each!(self, queue => queue.backlog())
    }

    fn marks(&self) -> u64 {
        each!(self, queue => queue.marks())
    }
}

/// A full-sized IP packet on a link without an MTU of its own: Ethernet's.
const FULL_SIZE: Bytes = Bytes(1_500);

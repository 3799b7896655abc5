//! The queue disciplines that decide, in one list.
//!
//! A new one is a file with its model and parameters, and an entry here.

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::cake::{Cake, CakeConfig};
use crate::choke::{Choke, ChokeConfig};
use crate::codel::{Codel, CodelConfig};
use crate::droptail::DropTailConfig;
use crate::dualpi2::{DualPi2, DualPi2Config};
use crate::ecn_step::{EcnStep, EcnStepConfig};
use crate::error::ConfigError;
use crate::fq::{Fq, FqConfig};
use crate::fq_codel::{FqCodel, FqCodelConfig};
use crate::fq_pie::{FqPie, FqPieConfig};
use crate::parcel::Parcel;
use crate::pie::{Pie, PieConfig};
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::red::{Red, RedConfig};
use crate::service::Service;
use crate::sfq::{Sfq, SfqConfig};

/// The link on which a queue is, as far as disciplines depend on it.
pub(crate) struct Site<'a> {
    service: &'a Service,
    stream: &'a mut dyn FnMut(&'static str) -> Rng,
    /// What each parcel takes beyond its length.
    overhead: Bytes,
    /// A full-sized parcel, overhead included.
    mtu: Bytes,
}

/// Whether parcels leave in the order in which they came.
#[derive(PartialEq)]
enum Leaving {
    InOrder,
    ByFlow,
}

/// Declares the list: what a discipline is, its model and parameters, in which order parcels leave, how
/// the model is made, and what is wrong with the parameters. The first is the plain FIFO, which links
/// have inline.
macro_rules! disciplines {
    ($( $(#[$doc:meta])* $name:ident($config:ty): $leaving:ident,
        new($new_config:ident, $site:ident) $new:expr,
        check($check_config:ident, $service:ident) $check:expr; )+) => {
        /// Which queue, with its parameters.
        ///
        /// ```
        /// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
        /// # use packet::Packet;
        /// use weir_net::{EcnStepConfig, Limit, Link, LinkConfig, QueueConfig, StepThreshold};
        /// use weir_units::{Duration, Ecn, Instant, Rate, stream};
        ///
        /// // DCTCP's queue: marks what arrives behind three packets or more.
        /// let threshold = StepThreshold::Backlog(Limit::Packets(3));
        /// let queue = QueueConfig::EcnStep(EcnStepConfig { limit: Limit::Packets(100), threshold });
        /// let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) };
        /// let mut link = Link::new(&config, |purpose| stream(1, purpose))?;
        /// for _ in 0..5 {
        ///     link.offer(Instant::ZERO, Packet { len: 1_500, ecn: Ecn::Ect0 });
        /// }
        /// let end = Instant::ZERO + Duration::from_millis(5);
        /// let marks = std::iter::from_fn(|| link.poll(end)).filter(|d| d.parcel.ecn == Ecn::Ce).count();
        /// assert_eq!((marks, link.stats(end).marked), (2, 2));
        /// # Ok::<(), weir_net::ConfigError>(())
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum QueueConfig {
            /// A FIFO that drops arrivals when it is full.
            DropTail(DropTailConfig),
            $( $(#[$doc])* $name($config), )+
        }

        /// The disciplines that decide.
        #[derive(Clone, Debug)]
        pub(crate) enum Managed<P> {
            $( $name($name<P>), )+
        }

        impl QueueConfig {
            pub(crate) fn validate(&self, service: &Service) -> Result<(), ConfigError> {
                match self {
                    Self::DropTail(_) => Ok(()),
                    $( Self::$name($check_config) => {
                        let $service = service;
                        $check
                    } )+
                }
            }
        }

        impl<P: Parcel> Managed<P> {
            /// The empty queue of a link; `None` if that is the plain FIFO.
            pub(crate) fn new(config: &QueueConfig, site: &mut Site<'_>) -> Option<Self> {
                match config {
                    QueueConfig::DropTail(_) => None,
                    $( QueueConfig::$name($new_config) => {
                        let ($new_config, $site) = ($new_config.to_owned(), site);
                        Some(Self::$name($new))
                    } )+
                }
            }

            /// Whether all parcels leave in the order in which they came.
            pub(crate) fn is_fifo(&self) -> bool {
                let leaving = match self {
                    $( Self::$name(_) => Leaving::$leaving, )+
                };
                leaving == Leaving::InOrder
            }
        }

        /// The same for whichever discipline it is.
        macro_rules! each {
            ($queue:expr, $model:ident => $what:expr) => {
                match $queue {
                    $( Managed::$name($model) => $what, )+
                }
            };
        }
    };
}

disciplines! {
    /// A FIFO whose standing queue is kept short.
    Codel(CodelConfig): InOrder,
        new(config, site) Codel::new(config, site.overhead, site.mtu),
        check(_config, _service) Ok(());
    /// A queue per flow, each kept short.
    FqCodel(FqCodelConfig): ByFlow,
        new(config, site) FqCodel::new(config, site.overhead, site.mtu, (site.stream)("fq-codel")),
        check(config, _service) config.validate();
    /// A FIFO that signals at random as its average grows.
    Red(RedConfig): InOrder,
        new(config, site) Red::new(config, site.overhead, site.parcel_time(), (site.stream)("red")),
        check(config, _service) config.validate();
    /// A FIFO in which an arrival meets a random parcel of the queue, and both go if they are of one flow.
    Choke(ChokeConfig): InOrder,
        new(config, site) Choke::new(config, site.overhead, site.parcel_time(), (site.stream)("choke")),
        check(config, _service) config.validate();
    /// A FIFO that drops at random to hold a delay.
    Pie(PieConfig): InOrder,
        new(config, site) Pie::new(config, site.overhead, site.mtu, (site.stream)("pie")),
        check(config, _service) config.law.validate();
    /// A queue per flow.
    Fq(FqConfig): ByFlow,
        new(config, site) Fq::new(config, site.overhead, (site.stream)("fq")),
        check(config, _service) config.validate();
    /// A queue per flow, each of which holds a delay.
    FqPie(FqPieConfig): ByFlow,
        new(config, site) FqPie::new(config, site.overhead, site.mtu, (site.stream)("fq-pie")),
        check(config, _service) config.validate();
    /// A queue per flow, fair among hosts.
    Cake(CakeConfig): ByFlow,
        new(config, site) {
            let rate = site.service.rate().filter(|rate| *rate > Rate::ZERO);
            Cake::new(config, rate, site.overhead, site.mtu, (site.stream)("cake"))
        },
        check(config, service) config.validate(service);
    /// A queue for low latency and one for all other traffic.
    DualPi2(DualPi2Config): ByFlow,
        new(config, site) DualPi2::new(config, site.overhead, site.mtu),
        check(config, _service) config.validate();
    /// A FIFO that marks from a threshold on.
    EcnStep(EcnStepConfig): InOrder,
        new(config, site) EcnStep::new(config, site.overhead),
        check(_config, _service) Ok(());
    /// A queue per flow, of which the longest loses packets when the buffer is full.
    Sfq(SfqConfig): ByFlow,
        new(config, site) Sfq::new(config, site.overhead, (site.stream)("sfq")),
        check(config, _service) config.validate();
}

impl<'a> Site<'a> {
    pub(crate) fn new(
        service: &'a Service,
        overhead: Bytes,
        mtu: Option<Bytes>,
        stream: &'a mut dyn FnMut(&'static str) -> Rng,
    ) -> Self {
        Self { service, stream, overhead, mtu: mtu.unwrap_or(FULL_SIZE) + overhead }
    }

    /// What a full-sized parcel takes to be sent, where idle times count for RED: see red.rs, below a
    /// token bucket they do not.
    fn parcel_time(&self) -> Option<Duration> {
        let rate = match self.service {
            Service::Rate(rate) => Some(rate.initial),
            _ => None,
        };
        let rate = rate.filter(|rate| *rate > Rate::ZERO)?;
        Some(rate.transmit_time(self.mtu, &mut 0))
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

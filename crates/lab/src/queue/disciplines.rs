//! The queue disciplines: each one's keys, and the model that they mean.
//!
//! A new one is a line in the list, its section, and a branch of [`Discipline::config`].

use weir_net::{
    CakeConfig, ChokeConfig, Classifier, CodelConfig, CodelLaw, DualPi2Config, EcnStepConfig,
    FqCodelConfig, FqConfig, FqPieConfig, Isolation, MAX_FLOW_QUEUES, MAX_QUANTUM, PieConfig,
    PieLaw, QueueConfig, RedConfig, Scheduler, SfqConfig, StepThreshold,
};
use weir_units::{BufferSize, Bytes, Duration, Ratio};

use super::Place;
use crate::error::{Problem, require};
use crate::keys::{Word, kinds, section, words};
use crate::range::{above, at_least, at_most, between, up_to_a_day};

kinds! {
    /// A queue discipline.
    pub enum Discipline {
        DropTail(DropTail) = "droptail", "a FIFO that drops packets when it is full";
        Codel(Codel) = "codel", "a FIFO that signals while packets wait too long (RFC 8289)";
        FqCodel(FqCodel) = "fq-codel", "a queue per flow, served in turn, each under CoDel (RFC 8290)";
        Red(Red) = "red", "a FIFO that signals at random as its average grows (Floyd, Jacobson 1993)";
        Choke(Red) = "choke", "RED that drops an arrival and a random packet of the queue if both are of one flow (Pan et al. 2000)";
        Pie(Pie) = "pie", "a FIFO that drops at random to hold a target delay (RFC 8033)";
        Fq(Fq) = "fq", "a queue per flow, served in turn, each with a bound (Linux's sch_fq)";
        FqPie(FqPie) = "fq-pie", "a queue per flow, served in turn, each under PIE";
        Cake(Cake) = "cake", "a queue per flow, fair among hosts, each under COBALT (Høiland-Jørgensen et al. 2018)";
        DualPi2(DualPi2) = "dualpi2", "a queue for L4S and a classic one, with coupled signals (RFC 9332)";
        EcnStep(EcnStep) = "ecn-step", "a FIFO that marks from a threshold on, as DCTCP needs (RFC 8257)";
        Sfq(Sfq) = "sfq", "a queue per flow, served in turn; an overflow costs the longest one (McKenney 1990)";
    }
}

section! {
    /// A FIFO.
    pub struct DropTail {
        /// Limit of the queue, the packet being sent included.
        limit: BufferSize = BufferSize::Bdp(1_000),
    }
}

section! {
    /// Controlled delay.
    pub struct Codel {
        /// Limit of the queue, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(1_000),
        /// Target waiting time.
        target: Duration = CodelLaw::DEFAULT.target,
        /// Time for which every packet may wait longer than `target` before the first signal.
        interval: Duration [above(Duration::ZERO)] = CodelLaw::DEFAULT.interval,
        /// Mark packets that are capable of ECN in place of dropping them.
        ecn: bool = false,
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
    }
}

section! {
    /// Flow queues under CoDel.
    pub struct FqCodel {
        /// Limit of all queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(10_240),
        /// Target waiting time.
        target: Duration = CodelLaw::DEFAULT.target,
        /// Time for which every packet may wait longer than `target` before the first signal.
        interval: Duration [above(Duration::ZERO)] = CodelLaw::DEFAULT.interval,
        /// Mark packets that are capable of ECN in place of dropping them.
        ecn: bool = true,
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
        /// Number of queues into which flows are hashed.
        flows: u32 [between(1, MAX_FLOW_QUEUES)] = FqCodelConfig::DEFAULT.flows,
        /// Bytes that a queue may send per turn.
        quantum: Bytes [above(Bytes::ZERO).to(MAX_QUANTUM)] = FqCodelConfig::DEFAULT.quantum,
    }
}

section! {
    /// Random early detection, also with CHOKe's comparison.
    pub struct Red {
        /// Limit of the queue, the packet being sent included.
        limit: BufferSize = BufferSize::Bdp(4_000),
        /// Mark packets that are capable of ECN in place of dropping them.
        ecn: bool = false,
        /// Average backlog below which there are no signals; by default a third of `max`.
        min: Option<BufferSize> = None,
        /// Average backlog from which every packet is signalled; by default a quarter of `limit`.
        max: Option<BufferSize> = None,
        /// Probability of a signal when the average reaches `max`.
        probability: Ratio [above(Ratio::ZERO)] = Ratio::from_percent(2),
        /// Weight of each packet in the average; by default that of `burst`.
        weight: Option<Ratio> [above(Ratio::ZERO)] = None,
        /// The weight as a number of packets: those that an empty queue accepts before its average
        /// reaches `min`. Default: `(2 min + max) / 3`.
        burst: Option<u32> = None,
        /// Let the probability rise to 1 between `max` and twice `max`.
        gentle: bool = false,
    }
}

section! {
    /// Proportional integral controller enhanced.
    pub struct Pie {
        /// Limit of the queue, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(1_000),
        /// Target waiting time.
        target: Duration = PieLaw::DEFAULT.target,
        /// Mark packets that are capable of ECN in place of dropping them.
        ecn: bool = false,
        /// Time between updates of the probability.
        update: Duration [at_least(PieLaw::MIN_UPDATE)] = PieLaw::DEFAULT.update,
        /// Gain on the waiting time beyond `target`, in sixteenths per second, as in `tc`.
        alpha: u32 [at_most(PieLaw::MAX_WEIGHT)] = PieLaw::DEFAULT.alpha,
        /// Gain on changes of the waiting time, in the same unit.
        beta: u32 [at_most(PieLaw::MAX_WEIGHT)] = PieLaw::DEFAULT.beta,
    }
}

section! {
    /// Fair queue.
    pub struct Fq {
        /// Limit of all queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(10_000),
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
        /// Number of queues into which flows are hashed.
        flows: u32 [between(1, MAX_FLOW_QUEUES)] = FqConfig::DEFAULT.flows,
        /// Bytes that a queue may send per turn.
        quantum: Bytes [above(Bytes::ZERO).to(MAX_QUANTUM)] = FqConfig::DEFAULT.quantum,
        /// Bytes that a flow may send in its first turn.
        initial_quantum: Bytes [at_most(MAX_QUANTUM)] = FqConfig::DEFAULT.initial_quantum,
        /// Pause after which a flow has a whole quantum again.
        refill_delay: Duration = FqConfig::DEFAULT.refill_delay,
        /// Maximum number of packets that wait in one flow's queue.
        flow_limit: u32 [at_least(1).because("or nothing gets through")] = FqConfig::DEFAULT.flow_limit,
    }
}

section! {
    /// Flow queues under PIE.
    pub struct FqPie {
        /// Limit of all queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(10_240),
        /// Target waiting time.
        target: Duration = PieLaw::DEFAULT.target,
        /// Mark packets that are capable of ECN in place of dropping them.
        ecn: bool = false,
        /// Number of queues into which flows are hashed.
        flows: u32 [between(1, MAX_FLOW_QUEUES)] = FqPieConfig::DEFAULT.flows,
        /// Bytes that a queue may send per turn.
        quantum: Bytes [above(Bytes::ZERO).to(MAX_QUANTUM)] = FqPieConfig::DEFAULT.quantum,
        /// Time between updates of the probability.
        update: Duration [at_least(PieLaw::MIN_UPDATE)] = PieLaw::DEFAULT.update,
        /// Gain on the waiting time beyond `target`, in sixteenths per second, as in `tc`.
        alpha: u32 [at_most(PieLaw::MAX_WEIGHT)] = PieLaw::DEFAULT.alpha,
        /// Gain on changes of the waiting time, in the same unit.
        beta: u32 [at_most(PieLaw::MAX_WEIGHT)] = PieLaw::DEFAULT.beta,
    }
}

section! {
    /// Common applications kept enhanced.
    pub struct Cake {
        /// Limit of all queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Bytes(Bytes(4 << 20)),
        /// Target waiting time.
        target: Duration = CodelLaw::DEFAULT.target,
        /// Time for which every packet may wait longer than `target` before the first signal.
        interval: Duration [above(Duration::ZERO)] = CodelLaw::DEFAULT.interval,
        /// What has a queue each. With `dual-src-host`, `dual-dst-host` and `triple-isolate` hosts
        /// share the link, and flows share their host's part.
        isolation: Word<Isolation> = Word(Isolation::TripleIsolate),
        /// Use CAKE's own shaper, as `bandwidth` in Linux: a packet leaves immediately, and the next one after
        /// the first one's transmission time.
        shaper: bool = false,
    }
}

section! {
    /// Dual queue, coupled.
    pub struct DualPi2 {
        /// Limit of both queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(10_000),
        /// Target waiting time of the classic queue.
        target: Duration [between(DualPi2Config::MIN_TIME, DualPi2Config::MAX_TIME)]
            = DualPi2Config::DEFAULT.target,
        /// Longest round trip for which the controller is stable.
        rtt_max: Duration [between(DualPi2Config::MIN_TIME, DualPi2Config::MAX_TIME)]
            = DualPi2Config::DEFAULT.rtt_max,
        /// Factor between the marking probability of L4S packets and the root of the classic
        /// probability.
        coupling: u32 [between(1, DualPi2Config::MAX_COUPLING)] = DualPi2Config::DEFAULT.coupling,
        /// Waiting time at which half of the L4S packets are marked.
        l4s_threshold: Duration [up_to_a_day()] = DualPi2Config::DEFAULT.threshold,
        /// Range of waiting times around it in which the probability goes from 0 to 1; `0s` is a step.
        l4s_ramp: Duration = DualPi2Config::DEFAULT.ramp,
        /// Packets that use the L4S queue: `ect1` (and CE), or `any-ect`.
        l4s: Word<Classifier> = Word(Classifier::L4s),
        /// Share of the link for the classic queue while both wait; by default 10 %.
        classic_share: Option<Ratio> = None,
        /// Schedule by age instead of by share: the time by which L4S packets count as older.
        shift: Option<Duration> [up_to_a_day()] = None,
    }
}

section! {
    /// A marking threshold.
    pub struct EcnStep {
        /// Limit of the queue, the packet being sent included.
        limit: BufferSize = BufferSize::Bdp(1_000),
        /// Backlog, or waiting time, from which every packet that is capable of ECN is marked.
        threshold: BufferSize = BufferSize::Bdp(170),
    }
}

section! {
    /// Stochastic fairness queueing.
    pub struct Sfq {
        /// Limit of all queues together, the packet being sent included.
        limit: BufferSize = BufferSize::Packets(127),
        /// Number of queues into which flows are hashed.
        flows: u32 [between(1, MAX_FLOW_QUEUES)] = FqCodelConfig::DEFAULT.flows,
        /// Bytes that a queue may send per turn.
        quantum: Bytes [above(Bytes::ZERO).to(MAX_QUANTUM)] = FqCodelConfig::DEFAULT.quantum,
        /// Maximum number of packets that wait in one flow's queue.
        flow_limit: u32 [at_least(1).because("or nothing gets through")] = SfqConfig::DEFAULT.depth,
        /// On overflow drop the oldest packet of a queue instead of the newest.
        head_drop: bool = false,
    }
}

words! {
    Isolation {
        FlowBlind = "flow-blind",
        SrcHost = "src-host",
        DstHost = "dst-host",
        Hosts = "hosts",
        Flows = "flows",
        DualSrcHost = "dual-src-host",
        DualDstHost = "dual-dst-host",
        TripleIsolate = "triple-isolate",
    }
}

words! {
    Classifier { L4s = "ect1", AnyEct = "any-ect" }
}

impl Discipline {
    /// The model on a link.
    pub(super) fn config(&self, place: Place) -> QueueConfig {
        let limit = |size| place.resolve(size);
        match self {
            Self::DropTail(queue) => QueueConfig::DropTail(limit(queue.limit).into()),
            Self::Codel(queue) => {
                let &Codel { target, interval, ecn, ce_threshold, .. } = queue;
                let law = CodelLaw { target, interval, ecn, ce_threshold };
                QueueConfig::Codel(CodelConfig { limit: limit(queue.limit), law })
            }
            Self::FqCodel(queue) => {
                let &FqCodel { target, interval, ecn, ce_threshold, flows, quantum, .. } = queue;
                let law = CodelLaw { target, interval, ecn, ce_threshold };
                let limit = limit(queue.limit);
                QueueConfig::FqCodel(FqCodelConfig { limit, flows, quantum, law })
            }
            Self::Red(queue) => QueueConfig::Red(queue.config(place)),
            Self::Choke(queue) => QueueConfig::Choke(ChokeConfig(queue.config(place))),
            Self::Pie(queue) => {
                let &Pie { target, ecn, update, alpha, beta, .. } = queue;
                let law = PieLaw { target, update, alpha, beta, ecn };
                QueueConfig::Pie(PieConfig { limit: limit(queue.limit), law })
            }
            Self::Fq(queue) => QueueConfig::Fq(FqConfig {
                limit: limit(queue.limit),
                flow_limit: queue.flow_limit,
                flows: queue.flows,
                quantum: queue.quantum,
                initial_quantum: queue.initial_quantum,
                refill_delay: queue.refill_delay,
                ce_threshold: queue.ce_threshold,
            }),
            Self::FqPie(queue) => {
                let &FqPie { target, ecn, flows, quantum, update, alpha, beta, .. } = queue;
                let law = PieLaw { target, update, alpha, beta, ecn };
                let limit = limit(queue.limit);
                QueueConfig::FqPie(FqPieConfig { limit, flows, quantum, law })
            }
            Self::Cake(queue) => QueueConfig::Cake(CakeConfig {
                limit: limit(queue.limit),
                isolation: queue.isolation.0,
                target: queue.target,
                interval: queue.interval,
                shapes: queue.shaper,
                ..CakeConfig::usual()
            }),
            Self::DualPi2(queue) => QueueConfig::DualPi2(queue.config(place)),
            Self::EcnStep(queue) => {
                let threshold = match queue.threshold {
                    BufferSize::Time(time) => StepThreshold::Sojourn(time),
                    size => StepThreshold::Backlog(limit(size)),
                };
                QueueConfig::EcnStep(EcnStepConfig { limit: limit(queue.limit), threshold })
            }
            Self::Sfq(queue) => QueueConfig::Sfq(SfqConfig {
                limit: limit(queue.limit),
                depth: queue.flow_limit,
                buckets: queue.flows,
                quantum: queue.quantum,
                head_drop: queue.head_drop,
            }),
        }
    }

    /// Fills in the defaults that depend on other keys. `tc` has the same for RED.
    pub(crate) fn complete(&mut self) {
        match self {
            Self::Red(queue) | Self::Choke(queue) => {
                let max = *queue.max.get_or_insert(queue.limit.mul_ratio(1, 4));
                queue.min.get_or_insert(max.mul_ratio(1, 3));
            }
            Self::DualPi2(queue) if queue.shift.is_none() => {
                queue.classic_share.get_or_insert(USUAL_SHARE);
            }
            _ => {}
        }
    }

    /// Its sizes with their keys, its limit first. A plain FIFO is written as its limit.
    pub(crate) fn sizes(&self, section: &str) -> Vec<(String, BufferSize)> {
        let key = |name: &str| format!("{section}.{name}");
        let limit = match self {
            Self::DropTail(queue) => return vec![(section.to_owned(), queue.limit)],
            Self::Codel(queue) => queue.limit,
            Self::FqCodel(queue) => queue.limit,
            Self::Red(queue) | Self::Choke(queue) => queue.limit,
            Self::Pie(queue) => queue.limit,
            Self::Fq(queue) => queue.limit,
            Self::FqPie(queue) => queue.limit,
            Self::Cake(queue) => queue.limit,
            Self::DualPi2(queue) => queue.limit,
            Self::EcnStep(queue) => queue.limit,
            Self::Sfq(queue) => queue.limit,
        };
        let others = match self {
            Self::Red(queue) | Self::Choke(queue) => vec![("min", queue.min), ("max", queue.max)],
            Self::EcnStep(queue) => vec![("threshold", Some(queue.threshold))],
            _ => Vec::new(),
        };
        let others = others.into_iter().filter_map(|(name, size)| Some((key(name), size?)));
        std::iter::once((key("limit"), limit)).chain(others).collect()
    }

    /// What its keys demand of each other; the model checks the rest.
    pub(crate) fn check(&self, section: &str) -> Result<(), Problem> {
        let key = |name: &str| format!("{section}.{name}");
        let [(name, limit), ..] = &self.sizes(section)[..] else { return Ok(()) };
        let allowed = "at least one packet, as in 1p, 64kb, 20ms or 0.5bdp";
        require(!limit.is_zero(), name.clone(), limit, allowed)?;
        match self {
            Self::Red(Red { weight, burst: Some(burst), .. })
            | Self::Choke(Red { weight, burst: Some(burst), .. }) => {
                let allowed = "weight is set as well; keep one";
                require(weight.is_none(), key("burst"), burst, allowed)
            }
            Self::DualPi2(DualPi2 { shift: Some(shift), classic_share, .. }) => {
                let allowed = "classic_share is set as well; keep one";
                require(classic_share.is_none(), key("shift"), shift, allowed)
            }
            _ => Ok(()),
        }
    }
}

impl Red {
    fn config(&self, place: Place) -> RedConfig {
        let limit = place.resolve(self.limit);
        let min = self.min.map_or(limit, |size| place.resolve(size));
        let max = self.max.map_or(limit, |size| place.resolve(size));
        let of_burst = || RedConfig::weight_for_burst(min, max, place.packet, self.burst);
        RedConfig {
            limit,
            min,
            max,
            probability: self.probability,
            weight: self.weight.or_else(of_burst).unwrap_or_default(),
            gentle: self.gentle,
            ecn: self.ecn,
        }
    }
}

impl DualPi2 {
    fn config(&self, place: Place) -> DualPi2Config {
        let weighted = Scheduler::Weighted(self.classic_share.unwrap_or(USUAL_SHARE));
        DualPi2Config {
            limit: place.resolve(self.limit),
            target: self.target,
            rtt_max: self.rtt_max,
            coupling: self.coupling,
            threshold: self.l4s_threshold,
            ramp: self.l4s_ramp,
            classifier: self.l4s.0,
            scheduler: self.shift.map_or(weighted, Scheduler::TimeShifted),
        }
    }
}

/// Linux's part for the classic queue of `dualpi2`.
const USUAL_SHARE: Ratio = Ratio::from_percent(10);

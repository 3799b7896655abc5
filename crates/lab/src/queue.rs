//! Key `queue`: what happens to packets that have to wait.

mod kind;

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_net::{
    CakeConfig, CodelConfig, CodelLaw, DualPi2Config, EcnStepConfig, FqCodelConfig, FqConfig,
    FqPieConfig, Limit, PieConfig, PieLaw, QueueConfig, RedConfig, Scheduler, SfqConfig,
    StepThreshold,
};
use weir_units::{BufferSize, Bytes, Duration, Rate, Ratio};

use crate::keys::{form, keep, section};

pub(crate) use kind::QueueKind;
use kind::{ClassifierForm, IsolationForm};

section! {
    /// A queue discipline. Which keys apply depends on `kind`, see [`QueueKind::keys`].
    pub struct Discipline {
        /// Discipline.
        kind: QueueKind = QueueKind::DropTail,
        /// Limit of the queue, the packet being sent included. Default: `1bdp`; `codel` and `pie`
        /// `1000p`; `fq-codel` and `fq-pie` `10240p`; `fq` and `dualpi2` `10000p`; `cake` `4mib`; `red`
        /// `4bdp`; `sfq` `127p`.
        limit: Option<BufferSize> = None,
        /// Target waiting time; by default `5ms`, of `pie`, `fq-pie` and `dualpi2` `15ms`.
        target: Option<Duration> = None,
        /// Time for which every packet may wait longer than `target` before the first signal.
        interval: Duration = CodelLaw::DEFAULT.interval,
        /// Mark packets that are capable of ECN in place of dropping them; by default on for `fq-codel`
        /// and off for the others.
        ecn: Option<bool> = None,
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
        /// Number of queues into which flows are hashed.
        flows: u32 = FqCodelConfig::DEFAULT.flows,
        /// Bytes that a queue may send per turn; by default `1514b`, of `fq` `3028b`.
        quantum: Option<Bytes> = None,
        /// Bytes that a flow may send in its first turn.
        initial_quantum: Bytes = FqConfig::DEFAULT.initial_quantum,
        /// Pause after which a flow has a whole quantum again.
        refill_delay: Duration = FqConfig::DEFAULT.refill_delay,
        /// Maximum number of packets that wait in one flow's queue; by default 100, of `sfq` 127.
        flow_limit: Option<u32> = None,
        /// On overflow drop the oldest packet of a queue instead of the newest.
        head_drop: bool = false,
        /// Time between updates of the probability.
        update: Duration = PieLaw::DEFAULT.update,
        /// Gain on the waiting time beyond `target`, in sixteenths per second, as in `tc`.
        alpha: u32 = PieLaw::DEFAULT.alpha,
        /// Gain on changes of the waiting time, in the same unit.
        beta: u32 = PieLaw::DEFAULT.beta,
        /// What has a queue each. With `dual-src-host`, `dual-dst-host` and `triple-isolate` hosts
        /// share the link, and flows share their host's part.
        isolation: IsolationForm = IsolationForm::TripleIsolate,
        /// Use CAKE's own shaper, as `bandwidth` in Linux: a packet leaves immediately, and the next one after
        /// the first one's transmission time.
        shaper: bool = false,
        /// Longest round trip for which the controller is stable.
        rtt_max: Duration = DualPi2Config::DEFAULT.rtt_max,
        /// Factor between the marking probability of L4S packets and the root of the classic
        /// probability.
        coupling: u32 = DualPi2Config::DEFAULT.coupling,
        /// Waiting time at which half of the L4S packets are marked.
        l4s_threshold: Duration = DualPi2Config::DEFAULT.threshold,
        /// Range of waiting times around it in which the probability goes from 0 to 1; `0s` is a step.
        l4s_ramp: Duration = DualPi2Config::DEFAULT.ramp,
        /// Packets that use the L4S queue: `ect1` (and CE), or `any-ect`.
        l4s: ClassifierForm = ClassifierForm::Ect1,
        /// Share of the link for the classic queue while both wait; by default 10 %.
        classic_share: Option<Ratio> = None,
        /// Schedule by age instead of by share: the time by which L4S packets count as older.
        shift: Option<Duration> = None,
        /// Average backlog below which there are no signals; by default a third of `max`.
        min: Option<BufferSize> = None,
        /// Average backlog from which every packet is signalled; by default a quarter of `limit`.
        max: Option<BufferSize> = None,
        /// Probability of a signal when the average reaches `max`.
        probability: Ratio = Ratio::from_percent(2),
        /// Weight of each packet in the average; by default that of `burst`.
        weight: Option<Ratio> = None,
        /// The weight as a number of packets: those that an empty queue accepts before its average
        /// reaches `min`. Default: `(2 min + max) / 3`.
        burst: Option<u32> = None,
        /// Let the probability rise to 1 between `max` and twice `max`.
        gentle: bool = false,
        /// Backlog, or waiting time, from which every packet that is capable of ECN is marked.
        threshold: BufferSize = BufferSize::Bdp(170),
    }
}

/// A discipline as a scenario writes it: a size means drop-tail, everything else is a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue(pub Discipline);

impl Queue {
    /// A drop-tail queue of this bound.
    pub fn drop_tail(limit: BufferSize) -> Self {
        Self(Discipline { limit: Some(limit), ..Discipline::default() })
    }

    /// Fills in the defaults that depend on other keys. `tc` has the same for RED.
    pub(crate) fn complete(&mut self) {
        let Self(queue) = self;
        let limit = *queue.limit.get_or_insert(queue.kind.limit());
        queue.target.get_or_insert(queue.kind.target());
        queue.quantum.get_or_insert(queue.kind.quantum());
        queue.flow_limit.get_or_insert(queue.kind.flow_limit());
        if queue.shift.is_none() {
            queue.classic_share.get_or_insert(USUAL_SHARE);
        }
        queue.ecn.get_or_insert(queue.kind == QueueKind::FqCodel);
        let max = *queue.max.get_or_insert(limit.mul_ratio(1, 4));
        queue.min.get_or_insert(max.mul_ratio(1, 3));
    }

    /// The bound, where the queue is drop-tail.
    pub(crate) fn as_size(&self) -> Option<BufferSize> {
        self.0.limit.filter(|_| self.0.kind == QueueKind::DropTail)
    }

    /// The queue that this means on a link of `rate` whose flows see `rtt` without queues, and on which
    /// a full packet has `packet` bytes.
    pub(crate) fn config(&self, rate: Rate, rtt: Duration, packet: Bytes) -> QueueConfig {
        let Self(queue) = self;
        let resolve = |size| Limit::resolve(size, rate, rtt);
        let limit = resolve(queue.limit.unwrap_or(queue.kind.limit()));
        match queue.kind {
            QueueKind::DropTail => QueueConfig::DropTail(limit.into()),
            QueueKind::Codel => QueueConfig::Codel(CodelConfig { limit, law: queue.law() }),
            QueueKind::FqCodel => QueueConfig::FqCodel(FqCodelConfig {
                limit,
                flows: queue.flows,
                quantum: queue.quantum(),
                law: queue.law(),
            }),
            QueueKind::Pie => QueueConfig::Pie(PieConfig { limit, law: queue.pie() }),
            QueueKind::Fq => QueueConfig::Fq(FqConfig {
                limit,
                flow_limit: queue.flow_limit(),
                flows: queue.flows,
                quantum: queue.quantum(),
                initial_quantum: queue.initial_quantum,
                refill_delay: queue.refill_delay,
                ce_threshold: queue.ce_threshold,
            }),
            QueueKind::FqPie => QueueConfig::FqPie(FqPieConfig {
                limit,
                flows: queue.flows,
                quantum: queue.quantum(),
                law: queue.pie(),
            }),
            QueueKind::Cake => QueueConfig::Cake(CakeConfig {
                limit,
                isolation: queue.isolation.into(),
                target: queue.target(),
                interval: queue.interval,
                shapes: queue.shaper,
                ..CakeConfig::usual()
            }),
            QueueKind::DualPi2 => QueueConfig::DualPi2(queue.dualpi2(limit)),
            QueueKind::Red => {
                let min = queue.min.map_or(limit, resolve);
                let max = queue.max.map_or(limit, resolve);
                let of_burst = || RedConfig::weight_for_burst(min, max, packet, queue.burst);
                QueueConfig::Red(RedConfig {
                    limit,
                    min,
                    max,
                    probability: queue.probability,
                    weight: queue.weight.or_else(of_burst).unwrap_or_default(),
                    gentle: queue.gentle,
                    ecn: queue.ecn.unwrap_or_default(),
                })
            }
            QueueKind::Sfq => QueueConfig::Sfq(SfqConfig {
                limit,
                depth: queue.flow_limit(),
                buckets: queue.flows,
                quantum: queue.quantum(),
                head_drop: queue.head_drop,
            }),
            QueueKind::EcnStep => {
                let threshold = match queue.threshold {
                    BufferSize::Time(time) => StepThreshold::Sojourn(time),
                    size => StepThreshold::Backlog(resolve(size)),
                };
                QueueConfig::EcnStep(EcnStepConfig { limit, threshold })
            }
        }
    }
}

impl Discipline {
    fn target(&self) -> Duration {
        self.target.unwrap_or(self.kind.target())
    }

    fn quantum(&self) -> Bytes {
        self.quantum.unwrap_or(self.kind.quantum())
    }

    fn flow_limit(&self) -> u32 {
        self.flow_limit.unwrap_or(self.kind.flow_limit())
    }

    fn law(&self) -> CodelLaw {
        CodelLaw {
            target: self.target(),
            interval: self.interval,
            ecn: self.ecn.unwrap_or_default(),
            ce_threshold: self.ce_threshold,
        }
    }

    fn pie(&self) -> PieLaw {
        PieLaw {
            target: self.target(),
            update: self.update,
            alpha: self.alpha,
            beta: self.beta,
            ecn: self.ecn.unwrap_or_default(),
        }
    }

    fn dualpi2(&self, limit: Limit) -> DualPi2Config {
        let weighted = Scheduler::Weighted(self.classic_share.unwrap_or(USUAL_SHARE));
        DualPi2Config {
            limit,
            target: self.target(),
            rtt_max: self.rtt_max,
            coupling: self.coupling,
            threshold: self.l4s_threshold,
            ramp: self.l4s_ramp,
            classifier: self.l4s.into(),
            scheduler: self.shift.map_or(weighted, Scheduler::TimeShifted),
        }
    }
}

/// Linux's part for the classic queue of `dualpi2`.
const USUAL_SHARE: Ratio = Ratio::from_percent(10);

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(size) = self.as_size() {
            return size.serialize(serializer);
        }
        let mut table = serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?;
        keep(&mut table, self.0.kind.keys());
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeOrTable)
    }
}

struct SizeOrTable;

impl<'de> Visitor<'de> for SizeOrTable {
    type Value = Queue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("write a size, as in 64p or 1bdp, or a table, as in { kind = \"codel\" }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Queue, E> {
        text.parse().map(Queue::drop_tail).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Queue, A::Error> {
        Discipline::deserialize(MapAccessDeserializer::new(map)).map(Queue)
    }
}

form! {
    Queue => "queue size or table",
}

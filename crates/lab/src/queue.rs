//! Key `queue`: what happens to packets that have to wait.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_net::{
    CodelConfig, CodelLaw, EcnStepConfig, FqCodelConfig, Limit, QueueConfig, RedConfig,
    StepThreshold,
};
use weir_units::{BufferSize, Bytes, Duration, Rate, Ratio};

use crate::keys::{form, keep, section};

section! {
    /// A queue discipline. Which keys apply depends on `kind`, see [`QueueKind::keys`].
    pub struct Discipline {
        /// Discipline.
        kind: QueueKind = QueueKind::DropTail,
        /// Bound of the queue, the packet being sent included; by default `1bdp`, of `codel` `1000p`, of
        /// `fq-codel` `10240p`, of `red` `4bdp`.
        limit: Option<BufferSize> = None,
        /// Waiting time that is good enough.
        target: Duration = CodelLaw::DEFAULT.target,
        /// How long every packet may wait longer than `target` before the first signal.
        interval: Duration = CodelLaw::DEFAULT.interval,
        /// Mark packets that are capable of ECN in place of dropping them; by default on for `fq-codel`
        /// and off for the others.
        ecn: Option<bool> = None,
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
        /// Number of queues among which flows are spread.
        flows: u32 = FqCodelConfig::DEFAULT.flows,
        /// Bytes that a queue may send in its turn.
        quantum: Bytes = FqCodelConfig::DEFAULT.quantum,
        /// Average backlog below which nothing is signalled; by default a third of `max`.
        min: Option<BufferSize> = None,
        /// Average backlog from which everything is signalled; by default a quarter of `limit`.
        max: Option<BufferSize> = None,
        /// Probability of a signal as the average comes to `max`.
        probability: Ratio = Ratio::from_percent(2),
        /// How much each packet moves the average; by default that of `burst`.
        weight: Option<Ratio> = None,
        /// The same as the packets that an empty queue takes in before its average comes to `min`; by
        /// default `(2 min + max) / 3`.
        burst: Option<u32> = None,
        /// Let the probability rise to 1 at twice `max` before everything is signalled.
        gentle: bool = false,
        /// Backlog, or waiting time, from which every packet that is capable of ECN is marked.
        threshold: BufferSize = BufferSize::Bdp(170),
    }
}

/// Disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// A FIFO that drops what finds no room.
    #[serde(rename = "droptail")]
    DropTail,
    /// CoDel.
    Codel,
    /// FQ-CoDel.
    FqCodel,
    /// RED.
    Red,
    /// Marks from a threshold on.
    EcnStep,
}

/// A discipline as a scenario writes it: a size means drop-tail, everything else is a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue(pub Discipline);

impl QueueKind {
    /// Every kind with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(Self, &str, &str)] = &[
        (Self::DropTail, "droptail", "a FIFO that drops what finds no room"),
        (Self::Codel, "codel", "a FIFO that signals while packets wait too long (RFC 8289)"),
        (
            Self::FqCodel,
            "fq-codel",
            "a queue per flow, served in turn, each under CoDel (RFC 8290)",
        ),
        (
            Self::Red,
            "red",
            "a FIFO that signals by luck as its average grows (Floyd, Jacobson 1993)",
        ),
        (
            Self::EcnStep,
            "ecn-step",
            "a FIFO that marks from a threshold on, as DCTCP needs (RFC 8257)",
        ),
    ];

    /// The keys of a queue that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DropTail => &["kind", "limit"],
            Self::Codel => &["kind", "limit", "target", "interval", "ecn", "ce_threshold"],
            Self::FqCodel => {
                &["kind", "limit", "flows", "quantum", "target", "interval", "ecn", "ce_threshold"]
            }
            Self::Red => {
                &["kind", "limit", "min", "max", "probability", "weight", "burst", "gentle", "ecn"]
            }
            Self::EcnStep => &["kind", "limit", "threshold"],
        }
    }

    /// How it is written.
    pub(crate) fn name(self) -> &'static str {
        Self::CATALOGUE.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    fn limit(self) -> BufferSize {
        match self {
            Self::DropTail | Self::EcnStep => BufferSize::Bdp(1_000),
            Self::Codel => BufferSize::Packets(1_000),
            Self::FqCodel => BufferSize::Packets(10_240),
            Self::Red => BufferSize::Bdp(4_000),
        }
    }
}

impl Queue {
    /// A drop-tail queue of this bound.
    pub fn drop_tail(limit: BufferSize) -> Self {
        Self(Discipline { limit: Some(limit), ..Discipline::default() })
    }

    /// Fills in the defaults that depend on other keys. `tc` has the same for RED.
    pub(crate) fn complete(&mut self) {
        let Self(queue) = self;
        let limit = *queue.limit.get_or_insert(queue.kind.limit());
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
            QueueKind::FqCodel => {
                let Discipline { flows, quantum, .. } = *queue;
                QueueConfig::FqCodel(FqCodelConfig { limit, flows, quantum, law: queue.law() })
            }
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
    fn law(&self) -> CodelLaw {
        CodelLaw {
            target: self.target,
            interval: self.interval,
            ecn: self.ecn.unwrap_or_default(),
            ce_threshold: self.ce_threshold,
        }
    }
}

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
    QueueKind => "`droptail`, `codel`, `fq-codel`, `red` or `ecn-step`",
}

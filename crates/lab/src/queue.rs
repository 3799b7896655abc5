//! Key `queue`: what happens to packets that have to wait.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_net::{CodelConfig, CodelLaw, Limit, QueueConfig};
use weir_units::{BufferSize, Duration, Rate};

use crate::keys::{form, keep, section};

section! {
    /// A queue discipline. Which keys apply depends on `kind`, see [`QueueKind::keys`].
    pub struct Discipline {
        /// Discipline.
        kind: QueueKind = QueueKind::DropTail,
        /// Bound of the queue, the packet being sent included; by default `1bdp` (`codel` `1000p`).
        limit: Option<BufferSize> = None,
        /// Waiting time that is good enough.
        target: Duration = CodelLaw::DEFAULT.target,
        /// How long every packet may wait longer than `target` before the first signal.
        interval: Duration = CodelLaw::DEFAULT.interval,
        /// Mark packets that are capable of ECN in place of dropping them; by default off.
        ecn: Option<bool> = None,
        /// Waiting time above which every packet that is capable of ECN is marked.
        ce_threshold: Option<Duration> = None,
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
}

/// A discipline as a scenario writes it: a size means drop-tail, everything else is a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue(pub Discipline);

impl QueueKind {
    /// Every kind with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(Self, &str, &str)] = &[
        (Self::DropTail, "droptail", "a FIFO that drops what finds no room"),
        (Self::Codel, "codel", "a FIFO that signals while packets wait too long (RFC 8289)"),
    ];

    /// The keys of a queue that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::DropTail => &["kind", "limit"],
            Self::Codel => &["kind", "limit", "target", "interval", "ecn", "ce_threshold"],
        }
    }

    /// How it is written.
    pub(crate) fn name(self) -> &'static str {
        Self::CATALOGUE.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    fn limit(self) -> BufferSize {
        match self {
            Self::DropTail => BufferSize::Bdp(1_000),
            Self::Codel => BufferSize::Packets(1_000),
        }
    }
}

impl Queue {
    /// A drop-tail queue of this bound.
    pub fn drop_tail(limit: BufferSize) -> Self {
        Self(Discipline { limit: Some(limit), ..Discipline::default() })
    }

    /// Fills in the defaults that depend on the kind.
    pub(crate) fn complete(&mut self) {
        let Self(queue) = self;
        queue.limit.get_or_insert(queue.kind.limit());
        queue.ecn.get_or_insert(false);
    }

    /// The bound, where the queue is drop-tail.
    pub(crate) fn as_size(&self) -> Option<BufferSize> {
        self.0.limit.filter(|_| self.0.kind == QueueKind::DropTail)
    }

    /// The queue that this means on a link of `rate` whose flows see `rtt` without queues.
    pub(crate) fn config(&self, rate: Rate, rtt: Duration) -> QueueConfig {
        let Self(queue) = self;
        let limit = Limit::resolve(queue.limit.unwrap_or(queue.kind.limit()), rate, rtt);
        match queue.kind {
            QueueKind::DropTail => QueueConfig::DropTail(limit.into()),
            QueueKind::Codel => QueueConfig::Codel(CodelConfig { limit, law: queue.law() }),
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
    QueueKind => "`droptail` or `codel`",
}

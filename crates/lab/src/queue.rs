//! Key `queue`: what happens to packets that have to wait.

mod disciplines;

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_net::{Limit, QueueConfig};
use weir_units::{BufferSize, Bytes, Duration, Rate};

use crate::keys::form;

pub(crate) use disciplines::Discipline;
use disciplines::DropTail;

/// A discipline as a scenario writes it: a size means drop-tail, everything else is a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue(pub Discipline);

/// The link on which a queue is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The link's rate; its mean if it has no constant one.
    pub(crate) rate: Rate,
    /// What its flows see without queues.
    pub(crate) rtt: Duration,
    /// Size of a full packet.
    pub(crate) packet: Bytes,
}

impl Queue {
    /// A drop-tail queue of this bound.
    pub fn drop_tail(limit: BufferSize) -> Self {
        Self(Discipline::DropTail(DropTail { limit }))
    }

    /// The bound, where the queue is drop-tail.
    pub(crate) fn as_size(&self) -> Option<BufferSize> {
        match &self.0 {
            Discipline::DropTail(queue) => Some(queue.limit),
            _ => None,
        }
    }

    /// The queue that this means on a link.
    pub(crate) fn config(&self, place: Place) -> QueueConfig {
        self.0.config(place)
    }
}

/// The queue that is written down, or one without bound.
pub(crate) fn config(
    written: Option<&Queue>,
    rate: Rate,
    rtt: Duration,
    packet: Bytes,
) -> QueueConfig {
    let unbounded = || QueueConfig::DropTail(Limit::Infinite.into());
    written.map_or_else(unbounded, |queue| queue.config(Place { rate, rtt, packet }))
}

impl Place {
    fn resolve(self, size: BufferSize) -> Limit {
        Limit::resolve(size, self.rate, self.rtt)
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_size() {
            Some(size) => size.serialize(serializer),
            None => self.0.serialize(serializer),
        }
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

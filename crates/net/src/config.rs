//! What a link is made of.

use weir_units::{Bytes, Duration, Rate};

use crate::droptail::{DropTailConfig, Limit};
use crate::schedule::Schedule;

/// A link's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How parcels are sent, one after the other.
    pub service: Service,
    /// The one-way propagation delay. A parcel that meets a shortened delay does not overtake.
    pub delay: Schedule<Duration>,
    /// The longest parcel that passes; longer ones are dropped.
    pub mtu: Option<Bytes>,
    /// What happens to parcels that have to wait.
    pub queue: QueueConfig,
}

/// How a link sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// In no time: the link is only a delay.
    Infinite,
    /// At a rate. Zero is a blackout; a parcel half sent then waits for its rest.
    Rate(Schedule<Rate>),
    /// A fixed time per parcel whatever its length, by direction: a relay that sleeps. When both
    /// directions use the same link, they share its server and its queue.
    PerPacket {
        /// The time for a parcel towards the flow's receiver.
        forward: Duration,
        /// The time for a parcel that travels back.
        reverse: Duration,
    },
}

/// Which queue, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// A FIFO that drops what finds no room.
    DropTail(DropTailConfig),
}

/// A link that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
pub struct ConfigError {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl LinkConfig {
    /// A link of constant rate and delay with an unbounded queue.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self { service: Service::Rate(rate.into()), delay: delay.into(), ..Self::default() }
    }

    /// The same link with a drop-tail queue of this bound.
    pub fn with_limit(mut self, limit: Limit) -> Self {
        self.queue = QueueConfig::DropTail(limit.into());
        self
    }

    /// The rate it starts with; `None` if it has no rate.
    pub fn rate(&self) -> Option<Rate> {
        match &self.service {
            Service::Rate(schedule) => Some(schedule.initial),
            Service::Infinite | Service::PerPacket { .. } => None,
        }
    }

    /// Says what is wrong with it, if anything.
    pub fn validate(&self) -> Result<(), ConfigError> {
        const ORDER: &str = "steps must be in the order of their times, no two at the same time";
        if let Service::Rate(rate) = &self.service {
            if !rate.is_ordered() {
                return Err(ConfigError::new("rate_steps", &rate.steps, ORDER));
            }
            if rate.is_constant() && rate.initial == Rate::ZERO {
                return Err(ConfigError::new(
                    "rate",
                    &rate.initial,
                    "a rate that never changes must be above zero",
                ));
            }
        }
        if !self.delay.is_ordered() {
            return Err(ConfigError::new("delay_steps", &self.delay.steps, ORDER));
        }
        if self.mtu == Some(Bytes::ZERO) {
            return Err(ConfigError::new("mtu", &Bytes::ZERO, "it must be above zero"));
        }
        Ok(())
    }
}

impl Default for LinkConfig {
    /// A link that is not there: no rate, no delay, nothing lost.
    fn default() -> Self {
        Self {
            service: Service::Infinite,
            delay: Duration::ZERO.into(),
            mtu: None,
            queue: QueueConfig::DropTail(DropTailConfig::default()),
        }
    }
}

impl ConfigError {
    pub(crate) fn new(
        key: &'static str,
        value: &impl std::fmt::Debug,
        allowed: &'static str,
    ) -> Self {
        Self { key, value: format!("{value:?}"), allowed }
    }
}

//! How a link sends parcels, one after the other.

use weir_units::{Bytes, Duration, Rate};

use crate::error::{ConfigError, check_span};
use crate::opportunities::DeliveryTrace;
use crate::schedule::Schedule;

/// How a link sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// In no time: the link is only a delay.
    Infinite,
    /// At a rate. Zero is a blackout; a parcel half sent then waits for its rest.
    Rate(Schedule<Rate>),
    /// At once while tokens last, which arrive at a rate: Linux's `tbf`. Longer parcels than the burst
    /// are dropped.
    Shaper {
        /// How fast tokens arrive.
        rate: Schedule<Rate>,
        /// How many bytes may go at once.
        burst: Bytes,
    },
    /// A fixed time per parcel whatever its length, by direction: a relay that sleeps. When both
    /// directions use the same link, they share its server and its queue.
    PerPacket {
        /// The time for a parcel towards the flow's receiver.
        forward: Duration,
        /// The time for a parcel that travels back.
        reverse: Duration,
    },
    /// At recorded moments.
    Trace(DeliveryTrace),
}

impl Service {
    /// The rate it starts with, if it has one.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Rate(schedule) | Self::Shaper { rate: schedule, .. } => Some(schedule.initial),
            Self::Infinite | Self::PerPacket { .. } | Self::Trace(_) => None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Infinite | Self::Trace(_) => Ok(()),
            Self::PerPacket { forward, reverse } => {
                check_span("service time", *forward)?;
                check_span("service time", *reverse)
            }
            Self::Shaper { burst: Bytes::ZERO, .. } => {
                const HELP: &str = "it must be above zero, or nothing gets through";
                Err(ConfigError::new("burst", Bytes::ZERO, HELP))
            }
            Self::Rate(rate) | Self::Shaper { rate, .. } => check_rate(rate),
        }
    }
}

fn check_rate(rate: &Schedule<Rate>) -> Result<(), ConfigError> {
    if rate.is_constant() && rate.initial == Rate::ZERO {
        const HELP: &str = "a rate that never changes must be above zero";
        return Err(ConfigError::new("rate", rate.initial, HELP));
    }
    check_order("rate_steps", rate)
}

pub(crate) fn check_order<T: Copy>(
    key: &'static str,
    schedule: &Schedule<T>,
) -> Result<(), ConfigError> {
    const HELP: &str = "steps must be in the order of their times, no two at the same time";
    match schedule.first_disorder() {
        Some(time) => Err(ConfigError::new(key, format!("step at {time}"), HELP)),
        None => Ok(()),
    }
}

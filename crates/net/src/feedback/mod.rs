//! Agents that watch a link and tell the senders of passing packets what they see.
//!
//! An agent belongs to one transmitter: the server of a wired link, the interface of a radio node. Its
//! host tells it when the transmitter is busy, what arrives and what leaves; it rewrites the
//! [`Feedback`](weir_units::Feedback) of what leaves, if that carries the kind which the agent speaks, and
//! leaves everything else alone. Times must not decrease from call to call; an agent has no timer, so
//! intervals that have passed are made up for at the next call.

mod drai;
mod flows;
mod occupancy;

use weir_units::{Duration, Instant};

pub use self::drai::{Drai, DraiConfig, Estimator, Share, Thresholds};
pub use self::occupancy::{Occupancy, Signal};
use crate::config::ConfigError;
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// Which feedback a link gives, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackConfig {
    /// TCP Muzha's index.
    Drai(DraiConfig),
}

/// An agent at work.
#[derive(Clone, Debug)]
pub enum FeedbackAgent {
    /// TCP Muzha's index.
    Drai(Drai),
}

impl FeedbackConfig {
    /// Says what is wrong with it, if anything.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Drai(config) => config.validate(),
        }
    }

    /// The agent.
    pub fn agent(&self) -> FeedbackAgent {
        match self {
            Self::Drai(config) => FeedbackAgent::Drai(Drai::new(config)),
        }
    }
}

impl FeedbackAgent {
    /// What `signal` says of the transmitter has changed to this, or not.
    pub fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        match self {
            Self::Drai(agent) => agent.set_busy(now, signal, occupancy),
        }
    }

    /// A packet arrives to be sent, behind this backlog; it may yet be dropped.
    pub fn on_arrival<P: Parcel>(&mut self, _now: Instant, _parcel: &P, ahead: Backlog) {
        match self {
            Self::Drai(agent) => agent.on_arrival(ahead),
        }
    }

    /// The MAC is done with a frame, after so many retries.
    pub fn on_frame(&mut self, retries: u32) {
        match self {
            Self::Drai(agent) => agent.on_frame(retries),
        }
    }

    /// A packet is taken from the queue to be sent: its feedback is rewritten.
    pub fn on_departure<P: Parcel>(&mut self, now: Instant, parcel: &mut P, _behind: Backlog) {
        match self {
            Self::Drai(agent) => agent.on_departure(now, parcel),
        }
    }
}

/// A span that something is averaged over.
fn check_memory(key: &'static str, memory: Duration) -> Result<(), ConfigError> {
    if memory.is_zero() || memory > LONGEST_MEMORY {
        return Err(ConfigError::new(key, memory, "above zero, and an hour at most"));
    }
    Ok(())
}

const LONGEST_MEMORY: Duration = Duration::from_secs(3_600);

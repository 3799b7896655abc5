//! Agents that watch a link and tell the senders of passing packets what they see.
//!
//! An agent belongs to one transmitter: the server of a wired link, the interface of a radio node. Its
//! host reports when the transmitter is busy, and each arrival and departure. The agent rewrites the
//! [`Feedback`](weir_units::Feedback) of departing parcels that carry its kind of feedback, and
//! changes nothing else. Times must not decrease from call to call; an agent has no timer, so
//! intervals that have passed are made up for at the next call.

mod anti_ecn;
mod capacity;
mod drai;
mod flows;
mod int;
mod occupancy;
mod quick_start;
mod rcp;
mod xcp;

use weir_units::{Duration, FeedbackKind, Instant, Rate, Rng};

pub use self::anti_ecn::{AntiEcn, AntiEcnConfig};
pub use self::capacity::Capacity;
pub use self::drai::{Drai, DraiConfig, Estimator, Share, Thresholds};
pub use self::int::Int;
pub use self::occupancy::{Occupancy, Signal};
pub use self::quick_start::{QuickStart, QuickStartConfig};
pub use self::rcp::{Rcp, RcpConfig};
pub use self::xcp::{Xcp, XcpConfig};
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// Which feedback a link gives, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedbackConfig {
    /// TCP Muzha's index.
    Drai(DraiConfig),
    /// A bit: whether the link has spare capacity.
    AntiEcn(AntiEcnConfig),
    /// Rates to start with.
    QuickStart(QuickStartConfig),
    /// XCP's efficiency and fairness controllers.
    Xcp(XcpConfig),
    /// RCP's rate.
    Rcp(RcpConfig),
    /// A record of the link in every packet: in-band telemetry.
    Int,
}

/// An agent at work.
#[derive(Clone, Debug)]
pub enum FeedbackAgent {
    /// TCP Muzha's index.
    Drai(Drai),
    /// A bit: whether the link has spare capacity.
    AntiEcn(AntiEcn),
    /// Rates to start with.
    QuickStart(QuickStart),
    /// XCP's efficiency and fairness controllers.
    Xcp(Xcp),
    /// RCP's rate.
    Rcp(Rcp),
    /// A record of the link in every packet.
    Int(Int),
}

/// Calls the same method of whichever agent it is.
macro_rules! each {
    ($agent:expr, $inner:ident => $call:expr) => {
        match $agent {
            Self::Drai($inner) => $call,
            Self::AntiEcn($inner) => $call,
            Self::QuickStart($inner) => $call,
            Self::Xcp($inner) => $call,
            Self::Rcp($inner) => $call,
            Self::Int($inner) => $call,
        }
    };
}

impl FeedbackConfig {
    /// Says what is wrong with it, if anything.
    pub(crate) fn validate(&self, rate: Option<Rate>) -> Result<(), ConfigError> {
        if self.needs_rate() && rate.is_none_or(|rate| rate == Rate::ZERO) {
            const HELP: &str = "xcp, rcp, int and quick-start need a link with a rate";
            return Err(ConfigError::new("feedback.kind", self.name(), HELP));
        }
        match self {
            Self::Drai(config) => config.validate(),
            Self::AntiEcn(config) => config.validate(),
            Self::QuickStart(_) | Self::Xcp(_) | Self::Rcp(_) | Self::Int => Ok(()),
        }
    }

    /// The agent of a transmitter with this rate; `rng` is used only by kinds that draw.
    pub fn agent(&self, rate: Rate, rng: Rng) -> FeedbackAgent {
        match self {
            Self::Drai(config) => FeedbackAgent::Drai(Drai::new(config)),
            Self::AntiEcn(config) => FeedbackAgent::AntiEcn(AntiEcn::new(config)),
            Self::QuickStart(config) => {
                FeedbackAgent::QuickStart(QuickStart::new(config, rate, rng))
            }
            Self::Xcp(config) => FeedbackAgent::Xcp(Xcp::new(config, rate)),
            Self::Rcp(config) => FeedbackAgent::Rcp(Rcp::new(config, rate)),
            Self::Int => FeedbackAgent::Int(Int::new(rate)),
        }
    }

    /// The kind that its agent speaks.
    pub fn kind(&self) -> FeedbackKind {
        match self {
            Self::Drai(_) => FeedbackKind::Drai,
            Self::AntiEcn(_) => FeedbackKind::AntiEcn,
            Self::QuickStart(_) => FeedbackKind::QuickStart,
            Self::Xcp(_) => FeedbackKind::Xcp,
            Self::Rcp(_) => FeedbackKind::Rcp,
            Self::Int => FeedbackKind::Int,
        }
    }

    fn needs_rate(&self) -> bool {
        matches!(self, Self::QuickStart(_) | Self::Xcp(_) | Self::Rcp(_) | Self::Int)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Drai(_) => "drai",
            Self::AntiEcn(_) => "anti-ecn",
            Self::QuickStart(_) => "quick-start",
            Self::Xcp(_) => "xcp",
            Self::Rcp(_) => "rcp",
            Self::Int => "int",
        }
    }
}

impl FeedbackAgent {
    /// What `signal` says of the transmitter has changed to this, or not.
    pub fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        each!(self, agent => agent.set_busy(now, signal, occupancy));
    }

    /// The transmitter's rate is now this.
    pub fn set_rate(&mut self, rate: Rate) {
        match self {
            Self::Drai(_) | Self::AntiEcn(_) => {}
            Self::QuickStart(agent) => agent.set_rate(rate),
            Self::Xcp(agent) => agent.set_rate(rate),
            Self::Rcp(agent) => agent.set_rate(rate),
            Self::Int(agent) => agent.set_rate(rate),
        }
    }

    /// A packet arrives to be sent, behind this backlog; it may yet be dropped.
    pub fn on_arrival<P: Parcel>(&mut self, now: Instant, parcel: &mut P, ahead: Backlog) {
        match self {
            Self::Drai(agent) => agent.on_arrival(ahead),
            Self::AntiEcn(_) | Self::QuickStart(_) | Self::Int(_) => {}
            Self::Xcp(agent) => agent.on_arrival(now, parcel, ahead),
            Self::Rcp(agent) => agent.on_arrival(now, parcel, ahead),
        }
    }

    /// The MAC is done with a frame, after this number of retries.
    pub fn on_frame(&mut self, retries: u32) {
        if let Self::Drai(agent) = self {
            agent.on_frame(retries);
        }
    }

    /// A packet is taken from the queue to be sent, and leaves this behind: its feedback is rewritten.
    pub fn on_departure<P: Parcel>(&mut self, now: Instant, parcel: &mut P, behind: Backlog) {
        match self {
            Self::Drai(agent) => agent.on_departure(now, parcel),
            Self::AntiEcn(agent) => agent.on_departure(now, parcel, behind),
            Self::QuickStart(agent) => agent.on_departure(now, parcel),
            Self::Xcp(agent) => agent.on_departure(now, parcel, behind),
            Self::Rcp(agent) => agent.on_departure(now, parcel, behind),
            Self::Int(agent) => agent.on_departure(now, parcel, behind),
        }
    }
}

/// A span that something is averaged over.
fn check_memory(key: &'static str, memory: Duration) -> Result<(), ConfigError> {
    if memory.is_zero() || memory > MAX_MEMORY {
        return Err(ConfigError::new(key, memory, "above zero, and an hour at most"));
    }
    Ok(())
}

/// Bytes per second.
fn bytes_per_second(rate: Rate) -> u64 {
    rate.as_bits_per_sec() / 8
}

/// The longest span that a utilisation is averaged over.
pub const MAX_MEMORY: Duration = Duration::from_secs(3_600);
const NANOS_PER_SECOND: u128 = 1_000_000_000;

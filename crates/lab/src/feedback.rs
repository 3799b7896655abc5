//! Key `feedback`: what a bottleneck tells the senders of the packets that pass it.
//!
//! A new kind is a line in the list, its section, and a branch of [`Feedback::config`].

use weir_net::FeedbackConfig;
use weir_net::feedback::{
    AntiEcnConfig, Capacity, DraiConfig, Estimator, MAX_MEMORY, QuickStartConfig, RcpConfig, Share,
    Signal, Thresholds, XcpConfig,
};
use weir_units::{Duration, Ratio};

use crate::error::{Checked, require};
use crate::keys::{Word, form, kinds, section, words};
use crate::range::{above, between};

kinds! {
    /// An agent of a bottleneck.
    pub enum Feedback {
        Drai(Drai) = "drai", "TCP Muzha's index of the bandwidth left, for muzha, muzha2 and drai-*";
        AntiEcn(AntiEcn) = "anti-ecn", "a bit that says whether the link has spare capacity, for anti-ecn";
        QuickStart(QuickStart) = "quick-start", "approves rates to start with (RFC 4782), for flows with quick_start";
        Xcp(Explicit) = "xcp", "says by how much each sender changes its rate, for xcp";
        Rcp(Explicit) = "rcp", "sets one rate for all flows, for rcp";
        Int(Telemetry) = "int", "records time, bytes, queue and rate of each link in packets, for hpcc";
    }
}

section! {
    /// TCP Muzha's index.
    pub struct Drai {
        /// Number of indices.
        levels: u32 [between(3, 7)] = 5,
        /// Shares of unused bandwidth at which the next higher index begins, one less than `levels`.
        /// Default: `10% 40%`, `5% 20% 50%`, `5% 15% 30% 50%`, `5% 10% 20% 35% 50%` or `5% 10% 15% 30%
        /// 40% 50%`.
        thresholds: Vec<Ratio> = Vec::new(),
        /// Time constant of the average utilisation.
        memory: Duration [above(Duration::ZERO).to(MAX_MEMORY)] = Duration::from_millis(200),
        /// What counts as utilisation: `service`, the link has a packet to send, or `medium`, the
        /// medium is busy. On a wire both are the same.
        signal: Word<Signal> = Word(Signal::Service),
        /// Effect of the number of flows on the unused bandwidth: `none`, `literal` divides it,
        /// `accelerate` divides it for the accelerating indices.
        share: Word<Share> = Word(Share::Accelerate),
        /// Source of the index: `utilisation`, or `hybrid`: queue and MAC retries first.
        estimator: Word<Estimator> = Word(Estimator::Utilisation),
    }
}

section! {
    /// A bit about spare capacity.
    pub struct AntiEcn {
        /// Time constant of the average utilisation.
        memory: Duration [above(Duration::ZERO).to(MAX_MEMORY)] = Duration::from_millis(200),
        /// Average utilisation below which the link reports spare capacity.
        below: Ratio = Ratio::from_percent(90),
    }
}

section! {
    /// Rates to start with.
    pub struct QuickStart {
        /// Share of the rate up to which requests are approved.
        threshold: Ratio = Ratio::from_percent(85),
    }
}

section! {
    /// Explicit rates.
    pub struct Explicit {
        /// Assumed capacity of the link: its `nominal` rate, or the rate `measured` while it sends.
        capacity: Word<Capacity> = Word(Capacity::Nominal),
    }
}

section! {
    /// In-band telemetry.
    pub struct Telemetry {}
}

words! {
    Signal { Service = "service", Medium = "medium" }
}

words! {
    Share { None = "none", Literal = "literal", Accelerate = "accelerate" }
}

words! {
    Estimator { Utilisation = "utilisation", Hybrid = "hybrid" }
}

words! {
    Capacity { Nominal = "nominal", Measured = "measured" }
}

impl Feedback {
    /// The agent that this means.
    pub(crate) fn config(&self) -> FeedbackConfig {
        match self {
            Self::Drai(drai) => FeedbackConfig::Drai(drai.config()),
            Self::AntiEcn(agent) => {
                FeedbackConfig::AntiEcn(AntiEcnConfig { below: agent.below, memory: agent.memory })
            }
            Self::QuickStart(agent) => {
                FeedbackConfig::QuickStart(QuickStartConfig { threshold: agent.threshold })
            }
            Self::Xcp(agent) => FeedbackConfig::Xcp(XcpConfig { capacity: agent.capacity.0 }),
            Self::Rcp(agent) => FeedbackConfig::Rcp(RcpConfig { capacity: agent.capacity.0 }),
            Self::Int(_) => FeedbackConfig::Int,
        }
    }

    /// What its keys demand of each other; the model checks the rest.
    pub(crate) fn check(&self, section: &str) -> Checked {
        let Self::Drai(Drai { levels, thresholds, .. }) = self else { return Ok(()) };
        let given = thresholds.len();
        let fit = given + 1 == *levels as usize && Thresholds::new(thresholds).is_some();
        let allowed = "one less than levels, each above the one before";
        let key = format!("{section}.thresholds");
        require(given == 0 || fit, key, format!("a list of {given}"), allowed)
    }
}

impl Drai {
    fn config(&self) -> DraiConfig {
        let usual = || Thresholds::usual(u8::try_from(self.levels).ok()?);
        let thresholds = Thresholds::new(&self.thresholds).or_else(usual);
        DraiConfig {
            thresholds: thresholds.unwrap_or(DraiConfig::default().thresholds),
            memory: self.memory,
            signal: self.signal.0,
            share: self.share.0,
            estimator: self.estimator.0,
        }
    }
}

form! {
    Vec<Ratio> => "list of ratios",
}

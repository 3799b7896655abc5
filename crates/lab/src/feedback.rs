//! Key `feedback`: what a bottleneck tells the senders of the packets that pass it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_net::FeedbackConfig;
use weir_net::feedback::{
    AntiEcnConfig, Capacity, DraiConfig, Estimator, QuickStartConfig, RcpConfig, Share, Signal,
    Thresholds, XcpConfig,
};
use weir_units::{Duration, Ratio};

use crate::error::Problem;
use crate::keys::{form, keep, section};

section! {
    /// An agent of a bottleneck. Which keys apply depends on `kind`, see [`AgentKind::keys`].
    pub struct Agent {
        /// Kind of feedback.
        kind: AgentKind = AgentKind::Drai,
        /// Number of indices, 3 to 7.
        levels: u32 = 5,
        /// Shares of unused bandwidth at which the next higher index begins, one less than `levels`.
        /// Default: `10% 40%`, `5% 20% 50%`, `5% 15% 30% 50%`, `5% 10% 20% 35% 50%` or `5% 10% 15% 30%
        /// 40% 50%`.
        thresholds: Vec<Ratio> = Vec::new(),
        /// Time constant of the average utilisation.
        memory: Duration = Duration::from_millis(200),
        /// What counts as utilisation: `service`, the link has a packet to send, or `medium`, the
        /// medium is busy. On a wire both are the same.
        signal: SignalForm = SignalForm::Service,
        /// Effect of the number of flows on the unused bandwidth: `none`, `literal` divides it,
        /// `accelerate` divides it for the accelerating indices.
        share: ShareForm = ShareForm::Accelerate,
        /// Source of the index: `utilisation`, or `hybrid`: queue and MAC retries first.
        estimator: EstimatorForm = EstimatorForm::Utilisation,
        /// Average utilisation below which the link reports spare capacity.
        below: Ratio = Ratio::from_percent(90),
        /// Share of the rate up to which requests are approved.
        threshold: Ratio = Ratio::from_percent(85),
        /// Assumed capacity of the link: its `nominal` rate, or the rate `measured` while it sends.
        capacity: CapacityForm = CapacityForm::Nominal,
    }
}

/// Kinds of feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentKind {
    /// TCP Muzha's index.
    Drai,
    /// A bit that says whether the link has spare capacity.
    AntiEcn,
    /// Rates to start with.
    QuickStart,
    /// XCP.
    Xcp,
    /// RCP.
    Rcp,
}

/// [`Signal`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignalForm {
    /// The link has a packet to send.
    Service,
    /// The medium is taken.
    Medium,
}

/// [`Share`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShareForm {
    /// The number of flows does nothing.
    None,
    /// It divides what is left.
    Literal,
    /// It divides what is left where that would accelerate.
    Accelerate,
}

/// [`Estimator`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatorForm {
    /// The average utilisation.
    Utilisation,
    /// Queue and MAC retries first.
    Hybrid,
}

/// [`Capacity`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityForm {
    /// The rate.
    Nominal,
    /// What it sends while it is busy.
    Measured,
}

/// An agent as a scenario writes it: with the keys of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback(pub Agent);

impl AgentKind {
    /// Every kind with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(Self, &str, &str)] = &[
        (
            Self::Drai,
            "drai",
            "TCP Muzha's index of the bandwidth left, for muzha, muzha2 and drai-*",
        ),
        (
            Self::AntiEcn,
            "anti-ecn",
            "a bit that says whether the link has spare capacity, for anti-ecn",
        ),
        (
            Self::QuickStart,
            "quick-start",
            "approves rates to start with (RFC 4782), for flows with quick_start",
        ),
        (Self::Xcp, "xcp", "says by how much each sender changes its rate, for xcp"),
        (Self::Rcp, "rcp", "sets one rate for all flows, for rcp"),
    ];

    /// The keys of an agent that mean something for this kind.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Drai => {
                &["kind", "levels", "thresholds", "memory", "signal", "share", "estimator"]
            }
            Self::AntiEcn => &["kind", "below", "memory"],
            Self::QuickStart => &["kind", "threshold"],
            Self::Xcp | Self::Rcp => &["kind", "capacity"],
        }
    }
}

impl Feedback {
    /// Says what is wrong with its values, if anything.
    pub(crate) fn check(&self, section: &str) -> Result<(), Problem> {
        let Self(agent) = self;
        let refuse = |key: &str, value: String, allowed: &str| {
            Err(Problem::new(
                format!("{section}.{key}"),
                format!("{value} is not allowed; {allowed}"),
            ))
        };
        if !(3..=7).contains(&agent.levels) {
            return refuse("levels", agent.levels.to_string(), "a whole number from 3 to 7");
        }
        let given = agent.thresholds.len();
        if given > 0
            && (given + 1 != agent.levels as usize || Thresholds::new(&agent.thresholds).is_none())
        {
            const ALLOWED: &str = "one less than levels, each above the one before";
            return refuse("thresholds", format!("a list of {given}"), ALLOWED);
        }
        Ok(())
    }

    /// The agent that this means.
    pub(crate) fn config(&self) -> FeedbackConfig {
        let Self(agent) = self;
        let capacity = match agent.capacity {
            CapacityForm::Nominal => Capacity::Nominal,
            CapacityForm::Measured => Capacity::Measured,
        };
        match agent.kind {
            AgentKind::Drai => FeedbackConfig::Drai(agent.drai()),
            AgentKind::AntiEcn => {
                FeedbackConfig::AntiEcn(AntiEcnConfig { below: agent.below, memory: agent.memory })
            }
            AgentKind::QuickStart => {
                FeedbackConfig::QuickStart(QuickStartConfig { threshold: agent.threshold })
            }
            AgentKind::Xcp => FeedbackConfig::Xcp(XcpConfig { capacity }),
            AgentKind::Rcp => FeedbackConfig::Rcp(RcpConfig { capacity }),
        }
    }
}

impl Agent {
    fn drai(&self) -> DraiConfig {
        let usual = || Thresholds::usual(u8::try_from(self.levels).ok()?);
        let thresholds = Thresholds::new(&self.thresholds).or_else(usual);
        DraiConfig {
            thresholds: thresholds.unwrap_or(DraiConfig::default().thresholds),
            memory: self.memory,
            signal: match self.signal {
                SignalForm::Service => Signal::Service,
                SignalForm::Medium => Signal::Medium,
            },
            share: match self.share {
                ShareForm::None => Share::None,
                ShareForm::Literal => Share::Literal,
                ShareForm::Accelerate => Share::Accelerate,
            },
            estimator: match self.estimator {
                EstimatorForm::Utilisation => Estimator::Utilisation,
                EstimatorForm::Hybrid => Estimator::Hybrid,
            },
        }
    }
}

impl Serialize for Feedback {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = serde_json::to_value(&self.0).map_err(serde::ser::Error::custom)?;
        keep(&mut table, self.0.kind.keys());
        table.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Feedback {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Agent::deserialize(deserializer).map(Self)
    }
}

form! {
    Feedback => "section",
    AgentKind => "`drai`, `anti-ecn`, `quick-start`, `xcp` or `rcp`",
    SignalForm => "`service` or `medium`",
    ShareForm => "`none`, `literal` or `accelerate`",
    EstimatorForm => "`utilisation` or `hybrid`",
    CapacityForm => "`nominal` or `measured`",
    Vec<Ratio> => "list of ratios",
}

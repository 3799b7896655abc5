//! The kinds of queues and the words of their keys.

use serde::{Deserialize, Serialize};
use weir_net::{
    Classifier, CodelLaw, DualPi2Config, FqCodelConfig, FqConfig, Isolation, PieLaw, SfqConfig,
};
use weir_units::{BufferSize, Bytes, Duration};

use crate::keys::form;

/// Disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueKind {
    /// A FIFO that drops packets when it is full.
    #[serde(rename = "droptail")]
    DropTail,
    /// CoDel.
    Codel,
    /// FQ-CoDel.
    FqCodel,
    /// RED.
    Red,
    /// PIE.
    Pie,
    /// FQ.
    Fq,
    /// FQ-PIE.
    FqPie,
    /// CAKE's flow isolation.
    Cake,
    /// DualPI2.
    #[serde(rename = "dualpi2")]
    DualPi2,
    /// Marks from a threshold on.
    EcnStep,
    /// SFQ.
    Sfq,
}

/// [`Isolation`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationForm {
    /// None.
    FlowBlind,
    /// Of sending hosts.
    SrcHost,
    /// Of receiving hosts.
    DstHost,
    /// Of pairs of hosts.
    Hosts,
    /// Of flows.
    Flows,
    /// Of flows, fair among sending hosts.
    DualSrcHost,
    /// Of flows, fair among receiving hosts.
    DualDstHost,
    /// Of flows, fair among both.
    TripleIsolate,
}

/// [`Classifier`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClassifierForm {
    /// The identifier of L4S.
    Ect1,
    /// Everything that is capable of ECN.
    AnyEct,
}

impl QueueKind {
    /// Every kind with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(Self, &str, &str)] = &[
        (Self::DropTail, "droptail", "a FIFO that drops packets when it is full"),
        (Self::Codel, "codel", "a FIFO that signals while packets wait too long (RFC 8289)"),
        (
            Self::FqCodel,
            "fq-codel",
            "a queue per flow, served in turn, each under CoDel (RFC 8290)",
        ),
        (
            Self::Red,
            "red",
            "a FIFO that signals at random as its average grows (Floyd, Jacobson 1993)",
        ),
        (Self::Pie, "pie", "a FIFO that drops at random to hold a target delay (RFC 8033)"),
        (Self::Fq, "fq", "a queue per flow, served in turn, each with a bound (Linux's sch_fq)"),
        (Self::FqPie, "fq-pie", "a queue per flow, served in turn, each under PIE"),
        (
            Self::Cake,
            "cake",
            "a queue per flow, fair among hosts, each under COBALT (Høiland-Jørgensen et al. 2018)",
        ),
        (
            Self::DualPi2,
            "dualpi2",
            "a queue for L4S and a classic one, with coupled signals (RFC 9332)",
        ),
        (
            Self::EcnStep,
            "ecn-step",
            "a FIFO that marks from a threshold on, as DCTCP needs (RFC 8257)",
        ),
        (
            Self::Sfq,
            "sfq",
            "a queue per flow, served in turn; an overflow costs the longest one (McKenney 1990)",
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
            Self::Pie => &["kind", "limit", "target", "update", "alpha", "beta", "ecn"],
            Self::Fq => &[
                "kind",
                "limit",
                "flow_limit",
                "flows",
                "quantum",
                "initial_quantum",
                "refill_delay",
                "ce_threshold",
            ],
            Self::FqPie => {
                &["kind", "limit", "flows", "quantum", "target", "update", "alpha", "beta", "ecn"]
            }
            Self::Cake => &["kind", "limit", "isolation", "shaper", "target", "interval"],
            Self::DualPi2 => &[
                "kind",
                "limit",
                "target",
                "rtt_max",
                "coupling",
                "l4s_threshold",
                "l4s_ramp",
                "l4s",
                "classic_share",
                "shift",
            ],
            Self::EcnStep => &["kind", "limit", "threshold"],
            Self::Sfq => &["kind", "limit", "flow_limit", "flows", "quantum", "head_drop"],
        }
    }

    /// How it is written.
    pub(crate) fn name(self) -> &'static str {
        Self::CATALOGUE.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    pub(super) fn limit(self) -> BufferSize {
        match self {
            Self::DropTail | Self::EcnStep => BufferSize::Bdp(1_000),
            Self::Codel | Self::Pie => BufferSize::Packets(1_000),
            Self::FqCodel | Self::FqPie => BufferSize::Packets(10_240),
            Self::Fq | Self::DualPi2 => BufferSize::Packets(10_000),
            Self::Cake => BufferSize::Bytes(Bytes(4 << 20)),
            Self::Sfq => BufferSize::Packets(127),
            Self::Red => BufferSize::Bdp(4_000),
        }
    }

    pub(super) fn target(self) -> Duration {
        match self {
            Self::Pie | Self::FqPie => PieLaw::DEFAULT.target,
            Self::DualPi2 => DualPi2Config::DEFAULT.target,
            _ => CodelLaw::DEFAULT.target,
        }
    }

    pub(super) fn flow_limit(self) -> u32 {
        match self {
            Self::Sfq => SfqConfig::DEFAULT.depth,
            _ => FqConfig::DEFAULT.flow_limit,
        }
    }

    pub(super) fn quantum(self) -> Bytes {
        match self {
            Self::Fq => FqConfig::DEFAULT.quantum,
            _ => FqCodelConfig::DEFAULT.quantum,
        }
    }
}

impl From<IsolationForm> for Isolation {
    fn from(form: IsolationForm) -> Self {
        match form {
            IsolationForm::FlowBlind => Self::FlowBlind,
            IsolationForm::SrcHost => Self::SrcHost,
            IsolationForm::DstHost => Self::DstHost,
            IsolationForm::Hosts => Self::Hosts,
            IsolationForm::Flows => Self::Flows,
            IsolationForm::DualSrcHost => Self::DualSrcHost,
            IsolationForm::DualDstHost => Self::DualDstHost,
            IsolationForm::TripleIsolate => Self::TripleIsolate,
        }
    }
}

impl From<ClassifierForm> for Classifier {
    fn from(form: ClassifierForm) -> Self {
        match form {
            ClassifierForm::Ect1 => Self::L4s,
            ClassifierForm::AnyEct => Self::AnyEct,
        }
    }
}

form! {
    QueueKind => "`droptail`, `codel`, `fq-codel`, `red`, `pie`, `fq`, `fq-pie`, `cake`, `dualpi2`, `ecn-step` or `sfq`",
    IsolationForm => "`flow-blind`, `src-host`, `dst-host`, `hosts`, `flows`, `dual-src-host`, `dual-dst-host` or `triple-isolate`",
    ClassifierForm => "`ect1` or `any-ect`",
}

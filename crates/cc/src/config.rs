//! The one list of controllers: names, parameters, construction.
//!
//! A controller is written `name` or `name(parameters)`: `cubic`, `none(30)`, `aimd(1,0.5)`,
//! `cubic(hystart=off)`.

mod parse;
mod print;

use std::fmt;
use std::str::FromStr;

use weir_units::{Bytes, Duration, known};

use self::parse::Given;
use crate::{
    AntiEcn, Bbr, Bbr3, Bic, Cdg, CongestionController, Copa, CopaMode, Cubic, Dctcp, Decimal,
    Decrease, Fixed, Friendliness, Gain, Highspeed, Htcp, Hybla, Hystart, Illinois, Increase,
    KernelName, Ledbat, Lp, Muzha, Muzha2, MuzhaOptions, MuzhaTable, Nv, Offsets, Overflow,
    Parametric, Prague, Rcp, Reno, Reno002, Scalable, Script, Vegas, Veno, Westwood, Xcp, Yeah,
};

/// Which controller, with its parameters.
///
/// ```
/// use weir_cc::CcConfig;
/// use weir_units::Bytes;
///
/// let config: CcConfig = "cubic(hystart=off)".parse()?;
/// assert_eq!(config.to_string(), "cubic(hystart=off)");
/// let cc = config.build(Bytes(1_200), Bytes(12_000))?;
/// assert_eq!((cc.name(), cc.cwnd(), cc.phase()), ("cubic", Bytes(12_000), "slow_start"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CcConfig {
    /// A fixed window in segments; without a number only the receiver bounds the sender.
    None {
        /// The window in segments.
        window: Option<u64>,
    },
    /// RFC 5681 as Linux counts it.
    Reno,
    /// The state machine of a course report.
    Reno002 {
        /// The first threshold in segments; infinite without.
        ssthresh: Option<u64>,
    },
    /// RFC 9438 as Linux computes it.
    Cubic {
        /// How slow start ends before it loses.
        hystart: Hystart,
        /// Whether it grows at least as Reno.
        friendliness: Friendliness,
    },
    /// BBR version 1 as Linux has it.
    Bbr {
        /// How it responds to a queue that overflows.
        overflow: Overflow,
    },
    /// BBR version 3.
    Bbr3,
    /// Vegas as Linux has it.
    Vegas,
    /// Veno as Linux has it.
    Veno,
    /// Westwood+ as Linux has it.
    Westwood,
    /// Illinois as Linux has it.
    Illinois,
    /// H-TCP as Linux has it.
    Htcp,
    /// RFC 3649 as Linux has it.
    Highspeed,
    /// Scalable TCP as Linux has it.
    Scalable,
    /// BIC as Linux has it.
    Bic,
    /// Hybla as Linux has it.
    Hybla,
    /// YeAH-TCP as Linux has it.
    Yeah,
    /// TCP-LP as Linux has it.
    Lp {
        /// What the peer adds to its timestamps.
        offsets: Offsets,
    },
    /// TCP-NV as Linux has it.
    Nv,
    /// CAIA delay gradient as Linux has it.
    Cdg,
    /// RFC 8257 as Linux computes it.
    Dctcp {
        /// The gain of its filter.
        gain: Gain,
        /// The share of marks that it believes in at first, at most 1.
        alpha: Decimal,
    },
    /// Prague.
    Prague {
        /// The round trip as whose flows those of shorter ones behave; zero for none.
        rtt: Duration,
    },
    /// RFC 6817.
    Ledbat {
        /// The queueing delay that it adds, from 1 to 100 ms.
        target: Duration,
    },
    /// Copa.
    Copa {
        /// One over the packets that it keeps in the queue, above 0.
        delta: Decimal,
        /// Whether it competes with those that fill queues.
        mode: CopaMode,
    },
    /// A linear control.
    Parametric {
        /// Growth per round trip.
        increase: Increase,
        /// The answer to a loss.
        decrease: Decrease,
    },
    /// A window that follows the routers' indices: TCP Muzha.
    Muzha {
        /// What an index does.
        table: MuzhaTable,
        /// What the source leaves open.
        options: MuzhaOptions,
    },
    /// NewReno under the routers' indices: TCP Muzha's second version.
    Muzha2,
    /// XCP.
    Xcp,
    /// RCP.
    Rcp,
    /// Reno that grows as in slow start where routers see spare capacity.
    AntiEcn,
    /// What only a kernel's TCP has; no catalogue lists it, and it cannot be built here.
    Kernel(KernelName),
    /// A class in a file of another language; no catalogue lists it, and its host builds it.
    Script(Script),
}

/// A line of [`CcConfig::CATALOGUE`].
///
/// ```
/// use weir_cc::CcConfig;
///
/// for entry in CcConfig::CATALOGUE {
///     let config: CcConfig = entry.name.parse()?;
///     assert!(entry.examples.iter().all(|example| example.parse::<CcConfig>().is_ok()));
/// }
/// assert!(CcConfig::CATALOGUE.iter().any(|entry| entry.name == "bbr3"));
/// # Ok::<(), weir_cc::CcConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// The name by which users choose it.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
    /// What may stand in parentheses, empty for nothing.
    pub parameters: &'static str,
    /// Ways to write it; the first is the bare name.
    pub examples: &'static [&'static str],
}

/// A controller that does not exist, or parameters that it does not take.
///
/// ```
/// use weir_cc::CcConfig;
///
/// let message = |text: &str| text.parse::<CcConfig>().unwrap_err().to_string();
/// assert!(message("cubik").starts_with("unknown controller 'cubik'; did you mean cubic?"));
/// assert!(message("ledbat(target=200ms)").starts_with("controller 'ledbat': target = '200ms'"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CcConfigError {
    /// No such controller.
    #[error("unknown controller '{name}'; {known}", known = controllers(name))]
    Unknown {
        /// The requested value.
        name: String,
    },
    /// A parenthesis is missing or misplaced.
    #[error(
        "'{text}' is not a controller: write name or name(parameters), as in cubic or none(30)"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A class in a file that is not written as one.
    #[error(
        "'{text}' is no controller in Python: write FILE.py:CLASS or FILE.py:CLASS(attribute=value,…), \
         as in mine.py:Mine or mine.py:Mine(beta=0.7)"
    )]
    Script {
        /// What was given.
        text: String,
    },
    /// More or fewer parameters than the controller takes.
    #[error("controller '{controller}' does not take '({given})': {allowed}")]
    Parameters {
        /// The controller.
        controller: &'static str,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// A parameter out of range or unreadable.
    #[error("controller '{controller}': {parameter} = '{value}', allowed is {allowed}")]
    Value {
        /// The controller.
        controller: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// A controller that exists, but cannot be built here.
///
/// ```
/// use weir_cc::{CcBuildError, CcConfig};
/// use weir_units::Bytes;
///
/// let config = CcConfig::parse_also_kernels("bpf_vegas")?;
/// let error = config.build(Bytes(1_200), Bytes(12_000)).unwrap_err();
/// assert_eq!(error.to_string(), "only a kernel's TCP has 'bpf_vegas'");
/// # Ok::<(), weir_cc::CcConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CcBuildError {
    /// A controller of a kernel.
    #[error("only a kernel's TCP has '{0}'")]
    Kernel(KernelName),
    /// A class in a file, without [`Script::set_host`].
    #[error("no host is set that could run '{0}'")]
    NoHost(String),
}

fn controllers(wanted: &str) -> impl fmt::Display {
    known(wanted, CcConfig::CATALOGUE.iter().map(|entry| entry.name))
}

impl CcConfig {
    /// Every controller, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[CatalogueEntry] = &[
        CatalogueEntry {
            name: "none",
            summary: "a fixed window in segments; unbounded without a number",
            parameters: "window",
            examples: &["none", "none(1)", "none(30)"],
        },
        CatalogueEntry {
            name: "reno",
            summary: "additive increase, halving on loss (RFC 5681) as Linux counts",
            parameters: "",
            examples: &["reno"],
        },
        CatalogueEntry {
            name: "reno-002",
            summary: "Reno as a course report prints it: losses in slow start wait for the timer",
            parameters: "ssthresh",
            examples: &["reno-002", "reno-002(ssthresh=4)"],
        },
        CatalogueEntry {
            name: "cubic",
            summary: "CUBIC (RFC 9438) as Linux 6.1 computes it",
            parameters: "hystart=linux|plus-plus|off,friendliness=on|off",
            examples: &[
                "cubic",
                "cubic(hystart=plus-plus)",
                "cubic(hystart=off)",
                "cubic(friendliness=off)",
            ],
        },
        CatalogueEntry {
            name: "bbr",
            summary: "BBR version 1 as in Linux 6.1: paced at the measured bottleneck rate",
            parameters: "overflow=linux|avoid",
            examples: &["bbr", "bbr(overflow=avoid)"],
        },
        CatalogueEntry {
            name: "bbr3",
            summary: "BBR version 3 (draft-ietf-ccwg-bbr): bounded by what probes found to lose over 2 %",
            parameters: "",
            examples: &["bbr3"],
        },
        CatalogueEntry {
            name: "vegas",
            summary: "keeps 2 to 4 segments in the queue, by delay",
            parameters: "",
            examples: &["vegas"],
        },
        CatalogueEntry {
            name: "veno",
            summary: "Reno that gives way less to losses without a queue",
            parameters: "",
            examples: &["veno"],
        },
        CatalogueEntry {
            name: "westwood",
            summary: "Westwood+: Reno that falls back to the measured bandwidth times the smallest RTT",
            parameters: "",
            examples: &["westwood"],
        },
        CatalogueEntry {
            name: "illinois",
            summary: "Reno with steps by delay: up to 10 segments per round trip, an eighth to a half on loss",
            parameters: "",
            examples: &["illinois"],
        },
        CatalogueEntry {
            name: "htcp",
            summary: "H-TCP: grows faster the longer nothing was lost, gives way by the queue's share of the RTT",
            parameters: "",
            examples: &["htcp"],
        },
        CatalogueEntry {
            name: "highspeed",
            summary: "HighSpeed TCP (RFC 3649): larger steps and smaller reductions, the larger the window",
            parameters: "",
            examples: &["highspeed"],
        },
        CatalogueEntry {
            name: "scalable",
            summary: "Scalable TCP: grows by a hundredth per round trip, gives way by an eighth",
            parameters: "",
            examples: &["scalable"],
        },
        CatalogueEntry {
            name: "bic",
            summary: "binary search for the window of the last loss; CUBIC's predecessor",
            parameters: "",
            examples: &["bic"],
        },
        CatalogueEntry {
            name: "hybla",
            summary: "grows as over a path of 25 ms, whatever the RTT",
            parameters: "",
            examples: &["hybla"],
        },
        CatalogueEntry {
            name: "yeah",
            summary: "YeAH-TCP: Scalable TCP while the queue is short, Reno otherwise; drains the queue",
            parameters: "",
            examples: &["yeah"],
        },
        CatalogueEntry {
            name: "lp",
            summary: "TCP-LP: Reno that gives way to others by one-way delay; as in Linux, mostly Reno",
            parameters: "offsets=random|none",
            examples: &["lp", "lp(offsets=none)"],
        },
        CatalogueEntry {
            name: "nv",
            summary: "TCP-NV: keeps about ten segments in the queue, by rate and delay; for data centers",
            parameters: "",
            examples: &["nv"],
        },
        CatalogueEntry {
            name: "cdg",
            summary: "CAIA delay gradient: backs off at random, the likelier the steeper delays rise",
            parameters: "",
            examples: &["cdg"],
        },
        CatalogueEntry {
            name: "dctcp",
            summary: "Data Center TCP (RFC 8257): gives way by the share of ECN marks",
            parameters: "g=1/16,alpha0=1",
            examples: &["dctcp", "dctcp(g=1/4,alpha0=0)"],
        },
        CatalogueEntry {
            name: "prague",
            summary: "Prague (L4S): as DCTCP, paced, on ECT(1), independent of the RTT below 25 ms",
            parameters: "rtt=25ms",
            examples: &["prague", "prague(rtt=0ms)"],
        },
        CatalogueEntry {
            name: "ledbat",
            summary: "LEDBAT (RFC 6817): adds a target of delay at most, gives way to all others",
            parameters: "target=100ms",
            examples: &["ledbat", "ledbat(target=25ms)"],
        },
        CatalogueEntry {
            name: "copa",
            summary: "Copa: keeps 1/delta packets in the queue, by delay; competes where others fill it",
            parameters: "delta=0.5,mode=auto|default",
            examples: &["copa", "copa(delta=0.1)", "copa(mode=default)"],
        },
        CatalogueEntry {
            name: "aimd",
            summary: "adds a segments per round trip, multiplies by b on loss",
            parameters: "a,b",
            examples: &["aimd", "aimd(1,0.5)", "aimd(0.25,0.9)"],
        },
        CatalogueEntry {
            name: "aiad",
            summary: "adds a segments per round trip, subtracts b segments on loss",
            parameters: "a,b",
            examples: &["aiad", "aiad(2,1)"],
        },
        CatalogueEntry {
            name: "mimd",
            summary: "multiplies by a per round trip, by b on loss",
            parameters: "a,b",
            examples: &["mimd", "mimd(1.01,0.875)"],
        },
        CatalogueEntry {
            name: "miad",
            summary: "multiplies by a per round trip, subtracts b segments on loss",
            parameters: "a,b",
            examples: &["miad", "miad(1.25,2)"],
        },
        CatalogueEntry {
            name: "muzha",
            summary: "TCP Muzha: the window follows the smallest index (DRAI) of the routers on the path",
            parameters: "update=per-rtt|per-ack-smooth|per-ack-literal,levels=3|4|5|6|7,\
                         fr-reduce=half|by-index|none,rto=one|half,exit=full|any",
            examples: &[
                "muzha",
                "muzha(update=per-ack-smooth)",
                "muzha(levels=7,fr-reduce=by-index,rto=half)",
            ],
        },
        CatalogueEntry {
            name: "muzha2",
            summary: "TCP Muzha's second version: NewReno that the routers' index lets grow, holds or shrinks",
            parameters: "",
            examples: &["muzha2"],
        },
        CatalogueEntry {
            name: "drai-aimd",
            summary: "adds a segments per round trip while the routers' index is 4 or 5, multiplies by b at 1 or 2",
            parameters: "a,b",
            examples: &["drai-aimd", "drai-aimd(2,0.5)"],
        },
        CatalogueEntry {
            name: "drai-aiad",
            summary: "adds a segments per round trip at index 4 or 5, subtracts b at 1 or 2",
            parameters: "a,b",
            examples: &["drai-aiad", "drai-aiad(2,1)"],
        },
        CatalogueEntry {
            name: "drai-mimd",
            summary: "multiplies by a per round trip at index 4 or 5, by b at 1 or 2",
            parameters: "a,b",
            examples: &["drai-mimd", "drai-mimd(1.25,0.65)"],
        },
        CatalogueEntry {
            name: "drai-miad",
            summary: "multiplies by a per round trip at index 4 or 5, subtracts b segments at 1 or 2",
            parameters: "a,b",
            examples: &["drai-miad", "drai-miad(1.19,2)"],
        },
        CatalogueEntry {
            name: "xcp",
            summary: "XCP: routers say by how much each packet's sender changes its rate",
            parameters: "",
            examples: &["xcp"],
        },
        CatalogueEntry {
            name: "rcp",
            summary: "RCP: routers set one rate for all flows, and senders pace at the smallest on the path",
            parameters: "",
            examples: &["rcp"],
        },
        CatalogueEntry {
            name: "anti-ecn",
            summary: "Reno that grows as in slow start while every router on the path has spare capacity",
            parameters: "",
            examples: &["anti-ecn"],
        },
    ];

    /// Reads `name` or `name(parameters)`; a name may be that of a class in a file ([`Script`]).
    ///
    /// # Errors
    /// For an unknown name, or parameters that the controller does not take.
    pub fn parse(text: &str) -> Result<Self, CcConfigError> {
        if Script::is_meant(text) {
            return Script::parse(text).map(Self::Script);
        }
        let given = Given::split(text)?;
        match given.name {
            "none" => given.none(),
            "reno" => given.nothing(Self::Reno),
            "reno-002" => given.reno_002(),
            "cubic" => given.cubic(),
            "bbr" => given.bbr(),
            "bbr3" => given.nothing(Self::Bbr3),
            "vegas" => given.nothing(Self::Vegas),
            "veno" => given.nothing(Self::Veno),
            "westwood" => given.nothing(Self::Westwood),
            "illinois" => given.nothing(Self::Illinois),
            "htcp" => given.nothing(Self::Htcp),
            "highspeed" => given.nothing(Self::Highspeed),
            "scalable" => given.nothing(Self::Scalable),
            "bic" => given.nothing(Self::Bic),
            "hybla" => given.nothing(Self::Hybla),
            "yeah" => given.nothing(Self::Yeah),
            "lp" => given.lp(),
            "nv" => given.nothing(Self::Nv),
            "cdg" => given.nothing(Self::Cdg),
            "dctcp" => given.dctcp(),
            "prague" => given.prague(),
            "ledbat" => given.ledbat(),
            "copa" => given.copa(),
            "muzha" => given.muzha(),
            "muzha2" => given.nothing(Self::Muzha2),
            "xcp" => given.nothing(Self::Xcp),
            "rcp" => given.nothing(Self::Rcp),
            "anti-ecn" => given.nothing(Self::AntiEcn),
            _ => given.parametric(),
        }
    }

    /// The same for flows that may be a kernel's, whose congestion controls have further names.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_also_kernels(text: &str) -> Result<Self, CcConfigError> {
        KernelName::parse(text.trim())
            .map_or_else(|| Self::parse(text), |name| Ok(Self::Kernel(name)))
    }

    /// Whether it needs what routers tell.
    pub fn asks_routers(&self) -> bool {
        matches!(self, Self::Muzha { .. } | Self::Muzha2 | Self::Xcp | Self::Rcp | Self::AntiEcn)
    }

    /// How many levels it expects of the routers' indices, if it goes by them.
    pub fn index_levels(&self) -> Option<u8> {
        match self {
            Self::Muzha { table, .. } => Some(table.levels()),
            Self::Muzha2 => Some(DEFAULT_LEVELS),
            _ => None,
        }
    }

    /// Builds the controller for segments of `mss` (at least one byte) and the given initial window
    /// (at least one segment).
    ///
    /// # Errors
    /// For a [`Kernel`](Self::Kernel)'s, and for a [`Script`](Self::Script) without a host.
    pub fn build(
        &self,
        mss: Bytes,
        initial_window: Bytes,
    ) -> Result<Box<dyn CongestionController>, CcBuildError> {
        Ok(match *self {
            Self::None { window } => Box::new(Fixed::new(window, mss)),
            Self::Reno => Box::new(Reno::new(initial_window)),
            Self::Reno002 { ssthresh } => {
                Box::new(Reno002::new(initial_window, ssthresh.map(|segments| mss * segments)))
            }
            Self::Cubic { hystart, friendliness } => {
                Box::new(Cubic::new(initial_window, hystart, friendliness))
            }
            Self::Bbr { overflow } => Box::new(Bbr::new(mss, initial_window, overflow)),
            Self::Bbr3 => Box::new(Bbr3::new(mss, initial_window)),
            Self::Vegas => Box::new(Vegas::new(initial_window)),
            Self::Veno => Box::new(Veno::new(initial_window)),
            Self::Westwood => Box::new(Westwood::new(initial_window)),
            Self::Illinois => Box::new(Illinois::new(initial_window)),
            Self::Htcp => Box::new(Htcp::new(initial_window)),
            Self::Highspeed => Box::new(Highspeed::new(initial_window)),
            Self::Scalable => Box::new(Scalable::new(initial_window)),
            Self::Bic => Box::new(Bic::new(initial_window)),
            Self::Hybla => Box::new(Hybla::new(initial_window)),
            Self::Yeah => Box::new(Yeah::new(initial_window)),
            Self::Lp { offsets } => Box::new(Lp::new(initial_window, offsets)),
            Self::Nv => Box::new(Nv::new(initial_window)),
            Self::Cdg => Box::new(Cdg::new(initial_window)),
            Self::Dctcp { gain, alpha } => Box::new(Dctcp::new(initial_window, gain, alpha)),
            Self::Prague { rtt } => Box::new(Prague::new(initial_window, rtt)),
            Self::Ledbat { target } => Box::new(Ledbat::new(mss, target)),
            Self::Copa { delta, mode } => Box::new(Copa::new(initial_window, delta, mode)),
            Self::Parametric { increase, decrease } => {
                Box::new(Parametric::new(initial_window, increase, decrease))
            }
            Self::Muzha { table, options } => {
                Box::new(Muzha::new(mss, initial_window, table, options))
            }
            Self::Muzha2 => Box::new(Muzha2::new(mss, initial_window)),
            Self::Xcp => Box::new(Xcp::new(initial_window)),
            Self::Rcp => Box::new(Rcp::new(initial_window)),
            Self::AntiEcn => Box::new(AntiEcn::new(initial_window)),
            Self::Kernel(name) => return Err(CcBuildError::Kernel(name)),
            Self::Script(ref script) => return script.build(mss, initial_window),
        })
    }
}

impl FromStr for CcConfig {
    type Err = CcConfigError;

    fn from_str(text: &str) -> Result<Self, CcConfigError> {
        Self::parse(text)
    }
}

/// Draft §2.4.4 of Prague: of shorter round trips, flows behave as if theirs were so long.
const PRAGUE_RTT: Duration = Duration::from_millis(25);
/// RFC 6817 §2.5: the most that it allows.
const LEDBAT_TARGET: Duration = Duration::from_millis(100);
/// The levels of the slides' own table.
const DEFAULT_LEVELS: u8 = 5;

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;

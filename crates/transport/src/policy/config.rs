//! The one list of route-failure policies: names, parameters, construction.
//!
//! A policy is written `name` or `name(parameters)`: `tcp-f`, `tcp-f(timer=5s)`, `elfn(probe=1s,rto=reset)`.

use std::fmt;
use std::str::FromStr;

use weir_units::{Duration, known};

use super::atcp::Atcp;
use super::bus::{Bus, BusConfig};
use super::elfn::{Elfn, ElfnConfig};
use super::tcp_f::{TcpF, TcpFConfig};
use super::{AtResume, Policy};
use crate::catalogue::CatalogueEntry;

/// Which route-failure policy, with its parameters.
///
/// ```
/// use weir_transport::{ElfnConfig, RoutePolicy};
///
/// assert_eq!("elfn".parse(), Ok(RoutePolicy::Elfn(ElfnConfig::default())));
/// for entry in RoutePolicy::CATALOGUE {
///     assert!(entry.examples.iter().all(|example| example.parse::<RoutePolicy>().is_ok()));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RoutePolicy {
    /// Notices are ignored.
    #[default]
    None,
    /// TCP-F.
    TcpF(TcpFConfig),
    /// ELFN.
    Elfn(ElfnConfig),
    /// ATCP.
    Atcp,
    /// TCP-BuS.
    Bus(BusConfig),
}

/// A policy that does not exist, or parameters that it does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RoutePolicyError {
    /// No such policy.
    #[error("unknown route policy '{name}'; {known}", known = policies(name))]
    Unknown {
        /// The requested value.
        name: String,
    },
    /// A parenthesis is missing or misplaced.
    #[error(
        "'{text}' is not a route policy: write name or name(parameters), as in tcp-f(timer=10s)"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// A parameter that the policy does not take.
    #[error("route policy '{policy}' does not take '{given}': {allowed}")]
    Parameter {
        /// The policy.
        policy: &'static str,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A value out of range or unreadable.
    #[error("route policy '{policy}': {parameter} = '{value}', allowed is {allowed}")]
    Value {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

fn policies(wanted: &str) -> impl fmt::Display {
    known(wanted, RoutePolicy::CATALOGUE.iter().map(|entry| entry.name))
}

impl RoutePolicy {
    /// Every policy, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[CatalogueEntry] = &[
        CatalogueEntry {
            name: "none",
            summary: "ignores what the network says of its routes",
            parameters: "",
            examples: &["none"],
        },
        CatalogueEntry {
            name: "tcp-f",
            summary: "snoozes from the notice of a failure to that of a route, then resends (TCP-F)",
            parameters: "timer=10s",
            examples: &["tcp-f", "tcp-f(timer=5s)"],
        },
        CatalogueEntry {
            name: "elfn",
            summary: "stands by after a failure and probes until something is acknowledged (ELFN)",
            parameters: "probe=2s,window=keep|one,rto=keep|reset",
            examples: &["elfn", "elfn(probe=500ms)", "elfn(window=one)", "elfn(rto=reset)"],
        },
        CatalogueEntry {
            name: "atcp",
            summary: "repairs losses itself unless ECN reports congestion, probes while disconnected (ATCP)",
            parameters: "",
            examples: &["atcp"],
        },
        CatalogueEntry {
            name: "bus",
            summary: "waits for the repair, then resends what does not wait at the pivoting node (TCP-BuS)",
            parameters: "probe=2s",
            examples: &["bus", "bus(probe=500ms)"],
        },
    ];

    /// The policy at work; `None` for none.
    pub(crate) fn build(self) -> Option<Box<dyn Policy>> {
        match self {
            Self::None => None,
            Self::TcpF(config) => Some(Box::new(TcpF::new(config))),
            Self::Elfn(config) => Some(Box::new(Elfn::new(config))),
            Self::Atcp => Some(Box::new(Atcp::default())),
            Self::Bus(config) => Some(Box::new(Bus::new(config))),
        }
    }
}

impl FromStr for RoutePolicy {
    type Err = RoutePolicyError;

    fn from_str(text: &str) -> Result<Self, RoutePolicyError> {
        let given = Arguments::split(text)?;
        match given.policy {
            "tcp-f" => given.tcp_f().map(Self::TcpF),
            "elfn" => given.elfn().map(Self::Elfn),
            "bus" => given.bus().map(Self::Bus),
            "atcp" => given.nothing().map(|()| Self::Atcp),
            _ => given.nothing().map(|()| Self::None),
        }
    }
}

/// A name of the catalogue and its parameters.
struct Arguments<'a> {
    policy: &'static str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    fn split(text: &'a str) -> Result<Self, RoutePolicyError> {
        let malformed = || RoutePolicyError::Malformed { text: text.to_owned() };
        let (name, rest) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => {
                (name.trim(), Some(rest.strip_suffix(')').ok_or_else(malformed)?))
            }
        };
        if name.contains(')') || rest.is_some_and(|rest| rest.contains(['(', ')'])) {
            return Err(malformed());
        }
        let entry = RoutePolicy::CATALOGUE.iter().find(|entry| entry.name == name);
        let policy = entry.ok_or_else(|| RoutePolicyError::Unknown { name: name.to_owned() })?.name;
        let parts = rest.into_iter().flat_map(|rest| rest.split(','));
        let parameters = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
        let parameters = parameters.map(|(key, value)| (key.trim(), value.trim()));
        Ok(Self { policy, parameters: parameters.collect() })
    }

    fn nothing(&self) -> Result<(), RoutePolicyError> {
        match self.parameters.first() {
            None => Ok(()),
            Some((key, _)) => Err(self.refuse(key, "it has no parameters")),
        }
    }

    fn tcp_f(&self) -> Result<TcpFConfig, RoutePolicyError> {
        let mut config = TcpFConfig::default();
        for (key, value) in &self.parameters {
            match *key {
                "timer" => config.timer = self.time("timer", value)?,
                _ => return Err(self.refuse(key, "write timer=10s")),
            }
        }
        Ok(config)
    }

    fn elfn(&self) -> Result<ElfnConfig, RoutePolicyError> {
        let mut config = ElfnConfig::default();
        for (key, value) in &self.parameters {
            match *key {
                "probe" => config.probe = self.time("probe", value)?,
                "window" => {
                    config.window = self.at_resume("window", value, "one", "keep or one")?
                }
                "rto" => config.rto = self.at_resume("rto", value, "reset", "keep or reset")?,
                _ => return Err(self.refuse(key, "write probe=2s, window=one or rto=reset")),
            }
        }
        Ok(config)
    }

    fn bus(&self) -> Result<BusConfig, RoutePolicyError> {
        let mut config = BusConfig::default();
        for (key, value) in &self.parameters {
            match *key {
                "probe" => config.probe = self.time("probe", value)?,
                _ => return Err(self.refuse(key, "write probe=2s")),
            }
        }
        Ok(config)
    }

    fn time(&self, parameter: &'static str, value: &str) -> Result<Duration, RoutePolicyError> {
        let time: Option<Duration> = value.parse().ok();
        time.filter(|time| SHORTEST <= *time && *time <= LONGEST)
            .ok_or_else(|| self.bad_value(parameter, value, "a time from 1ms to 1h"))
    }

    fn at_resume(
        &self,
        parameter: &'static str,
        value: &str,
        anew: &str,
        allowed: &'static str,
    ) -> Result<AtResume, RoutePolicyError> {
        match value {
            "keep" => Ok(AtResume::Keep),
            _ if value == anew => Ok(AtResume::Anew),
            _ => Err(self.bad_value(parameter, value, allowed)),
        }
    }

    fn refuse(&self, given: &str, allowed: &'static str) -> RoutePolicyError {
        RoutePolicyError::Parameter { policy: self.policy, given: given.to_owned(), allowed }
    }

    fn bad_value(
        &self,
        parameter: &'static str,
        value: &str,
        allowed: &'static str,
    ) -> RoutePolicyError {
        RoutePolicyError::Value { policy: self.policy, parameter, value: value.to_owned(), allowed }
    }
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(3_600);

impl fmt::Display for RoutePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, parameters) = match self {
            Self::None => ("none", vec![]),
            Self::Atcp => ("atcp", vec![]),
            Self::TcpF(config) => ("tcp-f", config.written()),
            Self::Elfn(config) => ("elfn", config.written()),
            Self::Bus(config) => ("bus", config.written()),
        };
        f.write_str(name)?;
        if parameters.is_empty() { Ok(()) } else { write!(f, "({})", parameters.join(",")) }
    }
}

impl TcpFConfig {
    /// What differs from the defaults.
    fn written(&self) -> Vec<String> {
        let timer = (*self != Self::default()).then(|| format!("timer={}", self.timer));
        timer.into_iter().collect()
    }
}

impl ElfnConfig {
    /// What differs from the defaults.
    fn written(&self) -> Vec<String> {
        let probe = (self.probe != Self::default().probe).then(|| format!("probe={}", self.probe));
        let window = (self.window == AtResume::Anew).then(|| "window=one".to_owned());
        let rto = (self.rto == AtResume::Anew).then(|| "rto=reset".to_owned());
        [probe, window, rto].into_iter().flatten().collect()
    }
}

impl BusConfig {
    /// What differs from the defaults.
    fn written(&self) -> Vec<String> {
        let probe = (self.probe != Self::default().probe).then(|| format!("probe={}", self.probe));
        probe.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_reads_back_as_it_prints() {
        for entry in RoutePolicy::CATALOGUE {
            assert_eq!(entry.examples.first(), Some(&entry.name));
            for example in entry.examples {
                let policy: RoutePolicy = example.parse().unwrap();
                assert_eq!(policy.to_string(), *example);
                assert_eq!(policy.build().is_none(), *example == "none");
            }
        }
        let all: RoutePolicy = "elfn( rto=reset, window=one ,probe=1s)".parse().unwrap();
        assert_eq!(all.to_string(), "elfn(probe=1s,window=one,rto=reset)");
        assert_eq!("tcp-f(timer=10s)".parse::<RoutePolicy>().unwrap().to_string(), "tcp-f");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            (
                "tcpf",
                "unknown route policy 'tcpf'; did you mean tcp-f? There are none, tcp-f, elfn, atcp, bus",
            ),
            (
                "tcp-f(timer=10s",
                "'tcp-f(timer=10s' is not a route policy: write name or name(parameters), as in \
                 tcp-f(timer=10s)",
            ),
            ("tcp-f(probe=1s)", "route policy 'tcp-f' does not take 'probe': write timer=10s"),
            ("atcp(1)", "route policy 'atcp' does not take '1': it has no parameters"),
            ("none()", "route policy 'none' does not take '': it has no parameters"),
            (
                "elfn(probe=0s)",
                "route policy 'elfn': probe = '0s', allowed is a time from 1ms to 1h",
            ),
            ("elfn(rto=one)", "route policy 'elfn': rto = 'one', allowed is keep or reset"),
            ("bus(probe)", "route policy 'bus': probe = '', allowed is a time from 1ms to 1h"),
        ] {
            assert_eq!(text.parse::<RoutePolicy>().unwrap_err().to_string(), message);
        }
    }
}

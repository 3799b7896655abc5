//! The stacks that a scenario may name: a host, and one of its controllers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use weir_scene::ForeignStack;
use weir_units::known;

use crate::settings::{Make, Settings, ours};

/// A host and a controller in it: the host's own, as `noq/cubic`, or one of ours, as `noq/weir-cubic`.
#[derive(Clone, Debug)]
pub struct StackName {
    name: String,
    make: Make,
}

/// Every stack with a controller of its host, and one with a controller of ours per host: its name, and what it is.
const STACKS: &[(&str, &str)] = &[
    ("quinn/cubic", "quinn-proto 0.11 with its CUBIC"),
    ("quinn/newreno", "quinn-proto 0.11 with its NewReno"),
    ("quinn/bbr", "quinn-proto 0.11 with its BBR; its pacer ignores the rate that BBR sets"),
    (
        "quinn/weir-cubic",
        "quinn-proto 0.11 with our CUBIC; in the same way any other controller that needs no pacing rate",
    ),
    ("noq/cubic", "noq-proto 1.4 with its CUBIC"),
    ("noq/newreno", "noq-proto 1.4 with its NewReno"),
    (
        "noq/bbr3",
        "noq-proto 1.4 with its BBRv3, which draws random numbers without a seed: the same seed does \
         not give the same run",
    ),
    (
        "noq/weir-cubic",
        "noq-proto 1.4 with our CUBIC; in the same way any other controller that needs no ECN marks",
    ),
];

/// A stack that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StackNameError {
    /// A host has no such controller.
    #[error("there is no stack '{wanted}'; {}", known(.wanted, STACKS.iter().map(|(name, _)| *name)))]
    Unknown {
        /// What was wanted.
        wanted: String,
    },
    /// A controller of ours that does not exist, or that the host cannot run.
    #[error("stack '{wanted}': {reason}")]
    Controller {
        /// What was wanted.
        wanted: String,
        /// Why there is none.
        reason: String,
    },
    /// The hosts were left out when the program was built.
    #[error("this build of weir does not contain the stack '{wanted}'; `make foreign` adds it")]
    LeftOut {
        /// What was wanted.
        wanted: String,
    },
}

impl StackName {
    /// Whether `text` names a host, with whatever controller.
    pub fn is_hosted(text: &str) -> bool {
        host(text).is_some_and(|wanted| STACKS.iter().any(|(name, _)| host(name) == Some(wanted)))
    }

    /// Every stack with a controller of its host, and an example of ours: its name, and what it is.
    pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static str)> {
        STACKS.iter().copied()
    }

    /// The stack with these settings.
    pub fn build(&self, settings: Settings) -> Arc<dyn ForeignStack> {
        (self.make)(&self.name, settings)
    }
}

fn host(text: &str) -> Option<&str> {
    text.trim().split('/').next()
}

/// A build without hosts makes none.
#[cfg(not(feature = "hosts"))]
fn make(name: &str) -> Result<Make, StackNameError> {
    Err(StackNameError::LeftOut { wanted: name.to_owned() })
}

#[cfg(feature = "hosts")]
fn make(name: &str) -> Result<Make, StackNameError> {
    let refused = |reason| StackNameError::Controller { wanted: name.to_owned(), reason };
    crate::makers::make(name).map_err(refused)
}

impl FromStr for StackName {
    type Err = StackNameError;

    fn from_str(text: &str) -> Result<Self, StackNameError> {
        let name = text.trim().to_owned();
        let is_listed = STACKS.iter().any(|(known, _)| *known == name);
        let is_ours = Self::is_hosted(&name) && ours(&name).is_some();
        if !is_listed && !is_ours {
            return Err(StackNameError::Unknown { wanted: name });
        }
        Ok(Self { make: make(&name)?, name })
    }
}

impl PartialEq for StackName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_of_the_list_is_hosted_and_others_are_not() {
        for (name, _) in StackName::catalogue() {
            assert!(StackName::is_hosted(name));
            assert_eq!(make(name).is_ok(), cfg!(feature = "hosts"), "{name}");
        }
        assert!(StackName::is_hosted("quinn"));
        assert!(!StackName::is_hosted("rack/cubic"));
        let error = "noq/cubik".parse::<StackName>().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no stack 'noq/cubik'; did you mean noq/cubic? There are")
        );
    }

    #[cfg(feature = "hosts")]
    #[test]
    fn a_controller_of_ours_is_any_that_the_host_can_run() {
        let parse = |text: &str| text.parse::<StackName>().map(|name| name.to_string());
        assert_eq!(parse("noq/weir-bbr3").as_deref(), Ok("noq/weir-bbr3"));
        assert_eq!(
            parse(" quinn/weir-cubic(hystart=off)").as_deref(),
            Ok("quinn/weir-cubic(hystart=off)")
        );
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            error("quinn/weir-bbr3"),
            "stack 'quinn/weir-bbr3': quinn 0.11 cannot run 'bbr3': it ignores the pacing rate of a controller"
        );
        assert!(error("noq/weir-cubik").contains("did you mean cubic?"));
        assert!(error("smoltcp/weir-cubic").starts_with("there is no stack 'smoltcp/weir-cubic'"));
    }

    #[cfg(not(feature = "hosts"))]
    #[test]
    fn a_build_without_hosts_names_the_command_that_adds_them() {
        let error = "noq/cubic".parse::<StackName>().unwrap_err().to_string();
        assert!(error.contains("'noq/cubic'; `make foreign` adds it"), "{error}");
    }
}

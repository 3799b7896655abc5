//! The stacks that a scenario may name: a host, and one of its controllers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use weir_scene::ForeignStack;
use weir_units::known;

use crate::settings::{Make, Settings};

/// A host and a controller in it, as `noq/cubic`.
#[derive(Clone, Copy, Debug)]
pub struct StackName {
    name: &'static str,
    make: Make,
}

/// Every stack: its name, and what it is.
const STACKS: &[(&str, &str)] = &[
    ("quinn/cubic", "quinn-proto 0.11 with its CUBIC"),
    ("quinn/newreno", "quinn-proto 0.11 with its NewReno"),
    ("quinn/bbr", "quinn-proto 0.11 with its BBR; its pacer ignores the rate that BBR sets"),
    ("noq/cubic", "noq-proto 1.4 with its CUBIC"),
    ("noq/newreno", "noq-proto 1.4 with its NewReno"),
    (
        "noq/bbr3",
        "noq-proto 1.4 with its BBRv3, which draws random numbers without a seed: the same seed does \
         not give the same run",
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
    /// The hosts were left out when the program was built.
    #[error("this build of weir does not contain the stack '{wanted}'; `make foreign` adds it")]
    LeftOut {
        /// What was wanted.
        wanted: &'static str,
    },
}

impl StackName {
    /// Whether `text` names a host, with whatever controller.
    pub fn is_hosted(text: &str) -> bool {
        host(text).is_some_and(|wanted| STACKS.iter().any(|(name, _)| host(name) == Some(wanted)))
    }

    /// Every stack: its name, and what it is.
    pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static str)> {
        STACKS.iter().copied()
    }

    /// The stack with these settings.
    pub fn build(self, settings: Settings) -> Arc<dyn ForeignStack> {
        (self.make)(self.name, settings)
    }
}

fn host(text: &str) -> Option<&str> {
    text.trim().split('/').next()
}

/// A build without hosts makes none.
#[cfg(not(feature = "hosts"))]
fn make(_: &str) -> Option<Make> {
    None
}

#[cfg(feature = "hosts")]
use crate::makers::make;

impl FromStr for StackName {
    type Err = StackNameError;

    fn from_str(text: &str) -> Result<Self, StackNameError> {
        let text = text.trim();
        let found = STACKS.iter().find(|(name, _)| *name == text);
        let (name, _) = found.ok_or_else(|| StackNameError::Unknown { wanted: text.to_owned() })?;
        let make = make(name).ok_or(StackNameError::LeftOut { wanted: name })?;
        Ok(Self { name, make })
    }
}

impl PartialEq for StackName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_of_the_list_is_hosted_and_others_are_not() {
        for (name, _) in StackName::catalogue() {
            assert!(StackName::is_hosted(name));
            assert_eq!(make(name).is_some(), cfg!(feature = "hosts"), "{name}");
        }
        assert!(StackName::is_hosted("quinn"));
        assert!(!StackName::is_hosted("rack/cubic"));
        let error = "noq/cubik".parse::<StackName>().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no stack 'noq/cubik'; did you mean noq/cubic? There are")
        );
    }

    #[cfg(not(feature = "hosts"))]
    #[test]
    fn a_build_without_hosts_names_the_command_that_adds_them() {
        let error = "noq/cubic".parse::<StackName>().unwrap_err().to_string();
        assert!(error.contains("'noq/cubic'; `make foreign` adds it"), "{error}");
    }
}

//! A controller as text, and what it is made of. The controllers themselves are in `config/list.rs`.
//!
//! A controller is written `name` or `name(parameters)`: `cubic`, `none(30)`, `aimd(1,0.5)`,
//! `cubic(hystart=off)`.

mod arguments;
mod describe;
mod linear;
mod list;
mod modifiers;
mod parse;
mod print;
mod resume;
mod script;

use std::fmt;
use std::str::FromStr;

use weir_units::known;

use self::arguments::Arguments;
use self::list::LIST;
use crate::KernelName;

pub use self::list::CcConfig;
pub use self::script::{BuildScripted, Script};

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
    pub const CATALOGUE: &[CatalogueEntry] = &entries();

    /// Reads `name` or `name(parameters)`; a name may be that of a class in a file ([`Script`]).
    ///
    /// # Errors
    /// For an unknown name, or parameters that the controller does not take.
    pub fn parse(text: &str) -> Result<Self, CcConfigError> {
        if Script::is_meant(text) {
            return Script::parse(text).map(Self::Script);
        }
        if let Some(read) = resume::read(text) {
            return read;
        }
        parse::read(&Arguments::split(text)?)
    }

    /// The same for flows that may be a kernel's, whose congestion controls have further names.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_also_kernels(text: &str) -> Result<Self, CcConfigError> {
        KernelName::parse(text.trim())
            .map_or_else(|| Self::parse(text), |name| Ok(Self::Kernel(name)))
    }
}

/// The lines of the list.
const fn entries() -> [CatalogueEntry; LIST.len()] {
    let mut entries = [LIST[0].entry; LIST.len()];
    let mut index = 0;
    while index < LIST.len() {
        entries[index] = LIST[index].entry;
        index += 1;
    }
    entries
}

impl FromStr for CcConfig {
    type Err = CcConfigError;

    fn from_str(text: &str) -> Result<Self, CcConfigError> {
        Self::parse(text)
    }
}

#[cfg(test)]
#[path = "config/tests.rs"]
mod tests;

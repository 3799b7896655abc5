//! A recovery scheme as text, and what it asks of the rest of a connection.

use std::fmt;
use std::str::FromStr;

use weir_cc::CcConfigError;
use weir_units::known;

use super::LossRecovery;
use super::describe::{Mistake, SackUse, Scheme};
use super::list::{LIST, RecoveryConfig};
use crate::catalogue::CatalogueEntry;
use crate::profile::DelayedAck;

/// A stack that cannot be read.
///
/// ```
/// use weir_transport::Stack;
///
/// let message = |text: &str| text.parse::<Stack>().unwrap_err().to_string();
/// assert!(message("rak/reno").starts_with("unknown recovery scheme 'rak'; did you mean rack?"));
/// assert_eq!(message("sack(3)/reno"), "recovery scheme 'sack' does not take '(3)': it has no parameters");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// No such recovery scheme.
    #[error("unknown recovery scheme '{0}'; {known}", known = known_schemes(.0))]
    UnknownRecovery(String),
    /// A recovery scheme in the place of a controller.
    #[error("'{0}' is a recovery scheme: write it with a controller, as in {0}/none")]
    SchemeAlone(String),
    /// A parenthesis is missing.
    #[error(
        "'{text}' is not a recovery scheme: write name or name(parameters), as in rack or go-back-n(30)"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// Parameters that the recovery scheme does not take.
    #[error("recovery scheme '{scheme}' does not take '({given})': {allowed}")]
    Parameters {
        /// The recovery scheme.
        scheme: &'static str,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// A parameter out of range or unreadable.
    #[error("recovery scheme '{scheme}': {parameter} = '{value}', allowed is {allowed}")]
    Value {
        /// The recovery scheme.
        scheme: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The controller cannot be read.
    #[error(transparent)]
    Controller(#[from] CcConfigError),
}

impl RecoveryConfig {
    /// Every scheme, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[CatalogueEntry] = &entries();

    /// When its receiver acknowledges: protocols of a first course acknowledge every segment; TCP delays,
    /// as Linux does.
    pub fn delayed_ack(self) -> DelayedAck {
        self.scheme().receiver.delayed_ack
    }

    /// Whether selective acknowledgements mean anything to the scheme.
    pub(crate) fn reads_sack(self) -> bool {
        !matches!(self.scheme().sack, SackUse::Ignored)
    }

    /// The scheme for a peer that does not acknowledge selectively.
    pub(crate) fn build_without_sack(self) -> Box<dyn LossRecovery> {
        match self.scheme().sack {
            SackUse::Needed { otherwise } => otherwise(),
            SackUse::Ignored | SackUse::Read => self.build(),
        }
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

impl FromStr for RecoveryConfig {
    type Err = StackError;

    /// Reads `name` or `name(parameters)`.
    fn from_str(text: &str) -> Result<Self, StackError> {
        let (name, given) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => {
                let malformed = || StackError::Malformed { text: text.to_owned() };
                (name.trim(), Some(rest.strip_suffix(')').ok_or_else(malformed)?))
            }
        };
        let Some(scheme) = LIST.iter().find(|listed| listed.entry.name == name) else {
            return Err(StackError::UnknownRecovery(name.to_owned()));
        };
        (scheme.read)(given).map_err(|mistake| scheme.error(given.unwrap_or_default(), mistake))
    }
}

impl Scheme<RecoveryConfig> {
    fn error(&self, given: &str, mistake: Mistake) -> StackError {
        let CatalogueEntry { name: scheme, parameters, .. } = self.entry;
        match mistake {
            Mistake::Value { parameter, value, allowed } => {
                StackError::Value { scheme, parameter, value, allowed }
            }
            Mistake::Refused => StackError::Parameters {
                scheme,
                given: given.to_owned(),
                allowed: match parameters {
                    "" => "it has no parameters".to_owned(),
                    form => format!("it takes {form}"),
                },
            },
        }
    }
}

impl fmt::Display for RecoveryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme().entry.name)?;
        match self.shown_parameters() {
            none if none.is_empty() => Ok(()),
            parameters => write!(f, "({parameters})"),
        }
    }
}

/// The names of the catalogue, for a message about one that is not among them.
fn known_schemes(wanted: &str) -> impl fmt::Display {
    known(wanted, RecoveryConfig::CATALOGUE.iter().map(|entry| entry.name))
}

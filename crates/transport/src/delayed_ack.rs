//! When the receiver acknowledges, as text: `off`, `rfc1122`, `linux`, `frequency(9,3)`.

use std::fmt;
use std::str::FromStr;

use crate::{AckFrequency, DelayedAck};

/// Text that is no policy.
///
/// ```
/// use weir_transport::DelayedAck;
///
/// let error = "frequency(x)".parse::<DelayedAck>().unwrap_err();
/// assert!(error.to_string().starts_with("'frequency(x)' is not allowed"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not allowed; there are off, rfc1122, linux, frequency(THRESHOLD,REORDERING), each number from 0 to \
     {MOST}, as in frequency(9,3)"
)]
pub struct DelayedAckError(String);

impl FromStr for DelayedAck {
    type Err = DelayedAckError;

    fn from_str(text: &str) -> Result<Self, DelayedAckError> {
        match text.trim() {
            "off" => Some(Self::Off),
            "rfc1122" => Some(Self::Rfc1122),
            "linux" => Some(Self::Linux),
            other => other.strip_prefix("frequency").and_then(frequency).map(Self::Frequency),
        }
        .ok_or_else(|| DelayedAckError(text.to_owned()))
    }
}

/// Reads what follows the name.
fn frequency(rest: &str) -> Option<AckFrequency> {
    let usual = AckFrequency::default();
    if rest.is_empty() {
        return Some(usual);
    }
    let given = rest.strip_prefix('(')?.strip_suffix(')')?;
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number <= MOST);
    Some(match given.split_once(',') {
        None => AckFrequency { threshold: number(given)?, ..usual },
        Some((threshold, reordering)) => {
            AckFrequency { threshold: number(threshold)?, reordering: number(reordering)? }
        }
    })
}

impl fmt::Display for DelayedAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Off => f.write_str("off"),
            Self::Rfc1122 => f.write_str("rfc1122"),
            Self::Linux => f.write_str("linux"),
            Self::Frequency(AckFrequency { threshold, reordering }) => {
                write!(f, "frequency({threshold},{reordering})")
            }
        }
    }
}

/// What keeps sums of them in bytes small.
const MOST: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_back_as_it_prints() {
        for text in ["off", "rfc1122", "linux", "frequency(1,1)", "frequency(9,0)"] {
            assert_eq!(text.parse::<DelayedAck>().unwrap().to_string(), text);
        }
        let short = ["frequency", "frequency( 9 )", "frequency(0, 5)"];
        let read = short.map(|text| text.parse::<DelayedAck>().unwrap().to_string());
        assert_eq!(read, ["frequency(1,1)", "frequency(9,1)", "frequency(0,5)"]);
        for text in ["on", "", "frequency()", "frequency(1", "frequency(1,2,3)", "frequency(1001)"]
        {
            assert!(text.parse::<DelayedAck>().is_err(), "{text}");
        }
    }
}

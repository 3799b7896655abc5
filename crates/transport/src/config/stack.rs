//! A stack as text: a recovery scheme and a controller.

use std::fmt;
use std::str::FromStr;

use weir_cc::{CcConfig, CcConfigError, Script};

use crate::recovery::{RecoveryConfig, StackError};

/// A recovery scheme and a controller, written `recovery/controller`.
///
/// ```
/// use weir_transport::{GoBackNConfig, RecoveryConfig, Stack};
///
/// let stack: Stack = "go-back-n(30)/none".parse()?;
/// let config = GoBackNConfig { window: Some(30), ..GoBackNConfig::default() };
/// assert_eq!(stack.recovery, RecoveryConfig::GoBackN(config));
/// assert_eq!("cubic".parse::<Stack>()?.to_string(), "rack/cubic");
/// # Ok::<(), weir_transport::StackError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// What is lost, what is sent again, when.
    pub recovery: RecoveryConfig,
    /// How much may be in flight.
    pub controller: CcConfig,
}

impl FromStr for Stack {
    type Err = StackError;

    /// Reads `recovery/controller`; a bare controller runs over `rack`, as Linux does.
    fn from_str(text: &str) -> Result<Self, StackError> {
        Self::read(text, CcConfig::parse)
    }
}

impl Stack {
    /// The same for flows that may be a kernel's, whose congestion controls have further names.
    ///
    /// # Errors
    /// For what is no stack.
    pub fn parse_also_kernels(text: &str) -> Result<Self, StackError> {
        Self::read(text, CcConfig::parse_also_kernels)
    }

    fn read(
        text: &str,
        controller_of: impl Fn(&str) -> Result<CcConfig, CcConfigError>,
    ) -> Result<Self, StackError> {
        let (recovery, controller) = Self::split(text.trim());
        let read = controller_of(controller.trim());
        if read.is_err() && controller == text.trim() && text.parse::<RecoveryConfig>().is_ok() {
            return Err(StackError::SchemeAlone(controller.to_owned()));
        }
        Ok(Self { recovery: recovery.parse()?, controller: read? })
    }

    /// Splits a stack into its recovery scheme and its controller, without a check of either.
    ///
    /// A path to a controller's file has slashes too: what comes first is a folder unless it is a
    /// recovery scheme. One in parentheses belongs to a parameter, as in `dctcp(g=1/8)`.
    pub fn split(text: &str) -> (&str, &str) {
        match split_outside(text) {
            Some((first, _))
                if Script::is_meant(text) && first.parse::<RecoveryConfig>().is_err() =>
            {
                ("rack", text)
            }
            Some(split) => split,
            None => ("rack", text),
        }
    }
}

/// Splits at the first slash outside of parentheses; at the first of all if one of those is not closed.
fn split_outside(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    if depth > 0 { text.split_once('/') } else { None }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.recovery, self.controller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_reads_back_as_it_prints() {
        for text in [
            "rack/reno",
            "rack(tlp=off)/reno",
            "rack(detection=count)/reno",
            "rack(detection=count,tlp=off)/reno",
            "go-back-n(30)/none",
            "selective-repeat/none",
            "sack/reno",
        ] {
            let stack: Stack = text.parse().unwrap();
            assert_eq!(stack.to_string(), text);
        }
        assert_eq!("reno".parse::<Stack>().unwrap().to_string(), "rack/reno");
        for text in ["dctcp(g=1/8)", "sack/dctcp(g=1/8,alpha0=0)"] {
            let stack: Stack = text.parse().unwrap();
            assert!(stack.to_string().contains("/dctcp(g=1/8,alpha0="), "{stack}");
        }
    }

    #[test]
    fn a_recovery_scheme_alone_is_named() {
        let message = |text: &str| text.parse::<Stack>().unwrap_err().to_string();
        let asked = "'go-back-n(10)' is a recovery scheme: write it with a controller, as in go-back-n(10)/none";
        assert_eq!(message("go-back-n(10)"), asked);
        assert!(message("stop-and-wait").contains("is a recovery scheme"));
        assert!(message("nonsense").starts_with("unknown controller 'nonsense'"));
    }

    #[test]
    fn a_controller_in_a_file_may_follow_a_recovery_scheme_or_stand_alone() {
        for (text, stack) in [
            ("mine.py:Mine", "rack/mine.py:Mine"),
            ("rack/mine.py:Mine", "rack/mine.py:Mine"),
            ("newreno/dir/mine.py:Mine(b=0.5)", "newreno/dir/mine.py:Mine(b=0.5)"),
            ("go-back-n(30)/../mine.py:Mine", "go-back-n(30)/../mine.py:Mine"),
            ("dir/mine.py:Mine", "rack/dir/mine.py:Mine"),
            ("./rack/mine.py:Mine", "rack/./rack/mine.py:Mine"),
            ("/tmp/mine.py:Mine", "rack//tmp/mine.py:Mine"),
            ("rack//tmp/mine.py:Mine", "rack//tmp/mine.py:Mine"),
        ] {
            let read: Stack = text.parse().unwrap();
            assert_eq!(read.to_string(), stack);
            assert_eq!(stack.parse::<Stack>().unwrap(), read);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("tcp/reno", "unknown recovery scheme 'tcp'"),
            ("sack(3)/reno", "'sack' does not take '(3)': it has no parameters"),
            (
                "rack(3)/reno",
                "'rack' does not take '(3)': it takes detection=time|count,tlp=on|off",
            ),
            ("rack(tlp=no)/reno", "'rack': tlp = 'no', allowed is on, off"),
            ("rack(tlp=off/reno", "'rack(tlp=off' is not a recovery scheme"),
            (
                "go-back-n(0)/none",
                "window = '0', allowed is a whole number of segments, at least 1",
            ),
            ("go-back-n(x)/none", "'go-back-n': window = 'x'"),
            ("rack/fast", "fast"),
        ] {
            let message = text.parse::<Stack>().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}

//! Programs that are not ours, as a scenario names them.
//!
//! A stack `contender:NAME(key=value,…)` names a definition file. What reads these files gives the
//! commands before a run.

use std::fmt;
use std::str::FromStr;

use weir_scene::{ProgramSpec, TransportSpec};

/// The name of a definition, and parameters for its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContenderName {
    /// A shipped definition, or the path of a file that ends in `.toml`.
    pub name: String,
    /// Parameters in the order in which they are written.
    pub parameters: Vec<(String, String)>,
}

/// What a stack begins with that is a contender.
const PREFIX: &str = "contender:";

impl ContenderName {
    /// Whether `text` means a contender, if only a wrong one.
    pub fn is_meant(text: &str) -> bool {
        text.trim().starts_with(PREFIX)
    }

    /// The value of a parameter.
    pub(crate) fn parameter(&self, key: &str) -> Option<&str> {
        let (_, value) = self.parameters.iter().find(|(known, _)| known == key)?;
        Some(value)
    }

    /// Lowered for the worlds, without commands.
    pub(crate) fn transport(&self) -> TransportSpec {
        TransportSpec::Program(ProgramSpec { name: self.to_string(), commands: None })
    }
}

impl FromStr for ContenderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not allowed; write {PREFIX}NAME or {PREFIX}NAME(key=value,…)");
        let rest = text.trim().strip_prefix(PREFIX).ok_or_else(wrong)?;
        let (name, inner) = match rest.split_once('(') {
            Some((name, inner)) => (name, inner.strip_suffix(')').ok_or_else(wrong)?),
            None => (rest, ""),
        };
        let is_plain = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
            !text.is_empty() && text.chars().all(allowed)
        };
        let mut parameters: Vec<(String, String)> = Vec::new();
        for item in inner.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let (key, value) = item.split_once('=').ok_or_else(wrong)?;
            let (key, value) = (key.trim(), value.trim());
            let is_new = parameters.iter().all(|(known, _)| known != key);
            if !is_new || !is_plain(key) || !is_plain(value) {
                return Err(wrong());
            }
            parameters.push((key.to_owned(), value.to_owned()));
        }
        if is_plain(name) { Ok(Self { name: name.to_owned(), parameters }) } else { Err(wrong()) }
    }
}

impl fmt::Display for ContenderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.name)?;
        for (number, (key, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{key}={value}", if number == 0 { "(" } else { "," })?;
        }
        f.write_str(if self.parameters.is_empty() { "" } else { ")" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_and_written() {
        for (text, canonical) in [
            ("contender:curl", "contender:curl"),
            (" contender:iperf3(cc=cubic)", "contender:iperf3(cc=cubic)"),
            ("contender:./mine.toml( cc=a , mode=b )", "contender:./mine.toml(cc=a,mode=b)"),
            ("contender:curl()", "contender:curl"),
        ] {
            let name: ContenderName = text.parse().expect(text);
            assert_eq!(name.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(name));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "contender:",
            "contender:a(cc)",
            "contender:a(cc=b",
            "contender:a(cc=)",
            "contender:a(cc=b,cc=c)",
            "contender:a b",
            "contender:a(cc=$(rm))",
        ] {
            let error = text.parse::<ContenderName>().expect_err(text);
            assert!(error.contains("write contender:NAME"), "{error}");
        }
    }
}

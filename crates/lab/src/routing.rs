//! Key `routing`: how switches choose among links of equal cost.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_scene::Balancing;
use weir_units::Duration;

use crate::keys::form;

/// [`Balancing`] as a scenario writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routing(pub Balancing);

impl FromStr for Routing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("'{text}' is not allowed; there are {FORMS}");
        let argument = |name: &str| -> Option<&str> {
            Some(text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?.trim())
        };
        if let Some(gap) = argument("flowlet") {
            let gap: Duration = gap.parse().map_err(|_| refuse())?;
            return Ok(Self(Balancing::Flowlet(gap)));
        }
        if let Some(paths) = argument("packet-ecmp") {
            let paths = paths.strip_prefix("paths").and_then(|rest| rest.trim().strip_prefix('='));
            let paths = paths.and_then(|paths| paths.trim().parse().ok());
            let paths = paths.filter(|paths| (1..=MAX_PATHS).contains(paths)).ok_or_else(refuse)?;
            return Ok(Self(Balancing::PacketEcmp(paths)));
        }
        let found = WORDS.iter().find(|(word, _)| *word == text);
        found.map(|(_, balancing)| Self(*balancing)).ok_or_else(refuse)
    }
}

impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Balancing::Flowlet(gap) => write!(f, "flowlet({gap})"),
            Balancing::PacketEcmp(paths) => write!(f, "packet-ecmp(paths={paths})"),
            balancing => {
                let found = WORDS.iter().find(|(_, known)| *known == balancing);
                f.write_str(found.map_or("", |(word, _)| word))
            }
        }
    }
}

impl Serialize for Routing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Routing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

form! {
    Routing => "`single`, `ecmp`, `spray`, `spray-rr`, `flowlet(GAP)` or `packet-ecmp(paths=N)`",
}

const WORDS: &[(&str, Balancing)] = &[
    ("single", Balancing::Single),
    ("ecmp", Balancing::Ecmp),
    ("spray", Balancing::Spray),
    ("spray-rr", Balancing::SprayRoundRobin),
];
const FORMS: &str = "single, ecmp, spray, spray-rr, flowlet(100us) and packet-ecmp(paths=128), with \
                     1 to 65536 paths";
const MAX_PATHS: u32 = 65_536;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_is_written_as_it_is_read() {
        for text in
            ["single", "ecmp", "spray", "spray-rr", "flowlet(100us)", "packet-ecmp(paths=128)"]
        {
            let routing: Routing = text.parse().unwrap();
            assert_eq!(routing.to_string(), text);
        }
        for text in
            ["", "ecmp()", "flowlet", "flowlet(100)", "packet-ecmp(8)", "packet-ecmp(paths=0)"]
        {
            let message = text.parse::<Routing>().unwrap_err();
            assert!(
                message.starts_with(&format!("'{text}' is not allowed; there are")),
                "{message}"
            );
        }
    }
}

//! Key `buffer`: memory that the ports of a switch share.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_scene::Alpha;
use weir_units::Bytes;

use crate::direction::FULL_PACKET;
use crate::keys::{form, section};
use crate::range::at_least;

section! {
    /// Memory of each switch, which its ports share.
    pub struct Buffer {
        /// Memory of a switch. A port keeps the limit of its own queue as well.
        total: Bytes [at_least(FULL_PACKET).because("a full packet")] = Bytes(32_000_000),
        /// A port takes packets while it holds less than this multiple of the memory that is free: a
        /// fraction or a number, as in `1/8` or `2`.
        alpha: Multiple = Multiple(Alpha { times: 1, over: 8 }),
        /// With `pfc`: memory that each port keeps for what arrives after it has sent a pause. `auto`, the
        /// default, is what its link needs: twice rate times delay, 64 bytes and two packets.
        headroom: Option<Headroom> = None,
        /// With `pfc`: memory that each port has for itself, by default `4kb`.
        reserve: Option<Bytes> = None,
    }
}

/// Size of the headroom of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// What its link needs.
    Auto,
    /// This much.
    Size(Bytes),
}

impl FromStr for Headroom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            size => size.parse().map(Self::Size).map_err(|_| {
                format!("'{text}' is not allowed; write auto, or a size, as in 100kb")
            }),
        }
    }
}

impl fmt::Display for Headroom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Size(size) => size.fmt(f),
        }
    }
}

impl Serialize for Headroom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Headroom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// [`Alpha`] as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiple(pub Alpha);

impl FromStr for Multiple {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (times, over) = text.split_once('/').unwrap_or((text, "1"));
        let parsed = thousandths(times.trim()).zip(thousandths(over.trim()));
        let alpha = parsed.and_then(|(times, over)| {
            let shared = common_divisor(times, over);
            let [times, over] = [times, over].map(|part| part.checked_div(shared));
            let within = |(times, over): &(u64, u64)| {
                *over > 0 && times * MOST >= *over && *times <= over * MOST
            };
            let (times, over) = times.zip(over).filter(within)?;
            Some(Alpha { times: u32::try_from(times).ok()?, over: u32::try_from(over).ok()? })
        });
        alpha.map(Self).ok_or_else(|| format!("'{text}' is not allowed; {ALLOWED}"))
    }
}

/// A decimal number of at most three places, in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let sound = digits(whole) && digits(places) && places.len() <= 3 && whole.len() <= 6;
    sound.then(|| format!("{whole}{places:0<3}").parse().ok()).flatten()
}

fn common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

impl fmt::Display for Multiple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Alpha { times, over: 1 } => write!(f, "{times}"),
            Alpha { times, over } => write!(f, "{times}/{over}"),
        }
    }
}

impl Serialize for Multiple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Text or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Whole(u64),
    Number(f64),
}

impl<'de> Deserialize<'de> for Multiple {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Written::deserialize(deserializer) {
            Ok(Written::Text(text)) => text,
            Ok(Written::Whole(number)) => number.to_string(),
            Ok(Written::Number(number)) => number.to_string(),
            Err(_) => return Err(D::Error::custom(format!("it is no number; {ALLOWED}"))),
        };
        text.parse().map_err(D::Error::custom)
    }
}

form! {
    Buffer => "section",
    Multiple => "fraction or number",
    Headroom => "`auto` or size",
}

/// Switches have 1/128 to 8.
const MOST: u64 = 1_024;
const ALLOWED: &str = "write a fraction or a number from 1/1024 to 1024, as in 1/8, 0.5 or 2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_is_a_fraction_or_a_number() {
        let read = |text: &str| text.parse().map(|multiple: Multiple| multiple.to_string());
        let forms =
            [("1/8", "1/8"), ("0.5", "1/2"), ("2", "2"), (" 2 / 4 ", "1/2"), ("1.5/3", "1/2")];
        for (text, canonical) in forms {
            assert_eq!(read(text).as_deref(), Ok(canonical));
            assert_eq!(read(canonical).as_deref(), Ok(canonical));
        }
        for text in ["", "0", "1/0", "0/1", "-1", "1/2/3", "1e3", "1/1025", "1025", "x", "1.0001"] {
            let message = read(text).unwrap_err();
            assert!(message.starts_with(&format!("'{text}' is not allowed; ")), "{message}");
        }
    }
}

//! Quantities as `tc` spells them.

use weir_units::{Bytes, Duration, Rate, Ratio};

use super::refused;

/// A unit of `tc`'s, ours for it, and what that is to be multiplied with and divided by.
type Unit = (&'static str, &'static str, u64, u64);

const TIME: &[Unit] = &[
    ("", "us", 1, 1),
    ("s", "s", 1, 1),
    ("sec", "s", 1, 1),
    ("secs", "s", 1, 1),
    ("ms", "ms", 1, 1),
    ("msec", "ms", 1, 1),
    ("msecs", "ms", 1, 1),
    ("us", "us", 1, 1),
    ("usec", "us", 1, 1),
    ("usecs", "us", 1, 1),
    ("ns", "ns", 1, 1),
    ("nsec", "ns", 1, 1),
    ("nsecs", "ns", 1, 1),
];

const RATE: &[Unit] = &[
    ("", "bit", 1, 1),
    ("bit", "bit", 1, 1),
    ("kbit", "kbit", 1, 1),
    ("mbit", "mbit", 1, 1),
    ("gbit", "gbit", 1, 1),
    ("tbit", "tbit", 1, 1),
    ("kibit", "kbit", 1_024, 1_000),
    ("mibit", "mbit", 1_048_576, 1_000_000),
    ("gibit", "gbit", 1_073_741_824, 1_000_000_000),
    ("bps", "bit", 8, 1),
    ("kbps", "kbit", 8, 1),
    ("mbps", "mbit", 8, 1),
    ("gbps", "gbit", 8, 1),
    ("tbps", "tbit", 8, 1),
    ("kibps", "kbit", 8_192, 1_000),
    ("mibps", "mbit", 8_388_608, 1_000_000),
    ("gibps", "gbit", 8_589_934_592, 1_000_000_000),
];

const SIZE: &[Unit] = &[
    ("", "b", 1, 1),
    ("b", "b", 1, 1),
    ("k", "kib", 1, 1),
    ("kb", "kib", 1, 1),
    ("m", "mib", 1, 1),
    ("mb", "mib", 1, 1),
    ("g", "gib", 1, 1),
    ("gb", "gib", 1, 1),
    ("kbit", "kib", 1, 8),
    ("mbit", "mib", 1, 8),
    ("gbit", "gib", 1, 8),
];

/// A time.
pub(super) fn time(word: &str, value: Option<&str>) -> Result<Duration, String> {
    let (text, unit) = translated(word, value, TIME, "times, as in 20ms")?;
    let time: Duration = text.parse().map_err(|error| format!("'{word}': {error}"))?;
    Ok(time.mul_ratio(unit.2, unit.3))
}

/// A rate.
pub(super) fn rate(word: &str, value: Option<&str>) -> Result<Rate, String> {
    let (text, unit) = translated(word, value, RATE, "rates, as in 10mbit")?;
    let rate: Rate = text.parse().map_err(|error| format!("'{word}': {error}"))?;
    Ok(rate.mul_ratio(unit.2, unit.3))
}

/// A number of bytes. tbf's cells (`32kbit/8`) are refused as no size.
pub(super) fn size(word: &str, value: Option<&str>) -> Result<Bytes, String> {
    let (text, unit) = translated(word, value, SIZE, "sizes, as in 32kbit or 1540b")?;
    let size: Bytes = text.parse().map_err(|error| format!("'{word}': {error}"))?;
    Ok(size.mul_ratio(unit.2, unit.3))
}

/// A share of a hundred, with or without a percent sign.
pub(super) fn percent(word: &str, value: Option<&str>) -> Result<Ratio, String> {
    let number = value.map(|text| text.strip_suffix('%').unwrap_or(text));
    let share = number.and_then(|number| format!("{number}%").parse().ok());
    share.ok_or_else(|| refused(word, value, "shares from 0% to 100%"))
}

/// The same in our spelling, but for a factor.
fn translated(
    word: &str,
    value: Option<&str>,
    units: &[Unit],
    allowed: &str,
) -> Result<(String, Unit), String> {
    let none = || refused(word, value, allowed);
    let text = value.ok_or_else(none)?.to_ascii_lowercase();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let found = units.iter().find(|(name, ..)| *name == unit).filter(|_| !number.is_empty());
    let found = *found.ok_or_else(none)?;
    Ok((format!("{number}{}", found.1), found))
}

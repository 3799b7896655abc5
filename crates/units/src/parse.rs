//! Text forms. Spelling is `tc`'s, any case: `10mbit`, `40ms`, `1500b`, `5%`, `2bdp`; `Mbps` and
//! `Gbps` are bits as in ns-3; bare `bps`, `kbps` and `mbps`, which `tc` reads as bytes and
//! everyone else as bits, are refused.

use std::fmt;
use std::str::FromStr;

use crate::buffer::BufferSize;
use crate::quantity::{Bytes, Length, Rate, Ratio, Speed};
use crate::time::Duration;

/// A quantity that cannot be read, with what would have been accepted.
///
/// ```
/// use weir_units::{Duration, Rate};
///
/// let error = "40".parse::<Duration>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "'40' is not a time: write a number with ns, us, ms, s, min or h, as in 40ms"
/// );
/// // `tc` reads `mbps` as megabytes, others as megabits.
/// assert!("10mbps".parse::<Rate>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{value}' is not a {kind}: {problem}")]
#[non_exhaustive]
pub struct UnitError {
    kind: &'static str,
    value: String,
    problem: String,
}

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const RATE_UNITS: &[(&str, u64)] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];
const LENGTH_UNITS: &[(&str, u64)] = &[("mm", 1), ("m", 1_000), ("km", 1_000_000)];
const SPEED_UNITS: &[(&str, u64)] = &[("mm/s", 1), ("m/s", 1_000)];
pub(crate) const LENGTH_HELP: &str = "write a number with mm, m or km, as in 250m";
pub(crate) const SPEED_HELP: &str = "write a number with mm/s or m/s, as in 10m/s";
pub(crate) const TIME_HELP: &str = "write a number with ns, us, ms, s, min or h, as in 40ms";
pub(crate) const RATE_HELP: &str = "write a number with bit, kbit, mbit, gbit or tbit, as in 10mbit (Mbps and Gbps are read as bits)";
pub(crate) const SIZE_HELP: &str =
    "write a number with b, kb, mb, gb (1000s) or kib, mib, gib (1024s), as in 64kb";
pub(crate) const RATIO_HELP: &str =
    "write a percentage from 0% to 100%, as in 1.5%, or a fraction from 0 to 0.5";
pub(crate) const BUFFER_HELP: &str = "write a size with p (packets), bdp, ms, b, kb, mb or kib, as in 64p, 2bdp, 100ms, 64kb, or infinite";

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled("time", text, TIME_UNITS, TIME_HELP).map(Self::from_nanos)
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        // Capital-M `Mbps` is bits by universal convention; all-lower-case `mbps` is bytes to tc.
        let canonical = match unit {
            "Mbps" | "Mbit/s" => "mbit",
            "Gbps" | "Gbit/s" => "gbit",
            "Kbps" | "kbit/s" => "kbit",
            "bps" | "kbps" | "mbps" | "gbps" => {
                let prefix = unit.trim_end_matches("bps");
                let problem = format!(
                    "{unit} means bytes to tc and bits to most others; write {number}{prefix}bit for bits, or eight times that for bytes"
                );
                return Err(error("rate", text, problem));
            }
            other => other,
        };
        scaled("rate", &format!("{number}{canonical}"), RATE_UNITS, RATE_HELP)
            .map(Self::from_bits_per_sec)
            .map_err(|e| error("rate", text, e.problem))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled("size", text, SIZE_UNITS, SIZE_HELP).map(Self)
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled("length", text, LENGTH_UNITS, LENGTH_HELP).map(Self)
    }
}

impl FromStr for Speed {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled("speed", text, SPEED_UNITS, SPEED_HELP).map(Self)
    }
}

impl FromStr for Ratio {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        let scale = match unit {
            "%" => 10_000_000,
            "" => return bare_ratio(number).map_err(|problem| error("ratio", text, problem)),
            _ => return Err(error("ratio", text, RATIO_HELP)),
        };
        decimal(number, scale)
            .and_then(|parts| u32::try_from(parts).ok())
            .and_then(Self::from_billionths)
            .ok_or_else(|| error("ratio", text, RATIO_HELP))
    }
}

impl FromStr for BufferSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        let fail = || error("queue size", text, BUFFER_HELP);
        match unit.to_ascii_lowercase().as_str() {
            "infinite" if number.is_empty() => Ok(Self::Infinite),
            "p" => decimal(number, 1).map(Self::Packets).ok_or_else(fail),
            "bdp" => decimal(number, 1_000).map(Self::Bdp).ok_or_else(fail),
            "ns" | "us" | "ms" | "s" => text.parse().map(Self::Time).map_err(|_| fail()),
            _ => text.parse().map(Self::Bytes).map_err(|_| fail()),
        }
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.as_nanos(), &TIME_UNITS[..4], "0s")
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.as_bits_per_sec(), RATE_UNITS, "0bit")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 64 MiB reads better as such than as 67108.864 kB.
        let (decimal, binary) = SIZE_UNITS.split_at(4);
        let whole =
            binary.iter().rev().find(|(_, scale)| self.0 > 0 && self.0.is_multiple_of(*scale));
        match whole {
            Some((name, scale)) if !self.0.is_multiple_of(1_000) => {
                write!(f, "{}{name}", self.0 / scale)
            }
            _ => print(f, self.0, decimal, "0b"),
        }
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, LENGTH_UNITS, "0m")
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, SPEED_UNITS, "0m/s")
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, u64::from(self.as_billionths()), 10_000_000)?;
        f.write_str("%")
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(n) => write!(f, "{n}p"),
            Self::Time(time) => time.fmt(f),
            Self::Bdp(thousandths) => {
                write_decimal(f, *thousandths, 1_000)?;
                f.write_str("bdp")
            }
            Self::Infinite => f.write_str("infinite"),
        }
    }
}

/// A ratio without `%`. Above one half it may be a percentage whose sign was forgotten: `1` is
/// everything to some and one in a hundred to others.
fn bare_ratio(number: &str) -> Result<Ratio, String> {
    let billionths = decimal(number, 1_000_000_000).ok_or(RATIO_HELP)?;
    let ratio = u32::try_from(billionths).ok().and_then(Ratio::from_billionths);
    match ratio {
        Some(ratio) if billionths <= 500_000_000 => Ok(ratio),
        Some(ratio) => Err(format!("is it {number}% or {ratio}? write it with %")),
        None if billionths <= 100_000_000_000 => {
            Err(format!("write {number}% if it is a percentage"))
        }
        None => Err(RATIO_HELP.to_owned()),
    }
}

fn error(kind: &'static str, value: &str, problem: impl Into<String>) -> UnitError {
    UnitError { kind, value: value.to_owned(), problem: problem.into() }
}

/// Splits a quantity into number and unit, with the blanks around both removed.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

fn scaled(
    kind: &'static str,
    text: &str,
    units: &[(&str, u64)],
    help: &str,
) -> Result<u64, UnitError> {
    let (number, unit) = split(text);
    if text.trim_start().starts_with('-') {
        return Err(error(kind, text, "it must not be negative"));
    }
    let zero_without_unit = unit.is_empty() && number == "0";
    let scale = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, s)| *s);
    let scale = if zero_without_unit { Some(1) } else { scale };
    scale.and_then(|scale| decimal(number, scale)).ok_or_else(|| error(kind, text, help))
}

/// `number * scale` for a plain decimal number, exact; `None` if it is malformed, does not fit, or
/// is finer than the unit can hold.
fn decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let ten = 10u128.pow(fraction.len() as u32);
    let parts = u128::from(digits(whole)?) * ten + u128::from(digits(fraction)?);
    let product = parts.checked_mul(u128::from(scale))?;
    if product % ten != 0 {
        return None;
    }
    u64::try_from(product / ten).ok()
}

/// Prints with the largest unit that needs at most three decimals.
fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)], zero: &str) -> fmt::Result {
    if value == 0 {
        return f.write_str(zero);
    }
    let fits = |scale: u64| value >= scale && u128::from(value) * 1_000 % u128::from(scale) == 0;
    let (name, scale) = units.iter().rev().find(|(_, scale)| fits(*scale)).unwrap_or(&units[0]);
    write_decimal(f, value, *scale)?;
    f.write_str(name)
}

fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, scale: u64) -> fmt::Result {
    let width = scale.ilog10() as usize;
    let text = format!("{}.{:0width$}", value / scale, value % scale);
    f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_the_spellings_of_tc_and_ns3() {
        assert_eq!("10mbit".parse(), Ok(Rate::from_mbit(10)));
        assert_eq!("10 Mbit".parse(), Ok(Rate::from_mbit(10)));
        assert_eq!("2.5Gbps".parse(), Ok(Rate::from_mbit(2500)));
        assert_eq!("40ms".parse(), Ok(Duration::from_millis(40)));
        assert_eq!("0.5s".parse(), Ok(Duration::from_millis(500)));
        assert_eq!("0".parse(), Ok(Duration::ZERO));
        assert_eq!("1500b".parse(), Ok(Bytes(1500)));
        assert_eq!("64KiB".parse(), Ok(Bytes(65536)));
        assert_eq!(
            "1.5%".parse(),
            Ratio::from_billionths(15_000_000).ok_or(()).map_err(|()| unreachable!())
        );
        assert_eq!("0.02".parse(), Ok(Ratio::from_percent(2)));
        assert_eq!("1bdp".parse(), Ok(BufferSize::Bdp(1_000)));
        assert_eq!("64p".parse(), Ok(BufferSize::Packets(64)));
        assert_eq!("100ms".parse(), Ok(BufferSize::Time(Duration::from_millis(100))));
        assert_eq!("64kb".parse(), Ok(BufferSize::Bytes(Bytes(64_000))));
        assert_eq!("0.25km".parse(), Ok(Length(250_000)));
        assert_eq!("1.5 m/s".parse(), Ok(Speed(1_500)));
    }

    #[test]
    fn refuses_what_it_cannot_be_sure_of() {
        let message = "10mbps".parse::<Rate>().unwrap_err().to_string();
        assert!(message.contains("bytes") && message.contains("10mbit"), "{message}");
        for bad in ["10", "", "mbit", "1e6bit", "-5mbit", "10mb", "1.2.3mbit"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
        for bad in ["40", "40m", "-1ms", "1.5ns"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
        for bad in ["-1%", "101%", "1.5", "5p", "0.51", "1", "250"] {
            assert!(bad.parse::<Ratio>().is_err(), "{bad}");
        }
        for bad in ["3", "bdp", "-1p", "4x"] {
            assert!(bad.parse::<BufferSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn asks_whether_a_bare_number_is_a_percentage() {
        let message = |text: &str| text.parse::<Ratio>().unwrap_err().to_string();
        assert_eq!(message("1"), "'1' is not a ratio: is it 1% or 100%? write it with %");
        assert_eq!(message("0.6"), "'0.6' is not a ratio: is it 0.6% or 60%? write it with %");
        assert_eq!(message("5"), "'5' is not a ratio: write 5% if it is a percentage");
        assert_eq!("0.5".parse(), Ok(Ratio::from_percent(50)));
        assert_eq!("0".parse(), Ok(Ratio::ZERO));
        assert_eq!("100%".parse(), Ok(Ratio::ONE));
    }

    #[test]
    fn prints_the_shortest_exact_form() {
        assert_eq!(Rate::from_bits_per_sec(12_500_000).to_string(), "12.5mbit");
        assert_eq!(Duration::from_micros(40_060).to_string(), "40.06ms");
        assert_eq!(Duration::ZERO.to_string(), "0s");
        assert_eq!(Rate::ZERO.to_string(), "0bit");
        assert_eq!(Bytes::ZERO.to_string(), "0b");
        assert_eq!(Duration::from_nanos(1_234_567).to_string(), "1234.567us");
        assert_eq!(Bytes(64 << 20).to_string(), "64mib");
        assert_eq!(Bytes(1_536).to_string(), "1.536kb");
        assert_eq!(Bytes(3 << 10).to_string(), "3kib");
        assert_eq!(Bytes(64_000).to_string(), "64kb");
        assert_eq!(Ratio::from_percent(5).to_string(), "5%");
        assert_eq!(BufferSize::Bdp(2_500).to_string(), "2.5bdp");
        assert_eq!(
            (Length(250_000).to_string(), Speed(0).to_string()),
            ("250m".into(), "0m/s".into())
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(n in any::<u64>()) {
            prop_assert_eq!(Duration::from_nanos(n).to_string().parse(), Ok(Duration::from_nanos(n)));
            prop_assert_eq!(Rate::from_bits_per_sec(n).to_string().parse(), Ok(Rate::from_bits_per_sec(n)));
            prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
            prop_assert_eq!(Length(n).to_string().parse(), Ok(Length(n)));
            prop_assert_eq!(Speed(n).to_string().parse(), Ok(Speed(n)));
            let blocks = Bytes(n >> 40 << 9);
            prop_assert_eq!(blocks.to_string().parse(), Ok(blocks));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}") {
            let _ = (text.parse::<Rate>(), text.parse::<Duration>(), text.parse::<Bytes>(),
                     text.parse::<Ratio>(), text.parse::<BufferSize>());
        }

        #[test]
        fn transmission_times_never_drift(rate in 1_000u64..100_000_000_000, sizes in prop::collection::vec(1u64..70_000, 1..200)) {
            let rate = Rate::from_bits_per_sec(rate);
            let mut carry = 0;
            let total: u64 = sizes.iter().map(|s| rate.transmit_time(Bytes(*s), &mut carry).as_nanos()).sum();
            let at_once = rate.transmit_time(Bytes(sizes.iter().sum()), &mut 0).as_nanos();
            prop_assert_eq!(total, at_once);
        }
    }
}

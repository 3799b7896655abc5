//! The linear controls, whose name says what their two numbers do: `aimd(1,0.5)` adds 1 and multiplies by
//! 0.5, `drai-miad(1.25,2)` multiplies by 1.25 and subtracts 2 as routers' indices say.

use std::fmt;

use super::arguments::Arguments;
use super::{CcConfig, CcConfigError};
use crate::{Decimal, Decrease, Increase, MuzhaOptions, MuzhaTable};

/// Reads the numbers of a control.
pub(super) fn read(given: &Arguments<'_>) -> Result<CcConfig, CcConfigError> {
    let full_name = given.name();
    let by_index = full_name.strip_prefix("drai-");
    let adds = by_index.unwrap_or(full_name).starts_with("ai");
    let subtracts = full_name.ends_with("ad");
    let default_a = if adds { "1" } else { "1.125" };
    let default_b = if subtracts { "3" } else { "0.8" };
    let (a, b) = match given.text() {
        None => (default_a, default_b),
        Some(text) => text.split_once(',').ok_or_else(|| {
            let example = format!("{full_name}({default_a},{default_b})");
            given.refuse(&format!("write two numbers, as in {example}"))
        })?,
    };
    let number = |name: &'static str, text: &str, form: Form| {
        let (range, allowed) = form;
        let text = text.trim();
        let number = text.parse().ok();
        number
            .filter(|number: &Decimal| range.contains(&number.thousandths()))
            .ok_or_else(|| given.bad_value(name, text, allowed))
    };
    let increase = if adds {
        Increase::Add(number("a", a, SEGMENTS)?)
    } else {
        Increase::Multiply(number("a", a, GROWTH)?)
    };
    let decrease = if subtracts {
        Decrease::Subtract(number("b", b, SEGMENTS)?)
    } else {
        Decrease::Multiply(number("b", b, SHARE)?)
    };
    Ok(match by_index {
        None => CcConfig::Parametric { increase, decrease },
        Some(_) => CcConfig::Muzha {
            table: MuzhaTable::Linear(increase, decrease),
            options: MuzhaOptions::default(),
        },
    })
}

/// Writes a control as it is read.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    prefix: &str,
    increase: Increase,
    decrease: Decrease,
) -> fmt::Result {
    use {Decrease as D, Increase as I};
    match (increase, decrease) {
        (I::Add(a), D::Multiply(b)) => write!(f, "{prefix}aimd({a},{b})"),
        (I::Add(a), D::Subtract(b)) => write!(f, "{prefix}aiad({a},{b})"),
        (I::Multiply(a), D::Multiply(b)) => write!(f, "{prefix}mimd({a},{b})"),
        (I::Multiply(a), D::Subtract(b)) => write!(f, "{prefix}miad({a},{b})"),
    }
}

/// What a number may be, in thousandths.
type Form = (std::ops::RangeInclusive<u32>, &'static str);

const SEGMENTS: Form = (1..=1_000_000, "segments from 0.001 to 1000, three decimals at most");
const GROWTH: Form = (1_001..=2_000, "a factor from 1.001 to 2, three decimals at most");
const SHARE: Form = (1..=999, "a factor from 0.001 to 0.999, three decimals at most");

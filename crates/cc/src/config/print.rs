//! Writing a controller as it is read.

use std::fmt;

use super::{CcConfig, DEFAULT_LEVELS, LEDBAT_TARGET, PRAGUE_RTT};
use crate::{
    CopaMode, Decimal, Decrease, FrReduce, Friendliness, Gain, Hystart, Increase, MuzhaExit,
    MuzhaOptions, MuzhaRto, MuzhaTable, MuzhaUpdate, Offsets, Overflow,
};

impl fmt::Display for CcConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None { window: None } => f.write_str("none"),
            Self::None { window: Some(window) } => write!(f, "none({window})"),
            Self::Reno => f.write_str("reno"),
            Self::Reno002 { ssthresh: None } => f.write_str("reno-002"),
            Self::Reno002 { ssthresh: Some(segments) } => {
                write!(f, "reno-002(ssthresh={segments})")
            }
            Self::Cubic { hystart, friendliness } => {
                let hystart = match hystart {
                    Hystart::Linux => None,
                    Hystart::PlusPlus => Some("hystart=plus-plus"),
                    Hystart::Off => Some("hystart=off"),
                };
                let friendliness = match friendliness {
                    Friendliness::On => None,
                    Friendliness::Off => Some("friendliness=off"),
                };
                match (hystart, friendliness) {
                    (None, None) => f.write_str("cubic"),
                    (Some(one), None) | (None, Some(one)) => write!(f, "cubic({one})"),
                    (Some(one), Some(other)) => write!(f, "cubic({one},{other})"),
                }
            }
            Self::Bbr { overflow: Overflow::Linux } => f.write_str("bbr"),
            Self::Bbr { overflow: Overflow::Avoid } => f.write_str("bbr(overflow=avoid)"),
            Self::Bbr3 => f.write_str("bbr3"),
            Self::Vegas => f.write_str("vegas"),
            Self::Veno => f.write_str("veno"),
            Self::Westwood => f.write_str("westwood"),
            Self::Illinois => f.write_str("illinois"),
            Self::Htcp => f.write_str("htcp"),
            Self::Highspeed => f.write_str("highspeed"),
            Self::Scalable => f.write_str("scalable"),
            Self::Bic => f.write_str("bic"),
            Self::Hybla => f.write_str("hybla"),
            Self::Yeah => f.write_str("yeah"),
            Self::Lp { offsets: Offsets::Random } => f.write_str("lp"),
            Self::Lp { offsets: Offsets::None } => f.write_str("lp(offsets=none)"),
            Self::Nv => f.write_str("nv"),
            Self::Cdg => f.write_str("cdg"),
            Self::Dctcp { gain, alpha } if (gain, alpha) == (Gain::default(), Decimal::ONE) => {
                f.write_str("dctcp")
            }
            Self::Dctcp { gain, alpha } => write!(f, "dctcp(g={gain},alpha0={alpha})"),
            Self::Prague { rtt } if rtt == PRAGUE_RTT => f.write_str("prague"),
            Self::Prague { rtt } => write!(f, "prague(rtt={}ms)", rtt.as_millis()),
            Self::Ledbat { target } if target == LEDBAT_TARGET => f.write_str("ledbat"),
            Self::Ledbat { target } => write!(f, "ledbat(target={}ms)", target.as_millis()),
            Self::Copa { delta, mode } => write_copa(f, delta, mode),
            Self::Parametric { increase, decrease } => write_linear(f, "", increase, decrease),
            Self::Muzha { table: MuzhaTable::Linear(increase, decrease), .. } => {
                write_linear(f, "drai-", increase, decrease)
            }
            Self::Muzha { table: MuzhaTable::Levels(levels), options } => {
                write_muzha(f, levels, options)
            }
            Self::Muzha2 => f.write_str("muzha2"),
            Self::Xcp => f.write_str("xcp"),
            Self::Rcp => f.write_str("rcp"),
            Self::AntiEcn => f.write_str("anti-ecn"),
            Self::Kernel(name) => name.fmt(f),
            Self::Script(ref script) => script.fmt(f),
        }
    }
}

fn write_linear(
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

fn write_copa(f: &mut fmt::Formatter<'_>, delta: Decimal, mode: CopaMode) -> fmt::Result {
    match (delta == Decimal::HALF, mode) {
        (true, CopaMode::Auto) => f.write_str("copa"),
        (true, CopaMode::Default) => f.write_str("copa(mode=default)"),
        (false, CopaMode::Auto) => write!(f, "copa(delta={delta})"),
        (false, CopaMode::Default) => write!(f, "copa(delta={delta},mode=default)"),
    }
}

/// What differs from the defaults.
fn write_muzha(f: &mut fmt::Formatter<'_>, levels: u8, options: MuzhaOptions) -> fmt::Result {
    let mut parts = Vec::new();
    match options.update {
        MuzhaUpdate::PerRtt => {}
        MuzhaUpdate::PerAckSmooth => parts.push("update=per-ack-smooth".to_string()),
        MuzhaUpdate::PerAckLiteral => parts.push("update=per-ack-literal".to_string()),
    }
    if levels != DEFAULT_LEVELS {
        parts.push(format!("levels={levels}"));
    }
    match options.reduce {
        FrReduce::Half => {}
        FrReduce::ByIndex => parts.push("fr-reduce=by-index".to_string()),
        FrReduce::None => parts.push("fr-reduce=none".to_string()),
    }
    if options.timeout == MuzhaRto::Half {
        parts.push("rto=half".to_string());
    }
    if options.exit == MuzhaExit::Any {
        parts.push("exit=any".to_string());
    }
    f.write_str("muzha")?;
    if parts.is_empty() { Ok(()) } else { write!(f, "({})", parts.join(",")) }
}

//! Reading `name` and `name(parameters)`.

use std::ops::RangeInclusive;

use weir_units::Duration;

use super::{CcConfig, CcConfigError, DEFAULT_LEVELS, LEDBAT_TARGET, PRAGUE_RTT};
use crate::{
    CopaMode, Decimal, Decrease, FrReduce, Friendliness, Gain, Hystart, Increase, MuzhaExit,
    MuzhaOptions, MuzhaRto, MuzhaTable, MuzhaUpdate, Offsets, Overflow,
};

/// A name of the catalogue and the text of its parameters.
pub(super) struct Given<'a> {
    pub(super) name: &'static str,
    parameters: Option<&'a str>,
}

impl<'a> Given<'a> {
    pub(super) fn split(text: &'a str) -> Result<Self, CcConfigError> {
        let malformed = || CcConfigError::Malformed { text: text.to_string() };
        let (name, parameters) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => {
                (name.trim(), Some(rest.strip_suffix(')').ok_or_else(malformed)?))
            }
        };
        if name.contains(')') || parameters.is_some_and(|p| p.contains(['(', ')'])) {
            return Err(malformed());
        }
        let entry = CcConfig::CATALOGUE.iter().find(|entry| entry.name == name);
        let Some(entry) = entry else {
            return Err(CcConfigError::Unknown { name: name.to_string() });
        };
        Ok(Self { name: entry.name, parameters })
    }

    pub(super) fn nothing(&self, config: CcConfig) -> Result<CcConfig, CcConfigError> {
        match self.parameters {
            None => Ok(config),
            Some(_) => Err(self.refuse("it has no parameters")),
        }
    }

    pub(super) fn none(&self) -> Result<CcConfig, CcConfigError> {
        let Some(text) = self.parameters.map(str::trim) else {
            return Ok(CcConfig::None { window: None });
        };
        let window = text.parse().ok().filter(|n| (1..=MAX_WINDOW).contains(n));
        let window = window.ok_or_else(|| {
            self.bad_value("window", text, "a whole number of segments from 1 to 1000000")
        })?;
        Ok(CcConfig::None { window: Some(window) })
    }

    pub(super) fn reno_002(&self) -> Result<CcConfig, CcConfigError> {
        let Some(value) = self.sole("ssthresh", "write ssthresh=4 or nothing")? else {
            return Ok(CcConfig::Reno002 { ssthresh: None });
        };
        let segments = value.parse().ok().filter(|n| (2..=MAX_WINDOW).contains(n));
        let segments = segments.ok_or_else(|| {
            self.bad_value("ssthresh", value, "a whole number of segments from 2 to 1000000")
        })?;
        Ok(CcConfig::Reno002 { ssthresh: Some(segments) })
    }

    pub(super) fn cubic(&self) -> Result<CcConfig, CcConfigError> {
        let (mut hystart, mut friendliness) = (Hystart::default(), Friendliness::default());
        for part in self.parameters.into_iter().flat_map(|text| text.split(',')) {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("hystart", "linux")) => hystart = Hystart::Linux,
                Some(("hystart", "plus-plus")) => hystart = Hystart::PlusPlus,
                Some(("hystart", "off")) => hystart = Hystart::Off,
                Some(("hystart", value)) => {
                    return Err(self.bad_value("hystart", value, "linux, plus-plus or off"));
                }
                Some(("friendliness", "on")) => friendliness = Friendliness::On,
                Some(("friendliness", "off")) => friendliness = Friendliness::Off,
                Some(("friendliness", value)) => {
                    return Err(self.bad_value("friendliness", value, "on or off"));
                }
                _ => return Err(self.refuse("write hystart=off, friendliness=off or both")),
            }
        }
        Ok(CcConfig::Cubic { hystart, friendliness })
    }

    pub(super) fn bbr(&self) -> Result<CcConfig, CcConfigError> {
        let Some(text) = self.parameters else {
            return Ok(CcConfig::Bbr { overflow: Overflow::Linux });
        };
        match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("overflow", "linux")) => Ok(CcConfig::Bbr { overflow: Overflow::Linux }),
            Some(("overflow", "avoid")) => Ok(CcConfig::Bbr { overflow: Overflow::Avoid }),
            Some(("overflow", value)) => Err(self.bad_value("overflow", value, "linux or avoid")),
            _ => Err(self.refuse("write overflow=avoid or nothing")),
        }
    }

    pub(super) fn lp(&self) -> Result<CcConfig, CcConfigError> {
        let Some(text) = self.parameters else {
            return Ok(CcConfig::Lp { offsets: Offsets::Random });
        };
        match text.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("offsets", "random")) => Ok(CcConfig::Lp { offsets: Offsets::Random }),
            Some(("offsets", "none")) => Ok(CcConfig::Lp { offsets: Offsets::None }),
            Some(("offsets", value)) => Err(self.bad_value("offsets", value, "random or none")),
            _ => Err(self.refuse("write offsets=none or nothing")),
        }
    }

    pub(super) fn dctcp(&self) -> Result<CcConfig, CcConfigError> {
        let (mut gain, mut alpha) = (Gain::default(), Decimal::ONE);
        for part in self.parameters.into_iter().flat_map(|text| text.split(',')) {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("g", value)) => {
                    gain = value.parse().map_err(|_| {
                        self.bad_value("g", value, "1, 1/2, 1/4 and so on down to 1/1024")
                    })?;
                }
                Some(("alpha0", value)) => {
                    alpha = self.number(
                        "alpha0",
                        value,
                        "a share from 0 to 1, three decimals at most",
                        0..=1_000,
                    )?;
                }
                _ => return Err(self.refuse("write g=1/16, alpha0=1 or both")),
            }
        }
        Ok(CcConfig::Dctcp { gain, alpha })
    }

    pub(super) fn prague(&self) -> Result<CcConfig, CcConfigError> {
        let rtt = match self.sole("rtt", "write rtt=25ms or nothing")? {
            None => PRAGUE_RTT,
            Some(value) => self.millis("rtt", value, "whole milliseconds from 0ms to 100ms", 0)?,
        };
        Ok(CcConfig::Prague { rtt })
    }

    pub(super) fn ledbat(&self) -> Result<CcConfig, CcConfigError> {
        let target = match self.sole("target", "write target=100ms or nothing")? {
            None => LEDBAT_TARGET,
            Some(value) => {
                self.millis("target", value, "whole milliseconds from 1ms to 100ms", 1)?
            }
        };
        Ok(CcConfig::Ledbat { target })
    }

    pub(super) fn copa(&self) -> Result<CcConfig, CcConfigError> {
        let (mut delta, mut mode) = (Decimal::HALF, CopaMode::default());
        for part in self.parameters.into_iter().flat_map(|text| text.split(',')) {
            match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("delta", value)) => {
                    const ALLOWED: &str = "a number from 0.001 to 1, three decimals at most";
                    delta = self.number("delta", value, ALLOWED, 1..=1_000)?;
                }
                Some(("mode", "auto")) => mode = CopaMode::Auto,
                Some(("mode", "default")) => mode = CopaMode::Default,
                Some(("mode", value)) => {
                    return Err(self.bad_value("mode", value, "auto or default"));
                }
                _ => return Err(self.refuse("write delta=0.5, mode=default or both")),
            }
        }
        Ok(CcConfig::Copa { delta, mode })
    }

    /// The value of the only `key` that there may be.
    fn sole(&self, key: &str, allowed: &str) -> Result<Option<&'a str>, CcConfigError> {
        let Some(text) = self.parameters else { return Ok(None) };
        let (given, value) = text.split_once('=').ok_or_else(|| self.refuse(allowed))?;
        if given.trim() == key { Ok(Some(value.trim())) } else { Err(self.refuse(allowed)) }
    }

    /// A time in whole milliseconds, from `least` to 100.
    fn millis(
        &self,
        parameter: &'static str,
        value: &str,
        allowed: &'static str,
        least: u64,
    ) -> Result<Duration, CcConfigError> {
        let number = value.strip_suffix("ms").and_then(|number| number.parse().ok());
        let number = number.filter(|millis| (least..=100).contains(millis));
        number.map(Duration::from_millis).ok_or_else(|| self.bad_value(parameter, value, allowed))
    }

    pub(super) fn muzha(&self) -> Result<CcConfig, CcConfigError> {
        let (mut levels, mut options) = (DEFAULT_LEVELS, MuzhaOptions::default());
        for part in self.parameters.into_iter().flat_map(|text| text.split(',')) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(self.refuse("write update=per-rtt, levels=5, fr-reduce=half, rto=one, exit=full or some of them"));
            };
            self.muzha_option(key.trim(), value.trim(), &mut levels, &mut options)?;
        }
        Ok(CcConfig::Muzha { table: MuzhaTable::Levels(levels), options })
    }

    fn muzha_option(
        &self,
        key: &str,
        value: &str,
        levels: &mut u8,
        options: &mut MuzhaOptions,
    ) -> Result<(), CcConfigError> {
        match (key, value) {
            ("update", "per-rtt") => options.update = MuzhaUpdate::PerRtt,
            ("update", "per-ack-smooth") => options.update = MuzhaUpdate::PerAckSmooth,
            ("update", "per-ack-literal") => options.update = MuzhaUpdate::PerAckLiteral,
            ("update", _) => {
                const ALLOWED: &str = "per-rtt, per-ack-smooth or per-ack-literal";
                return Err(self.bad_value("update", value, ALLOWED));
            }
            ("fr-reduce", "half") => options.reduce = FrReduce::Half,
            ("fr-reduce", "by-index") => options.reduce = FrReduce::ByIndex,
            ("fr-reduce", "none") => options.reduce = FrReduce::None,
            ("fr-reduce", _) => {
                return Err(self.bad_value("fr-reduce", value, "half, by-index or none"));
            }
            ("rto", "one") => options.timeout = MuzhaRto::One,
            ("rto", "half") => options.timeout = MuzhaRto::Half,
            ("rto", _) => return Err(self.bad_value("rto", value, "one or half")),
            ("exit", "full") => options.exit = MuzhaExit::Full,
            ("exit", "any") => options.exit = MuzhaExit::Any,
            ("exit", _) => return Err(self.bad_value("exit", value, "full or any")),
            ("levels", _) => {
                let given = value.parse().ok().filter(|given| (3..=7).contains(given));
                *levels = given
                    .ok_or_else(|| self.bad_value("levels", value, "a whole number from 3 to 7"))?;
            }
            _ => {
                return Err(self.refuse("its keys are update, levels, fr-reduce, rto and exit"));
            }
        }
        Ok(())
    }

    pub(super) fn parametric(&self) -> Result<CcConfig, CcConfigError> {
        let name = self.name.strip_prefix("drai-");
        let adds = name.unwrap_or(self.name).starts_with("ai");
        let subtracts = self.name.ends_with("ad");
        let default_a = if adds { "1" } else { "1.125" };
        let default_b = if subtracts { "3" } else { "0.8" };
        let (a, b) = match self.parameters {
            None => (default_a, default_b),
            Some(text) => text.split_once(',').ok_or_else(|| {
                self.refuse(&format!(
                    "write two numbers, as in {}({default_a},{default_b})",
                    self.name
                ))
            })?,
        };
        let increase = if adds {
            Increase::Add(self.number(
                "a",
                a,
                "segments from 0.001 to 1000, three decimals at most",
                1..=1_000_000,
            )?)
        } else {
            Increase::Multiply(self.number(
                "a",
                a,
                "a factor from 1.001 to 2, three decimals at most",
                1_001..=2_000,
            )?)
        };
        let decrease = if subtracts {
            Decrease::Subtract(self.number(
                "b",
                b,
                "segments from 0.001 to 1000, three decimals at most",
                1..=1_000_000,
            )?)
        } else {
            Decrease::Multiply(self.number(
                "b",
                b,
                "a factor from 0.001 to 0.999, three decimals at most",
                1..=999,
            )?)
        };
        Ok(match name {
            None => CcConfig::Parametric { increase, decrease },
            Some(_) => CcConfig::Muzha {
                table: MuzhaTable::Linear(increase, decrease),
                options: MuzhaOptions::default(),
            },
        })
    }

    /// The decimal parameter called `parameter`, in `range` (thousandths).
    fn number(
        &self,
        parameter: &'static str,
        value: &str,
        allowed: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Decimal, CcConfigError> {
        let number: Option<Decimal> = value.trim().parse().ok();
        number
            .filter(|n| range.contains(&n.thousandths()))
            .ok_or_else(|| self.bad_value(parameter, value.trim(), allowed))
    }

    fn refuse(&self, allowed: &str) -> CcConfigError {
        CcConfigError::Parameters {
            controller: self.name,
            given: self.parameters.unwrap_or_default().to_string(),
            allowed: allowed.to_string(),
        }
    }

    fn bad_value(
        &self,
        parameter: &'static str,
        value: &str,
        allowed: &'static str,
    ) -> CcConfigError {
        CcConfigError::Value { controller: self.name, parameter, value: value.to_string(), allowed }
    }
}

const MAX_WINDOW: u64 = 1_000_000;

//! The parameters that every controller with a slow start takes: `reno(slow_start=search)`,
//! `vegas(increase=rate-limited)`.

use weir_units::Bytes;

use super::arguments::Arguments;
use super::describe::{Parameter, parameter};
use super::{CcConfig, CcConfigError};
use crate::{Hystart, Modifiers, SlowStart, UnusedIncrease};

/// The common parameters.
pub(super) const COMMON: &[Parameter<Modifiers>] = &[
    Parameter {
        prefix: "slow_start=",
        form: "own|hystart-plus-plus|search",
        allowed: "own, hystart-plus-plus, search",
        set: |to, text| {
            to.slow_start = parameter!(@read text, SlowStart:
                Own = "own" | HystartPlusPlus = "hystart-plus-plus" | Search = "search")?;
            Some(())
        },
        show: |of| {
            parameter!(@show of.slow_start, SlowStart:
                Own = "own" | HystartPlusPlus = "hystart-plus-plus" | Search = "search")
        },
    },
    Parameter {
        prefix: "increase=",
        form: "linux|rate-limited",
        allowed: "linux, rate-limited",
        set: |to, text| {
            to.increase = parameter!(@read text, UnusedIncrease:
                Linux = "linux" | RateLimited = "rate-limited")?;
            Some(())
        },
        show: |of| {
            parameter!(@show of.increase, UnusedIncrease:
                Linux = "linux" | RateLimited = "rate-limited")
        },
    },
];

impl CcConfig {
    /// Whether it grows by slow start, so that a wrapper can correct its window.
    pub(super) fn has_slow_start(&self) -> bool {
        let mss = Bytes(1_000);
        let Ok(mut cc) = self.build(mss, mss * 10) else { return false };
        cc.replace_window(mss * 3, None);
        cc.cwnd() == mss * 3
    }

    /// With `modifiers`. CUBIC's own ways to end slow start give way to those.
    pub(super) fn modified(
        mut self,
        modifiers: Modifiers,
        given: &Arguments<'_>,
        names_hystart: bool,
    ) -> Result<Self, CcConfigError> {
        if modifiers == Modifiers::default() {
            return Ok(self);
        }
        if !self.has_slow_start() {
            return Err(given.refuse("it has no slow start"));
        }
        if let (Self::Cubic { hystart, .. }, true) =
            (&mut self, modifiers.slow_start != SlowStart::Own)
        {
            if names_hystart && *hystart != Hystart::Off {
                return Err(given.refuse("hystart and slow_start both end slow start"));
            }
            *hystart = Hystart::Off;
        }
        Ok(Self::Modified { controller: Box::new(self), modifiers })
    }
}

//! Writing a controller as it is read: its name, and the parameters that are not at their defaults.

use std::fmt;
use std::mem::discriminant;

use super::describe::Parameter;
use super::modifiers::COMMON;
use super::{CcConfig, LIST, linear, resume};
use crate::{Modifiers, MuzhaTable};

impl fmt::Display for CcConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(name) => name.fmt(f),
            Self::Script(script) => script.fmt(f),
            Self::Parametric { increase, decrease } => linear::write(f, "", *increase, *decrease),
            Self::Muzha { table: MuzhaTable::Linear(increase, decrease), .. } => {
                linear::write(f, "drai-", *increase, *decrease)
            }
            Self::CarefulResume { controller, saved } => resume::write(f, controller, *saved),
            Self::Modified { controller, modifiers } => controller.write_listed(f, *modifiers),
            listed => listed.write_listed(f, Modifiers::default()),
        }
    }
}

impl CcConfig {
    fn write_listed(&self, f: &mut fmt::Formatter<'_>, modifiers: Modifiers) -> fmt::Result {
        let defaults = LIST.iter().filter_map(|one| Some((one, (one.default?)())));
        let same = |(_, default): &(_, Self)| discriminant(default) == discriminant(self);
        let Some((description, default)) = defaults.into_iter().find(same) else { return Ok(()) };
        let whole = description.whole && *self != default;
        let own = description.parameters.iter();
        let own = own.filter_map(|one| written(one, self, &default, whole));
        let common = COMMON.iter();
        let common =
            common.filter_map(|one| written(one, &modifiers, &Modifiers::default(), false));
        let parts: Vec<_> = own.chain(common).collect();
        f.write_str(description.entry.name)?;
        if parts.is_empty() { Ok(()) } else { write!(f, "({})", parts.join(",")) }
    }
}

/// A parameter that is not at its default, or any if all are written.
fn written<C>(parameter: &Parameter<C>, config: &C, default: &C, whole: bool) -> Option<String> {
    let value = (parameter.show)(config);
    let written = whole || value != (parameter.show)(default);
    written.then(|| format!("{}{}", parameter.prefix, value.unwrap_or_default()))
}

//! Writing a controller as it is read: its name, and the parameters that are not at their defaults.

use std::fmt;
use std::mem::discriminant;

use super::{CcConfig, LIST, linear};
use crate::MuzhaTable;

impl fmt::Display for CcConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(name) => name.fmt(f),
            Self::Script(script) => script.fmt(f),
            Self::Parametric { increase, decrease } => linear::write(f, "", *increase, *decrease),
            Self::Muzha { table: MuzhaTable::Linear(increase, decrease), .. } => {
                linear::write(f, "drai-", *increase, *decrease)
            }
            listed => listed.write_listed(f),
        }
    }
}

impl CcConfig {
    fn write_listed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defaults = LIST.iter().filter_map(|one| Some((one, (one.default?)())));
        let same = |(_, default): &(_, Self)| discriminant(default) == discriminant(self);
        let Some((description, default)) = defaults.into_iter().find(same) else { return Ok(()) };
        let whole = description.whole && *self != default;
        let parts = description.parameters.iter().filter_map(|parameter| {
            let value = (parameter.show)(self);
            let written = whole || value != (parameter.show)(&default);
            written.then(|| format!("{}{}", parameter.prefix, value.unwrap_or_default()))
        });
        let parts: Vec<_> = parts.collect();
        f.write_str(description.entry.name)?;
        if parts.is_empty() { Ok(()) } else { write!(f, "({})", parts.join(",")) }
    }
}

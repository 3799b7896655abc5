//! Reading the parameters of `name(parameters)`.

use super::arguments::Arguments;
use super::describe::{Description, Parameter};
use super::modifiers::COMMON;
use super::{CcConfig, CcConfigError, linear};
use crate::Modifiers;

/// Reads the parameters of a controller.
pub(super) fn read(given: &Arguments<'_>) -> Result<CcConfig, CcConfigError> {
    let Description { parameters, .. } = given.controller;
    let Some(default) = given.controller.default else { return linear::read(given) };
    let mut config = default();
    let Some(text) = given.text() else { return Ok(config) };
    let parts: Vec<&str> = match parameters {
        [Parameter { prefix: "", .. }] => vec![text],
        _ => text.split(',').collect(),
    };
    let mut seen = Vec::new();
    let mut modifiers = Modifiers::default();
    for part in parts {
        let name = match set(parameters, &mut config, part, given)? {
            Some(name) => name,
            None => set(COMMON, &mut modifiers, part, given)?
                .ok_or_else(|| given.refuse(&allowed(given, &config)))?,
        };
        if seen.contains(&name) {
            return Err(given.refuse(&format!("{name} stands twice")));
        }
        seen.push(name);
    }
    config.modified(modifiers, given, seen.contains(&"hystart"))
}

/// Sets the parameter that `part` names; returns its name.
fn set<C>(
    parameters: &[Parameter<C>],
    config: &mut C,
    part: &str,
    given: &Arguments<'_>,
) -> Result<Option<&'static str>, CcConfigError> {
    let found = parameters.iter().find_map(|one| Some((one, one.value_in(part)?)));
    let Some((parameter, value)) = found else { return Ok(None) };
    let name = parameter.name();
    (parameter.set)(config, value)
        .ok_or_else(|| given.bad_value(name, value, parameter.allowed))?;
    Ok(Some(name))
}

fn allowed(given: &Arguments<'_>, config: &CcConfig) -> String {
    let own = given.controller.entry.parameters;
    let common = COMMON.iter().filter(|_| config.has_slow_start());
    let common = common.map(|one| format!("{}{}", one.prefix, one.form));
    let all: Vec<_> =
        [own.to_owned()].into_iter().filter(|own| !own.is_empty()).chain(common).collect();
    if all.is_empty() {
        "it has no parameters".to_owned()
    } else {
        format!("it takes {}", all.join(","))
    }
}

impl<C> Parameter<C> {
    fn name(&self) -> &'static str {
        self.prefix.strip_suffix('=').unwrap_or(self.form)
    }

    /// The value, if `part` sets this parameter.
    fn value_in<'a>(&self, part: &'a str) -> Option<&'a str> {
        if self.prefix.is_empty() {
            return Some(part.trim());
        }
        let (key, value) = part.split_once('=')?;
        (key.trim() == self.name()).then(|| value.trim())
    }
}

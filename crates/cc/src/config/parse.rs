//! Reading the parameters of `name(parameters)`.

use super::arguments::Arguments;
use super::describe::{Description, Parameter};
use super::{CcConfig, CcConfigError, linear};

/// Reads the parameters of a controller.
pub(super) fn read(given: &Arguments<'_>) -> Result<CcConfig, CcConfigError> {
    let Description { entry, parameters, .. } = given.controller;
    let Some(default) = given.controller.default else { return linear::read(given) };
    let mut config = default();
    let Some(text) = given.text() else { return Ok(config) };
    let parts: Vec<&str> = match parameters {
        [] => return Err(given.refuse("it has no parameters")),
        [Parameter { prefix: "", .. }] => vec![text],
        _ => text.split(',').collect(),
    };
    let mut seen = Vec::new();
    for part in parts {
        let found = parameters.iter().find_map(|one| Some((one, one.value_in(part)?)));
        let Some((parameter, value)) = found else {
            return Err(given.refuse(&format!("it takes {}", entry.parameters)));
        };
        let name = parameter.name();
        if seen.contains(&name) {
            return Err(given.refuse(&format!("{name} stands twice")));
        }
        seen.push(name);
        (parameter.set)(&mut config, value)
            .ok_or_else(|| given.bad_value(name, value, parameter.allowed))?;
    }
    Ok(config)
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

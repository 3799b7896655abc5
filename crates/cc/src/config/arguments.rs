//! A name of the list and the text of its parameters.

use super::describe::Description;
use super::{CcConfig, CcConfigError, LIST};

/// A controller of the list and the text of its parameters.
pub(super) struct Arguments<'a> {
    pub(super) controller: &'static Description<CcConfig>,
    text: Option<&'a str>,
}

impl<'a> Arguments<'a> {
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
        let Some(controller) = LIST.iter().find(|listed| listed.entry.name == name) else {
            return Err(CcConfigError::Unknown { name: name.to_string() });
        };
        Ok(Self { controller, text: parameters })
    }

    pub(super) fn name(&self) -> &'static str {
        self.controller.entry.name
    }

    /// What stands in parentheses.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.text
    }

    pub(super) fn refuse(&self, allowed: &str) -> CcConfigError {
        CcConfigError::Parameters {
            controller: self.name(),
            given: self.text.unwrap_or_default().to_string(),
            allowed: allowed.to_string(),
        }
    }

    pub(super) fn bad_value(
        &self,
        parameter: &'static str,
        value: &str,
        allowed: &'static str,
    ) -> CcConfigError {
        let value = value.to_string();
        CcConfigError::Value { controller: self.name(), parameter, value, allowed }
    }
}

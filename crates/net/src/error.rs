//! A value of a configuration that is not allowed.

use weir_units::Duration;

/// A link that cannot be.
///
/// ```
/// use weir_net::LinkConfig;
/// use weir_units::{Duration, Rate};
///
/// let error = LinkConfig::new(Rate::ZERO, Duration::ZERO).validate().unwrap_err();
/// assert_eq!(error.to_string(), "rate = 0bit: a rate that never changes must be above zero");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
#[non_exhaustive]
pub struct ConfigError {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: &'static str,
}

impl ConfigError {
    /// A value that is not allowed, and what is.
    pub fn new(key: &'static str, value: impl ToString, allowed: &'static str) -> Self {
        Self { key, value: value.to_string(), allowed }
    }
}

/// A day: no path takes longer, and no sum of delays overflows.
pub const MAX_DELAY: Duration = Duration::from_secs(86_400);

/// Refuses a time that is longer than [`MAX_DELAY`].
///
/// # Errors
/// With `key` and the time.
pub fn check_span(key: &'static str, span: Duration) -> Result<(), ConfigError> {
    if span > MAX_DELAY {
        return Err(ConfigError::new(key, span, "it may be a day (24h) at most"));
    }
    Ok(())
}

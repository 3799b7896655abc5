//! The one list of controllers: names, parameters, construction.
//!
//! A controller is written `name` or `name(parameters)`: `cubic`, `none(30)`, `aimd(1,0.5)`.

use weir_units::Bytes;

use crate::{CongestionController, Fixed, Reno};

/// Which controller, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum CcConfig {
    /// A fixed window of so many segments; without a number only the receiver bounds the sender.
    None {
        /// The window in segments.
        window: Option<u64>,
    },
    /// RFC 5681 as Linux counts it.
    Reno,
}

/// A controller that does not exist, or parameters that it does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CcConfigError {
    /// No such controller.
    #[error("unknown controller '{name}'; there are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Parameters out of range or malformed.
    #[error("controller '{name}' does not take '({given})': {allowed}")]
    Parameters {
        /// The controller.
        name: String,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl CcConfig {
    /// Every name with a line about it, in the order in which `weir list` prints them.
    pub const CATALOGUE: &[(&str, &str)] = &[
        ("none", "a fixed window, none(30) for 30 segments"),
        ("reno", "AIMD(1, 1/2) with slow start (RFC 5681)"),
    ];

    /// Reads `name` or `name(parameters)`.
    ///
    /// # Errors
    /// For an unknown name, or parameters that the controller does not take.
    pub fn parse(_text: &str) -> Result<Self, CcConfigError> {
        todo!("the cc helper writes this")
    }

    /// Builds the controller for segments of `mss` and the given initial window.
    pub fn build(&self, mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
        match self {
            Self::None { window } => Box::new(Fixed::new(*window, mss)),
            Self::Reno => Box::new(Reno::new(initial_window)),
        }
    }
}

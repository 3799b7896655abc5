//! Why a description cannot be run.

use weir_net::ConfigError;
use weir_units::Instant;

/// A description that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// A flow that cannot be.
    #[error("flow '{flow}': {problem}")]
    Flow {
        /// Its name.
        flow: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A link that cannot be.
    #[error("link '{link}': {problem}")]
    Link {
        /// Its name.
        link: String,
        /// What is wrong with it.
        problem: ConfigError,
    },
    /// A radio network that cannot be.
    #[error("radio: {problem}")]
    Radio {
        /// What is wrong with it.
        problem: String,
    },
    /// Memory of switches that cannot be.
    #[error("{problem}")]
    Buffer {
        /// What is wrong with it.
        problem: String,
    },
    /// Two flows, or two links, have one name, and would share their random streams.
    #[error("two {kind}s are called '{name}'; names must differ")]
    NameTaken {
        /// `flow` or `link`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A parameter of the measurement that cannot be.
    #[error("{key} = {value}: {allowed}")]
    Measure {
        /// The parameter.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
}

/// Something happened that must never happen: the program is at fault, not the scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}, at {time}: {what}")]
pub struct Violation {
    /// The run's seed.
    pub seed: u64,
    /// When it was noticed.
    pub time: Instant,
    /// What was violated.
    pub what: String,
}

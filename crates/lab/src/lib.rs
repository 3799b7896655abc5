//! Experiments: a scenario and a seed go in, result tables come out.
//!
//! [`Scenario`] is read from TOML with every key, unit and value checked, and has a canonical form.
//! [`run`] takes a scenario and a seed to a [`World`], in the simulated one as a pure function; command
//! line, notebooks and worker processes all call it. [`catalogue`] says what there is to choose from.

mod catalogue;
mod check;
mod document;
mod error;
mod feedback;
mod flow;
mod kernel;
mod keys;
mod overrides;
mod queue;
mod radio;
mod relay;
mod retries;
mod run;
mod scenario;
mod table;
mod topology;
mod traces;
mod world;

pub use catalogue::{SECTIONS, Section, catalogue};
pub use error::ScenarioError;
pub use keys::Key;
pub use relay::{RelayLink, RelayLinks, relay_links};
pub use run::{Results, RunError, Watch, World, check, check_kernel, run, run_watched};
pub use scenario::Scenario;
pub use table::Table;
pub use topology::RelayKind;
pub use weir_live::{Capture, Epoch, Router};

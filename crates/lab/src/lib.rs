//! Experiments: a scenario and a seed go in, result tables come out.
//!
//! [`Scenario`] is read from TOML with every key, unit and value checked, and has a canonical form.
//! [`run`] takes a scenario and a seed to a [`World`], in the simulated one as a pure function; command
//! line, notebooks and worker processes all call it. [`simulation`] gives the same run to an owner that
//! moves it on step by step. [`catalogue`] says what there is to choose from.

#![cfg_attr(
    not(feature = "tables"),
    allow(dead_code, unused_imports, reason = "only runs into tables use worlds in real time")
)]

mod arrivals;
#[cfg(all(target_os = "linux", feature = "tables"))]
mod between;
mod buffer;
mod catalogue;
mod check;
mod connections;
mod contender;
mod direction;
mod document;
mod ends;
mod error;
mod fabric;
mod feedback;
mod files;
mod flow;
mod graph;
mod hosts;
mod hpcc;
mod htsim;
mod imports;
mod kernel;
mod keys;
mod lower;
mod memory;
mod overrides;
mod program_host;
mod queue;
mod radio;
mod range;
mod reading;
mod real_time;
mod relay;
#[cfg(feature = "tables")]
mod results;
mod retries;
mod routing;
mod run;
mod run_error;
mod scenario;
mod scenario_file;
mod script_host;
mod scripts;
mod sizes;
mod stack_parts;
#[cfg(feature = "tables")]
mod table;
#[cfg(feature = "tables")]
mod tap;
mod tc;
mod topology;
mod traces;
mod workload;

#[cfg(all(target_os = "linux", feature = "tables"))]
pub use between::{HostPart, merge_hosts};
pub use catalogue::{Section, catalogue, sections};
pub use contender::ContenderName;
pub use error::ScenarioError;
pub use files::MAX_FILE_BYTES;
pub use keys::{Key, Kind};
pub use lower::lowered;
pub use relay::{RelayLink, RelayLinks, relay_links};
#[cfg(feature = "tables")]
pub use results::{Results, record, run, run_watched};
pub use run::{World, check, check_kernel, simulation};
pub use run_error::{RunError, Watch};
pub use scenario::Scenario;
pub use scenario_file::{Measure, ScenarioFile};
pub use script_host::ScriptHost;
pub use scripts::read as read_script;
pub use stack_parts::{StackParts, router_feedback, stack_parts};
#[cfg(feature = "tables")]
pub use table::{Cell, Columns, Table, assemble, column, named_columns};
#[cfg(feature = "tables")]
pub use tap::check_capture;
pub use tc::{tc_keys, tc_options};
pub use topology::RelayKind;
pub use weir_scene::{
    FIRST_CAPTURED_PORT, ProcessSpec, ProgramCommands, ProgramEnd, Readiness, Router,
};
pub use weir_trace::{Capture, Epoch};

//! The simulated world: virtual time.
//!
//! [`run`] takes a plain description of links and flows and a seed, and returns the rows of the
//! result tables. The same description and seed give the same bytes, on every machine.

mod error;
mod run;
mod simulation;
mod tap;
mod world;

pub use error::SimError;
pub use run::{QueueKind, RunOptions, run, run_watched, run_with, run_with_tap};
pub use simulation::Simulation;
pub use tap::PacketTap;
pub use world::Progress;

//! The one entry point.

use crate::error::SimError;
use crate::outcome::Outcome;
use crate::queue::{HeapQueue, QueueKind, WheelQueue};
use crate::spec::SimSpec;
use crate::validate::validate;
use crate::world::World;

/// How a run is made; nothing here changes its outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// What holds the events.
    pub queue: QueueKind,
}

/// Runs `spec`. All luck comes from `seed`: the same two give the same outcome.
///
/// # Errors
/// If the description contradicts itself, or if a checker finds the simulator at fault.
pub fn run(spec: &SimSpec, seed: u64) -> Result<Outcome, SimError> {
    run_with(spec, seed, &RunOptions::default())
}

/// Runs `spec` in a certain way.
///
/// # Errors
/// As [`run`].
pub fn run_with(spec: &SimSpec, seed: u64, options: &RunOptions) -> Result<Outcome, SimError> {
    validate(spec)?;
    match options.queue {
        QueueKind::Heap => World::<HeapQueue>::new(spec, seed)?.run(),
        QueueKind::Wheel => World::<WheelQueue>::new(spec, seed)?.run(),
    }
}

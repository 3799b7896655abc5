//! The one entry point.

use weir_scene::{HeapQueue, Outcome, RunSpec, WheelQueue, validate};

use crate::error::SimError;
use crate::world::World;

/// Which implementation holds the events; results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// A timing wheel of 11 levels with 64 slots each, over the whole range of time. Measured on whole
    /// runs it is up to a tenth faster than the heap from a few flows on, and a twentieth slower for
    /// a single one.
    #[default]
    Wheel,
    /// A 4-ary heap.
    Heap,
}

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
pub fn run(spec: &RunSpec, seed: u64) -> Result<Outcome, SimError> {
    run_with(spec, seed, &RunOptions::default())
}

/// Runs `spec` in a certain way.
///
/// # Errors
/// As [`run`].
pub fn run_with(spec: &RunSpec, seed: u64, options: &RunOptions) -> Result<Outcome, SimError> {
    validate(spec)?;
    match options.queue {
        QueueKind::Heap => World::<HeapQueue>::new(spec, seed)?.run(),
        QueueKind::Wheel => World::<WheelQueue>::new(spec, seed)?.run(),
    }
}

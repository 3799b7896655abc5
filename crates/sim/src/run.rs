//! The one entry point.

use std::ops::ControlFlow;

use weir_scene::{EventQueue, HeapQueue, Outcome, RunSpec, WheelQueue, validate};
use weir_units::Instant;
use weir_units::feedback::Telemetry;

use crate::error::SimError;
use crate::tap::{PacketTap, Untapped};
use crate::world::{World, has_telemetry};

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

/// Runs `spec`. All randomness comes from `seed`: the same two give the same outcome.
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
    let mut unwatched = |_| ControlFlow::Continue(());
    match options.queue {
        QueueKind::Heap => simulate::<HeapQueue>(spec, seed, &mut Untapped, &mut unwatched),
        QueueKind::Wheel => simulate::<WheelQueue>(spec, seed, &mut Untapped, &mut unwatched),
    }
}

/// Runs what is sound, with or without telemetry.
fn simulate<Q: EventQueue>(
    spec: &RunSpec,
    seed: u64,
    tap: &mut dyn PacketTap,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    if has_telemetry(spec) {
        return World::<_, Q, Telemetry>::new(spec, seed)?.run(tap, watch);
    }
    World::<_, Q>::new(spec, seed)?.run(tap, watch)
}

/// Runs `spec` and passes the time to `watch` now and then, which may stop the run. It
/// has no influence on a run that it lets end.
///
/// # Errors
/// As [`run`], and if `watch` breaks it off.
pub fn run_watched(
    spec: &RunSpec,
    seed: u64,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    validate(spec)?;
    simulate::<WheelQueue>(spec, seed, &mut Untapped, watch)
}

/// Runs `spec`, passes the time to `watch`, and has `tap` record packets.
///
/// # Errors
/// As [`run_watched`].
pub fn run_with_tap(
    spec: &RunSpec,
    seed: u64,
    tap: &mut dyn PacketTap,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, SimError> {
    validate(spec)?;
    simulate::<WheelQueue>(spec, seed, tap, watch)
}

//! A run that its owner moves on, step by step.

use std::sync::Arc;

use weir_scene::{RunSpec, WheelQueue, validate};
use weir_trace::{EventRow, FrameRow, NodeRow, QueueRow, SampleRow};
use weir_units::Instant;
use weir_units::feedback::Telemetry;

use crate::error::SimError;
use crate::tap::PacketTap;
use crate::world::{Progress, World, has_telemetry};

/// A run that its owner moves on: the same events in the same order as in [`run`](crate::run()).
pub struct Simulation {
    world: Worlds,
}

/// A run with or without telemetry.
enum Worlds {
    Plain(World<Arc<RunSpec>, WheelQueue>),
    Telemetry(World<Arc<RunSpec>, WheelQueue, Telemetry>),
}

/// Does the same with either.
macro_rules! either {
    ($worlds:expr, $world:ident => $call:expr) => {
        match $worlds {
            Worlds::Plain($world) => $call,
            Worlds::Telemetry($world) => $call,
        }
    };
}

impl Simulation {
    /// A run before its first event. All randomness comes from `seed`.
    ///
    /// # Errors
    /// If the description contradicts itself.
    pub fn new(spec: Arc<RunSpec>, seed: u64) -> Result<Self, SimError> {
        validate(&spec)?;
        let world = if has_telemetry(&spec) {
            Worlds::Telemetry(World::new(spec, seed)?)
        } else {
            Worlds::Plain(World::new(spec, seed)?)
        };
        Ok(Self { world })
    }

    /// Has the taps of later steps record packets.
    pub fn watch(&mut self, tap: &dyn PacketTap) {
        either!(&mut self.world, world => world.watch(tap));
    }

    /// Handles events up to and including `until`, at most `max_events`. `tap` records what passes.
    ///
    /// # Errors
    /// If a checker finds the simulator at fault.
    pub fn advance(
        &mut self,
        until: Instant,
        max_events: u64,
        tap: &mut dyn PacketTap,
    ) -> Result<Progress, SimError> {
        let progress =
            either!(&mut self.world, world => world.advance(Some(until), max_events, tap))?;
        if progress == Progress::Ended {
            either!(&mut self.world, world => world.check())?;
        }
        Ok(progress)
    }

    /// What it runs.
    pub fn spec(&self) -> &RunSpec {
        either!(&self.world, world => &world.run.spec)
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        either!(&self.world, world => world.net.now)
    }

    /// The hash over every delivery so far.
    pub fn trace_hash(&self) -> u64 {
        either!(&self.world, world => world.net.trace_hash())
    }

    /// The rows of table `samples` so far.
    pub fn samples(&self) -> &[SampleRow] {
        either!(&self.world, world => world.run.samples())
    }

    /// The rows of table `queues` so far.
    pub fn queues(&self) -> &[QueueRow] {
        either!(&self.world, world => world.run.queues())
    }

    /// The rows of table `events` so far.
    pub fn events(&self) -> &[EventRow] {
        either!(&self.world, world => world.net.notes.log.rows())
    }

    /// The rows of table `nodes` so far; none without a radio network.
    pub fn nodes(&mut self) -> Vec<NodeRow> {
        let now = self.now();
        either!(&mut self.world, world => world.net.radio())
            .map(|radio| radio.nodes(now))
            .unwrap_or_default()
    }

    /// The rows of table `frames` since this was called last.
    pub fn take_frames(&mut self) -> Vec<FrameRow> {
        either!(&mut self.world, world => world.net.radio())
            .map(|radio| radio.frames())
            .unwrap_or_default()
    }
}

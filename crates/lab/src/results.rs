//! The one entry point of every experiment, and its result tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use weir_scene::{Outcome, RunSpec};
use weir_trace::Capture;
use weir_units::Instant;

use crate::error::{Problem, ScenarioError};
use crate::run::{World, check_host, check_ours};
use crate::run_error::{RunError, Watch};
use crate::scenario::Scenario;
use crate::table::{self, Table};
use crate::tap::Captures;
use crate::{kernel, real_time};

/// What a run found out.
#[derive(Clone, Debug)]
pub struct Results {
    tables: Vec<Table>,
}

/// Runs `scenario` in a world. In the simulated one the same scenario and seed give the same tables,
/// on every machine.
///
/// # Errors
/// If the network cannot be built, or a checker finds that the run went wrong.
pub fn run(scenario: &Scenario, seed: u64, world: World) -> Result<Results, RunError> {
    run_watched(scenario, seed, world, None, &mut |_| ControlFlow::Continue(()))
}

/// The same under the eyes of `watch`. Where there are packets to record, `capture` asks for it; in the
/// simulated world its times count from the beginning of the run.
///
/// # Errors
/// As [`run`], if `watch` breaks it off, and if packets cannot be recorded.
pub fn run_watched(
    scenario: &Scenario,
    seed: u64,
    world: World,
    capture: Option<&Capture>,
    watch: &mut Watch<'_>,
) -> Result<Results, RunError> {
    let spec = scenario.spec();
    if matches!(world, World::Sim | World::Udp) {
        check_ours(spec)?;
    }
    check_host(spec, world)?;
    let outcome = match world {
        World::Sim => match capture {
            Some(asked) => taped(spec, seed, Captures::of_bottleneck(spec, asked)?, watch)?,
            None => weir_sim::run_watched(spec, seed, watch)?,
        },
        World::Udp => {
            refuse_capture(capture)?;
            real_time::run(spec, seed, watch)?
        }
        World::Kernel(router) => kernel::run(spec, seed, router, capture, watch)?,
        World::Hosts => return Err(without_hosts().into()),
    };
    Ok(Results::new(&outcome))
}

/// Runs `scenario` in the simulated world and records what passes every interface: of the senders, of
/// the receivers, before and after each monitored link. Each has a file, `STEM-INTERFACE.pcapng` in
/// `folder`; one that is there already is replaced. `watch` is as in [`run_watched`].
///
/// # Errors
/// As [`run_watched`], if there is no link to record packets at, and if a file cannot be written.
pub fn record(
    scenario: &Scenario,
    seed: u64,
    folder: &Path,
    stem: &str,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Results, RunError> {
    let spec = scenario.spec();
    check_ours(spec)?;
    let captures = Captures::of_interfaces(spec, folder, stem)?;
    let outcome = taped(spec, seed, captures, watch)?;
    Ok(Results::new(&outcome))
}

fn taped(
    spec: &RunSpec,
    seed: u64,
    mut captures: Captures<'_>,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let outcome = weir_sim::run_with_tap(spec, seed, &mut captures, watch)?;
    captures.finish()?;
    Ok(outcome)
}

fn without_hosts() -> ScenarioError {
    let message = "world hosts needs a list of hosts: `weir run SCENARIO --hosts FILE`";
    ScenarioError::nowhere(Problem::new("", message))
}

fn refuse_capture(capture: Option<&Capture>) -> Result<(), ScenarioError> {
    capture.map_or(Ok(()), |_| {
        let message = "packets are recorded in the worlds sim and kernel only";
        Err(ScenarioError::nowhere(Problem::new("", message)))
    })
}

impl Results {
    pub(crate) fn new(outcome: &Outcome) -> Self {
        let tables = vec![
            table::summary(&outcome.summary),
            table::flows(&outcome.flows),
            table::samples(&outcome.samples),
            table::acks(&outcome.acks),
            table::queues(&outcome.queues),
            table::links(&outcome.links),
            table::nodes(&outcome.nodes),
            table::frames(&outcome.frames),
            table::requests(&outcome.requests),
            table::arrivals(&outcome.arrivals),
            table::events(&outcome.events),
        ];
        Self { tables }
    }

    /// Every table: `summary` with its one row, `flows`, `samples`, `acks`, `queues`, `links`,
    /// `nodes`, `frames`, `requests`, `arrivals`, `events`.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Every table as one JSON object: name, then column, then the column's type and cells.
    pub fn to_json(&self) -> String {
        let tables: BTreeMap<_, _> = self.tables.iter().map(|table| (table.name, table)).collect();
        serde_json::to_string(&tables).expect("tables have text keys")
    }
}

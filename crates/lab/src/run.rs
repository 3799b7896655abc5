//! The one entry point of every experiment.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::Path;
use std::str::FromStr;

use arrow_ipc::writer::FileWriter;
use weir_cc::CcConfig;
use weir_scene::{Outcome, Router, RunSpec, TransportSpec, Workload};
use weir_trace::Capture;
use weir_units::{Instant, known};

use crate::error::{Problem, ScenarioError};
use crate::run_error::{RunError, Watch};
use crate::scenario::Scenario;
use crate::table::{self, Table};
use crate::tap::Captures;
use crate::{kernel, real_time};

/// Where a scenario is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// The simulator: virtual time.
    #[default]
    Sim,
    /// Real transfers over UDP sockets on loopback, through the scenario's links in real time.
    Udp,
    /// The Linux kernel's own TCP between two network namespaces, through the scenario's links in real
    /// time, or through the kernel's own netem.
    Kernel(Router),
}

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
    let outcome = weir_sim::run_taped(spec, seed, &mut captures, watch)?;
    captures.finish()?;
    Ok(outcome)
}

/// Says whether `scenario` can be run in `world`, without running it.
///
/// # Errors
/// For what that world cannot honour, with the reason.
pub fn check(scenario: &Scenario, world: World) -> Result<(), ScenarioError> {
    let spec = scenario.spec();
    if matches!(world, World::Sim | World::Udp) {
        check_ours(spec)?;
    }
    check_host(spec, world)?;
    match world {
        World::Sim => Ok(()),
        World::Udp => real_time::check(spec),
        World::Kernel(router) => kernel::check(spec, router),
    }
}

/// Refuses what only a kernel's TCP has, and controllers without a host: these connections are ours.
fn check_ours(spec: &RunSpec) -> Result<(), ScenarioError> {
    for flow in &spec.flows {
        if let TransportSpec::Program(programs) = &flow.transport {
            let message = format!(
                "{}: stack = {}: only world kernel runs programs; add --world kernel, with --virtual \
                 for virtual time",
                flow.name, programs.name
            );
            return Err(ScenarioError::nowhere(Problem::new("", message)));
        }
        let TransportSpec::Reliable(config) = &flow.transport else { continue };
        let problem = match &config.stack.controller {
            CcConfig::Kernel(name) => format!(
                "only a kernel's TCP has '{name}'; `weir list controllers` prints what our \
                 connections have"
            ),
            CcConfig::Script(script) if !script.is_hosted() => {
                format!("there is no Python here that could run '{script}'")
            }
            _ => continue,
        };
        let message = format!("{}: stack = {}: {problem}", flow.name, config.stack);
        return Err(ScenarioError::nowhere(Problem::new("", message)));
    }
    Ok(())
}

/// Refuses what only the simulator has.
fn check_host(spec: &RunSpec, world: World) -> Result<(), ScenarioError> {
    let many = spec.flows.iter().find(|flow| matches!(flow.workload, Workload::FlowSizes(_)));
    if let Some(flow) = many.filter(|_| world != World::Sim) {
        let message = format!(
            "{}: workload.kind = 'flow-sizes' is not allowed here; only world sim makes connections \
             while it runs",
            flow.name
        );
        return Err(ScenarioError::nowhere(Problem::new("", message)));
    }
    if spec.radio.is_none() || world == World::Sim {
        return Ok(());
    }
    let message = "'radio' is not allowed here; only world sim has radio networks";
    Err(ScenarioError::nowhere(Problem::new("topology.kind", message)))
}

fn refuse_capture(capture: Option<&Capture>) -> Result<(), ScenarioError> {
    capture.map_or(Ok(()), |_| {
        let message = "packets are recorded in the worlds sim and kernel only";
        Err(ScenarioError::nowhere(Problem::new("", message)))
    })
}

/// Says whether a kernel with these congestion controls, wherever it is, can run `scenario` behind
/// `router`.
///
/// # Errors
/// For what it cannot honour, with the reason.
pub fn check_kernel(
    scenario: &Scenario,
    router: Router,
    controllers: &[String],
) -> Result<(), ScenarioError> {
    let spec = scenario.spec();
    check_host(spec, World::Kernel(router))?;
    kernel::check_for(spec, router, controllers)
}

impl World {
    /// Every world: its name, and what it is.
    pub const CATALOGUE: &[(Self, &'static str, &'static str)] = &[
        (Self::Sim, "sim", "the simulator: virtual time, the same tables for the same seed"),
        (
            Self::Udp,
            "udp",
            "real transfers over UDP sockets on loopback, through the scenario's links in real time",
        ),
        (
            Self::Kernel(Router::Weir),
            "kernel",
            "Linux's own TCP between two network namespaces, through the scenario's links in real \
             time",
        ),
    ];
}

/// No world of its own: a check of world `kernel`, in guests.
const BEHIND_NETEM: &str = "kernel-netem";

impl FromStr for World {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == BEHIND_NETEM {
            return Ok(Self::Kernel(Router::Netem));
        }
        let found = Self::CATALOGUE.iter().find(|(_, name, _)| *name == text);
        found.map(|(world, ..)| *world).ok_or_else(|| {
            let names = Self::CATALOGUE.iter().map(|(_, name, _)| *name);
            format!("there is no world '{text}'; {}", known(text, names))
        })
    }
}

impl Results {
    fn new(outcome: &Outcome) -> Self {
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

    /// Writes every table into `folder`, as an Arrow IPC file `NAME.arrow`.
    ///
    /// # Errors
    /// What the system refuses, with the file's path.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        for table in &self.tables {
            let path = folder.join(format!("{}.arrow", table.name));
            write_ipc(table, &path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        Ok(())
    }
}

fn write_ipc(table: &Table, path: &Path) -> io::Result<()> {
    let file = BufWriter::new(File::create(path)?);
    let schema = table.batch.schema();
    FileWriter::try_new(file, &schema)
        .and_then(|mut writer| {
            writer.write(&table.batch)?;
            writer.into_inner()
        })
        .map_err(io::Error::other)?
        .into_inner()?;
    Ok(())
}

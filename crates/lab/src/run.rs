//! Where a scenario is run, and what each world refuses.

use std::str::FromStr;
use std::sync::Arc;

use weir_cc::CcConfig;
use weir_net::FeedbackConfig;
use weir_scene::{FlowSizes, LinkSpec, Pattern, Router, RunSpec, TransportSpec, Workload};
use weir_sim::Simulation;
use weir_units::known;

use crate::error::{Problem, ScenarioError};
use crate::run_error::RunError;
use crate::scenario::Scenario;
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
    /// The TCP of several hosts' kernels, over the network between them.
    Hosts,
}

/// Prepares `scenario` for the simulated world: its owner moves it on, and reads what happens.
///
/// # Errors
/// If the network cannot be built.
pub fn simulation(scenario: &Scenario, seed: u64) -> Result<Simulation, RunError> {
    let spec = scenario.shared_spec();
    check_ours(spec)?;
    check_host(spec, World::Sim)?;
    Ok(Simulation::new(Arc::clone(spec), seed)?)
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
        World::Hosts => kernel::check_between_hosts(spec),
    }
}

/// Refuses what only a kernel's TCP has, and controllers without a host: these connections are ours.
pub(crate) fn check_ours(spec: &RunSpec) -> Result<(), ScenarioError> {
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
pub(crate) fn check_host(spec: &RunSpec, world: World) -> Result<(), ScenarioError> {
    let many = spec.flows.iter().find(|flow| flow.workload.makes_connections());
    if let Some(flow) = many.filter(|_| world != World::Sim) {
        let message = format!(
            "{}: workload.kind = '{}' is not allowed here; only world sim makes connections \
             while it runs",
            flow.name,
            kind_of(&flow.workload)
        );
        return Err(ScenarioError::nowhere(Problem::new("", message)));
    }
    if spec.fabric.is_some() && world != World::Sim {
        let message = "not allowed here; only world sim has switches that choose among links";
        return Err(ScenarioError::nowhere(Problem::new("topology.routing", message)));
    }
    let is_int = |link: &&LinkSpec| link.config.feedback == Some(FeedbackConfig::Int);
    if let Some(link) = spec.links.iter().find(is_int).filter(|_| world != World::Sim) {
        let message = format!(
            "{}: feedback.kind = 'int' is not allowed here; only world sim has packets with space for \
             telemetry",
            link.name
        );
        return Err(ScenarioError::nowhere(Problem::new("", message)));
    }
    if spec.radio.is_none() || world == World::Sim {
        return Ok(());
    }
    let message = "'radio' is not allowed here; only world sim has radio networks";
    Err(ScenarioError::nowhere(Problem::new("topology.kind", message)))
}

/// What a scenario calls a workload that makes connections.
fn kind_of(workload: &Workload) -> &'static str {
    match workload {
        Workload::FlowSizes(FlowSizes { pattern: Pattern::Incast { .. }, .. }) => "incast",
        Workload::FlowSizes(FlowSizes { pattern: Pattern::Permutation { .. }, .. }) => {
            "permutation"
        }
        Workload::FlowSizes(FlowSizes { pattern: Pattern::AllReduce(_), .. }) => "all-reduce",
        Workload::Listed(_) => "connections",
        _ => "flow-sizes",
    }
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
/// No world of one machine: it needs a list of hosts.
const BETWEEN_HOSTS: &str = "hosts";

impl FromStr for World {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == BEHIND_NETEM {
            return Ok(Self::Kernel(Router::Netem));
        }
        if text == BETWEEN_HOSTS {
            return Ok(Self::Hosts);
        }
        let found = Self::CATALOGUE.iter().find(|(_, name, _)| *name == text);
        found.map(|(world, ..)| *world).ok_or_else(|| {
            let names = Self::CATALOGUE.iter().map(|(_, name, _)| *name);
            format!("there is no world '{text}'; {}", known(text, names))
        })
    }
}

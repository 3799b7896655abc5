//! What there is to choose from.

use serde::Serialize;
use serde_json::{Value, json};
use weir_cc::CcConfig;
use weir_transport::{RecoveryConfig, RoutePolicy};

use crate::feedback::{Agent, AgentKind};
use crate::flow::{Flow, Workload, WorkloadKind};
use crate::keys::{Key, Kind};
use crate::queue::Discipline;
use crate::radio::{Radio, RadioRed};
use crate::run::World;
use crate::scenario_file::{Measure, ScenarioFile};
use crate::topology::{BurstLoss, Direction, GraphLink, Policer, Topology, TopologyKind};

/// A section of a scenario file.
#[derive(Clone, Debug)]
pub struct Section {
    /// How it is written.
    pub title: String,
    /// Its keys, in the order of the reference.
    pub keys: &'static [Key],
    /// The value that each key has when it is not written, as a JSON object.
    pub defaults: fn() -> Value,
}

/// Every section of a scenario file, in the order of the reference.
pub fn sections() -> Vec<Section> {
    let queues = Discipline::KINDS.iter().map(|kind| Section::of("queue", kind));
    let before = [
        section::<ScenarioFile>("The file", ScenarioFile::KEYS),
        section::<Topology>("`[topology]`", Topology::KEYS),
    ];
    let after = [
        section::<Agent>("`feedback` of a bottleneck", Agent::KEYS),
        section::<Direction>("`[topology.forward]` and `[topology.reverse]`", Direction::KEYS),
        section::<BurstLoss>("`burst_loss` of a direction", BurstLoss::KEYS),
        section::<Policer>("`policer` of a direction", Policer::KEYS),
        section::<GraphLink>("`[[topology.link]]`", GraphLink::KEYS),
        section::<Radio>("`[topology.radio]`", Radio::KEYS),
        section::<RadioRed>("`red` of `[topology.radio]`", RadioRed::KEYS),
        section::<Flow>("`[[flow]]`", Flow::KEYS),
        section::<Workload>("`workload` of a flow", Workload::KEYS),
        section::<Measure>("`[measure]`", Measure::KEYS),
    ];
    before.into_iter().chain(queues).chain(after).collect()
}

impl Section {
    fn of(key: &str, kind: &Kind) -> Self {
        let title = format!("`{key}` of kind `{}`: {}", kind.name, kind.about);
        Self { title, keys: kind.keys, defaults: kind.defaults }
    }
}

fn section<T: Default + Serialize>(title: &str, keys: &'static [Key]) -> Section {
    Section { title: title.to_owned(), keys, defaults: defaults::<T> }
}

fn defaults<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).expect("every key can be written")
}

/// The keys of a direction that make something go wrong or change.
const IMPAIRMENTS: &[&str] = &[
    "policer",
    "loss",
    "burst_loss",
    "drop",
    "corrupt",
    "duplicate",
    "reorder",
    "jitter",
    "rate_trace",
    "rate_steps",
    "delay_steps",
];

/// Everything that a scenario may name, as a JSON object of lists; each entry has `name`, `description`
/// and `parameters`.
pub fn catalogue() -> String {
    let controllers = CcConfig::CATALOGUE.iter().map(|entry| {
        json!({
            "name": entry.name,
            "description": entry.summary,
            "parameters": entry.parameters,
            "examples": entry.examples,
        })
    });
    let recoveries = RecoveryConfig::CATALOGUE.iter().map(|(name, about)| plain(name, about, ""));
    let policies = RoutePolicy::CATALOGUE.iter().map(|entry| {
        json!({
            "name": entry.name,
            "description": entry.summary,
            "parameters": entry.parameters,
            "examples": entry.examples,
        })
    });
    let topologies = TopologyKind::CATALOGUE
        .iter()
        .map(|(kind, name, about)| plain(name, about, &kind.keys()[1..].join(", ")));
    let workloads = WorkloadKind::CATALOGUE
        .iter()
        .map(|(kind, name, about)| plain(name, about, &kind.keys()[1..].join(", ")));
    let impairments = Direction::KEYS
        .iter()
        .filter(|key| IMPAIRMENTS.contains(&key.name))
        .map(|key| plain(key.name, key.about.trim(), key.form));
    let queues = Discipline::KINDS.iter().map(|kind| {
        let keys: Vec<&str> = kind.keys.iter().map(|key| key.name).collect();
        plain(kind.name, kind.about, &keys.join(", "))
    });
    let feedback = AgentKind::CATALOGUE
        .iter()
        .map(|(kind, name, about)| plain(name, about, &kind.keys()[1..].join(", ")));
    let worlds = World::CATALOGUE.iter().map(|(_, name, about)| plain(name, about, ""));
    json!({
        "controllers": controllers.collect::<Vec<_>>(),
        "recoveries": recoveries.collect::<Vec<_>>(),
        "route_policies": policies.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "feedback": feedback.collect::<Vec<_>>(),
        "impairments": impairments.collect::<Vec<_>>(),
        "topologies": topologies.collect::<Vec<_>>(),
        "workloads": workloads.collect::<Vec<_>>(),
        "worlds": worlds.collect::<Vec<_>>(),
    })
    .to_string()
}

fn plain(name: &str, about: &str, parameters: &str) -> Value {
    json!({ "name": name, "description": about, "parameters": parameters })
}

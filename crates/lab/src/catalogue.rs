//! What there is to choose from.

use serde_json::{Value, json};
use weir_cc::CcConfig;
use weir_transport::RecoveryConfig;

use crate::flow::{Flow, Workload, WorkloadKind};
use crate::keys::Key;
use crate::scenario::{Measure, Scenario};
use crate::topology::{BurstLoss, Direction, GraphLink, Topology, TopologyKind};

/// Every section of a scenario file with its keys, in the order of the reference.
pub const SECTIONS: &[(&str, &[Key])] = &[
    ("", Scenario::KEYS),
    ("topology", Topology::KEYS),
    ("topology.forward, topology.reverse, topology.link.impair", Direction::KEYS),
    ("burst_loss", BurstLoss::KEYS),
    ("topology.link", GraphLink::KEYS),
    ("flow", Flow::KEYS),
    ("flow.workload", Workload::KEYS),
    ("measure", Measure::KEYS),
];

/// The keys of a direction that make something go wrong or change.
const IMPAIRMENTS: &[&str] = &[
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
    let queues = [plain("droptail", "a FIFO that drops what finds no room", "queue")];
    json!({
        "controllers": controllers.collect::<Vec<_>>(),
        "recoveries": recoveries.collect::<Vec<_>>(),
        "queues": queues,
        "impairments": impairments.collect::<Vec<_>>(),
        "topologies": topologies.collect::<Vec<_>>(),
        "workloads": workloads.collect::<Vec<_>>(),
    })
    .to_string()
}

fn plain(name: &str, about: &str, parameters: &str) -> Value {
    json!({ "name": name, "description": about, "parameters": parameters })
}

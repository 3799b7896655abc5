//! What there is to choose from.

use std::fmt::Debug;

use serde_json::{Value, json};
use weir_cc::CcConfig;
use weir_foreign::StackName;
use weir_transport::{RecoveryConfig, RoutePolicy};

use crate::buffer::Buffer;
use crate::direction::{BurstLoss, Direction, IMPAIRMENTS, Policer};
use crate::feedback::Feedback;
use crate::flow::Flow;
use crate::keys::{self, Choices, Key, Kind, Section as _, Words};
use crate::queue::Discipline;
use crate::radio::{Radio, RadioRed};
use crate::run::World;
use crate::scenario_file::{Measure, ScenarioFile};
use crate::topology::{FabricPort, GraphLink, Topology, TopologyKind};
use crate::workload::Workload;

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
    let feedback = Feedback::KINDS.iter().map(|kind| Section::of("feedback", kind));
    let links = [
        section::<Direction>("`[topology.forward]` and `[topology.reverse]`", Direction::KEYS),
        section::<BurstLoss>("`burst_loss` of a direction", BurstLoss::KEYS),
        section::<Policer>("`policer` of a direction", Policer::KEYS),
        section::<GraphLink>("`[[topology.link]]`", GraphLink::KEYS),
        section::<FabricPort>("`[[topology.port]]`", FabricPort::KEYS),
        section::<Buffer>("`buffer` of `[topology]`", Buffer::KEYS),
        section::<Radio>("`[topology.radio]`", Radio::KEYS),
        section::<RadioRed>("`red` of `[topology.radio]`", RadioRed::KEYS),
        section::<Flow>("`[[flow]]`", Flow::KEYS),
    ];
    let workloads = Workload::KINDS.iter().map(|kind| Section::of("workload", kind));
    let measure = section::<Measure>("`[measure]`", Measure::KEYS);
    let network = before.into_iter().chain(queues).chain(feedback).chain(links);
    network.chain(workloads).chain([measure]).filter(|section| !section.keys.is_empty()).collect()
}

impl Section {
    fn of(key: &str, kind: &Kind) -> Self {
        let title = format!("`{key}` of kind `{}`: {}", kind.name, kind.about);
        Self { title, keys: kind.keys, defaults: kind.defaults }
    }
}

fn section<S: keys::Section + Default + Debug>(title: &str, keys: &'static [Key]) -> Section {
    Section { title: title.to_owned(), keys, defaults: keys::defaults::<S> }
}

/// Everything that a scenario may name, as an object of lists; each entry has `name`, `description` and
/// `parameters`.
pub fn catalogue() -> Value {
    // Two crates have this record, so this is no function.
    macro_rules! written {
        ($list:expr) => {
            $list.iter().map(|entry| {
                json!({
                    "name": entry.name,
                    "description": entry.summary,
                    "parameters": entry.parameters,
                    "examples": entry.examples,
                })
            })
        };
    }
    let controllers = written!(CcConfig::CATALOGUE);
    let stacks = StackName::catalogue().map(|(name, about)| plain(name, about, ""));
    let recoveries = written!(RecoveryConfig::CATALOGUE);
    let policies = written!(RoutePolicy::CATALOGUE);
    let kinds = TopologyKind::WORDS.iter().zip(TopologyKind::ABOUT);
    let topologies = kinds.map(|((name, kind), about)| plain(name, about, &topology_keys(*kind)));
    let impairments = Direction::KEYS
        .iter()
        .filter(|key| IMPAIRMENTS.contains(&key.name))
        .map(|key| plain(key.name, key.about.trim(), &key.value()));
    let worlds = World::CATALOGUE.iter().map(|(_, name, about)| plain(name, about, ""));
    json!({
        "controllers": controllers.collect::<Vec<_>>(),
        "stacks": stacks.collect::<Vec<_>>(),
        "recoveries": recoveries.collect::<Vec<_>>(),
        "route_policies": policies.collect::<Vec<_>>(),
        "queues": of_kinds(Discipline::KINDS),
        "feedback": of_kinds(Feedback::KINDS),
        "impairments": impairments.collect::<Vec<_>>(),
        "topologies": topologies.collect::<Vec<_>>(),
        "workloads": of_kinds(Workload::KINDS),
        "worlds": worlds.collect::<Vec<_>>(),
    })
}

fn of_kinds(kinds: &[Kind]) -> Vec<Value> {
    let keys = |kind: &Kind| kind.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ");
    kinds.iter().map(|kind| plain(kind.name, kind.about, &keys(kind))).collect()
}

/// The keys of a topology of this kind but `kind` itself.
fn topology_keys(kind: TopologyKind) -> String {
    let table = Topology { kind, ..Topology::default() }.to_table();
    table.keys().skip(1).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn plain(name: &str, about: &str, parameters: &str) -> Value {
    json!({ "name": name, "description": about, "parameters": parameters })
}

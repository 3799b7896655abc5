//! The keys of a scenario file, with every default filled in.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use weir_units::{BufferSize, Bytes, Duration, Rate, known};

use crate::check;
use crate::error::Problem;
use crate::flow::{Flow, Protocol, WorkloadKind};
use crate::keys::{form, keep, section};
use crate::queue::Queue;
use crate::tc;
use crate::topology::{Topology, TopologyKind};

section! {
    /// A scenario file as a whole.
    pub struct ScenarioFile {
        /// Name of results and reports; by default that of the file.
        name: String = "scenario".to_owned(),
        /// One-line description.
        description: String = String::new(),
        /// The network.
        topology: Topology = Topology::default(),
        /// The flows.
        flow: Vec<Flow> = Vec::new(),
        /// Measurement settings.
        measure: Measure = Measure::default(),
        /// Source text of controllers that stacks name as `FILE.py:CLASS`, by `FILE`. A file that is
        /// not given here is read from the scenario's folder.
        controllers: BTreeMap<String, String> = BTreeMap::new(),
        /// Values to try, by dotted key, as in `"topology.queue" = ["1bdp", "2bdp"]`.
        sweep: Map<String, Value> = Map::new(),
    }
}

section! {
    /// What is measured, how long, how often.
    pub struct Measure {
        /// The run ends here, or earlier when every flow has finished.
        duration: Duration = Duration::from_secs(60),
        /// Time before this is excluded from every metric.
        warmup: Duration = Duration::ZERO,
        /// Time between two rows of `samples` and `queues`; `0s` records none.
        sample_interval: Duration = Duration::from_millis(100),
        /// Maximum rows of `events`; 0 records none.
        events: u32 = 0,
        /// Maximum rows of `requests` for each flow, the first answered ones; 0 records none.
        requests: u32 = weir_scene::MeasureSpec::default().max_requests as u32,
        /// Maximum rows of `arrivals` for each flow, the first to arrive; 0 records none.
        arrivals: u32 = weir_scene::MeasureSpec::default().max_arrivals as u32,
        /// Maximum rows of `acks` for each flow; 0 records none.
        acks: u32 = 0,
        /// Maximum rows of `frames`, over radio; 0 records none.
        frames: u32 = 0,
        /// Number of repeats, each with the next seed.
        repeat: u32 = 1,
        /// Seed of the first repeat.
        seed: u64 = 1,
    }
}

form! {
    Topology => "section",
    Vec<Flow> => "list of sections",
    Measure => "section",
    BTreeMap<String, String> => "section",
    Map<String, Value> => "section",
}

impl ScenarioFile {
    /// Reads a tree of values and checks each key; what the keys describe together is checked where it is
    /// lowered. The values of a sweep are not tried.
    pub(crate) fn from_tree(mut tree: Map<String, Value>) -> Result<Self, Problem> {
        tc::expand(&mut tree)?;
        let mut file: Self = deserialize(Value::Object(tree.clone()))?;
        check::foreign_keys(&tree, &file)?;
        file.complete();
        check::check(&file)?;
        Ok(file)
    }

    /// The canonical form: every key that means something, with its value, in one order and one
    /// spelling. Two scenarios that mean the same have the same canonical form.
    pub fn to_json(&self) -> String {
        let mut tree = serde_json::to_value(self).expect("every key can be written");
        keep(&mut tree["topology"], self.topology.kind.keys());
        if self.topology.kind == TopologyKind::Radio {
            keep(&mut tree["topology"]["radio"], &self.topology.radio.keys());
        }
        for (flow, written) in
            self.flow.iter().zip(tree["flow"].as_array_mut().into_iter().flatten())
        {
            keep(written, &flow.keys().collect::<Vec<_>>());
            keep(&mut written["workload"], flow.workload.kind.keys());
        }
        if self.controllers.is_empty()
            && let Some(table) = tree.as_object_mut()
        {
            table.remove("controllers");
        }
        tree.to_string()
    }

    /// Fills in the defaults that depend on other keys.
    fn complete(&mut self) {
        let queue = match self.topology.kind {
            TopologyKind::LabRouter => BufferSize::Bytes(Bytes(64 << 10)),
            _ => BufferSize::Bdp(1_000),
        };
        self.topology.queue.get_or_insert(Queue::drop_tail(queue));
        self.topology.queues_mut().for_each(|queue| queue.0.complete());
        for (index, flow) in self.flow.iter_mut().enumerate() {
            flow.name.get_or_insert_with(|| format!("flow{index}"));
            flow.mss.get_or_insert(match flow.stack {
                Protocol::Udp => weir_scene::UdpConfig::default().payload,
                Protocol::Reliable(_) => weir_transport::Config::default().mss,
            });
            let workload = &mut flow.workload;
            workload.size.get_or_insert(match workload.kind {
                WorkloadKind::Rate | WorkloadKind::OnOff => Bytes(1_000),
                _ => Bytes(1_000_000),
            });
            if workload.kind == WorkloadKind::Rate {
                workload.rate.get_or_insert(Rate::from_mbit(1));
            }
        }
    }
}

/// Reads a value, and names the key where that fails.
pub(crate) fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let key = match error.path().to_string() {
            path if path == "." => String::new(),
            path => path.replace('[', ".").replace(']', ""),
        };
        let text = error.inner().to_string();
        Problem::from_custom(&key, &text).unwrap_or_else(|| Problem::new(key, in_our_words(&text)))
    })
}

/// serde's wording, shorter and without the names of our types.
fn in_our_words(message: &str) -> String {
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let value = what.split_once(['`', '"']).map_or("this", |(_, rest)| &rest[..rest.len() - 1]);
    let allowed = expected.trim_start_matches("one of ").replace('`', "");
    if what.starts_with("unknown field") {
        return format!("there is no such key; {}", known(value, allowed.split(", ")));
    }
    if what.starts_with("unknown variant") {
        return format!("'{value}' is not allowed; {}", known(value, allowed.split(", ")));
    }
    if what.starts_with("missing field") {
        return format!("{value} is missing");
    }
    if !what.starts_with("invalid") {
        return message.to_owned();
    }
    let needed = match expected {
        "u32" | "u64" => "it is a whole number, not negative",
        "a boolean" => "it is true or false",
        "a string" => "it is text in quotes",
        "a sequence" => "it is a list",
        section if section.starts_with("struct") => "it is a section with keys of its own",
        other => other,
    };
    format!("{value} is not allowed; {needed}")
}

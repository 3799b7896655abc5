//! The keys of a scenario file, with every default filled in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use weir_units::Duration;

use crate::error::Problem;
use crate::flow::Flow;
use crate::keys::{Section, form, section};
use crate::range::{above, at_most, between};
use crate::tc;
use crate::topology::{Topology, TopologyKind};
use crate::workload::MAX_ARRIVALS;

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
        duration: Duration [above(Duration::ZERO).to(LONGEST_RUN).because("(720h)")]
            = Duration::from_secs(60),
        /// Time before this is excluded from every metric.
        warmup: Duration = Duration::ZERO,
        /// Time between two rows of `samples` and `queues`; `0s` records none.
        sample_interval: Duration = Duration::from_millis(100),
        /// Maximum rows of `events`; 0 records none.
        events: u32 [at_most(MAX_EVENTS)] = 0,
        /// Maximum rows of `requests` for each flow, the first answered ones; 0 records none.
        requests: u32 [at_most(MAX_REQUESTS)] = weir_scene::MeasureSpec::default().max_requests as u32,
        /// Maximum rows of `arrivals` for each flow, the first to arrive; 0 records none.
        arrivals: u32 [at_most(MAX_ARRIVALS as u32)] = weir_scene::MeasureSpec::default().max_arrivals as u32,
        /// Maximum rows of `acks` for each flow; 0 records none.
        acks: u32 = 0,
        /// Maximum rows of `frames`, over radio; 0 records none.
        frames: u32 [at_most(MAX_EVENTS)] = 0,
        /// Number of repeats, each with the next seed.
        repeat: u32 [between(1, MAX_REPEATS)] = 1,
        /// Seed of the first repeat.
        seed: u64 = 1,
    }
}

/// A run longer than this is taken for a slip.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 86_400);
const MAX_REPEATS: u32 = 100_000;
const MAX_EVENTS: u32 = 10_000_000;
const MAX_REQUESTS: u32 = 10_000_000;

form! {
    Topology => "section",
    Vec<Flow> => "list of sections",
    Measure => "section",
    BTreeMap<String, String> => "section",
    Map<String, Value> => "section",
}

impl ScenarioFile {
    /// Reads a tree of values and fills in defaults. What the keys demand of each other is checked where the
    /// scenario is lowered.
    pub(crate) fn from_tree(mut tree: Map<String, Value>) -> Result<Self, Problem> {
        tc::expand(&mut tree)?;
        let mut file = Self::from_table(tree)?;
        file.complete();
        Ok(file)
    }

    /// The canonical form: every key that means something, with its value, in one order and one
    /// spelling. Two scenarios that mean the same have the same canonical form.
    pub fn to_value(&self) -> Value {
        let mut tree = Section::to_table(self);
        if self.controllers.is_empty() {
            tree.shift_remove("controllers");
        }
        if let (TopologyKind::Graph, Some(Value::Object(topology))) =
            (self.topology.kind, tree.get_mut("topology"))
        {
            // Its links have them.
            topology.shift_remove("queue");
            topology.shift_remove("feedback");
        }
        Value::Object(tree)
    }

    /// Fills in the defaults that depend on other keys.
    fn complete(&mut self) {
        self.topology.complete();
        for (index, flow) in self.flow.iter_mut().enumerate() {
            flow.complete(index, self.topology.mtu);
        }
    }
}

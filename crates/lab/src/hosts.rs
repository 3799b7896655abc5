//! Which flows share a host, for queues that are fair among hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_net::{Hosts, QueueConfig};
use weir_scene::topology::Topology as Built;

use crate::flow::Flow;
use crate::topology::{Node, TopologyKind};

/// Sets in the queues of a topology the hosts of its flows, where a queue asks for them.
pub(crate) fn name_hosts(built: &mut Built, kind: TopologyKind, flows: &[&Flow]) {
    let mut known: Option<Arc<[Hosts]>> = None;
    for link in &mut built.links {
        if let QueueConfig::Cake(cake) = &mut link.config.queue {
            cake.hosts = known.get_or_insert_with(|| hosts(kind, flows)).clone();
        }
    }
}

/// The hosts of each flow: those of one name have one number, a flow without a name one of its own.
fn hosts(kind: TopologyKind, flows: &[&Flow]) -> Arc<[Hosts]> {
    let mut numbers = BTreeMap::new();
    let mut last = 0;
    let mut number = |name: Option<String>| {
        let mut next = || {
            last += 1;
            last
        };
        match name {
            Some(name) => *numbers.entry(name).or_insert_with(next),
            None => next(),
        }
    };
    let in_graph =
        matches!(kind, TopologyKind::Graph | TopologyKind::LeafSpine | TopologyKind::FatTree);
    let named = |node: &&Node| in_graph && !node.is_any();
    let ends = flows.iter().map(|flow| {
        let from = flow.from.as_ref().filter(named).map(|node| node.0.clone());
        let to = flow.to.as_ref().filter(named).map(|node| node.0.clone());
        (flow.from_host.clone().or(from), flow.to_host.clone().or(to))
    });
    ends.map(|(from, to)| Hosts { from: number(from), to: number(to) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: Option<&str>, to: Option<&str>, node: Option<&str>) -> Flow {
        Flow {
            from_host: from.map(str::to_owned),
            to_host: to.map(str::to_owned),
            from: node.map(|name| Node(name.to_owned())),
            ..Flow::default()
        }
    }

    fn numbers(kind: TopologyKind, flows: &[Flow]) -> Vec<(u32, u32)> {
        let flows: Vec<&Flow> = flows.iter().collect();
        hosts(kind, &flows).iter().map(|pair| (pair.from, pair.to)).collect()
    }

    #[test]
    fn flows_of_one_name_share_a_host() {
        let flows = [
            flow(Some("a"), None, None),
            flow(Some("a"), Some("b"), None),
            flow(None, Some("b"), Some("a")),
        ];
        assert_eq!(numbers(TopologyKind::Dumbbell, &flows), [(1, 2), (1, 3), (4, 3)]);
        assert_eq!(numbers(TopologyKind::Graph, &flows), [(1, 2), (1, 3), (1, 3)]);
    }
}

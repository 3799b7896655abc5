//! Checks of where flows begin and end: which nodes they name, and the hosts that they draw.

use crate::error::{Checked, require};
use crate::fabric::MAX_HOSTS;
use crate::flow::Flow;
use crate::scenario_file::ScenarioFile;
use crate::topology::{Node, Topology, TopologyKind};
use crate::workload::Workload;

/// Of the ends that a flow names.
pub(crate) fn check_path(flow: &Flow, section: &str, topology: &Topology) -> Checked {
    let key = |name: &str| format!("{section}.{name}");
    if let Some(rtt) = flow.rtt {
        let dumbbell = topology.kind == TopologyKind::Dumbbell;
        require(dumbbell, key("rtt"), rtt, "only flows of a dumbbell have their own")?;
    }
    let known = topology.nodes();
    for (name, node) in [("from", &flow.from), ("to", &flow.to)] {
        let Some(node) = node else {
            let needed = topology.kind == TopologyKind::Graph && flow.workload.listed().is_none();
            let allowed = "a flow of a graph names a node, or * for any host";
            require(!needed, key(name), "nothing", allowed)?;
            continue;
        };
        let allowed = match topology.kind {
            _ if known.is_empty() => {
                "only flows of a chain, a parking lot, a graph or a fabric have ends".to_owned()
            }
            _ if topology.is_fabric() => format!("there are h0 to h{}, and *", known.len() - 1),
            TopologyKind::Graph => format!("there are {}, and *", known.join(", ")),
            _ => format!("there are {}", known.join(", ")),
        };
        let known = known.contains(&node.0) || (topology.has_hosts() && node.is_any());
        require(known, key(name), format!("'{}'", node.0), allowed)?;
    }
    let to = flow.to.as_ref().map_or("nothing".to_owned(), |node| format!("'{}'", node.0));
    let is_named = flow.from.as_ref().is_some_and(|node| !node.is_any());
    let differ = !is_named || flow.from != flow.to;
    if topology.is_fabric() {
        return require(differ, key("to"), to, "a flow has two different ends");
    }
    let paired = flow.from.is_some() == flow.to.is_some();
    let allowed = "a flow has two different ends, both named or neither";
    require(paired && differ, key("to"), to, allowed)
}

/// Of flows in a fabric, of those that draw hosts of a graph, and of those that need either.
pub(crate) fn check_hosts(flow: &Flow, section: &str, scenario: &ScenarioFile) -> Checked {
    let topology = &scenario.topology;
    let key = |name: &str| format!("{section}.{name}");
    let kind = format!("'{}'", flow.workload.kind());
    if flow.workload.draws_hosts() {
        let allowed = "it needs the hosts of a leaf-spine, a fat-tree or a graph";
        require(topology.has_hosts(), key("workload.kind"), kind, allowed)?;
    } else if flow.workload.listed().is_some() {
        let allowed = "it needs the nodes of a leaf-spine, a fat-tree or a graph";
        require(topology.has_hosts(), key("workload.kind"), kind, allowed)?;
    }
    let draws = topology.has_hosts() && (flow.draws_hosts() || flow.workload.draws_hosts());
    if draws && topology.kind == TopologyKind::Graph {
        check_graph(flow, section, topology)?;
    }
    check_workload(flow, section, scenario)?;
    check_free(flow, section, topology)?;
    let between_hosts = topology.is_fabric() || draws || flow.workload.listed().is_some();
    if between_hosts && flow.workload.makes_connections() {
        let allowed = "connections between hosts of their own share no server";
        for (name, time) in [("host_time", flow.host_time), ("send_time", flow.send_time)] {
            require(time.is_zero(), key(name), time, allowed)?;
        }
    }
    Ok(())
}

/// Of a flow that draws hosts of a graph.
fn check_graph(flow: &Flow, section: &str, topology: &Topology) -> Checked {
    let hosts = topology.host_count();
    let (key, value) = match &flow.from {
        _ if flow.workload.draws_hosts() => ("workload.kind", flow.workload.kind()),
        Some(node) if node.is_any() => ("from", "*"),
        _ => ("to", "*"),
    };
    let allowed = format!(
        "it draws hosts, the nodes with one neighbour: this graph has {hosts}, and 2 to {MAX_HOSTS} \
         are needed"
    );
    let enough = (2..=MAX_HOSTS).contains(&hosts);
    require(enough, format!("{section}.{key}"), format!("'{value}'"), allowed)?;
    let Some(rate) = topology.access_rate else { return Ok(()) };
    let allowed = "hosts that are drawn have the links of the graph, and none of their own";
    require(false, "topology.access_rate".into(), rate, allowed)
}

/// What a workload demands of the hosts.
fn check_workload(flow: &Flow, section: &str, scenario: &ScenarioFile) -> Checked {
    let ScenarioFile { topology, measure, .. } = scenario;
    let key = |name: &str| format!("{section}.{name}");
    match &flow.workload {
        Workload::Listed(listed) => {
            listed.list.check(&key("workload.list"), &topology.nodes(), measure.duration)?;
            let Some(rate) = topology.access_rate else { return Ok(()) };
            let allowed = "connections of a list have no links of their own";
            require(false, "topology.access_rate".into(), rate, allowed)
        }
        Workload::Incast(incast) => {
            let hosts = topology.host_count();
            // A flow of a graph may end at a node that is no host.
            let named = flow.to.as_ref().filter(|node| !node.is_any());
            let is_host = named.is_none_or(|node| topology.is_host(node));
            let others = hosts - u32::from(is_host);
            let allowed = format!("at most {others}, the hosts besides the receiver");
            require(incast.senders <= others, key("workload.senders"), incast.senders, allowed)
        }
        Workload::AllReduce(all_reduce) => {
            all_reduce.check(&key("workload"), topology.host_count())
        }
        _ => Ok(()),
    }
}

/// Of the ends that a workload draws or lists: a flow does not name them.
fn check_free(flow: &Flow, section: &str, topology: &Topology) -> Checked {
    for (name, node) in [("from", &flow.from), ("to", &flow.to)] {
        let free = match flow.workload {
            Workload::Incast(_) => name == "to",
            Workload::Permutation(_) | Workload::Listed(_) | Workload::AllReduce(_) => false,
            _ => true,
        };
        let kind = flow.workload.kind();
        let allowed = match flow.workload.listed() {
            Some(_) => "each connection of the list has its own ends".to_owned(),
            None if topology.is_fabric() => format!("{kind} draws it"),
            None => format!("{kind} draws it: write *"),
        };
        let value = node.as_ref().map_or_else(String::new, |node| format!("'{}'", node.0));
        let drawn = node.as_ref().is_none_or(Node::is_any);
        require(free || drawn, format!("{section}.{name}"), value, allowed)?;
    }
    Ok(())
}

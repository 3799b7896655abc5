//! Networks of kind `graph`: links between named nodes, the switches that choose among them, and the hosts
//! between which flows run that name none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_net::{LinkConfig, Numbering};
use weir_scene::topology::{Access, Edge, Graph, Span};
use weir_scene::{Balancing, FabricEnds, FabricSpec, Forwarding, HostChoice, HostPair};

use crate::arrivals::FabricHosts;
use crate::connections::ConnectionList;
use crate::direction::{Direction, FULL_PACKET, mean_rate, shape};
use crate::error::{Checked, Problem};
use crate::fabric::ways;
use crate::feedback::Feedback;
use crate::flow::Flow;
use crate::queue;
use crate::topology::{GraphLink, Topology};

/// Links, and routes of flows, which are examples where ends are drawn or listed; and the switches, where they
/// have a choice.
///
/// # Errors
/// If hosts are drawn between which no way leads.
pub(crate) fn graph(
    topology: &Topology,
    flows: &[&Flow],
    access: Access,
) -> Result<(Graph, Option<FabricSpec>), Problem> {
    // Hosts are drawn by number, from 0.
    let draws = flows.iter().any(|flow| flow.draws_hosts());
    let nodes = if draws { topology.hosts_first() } else { topology.nodes() };
    let hosts = if draws { topology.host_count() } else { 0 };
    let numbers: BTreeMap<&str, u32> = nodes.iter().map(String::as_str).zip(0..).collect();
    let number = |name: &str| numbers.get(name).copied().unwrap_or_default();
    let ends = flows.iter().map(|flow| {
        match flow.workload.listed().and_then(ConnectionList::first) {
            // An example.
            Some(ends) => {
                let [from, to] = ends.map(|name| HostChoice::Node(number(name)));
                FabricEnds { from, to }
            }
            None => flow.ends_among(hosts, |name| Some(number(name))),
        }
    });
    let ends: Vec<FabricEnds> = ends.collect();
    let spans = ends.iter().map(|ends| {
        let HostPair { from, to } = ends.example();
        Span { from: from as usize, to: to as usize }
    });
    let (spans, edges) = (spans.collect(), edges(topology, number));
    let graph = Graph { nodes: nodes.clone(), edges, access, spans };
    let fabric = switches(&graph, topology, flows, Drawn { ends, hosts })?;
    Ok((graph, fabric))
}

/// Between which hosts of a graph or a fabric the connections of a flow run; none where both ends are named nodes
/// of a graph.
pub(crate) fn drawn_hosts(
    topology: &Topology,
    ends: FabricEnds,
    tables: &Forwarding,
) -> Option<FabricHosts> {
    let below = |end: HostChoice| match end {
        HostChoice::AnyBelow(hosts) => Some(hosts),
        HostChoice::Node(_) => None,
    };
    let drawn = below(ends.from).or(below(ends.to));
    // A way between two named hosts has a slowest link of its own.
    let links = drawn.map(|_| loaded_links(&ends, tables));
    let hosts = drawn.or_else(|| topology.is_fabric().then(|| topology.host_count()))?;
    Some(FabricHosts { hosts, ends, links })
}

/// The links that all connections between `ends` load alike: those of the node where all begin or end, or of
/// all hosts.
fn loaded_links(ends: &FabricEnds, tables: &Forwarding) -> Vec<usize> {
    let loaded = |from: u32, to: u32| match (ends.from, ends.to) {
        (HostChoice::AnyBelow(hosts), HostChoice::AnyBelow(_)) => from < hosts || to < hosts,
        (HostChoice::Node(node), _) => from == node,
        (_, HostChoice::Node(node)) => to == node,
    };
    let links = (0u32..).zip(tables.tails());
    let links =
        links.filter(|(link, from)| tables.head(*link).is_some_and(|to| loaded(**from, to)));
    links.map(|(link, _)| link as usize).collect()
}

/// The ends of flows, and how many of the first nodes are hosts that some of them draw.
struct Drawn {
    ends: Vec<FabricEnds>,
    hosts: u32,
}

/// The switches of `graph` that choose among links or share memory; none where each takes the first, ports share
/// no memory, and no connection has ends of its own, which are listed or drawn.
fn switches(
    graph: &Graph,
    topology: &Topology,
    flows: &[&Flow],
    Drawn { ends, hosts }: Drawn,
) -> Result<Option<FabricSpec>, Problem> {
    let (balancing, buffer) = (topology.routing.0, topology.memory(flows));
    let lists: Vec<_> = flows.iter().filter_map(|flow| flow.workload.listed()).collect();
    let uniform = hosts > 0 || !lists.is_empty();
    if balancing == Balancing::Single && buffer.is_none() && !uniform {
        return Ok(None);
    }
    let names: BTreeSet<&String> = lists.iter().flat_map(|list| list.names()).collect();
    let listed = (0..graph.nodes.len()).filter(|node| names.contains(&graph.nodes[*node]));
    let named = graph.spans.iter().flat_map(|span| [span.from, span.to]);
    let destinations = (0..hosts as usize).chain(named).chain(listed);
    let forwarding = Forwarding::new(graph.nodes.clone(), &ways(&graph.edges), destinations);
    check_ways(&forwarding, &ends, hosts)?;
    let forwarding = Arc::new(forwarding);
    Ok(Some(FabricSpec { balancing, forwarding, buffer, ends, uniform }))
}

/// Whichever of the `hosts` are drawn, ways lead from one end to the other and back.
fn check_ways(tables: &Forwarding, ends: &[FabricEnds], hosts: u32) -> Checked {
    let named = ends.iter().filter_map(|ends| match (ends.from, ends.to) {
        (HostChoice::Node(node), HostChoice::AnyBelow(_))
        | (HostChoice::AnyBelow(_), HostChoice::Node(node)) => Some(node),
        _ => None,
    });
    let nodes: BTreeSet<u32> = named.chain(0..hosts).collect();
    for node in nodes {
        let apart = (0..hosts)
            .find(|host| tables.hops(node, *host).and(tables.hops(*host, node)).is_none());
        if let Some(host) = apart {
            let [from, to] = [node, host].map(|node| &tables.names()[node as usize]);
            let message = format!(
                "no way leads from '{from}' to '{to}' and back; between hosts that are drawn there has to \
                 be one"
            );
            return Err(Problem::new("topology.link", message));
        }
    }
    Ok(())
}

fn edges(topology: &Topology, number: impl Fn(&str) -> u32) -> Vec<Edge> {
    let mut edges = Vec::new();
    for link in &topology.link {
        let [from, to] = [&link.from.0, &link.to.0].map(|name| number(name) as usize);
        let there = link_name(link, &link.from.0, &link.to.0, "");
        let back = link_name(link, &link.to.0, &link.from.0, "-reverse");
        edges.push(edge(link, there, from, to, graph_link(topology, link, &link.impair)));
        if link.duplex {
            let config = graph_link(topology, link, &Direction::default());
            edges.push(edge(link, back, to, from, config));
        }
    }
    edges
}

fn link_name(link: &GraphLink, from: &str, to: &str, suffix: &str) -> String {
    link.name.as_ref().map_or_else(|| format!("{from}-{to}"), |name| format!("{name}{suffix}"))
}

fn edge(link: &GraphLink, name: String, from: usize, to: usize, config: LinkConfig) -> Edge {
    Edge { name, from, to, cost: link.cost, config, monitored: link.monitored }
}

fn graph_link(topology: &Topology, link: &GraphLink, direction: &Direction) -> LinkConfig {
    let rate = direction.rate.unwrap_or(link.rate);
    let written = direction.queue.as_ref().or(link.queue.as_ref());
    let packet = FULL_PACKET + link.overhead;
    let mut config = LinkConfig {
        overhead: link.overhead,
        feedback: link.feedback.as_ref().map(Feedback::config),
        queue: queue::config(written, mean_rate(direction, rate), topology.rtt, packet),
        ..LinkConfig::new(rate, link.delay)
    };
    direction.impair(&mut config, Numbering::Any);
    shape(&mut config, direction.burst.or(link.burst));
    config
}

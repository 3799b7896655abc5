//! Networks whose switches choose among links: fabrics of data centres, and graphs with a `routing`.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_net::{LinkConfig, Numbering};
use weir_scene::topology::{Edge, Fabric, Graph, Port, Route, Tier, Topology as Built};
use weir_scene::{Balancing, FabricEnds, FabricSpec, Forwarding, HostChoice, LinkSpec, OneWay};
use weir_units::Rate;

use crate::direction::{Direction, FULL_PACKET, mean_rate, shape};
use crate::error::{Checked, require};
use crate::feedback::Feedback;
use crate::flow::Flow;
use crate::queue;
use crate::topology::{Node, Topology, TopologyKind};

/// A fabric with its links, and the routes of flows, which are examples.
pub(crate) struct BuiltFabric {
    pub(crate) built: Built,
    pub(crate) spec: FabricSpec,
}

impl Topology {
    fn skeleton(&self) -> Fabric {
        match self.kind {
            TopologyKind::FatTree => Fabric::fat_tree(self.k as usize),
            _ => {
                Fabric::leaf_spine(self.leaves as usize, self.hosts as usize, self.spines as usize)
            }
        }
    }

    /// What the keys of a fabric demand of each other.
    pub(crate) fn check_fabric(&self) -> Checked {
        if !self.is_fabric() {
            return Ok(());
        }
        require(
            self.k.is_multiple_of(2),
            "topology.k".into(),
            self.k,
            "it is even: half of the ports lead up",
        )?;
        let hosts = self.host_count();
        let allowed = format!("that makes {hosts} hosts, and a fabric has 2 to {MAX_HOSTS}");
        require((2..=MAX_HOSTS).contains(&hosts), "topology.hosts".into(), self.hosts, allowed)?;
        let links = u64::from(self.leaves) * u64::from(self.spines);
        let few = self.kind == TopologyKind::FatTree || links <= MAX_UPLINKS;
        let allowed =
            format!("with {} leaves at most {MAX_UPLINKS} links between switches", self.leaves);
        require(few, "topology.spines".into(), self.spines, allowed)?;
        let fabric = self.skeleton();
        for (index, port) in self.port.iter().enumerate() {
            let section = format!("topology.port.{index}");
            let known = fabric.ports.iter().any(|known| fabric.name(known) == port.link);
            let example = fabric.ports.last().map(|port| fabric.name(port)).unwrap_or_default();
            let allowed = format!("a link leads from one node to the next, as in {example}");
            require(known, format!("{section}.link"), format!("'{}'", port.link), allowed)?;
            let twice = self.port[..index].iter().any(|other| other.link == port.link);
            let value = format!("'{}'", port.link);
            require(!twice, format!("{section}.link"), value, "another port has this link")?;
            port.impair.check(&format!("{section}.impair"))?;
        }
        Ok(())
    }
}

impl Flow {
    /// Where a flow of a fabric begins and ends.
    pub(crate) fn fabric_ends(&self, hosts: u32) -> FabricEnds {
        FabricEnds { from: choice(self.from.as_ref(), hosts), to: choice(self.to.as_ref(), hosts) }
    }
}

/// A host by name; `*` and no name are any.
fn choice(node: Option<&Node>, hosts: u32) -> HostChoice {
    let number = node.and_then(|node| node.0.strip_prefix('h')?.parse().ok());
    number.map_or(HostChoice::AnyBelow(hosts), HostChoice::Node)
}

/// The network of a fabric.
pub(crate) fn fabric(topology: &Topology, flows: &[&Flow]) -> BuiltFabric {
    let skeleton = topology.skeleton();
    let edges: Vec<Edge> =
        skeleton.ports.iter().map(|port| edge(topology, &skeleton, port)).collect();
    let hosts = skeleton.hosts;
    let forwarding = Arc::new(Forwarding::new(skeleton.nodes, &ways(&edges), 0..hosts));
    let ends: Vec<FabricEnds> = flows.iter().map(|flow| flow.fabric_ends(hosts as u32)).collect();
    let links = edges.into_iter().map(|edge| LinkSpec {
        name: edge.name,
        config: edge.config,
        monitored: true,
        one_at_a_time: false,
    });
    let links = links.collect();
    let way = |from, to| forwarding.path(from, to).unwrap_or_default();
    let routes = ends.iter().map(|ends| {
        let pair = ends.example();
        Route { forward: way(pair.from, pair.to), reverse: way(pair.to, pair.from) }
    });
    let built = Built { links, routes: routes.collect() };
    let (balancing, buffer) = (topology.routing.0, topology.memory(flows));
    BuiltFabric { built, spec: FabricSpec { balancing, forwarding, buffer, ends, uniform: true } }
}

/// The switches of `graph` that choose among links or share memory, and the ends of its flows; none where
/// each takes the first, ports share no memory, and no connections are listed, each of which has its own ends.
pub(crate) fn switches(graph: &Graph, topology: &Topology, flows: &[&Flow]) -> Option<FabricSpec> {
    let (balancing, buffer) = (topology.routing.0, topology.memory(flows));
    let lists: Vec<_> = flows.iter().filter_map(|flow| flow.workload.listed()).collect();
    if balancing == Balancing::Single && buffer.is_none() && lists.is_empty() {
        return None;
    }
    let names: BTreeSet<&String> = lists.iter().flat_map(|list| list.names()).collect();
    let listed = (0..graph.nodes.len()).filter(|node| names.contains(&graph.nodes[*node]));
    let ends = graph.spans.iter().flat_map(|span| [span.from, span.to]).chain(listed);
    let forwarding = Arc::new(Forwarding::new(graph.nodes.clone(), &ways(&graph.edges), ends));
    let node = |node: usize| HostChoice::Node(node as u32);
    let ends =
        graph.spans.iter().map(|span| FabricEnds { from: node(span.from), to: node(span.to) });
    Some(FabricSpec {
        balancing,
        forwarding,
        buffer,
        ends: ends.collect(),
        uniform: !lists.is_empty(),
    })
}

fn ways(edges: &[Edge]) -> Vec<OneWay> {
    edges.iter().map(|edge| OneWay { from: edge.from, to: edge.to, cost: edge.cost }).collect()
}

fn edge(topology: &Topology, fabric: &Fabric, port: &Port) -> Edge {
    let name = fabric.name(port);
    let differs = topology.port.iter().find(|other| other.link == name);
    let usual = Direction::default();
    let config = link(topology, port.tier, differs.map_or(&usual, |port| &port.impair));
    Edge { name, from: port.from, to: port.to, cost: 1, config, monitored: true }
}

fn link(topology: &Topology, tier: Tier, direction: &Direction) -> LinkConfig {
    let (rate, delay) = match tier {
        Tier::Host | Tier::Edge => (topology.rate, topology.delay),
        Tier::Uplink => (
            topology.uplink_rate.unwrap_or(topology.rate),
            topology.uplink_delay.unwrap_or(topology.delay),
        ),
    };
    let rate: Rate = direction.rate.unwrap_or(rate);
    let of_host = topology.host_queue.as_ref().filter(|_| tier == Tier::Host);
    let written = direction.queue.as_ref().or(of_host).or(topology.queue.as_ref());
    let mut config = LinkConfig {
        feedback: topology.feedback.as_ref().map(Feedback::config),
        queue: queue::config(
            written,
            mean_rate(direction, rate),
            topology.longest_rtt(),
            FULL_PACKET,
        ),
        ..LinkConfig::new(rate, delay)
    };
    direction.impair(&mut config, Numbering::Any);
    shape(&mut config, direction.burst);
    config
}

/// Forwarding tables have a cell for each pair of a host and a node.
const MAX_HOSTS: u32 = 4_096;
/// Links between leaves and spines, which take a few KB each.
const MAX_UPLINKS: u64 = 65_536;

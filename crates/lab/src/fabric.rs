//! Fabrics of data centres, and where flows begin and end in networks that have hosts.

use std::sync::Arc;

use weir_net::{LinkConfig, Numbering};
use weir_scene::topology::{Edge, Fabric, Port, Route, Tier, Topology as Built};
use weir_scene::{FabricEnds, FabricSpec, Forwarding, HostChoice, LinkSpec, OneWay};
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
    /// Whether hosts are drawn for an end of it, or of each of its connections, in a network that has hosts.
    pub(crate) fn draws_hosts(&self) -> bool {
        let drawn = |node: &Option<Node>| node.as_ref().is_none_or(Node::is_any);
        self.workload.listed().is_none() && (drawn(&self.from) || drawn(&self.to))
    }

    /// Where it begins and ends, in a network whose first nodes are `hosts`; `number` is that of a node's name.
    pub(crate) fn ends_among(
        &self,
        hosts: u32,
        number: impl Fn(&str) -> Option<u32>,
    ) -> FabricEnds {
        let choice = |node: &Option<Node>| {
            let named = node.as_ref().filter(|node| !node.is_any());
            let number = named.and_then(|node| number(&node.0));
            number.map_or(HostChoice::AnyBelow(hosts), HostChoice::Node)
        };
        FabricEnds { from: choice(&self.from), to: choice(&self.to) }
    }
}

/// The network of a fabric.
pub(crate) fn fabric(topology: &Topology, flows: &[&Flow]) -> BuiltFabric {
    let skeleton = topology.skeleton();
    let edges: Vec<Edge> =
        skeleton.ports.iter().map(|port| edge(topology, &skeleton, port)).collect();
    let hosts = skeleton.hosts;
    let forwarding = Arc::new(Forwarding::new(skeleton.nodes, &ways(&edges), 0..hosts));
    let number = |name: &str| name.strip_prefix('h')?.parse().ok();
    let ends: Vec<FabricEnds> =
        flows.iter().map(|flow| flow.ends_among(hosts as u32, number)).collect();
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

pub(crate) fn ways(edges: &[Edge]) -> Vec<OneWay> {
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
pub(crate) const MAX_HOSTS: u32 = 4_096;
/// Links between leaves and spines, which take a few KB each.
const MAX_UPLINKS: u64 = 65_536;

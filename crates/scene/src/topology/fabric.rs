//! Fabrics of data centres: which switches there are, and which links join them and their hosts.
//!
//! Sources: the folded Clos network of two tiers (leaf and spine), and Al-Fares et al., "A Scalable,
//! Commodity Data Center Network Architecture", SIGCOMM 2008, §3, for the fat tree of k-port switches.

/// Nodes and links of a fabric, without rates. Its hosts are the first nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// The nodes' names: hosts `h0`, `h1`, … and then switches.
    pub nodes: Vec<String>,
    /// Number of hosts.
    pub hosts: usize,
    /// Every port with its link, which is one-way.
    pub ports: Vec<Port>,
}

/// A port, and the link that leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The node it is at.
    pub from: usize,
    /// The node where its link ends.
    pub to: usize,
    /// Where in the fabric it is.
    pub tier: Tier,
}

/// Where in a fabric a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// A host's own.
    Host,
    /// A switch's, towards a host.
    Edge,
    /// A switch's, towards another switch.
    Uplink,
}

impl Fabric {
    /// Every leaf has `hosts` hosts and a link to every spine. Switches are `leaf0`, … and `spine0`, …
    pub fn leaf_spine(leaves: usize, hosts: usize, spines: usize) -> Self {
        let mut fabric = Self::with_hosts(leaves * hosts);
        let first_leaf = fabric.add_switches("leaf", leaves);
        let first_spine = fabric.add_switches("spine", spines);
        for host in 0..fabric.hosts {
            fabric.join_host(host, first_leaf + host / hosts);
        }
        for leaf in first_leaf..first_spine {
            (0..spines).for_each(|spine| fabric.join(leaf, first_spine + spine));
        }
        fabric
    }

    /// A fat tree of switches with `k` ports, which is even: `k` pods of `k/2` edge switches with `k/2`
    /// hosts each and of `k/2` aggregation switches, and `k²/4` core switches. Aggregation switch `j` of
    /// each pod has links to the `j`-th `k/2` core switches.
    pub fn fat_tree(k: usize) -> Self {
        let half = k / 2;
        let mut fabric = Self::with_hosts(k * half * half);
        let first_edge = fabric.add_switches("edge", k * half);
        let first_aggregation = fabric.add_switches("agg", k * half);
        let first_core = fabric.add_switches("core", half * half);
        for host in 0..fabric.hosts {
            fabric.join_host(host, first_edge + host / half);
        }
        for switch in 0..k * half {
            let (pod, place) = (switch / half, switch % half);
            (0..half).for_each(|other| {
                fabric.join(first_edge + switch, first_aggregation + pod * half + other);
            });
            (0..half).for_each(|other| {
                fabric.join(first_aggregation + switch, first_core + place * half + other);
            });
        }
        fabric
    }

    /// The name of a port's link: the nodes from which and to which it leads.
    pub fn name(&self, port: &Port) -> String {
        format!("{}-{}", self.nodes[port.from], self.nodes[port.to])
    }

    fn with_hosts(hosts: usize) -> Self {
        let nodes = (0..hosts).map(|host| format!("h{host}")).collect();
        Self { nodes, hosts, ports: Vec::new() }
    }

    /// Adds switches, and returns the first.
    fn add_switches(&mut self, kind: &str, count: usize) -> usize {
        let first = self.nodes.len();
        self.nodes.extend((0..count).map(|number| format!("{kind}{number}")));
        first
    }

    fn join_host(&mut self, host: usize, switch: usize) {
        self.ports.push(Port { from: host, to: switch, tier: Tier::Host });
        self.ports.push(Port { from: switch, to: host, tier: Tier::Edge });
    }

    fn join(&mut self, lower: usize, upper: usize) {
        self.ports.push(Port { from: lower, to: upper, tier: Tier::Uplink });
        self.ports.push(Port { from: upper, to: lower, tier: Tier::Uplink });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::{Forwarding, OneWay};

    fn forwarding(fabric: &Fabric) -> Forwarding {
        let ways = fabric.ports.iter().map(|port| OneWay { from: port.from, to: port.to, cost: 1 });
        Forwarding::new(fabric.nodes.clone(), &ways.collect::<Vec<_>>(), 0..fabric.hosts)
    }

    /// The number of ways from one node to another.
    fn ways(tables: &Forwarding, fabric: &Fabric, node: usize, host: usize) -> usize {
        if node == host {
            return 1;
        }
        let choices = tables.choices(node as u32, host as u32).iter();
        choices.map(|link| ways(tables, fabric, fabric.ports[*link as usize].to, host)).sum()
    }

    #[test]
    fn a_leaf_has_its_hosts_and_every_spine() {
        let fabric = Fabric::leaf_spine(3, 4, 2);
        assert_eq!((fabric.hosts, fabric.nodes.len()), (12, 12 + 3 + 2));
        assert_eq!(fabric.ports.len(), 2 * (12 + 3 * 2));
        let tables = forwarding(&fabric);
        assert_eq!(tables.hops(0, 3), Some(2), "below one leaf");
        assert_eq!(tables.hops(0, 4), Some(4));
        assert_eq!(ways(&tables, &fabric, 0, 3), 1);
        assert_eq!(ways(&tables, &fabric, 0, 11), 2);
        assert_eq!(fabric.name(&fabric.ports[0]), "h0-leaf0");
    }

    /// Al-Fares et al., §3: k³/4 hosts, 5k²/4 switches, (k/2)² shortest ways between pods.
    #[test]
    fn a_fat_tree_has_the_numbers_of_its_paper() {
        for k in [2, 4, 6, 8] {
            let fabric = Fabric::fat_tree(k);
            assert_eq!(fabric.hosts, k * k * k / 4);
            assert_eq!(fabric.nodes.len() - fabric.hosts, 5 * k * k / 4);
            for switch in fabric.hosts..fabric.nodes.len() {
                let ports = fabric.ports.iter().filter(|port| port.from == switch).count();
                assert_eq!(ports, k, "{}", fabric.nodes[switch]);
            }
            let tables = forwarding(&fabric);
            let last = fabric.hosts - 1;
            assert_eq!(tables.hops(0, last as u32), Some(6));
            assert_eq!(ways(&tables, &fabric, 0, last), (k / 2) * (k / 2));
            if k > 2 {
                assert_eq!(ways(&tables, &fabric, 0, k / 2), k / 2, "within a pod");
            }
        }
    }
}

//! Networks whose switches choose among links.

use std::sync::Arc;

use weir_units::{Duration, Rng};

use super::buffer::BufferSpec;
use crate::forwarding::Forwarding;

/// A network whose switches choose among links, and between which of its hosts flows run.
#[derive(Clone, Debug)]
pub struct FabricSpec {
    /// How switches choose.
    pub balancing: Balancing,
    /// From what they choose. Its links are the first of the run.
    pub forwarding: Arc<Forwarding>,
    /// The memory of each switch, where its ports share one.
    pub buffer: Option<BufferSpec>,
    /// The ends of each flow.
    pub ends: Vec<FabricEnds>,
    /// Whether no link was meant as the bottleneck: in the results it is the one whose packets waited longest.
    pub uniform: bool,
}

/// How a switch chooses among the links on ways of equal cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balancing {
    /// Always the first.
    #[default]
    Single,
    /// By a hash of the flow and the switch: the packets of a direction of a flow keep to one way.
    Ecmp,
    /// At random for each packet.
    Spray,
    /// In turn, packet by packet, in an order that is drawn anew for each lap.
    SprayRoundRobin,
    /// By a hash that changes for a flow at a switch when none of its packets came for longer than this.
    Flowlet(Duration),
    /// By a hash of the flow, the switch and one of this many values, which the sender draws for each
    /// packet.
    PacketEcmp(u32),
}

/// The hosts between which a flow runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricEnds {
    /// Where it begins.
    pub from: HostChoice,
    /// Where it ends.
    pub to: HostChoice,
}

/// A host of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostChoice {
    /// This node.
    Node(u32),
    /// Any of the first nodes, below this number, drawn with equal probability; the other end is another one.
    AnyBelow(u32),
}

/// The nodes between which a connection runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPair {
    /// Where it begins.
    pub from: u32,
    /// Where it ends.
    pub to: u32,
}

impl FabricEnds {
    /// Draws the ends that are not given: every pair of two different hosts is as probable as any other.
    pub fn draw(&self, rng: &mut Rng) -> HostPair {
        match (self.from, self.to) {
            (HostChoice::Node(from), HostChoice::Node(to)) => HostPair { from, to },
            (HostChoice::Node(from), HostChoice::AnyBelow(hosts)) => {
                HostPair { from, to: other_host(rng, hosts, from) }
            }
            (HostChoice::AnyBelow(hosts), HostChoice::Node(to)) => {
                HostPair { from: other_host(rng, hosts, to), to }
            }
            (HostChoice::AnyBelow(hosts), HostChoice::AnyBelow(_)) => {
                let from = rng.below(u64::from(hosts)) as u32;
                HostPair { from, to: other_host(rng, hosts, from) }
            }
        }
    }

    /// An example of its ends, with the most links between them where hosts are in order.
    pub fn example(&self) -> HostPair {
        match (self.from, self.to) {
            (HostChoice::Node(from), HostChoice::Node(to)) => HostPair { from, to },
            (HostChoice::Node(from), HostChoice::AnyBelow(hosts)) => {
                HostPair { from, to: furthest(hosts, from) }
            }
            (HostChoice::AnyBelow(hosts), HostChoice::Node(to)) => {
                HostPair { from: furthest(hosts, to), to }
            }
            (HostChoice::AnyBelow(hosts), HostChoice::AnyBelow(_)) => {
                HostPair { from: 0, to: hosts - 1 }
            }
        }
    }
}

/// A host other than `one`.
fn other_host(rng: &mut Rng, hosts: u32, one: u32) -> u32 {
    let drawn = rng.below(u64::from(hosts) - u64::from(one < hosts)) as u32;
    drawn + u32::from(drawn >= one)
}

fn furthest(hosts: u32, from: u32) -> u32 {
    if from < hosts / 2 { hosts - 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    #[test]
    fn every_pair_of_two_hosts_is_equally_probable() {
        let any = HostChoice::AnyBelow(4);
        let mut rng = stream(1, "ends");
        let mut count = [[0u32; 4]; 4];
        let ends = FabricEnds { from: any, to: any };
        for _ in 0..12_000 {
            let HostPair { from, to } = ends.draw(&mut rng);
            count[from as usize][to as usize] += 1;
        }
        for (from, row) in count.iter().enumerate() {
            for (to, count) in row.iter().enumerate() {
                // Four standard deviations of a binomial distribution around 1000.
                let expected = if from == to { 0..=0 } else { 879..=1_121 };
                assert!(expected.contains(count), "{from} to {to}: {count}");
            }
        }
    }

    #[test]
    fn an_end_that_is_given_stays() {
        let mut rng = stream(1, "ends");
        let to = FabricEnds { from: HostChoice::AnyBelow(3), to: HostChoice::Node(1) };
        let from = FabricEnds { from: HostChoice::Node(2), to: HostChoice::AnyBelow(3) };
        for _ in 0..100 {
            let pair = to.draw(&mut rng);
            assert!(pair.to == 1 && [0, 2].contains(&pair.from));
            let pair = from.draw(&mut rng);
            assert!(pair.from == 2 && pair.to < 2);
        }
    }
}

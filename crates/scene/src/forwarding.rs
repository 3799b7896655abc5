//! Forwarding tables: from which links a node may choose on the way to a host.
//!
//! A next hop lies on a way of least cost. Among ways of the same cost those with the fewest links count,
//! so every packet from one host to another crosses the same number of links, whichever it takes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The links from which each node may choose on its way to each host. A link is known by its
/// position in the list that the tables were made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// The nodes' names, from which switches derive their random streams.
    names: Vec<String>,
    /// Per link, the node that it enters.
    heads: Vec<u32>,
    /// Per link, the node that it leaves.
    tails: Vec<u32>,
    /// Per host, its row in the tables; `NO_ROW` for other nodes.
    rows: Vec<u32>,
    /// Per row and node, what the node chooses from.
    groups: Vec<u32>,
    /// Per row and node, the number of links to the host; `UNREACHABLE` if no way leads there.
    hops: Vec<u8>,
    /// Links from which a node chooses; no two nodes share a group.
    members: Vec<Box<[u32]>>,
}

/// A one-way link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// The node it leaves.
    pub from: usize,
    /// The node it enters.
    pub to: usize,
    /// What it adds to the cost of a way.
    pub cost: u32,
}

const NO_ROW: u32 = u32::MAX;
const UNREACHABLE: u8 = u8::MAX;
/// The group of a node from which no way leads on.
const NO_GROUP: u32 = 0;

impl Forwarding {
    /// Tables for the way over `links` to each of `hosts`, which are nodes.
    ///
    /// # Panics
    /// If a link or a host is at no node.
    pub fn new(
        names: Vec<String>,
        links: &[OneWay],
        hosts: impl IntoIterator<Item = usize>,
    ) -> Self {
        let nodes = names.len();
        let mut entering = vec![Vec::new(); nodes];
        for (index, link) in (0u32..).zip(links) {
            entering[link.to].push((index, link));
        }
        let mut tables = Self {
            names,
            heads: links.iter().map(|link| link.to as u32).collect(),
            tails: links.iter().map(|link| link.from as u32).collect(),
            rows: vec![NO_ROW; nodes],
            members: vec![Box::default()],
            ..Self::default()
        };
        let mut known = BTreeMap::new();
        for host in hosts {
            if tables.rows[host] == NO_ROW {
                tables.rows[host] = (tables.groups.len() / nodes) as u32;
                tables.add_row(host, &entering, &mut known);
            }
        }
        tables
    }

    /// The node that a link enters; `None` for a link of no node.
    #[inline]
    pub fn head(&self, link: u32) -> Option<u32> {
        self.heads.get(link as usize).copied()
    }

    /// The nodes that each link leaves.
    pub fn tails(&self) -> &[u32] {
        &self.tails
    }

    /// Whether a node is a host: a way leads to it. All others are switches.
    pub fn is_host(&self, node: u32) -> bool {
        self.rows[node as usize] != NO_ROW
    }

    /// The names of the nodes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// How many groups of links there are: [`group`](Self::group) is below.
    pub fn group_count(&self) -> usize {
        self.members.len()
    }

    /// What `node` chooses from on the way to `host`.
    #[inline]
    pub fn group(&self, node: u32, host: u32) -> u32 {
        self.groups[self.cell(node, host)]
    }

    /// The links of a group, in their order; none where no way leads on.
    #[inline]
    pub fn members(&self, group: u32) -> &[u32] {
        &self.members[group as usize]
    }

    /// The links from which `node` chooses on the way to `host`.
    pub fn choices(&self, node: u32, host: u32) -> &[u32] {
        self.members(self.group(node, host))
    }

    /// The number of links from one node to another; `None` if no way leads there.
    pub fn hops(&self, node: u32, host: u32) -> Option<u8> {
        Some(self.hops[self.cell(node, host)]).filter(|hops| *hops != UNREACHABLE)
    }

    /// The way on which every node takes the first of its links; `None` if no way leads there.
    pub fn path(&self, from: u32, host: u32) -> Option<Vec<usize>> {
        let mut path = Vec::new();
        let mut node = from;
        while node != host {
            let link = *self.choices(node, host).first()?;
            path.push(link as usize);
            node = self.heads[link as usize];
        }
        Some(path)
    }

    /// The way whose slowest link is the fastest, of those on which a packet may go: links are as fast as
    /// `speed` says. The first such way, if there are several; `None` if no way leads there.
    pub fn widest_path(
        &self,
        from: u32,
        host: u32,
        speed: &dyn Fn(usize) -> u64,
    ) -> Option<Vec<usize>> {
        self.widest(from, host, speed).map(|(_, mut path)| {
            path.reverse();
            path
        })
    }

    /// How fast it is, and its links from the last to the first.
    fn widest(
        &self,
        node: u32,
        host: u32,
        speed: &dyn Fn(usize) -> u64,
    ) -> Option<(u64, Vec<usize>)> {
        if node == host {
            return Some((u64::MAX, Vec::new()));
        }
        let mut best: Option<(u64, Vec<usize>)> = None;
        for &link in self.choices(node, host) {
            let own = speed(link as usize);
            if best.as_ref().is_some_and(|(known, _)| own <= *known) {
                continue;
            }
            let Some((rest, mut path)) = self.widest(self.heads[link as usize], host, speed) else {
                continue;
            };
            let reached = own.min(rest);
            if best.as_ref().is_none_or(|(known, _)| reached > *known) {
                path.push(link as usize);
                best = Some((reached, path));
            }
        }
        best
    }

    fn cell(&self, node: u32, host: u32) -> usize {
        self.rows[host as usize] as usize * self.names.len() + node as usize
    }

    /// Dijkstra's algorithm from the host, against the direction of links.
    fn add_row(
        &mut self,
        host: usize,
        entering: &[Vec<(u32, &OneWay)>],
        known: &mut BTreeMap<(u32, Vec<u32>), u32>,
    ) {
        let mut distance = vec![(u64::MAX, u64::MAX); entering.len()];
        distance[host] = (0, 0);
        let mut frontier = BinaryHeap::from([Reverse(((0u64, 0u64), host))]);
        let beyond =
            |(cost, hops): (u64, u64), link: &OneWay| (cost + u64::from(link.cost), hops + 1);
        while let Some(Reverse((reached, node))) = frontier.pop() {
            if reached > distance[node] {
                continue;
            }
            for (_, link) in &entering[node] {
                let through = beyond(reached, link);
                if through < distance[link.from] {
                    distance[link.from] = through;
                    frontier.push(Reverse((through, link.from)));
                }
            }
        }
        let mut choices: Vec<Vec<u32>> = vec![Vec::new(); entering.len()];
        for (node, links) in entering.iter().enumerate() {
            let reached = distance[node];
            for (index, link) in links.iter().filter(|_| reached.0 < u64::MAX) {
                if link.from != host && beyond(reached, link) == distance[link.from] {
                    choices[link.from].push(*index);
                }
            }
        }
        for (node, mut links) in (0u32..).zip(choices) {
            let hops = distance[node as usize].1;
            self.hops.push(u8::try_from(hops).unwrap_or(UNREACHABLE));
            links.sort_unstable();
            let group = match links.is_empty() {
                true => NO_GROUP,
                false => *known.entry((node, links)).or_insert_with_key(|(_, links)| {
                    self.members.push(links.as_slice().into());
                    (self.members.len() - 1) as u32
                }),
            };
            self.groups.push(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Links with their costs between nodes of one letter each.
    fn tables(links: &[(&str, u32)], hosts: &str) -> (Vec<char>, Forwarding) {
        let mut nodes: Vec<char> = links.iter().flat_map(|(ends, _)| ends.chars()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let number = |node: char| nodes.iter().position(|known| *known == node).unwrap();
        let links = links.iter().map(|(ends, cost)| {
            let ends: Vec<usize> = ends.chars().map(number).collect();
            OneWay { from: ends[0], to: ends[1], cost: *cost }
        });
        let links: Vec<OneWay> = links.collect();
        let names = nodes.iter().map(char::to_string).collect();
        let forwarding = Forwarding::new(names, &links, hosts.chars().map(number));
        (nodes, forwarding)
    }

    #[test]
    fn equal_ways_are_choices_and_longer_ones_are_not() {
        let links = [("ab", 1), ("ac", 1), ("bd", 1), ("cd", 1), ("ae", 1), ("ef", 1), ("fd", 1)];
        let (_, forwarding) = tables(&links, "d");
        assert_eq!(forwarding.choices(0, 3), [0, 1]);
        assert_eq!(forwarding.choices(1, 3), [2]);
        assert_eq!(forwarding.hops(0, 3), Some(2));
        assert_eq!(forwarding.path(0, 3), Some(vec![0, 2]));
        assert_eq!(forwarding.path(3, 3), Some(vec![]));
    }

    #[test]
    fn the_widest_way_avoids_slow_links_wherever_they_are() {
        let links = [("ab", 1), ("ac", 1), ("bd", 1), ("cd", 1)];
        let (_, forwarding) = tables(&links, "d");
        let with = |speeds: [u64; 4]| forwarding.widest_path(0, 3, &|link| speeds[link]);
        assert_eq!(with([10, 10, 10, 10]), Some(vec![0, 2]));
        assert_eq!(with([1, 10, 10, 10]), Some(vec![1, 3]));
        assert_eq!(with([10, 10, 1, 10]), Some(vec![1, 3]));
        assert_eq!(with([10, 5, 1, 10]), Some(vec![1, 3]));
        assert_eq!(with([5, 10, 5, 1]), Some(vec![0, 2]));
    }

    #[test]
    fn of_equal_cost_the_fewest_links_count() {
        let (_, forwarding) = tables(&[("ab", 2), ("ac", 1), ("cb", 1), ("ab", 2)], "b");
        assert_eq!(forwarding.choices(0, 1), [0, 3], "parallel links are choices, too");
        assert_eq!(forwarding.hops(0, 1), Some(1));
    }

    #[test]
    fn where_no_way_leads_there_is_no_choice() {
        let (_, forwarding) = tables(&[("ab", 1), ("cb", 1)], "bc");
        assert_eq!(forwarding.hops(0, 2), None);
        assert_eq!(forwarding.path(0, 2), None);
        assert_eq!(forwarding.hops(0, 1), Some(1));
    }
}

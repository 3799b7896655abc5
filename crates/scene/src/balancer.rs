//! Switches that choose among links of equal cost.
//!
//! Every choice depends on the seed, the switch and the flow by name, and on nothing that a controller
//! decides: with another controller, connections keep their ways. Each switch has a salt of its own; with
//! one for all, switches in a row would choose alike (polarisation). A hash stands for that of the five
//! fields that identify a connection, so the two directions of a connection choose apart.

use std::collections::BTreeMap;

use weir_units::{Duration, Instant, Rng, mix, stream};

use crate::forwarding::Forwarding;
use crate::packet::{Direction, Packet};
use crate::spec::{Balancing, FabricSpec, FlowSpec, HostPair};

/// The switches of a network, and the ends of its flows.
pub(crate) struct Balancer {
    spec: FabricSpec,
    /// Per node.
    salts: Vec<u64>,
    /// Per flow, connections of flows of many included.
    flows: Vec<Balanced>,
    /// Of `spray-rr`: per group of links.
    turns: Vec<Turns>,
    /// Of `flowlet`: per switch, flow and direction.
    flowlets: Flowlets,
}

/// A flow as switches see it.
#[derive(Clone, Copy, Debug)]
struct Balanced {
    ends: HostPair,
    /// What identifies it to hashes, forward and back.
    keys: [u64; 2],
}

/// The links of a group in the order of a lap.
#[derive(Debug)]
struct Turns {
    order: Vec<u32>,
    taken: usize,
    rng: Rng,
}

/// When each flow's last packet came to each switch, and what its flowlet is hashed with.
#[derive(Debug, Default)]
struct Flowlets {
    last: BTreeMap<(u32, u32, bool), Flowlet>,
    /// At this many, those that have ended are removed.
    full: usize,
}

#[derive(Clone, Copy, Debug)]
struct Flowlet {
    last: Instant,
    began: Instant,
}

/// In a flow's route, a link that a switch chooses.
pub(crate) const CHOSEN: u32 = u32::MAX;

impl Balancer {
    /// The switches of `spec`, whose flows are `flows`.
    pub(crate) fn new(spec: &FabricSpec, flows: &[FlowSpec], seed: u64) -> Self {
        let names = spec.forwarding.names();
        let salt = |name: &String| stream(seed, &format!("switch {name}")).next_u64();
        let round_robin = spec.balancing == Balancing::SprayRoundRobin;
        let groups = if round_robin { spec.forwarding.group_count() } else { 0 };
        let turns = (0..groups as u32).map(|group| {
            let order = spec.forwarding.members(group).to_vec();
            let rng = stream(seed, &format!("group {group} turns"));
            Turns { taken: order.len(), order, rng }
        });
        let mut balancer = Self {
            salts: names.iter().map(salt).collect(),
            flows: Vec::with_capacity(flows.len()),
            turns: turns.collect(),
            flowlets: Flowlets::default(),
            spec: spec.clone(),
        };
        for (flow, ends) in flows.iter().zip(&spec.ends) {
            let ends = ends.draw(&mut stream(seed, &format!("flow {} ends", flow.name)));
            balancer.add_flow(ends, stream(seed, &format!("flow {} path", flow.name)));
        }
        balancer
    }

    /// One more flow, the next by number; `rng` is its stream.
    pub(crate) fn add_flow(&mut self, ends: HostPair, mut rng: Rng) {
        let keys = [rng.next_u64(), rng.next_u64()];
        self.flows.push(Balanced { ends, keys });
    }

    /// The nodes between which a flow runs.
    pub(crate) fn ends(&self, flow: u32) -> HostPair {
        self.flows[flow as usize].ends
    }

    pub(crate) fn forwarding(&self) -> &Forwarding {
        &self.spec.forwarding
    }

    /// The link that a flow's packets cross first, forward. Where its sender has several and sprays, this is
    /// one of them.
    pub(crate) fn entry(&self, flow: u32) -> u32 {
        let Balanced { ends, keys } = self.flows[flow as usize];
        let links = self.spec.forwarding.choices(ends.from, ends.to);
        match self.spec.balancing {
            Balancing::Ecmp => pick(links, mix(keys[0] ^ self.salts[ends.from as usize])),
            _ => links[0],
        }
    }

    /// The link that `packet` takes from the end of link `crossed`, or from its sender's node. With
    /// `links_left` links after it, it is to be at its receiver's node.
    ///
    /// # Errors
    /// Says if it is not on its way there.
    pub(crate) fn next<L>(
        &mut self,
        now: Instant,
        packet: &Packet<L>,
        crossed: Option<u32>,
        links_left: usize,
    ) -> Result<u32, String> {
        let Balanced { ends, keys } = self.flows[packet.flow as usize];
        let (from, to, key) = match packet.direction {
            Direction::Forward => (ends.from, ends.to, keys[0]),
            Direction::Reverse => (ends.to, ends.from, keys[1]),
        };
        let forwarding = &self.spec.forwarding;
        let node = crossed.and_then(|link| forwarding.head(link)).unwrap_or(from);
        let group = forwarding.group(node, to);
        let link = match forwarding.members(group) {
            [] => return Err(lost(forwarding, packet.flow, node, to)),
            [only] => *only,
            links => {
                let hash = key ^ self.salts[node as usize];
                match self.spec.balancing {
                    Balancing::Single => links[0],
                    Balancing::Ecmp => pick(links, mix(hash)),
                    Balancing::Spray => pick(links, mix(mix(hash) ^ identity(packet))),
                    Balancing::SprayRoundRobin => self.turns[group as usize].next(),
                    Balancing::Flowlet(gap) => {
                        let place = (node, packet.flow, packet.direction == Direction::Forward);
                        let began = self.flowlets.touch(now, place, gap);
                        pick(links, mix(mix(hash) ^ began.as_nanos()))
                    }
                    Balancing::PacketEcmp(paths) => {
                        let drawn = mix(mix(key) ^ identity(packet));
                        let value = (u128::from(drawn) * u128::from(paths)) >> 64;
                        pick(links, mix(mix(hash) ^ value as u64))
                    }
                }
            }
        };
        match forwarding.head(link) {
            Some(head) if forwarding.hops(head, to).map(usize::from) == Some(links_left) => {
                Ok(link)
            }
            _ => Err(lost(forwarding, packet.flow, node, to)),
        }
    }
}

#[cold]
fn lost(forwarding: &Forwarding, flow: u32, node: u32, to: u32) -> String {
    let [node, to] = [node, to].map(|node| &forwarding.names()[node as usize]);
    format!("a packet of flow {flow} to '{to}' is at '{node}', not on its way")
}

/// One of `links`, each with equal probability over all hashes.
#[inline]
fn pick(links: &[u32], hash: u64) -> u32 {
    links[((u128::from(hash) * links.len() as u128) >> 64) as usize]
}

/// What tells a packet from the others of its flow and direction: a flow sends no two of one number at one
/// instant.
#[inline]
fn identity<L>(packet: &Packet<L>) -> u64 {
    mix(packet.sent.as_nanos()) ^ packet.seq()
}

impl Turns {
    fn next(&mut self) -> u32 {
        if self.taken == self.order.len() {
            self.taken = 0;
            for last in (1..self.order.len()).rev() {
                let other = self.rng.below(last as u64 + 1) as usize;
                self.order.swap(last, other);
            }
        }
        self.taken += 1;
        self.order[self.taken - 1]
    }
}

impl Flowlets {
    /// A packet comes: returns when its flowlet began.
    fn touch(&mut self, now: Instant, place: (u32, u32, bool), gap: Duration) -> Instant {
        let flowlet = self.last.entry(place).or_insert(Flowlet { last: now, began: now });
        if now.saturating_since(flowlet.last) > gap {
            flowlet.began = now;
        }
        flowlet.last = now;
        let began = flowlet.began;
        if self.last.len() > self.full {
            self.last.retain(|_, flowlet| now.saturating_since(flowlet.last) <= gap);
            self.full = (2 * self.last.len()).max(MIN_FLOWLETS);
        }
        began
    }
}

/// Fewer flowlets are kept whether they have ended or not.
const MIN_FLOWLETS: usize = 1_024;

//! Collective operations: transfers between hosts, each of which begins when those that it needs have arrived.
//!
//! With a *ring* (Patarasuk and Yuan, Journal of Parallel and Distributed Computing 69(2), 2009) the buffers of
//! `n` ranks are cut into `n` parts. In step `k` rank `i` sends part `i − k` (mod `n`) to rank `i + 1`, which
//! needs it for its own step `k + 1`. After `n − 1` steps each rank has the sum of one part, and `n − 1` more
//! steps pass the sums round. A rank sends one part after the other, as over one connection: parts that share
//! a link would arrive together, go on together, and leave other links idle.
//!
//! With a *tree* each rank sends its whole buffer to its parent as soon as it has those of its children, and
//! the sum of the root comes down in the same way. The middle rank of a range is the parent of the middle
//! ranks of both halves, so neighbours are near each other in the tree as in NCCL's (`src/graph/trees.cc`).
//!
//! Both move `2 (n − 1) · size` bytes.

use std::collections::VecDeque;
use std::ops::Range;

use weir_units::{Bytes, Rng};

use crate::pattern::sample;
use crate::spec::{AllReduce, AllReduceAlgorithm, HostPair, RankOrder};

/// An all-reduce, one time after the other.
#[derive(Debug)]
pub(crate) struct Collective {
    spec: AllReduce,
    /// The hosts by rank.
    hosts: Vec<u32>,
    /// By rank; of a tree none.
    ring: Vec<Steps>,
    /// By rank; of a ring none.
    tree: Vec<Node>,
    size: u64,
    /// Transfers that may begin, in their order.
    ready: VecDeque<Transfer>,
    /// How many have not begun, those that may included.
    to_begin: u64,
    /// How many have not arrived.
    to_arrive: u64,
    arrived_bytes: u64,
}

/// A transfer of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The rank that sends.
    pub(crate) from: u32,
    to: u32,
    /// Of a ring; of a tree 0 on the way up, and 1 on the way down.
    step: u32,
    pub(crate) ends: HostPair,
    pub(crate) size: Bytes,
}

/// How many steps of a ring a rank has begun, of which parts have arrived at the next rank, and for which
/// parts have arrived from the previous one.
#[derive(Clone, Debug, Default)]
struct Steps {
    begun: u32,
    sent: u32,
    received: u32,
}

/// A rank in a tree.
#[derive(Clone, Debug, Default)]
struct Node {
    parent: Option<u32>,
    children: Vec<u32>,
    /// How many of their buffers have not arrived.
    missing: usize,
}

impl Collective {
    /// `rng` draws the hosts, if they are to be drawn.
    pub(crate) fn new(spec: AllReduce, rng: &mut Rng) -> Self {
        let hosts = match spec.order {
            RankOrder::Host => (0..spec.ranks).collect(),
            RankOrder::Random => sample((0..spec.hosts).collect(), spec.ranks as usize, rng),
        };
        let (ring, tree) = match spec.algorithm {
            AllReduceAlgorithm::Ring => (vec![Steps::default(); spec.ranks as usize], Vec::new()),
            AllReduceAlgorithm::Tree => (Vec::new(), tree(spec.ranks)),
        };
        Self {
            spec,
            hosts,
            ring,
            tree,
            size: 0,
            ready: VecDeque::new(),
            to_begin: 0,
            to_arrive: 0,
            arrived_bytes: 0,
        }
    }

    /// Begins the operation on buffers of `size`: those transfers may begin that need no other.
    pub(crate) fn begin(&mut self, size: Bytes) {
        self.size = size.get();
        self.to_begin = self.spec.transfers();
        self.to_arrive = self.to_begin;
        self.arrived_bytes = 0;
        self.ring.fill(Steps::default());
        for node in &mut self.tree {
            node.missing = node.children.len();
        }
        for rank in 0..self.spec.ranks {
            match self.spec.algorithm {
                AllReduceAlgorithm::Ring => self.send_on(rank),
                AllReduceAlgorithm::Tree => self.send_up(rank),
            }
        }
    }

    /// How many hosts take part.
    pub(crate) fn ranks(&self) -> u32 {
        self.spec.ranks
    }

    /// How many transfers may begin now.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Begins one of them.
    pub(crate) fn next(&mut self) -> Option<Transfer> {
        let transfer = self.ready.pop_front()?;
        self.to_begin -= 1;
        Some(transfer)
    }

    /// `bytes` of a transfer have arrived, and no more will: those may begin that waited for it alone.
    ///
    /// # Errors
    /// Says if all have arrived, and did not move the bytes that the operation takes.
    pub(crate) fn on_arrival(&mut self, transfer: &Transfer, bytes: u64) -> Result<(), String> {
        self.to_arrive -= 1;
        self.arrived_bytes += bytes;
        if self.to_begin > 0 {
            match self.spec.algorithm {
                AllReduceAlgorithm::Ring => self.on_part(transfer),
                AllReduceAlgorithm::Tree => self.on_buffer(transfer),
            }
        }
        let expected = 2 * (u64::from(self.spec.ranks) - 1) * self.size;
        if self.is_complete() && self.arrived_bytes != expected {
            let arrived = self.arrived_bytes;
            return Err(format!("an all-reduce moved {arrived} bytes instead of {expected}"));
        }
        Ok(())
    }

    /// Nothing more begins.
    pub(crate) fn abandon(&mut self) {
        self.to_begin = 0;
        self.ready.clear();
    }

    /// Whether every transfer has begun that ever will.
    pub(crate) fn has_begun_all(&self) -> bool {
        self.to_begin == 0
    }

    /// Whether each rank has the sum.
    pub(crate) fn is_complete(&self) -> bool {
        self.to_arrive == 0
    }

    /// A part has arrived at the next rank of a ring.
    fn on_part(&mut self, transfer: &Transfer) {
        self.ring[transfer.from as usize].sent += 1;
        self.ring[transfer.to as usize].received += 1;
        self.send_on(transfer.to);
        self.send_on(transfer.from);
    }

    /// A rank of a ring begins its next step, if that of before is over for it.
    fn send_on(&mut self, rank: u32) {
        let ranks = self.spec.ranks;
        let Steps { begun: step, sent, received } = self.ring[rank as usize];
        if step < 2 * (ranks - 1) && step == sent.min(received) {
            self.ring[rank as usize].begun += 1;
            let part = u64::from((rank + ranks - step % ranks) % ranks);
            let parts = u64::from(ranks);
            let size = self.size / parts + u64::from(part < self.size % parts);
            self.add((rank, (rank + 1) % ranks), step, size);
        }
    }

    /// A buffer has arrived at a rank of a tree.
    fn on_buffer(&mut self, transfer: &Transfer) {
        if transfer.step > 0 {
            return self.send_down(transfer.to);
        }
        self.tree[transfer.to as usize].missing -= 1;
        self.send_up(transfer.to);
    }

    /// A rank sends its buffer up as soon as it has all of its children's. The root sends it down.
    fn send_up(&mut self, rank: u32) {
        let Node { parent, missing, .. } = &self.tree[rank as usize];
        match *parent {
            _ if *missing > 0 => {}
            Some(parent) => self.add((rank, parent), 0, self.size),
            None => self.send_down(rank),
        }
    }

    fn send_down(&mut self, rank: u32) {
        for child in self.tree[rank as usize].children.clone() {
            self.add((rank, child), 1, self.size);
        }
    }

    fn add(&mut self, (from, to): (u32, u32), step: u32, size: u64) {
        let [a, b] = [from, to].map(|rank| self.hosts[rank as usize]);
        let ends = HostPair { from: a, to: b };
        self.ready.push_back(Transfer { from, to, step, ends, size: Bytes(size) });
    }
}

/// A balanced binary tree of `ranks` nodes, numbered from left to right.
fn tree(ranks: u32) -> Vec<Node> {
    let mut nodes = vec![Node::default(); ranks as usize];
    let mut ranges: Vec<(Range<u32>, Option<u32>)> = vec![(0..ranks, None)];
    while let Some((range, parent)) = ranges.pop() {
        if range.is_empty() {
            continue;
        }
        let middle = range.start + (range.end - range.start) / 2;
        nodes[middle as usize].parent = parent;
        if let Some(parent) = parent {
            nodes[parent as usize].children.push(middle);
        }
        ranges.push((middle + 1..range.end, Some(middle)));
        ranges.push((range.start..middle, Some(middle)));
    }
    nodes
}

#[cfg(test)]
mod tests;

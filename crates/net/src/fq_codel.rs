//! FQ-CoDel: a queue per flow, served in turn, each under CoDel.
//!
//! Source: RFC 8290 (Hoeiland-Joergensen et al. 2018); Linux 6.1's `sch_fq_codel`.
//!
//! A hash puts each parcel into one of `flows` queues. Queues with something to send stand in one of
//! two lists. A queue that wakes up joins the *new* ones with a credit of `quantum` bytes; new queues
//! go before old ones, so that a flow that sends little never waits behind those that fill the link.
//! The first queue of the list sends while its credit is positive; then it gets another `quantum` and
//! goes to the end of the *old* list. A queue found empty leaves its list, but a new one passes through
//! the old list first, so that nobody starves.
//!
//! When the bound is exceeded, the longest queue (in bytes) loses half of its bytes from its head, 64
//! parcels at most, and its CoDel counts them as signals (`fq_codel_drop`).
//!
//! Deviations: flows are told apart by their number and direction, hashed with a seed of its own (stream
//! `"fq-codel"`), as Linux hashes addresses and ports. There is no bound on memory.

use std::collections::VecDeque;

use weir_units::{Bytes, Instant, Rng};

use crate::codel::{CodelLaw, CodelState, Head, Signals};
use crate::config::ConfigError;
use crate::droptail::Limit;
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::stats::DropCause;

/// An FQ-CoDel queue's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// How many queues.
    pub flows: u32,
    /// The bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// The control law of each queue.
    pub law: CodelLaw,
}

/// FQ-CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    overhead: Bytes,
    mtu: Bytes,
    salt: u64,
    flows: Vec<Flow<P>>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    stored: Backlog,
    marks: u64,
}

/// A queue for those flows whose hash leads to it.
#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: VecDeque<Queued<P>>,
    /// Bytes that wait, overhead included.
    bytes: Bytes,
    credit: i64,
    is_listed: bool,
    state: CodelState,
}

impl FqCodelConfig {
    /// Linux's number of queues, and its quantum on Ethernet.
    pub const DEFAULT: Self = Self {
        limit: Limit::Packets(10_240),
        flows: 1_024,
        quantum: Bytes(1_514),
        law: CodelLaw { ecn: true, ..CodelLaw::DEFAULT },
    };

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(ConfigError::new("queue.flows", self.flows, "1 to 65536"));
        }
        if self.quantum == Bytes::ZERO {
            return Err(ConfigError::new("queue.quantum", self.quantum, "it must be above zero"));
        }
        Ok(())
    }
}

impl<P: Parcel> FqCodel<P> {
    /// An empty queue. Each parcel counts for `overhead` more bytes than its length, a full-sized one
    /// has `mtu` bytes with it.
    pub fn new(config: FqCodelConfig, overhead: Bytes, mtu: Bytes, mut luck: Rng) -> Self {
        Self {
            config,
            overhead,
            mtu,
            salt: luck.next_u64(),
            flows: (0..config.flows).map(|_| Flow::default()).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            stored: Backlog::default(),
            marks: 0,
        }
    }

    /// The queue of a parcel's flow: Fibonacci hashing, scaled to the number of queues.
    fn flow_of(&self, parcel: &P) -> usize {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let key = u64::from(parcel.conversation()) << 1 | u64::from(parcel.is_forward());
        let mixed = (key ^ self.salt).wrapping_mul(GOLDEN);
        let hash = (mixed ^ mixed >> 32).wrapping_mul(GOLDEN) >> 32;
        ((hash * u64::from(self.config.flows)) >> 32) as usize
    }

    fn is_over(&self, in_service: Backlog) -> bool {
        let Backlog { packets, bytes } = self.stored + in_service;
        let (max_packets, max_bytes) = self.config.limit.bounds();
        let bytes = bytes + self.overhead * packets;
        packets > 1 && (packets > max_packets || bytes.get() > max_bytes)
    }

    fn shorten_longest(&mut self, dropped: &mut Vec<Dropped<P>>) {
        const BATCH: u32 = 64;
        let mut longest = 0;
        for (index, flow) in self.flows.iter().enumerate() {
            if flow.bytes > self.flows[longest].bytes {
                longest = index;
            }
        }
        let flow = &mut self.flows[longest];
        let enough = flow.bytes.mul_ratio(1, 2);
        let (mut parcels, mut bytes) = (0, Bytes::ZERO);
        while let Some(Queued { parcel, .. }) = flow.pop(self.overhead, &mut self.stored) {
            parcels += 1;
            bytes += parcel.len() + self.overhead;
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
            if parcels >= BATCH || bytes >= enough {
                break;
            }
        }
        flow.state.count = flow.state.count.wrapping_add(parcels);
    }

    /// The queue whose turn it is, once those without credit have got theirs.
    fn next_in_turn(&mut self) -> Option<usize> {
        loop {
            let list =
                if self.new_flows.is_empty() { &mut self.old_flows } else { &mut self.new_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit > 0 {
                return Some(index);
            }
            flow.credit += self.config.quantum.get() as i64;
            list.pop_front();
            self.old_flows.push_back(index);
        }
    }

    /// The queue at the head of the lists was found empty.
    fn retire(&mut self) {
        if let Some(index) = self.new_flows.pop_front() {
            if self.old_flows.is_empty() {
                self.flows[index].is_listed = false;
            } else {
                self.old_flows.push_back(index);
            }
        } else if let Some(index) = self.old_flows.pop_front() {
            self.flows[index].is_listed = false;
        }
    }
}

impl<P: Parcel> Queue<P> for FqCodel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let index = self.flow_of(&parcel);
        self.stored = self.stored + Backlog { packets: 1, bytes: parcel.len() };
        let flow = &mut self.flows[index];
        flow.bytes += parcel.len() + self.overhead;
        flow.waiting.push_back(Queued { parcel, arrived: now });
        if !flow.is_listed {
            flow.is_listed = true;
            flow.credit = self.config.quantum.get() as i64;
            self.new_flows.push_back(index);
        }
        if self.is_over(in_service) {
            self.shorten_longest(dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        loop {
            let index = self.next_in_turn()?;
            let Self { config, overhead, mtu, stored, marks, .. } = self;
            let Flow { waiting, bytes, state, .. } = &mut self.flows[index];
            let signals = Signals { law: &config.law, mtu: *mtu, dropped, marks };
            let sent = state.dequeue(now, signals, || {
                let queued = pop(waiting, bytes, *overhead, stored)?;
                Some(Head { queued, behind: stored.bytes + *overhead * stored.packets })
            });
            if let Some(queued) = sent {
                let taken = queued.parcel.len() + self.overhead;
                self.flows[index].credit -= taken.get() as i64;
                return Some(queued);
            }
            self.retire();
        }
    }

    /// All queues are found empty in turn.
    fn on_idle(&mut self, _since: Instant) {
        for index in self.new_flows.drain(..).chain(self.old_flows.drain(..)) {
            self.flows[index].is_listed = false;
            self.flows[index].state.on_empty();
        }
    }

    fn backlog(&self) -> Backlog {
        self.stored
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

impl<P: Parcel> Flow<P> {
    fn pop(&mut self, overhead: Bytes, stored: &mut Backlog) -> Option<Queued<P>> {
        pop(&mut self.waiting, &mut self.bytes, overhead, stored)
    }
}

impl<P> Default for Flow<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            credit: 0,
            is_listed: false,
            state: CodelState::default(),
        }
    }
}

/// Takes the head of a flow's queue, and keeps the books.
fn pop<P: Parcel>(
    waiting: &mut VecDeque<Queued<P>>,
    bytes: &mut Bytes,
    overhead: Bytes,
    stored: &mut Backlog,
) -> Option<Queued<P>> {
    let head = waiting.pop_front()?;
    let len = head.parcel.len();
    *bytes -= len + overhead;
    stored.packets -= 1;
    stored.bytes -= len;
    Some(head)
}

#[cfg(test)]
mod tests;

//! CAKE's flow isolation: a queue per flow, fair among hosts first and among their flows then, each
//! queue under COBALT.
//!
//! Sources: Høiland-Jørgensen, Täht and Morton, "Piece of CAKE: a comprehensive queue management
//! solution for home gateways", 2018; `tc-cake(8)`; Linux 6.1's `sch_cake`.
//!
//! A hash leads to a set of eight queues; a flow takes an unused one of these, its own first, and
//! meets another flow only when all eight are in use (§III-A). Queues are served by deficit round
//! robin as in FQ-CoDel, new ones first (`rotation.rs` has the rules). A flow is *bulk* from its
//! second turn on for as long as it has something to send. In its turn a flow gets
//!
//! ```text
//! quantum / max(bulk flows of its source, bulk flows of its destination, 1)
//! ```
//!
//! with the sides that its [`Isolation`] counts (§III-B), rounded at random so that no fraction is lost. A
//! flow whose queue is empty stays in a third list until its COBALT has settled. A queue's last
//! parcel is never dropped. When the bound is exceeded, the longest queue (in bytes) loses its head.
//!
//! The link is CAKE's shaper. With `shapes` it works as Linux's: a parcel leaves at once, and the next one
//! when the rate has had the time for it (`cake_advance_shaper`, its "deficit mode"); otherwise it sends
//! parcels bit by bit, as an interface of this rate. From its rate come the quantum (what it carries in
//! 1/4096 s, 300 bytes to 1514), the time of a full-sized parcel, and a target of one and a half of these
//! at least, by which the interval grows too, as `tc`'s `bandwidth` does it. A link without rate is
//! `unlimited`.
//!
//! Deviations: flows are identified by their number and direction, hashed with a seed of its own (stream
//! `"cake"`, which is also the random stream), hosts by [`Hosts`](crate::Hosts). The bound is in bytes of
//! packets, where Linux counts memory. Left out: priority tins (`besteffort` has one), the filter of
//! acknowledgements, `ingress`, `autorate-ingress`, NAT and overhead keywords.

mod cobalt;
mod hosts;

use std::collections::VecDeque;
use std::sync::Arc;

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::droptail::Limit;
use crate::error::{ConfigError, check_span};
use crate::parcel::{Hosts, Parcel};
use crate::queue::{Backlog, Dropped, Queue, Queued};
use crate::rotation::is_over;
use crate::service::Service;
use crate::stats::DropCause;

use cobalt::{Cobalt, CobaltState, Fate};
pub use hosts::Isolation;
use hosts::{Key, NO_HOST, PLACES, Side, part_of, ways};

/// A CAKE queue's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CakeConfig {
    /// The bound of all queues together, the parcel in service included.
    pub limit: Limit,
    /// What is kept apart.
    pub isolation: Isolation,
    /// A sojourn that is good enough.
    pub target: Duration,
    /// How long sojourns may exceed it: about the longest round trip.
    pub interval: Duration,
    /// Whether the link, which must have a rate, is CAKE's own shaper rather than an interface of that rate.
    pub shapes: bool,
    /// The hosts of flows by number, in their forward direction. Flows beyond these, and all if it is
    /// empty, have hosts of their own.
    pub hosts: Arc<[Hosts]>,
}

/// CAKE.
#[derive(Clone, Debug)]
pub struct Cake<P> {
    config: CakeConfig,
    law: Cobalt,
    quantum: Bytes,
    overhead: Bytes,
    salt: u64,
    flows: Vec<Flow<P>>,
    sources: Side,
    destinations: Side,
    /// The queues of each [`List`].
    lists: [VecDeque<usize>; 3],
    stored: Backlog,
    rng: Rng,
    marks: u64,
}

/// A queue and who uses it.
#[derive(Clone, Debug)]
struct Flow<P> {
    tag: u64,
    waiting: VecDeque<Queued<P>>,
    /// Bytes that wait, overhead included.
    bytes: Bytes,
    credit: i64,
    standing: Standing,
    source: usize,
    destination: usize,
    state: CobaltState,
}

/// What a queue is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// In no list.
    Unused,
    /// In its first turn.
    Sparse,
    /// Was found empty without credit: waits among the old ones.
    SparseWait,
    /// Fills the link.
    Bulk,
    /// Empty, but COBALT remembers.
    Decaying,
}

/// Where queues stand for their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New,
    Old,
    Decaying,
}

impl CakeConfig {
    /// `tc`'s defaults for paths over the Internet: COBALT's 5 and 100 ms, 4 MiB.
    pub fn usual() -> Self {
        Self {
            limit: Limit::Bytes(Bytes(4 << 20)),
            isolation: Isolation::default(),
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            shapes: false,
            hosts: Arc::default(),
        }
    }

    pub(crate) fn validate(&self, service: &Service) -> Result<(), ConfigError> {
        if self.shapes && !matches!(service, Service::Rate(_)) {
            const HELP: &str =
                "CAKE's shaper needs a link with a rate, without burst or rate_trace";
            return Err(ConfigError::new("queue.shaper", true, HELP));
        }
        check_span("queue.target", self.target)?;
        check_span("queue.interval", self.interval)
    }

    /// COBALT's parameters and the quantum on a link of this rate (`cake_set_rate`).
    fn at(&self, rate: Option<Rate>, mtu: Bytes) -> (Cobalt, Bytes) {
        let Self { target, interval, .. } = *self;
        let Some(rate) = rate else {
            return (Cobalt { target, interval, mtu_time: Duration::ZERO }, MAX_QUANTUM);
        };
        let mtu_time = rate.transmit_time(mtu, &mut 0);
        let least = mtu_time.mul_ratio(3, 2).max(target);
        let longer = (interval + (least - target)).max(least.saturating_mul(2));
        let quantum = Bytes(rate.as_bits_per_sec() / 8 / 4_096).clamp(MIN_QUANTUM, MAX_QUANTUM);
        (Cobalt { target: least, interval: longer, mtu_time }, quantum)
    }
}

impl<P: Parcel> Cake<P> {
    /// An empty queue before a link of `rate`, if it has one. Each parcel counts for `overhead` more bytes
    /// than its length, a full-sized one has `mtu` bytes with it.
    pub fn new(
        config: CakeConfig,
        rate: Option<Rate>,
        overhead: Bytes,
        mtu: Bytes,
        mut rng: Rng,
    ) -> Self {
        let (law, quantum) = config.at(rate, mtu);
        Self {
            law,
            quantum,
            overhead,
            salt: rng.next_u64(),
            flows: (0..PLACES).map(|_| Flow::default()).collect(),
            sources: Side::new(config.isolation, Isolation::shares_among_sources),
            destinations: Side::new(config.isolation, Isolation::shares_among_destinations),
            config,
            lists: Default::default(),
            stored: Backlog::default(),
            rng,
            marks: 0,
        }
    }

    /// The queue for a parcel: the one that its flow has, or else an unused one of its set, or
    /// else the first of them, which then is shared (`cake_hash`).
    fn place_of(&mut self, key: Key) -> usize {
        let own = ways(key.flow).find(|place| self.flows[*place].tag == key.flow);
        let is_used = own.is_some_and(|place| self.flows[place].standing != Standing::Unused);
        let place = own
            .or_else(|| ways(key.flow).find(|at| self.flows[*at].standing == Standing::Unused))
            .unwrap_or((key.flow % PLACES as u64) as usize);
        if is_used {
            return place;
        }
        self.count_bulk(place, Side::remove);
        let (source, destination) =
            (self.sources.place_of(key.source), self.destinations.place_of(key.destination));
        let flow = &mut self.flows[place];
        (flow.tag, flow.source, flow.destination) = (key.flow, source, destination);
        self.count_bulk(place, Side::add);
        place
    }

    /// Adds a queue to its hosts' bulk flows or removes it, if it is one.
    fn count_bulk(&mut self, place: usize, count: fn(&mut Side, usize)) {
        let Flow { standing, source, destination, .. } = self.flows[place];
        if standing == Standing::Bulk {
            count(&mut self.sources, source);
            count(&mut self.destinations, destination);
        }
    }

    fn set_standing(&mut self, place: usize, standing: Standing) {
        self.count_bulk(place, Side::remove);
        self.flows[place].standing = standing;
        self.count_bulk(place, Side::add);
    }

    /// What a queue may send in its turn (`cake_get_flow_quantum`).
    fn flow_quantum(&mut self, place: usize) -> i64 {
        let Flow { source, destination, .. } = self.flows[place];
        let load = self.sources.load(source).max(self.destinations.load(destination));
        let rounded = part_of(self.quantum, load) + (self.rng.next_u64() >> 48);
        (rounded >> 16) as i64
    }

    fn join(&mut self, place: usize) {
        match self.flows[place].standing {
            Standing::Unused | Standing::Decaying => {
                if self.flows[place].standing == Standing::Decaying {
                    self.lists[List::Decaying as usize].retain(|other| *other != place);
                }
                self.lists[List::New as usize].push_back(place);
                self.set_standing(place, Standing::Sparse);
                self.flows[place].credit = self.flow_quantum(place);
            }
            Standing::SparseWait => self.set_standing(place, Standing::Bulk),
            Standing::Sparse | Standing::Bulk => {}
        }
    }

    /// Takes the head of a queue, and updates the counters.
    fn pop(&mut self, place: usize) -> Option<Queued<P>> {
        let flow = &mut self.flows[place];
        let head = flow.waiting.pop_front()?;
        let len = head.parcel.len();
        flow.bytes -= len + self.overhead;
        self.stored.packets -= 1;
        self.stored.bytes -= len;
        Some(head)
    }

    fn shorten_longest(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) {
        let mut longest = 0;
        for (place, flow) in self.flows.iter().enumerate() {
            if flow.bytes > self.flows[longest].bytes {
                longest = place;
            }
        }
        if let Some(Queued { parcel, .. }) = self.pop(longest) {
            self.flows[longest].state.on_overflow(now, &self.law);
            dropped.push(Dropped { parcel, cause: DropCause::Queue });
        }
    }

    /// The queue whose turn it is, and its list. `first` is looked at before the others.
    fn next_in_turn(&self, first: Option<List>) -> Option<(List, usize)> {
        let lists = first.into_iter().chain([List::New, List::Old, List::Decaying]);
        lists.into_iter().find_map(|list| Some((list, *self.lists[list as usize].front()?)))
    }

    /// A queue without credit gets some and goes to the end of the old ones.
    fn renew(&mut self, list: List, place: usize) {
        if self.flows[place].standing == Standing::Sparse {
            let is_empty = self.flows[place].waiting.is_empty();
            let standing = if is_empty { Standing::SparseWait } else { Standing::Bulk };
            self.set_standing(place, standing);
        }
        self.flows[place].credit += self.flow_quantum(place);
        self.lists[list as usize].pop_front();
        self.lists[List::Old as usize].push_back(place);
    }

    /// The next parcel of a queue that COBALT lets go; the last one may be marked, but stays.
    fn send_from(
        &mut self,
        now: Instant,
        place: usize,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Option<Queued<P>> {
        while let Some(mut head) = self.pop(place) {
            let Self { law, rng, marks, flows, .. } = self;
            let Flow { state, waiting, credit, .. } = &mut flows[place];
            let fate = state.judge(now, law, &mut head, rng, marks);
            if fate == Fate::Goes || waiting.is_empty() {
                *credit -= (head.parcel.len() + self.overhead).get() as i64;
                return Some(head);
            }
            dropped.push(Dropped { parcel: head.parcel, cause: DropCause::Aqm });
        }
        None
    }

    /// A queue was found empty: it leaves its list, or decays.
    fn retire(&mut self, now: Instant, list: List, place: usize) {
        self.lists[list as usize].pop_front();
        let state = &mut self.flows[place].state;
        state.on_empty(now, &self.law);
        if state.is_at_rest(now) {
            self.set_standing(place, Standing::Unused);
        } else {
            self.set_standing(place, Standing::Decaying);
            self.lists[List::Decaying as usize].push_back(place);
        }
    }
}

impl<P: Parcel> Queue<P> for Cake<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        parcel: P,
        in_service: Backlog,
        dropped: &mut Vec<Dropped<P>>,
    ) {
        let place =
            self.place_of(self.config.isolation.key(&parcel, &self.config.hosts, self.salt));
        self.stored = self.stored + Backlog { packets: 1, bytes: parcel.len() };
        let flow = &mut self.flows[place];
        flow.bytes += parcel.len() + self.overhead;
        flow.waiting.push_back(Queued { parcel, arrived: now });
        self.join(place);
        while self.stored.packets > 0
            && is_over(self.stored + in_service, self.overhead, self.config.limit)
        {
            self.shorten_longest(now, dropped);
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Dropped<P>>) -> Option<Queued<P>> {
        // One of the decaying queues has a look at the time before each parcel.
        let mut first = Some(List::Decaying);
        while self.stored.packets > 0 {
            let (list, place) = self.next_in_turn(first.take())?;
            if self.flows[place].credit <= 0 {
                self.renew(list, place);
            } else if let Some(sent) = self.send_from(now, place, dropped) {
                return Some(sent);
            } else {
                self.retire(now, list, place);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.stored
    }

    fn marks(&self) -> u64 {
        self.marks
    }
}

impl<P> Default for Flow<P> {
    fn default() -> Self {
        Self {
            tag: NO_HOST,
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            credit: 0,
            standing: Standing::Unused,
            source: 0,
            destination: 0,
            state: CobaltState::default(),
        }
    }
}

/// Bounds of what a flow may send in its turn.
const MIN_QUANTUM: Bytes = Bytes(300);
const MAX_QUANTUM: Bytes = Bytes(1_514);

#[cfg(test)]
mod tests;

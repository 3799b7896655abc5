//! A network in memory for the protocols' tests: a graph that loses and gains links on command.
//!
//! Each node sends one datagram per millisecond, in order. A unicast to a neighbour that is gone
//! fails after five milliseconds, together with what waits for the same neighbour, as the interface
//! queue and the MAC do it. There are no collisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_units::{Bytes, Duration, Instant, Rng, stream};

use super::{AnyRouter, LinkFailure, Message, Notice, Router, RouterConfig, RouterCx, Upcall};
use crate::datagram::{Content, Datagram, DropReason, NodeId};
use weir_net::{Ecn, Parcel};

/// A parcel that knows what tests ask for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TestParcel {
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) sequence: u64,
    pub(super) forward: bool,
}

pub(super) type TestDatagram = Datagram<TestParcel, Message>;

/// A notice that reached a transport.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Delivered {
    pub(super) at: Instant,
    pub(super) node: u16,
    pub(super) flow: u32,
    pub(super) notice: Notice,
}

#[derive(Debug)]
pub(super) struct TestNet {
    pub(super) now: Instant,
    pub(super) routers: Vec<AnyRouter<TestParcel>>,
    links: BTreeSet<(u16, u16)>,
    /// When each router wants to be called.
    timeouts: Vec<Option<Instant>>,
    rngs: Vec<Rng>,
    outgoing: Vec<VecDeque<(NodeId, TestDatagram)>>,
    sending: Vec<bool>,
    events: BTreeMap<(Instant, u64), Event>,
    numbers: u64,
    pub(super) sent: u64,
    /// Identities of parcels in the order of delivery, with where.
    pub(super) delivered: Vec<(u64, NodeId)>,
    pub(super) dropped: Vec<(u64, DropReason)>,
    pub(super) notices: Vec<Delivered>,
    /// Every message that went on the air: sender, next hop, message.
    pub(super) aired: Vec<(u16, NodeId, Message)>,
    /// Every hop of every parcel: identity, sender, next hop.
    pub(super) hops: Vec<(u64, u16, NodeId)>,
}

#[derive(Debug)]
enum Event {
    Enqueue(u16, NodeId, TestDatagram),
    Done(u16),
}

impl TestNet {
    pub(super) fn new(config: &RouterConfig, nodes: u16, links: &[(u16, u16)]) -> Self {
        let mut net = Self {
            now: Instant::ZERO,
            routers: (0..nodes).map(|node| config.build(NodeId(node))).collect(),
            timeouts: Vec::new(),
            links: BTreeSet::new(),
            rngs: (0..nodes).map(|node| stream(1, &format!("node {node}"))).collect(),
            outgoing: vec![VecDeque::new(); usize::from(nodes)],
            sending: vec![false; usize::from(nodes)],
            events: BTreeMap::new(),
            numbers: 0,
            sent: 0,
            delivered: Vec::new(),
            dropped: Vec::new(),
            notices: Vec::new(),
            aired: Vec::new(),
            hops: Vec::new(),
        };
        net.timeouts = net.routers.iter().map(|router| router.next_timeout()).collect();
        links.iter().for_each(|(a, b)| net.join(*a, *b));
        net
    }

    /// A chain of `hops` hops.
    pub(super) fn chain(config: &RouterConfig, hops: u16) -> Self {
        Self::new(config, hops + 1, &(0..hops).map(|i| (i, i + 1)).collect::<Vec<_>>())
    }

    pub(super) fn join(&mut self, a: u16, b: u16) {
        self.links.insert((a.min(b), a.max(b)));
    }

    pub(super) fn cut(&mut self, a: u16, b: u16) {
        self.links.remove(&(a.min(b), a.max(b)));
    }

    pub(super) fn linked(&self, a: u16, b: u16) -> bool {
        self.links.contains(&(a.min(b), a.max(b)))
    }

    /// Node `from` sends a data parcel of flow `flow` to `to`; its identity is returned.
    pub(super) fn send(&mut self, flow: u32, from: u16, to: u16) -> u64 {
        self.sent += 1;
        let id = self.sent;
        self.originate(from, to, TestParcel { id, flow, sequence: 1000 + id, forward: true })
    }

    /// Node `from` sends an acknowledgement of flow `flow` to `to`.
    pub(super) fn acknowledge(&mut self, flow: u32, from: u16, to: u16, sequence: u64) -> u64 {
        self.sent += 1;
        self.originate(from, to, TestParcel { id: self.sent, flow, sequence, forward: false })
    }

    fn originate(&mut self, from: u16, to: u16, parcel: TestParcel) -> u64 {
        let id = parcel.id;
        let datagram = Datagram {
            source: NodeId(from),
            destination: NodeId(to),
            ttl: 1,
            hops: 0,
            extra: Bytes::ZERO,
            content: Content::Parcel(parcel, None),
        };
        self.drive(from, |router, cx| router.originate(cx, datagram));
        id
    }

    /// Node `to` receives `datagram` out of the blue.
    pub(super) fn inject(&mut self, from: u16, to: u16, datagram: TestDatagram) {
        self.drive(to, |router, cx| router.received(cx, NodeId(from), datagram));
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let timers = self.timeouts.iter().zip(0..);
            let timer = timers.filter_map(|(at, node)| Some(((*at)?, node))).min();
            let timer_at = timer.map(|(at, _)| at);
            let Some(next) = event.into_iter().chain(timer_at).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if event == Some(next) {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(event);
            } else if let Some((at, node)) = timer {
                self.drive(node, |router, cx| router.handle_timeout(cx));
                let later = self.routers[usize::from(node)].next_timeout();
                assert!(later.is_none_or(|later| later > at), "node {node} does not move on");
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Enqueue(node, next_hop, datagram) => {
                self.outgoing[usize::from(node)].push_back((next_hop, datagram));
                self.start(node);
            }
            Event::Done(node) => self.finish(node),
        }
    }

    /// The head of the line of `node` goes on the air.
    fn start(&mut self, node: u16) {
        let index = usize::from(node);
        let Some((next_hop, datagram)) = self.outgoing[index].front() else { return };
        if std::mem::replace(&mut self.sending[index], true) {
            return;
        }
        match &datagram.content {
            Content::Message(message, _) => self.aired.push((node, *next_hop, message.clone())),
            Content::Parcel(parcel, _) => self.hops.push((parcel.id, node, *next_hop)),
        }
        let reaches = next_hop.is_broadcast() || self.linked(node, next_hop.0);
        let time = Duration::from_millis(if reaches { 1 } else { 5 });
        self.schedule(time, Event::Done(node));
    }

    fn finish(&mut self, node: u16) {
        let index = usize::from(node);
        self.sending[index] = false;
        let Some((next_hop, datagram)) = self.outgoing[index].pop_front() else { return };
        if next_hop.is_broadcast() {
            for to in 0..self.routers.len() as u16 {
                if self.linked(node, to) {
                    let copy = datagram.clone();
                    self.drive(to, |router, cx| router.received(cx, NodeId(node), copy));
                }
            }
        } else if self.linked(node, next_hop.0) {
            for to in (0..self.routers.len() as u16).filter(|to| *to != next_hop.0) {
                if self.linked(node, to) && self.routers[usize::from(to)].overhears() {
                    self.drive(to, |router, cx| router.overheard(cx, NodeId(node), &datagram));
                }
            }
            self.drive(next_hop.0, |router, cx| router.received(cx, NodeId(node), datagram));
        } else {
            let queue = std::mem::take(&mut self.outgoing[index]);
            let (same, other): (VecDeque<_>, _) =
                queue.into_iter().partition(|(hop, _)| *hop == next_hop);
            self.outgoing[index] = other;
            let waiting = same.into_iter().map(|(_, datagram)| datagram).collect();
            let failure = LinkFailure { next_hop, datagram, waiting };
            self.drive(node, |router, cx| router.link_failed(cx, failure));
        }
        self.start(node);
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.numbers += 1;
        self.events.insert((self.now + after, self.numbers), event);
    }

    fn drive(
        &mut self,
        node: u16,
        act: impl FnOnce(&mut AnyRouter<TestParcel>, &mut RouterCx<'_, TestParcel, Message>),
    ) {
        let index = usize::from(node);
        let mut upcalls = Vec::new();
        let mut cx = RouterCx {
            now: self.now,
            node: NodeId(node),
            rng: &mut self.rngs[index],
            upcalls: &mut upcalls,
        };
        act(&mut self.routers[index], &mut cx);
        self.timeouts[index] = self.routers[index].next_timeout();
        for upcall in upcalls {
            self.take(node, upcall);
        }
    }

    fn take(&mut self, node: u16, upcall: Upcall<TestParcel, Message>) {
        match upcall {
            Upcall::Send { next_hop, datagram, delay } => {
                self.schedule(delay, Event::Enqueue(node, next_hop, datagram));
            }
            Upcall::Deliver(datagram) => {
                assert_eq!(datagram.destination, NodeId(node));
                let Content::Parcel(parcel, _) = datagram.content else {
                    panic!("only parcels are delivered")
                };
                self.delivered.push((parcel.id, NodeId(node)));
            }
            Upcall::Drop(datagram, reason) => {
                if let Content::Parcel(parcel, _) = datagram.content {
                    self.dropped.push((parcel.id, reason));
                }
            }
            Upcall::Notify { flow, notice } => {
                self.notices.push(Delivered { at: self.now, node, flow, notice });
            }
            Upcall::RouteChanged { .. } => {}
        }
    }

    /// No parcel was both delivered and dropped, or either of them twice.
    pub(super) fn assert_one_fate_each(&self) {
        let mut fates: Vec<u64> = self.delivered.iter().map(|(id, _)| *id).collect();
        fates.extend(self.dropped.iter().map(|(id, _)| *id));
        fates.sort_unstable();
        let twice = fates.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "a parcel has two fates");
        assert!(fates.len() as u64 <= self.sent);
    }

    /// The nodes that parcel `id` was sent by, in order.
    pub(super) fn path_of(&self, id: u64) -> Vec<u16> {
        self.hops.iter().filter(|(of, ..)| *of == id).map(|(_, node, _)| *node).collect()
    }
}

impl Parcel for TestParcel {
    fn len(&self) -> Bytes {
        Bytes(if self.forward { 1000 } else { 40 })
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn is_forward(&self) -> bool {
        self.forward
    }

    fn carries_data(&self) -> bool {
        self.forward
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }

    fn mark_ce(&mut self) {}

    fn corrupt(&mut self) {}

    fn add_queue_delay(&mut self, _waited: Duration) {}
}

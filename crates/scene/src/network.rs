//! The links and the event queue: packets go in, their arrivals become events.

mod switches;

use std::collections::BTreeMap;

use weir_radio::Notice;
use weir_units::feedback::Telemetry;
use weir_units::{Duration, Instant, Rng};

use crate::balancer::{Balancer, CHOSEN};
use crate::check::TraceHash;
use crate::error::SpecError;
use crate::forwarding::Forwarding;
use crate::link::{HostedLink, PacketLink};
use crate::memory::SwitchMemory;
use crate::packet::Load;
use crate::packet::{Direction, Packet};
use crate::queue::{Event, EventQueue};
use crate::radio::{HostedRadio, Medium, RadioOutput, reason_name};
use crate::run_log::RunLog;
use crate::side::{Side, wake_up};
use crate::spec::{FlowSpec, HostPair, LinkSpec, RunSpec};

/// Everything that flows share.
pub struct Network<Q, L: Load = ()> {
    /// The time: that of the event at hand.
    pub now: Instant,
    /// The links, as the description orders them.
    pub links: Vec<HostedLink<L>>,
    /// What is noted along the way.
    pub notes: RunLog,
    queue: Q,
    /// Memory of packets that have arrived, for new ones.
    spare: Vec<Box<Packet<L>>>,
    routes: Vec<Routes>,
    /// Per flow, which of these it takes.
    route_of: Vec<u32>,
    /// The link out of which a packet came that was handed over last.
    delivers: u32,
    /// Links that have an event pending: while there are any, packets are in flight.
    busy_links: usize,
    /// Where switches choose among links.
    balancer: Option<Box<Balancer>>,
    /// The memory of switches, where their ports share it.
    memory: Option<Box<SwitchMemory>>,
    /// Of connections between hosts that were drawn, the way by its numbers of links, forward and back.
    drawn_routes: BTreeMap<[u8; 2], u32>,
    /// Where flows go over radio in place of links.
    radio: Option<Box<dyn Medium<L>>>,
    /// The records of hops of the packet that is being handed over, where packets carry any.
    pub arrived: Option<Telemetry>,
    /// When the pending event of the radio network is due; one at any other time is outdated.
    radio_armed: Option<Instant>,
    /// Nothing happens from here on.
    end: Instant,
    hash: TraceHash,
    /// Whether any sender hands over its packets one at a time.
    senders_wait: bool,
    /// Links out of which there is something to take for who watches all packets.
    news: Vec<u32>,
}

/// Where a flow's packets go: over these links, of which `CHOSEN` is one that a switch chooses.
struct Routes {
    forward: Box<[u32]>,
    reverse: Box<[u32]>,
    /// Monitored links among them: hosts' own links are not routers'.
    routers: [u8; 2],
}

impl<Q: EventQueue> Network<Q> {
    /// As [`new`](Self::new), with the radio network of `spec` where it has one.
    ///
    /// # Errors
    /// For a link and a radio network that cannot be.
    pub fn with_radio(spec: &RunSpec, seed: u64) -> Result<Self, SpecError> {
        let mut network = Self::new(spec, seed)?;
        if let Some(radio) = &spec.radio {
            network.radio = Some(Box::new(HostedRadio::new(radio, seed, &spec.measure)?));
            network.move_nodes();
            network.arm_radio();
        }
        Ok(network)
    }
}

impl<Q: EventQueue, L: Load> Network<Q, L> {
    /// The links of `spec`, empty, and no event; no radio network. All randomness comes from `seed`.
    ///
    /// # Errors
    /// For a link that cannot be.
    pub fn new(spec: &RunSpec, seed: u64) -> Result<Self, SpecError> {
        let links: Result<Vec<HostedLink<L>>, SpecError> =
            spec.links.iter().map(|link| HostedLink::new(link, seed)).collect();
        let end = Instant::ZERO + spec.measure.duration;
        let balancer = spec.fabric.as_ref().map(|fabric| Balancer::new(fabric, &spec.flows, seed));
        let memory = spec.fabric.as_ref();
        let memory = memory.and_then(|fabric| SwitchMemory::new(fabric, &spec.links)).map(Box::new);
        // Where there is memory to manage, every packet passes the choice of its link, whatever is left to
        // choose.
        let fixed = memory.is_none();
        let routes = (0u32..).zip(&spec.flows).map(|(index, flow)| match &balancer {
            Some(balancer) => Routes::chosen(index, flow, &spec.links, balancer, fixed),
            None => Routes::new(flow, &spec.links),
        });
        Ok(Self {
            now: Instant::ZERO,
            links: links?,
            notes: RunLog::new(spec.flows.len(), spec.measure.max_events),
            queue: Q::default(),
            spare: Vec::new(),
            routes: routes.collect(),
            route_of: (0u32..).zip(&spec.flows).map(|(index, _)| index).collect(),
            delivers: 0,
            busy_links: 0,
            balancer: balancer.map(Box::new),
            memory,
            drawn_routes: BTreeMap::new(),
            radio: None,
            arrived: None,
            radio_armed: None,
            end,
            hash: TraceHash::default(),
            senders_wait: spec.links.iter().any(|link| link.one_at_a_time),
            news: Vec::new(),
        })
    }

    /// The next event, if it comes before `end`; time moves on to it.
    #[inline]
    pub fn next_event_until(&mut self, end: Instant) -> Option<Event> {
        let (at, event) = self.queue.pop().filter(|(at, _)| *at < end)?;
        if at < self.now {
            self.notes.violate(format!("time went back from {} to {at}", self.now));
        }
        self.now = at;
        Some(event)
    }

    /// The next event, if it is due by `now`; time moves on to it. Other than
    /// [`next_event_until`](Self::next_event_until) it leaves a later event where it is.
    pub fn next_event_by(&mut self, now: Instant) -> Option<Event> {
        self.queue.peek().filter(|at| *at <= now)?;
        self.next_event_until(Instant::MAX)
    }

    /// When the next event is due.
    pub fn next_time(&mut self) -> Option<Instant> {
        self.queue.peek()
    }

    /// Adds an event, now or later.
    pub fn schedule(&mut self, at: Instant, event: Event) {
        self.queue.push(at, event);
    }

    /// Adds the event that wakes one end of a flow.
    #[inline]
    pub fn wake_end(&mut self, at: Instant, flow: u32, side: Side) {
        self.schedule(at, wake_up(flow, side));
    }

    /// One more flow, the next by number, takes the way of another.
    pub(crate) fn add_flow(&mut self, like: u32) {
        self.route_of.push(self.route_of[like as usize]);
        self.notes.add_flow();
    }

    /// The ends of the next flow that is added, where switches choose: those of `like` unless it has
    /// others. `rng` is its stream.
    pub(crate) fn add_flow_between(&mut self, like: u32, ends: Option<HostPair>, rng: Rng) {
        self.add_flow(like);
        let Some(balancer) = &mut self.balancer else { return };
        balancer.add_flow(ends.unwrap_or_else(|| balancer.ends(like)), rng);
        let Some(HostPair { from, to }) = ends else { return };
        let tables = balancer.forwarding();
        let hops = [tables.hops(from, to), tables.hops(to, from)].map(Option::unwrap_or_default);
        let routes = &mut self.routes;
        let route = *self.drawn_routes.entry(hops).or_insert_with(|| {
            routes.push(Routes::all_chosen(hops));
            (routes.len() - 1) as u32
        });
        if let Some(last) = self.route_of.last_mut() {
            *last = route;
        }
    }

    /// Whether the ways of packets are chosen.
    pub(crate) fn chooses(&self) -> bool {
        self.balancer.is_some()
    }

    /// The routes of a flow between two hosts, forward and back, over the fastest links that switches may
    /// choose; `speed` of a link says how fast it is.
    pub(crate) fn widest_routes(
        &self,
        flow: &FlowSpec,
        ends: HostPair,
        speed: &dyn Fn(usize) -> u64,
    ) -> Option<[Vec<usize>; 2]> {
        let tables = self.balancer.as_ref()?.forwarding();
        let way = |example, from, to| {
            let [before, behind] = own_links(example, tables);
            Some([before, &tables.widest_path(from, to, speed)?, behind].concat())
        };
        let HostPair { from, to } = ends;
        Some([way(&flow.route_forward, from, to)?, way(&flow.route_reverse, to, from)?])
    }

    /// How many monitored links lie on a flow's way.
    pub fn routers(&self, flow: u32, direction: Direction) -> u8 {
        let [forward, reverse] = self.route(flow).routers;
        match direction {
            Direction::Forward => forward,
            Direction::Reverse => reverse,
        }
    }

    /// Whether there is any link on a flow's way: without one its packets arrive when they leave.
    pub fn has_links(&self, flow: u32, direction: Direction) -> bool {
        self.radio.is_some() || !self.route(flow).towards(direction).is_empty()
    }

    /// Puts a packet onto the link of its route that its `hop` says, or hands it to its node.
    #[inline(always)]
    pub fn forward(&mut self, packet: Packet<L>) {
        let packet = match self.spare.pop() {
            Some(mut memory) => {
                memory.put(packet);
                memory
            }
            None => Box::new(packet),
        };
        if let Some(radio) = &mut self.radio {
            radio.offer(self.now, *packet);
            return self.arm_radio();
        }
        let first = self.route(packet.flow).towards(packet.direction)[usize::from(packet.hop)];
        self.offer(first, packet, None);
    }

    /// Moves the numbers of links that were watched, and have packets or drops to be taken, into `links`.
    pub fn take_news(&mut self, links: &mut Vec<u32>) {
        links.append(&mut self.news);
    }

    /// Takes back the memory of a packet that has arrived, for a new one.
    #[inline]
    pub fn recycle(&mut self, packet: Box<Packet<L>>) {
        self.spare.push(packet);
    }

    #[inline(always)]
    fn offer(&mut self, index: u32, packet: Box<Packet<L>>, crossed: Option<u32>) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return self.offer_chosen(packet, crossed);
        };
        link.offer(self.now, packet, &mut self.news);
        self.settle(index);
    }

    /// Puts a packet onto the link that the switch at the end of link `crossed` chooses, or its sender.
    #[inline(never)]
    fn offer_chosen(&mut self, packet: Box<Packet<L>>, crossed: Option<u32>) {
        let route = self.route(packet.flow).towards(packet.direction);
        let later = &route[usize::from(packet.hop) + 1..];
        let links_left = later.iter().take_while(|link| **link == CHOSEN).count();
        let Some(balancer) = &mut self.balancer else { return };
        match balancer.next(self.now, &packet, crossed, links_left) {
            Ok(index) if self.memory.is_some() => self.offer_to_port(index, packet, crossed),
            Ok(index) => {
                self.links[index as usize].offer(self.now, packet, &mut self.news);
                self.settle(index);
            }
            Err(what) => self.notes.violate(what),
        }
    }

    /// Handles a link's event: forwards what came out of it, and hands over what has arrived.
    #[inline]
    pub fn on_link(&mut self, index: u32, mut arrived: impl FnMut(&mut Self, Box<Packet<L>>)) {
        let link = &mut self.links[index as usize];
        if link.armed != Some(self.now) {
            return;
        }
        link.armed = None;
        self.busy_links -= 1;
        loop {
            let link = &mut self.links[index as usize];
            let mut packet = match link.poll(self.now, &mut self.news) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(what) => return self.notes.violate(what),
            };
            self.hash.add(self.now, index, packet.flow, packet.seq());
            packet.hop += 1;
            let route = self.route(packet.flow).towards(packet.direction);
            match route.get(usize::from(packet.hop)) {
                Some(next) => self.offer(*next, packet, Some(index)),
                None => {
                    self.delivers = index;
                    arrived(self, packet);
                }
            }
        }
        self.settle(index);
    }

    /// Whether another packet comes out of the same link at the same instant as the one that is being handed over.
    #[inline]
    pub(crate) fn more_arrives(&self) -> bool {
        // A link that has no event pending although something is to come out of it is at its turn.
        let at_its_turn = |link: &&HostedLink<L>| link.armed.is_none();
        let link = self.links.get(self.delivers as usize).filter(at_its_turn);
        link.and_then(|link| link.link.next_time()).is_some_and(|at| at <= self.now)
    }

    /// What happens next in the radio network, whose event is at hand. As long as nothing else is due,
    /// time moves on with it.
    pub fn next_radio_output(&mut self) -> Option<RadioOutput<L>> {
        let radio = self.radio.as_mut()?;
        if self.radio_armed.is_none_or(|armed| armed > self.now) {
            return None;
        }
        // What is due at the same time comes afterwards, and nothing at the end.
        let horizon = self.queue.peek().map_or(Instant::MAX, |at| at.max(self.now));
        let happening = radio.poll(horizon.min(self.end - Duration::from_nanos(1)));
        match happening {
            None => {
                self.radio_armed = None;
                self.arm_radio();
                None
            }
            Some(Err(what)) => {
                self.notes.violate(what);
                None
            }
            Some(Ok(happening)) => {
                self.now = self.now.max(radio.time());
                self.note_happening(&happening);
                Some(happening)
            }
        }
    }

    /// Moves the nodes of a radio network to where they are now.
    pub fn move_nodes(&mut self) {
        let next = self.radio.as_mut().and_then(|radio| radio.step(self.now));
        if let Some(at) = next {
            self.queue.push(at, Event::Move);
            self.arm_radio();
        }
    }

    /// Says if more packets came out of the radio network than went in.
    ///
    /// # Errors
    /// Says how many.
    pub fn check_radio(&self) -> Result<(), String> {
        self.radio.as_ref().map_or(Ok(()), |radio| radio.hosted().check(self.now))
    }

    /// How often the route of a flow over radio changed.
    pub(crate) fn route_changes(&self, flow: u32) -> Option<u64> {
        self.radio.as_ref().map(|radio| radio.hosted().route_changes(flow as usize))
    }

    /// The nodes between which a flow runs over radio or in a fabric.
    pub(crate) fn flow_ends(&self, flow: u32) -> Option<(u32, u32)> {
        let in_fabric = self.balancer.as_ref().map(|balancer| balancer.ends(flow));
        let in_fabric = in_fabric.map(|HostPair { from, to }| (from, to));
        in_fabric
            .or_else(|| self.radio.as_ref().map(|radio| radio.hosted().flow_ends(flow as usize)))
    }

    /// The radio network.
    pub fn radio(&mut self) -> Option<&mut HostedRadio> {
        self.radio.as_mut().map(|radio| radio.hosted_mut())
    }

    /// Whether any packet is in flight.
    pub fn is_busy(&self) -> bool {
        self.busy_links > 0
            || self.radio.as_ref().is_some_and(|radio| radio.hosted().is_busy())
            || self.memory.as_ref().is_some_and(|memory| memory.is_busy())
    }

    /// The hash over every delivery so far.
    pub fn trace_hash(&self) -> u64 {
        self.hash.value()
    }

    /// The link that a flow's sender puts its packets on.
    pub fn entry(&mut self, flow: u32) -> &mut PacketLink<L> {
        let index = self.first_link(flow);
        &mut self.links[index as usize].link
    }

    fn first_link(&self, flow: u32) -> u32 {
        match (self.route(flow).forward[0], &self.balancer) {
            (CHOSEN, Some(balancer)) => balancer.entry(flow),
            (index, _) => index,
        }
    }

    /// Until when that link keeps the sender waiting before it hands over another packet.
    #[inline(always)]
    pub fn entry_waits_until(&self, flow: u32) -> Option<Instant> {
        if self.senders_wait { self.crowded_entry(flow) } else { None }
    }

    #[inline(never)]
    fn crowded_entry(&self, flow: u32) -> Option<Instant> {
        let first = &self.links[self.first_link(flow) as usize];
        if first.one_at_a_time { first.link.next_time() } else { None }
    }

    #[inline]
    fn route(&self, flow: u32) -> &Routes {
        &self.routes[self.route_of[flow as usize] as usize]
    }

    fn note_happening(&mut self, happening: &RadioOutput<L>) {
        match happening {
            RadioOutput::Arrived(packet) => {
                let place = u32::from(packet.hop);
                self.hash.add(self.now, place, packet.flow, packet.seq());
            }
            RadioOutput::Notice(flow, _, notice) => {
                let kind = match notice {
                    Notice::Failed { .. } => "route-failed",
                    Notice::Restored { .. } => "route-restored",
                };
                self.notes.log.flow(self.now, *flow, kind, "");
            }
            RadioOutput::Dropped(packet, node, reason) => {
                if packet.direction == Direction::Forward && packet.payload() > 0 {
                    self.notes.dropped_data[packet.flow as usize] += 1;
                }
                let detail = format!("{} at node {node}", reason_name(*reason));
                self.notes.log.flow(self.now, packet.flow, "dropped", &detail);
            }
        }
    }

    /// Sees to it that what happens next in the radio network has an event.
    fn arm_radio(&mut self) {
        let Some(radio) = &mut self.radio else { return };
        let Some(next) = radio.next_time() else { return };
        if self.radio_armed.is_none_or(|armed| next < armed) {
            self.radio_armed = Some(next);
            self.queue.push(next.max(self.now), Event::Radio);
        }
    }

    /// After a link was touched: takes note of drops, and sees to it that its next delivery has an
    /// event. Most touches change nothing, because only the head of a link is scheduled.
    #[inline(always)]
    fn settle(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if link.link.has_drops() {
            note_drops(&mut self.notes, index, link, &mut self.news);
        }
        let Some(next) = link.link.next_time() else { return };
        if link.armed.is_none_or(|armed| next < armed) {
            self.busy_links += usize::from(link.armed.is_none());
            link.armed = Some(next);
            self.queue.push(next.max(self.now), Event::Link(index));
        }
    }
}

#[cold]
fn note_drops<L: Load>(
    notes: &mut RunLog,
    index: u32,
    link: &mut HostedLink<L>,
    news: &mut Vec<u32>,
) {
    link.drain_drops(news, |record| {
        if record.is_forward && record.carries_data {
            notes.dropped_data[record.flow as usize] += 1;
        }
        notes.log.dropped(index, record);
    });
}

/// A flow's own links, before and behind those among which switches choose.
fn own_links<'a>(route: &'a [usize], tables: &Forwarding) -> [&'a [usize]; 2] {
    let is_own = |link: &&usize| tables.head(**link as u32).is_none();
    let (before, rest) = route.split_at(route.iter().take_while(is_own).count());
    let behind = rest.iter().rev().take_while(is_own).count();
    [before, &rest[rest.len() - behind..]]
}

impl Routes {
    fn new(flow: &FlowSpec, links: &[LinkSpec]) -> Self {
        let indices = |route: &[usize]| route.iter().map(|&link| link as u32).collect();
        let routers = |route: &[usize]| {
            let monitored = route.iter().filter(|link| links[**link].monitored).count();
            u8::try_from(monitored).unwrap_or(u8::MAX)
        };
        Self {
            forward: indices(&flow.route_forward),
            reverse: indices(&flow.route_reverse),
            routers: [routers(&flow.route_forward), routers(&flow.route_reverse)],
        }
    }

    /// The routes of flow `index` where switches choose. If `fixed`, a link is known as far as there is one
    /// alone to take from the ends.
    fn chosen(
        index: u32,
        flow: &FlowSpec,
        links: &[LinkSpec],
        balancer: &Balancer,
        fixed: bool,
    ) -> Self {
        let HostPair { from, to } = balancer.ends(index);
        let tables = balancer.forwarding();
        let way = |example: &[usize], from: u32, to: u32| {
            let [before, behind] = own_links(example, tables);
            let mut way: Vec<u32> = before.iter().map(|link| *link as u32).collect();
            let mut node = fixed.then_some(from);
            for _ in 0..tables.hops(from, to).unwrap_or_default() {
                let only = node.and_then(|node| match tables.choices(node, to) {
                    [only] => Some(*only),
                    _ => None,
                });
                node = only.and_then(|link| tables.head(link));
                way.push(only.unwrap_or(CHOSEN));
            }
            way.extend(behind.iter().map(|link| *link as u32));
            way.into_boxed_slice()
        };
        Self {
            forward: way(&flow.route_forward, from, to),
            reverse: way(&flow.route_reverse, to, from),
            ..Self::new(flow, links)
        }
    }

    /// Routes of these numbers of links, forward and back, all of which switches choose.
    fn all_chosen(hops: [u8; 2]) -> Self {
        let [forward, reverse] = hops.map(|hops| vec![CHOSEN; usize::from(hops)].into());
        Self { forward, reverse, routers: hops }
    }

    #[inline]
    fn towards(&self, direction: Direction) -> &[u32] {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }
}

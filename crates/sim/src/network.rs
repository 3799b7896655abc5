//! The links and the event queue: packets go in, their arrivals become events.

use weir_net::{DropRecord, Link};
use weir_units::{Instant, stream};

use crate::check::{LinkChecks, TraceHash};
use crate::error::SimError;
use crate::events::EventLog;
use crate::meter::LinkMeter;
use crate::packet::{Direction, Packet};
use crate::queue::{Event, EventQueue};
use crate::spec::{FlowSpec, LinkSpec, SimSpec};

/// Everything that flows share.
pub(crate) struct Network<Q> {
    pub(crate) now: Instant,
    pub(crate) links: Vec<SimLink>,
    pub(crate) log: EventLog,
    /// Data packets that have arrived whole.
    pub(crate) data_packets: u64,
    queue: Q,
    routes: Vec<Routes>,
    /// Links that have an event pending: while there are any, packets are under way.
    busy_links: usize,
    hash: TraceHash,
    violation: Option<String>,
    /// Whether any sender hands over its packets one at a time.
    senders_wait: bool,
}

/// A link with all that watches it.
pub(crate) struct SimLink {
    pub(crate) link: Link<Packet>,
    pub(crate) meter: LinkMeter,
    checks: LinkChecks,
    /// As [`crate::LinkSpec::one_at_a_time`].
    one_at_a_time: bool,
    /// When its pending event is due; an event at any other time is outdated.
    armed: Option<Instant>,
}

/// Where a flow's packets go, and what became of its data.
struct Routes {
    forward: Box<[u32]>,
    reverse: Box<[u32]>,
    dropped_data: u64,
}

/// Room for the drops of a single step.
const DROP_LOG: usize = 1 << 16;

impl<Q: EventQueue> Network<Q> {
    pub(crate) fn new(spec: &SimSpec, seed: u64) -> Result<Self, SimError> {
        let links: Result<Vec<SimLink>, SimError> =
            spec.links.iter().map(|link| SimLink::new(link, seed)).collect();
        Ok(Self {
            now: Instant::ZERO,
            links: links?,
            log: EventLog::new(spec.measure.max_events),
            data_packets: 0,
            queue: Q::default(),
            routes: spec.flows.iter().map(Routes::new).collect(),
            busy_links: 0,
            hash: TraceHash::default(),
            violation: None,
            senders_wait: spec.links.iter().any(|link| link.one_at_a_time),
        })
    }

    /// The next event, if it comes before `end`; time moves on to it.
    #[inline]
    pub(crate) fn next_event_until(&mut self, end: Instant) -> Option<Event> {
        let (at, event) = self.queue.pop().filter(|(at, _)| *at < end)?;
        if at < self.now {
            self.violate(format!("time went back from {} to {at}", self.now));
        }
        self.now = at;
        Some(event)
    }

    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.queue.push(at, event);
    }

    /// Puts a packet onto the link of its route that its `hop` says.
    #[inline]
    pub(crate) fn send(&mut self, packet: Packet) {
        let index =
            self.routes[packet.flow as usize].towards(packet.direction)[usize::from(packet.hop)];
        let link = &mut self.links[index as usize];
        link.offer(self.now, packet);
        self.settle(index);
    }

    /// Handles a link's event: forwards what came out of it, and hands over what has arrived.
    #[inline]
    pub(crate) fn on_link(&mut self, index: u32, mut arrived: impl FnMut(&mut Self, Packet)) {
        if self.links[index as usize].armed != Some(self.now) {
            return;
        }
        self.links[index as usize].armed = None;
        self.busy_links -= 1;
        loop {
            let link = &mut self.links[index as usize];
            let mut packet = match link.poll(self.now) {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(what) => return self.violate(what),
            };
            self.hash.add(self.now, index, packet.flow, packet.seq());
            packet.hop += 1;
            let route = self.routes[packet.flow as usize].towards(packet.direction);
            if usize::from(packet.hop) < route.len() {
                self.send(packet);
            } else {
                arrived(self, packet);
            }
        }
        self.settle(index);
    }

    /// Notes the first thing that must never happen.
    #[cold]
    pub(crate) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(crate) fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Whether any packet is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy_links > 0
    }

    pub(crate) fn trace_hash(&self) -> u64 {
        self.hash.value()
    }

    /// Packets with data of this flow that were dropped on their way to the receiver.
    pub(crate) fn dropped_data(&self, flow: u32) -> u64 {
        self.routes[flow as usize].dropped_data
    }

    /// The link that a flow's sender puts its packets on.
    pub(crate) fn first_link(&mut self, flow: u32) -> &mut SimLink {
        let index = self.routes[flow as usize].forward[0];
        &mut self.links[index as usize]
    }

    /// Until when the sender of `flow` waits before it hands over another packet; `None` if it need
    /// not wait.
    #[inline]
    pub(crate) fn sender_waits_until(&self, flow: u32) -> Option<Instant> {
        if !self.senders_wait {
            return None;
        }
        let index = self.routes[flow as usize].forward[0];
        let first = &self.links[index as usize];
        if first.one_at_a_time { first.link.next_time() } else { None }
    }

    /// After a link was touched: takes note of drops, and sees to it that its next delivery has an
    /// event. Most touches change nothing, because only the head of a link is scheduled.
    #[inline]
    fn settle(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        if link.link.has_drops() {
            for record in link.link.drain_drops() {
                note_drop(&mut self.routes, &mut self.log, index, &record);
            }
        }
        let Some(next) = link.link.next_time() else { return };
        if link.armed.is_none_or(|armed| next < armed) {
            self.busy_links += usize::from(link.armed.is_none());
            link.armed = Some(next);
            self.queue.push(next.max(self.now), Event::Link(index));
        }
    }
}

fn note_drop(routes: &mut [Routes], log: &mut EventLog, link: u32, record: &DropRecord) {
    if record.is_forward && record.carries_data {
        routes[record.flow as usize].dropped_data += 1;
    }
    log.dropped(link, record);
}

impl SimLink {
    fn new(spec: &LinkSpec, seed: u64) -> Result<Self, SimError> {
        let named = |purpose: &'static str| stream(seed, &format!("link {} {purpose}", spec.name));
        let mut link = Link::new(&spec.config, named)
            .map_err(|problem| SimError::Link { link: spec.name.clone(), problem })?;
        link.log_drops(DROP_LOG);
        let checks = LinkChecks::new(&spec.config, link.keeps_order());
        let one_at_a_time = spec.one_at_a_time;
        Ok(Self { link, meter: LinkMeter::default(), checks, one_at_a_time, armed: None })
    }

    fn offer(&mut self, now: Instant, mut packet: Packet) {
        self.checks.stamp(&mut packet);
        self.link.offer(now, packet);
    }

    fn poll(&mut self, now: Instant) -> Result<Option<Packet>, String> {
        let Some(delivery) = self.link.poll(now) else { return Ok(None) };
        self.meter.record_sojourn(delivery.sojourn);
        self.checks.on_delivery(now, &delivery.parcel)?;
        Ok(Some(delivery.parcel))
    }
}

impl Routes {
    fn new(flow: &FlowSpec) -> Self {
        let indices = |route: &[usize]| route.iter().map(|&link| link as u32).collect();
        Self {
            forward: indices(&flow.route_forward),
            reverse: indices(&flow.route_reverse),
            dropped_data: 0,
        }
    }

    #[inline]
    fn towards(&self, direction: Direction) -> &[u32] {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Reverse => &self.reverse,
        }
    }
}

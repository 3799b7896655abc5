//! Memory that the ports of a switch share.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
//! IEEE/ACM Transactions on Networking 6(2), 1998, §III: a port takes a packet while it holds less than
//!
//! ```text
//! T = alpha · (total − used)
//! ```
//!
//! and while there is memory for the packet at all. A port holds what waits in its queue and what it is
//! sending; memory is free again when the last bit of a packet has left. Hosts have no such bound. With
//! priority flow control a switch counts where packets came in as well ([`ingress`]), and pauses its
//! neighbours before it runs out of memory ([`pfc`]).
//!
//! Links send lazily, so what a port held when it was last looked at is never less than what it holds.
//! A packet that fits into that fits. Only where it does not, every port of the switch is looked at. While
//! a neighbour pauses, each departure from the switch has an event, so that it resumes in time.

mod check;
mod ingress;
mod pfc;
mod stops;

use std::collections::BTreeSet;

use weir_units::{Bytes, Duration, Instant};

pub(crate) use self::check::check;
use self::ingress::Place;
use self::pfc::{PAUSE_FRAME, Pfc};
use self::stops::Stop;
use crate::forwarding::Forwarding;
use crate::link::HostedLink;
use crate::packet::Load;
use crate::queue::{Event, PortEvent};
use crate::spec::{BufferSpec, FabricSpec, LinkSpec};

/// The memory of all switches of a network.
#[derive(Debug)]
pub(crate) struct SwitchMemory {
    spec: BufferSpec,
    /// Per switch.
    switches: Vec<Switch>,
    /// Per link.
    ports: Vec<Port>,
    pfc: Option<Pfc>,
    /// Frames that have not arrived yet.
    frames: usize,
    /// Events to be scheduled.
    due: Vec<(Instant, Event)>,
    /// The links whose ports wait for each other in a cycle, once there is one.
    deadlock: Option<Vec<u32>>,
}

/// A switch.
#[derive(Debug)]
struct Switch {
    name: String,
    /// The links that leave it.
    ports: Vec<u32>,
    /// The sum of what they held when they were last looked at.
    used: Bytes,
}

/// The port that a link leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Its switch; none for a host's port.
    switch: Option<u32>,
    /// What it held when it was last looked at.
    held: Bytes,
    /// Whether its next departure has an event.
    is_followed: bool,
    stop: Stop,
}

impl SwitchMemory {
    /// Empty memory of the switches of `spec`; `None` where ports share none.
    pub(crate) fn new(spec: &FabricSpec, links: &[LinkSpec]) -> Option<Self> {
        let forwarding = &spec.forwarding;
        let mut memory = Self {
            spec: spec.buffer?,
            switches: Vec::new(),
            ports: vec![Port::default(); forwarding.tails().len()],
            pfc: None,
            frames: 0,
            due: Vec::new(),
            deadlock: None,
        };
        let mut numbers = vec![None; forwarding.names().len()];
        for node in switches(forwarding) {
            let own = (0u32..).zip(forwarding.tails()).filter(|(_, tail)| **tail == node);
            let ports: Vec<u32> = own.map(|(link, _)| link).collect();
            let number = Some(memory.switches.len() as u32);
            ports.iter().for_each(|port| memory.ports[*port as usize].switch = number);
            numbers[node as usize] = number;
            let name = forwarding.names()[node as usize].clone();
            memory.switches.push(Switch { name, ports, used: Bytes::ZERO });
        }
        let rules = memory.spec.pfc;
        memory.pfc = rules.map(|rules| Pfc::new(&memory.spec, &rules, forwarding, links, &numbers));
        Some(memory)
    }

    /// Whether the port of link `index` takes a packet of this length that comes over link `from`.
    pub(crate) fn admits<L: Load>(
        &mut self,
        now: Instant,
        links: &mut [HostedLink<L>],
        (from, index): (Option<u32>, u32),
        len: Bytes,
    ) -> bool {
        let Some(switch) = self.ports[index as usize].switch else { return true };
        self.look_at(now, links, index);
        if self.place(switch, from, index, len) == Some(Place::Usual) {
            return true;
        }
        self.look_at_all(now, links, switch);
        self.place(switch, from, index, len).is_some()
    }

    /// Link `index` was given a packet of this length that came over link `from`.
    ///
    /// # Errors
    /// If its switch holds more than it has memory for.
    pub(crate) fn on_offered<L: Load>(
        &mut self,
        now: Instant,
        links: &mut [HostedLink<L>],
        (from, index): (Option<u32>, u32),
        len: Bytes,
    ) -> Result<(), String> {
        let Some(number) = self.ports[index as usize].switch else { return Ok(()) };
        self.look_at(now, links, index);
        let Switch { name, used, .. } = &self.switches[number as usize];
        if *used > self.spec.total {
            return Err(format!("switch '{name}' holds {used} of {}", self.spec.total));
        }
        let (Some(pfc), Some(from)) = (&mut self.pfc, from) else { return Ok(()) };
        // Its queue may have dropped it.
        if links[index as usize].link.backlog(now).packets > pfc.waiting(index) {
            pfc.take(from, index, len)?;
        }
        if pfc.has_to_pause(from) {
            self.look_at_all(now, links, number);
            self.pause_if_due(now, links, from);
        }
        self.follow(now, links, index);
        Ok(())
    }

    /// Link `index` refused a packet that came over link `from`.
    ///
    /// # Errors
    /// If there had to be memory for it.
    pub(crate) fn on_refused(&self, from: Option<u32>, index: u32) -> Result<(), String> {
        let lossless = self.pfc.as_ref().zip(from).is_some_and(|(pfc, from)| pfc.is_lossless(from));
        let name = self.ports[index as usize].switch.map(|own| &self.switches[own as usize].name);
        match name.filter(|_| lossless) {
            Some(name) => Err(format!("switch '{name}' drops a packet in spite of its headroom")),
            None => Ok(()),
        }
    }

    /// Something happened at the port of link `index`.
    pub(crate) fn on_event<L: Load>(
        &mut self,
        now: Instant,
        links: &mut [HostedLink<L>],
        what: PortEvent,
        index: u32,
    ) {
        match what {
            PortEvent::Pause => {
                self.frames -= 1;
                links[index as usize].link.pause(now);
                self.ports[index as usize].stop.begin(now);
                self.watch(now + DEADLOCK_AFTER, index);
            }
            PortEvent::Resume => {
                self.frames -= 1;
                links[index as usize].link.resume(now);
                self.ports[index as usize].stop.end(now);
                self.follow(now, links, index);
            }
            PortEvent::Departure => {
                self.ports[index as usize].is_followed = false;
                self.look_at(now, links, index);
                self.resume_those_due(now, links, index);
                self.follow(now, links, index);
            }
            PortEvent::Stuck => self.look_for_cycle(now, links, index),
        }
    }

    /// The events to be scheduled since this was called last.
    pub(crate) fn take_due(&mut self) -> impl Iterator<Item = (Instant, Event)> + '_ {
        self.due.drain(..)
    }

    /// Whether frames are on their way, or neighbours wait for one.
    pub(crate) fn is_busy(&self) -> bool {
        let waits = |pfc: &Pfc| pfc.switches.iter().any(|switch| !switch.pausing.is_empty());
        self.frames > 0 || self.pfc.as_ref().is_some_and(waits)
    }

    /// The links whose ports wait for each other in a cycle, once there is one.
    pub(crate) fn deadlock(&self) -> Option<&[u32]> {
        self.deadlock.as_deref()
    }

    /// Forgets the warm-up.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.ports.iter_mut().for_each(|port| port.stop.restart(now));
    }

    /// How often the port of link `index` paused, and how long in all; `None` where no port does.
    pub(crate) fn pauses(&self, now: Instant, index: u32) -> Option<(u64, Duration)> {
        self.pfc.as_ref()?;
        self.ports.get(index as usize).map(|port| port.stop.total(now))
    }

    /// Compares what was counted with what the ports hold, port by port.
    ///
    /// # Errors
    /// Says which switch's memory does not add up.
    pub(crate) fn check<L: Load>(
        &mut self,
        now: Instant,
        links: &mut [HostedLink<L>],
    ) -> Result<(), String> {
        (0..self.ports.len() as u32).for_each(|index| self.look_at(now, links, index));
        for (number, Switch { name, ports, used }) in (0u32..).zip(&self.switches) {
            let held = ports.iter().map(|port| links[*port as usize].link.backlog(now).bytes);
            let held = held.fold(Bytes::ZERO, |sum, bytes| sum + bytes);
            if held != *used || held > self.spec.total {
                let total = self.spec.total;
                return Err(format!(
                    "the ports of switch '{name}' hold {held}, {used} of {total} are counted"
                ));
            }
            let Some(pfc) = &self.pfc else { continue };
            pfc.check(number, held).map_err(|what| format!("switch '{name}': {what}"))?;
            let mut full = ports.iter().map(|port| links[*port as usize].link.stats(now));
            if full.any(|stats| stats.dropped_queue.packets > 0) {
                return Err(format!("a queue of switch '{name}' was full in spite of pauses"));
            }
        }
        Ok(())
    }

    fn place(&self, switch: u32, from: Option<u32>, index: u32, len: Bytes) -> Option<Place> {
        let free = self.spec.total.saturating_sub(self.switches[switch as usize].used);
        match &self.pfc {
            Some(pfc) => pfc.place(from?, len),
            None => {
                let held = self.ports[index as usize].held;
                (len <= free && held < self.spec.alpha.of(free)).then_some(Place::Usual)
            }
        }
    }

    /// Updates what a port holds.
    fn look_at<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], index: u32) {
        let port = &mut self.ports[index as usize];
        let Some(switch) = port.switch else { return };
        let backlog = links[index as usize].link.backlog(now);
        let used = &mut self.switches[switch as usize].used;
        *used = *used - port.held + backlog.bytes;
        port.held = backlog.bytes;
        if let Some(pfc) = &mut self.pfc {
            pfc.release(index, backlog.packets);
        }
    }

    fn look_at_all<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], switch: u32) {
        for place in 0..self.switches[switch as usize].ports.len() {
            let port = self.switches[switch as usize].ports[place];
            self.look_at(now, links, port);
        }
    }

    fn pause_if_due<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], from: u32) {
        let Some(pfc) = self.pfc.as_mut().filter(|pfc| pfc.has_to_pause(from)) else { return };
        let transmission = links[from as usize].link.time_of(now, PAUSE_FRAME).unwrap_or_default();
        let arrival = pfc.pause(now, from, transmission);
        let switch = pfc.inward[from as usize].switch;
        self.frames += 1;
        self.due.push((arrival, Event::Port(PortEvent::Pause, from)));
        let Some(switch) = switch else { return };
        for place in 0..self.switches[switch as usize].ports.len() {
            let port = self.switches[switch as usize].ports[place];
            self.follow(now, links, port);
        }
    }

    /// Resumes the neighbours of the switch of port `index` that may send again.
    fn resume_those_due<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], index: u32) {
        let Some(switch) = self.ports[index as usize].switch else { return };
        let Some(pfc) = &mut self.pfc else { return };
        while let Some(link) = pfc.next_to_resume(switch) {
            let transmission =
                links[link as usize].link.time_of(now, PAUSE_FRAME).unwrap_or_default();
            let arrival = pfc.inward[link as usize].frame(now, transmission);
            self.frames += 1;
            self.due.push((arrival, Event::Port(PortEvent::Resume, link)));
        }
    }

    /// Sees to it that the next departure from a port has an event while a neighbour of its switch pauses.
    fn follow<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], index: u32) {
        let port = &mut self.ports[index as usize];
        let Some(pfc) = &self.pfc else { return };
        let pauses = port.switch.is_some_and(|own| !pfc.switches[own as usize].pausing.is_empty());
        if port.is_followed || !pauses {
            return;
        }
        if let Some(at) = links[index as usize].link.next_change(now) {
            port.is_followed = true;
            self.due.push((at, Event::Port(PortEvent::Departure, index)));
        }
    }

    /// Sees to it that an event looks for a cycle through the port of link `index`.
    fn watch(&mut self, at: Instant, index: u32) {
        let stop = &mut self.ports[index as usize].stop;
        if !stop.is_watched {
            stop.is_watched = true;
            self.due.push((at, Event::Port(PortEvent::Stuck, index)));
        }
    }

    fn look_for_cycle<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>], index: u32) {
        let stop = &mut self.ports[index as usize].stop;
        stop.is_watched = false;
        let Some(since) = stop.since() else { return };
        if since + DEADLOCK_AFTER > now {
            return self.watch(since + DEADLOCK_AFTER, index);
        }
        (0..self.switches.len() as u32).for_each(|switch| self.look_at_all(now, links, switch));
        match self.cycle(now, &mut vec![index], &mut BTreeSet::new()) {
            Some(cycle) => self.deadlock = Some(cycle),
            None => self.watch(now + DEADLOCK_AFTER, index),
        }
    }

    /// A cycle of ports that have paused for long, from the last of `way` on: packets that came over each of
    /// their links wait for the next. `seen` are those that are known to lead nowhere else.
    fn cycle(
        &self,
        now: Instant,
        way: &mut Vec<u32>,
        seen: &mut BTreeSet<u32>,
    ) -> Option<Vec<u32>> {
        let last = *way.last()?;
        let pfc = self.pfc.as_ref()?;
        let switch = pfc.inward[last as usize].switch?;
        let is_stuck = |port: &&u32| {
            let since = self.ports[**port as usize].stop.since();
            since.is_some_and(|since| since + DEADLOCK_AFTER <= now) && pfc.waits(last, **port)
        };
        for &next in self.switches[switch as usize].ports.iter().filter(is_stuck) {
            if let Some(place) = way.iter().position(|link| *link == next) {
                return Some(way[place..].to_vec());
            }
            if seen.insert(next) {
                way.push(next);
                let found = self.cycle(now, way, seen);
                if found.is_some() {
                    return found;
                }
                way.pop();
            }
        }
        None
    }
}

/// The nodes that are switches.
fn switches(forwarding: &Forwarding) -> impl Iterator<Item = u32> {
    (0..forwarding.names().len() as u32).filter(|node| !forwarding.is_host(*node))
}

/// Ports that have waited for each other for so long wait forever.
const DEADLOCK_AFTER: Duration = Duration::from_millis(10);

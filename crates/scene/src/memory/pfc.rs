//! Priority flow control: what came in where, and which ports have paused their neighbour.
//!
//! Source: IEEE 802.1Qbb, with one priority. A pause frame of 64 bytes takes its transmission time and the
//! link's delay to the neighbour; it waits for no packet, and takes no time of the link that it uses. A
//! port that receives a pause ends the packet that it is sending.
//!
//! A port's headroom has to hold the packet that exceeds the threshold, what is on the wire both ways, and
//! the packet that the neighbour is sending: `2 · rate · delay + 64 bytes + 2 packets`.

use std::collections::VecDeque;

use weir_net::{LinkConfig, Schedule, Service};
use weir_units::{Bytes, Duration, Instant, Rate};

use super::ingress::{Ingress, Place, Pool};
use crate::forwarding::Forwarding;
use crate::spec::{BufferSpec, LinkSpec, PfcSpec};

/// Priority flow control of all switches.
#[derive(Debug)]
pub(super) struct Pfc {
    /// Per switch.
    pub(super) switches: Vec<Switch>,
    /// Per link, the port that it enters.
    pub(super) inward: Vec<Inward>,
    /// Per link, the packets that wait for it or that it is sending.
    outward: Vec<VecDeque<Origin>>,
}

/// A switch.
#[derive(Debug)]
pub(super) struct Switch {
    pool: Pool,
    /// Links that enter it and that it has paused.
    pub(super) pausing: Vec<u32>,
}

/// A port of a switch that a link enters.
#[derive(Clone, Debug)]
pub(super) struct Inward {
    /// Its switch; none for a host's port.
    pub(super) switch: Option<u32>,
    memory: Ingress,
    /// Whether the headroom holds everything that can arrive after a pause was sent.
    is_lossless: bool,
    /// Whether the neighbour was sent a pause.
    pub(super) is_pausing: bool,
    delay: Schedule<Duration>,
    /// When the last frame to the neighbour arrives there.
    last_frame: Instant,
}

/// Where a packet came in, and its length.
#[derive(Clone, Copy, Debug)]
struct Origin {
    link: u32,
    len: Bytes,
}

impl Pfc {
    /// Of switches with these numbers, per node.
    pub(super) fn new(
        spec: &BufferSpec,
        rules: &PfcSpec,
        forwarding: &Forwarding,
        links: &[LinkSpec],
        numbers: &[Option<u32>],
    ) -> Self {
        let mut inward = Vec::new();
        for (index, link) in (0u32..).zip(links).take(forwarding.tails().len()) {
            let switch = forwarding.head(index).and_then(|node| numbers[node as usize]);
            let needed = needed_headroom(&link.config, rules.longest);
            let headroom = rules.headroom.unwrap_or(needed);
            inward.push(Inward {
                switch,
                memory: Ingress::new(headroom),
                is_lossless: headroom >= needed,
                is_pausing: false,
                delay: link.config.delay.clone(),
                last_frame: Instant::ZERO,
            });
        }
        let switches = (0..numbers.iter().flatten().count() as u32).map(|number| {
            let own = inward.iter().filter(|port| port.switch == Some(number));
            let kept = own.map(|port| port.memory.headroom + rules.reserve);
            let kept = kept.fold(Bytes::ZERO, |sum, bytes| sum + bytes);
            let size = spec.total.saturating_sub(kept);
            let (alpha, reserve) = (spec.alpha, rules.reserve);
            let pool = Pool { size, used: Bytes::ZERO, alpha, reserve };
            Switch { pool, pausing: Vec::new() }
        });
        let switches = switches.collect();
        let outward = vec![VecDeque::new(); inward.len()];
        Self { switches, inward, outward }
    }

    /// Where a packet goes that comes in over link `from`; `None` if there is no memory for it.
    pub(super) fn place(&self, from: u32, len: Bytes) -> Option<Place> {
        let port = &self.inward[from as usize];
        port.memory.place(&self.switches[port.switch? as usize].pool, len)
    }

    /// A packet that came in over link `from` waits for link `to`.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(super) fn take(&mut self, from: u32, to: u32, len: Bytes) -> Result<(), String> {
        let place = self.place(from, len);
        let port = &mut self.inward[from as usize];
        let (Some(place), Some(switch)) = (place, port.switch) else {
            return Err(format!(
                "a switch holds a packet of link {from} for which it has no memory"
            ));
        };
        port.memory.take(&mut self.switches[switch as usize].pool, len, place);
        self.outward[to as usize].push_back(Origin { link: from, len });
        if port.memory.is_sound() { Ok(()) } else { Err("a port exceeds its headroom".to_owned()) }
    }

    /// `waiting` packets are left of those for link `to`.
    pub(super) fn release(&mut self, to: u32, waiting: u64) {
        let queue = &mut self.outward[to as usize];
        while queue.len() as u64 > waiting
            && let Some(Origin { link, len }) = queue.pop_front()
        {
            let port = &mut self.inward[link as usize];
            if let Some(switch) = port.switch {
                port.memory.release(&mut self.switches[switch as usize].pool, len);
            }
        }
    }

    /// How many packets wait for link `to`, as far as is known.
    pub(super) fn waiting(&self, to: u32) -> u64 {
        self.outward[to as usize].len() as u64
    }

    /// Whether packets of link `from` wait for link `to`.
    pub(super) fn waits(&self, from: u32, to: u32) -> bool {
        self.outward[to as usize].iter().any(|origin| origin.link == from)
    }

    /// Whether the neighbour at the other end of link `from` has to be sent a pause.
    pub(super) fn has_to_pause(&self, from: u32) -> bool {
        let port = &self.inward[from as usize];
        let pool = port.switch.map(|switch| &self.switches[switch as usize].pool);
        !port.is_pausing && pool.is_some_and(|pool| port.memory.pauses(pool))
    }

    /// Sends the neighbour a pause; returns when the frame arrives. It takes `transmission` to be sent.
    pub(super) fn pause(&mut self, now: Instant, from: u32, transmission: Duration) -> Instant {
        let port = &mut self.inward[from as usize];
        port.is_pausing = true;
        if let Some(switch) = port.switch {
            self.switches[switch as usize].pausing.push(from);
        }
        port.frame(now, transmission)
    }

    /// The next link into `switch` whose neighbour may send again, of which a note is made.
    pub(super) fn next_to_resume(&mut self, switch: u32) -> Option<u32> {
        let Switch { pool, pausing } = &mut self.switches[switch as usize];
        let place = pausing.iter().position(|l| self.inward[*l as usize].memory.resumes(pool))?;
        let link = pausing.remove(place);
        self.inward[link as usize].is_pausing = false;
        Some(link)
    }

    /// Whether no packet of link `from` may be dropped.
    pub(super) fn is_lossless(&self, from: u32) -> bool {
        self.inward[from as usize].is_lossless
    }

    /// Compares the memory of a switch with what its ports hold.
    pub(super) fn check(&self, number: u32, held: Bytes) -> Result<(), String> {
        let Switch { pool, .. } = &self.switches[number as usize];
        let own = || self.inward.iter().filter(|port| port.switch == Some(number));
        let sum = |bytes: &dyn Fn(&Inward) -> Bytes| {
            own().map(bytes).fold(Bytes::ZERO, |sum, bytes| sum + bytes)
        };
        let (all, shared) =
            (sum(&|port| port.memory.total()), sum(&|port| port.memory.of_pool(pool)));
        if all != held || shared != pool.used || pool.used > pool.size {
            return Err(format!(
                "{held} wait for links and {all} are counted where they came in; of the pool of {} \
                 {shared} are in use and {} counted",
                pool.size, pool.used
            ));
        }
        if own().all(|port| port.memory.is_sound()) {
            Ok(())
        } else {
            Err("a port exceeds its headroom".to_owned())
        }
    }
}

impl Inward {
    /// When a frame that is sent to the neighbour arrives.
    pub(super) fn frame(&mut self, now: Instant, transmission: Duration) -> Instant {
        let arrival = now.saturating_add(transmission).saturating_add(self.delay.at(now));
        self.last_frame = self.last_frame.max(arrival);
        self.last_frame
    }
}

/// What a port needs for what arrives after it has sent a pause.
pub(super) fn needed_headroom(link: &LinkConfig, longest: Bytes) -> Bytes {
    let fastest = match &link.service {
        Service::Rate(rate) => largest(rate),
        _ => Rate::ZERO,
    };
    let both_ways = largest(&link.delay).saturating_mul(2);
    // The last byte of a delay may be rounded away.
    fastest.bytes_in(both_ways) + Bytes(1) + PAUSE_FRAME + longest * 2
}

fn largest<T: Copy + Ord>(schedule: &Schedule<T>) -> T {
    schedule.steps.iter().fold(schedule.initial, |most, (_, value)| most.max(*value))
}

/// The shortest Ethernet frame.
pub(super) const PAUSE_FRAME: Bytes = Bytes(64);

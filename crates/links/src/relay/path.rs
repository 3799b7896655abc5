//! Links over real packets, without a clock of their own.
//!
//! Packets come out with the exact time at which they were due, however late the path is asked: a
//! packet that crosses two links enters the second when it left the first, not when it was polled.
//! So what comes out is a function of the seed, the packets and their arrival times, and the same as
//! in the simulator; only the owner's lateness is the machine's.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weir_net::{ConfigError, DropCause, Link, LinkConfig, Stats};
use weir_scene::Direction;
use weir_units::{Bytes, Feedback, FeedbackKind, Instant, stream};

use super::packet::{Header, MemoryLimit, Packet};

/// Links, and the routes over them.
#[derive(Debug)]
pub struct Path {
    seed: u64,
    links: Vec<Hosted>,
    routes: Vec<Route>,
    /// Maximum number of bits that corruption flips in a packet.
    corrupt_bits: u8,
    /// When links must be looked at, the earliest first; equal times in the order of their entry.
    agenda: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    arrived: VecDeque<Arrival>,
    memory: MemoryLimit,
    /// Up to here everything has happened.
    now: Instant,
    entries: u64,
    offered: u64,
    drops: [Drops; 2],
    feedback: [RouterFeedback; 2],
}

/// What was dropped as the links are meant to, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Lost on the way, at random or by a list.
    pub loss: u64,
    /// Refused by a full queue, dropped by its discipline or by a policer.
    pub queue: u64,
    /// Longer than a link's MTU.
    pub mtu: u64,
}

/// Feedback of the links' agents to the senders of passing packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterFeedback {
    /// Packets that left a link with its agent's word; one that crosses two such links counts twice.
    pub stamped: u64,
    /// The lowest index of the bandwidth left (DRAI) among them.
    pub lowest_index: Option<u8>,
}

/// A link of a path.
#[derive(Clone, Debug)]
pub struct HostedLink {
    /// Its name; its random streams are derived from it as the simulator does, so it must be unique.
    pub name: String,
    /// What it is made of.
    pub config: LinkConfig,
}

/// The links that packets cross, by index, in order. A link may be on both ways: a server that they
/// share. Without links a packet arrives when it is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// From clients to the server.
    pub up: Vec<usize>,
    /// Back.
    pub down: Vec<usize>,
}

/// A packet at the far end of its route.
#[derive(Debug)]
pub struct Arrival {
    /// When it got there, exactly.
    pub due: Instant,
    /// The packet.
    pub packet: Packet,
}

/// The path holds as many bytes as it may: the packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path holds {held}, which is as much as it may")]
pub struct Full {
    /// What it holds.
    pub held: Bytes,
}

#[derive(Debug)]
struct Hosted {
    link: Link<Packet>,
    /// What its agent speaks, if it has one.
    speaks: Option<FeedbackKind>,
    /// When its entry on the agenda is due; any other entry is outdated.
    armed: Option<Instant>,
}

impl Path {
    /// An empty path that holds at most `memory`. Routes refer to `links` by index.
    ///
    /// # Errors
    /// If a link cannot be as it is described.
    ///
    /// # Panics
    /// If a route names a link that is not there.
    pub fn new(
        links: &[HostedLink],
        routes: Vec<Route>,
        memory: Bytes,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let named = routes.iter().flat_map(|route| route.up.iter().chain(&route.down));
        assert!(named.max() < Some(&links.len()), "every link of a route exists");
        let links: Result<_, _> = links.iter().map(|link| Hosted::new(link, seed)).collect();
        Ok(Self {
            seed,
            links: links?,
            routes,
            corrupt_bits: 1,
            agenda: BinaryHeap::new(),
            arrived: VecDeque::new(),
            memory: MemoryLimit::new(memory),
            now: Instant::ZERO,
            entries: 0,
            offered: 0,
            drops: Default::default(),
            feedback: Default::default(),
        })
    }

    /// Puts a packet in at `now`, or a moment later if the path has been asked beyond that already.
    ///
    /// # Errors
    /// If the memory limit is reached.
    ///
    /// # Panics
    /// If the header names a route that is not there.
    pub fn offer(&mut self, now: Instant, header: Header, bytes: &[u8]) -> Result<(), Full> {
        self.advance(now);
        self.offered += 1;
        // Each packet has random numbers of its own, so that which bit breaks does not depend on other packets.
        let random = self.seed.wrapping_add(self.offered.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let Some(packet) = Packet::new(header, bytes, random, &self.memory) else {
            return Err(Full { held: self.memory.held() });
        };
        self.forward(packet.with_corrupt_bits(self.corrupt_bits));
        Ok(())
    }

    /// From now on corruption flips 1 to `corrupt_bits` bits of a packet, instead of one.
    pub fn set_corrupt_bits(&mut self, corrupt_bits: u8) {
        self.corrupt_bits = corrupt_bits;
    }

    /// The next packet that has arrived by `now`, in the order of their times; call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Arrival> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// When the path must be polled next.
    pub fn next_time(&self) -> Option<Instant> {
        let waiting = self.arrived.front().map(|arrival| arrival.due);
        waiting.or_else(|| self.agenda.peek().map(|Reverse((at, ..))| *at))
    }

    /// The counters of a link up to `now`.
    pub fn stats(&mut self, now: Instant, link: usize) -> Stats {
        self.advance(now);
        self.links[link].link.stats(self.now)
    }

    /// How many packets wait or are being sent on a link at `now`.
    pub fn queued(&mut self, now: Instant, link: usize) -> u64 {
        self.advance(now);
        self.links[link].link.backlog(self.now).packets
    }

    /// What the links have dropped of the packets of one direction up to `now`, by cause.
    pub fn drops(&mut self, now: Instant, direction: Direction) -> Drops {
        self.advance(now);
        for link in &mut self.links {
            link.link.advance(self.now);
            link.count_drops(&mut self.drops);
        }
        self.drops[direction as usize]
    }

    /// Feedback of the links' agents to packets of one direction up to `now`.
    pub fn feedback(&mut self, now: Instant, direction: Direction) -> RouterFeedback {
        self.advance(now);
        self.feedback[direction as usize]
    }

    /// Whether no packet is in flight.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.memory.held() == Bytes::ZERO
    }

    /// Lets everything happen that is due by `now`, each at its own time.
    fn advance(&mut self, now: Instant) {
        while let Some(&Reverse((at, _, link))) = self.agenda.peek() {
            if at > now {
                break;
            }
            self.agenda.pop();
            if self.links[link as usize].armed == Some(at) {
                self.links[link as usize].armed = None;
                self.now = self.now.max(at);
                self.empty(link);
            }
        }
        self.now = self.now.max(now);
    }

    /// Takes out of a link what has arrived at its end.
    fn empty(&mut self, link: u32) {
        while let Some(delivery) = self.links[link as usize].link.poll(self.now) {
            let mut packet = delivery.parcel;
            packet.cross_link();
            if let Some(feedback) = packet.write_feedback() {
                self.feedback[packet.header().direction as usize].count(&feedback);
            }
            self.forward(packet);
        }
        self.links[link as usize].count_drops(&mut self.drops);
        self.arm(link);
    }

    /// Puts a packet onto the next link of its route, or at its end.
    fn forward(&mut self, mut packet: Packet) {
        let header = packet.header();
        let link = self.routes[header.route as usize].towards(header.direction).get(packet.hop());
        let Some(&link) = link else {
            self.arrived.push_back(Arrival { due: self.now, packet });
            return;
        };
        let hosted = &mut self.links[link];
        if let Some(kind) = hosted.speaks {
            packet.read_feedback(kind);
        }
        hosted.link.offer(self.now, packet);
        hosted.count_drops(&mut self.drops);
        self.arm(link as u32);
    }

    /// Sees to it that the next thing that a link has to do is on the agenda.
    fn arm(&mut self, link: u32) {
        let hosted = &mut self.links[link as usize];
        let Some(next) = hosted.link.next_time() else { return };
        if hosted.armed.is_none_or(|armed| next < armed) {
            let at = next.max(self.now);
            hosted.armed = Some(at);
            self.agenda.push(Reverse((at, self.entries, link)));
            self.entries += 1;
        }
    }
}

impl Hosted {
    fn new(link: &HostedLink, seed: u64) -> Result<Self, ConfigError> {
        let named = |purpose: &'static str| stream(seed, &format!("link {} {purpose}", link.name));
        let speaks = link.config.feedback.map(|feedback| feedback.kind());
        let mut link = Link::new(&link.config, named)?;
        link.log_drops(DROP_LOG);
        Ok(Self { link, speaks, armed: None })
    }

    fn count_drops(&mut self, drops: &mut [Drops; 2]) {
        if !self.link.has_drops() {
            return;
        }
        for record in self.link.drain_drops() {
            let direction = if record.is_forward { Direction::Forward } else { Direction::Reverse };
            let Drops { loss, queue, mtu } = &mut drops[direction as usize];
            match record.cause {
                DropCause::Loss => *loss += 1,
                DropCause::Queue | DropCause::Buffer | DropCause::Aqm | DropCause::Policer => {
                    *queue += 1;
                }
                DropCause::Mtu => *mtu += 1,
            }
        }
    }
}

impl RouterFeedback {
    fn count(&mut self, feedback: &Feedback) {
        self.stamped += 1;
        if let Feedback::Drai(drai) = feedback {
            let lowest = self.lowest_index.map_or(drai.level, |lowest| lowest.min(drai.level));
            self.lowest_index = Some(lowest);
        }
    }
}

impl Route {
    fn towards(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Forward => &self.up,
            Direction::Reverse => &self.down,
        }
    }
}

/// Capacity for the drops of a single step.
const DROP_LOG: usize = 1 << 12;

#[cfg(test)]
mod tests;

//! The router: packets from two devices, over the links of a run, in real time.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

use weir_net::Ecn;
use weir_scene::{Body, Direction, Event, HeapQueue, Network, Packet, RunSpec, SpecError};
use weir_trace::Histogram;
use weir_units::{Duration, Instant, Rng, stream};

use super::device::{Device, DeviceSpec};
use super::load::Load;
use super::namespace::Namespace;
use super::view::{self, View};
use crate::clock;
use crate::health::Health;
use crate::relay::{MEMORY, Room, Unasked, wait_any};

/// How a network is emulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The device at each end.
    pub devices: [DeviceSpec; 2],
    /// The longest packet that devices take.
    pub mtu: u16,
    /// Whose a packet is.
    pub classify: Classify,
}

/// Which flow of the run a packet belongs to. What belongs to none, as ICMP, takes the way of flow 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classify {
    /// All packets are flow 0's.
    One,
    /// Flow `i` has port `first + i` at its receiver, which is in the second namespace.
    ByPort {
        /// The port of flow 0.
        first: u16,
    },
}

/// A network between two namespaces: the links of a run, in real time, over real packets.
///
/// What is sent in the first namespace to the address of the other travels forward on the route of its
/// flow, and what is sent in the second travels back. Packets enter a link when they have been read
/// and leave each link at its exact time, however late the machine is: lateness adds up nowhere, and
/// tells only how long after its time a packet was handed to the kernel.
///
/// It has no thread of its own: whoever owns it calls [`turn`](Self::turn) until the run is over, from
/// one thread, which had better be punctual ([`clock::Punctual`]).
pub struct Emulator {
    /// The links. Only the emulator adds events; its time stands still between turns.
    pub net: Network<HeapQueue, Load>,
    flows: u32,
    classify: Classify,
    devices: [Device; 2],
    room: Room,
    origin: Instant,
    /// What has come off its last link, in the order of time, since when.
    due: VecDeque<(Instant, Packet<Load>)>,
    /// What has arrived of packets that are ours, and cross no device.
    arrived: VecDeque<Packet<Load>>,
    /// Per flow, how long foreign data packets had waited in queues when they arrived.
    passages: Vec<Histogram>,
    health: Health,
    meters: [Meter; 2],
    /// Which bit breaks where one does.
    luck: Rng,
    events: u64,
    buffer: Vec<u8>,
    readable: Vec<bool>,
}

/// What one direction has seen, at the devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter {
    /// Read from the first device of the direction.
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    /// Written to the other.
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) unasked: Unasked,
    pub(super) lateness: Histogram,
}

/// Why there is no emulated network.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// A device cannot be made.
    #[error("cannot make the TUN device '{name}': {error}")]
    Device {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// The links cannot be as they are described.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl Emulator {
    /// Joins two namespaces by the links of `spec`, whose flows give the routes over them. Of a flow
    /// nothing else counts, and there is at least one. All luck of the links comes from `seed`.
    ///
    /// # Errors
    /// If a device cannot be made, or a link cannot be as it is described.
    pub fn open(
        spec: &RunSpec,
        seed: u64,
        ends: [&Namespace; 2],
        options: &Options,
    ) -> Result<Self, EmulatorError> {
        let device = |end: usize| {
            let spec = &options.devices[end];
            Device::open(ends[end], spec, options.mtu)
                .map_err(|error| EmulatorError::Device { name: spec.name.clone(), error })
        };
        assert!(!spec.flows.is_empty(), "packets take the way of a flow");
        Ok(Self {
            net: Network::new(spec, seed)?,
            flows: spec.flows.len() as u32,
            classify: options.classify,
            devices: [device(0)?, device(1)?],
            room: Room::new(MEMORY),
            origin: clock::now(),
            due: VecDeque::new(),
            arrived: VecDeque::new(),
            passages: vec![Histogram::new(); spec.flows.len()],
            health: Health::default(),
            meters: Default::default(),
            luck: stream(seed, "damage"),
            events: 0,
            buffer: vec![0; LONGEST_PACKET],
            readable: vec![true; 2],
        })
    }

    /// Works for one round: lets everything happen on links that is due, writes what has come off
    /// them, reads, and waits if there was nothing to read.
    ///
    /// The time of [`net`](Self::net) goes up to `until` at most. Once it has got there, however late,
    /// this returns with `net.now == until`: links can be sampled at that very time.
    ///
    /// # Errors
    /// If a device cannot be read or waited for any more.
    pub fn turn(&mut self, until: Instant) -> io::Result<()> {
        self.health.begin();
        self.advance(self.clock().min(until));
        if self.net.now >= until {
            return Ok(());
        }
        let mut idle = true;
        for direction in [Direction::Forward, Direction::Reverse] {
            if self.readable[direction as usize] {
                idle &= !self.take_in(direction, until)?;
            }
        }
        if idle { self.wait(until) } else { Ok(()) }
    }

    /// The time since the run began: since this was opened.
    pub fn clock(&self) -> Instant {
        Instant::ZERO + (clock::now() - self.origin)
    }

    /// When the run began, on the machine's clock ([`clock::now`]).
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// How well it kept to the time so far, and what it lost that no link dropped.
    pub fn health(&self) -> Health {
        let unasked = [Direction::Forward, Direction::Reverse]
            .map(|direction| self.meter(direction).unasked.total());
        self.health.having_lost(unasked.iter().sum())
    }

    /// A packet of ours that has arrived: one that a flow of ours put on a link.
    pub fn poll_arrival(&mut self) -> Option<Packet<Load>> {
        self.arrived.pop_front()
    }

    /// How long the data packets of a flow that others send have waited in queues, of those that have
    /// arrived since [`forget_passages`](Self::forget_passages).
    pub fn take_passage(&mut self, flow: u32) -> Histogram {
        std::mem::take(&mut self.passages[flow as usize])
    }

    /// Measures passages anew.
    pub fn forget_passages(&mut self) {
        self.passages.fill(Histogram::new());
    }

    /// How many things have happened on links.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What a direction has seen.
    pub(super) fn meter(&self, direction: Direction) -> Meter {
        let mut meter = self.meters[direction as usize].clone();
        // What the device could not keep for us to read.
        meter.unasked.overflow = self.devices[direction as usize].dropped();
        meter
    }

    /// Lets everything happen that is due by `now`, and writes what has come off its last link.
    fn advance(&mut self, now: Instant) {
        let Self { net, due, events, .. } = self;
        while let Some(event) = net.next_event_by(now) {
            *events += 1;
            // Ends and samples belong to worlds, which have their own way to be on time.
            let Event::Link(index) = event else { continue };
            net.on_link(index, |net, packet| due.push_back((net.now, packet)));
        }
        net.now = net.now.max(now);
        while let Some((due, packet)) = self.due.pop_front() {
            match packet.body {
                Body::Foreign { .. } => self.give_out(due, packet),
                _ => self.arrived.push_back(packet),
            }
        }
    }

    /// Reads some packets of a direction, so that the other has its turn too. Returns whether there
    /// were any.
    fn take_in(&mut self, direction: Direction, until: Instant) -> io::Result<bool> {
        for number in 0..BATCH {
            let Some(len) = self.devices[direction as usize].read(&mut self.buffer)? else {
                self.readable[direction as usize] = false;
                return Ok(number > 0);
            };
            self.advance(self.clock().min(until));
            self.enter(direction, len);
        }
        Ok(true)
    }

    /// Puts the packet at the start of the buffer onto the first link of its way.
    fn enter(&mut self, direction: Direction, len: usize) {
        let bytes = &self.buffer[..len];
        let meter = &mut self.meters[direction as usize];
        meter.received += 1;
        meter.received_bytes += len as u64;
        let Some(load) = Load::new(bytes, &self.room) else {
            meter.unasked.no_room += 1;
            return;
        };
        let view = View::of(bytes);
        let View { seq, payload, conversation, ecn, .. } = view;
        let packet = Packet {
            flow: self.classify.flow(&view, direction, self.flows),
            direction,
            hop: 0,
            ecn,
            corrupted: false,
            ip_len: len as u32,
            stamp: 0,
            queued: Duration::ZERO,
            body: Body::Foreign { seq: u64::from(seq), payload, conversation },
            load,
        };
        if self.net.has_links(packet.flow, direction) {
            self.net.forward(packet);
        } else {
            self.give_out(self.net.now, packet);
        }
    }

    /// Hands a packet to the kernel at the other end.
    fn give_out(&mut self, due: Instant, packet: Packet<Load>) {
        let direction = packet.direction;
        if direction == Direction::Forward && packet.payload() > 0 && !packet.corrupted {
            self.net.notes.data_packets += 1;
            self.passages[packet.flow as usize].record(packet.queued);
        }
        let device = match direction {
            Direction::Forward => &self.devices[1],
            Direction::Reverse => &self.devices[0],
        };
        let bytes = packet.load.bytes();
        let marked = packet.ecn == Ecn::Ce && view::ecn(bytes) != Ecn::Ce;
        let written = if marked || packet.corrupted {
            let mut changed = bytes.to_vec();
            if marked {
                view::mark_ce(&mut changed);
            }
            if packet.corrupted {
                flip_a_bit(&mut changed, &mut self.luck);
            }
            device.write(&changed)
        } else {
            device.write(bytes)
        };
        let now = self.clock();
        self.health.record(due, now);
        let meter = &mut self.meters[direction as usize];
        meter.lateness.record(now.saturating_since(due));
        // What is no packet any more was broken as asked.
        if written.is_err() && !packet.corrupted {
            meter.unasked.send_errors += 1;
        } else {
            meter.sent += 1;
            meter.sent_bytes += u64::from(packet.ip_len);
        }
    }

    /// Waits for a packet, or for what is due on a link, until `until` at most.
    fn wait(&mut self, until: Instant) -> io::Result<()> {
        let next = self.net.next_time().unwrap_or(until).min(until);
        let sources = [self.devices[0].as_fd(), self.devices[1].as_fd()];
        wait_any(&sources, self.origin + (next - Instant::ZERO), &mut self.readable)
    }
}

impl Classify {
    /// The flow that a packet belongs to, of so many.
    fn flow(self, view: &View, direction: Direction, flows: u32) -> u32 {
        let (Self::ByPort { first }, Some((source, destination))) = (self, view.ports) else {
            return 0;
        };
        let port = match direction {
            Direction::Forward => destination,
            Direction::Reverse => source,
        };
        let flow = port.checked_sub(first).map(u32::from);
        flow.filter(|flow| *flow < flows).unwrap_or(0)
    }
}

impl Default for Options {
    /// `weir0` at both ends with 10.77.0.1 and 10.77.0.2, packets of 1500 bytes, one flow.
    fn default() -> Self {
        let device = |host| DeviceSpec {
            name: "weir0".to_owned(),
            address: Ipv4Addr::new(10, 77, 0, host),
            prefix: 24,
        };
        Self { devices: [device(1), device(2)], mtu: 1_500, classify: Classify::One }
    }
}

/// Flips one bit, as Linux's netem does: every checksum of the Internet's catches that.
fn flip_a_bit(bytes: &mut [u8], luck: &mut Rng) {
    let bits = bytes.len() as u64 * 8;
    if bits > 0 {
        let bit = luck.below(bits);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

const LONGEST_PACKET: usize = 65_535;
/// Packets read in a row.
const BATCH: usize = 64;

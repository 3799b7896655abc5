//! The router: packets from two devices, over the links of a run, in real time.

mod exit;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;

use weir_scene::{Body, Direction, Event, HeapQueue, Network, Packet, RunSpec, SpecError};
use weir_sockets::clock;
use weir_trace::{Capture, Histogram};
use weir_units::{Duration, Instant, Rng, stream};

use super::counts::FlowCounts;
use super::device::Device;
use super::load::Load;
use super::namespace::Namespace;
use super::options::{Classify, Options, QUANTUM};
use super::outlet::Group;
use super::recorder::Recorder;
use super::spin::Spin;
use super::superpacket::{Layout, Prefix};
use super::view::IpPacket;
use crate::health::Health;
use crate::relay::{MEMORY, MemoryLimit, UnintendedLoss, wait_any};

/// A network between two namespaces: the links of a run, in real time, over real packets.
///
/// What is sent in the first namespace to the address of the other travels forward on the route of its
/// flow, and what is sent in the second travels back. Packets enter a link when they have been read
/// and leave each link at its exact time, however late the machine is: lateness adds up nowhere, and
/// tells only how long after its time a packet was handed to the kernel.
///
/// It has no thread of its own: its owner calls [`step`](Self::step) until the run is over, from
/// one thread, which had better be punctual ([`clock::TimerSlackGuard`]).
pub struct Emulator {
    /// The links. Only the emulator adds events; its time stands still between steps.
    pub net: Network<HeapQueue, Load>,
    flows: u32,
    classify: Classify,
    devices: [Device; 2],
    memory: MemoryLimit,
    origin: Instant,
    /// Whether time stands still during a step but where it waits, as in a guest. A reading of the clock
    /// is a system call there, which takes as long as a packet.
    stands_still: bool,
    /// The time at which the current step began.
    step_began: Instant,
    /// Whether devices have superpackets.
    offload: bool,
    spin: Spin,
    /// What has come off its last link, in the order of time, since when.
    due: VecDeque<(Instant, Packet<Load>)>,
    /// What has arrived of packets that are ours, and cross no device.
    arrived: VecDeque<Packet<Load>>,
    /// Per flow, how long foreign data packets had waited in queues when they arrived.
    passages: Vec<Histogram>,
    /// Per flow whose packets are counted.
    counts: Vec<Option<FlowCounts>>,
    /// Segments that are to leave as superpackets, by direction; empty between looks.
    groups: [Vec<Group>; 2],
    health: Health,
    meters: [Meter; 2],
    recorder: Option<Recorder>,
    /// Which bit breaks where one does.
    rng: Rng,
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
    pub(super) unintended: UnintendedLoss,
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
    /// There can be no packet capture.
    #[error("cannot record packets in '{path}': {error}")]
    Capture {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
}

impl Emulator {
    /// Joins two namespaces by the links of `spec`, whose flows give the routes over them. Of a flow
    /// nothing else counts, and there is at least one. All randomness of the links comes from `seed`.
    ///
    /// # Errors
    /// If a device cannot be made, or a link cannot be as it is described.
    pub fn open(
        spec: &RunSpec,
        seed: u64,
        ends: [&Namespace; 2],
        options: &Options,
    ) -> Result<Self, EmulatorError> {
        assert!(!spec.flows.is_empty(), "packets take the way of a flow");
        let mut net = Network::new(spec, seed)?;
        let offload = options.offload.is_on(&spec.links, &net.links);
        let device = |end: usize| {
            let spec = &options.devices[end];
            Device::open(ends[end], spec, options.mtu, offload)
                .map_err(|error| EmulatorError::Device { name: spec.name.clone(), error })
        };
        let devices = [device(0)?, device(1)?];
        let record = |asked: &Capture| {
            Recorder::open(asked, spec, &mut net.links).map_err(|error| EmulatorError::Capture {
                path: asked.path.display().to_string(),
                error,
            })
        };
        Ok(Self {
            recorder: options.capture.as_ref().map(record).transpose()?,
            net,
            offload,
            spin: Spin::new(options.spin),
            groups: Default::default(),
            flows: spec.flows.len() as u32,
            classify: options.classify,
            devices,
            memory: MemoryLimit::new(MEMORY),
            origin: clock::next_aligned_to_ticks(),
            stands_still: clock::is_virtual(),
            step_began: Instant::ZERO,
            due: VecDeque::new(),
            arrived: VecDeque::new(),
            passages: vec![Histogram::new(); spec.flows.len()],
            counts: vec![None; spec.flows.len()],
            health: Health::default(),
            meters: Default::default(),
            rng: stream(seed, "damage"),
            events: 0,
            buffer: vec![0; Prefix::LEN + LONGEST_PACKET],
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
    /// If a device cannot be read or waited for any more, or packets not be recorded.
    pub fn step(&mut self, until: Instant) -> io::Result<()> {
        self.health.begin();
        self.step_began = self.clock();
        self.advance(self.step_began.min(until));
        self.recorder.as_mut().map_or(Ok(()), Recorder::check)?;
        if self.net.now >= until {
            return Ok(());
        }
        let mut idle = true;
        for direction in [Direction::Forward, Direction::Reverse] {
            if self.readable[direction as usize] {
                idle &= !self.read_packets(direction, until)?;
            }
        }
        if idle { self.wait(until) } else { Ok(()) }
    }

    /// The time since the run began: since this was opened, or a millisecond later.
    pub fn clock(&self) -> Instant {
        Instant::ZERO + clock::now().saturating_since(self.origin)
    }

    /// The time since the run began, within a step and before it waits.
    pub(super) fn clock_in_step(&self) -> Instant {
        if self.stands_still { self.step_began } else { self.clock() }
    }

    /// When the run began, on the machine's clock ([`clock::now`]).
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// Completes the packet capture, if there is one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish_capture(&mut self) -> io::Result<()> {
        self.recorder.take().map_or(Ok(()), Recorder::finish)
    }

    /// How well it kept to the time so far, and what it lost that no link dropped.
    pub fn health(&self) -> Health {
        let unintended = [Direction::Forward, Direction::Reverse]
            .map(|direction| self.meter(direction).unintended.total());
        self.health.having_lost(unintended.iter().sum())
    }

    /// A packet of ours that has arrived: one that a flow of ours put on a link.
    pub fn poll_arrival(&mut self) -> Option<Packet<Load>> {
        self.arrived.pop_front()
    }

    /// How long the data packets of a flow that others send have waited in queues, of those that have
    /// arrived since [`restart_queue_delays`](Self::restart_queue_delays).
    pub fn take_queue_delay(&mut self, flow: u32) -> Histogram {
        std::mem::take(&mut self.passages[flow as usize])
    }

    /// Measures passages anew.
    pub fn restart_queue_delays(&mut self) {
        self.passages.fill(Histogram::new());
    }

    /// Counts the packets of a flow from now on.
    pub fn count(&mut self, flow: u32) {
        self.counts[flow as usize] = Some(FlowCounts::default());
    }

    /// What was counted of a flow.
    pub fn counts(&self, flow: u32) -> Option<&FlowCounts> {
        self.counts[flow as usize].as_ref()
    }

    /// Begins the time of the run anew: nothing was sent before.
    pub fn restart_clock(&mut self) {
        self.origin = clock::next_aligned_to_ticks();
    }

    /// How many things have happened on links.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// What a direction has seen.
    pub(super) fn meter(&self, direction: Direction) -> Meter {
        let mut meter = self.meters[direction as usize].clone();
        // What the device could not keep for us to read.
        meter.unintended.overflow = self.devices[direction as usize].dropped();
        meter
    }

    /// Lets everything happen that is due by `now`, and writes what has come off its last link.
    fn advance(&mut self, now: Instant) {
        let Self { net, due, arrived, events, recorder, .. } = self;
        while let Some(event) = net.next_event_by(now) {
            *events += 1;
            // Ends and samples belong to worlds, which have their own way to be on time.
            let Event::Link(index) = event else { continue };
            net.on_link(index, |net, packet| match packet.body {
                Body::Foreign { .. } => due.push_back((net.now, *packet)),
                _ => arrived.push_back(*packet),
            });
            if let Some(recorder) = recorder {
                recorder.take(&mut net.links);
            }
        }
        net.now = net.now.max(now);
        if self.leaves_at().is_some_and(|at| at <= now) {
            self.deliver();
        }
    }

    /// When what has come off its last link leaves.
    fn leaves_at(&self) -> Option<Instant> {
        let (due, _) = self.due.front()?;
        Some(*due + self.quantum())
    }

    fn quantum(&self) -> Duration {
        if self.offload { QUANTUM } else { Duration::ZERO }
    }

    /// Reads some packets of a direction, so that the other has its turn too. Returns whether there
    /// were any.
    fn read_packets(&mut self, direction: Direction, until: Instant) -> io::Result<bool> {
        for number in 0..BATCH {
            let Some(len) = self.devices[direction as usize].read(&mut self.buffer)? else {
                self.readable[direction as usize] = false;
                return Ok(number > 0);
            };
            self.advance(self.clock_in_step().min(until));
            self.enter(direction, len);
        }
        Ok(true)
    }

    /// Puts what is at the start of the buffer onto the first link of its way, packet by packet.
    fn enter(&mut self, direction: Direction, len: usize) {
        let (start, layout) = if self.offload {
            let Some((prefix, _)) = Prefix::split(&self.buffer[..len]) else { return };
            (Prefix::LEN, Layout::of(&prefix, &mut self.buffer[Prefix::LEN..len]))
        } else {
            (0, Layout::default())
        };
        let bytes = &self.buffer[start..len];
        let view = IpPacket::of(bytes);
        let parts = layout.parts(bytes.len()) as u64;
        let meter = &mut self.meters[direction as usize];
        meter.received += parts;
        let Some(load) = Load::new(bytes, layout, &self.memory) else {
            meter.received_bytes += bytes.len() as u64;
            meter.unintended.memory_full += parts;
            return;
        };
        let flow = self.classify.flow(&view, direction, self.flows);
        let has_links = self.net.has_links(flow, direction);
        for part in load.parts() {
            let packet = describe(part, &view, flow, direction, self.net.now);
            if let Some(counts) = &mut self.counts[flow as usize] {
                counts.on_entry(&view, &packet);
            }
            self.meters[direction as usize].received_bytes += u64::from(packet.ip_len);
            if has_links {
                self.net.forward(packet);
                if let Some(recorder) = &mut self.recorder {
                    recorder.take(&mut self.net.links);
                }
            } else {
                self.due.push_back((self.net.now, packet));
            }
        }
    }

    /// Waits for a packet, or for what is due on a link, until `until` at most.
    fn wait(&mut self, until: Instant) -> io::Result<()> {
        let next = self.leaves_at().or_else(|| self.net.next_time());
        let now = self.clock_in_step();
        let sleep_until = match next {
            Some(next) if next < until => self.spin.sleep_until(now, next),
            _ => Some(until),
        };
        let Some(sleep_until) = sleep_until.filter(|at| *at > now) else {
            self.readable.fill(true);
            return Ok(());
        };
        let sources = [self.devices[0].as_fd(), self.devices[1].as_fd()];
        wait_any(&sources, sleep_until - now, &mut self.readable)
    }
}

/// A packet as links see it.
fn describe(
    load: Load,
    view: &IpPacket,
    flow: u32,
    direction: Direction,
    now: Instant,
) -> Packet<Load> {
    let seq = u64::from(view.seq.wrapping_add(load.part().offset));
    let header = load.len() - load.payload().len();
    // The first part's headers are those of all.
    let payload = if header > 0 { load.payload().len() as u32 } else { view.payload };
    Packet {
        flow,
        direction,
        hop: 0,
        ecn: view.ecn,
        corrupted: false,
        ip_len: load.len() as u32,
        stamp: 0,
        sent: now,
        queued: Duration::ZERO,
        body: Body::Foreign { seq, payload, conversation: view.conversation, hosts: view.hosts },
        load,
    }
}

const LONGEST_PACKET: usize = 65_535;
/// Packets read in a row.
const BATCH: usize = 64;

//! Flows of our own transport between hosts: one UDP socket on each host, one thread for its flows.
//!
//! Both ends of a flow exist on both hosts. Only the one that is here sends, and is woken. A datagram
//! holds a segment as in world `udp`.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::PollFlags;
use weir_scene::{
    Body, ConnectionSample, Event, EventQueue, Flow, FlowSpec, HeapQueue, Medium, Network, Packet,
    RunSpec, Side, Workload,
};
use weir_sockets::clock::Alarm;
use weir_sockets::socket::{Arrival, Inbox, SendBatch, Socket};
use weir_transport::Arrived;
use weir_units::{Duration, Instant};

use super::tap::{SharedPathLog, Tap};
use crate::receivers::Arrivals;
use crate::record::{EVENT_KINDS, Ending, ReceivedFlow, SentFlow, Step, numbers};
use crate::senders::{Lateness, after};
use crate::shared::{Polls, Shared, raise_priority};
use weir_links::health::thread_cpu_time;
use weir_links::relay::overflow;
use weir_links::world::frame;
use weir_links::world::payload::Pattern;

/// The ends of our flows on this host.
pub(super) struct OwnPart<'a> {
    spec: &'a RunSpec,
    medium: HostMedium<'a>,
    ends: BTreeMap<u32, OwnEnd>,
    lateness: Lateness,
    /// Bytes sent and received so far, for others to read.
    moved: Arc<AtomicU64>,
}

/// One end of one flow.
struct OwnEnd {
    side: Side,
    flow: Flow,
    /// Of a file.
    size: Option<u64>,
    /// The last state of the sender that was recorded.
    last: ConnectionSample,
    started: Option<u64>,
    steps: Vec<(u64, Step)>,
    is_open: bool,
    is_closed: bool,
    arrivals: Arrivals,
    completed: Option<u64>,
}

/// What the thread leaves behind.
#[derive(Default)]
pub(super) struct OwnRecord {
    pub(super) sent: Vec<SentFlow>,
    pub(super) received: Vec<ReceivedFlow>,
    pub(super) lateness: Lateness,
    pub(super) cpu: Duration,
    /// Datagrams for which the receive buffer had no space.
    pub(super) dropped: u64,
}

/// The UDP socket of this host, in place of the links of a run.
struct HostMedium<'a> {
    /// No packet is on its links: it has the time and the log.
    net: Network<HeapQueue>,
    socket: Socket,
    flows: &'a [FlowSpec],
    /// The flows with an end here.
    here: BTreeMap<u32, Here>,
    /// When senders end.
    end: Instant,
    wakes: HeapQueue,
    pattern: Pattern,
    scratch: Vec<u8>,
    /// The payload of the packet that is being handed over.
    current: Vec<u8>,
    tap: Option<Tap>,
    error: Option<io::Error>,
}

/// An end of a flow that is here.
#[derive(Clone, Copy)]
struct Here {
    side: Side,
    peer: SocketAddr,
    /// The address of this host that the peer sends to, once it has.
    own: Option<IpAddr>,
}

impl<'a> OwnPart<'a> {
    /// The ends of the flows `sides`, each with the address of its other end. `log` receives the record of
    /// those that are sent here.
    pub(super) fn new(
        spec: &'a RunSpec,
        seed: u64,
        socket: Socket,
        sides: &BTreeMap<usize, (Side, SocketAddr)>,
        interval: Duration,
        moved: Arc<AtomicU64>,
        log: Option<SharedPathLog>,
    ) -> io::Result<Self> {
        let here = sides.iter().map(|(flow, (side, peer))| {
            (*flow as u32, Here { side: *side, peer: *peer, own: None })
        });
        let mut medium = HostMedium {
            net: Network::new(spec, seed).map_err(io::Error::other)?,
            socket,
            flows: &spec.flows,
            here: here.collect(),
            end: Instant::ZERO + spec.measure.duration,
            wakes: HeapQueue::default(),
            pattern: Pattern::new(seed),
            scratch: Vec::new(),
            current: Vec::new(),
            tap: log.map(Tap::new),
            error: None,
        };
        let here = medium.here.clone();
        let ends = here.into_iter().map(|(index, Here { side, .. })| {
            (index, OwnEnd::new(index, side, spec, seed, interval, &mut medium))
        });
        let ends = ends.collect();
        Ok(Self { spec, medium, ends, lateness: Lateness::default(), moved })
    }

    /// Works until the run is over.
    pub(super) fn run(
        mut self,
        shared: &Shared,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<OwnRecord> {
        let cpu_before = thread_cpu_time();
        raise_priority();
        let _alarm = Alarm::set();
        let measure = &self.spec.measure;
        let warmed_up = Instant::ZERO + measure.warmup;
        let mut next_sample = measure.sample_interval.map(|every| Instant::ZERO + every);
        let mut inbox = Inbox::default();
        let dropped_before = overflow::drops(&self.medium.socket);
        shared.await_start();
        while goes_on() {
            let now = shared.now();
            self.medium.net.now = now;
            self.read(&mut inbox)?;
            self.wake(now);
            for (flow, end) in &mut self.ends {
                let has_ended = now >= self.medium.end && end.end(self.medium.end);
                if has_ended || end.note(now, now >= warmed_up) {
                    shared.close_flow();
                }
                if let Some(tap) = &mut self.medium.tap {
                    tap.on_acked(*flow, end.last.acked, now);
                }
            }
            if let Some(due) = next_sample.filter(|due| *due <= now) {
                self.lateness.record(now - due);
                self.ends.values_mut().for_each(|end| end.sample(due));
                next_sample = measure.sample_interval.map(|every| after(due, every, now));
            }
            self.check()?;
            self.moved.store(self.ends.values().map(OwnEnd::moved).sum(), Ordering::Relaxed);
            let warming = Some(warmed_up).filter(|at| *at > now);
            let ending = Some(self.medium.end).filter(|at| *at > now);
            let next = [self.medium.wakes.peek(), next_sample, warming, ending];
            let next = next.into_iter().flatten().min();
            self.wait(next.unwrap_or(Instant::MAX).saturating_since(shared.now()))?;
        }
        let end = (Instant::ZERO + measure.duration).min(shared.now());
        if let Some(tap) = self.medium.tap.take() {
            tap.finish();
        }
        let dropped = overflow::drops(&self.medium.socket).saturating_sub(dropped_before);
        let mut record = self.finish(end);
        record.dropped = dropped;
        record.cpu = thread_cpu_time().saturating_sub(cpu_before);
        Ok(record)
    }

    /// Hands what has arrived to the flows. What does not come from the other host of its flow is
    /// discarded. After some batches the rest waits, so that a flood does not delay timers.
    fn read(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        for _ in 0..MOST_BATCHES {
            if !self.medium.socket.receive(inbox)? {
                break;
            }
            for arrival in inbox.arrivals() {
                for bytes in arrival.datagrams() {
                    let Some(packet) = self.medium.unpack(bytes, &arrival) else { continue };
                    if let Some(end) = self.ends.get_mut(&packet.flow) {
                        end.flow.on_packet(&packet, &mut self.medium);
                    }
                }
            }
        }
        Ok(())
    }

    /// Does what is due.
    fn wake(&mut self, now: Instant) {
        while let Some(due) = self.medium.wakes.peek().filter(|at| *at <= now) {
            let Some((_, Event::Endpoint(id))) = self.medium.wakes.pop() else { continue };
            self.lateness.record(now - due);
            if let Some(end) = self.ends.get_mut(&(id / 2)) {
                end.flow.on_wake(end.side, &mut self.medium);
            }
        }
    }

    fn check(&mut self) -> io::Result<()> {
        if let Some(what) = self.medium.net.notes.violation() {
            return Err(io::Error::other(what.to_owned()));
        }
        self.medium.error.take().map_or(Ok(()), Err)
    }

    fn wait(&self, time: Duration) -> io::Result<()> {
        let mut polls = Polls::default();
        polls.add(0, self.medium.socket.as_fd(), PollFlags::IN);
        polls.wait(time.min(LONGEST_WAIT)).map(drop)
    }

    fn finish(self, at: Instant) -> OwnRecord {
        let mut record = OwnRecord { lateness: self.lateness, ..OwnRecord::default() };
        let events = self.medium.net.notes.log.into_rows();
        for (flow, mut end) in self.ends {
            if end.side == Side::Receiver {
                let (log, completed) = (end.arrivals.into_rows(), end.completed);
                record.received.push(ReceivedFlow { flow, log, completed });
                continue;
            }
            end.close(at, Ending::OutOfTime);
            // Its start is there also if the scenario asks for no events.
            let of_flow = events.iter().filter(|row| row.flow == Some(flow) && row.kind != "start");
            let others = of_flow.filter_map(|row| {
                let kind = EVENT_KINDS.iter().position(|known| *known == row.kind)?;
                Some(((row.t_s * 1e9) as u64, kind, row.detail.clone()))
            });
            let started = end.started.map(|at| (at, 0, String::new()));
            let events = started.into_iter().chain(others).collect();
            record.sent.push(SentFlow { flow, steps: end.steps, events });
        }
        record
    }
}

impl OwnEnd {
    fn new(
        index: u32,
        side: Side,
        spec: &RunSpec,
        seed: u64,
        interval: Duration,
        medium: &mut HostMedium<'_>,
    ) -> Self {
        let mut described = spec.flows[index as usize].clone();
        if side == Side::Receiver {
            // It listens from the beginning, whatever the clocks of the two hosts say.
            (described.start, described.start_jitter) = (Instant::ZERO, Duration::ZERO);
        }
        let mut flow = Flow::new(index, &described, &spec.measure, seed, medium);
        if side == Side::Receiver {
            flow.on_wake(Side::Sender, medium);
        }
        let size = match described.workload {
            Workload::File { size } => Some(size.get()),
            _ => None,
        };
        Self {
            side,
            flow,
            size,
            last: ConnectionSample::default(),
            started: None,
            steps: Vec::new(),
            is_open: false,
            is_closed: false,
            arrivals: Arrivals::new(interval),
            completed: None,
        }
    }

    /// Records what has happened; returns whether the sender has ended just now.
    fn note(&mut self, now: Instant, is_warm: bool) -> bool {
        if self.side == Side::Receiver {
            let delivered = self.flow.delivered();
            self.arrivals.note(now.as_nanos(), delivered);
            if self.size == Some(delivered) {
                self.completed.get_or_insert(now.as_nanos());
            }
            return false;
        }
        if self.is_closed {
            return false;
        }
        let Some(reading) = self.flow.connection_sample(now) else { return false };
        self.last = reading;
        let has_started = self.started.is_some();
        self.started.get_or_insert(now.as_nanos());
        if is_warm && !std::mem::replace(&mut self.is_open, true) {
            // What it sent in its first turn is after `now`.
            let before = if has_started { reading } else { ConnectionSample::default() };
            self.steps.push((now.as_nanos(), Step::Open(numbers(&before))));
        }
        let failure = self.flow.failure().map(|why| Ending::Failed(why.to_owned()));
        let ended = match failure {
            Some(failed) => Some(failed),
            None if self.flow.is_over() => Some(Ending::Stopped),
            None => (self.size == Some(reading.acked)).then_some(Ending::Closed),
        };
        ended.is_some_and(|ending| {
            self.close(now, ending);
            true
        })
    }

    /// Bytes that the other end has acknowledged, or that have arrived here.
    fn moved(&self) -> u64 {
        match self.side {
            Side::Sender => self.last.acked,
            Side::Receiver => self.flow.delivered(),
        }
    }

    fn sample(&mut self, due: Instant) {
        if self.side == Side::Sender
            && !self.is_closed
            && let Some(reading) = self.flow.connection_sample(due)
        {
            self.steps.push((due.as_nanos(), Step::Sample(numbers(&reading))));
        }
    }

    /// The time is over; returns whether the sender has ended just now.
    fn end(&mut self, at: Instant) -> bool {
        let ends = self.side == Side::Sender && !self.is_closed;
        if ends {
            self.close(at, Ending::OutOfTime);
        }
        ends
    }

    fn close(&mut self, at: Instant, ending: Ending) {
        if !std::mem::replace(&mut self.is_closed, true) {
            let last = self.flow.connection_sample(at).unwrap_or(self.last);
            self.steps.push((at.as_nanos(), Step::Close(numbers(&last), ending)));
        }
    }
}

impl HostMedium<'_> {
    /// The packet in a datagram from the other host of its flow.
    fn unpack(&mut self, bytes: &[u8], arrival: &Arrival<'_>) -> Option<Packet> {
        // Which way it travels is known when its flow is: the frame has the flow's number.
        let packet = frame::parse(bytes, Side::Sender.direction(), arrival.ecn, self.flows)?;
        let here = self.here.get_mut(&packet.flow)?;
        if arrival.from != here.peer || !matches!(packet.body, Body::Segment { .. }) {
            return None;
        }
        here.own = arrival.to;
        let other = match here.side {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        };
        self.current.clear();
        self.current.extend_from_slice(frame::payload(bytes));
        let packet = Packet { direction: other.direction(), sent: self.net.now, ..packet };
        if here.side == Side::Sender
            && let Some(tap) = &mut self.tap
        {
            tap.record(&packet, self.net.now);
        }
        Some(packet)
    }
}

impl Medium for HostMedium<'_> {
    type Queue = HeapQueue;
    type Load = ();

    fn net(&self) -> &Network<HeapQueue> {
        &self.net
    }

    fn net_mut(&mut self) -> &mut Network<HeapQueue> {
        &mut self.net
    }

    /// Sends what the end that is here sends.
    fn send(&mut self, packet: Packet) {
        let Some(Here { side, peer, own }) = self.here.get(&packet.flow).copied() else { return };
        let Body::Segment { segment, offset } = packet.body else { return };
        let is_late = side == Side::Sender && self.net.now >= self.end;
        if packet.direction != side.direction() || is_late {
            return;
        }
        let place = offset..offset + u64::from(segment.payload_len);
        if side == Side::Sender
            && let Some(tap) = &mut self.tap
        {
            tap.record(&packet, self.net.now);
            tap.on_sent(packet.flow, place.end);
        }
        self.scratch.clear();
        let payload = self.pattern.bytes(packet.flow, packet.direction, place);
        frame::emit(&packet, payload, &mut self.scratch);
        let sent = self.socket.send(&SendBatch {
            to: peer,
            from: own,
            ecn: packet.ecn,
            bytes: &self.scratch,
            stride: self.scratch.len(),
        });
        let Err(error) = sent else { return };
        match (error.kind(), &mut self.tap) {
            // What the system has no buffer for is lost.
            (io::ErrorKind::WouldBlock, _) => {}
            (io::ErrorKind::PermissionDenied, Some(tap)) => tap.on_refused(),
            _ => drop(self.error.get_or_insert(error)),
        }
    }

    fn wake(&mut self, at: Instant, flow: u32, side: Side) {
        if self.here.get(&flow).is_some_and(|here| here.side == side) {
            self.wakes.push(at.max(self.net.now), Event::Endpoint(2 * flow + side as u32));
        }
    }

    fn check_stored(&self, packet: &Packet, at: &Arrived) -> Result<(), String> {
        self.pattern.check(packet, at, &self.current)
    }
}

/// Batches of datagrams that are read before what is due is done.
const MOST_BATCHES: usize = 64;
/// Between looks at whether the run is over.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

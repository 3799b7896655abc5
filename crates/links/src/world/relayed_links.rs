//! Real sockets around the links: hosts on one side of the relay, hosts on the other.
//!
//! Every packet is a real datagram twice: from its host to the relay, which hosts the links, and from
//! the relay to the host at the other end. The world owns all three sockets, so a datagram that was
//! sent is read in the same turn.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::AsFd;

use weir_scene::{Body, Direction, HeapQueue, Medium, Network, Packet, RunSpec, Side};
use weir_sockets::clock;
use weir_sockets::socket::{Inbox, SendBatch, Socket};
use weir_transport::{Arrived, wire};
use weir_units::{Duration, Instant};

use super::WorldError;
use super::frame::{self, RelayedPacket};
use super::payload::Pattern;
use crate::health::Health;
use crate::relay::wait_any;

/// The links of the run, and the sockets that packets go through before and behind them.
pub(super) struct RelayedLinks<'a> {
    spec: &'a RunSpec,
    /// The links, which the relay hosts. Its time is that of the step at hand.
    pub(super) net: Network<HeapQueue, Vec<u8>>,
    pub(super) health: Health,
    /// Datagrams that were sent from socket to socket, and those that arrived.
    sent: u64,
    received: u64,
    /// What has reached hosts and was not handed to its flow yet.
    pub(super) arrived: VecDeque<Arrival>,
    /// When time began.
    origin: Instant,
    senders: Socket,
    receivers: Socket,
    relay: Socket,
    inbox: Inbox,
    pattern: Pattern,
    scratch: Vec<u8>,
    /// The payload of the packet that is being handed over.
    current: Vec<u8>,
    readable: Vec<bool>,
    error: Option<io::Error>,
}

/// A packet at the host that it was sent to.
pub(super) struct Arrival {
    pub(super) packet: Packet,
    payload: Vec<u8>,
}

/// Between looks at whether the run is to be broken off.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

impl<'a> RelayedLinks<'a> {
    pub(super) fn new(spec: &'a RunSpec, seed: u64) -> Result<Self, WorldError> {
        let mut health = Health::default();
        health.begin();
        let socket = || Socket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(Self {
            spec,
            net: Network::new(spec, seed)?,
            health,
            sent: 0,
            received: 0,
            arrived: VecDeque::new(),
            senders: socket()?,
            receivers: socket()?,
            relay: socket()?,
            inbox: Inbox::default(),
            pattern: Pattern::new(seed),
            scratch: Vec::new(),
            current: Vec::new(),
            readable: Vec::new(),
            error: None,
            origin: clock::now(),
        })
    }

    /// The time since the run began.
    pub(super) fn clock(&self) -> Instant {
        Instant::ZERO + (clock::now() - self.origin)
    }

    /// What a socket has refused, if anything.
    pub(super) fn error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Datagrams that were sent and have not arrived.
    fn under_way(&self) -> u64 {
        self.sent - self.received
    }

    /// How the run kept to the time; at its end, what is still in flight is lost.
    pub(super) fn health(&self) -> Health {
        self.health.having_lost(self.under_way())
    }

    /// Whether any packet is in flight, on a link or between sockets.
    pub(super) fn is_busy(&self) -> bool {
        self.net.is_busy() || !self.arrived.is_empty()
    }

    /// Lets a link's event happen, which was due at the network's time: what comes out of its last
    /// link goes to its host.
    pub(super) fn on_link(&mut self, index: u32) {
        let due = self.net.now;
        let mut out = Vec::new();
        self.net.on_link(index, |_, packet| out.push(*packet));
        for packet in out {
            self.deliver(packet, due);
        }
        self.read_at_hosts();
    }

    /// Receives what has arrived at sockets since.
    pub(super) fn read(&mut self) {
        if self.under_way() > 0 {
            self.read_at_relay();
            self.read_at_hosts();
        }
    }

    /// Hands a packet to its flow: what it carries can be checked until the next is.
    pub(super) fn unpack(&mut self, arrival: Arrival) -> Packet {
        let Arrival { packet, payload } = arrival;
        if let Body::Datagram { number, payload: len } = packet.body
            && payload
                != self.pattern.bytes(packet.flow, packet.direction, datagram_place(number, len))
        {
            let what = format!("flow {}: datagram {number} arrived changed", packet.flow);
            self.net.notes.violate(what);
        }
        self.current = payload;
        packet
    }

    /// Waits until `until`, or for something to read, but at most the longest wait.
    pub(super) fn wait(&mut self, until: Instant) -> io::Result<()> {
        let most = until.saturating_since(self.clock()).min(LONGEST_WAIT);
        let sources = [self.senders.as_fd(), self.receivers.as_fd(), self.relay.as_fd()];
        wait_any(&sources, most, &mut self.readable)
    }

    /// Sends a packet from the relay to the host at its end.
    fn deliver(&mut self, packet: Packet<Vec<u8>>, due: Instant) {
        let mut bytes = packet.load.clone();
        if let Body::Segment { segment, .. } = packet.body
            && let Some(echo) = segment.options.feedback
        {
            wire::stamp(&mut bytes, |feedback| *feedback = echo);
        }
        if packet.corrupted {
            frame::damage(&mut bytes, packet.seq());
        }
        let Packet { sent, queued, .. } = packet;
        frame::push_trailer(RelayedPacket { sent, queued }, &mut bytes);
        let to = match packet.direction {
            Direction::Forward => &self.receivers,
            Direction::Reverse => &self.senders,
        };
        let departure = SendBatch {
            to: to.local_addr(),
            from: None,
            ecn: packet.ecn,
            stride: bytes.len(),
            bytes: &bytes,
        };
        let sent = self.relay.send(&departure);
        self.note_sent(sent);
        let now = self.clock();
        self.health.record(due, now);
    }

    /// A datagram that the system cannot buffer counts as an unconfigured loss; whatever else
    /// goes wrong ends the run.
    fn note_sent(&mut self, sent: io::Result<()>) {
        self.sent += 1;
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => self.fail(error),
            _ => {}
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.error.get_or_insert(error);
    }

    /// Puts what hosts have sent onto its first link.
    fn read_at_relay(&mut self) {
        loop {
            match self.relay.receive(&mut self.inbox) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail(error),
            }
            for arrival in self.inbox.arrivals() {
                let direction = match arrival.from {
                    from if from == self.senders.local_addr() => Some(Direction::Forward),
                    from if from == self.receivers.local_addr() => Some(Direction::Reverse),
                    _ => None,
                };
                let Some(direction) = direction else { continue };
                for bytes in arrival.datagrams() {
                    self.received += 1;
                    if let Some(packet) =
                        frame::parse(bytes, direction, arrival.ecn, &self.spec.flows)
                    {
                        let sent = self.net.now;
                        self.net.forward(Packet { sent, ..packet }.with(bytes.to_vec()));
                    }
                }
            }
        }
    }

    fn read_at_hosts(&mut self) {
        self.read_at_host(Direction::Forward);
        self.read_at_host(Direction::Reverse);
    }

    /// Reads what the relay has sent to the hosts at the end of a direction. What a link has damaged
    /// fails the checksum, as does what others send.
    fn read_at_host(&mut self, direction: Direction) {
        let relay = self.relay.local_addr();
        let host = match direction {
            Direction::Forward => &self.receivers,
            Direction::Reverse => &self.senders,
        };
        loop {
            match host.receive(&mut self.inbox) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.error.get_or_insert(error);
                    return;
                }
            }
            for arrival in self.inbox.arrivals().filter(|arrival| arrival.from == relay) {
                for datagram in arrival.datagrams() {
                    self.received += 1;
                    let Some((bytes, passage)) = frame::split_trailer(datagram) else { continue };
                    let parsed = frame::parse(bytes, direction, arrival.ecn, &self.spec.flows);
                    if let Some(packet) = parsed {
                        let payload = frame::payload(bytes).to_vec();
                        let RelayedPacket { sent, queued } = passage;
                        let packet = Packet { sent, queued, ..packet };
                        self.arrived.push_back(Arrival { packet, payload });
                    }
                }
            }
        }
    }
}

/// Hosts send into sockets, and the relay puts what it reads there onto links.
impl Medium for RelayedLinks<'_> {
    type Queue = HeapQueue;
    type Load = Vec<u8>;

    fn net(&self) -> &Network<HeapQueue, Vec<u8>> {
        &self.net
    }

    fn net_mut(&mut self) -> &mut Network<HeapQueue, Vec<u8>> {
        &mut self.net
    }

    /// Loopback delivers within the system call, so the packet is read at once and on its link when
    /// this returns: a sender may look at that.
    fn send(&mut self, packet: Packet) {
        let place = match packet.body {
            Body::Segment { segment, offset } => offset..offset + u64::from(segment.payload_len),
            Body::Datagram { number, payload } => datagram_place(number, payload),
            Body::Foreign { .. } => unreachable!("flows send nothing foreign"),
        };
        self.scratch.clear();
        let payload = self.pattern.bytes(packet.flow, packet.direction, place);
        frame::emit(&packet, payload, &mut self.scratch);
        let host = match packet.direction {
            Direction::Forward => &self.senders,
            Direction::Reverse => &self.receivers,
        };
        let sent = host.send(&SendBatch {
            to: self.relay.local_addr(),
            from: None,
            ecn: packet.ecn,
            bytes: &self.scratch,
            stride: self.scratch.len(),
        });
        self.note_sent(sent);
        self.read_at_relay();
    }

    fn wake(&mut self, at: Instant, flow: u32, side: Side) {
        self.net.wake_end(at.max(self.net.now), flow, side);
    }

    fn check_stored(&self, packet: &Packet, at: &Arrived) -> Result<(), String> {
        self.pattern.check(packet, at, &self.current)
    }
}

/// Where the payload of an unreliable datagram lies, as if all were of its length.
fn datagram_place(number: u64, payload: u32) -> Range<u64> {
    let start = number.wrapping_mul(u64::from(payload)) >> 1;
    start..start + u64::from(payload)
}

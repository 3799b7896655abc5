//! Records each packet and its way over each link.
//!
//! A packet has no identity in the simulator: a link knows its stamp, the order of entry. Between two
//! links it is found again by its flow, direction, time of sending and sequence number. It enters the next link
//! at the instant at which it leaves one, so that the way of a connection need not be known.

use std::collections::VecDeque;

use weir_net::{DropCause, DropRecord, Ecn, Parcel};
use weir_scene::{Body, LinkCrossing, LinkEnd, Packet, ResendCause, Resent, RunSpec};
use weir_sim::PacketTap;
use weir_transport::{Flags, Segment};
use weir_units::{Duration, Instant};

/// Why a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// New data.
    New = 0,
    /// Data again, because acknowledgements showed a loss.
    Fast = 1,
    /// Data again, because the retransmission timer expired.
    Timeout = 2,
    /// Data again, as a tail loss probe.
    Probe = 3,
    /// Data again, because a route came back.
    Route = 4,
    /// An acknowledgement.
    Ack = 5,
    /// A handshake, or its end.
    Handshake = 6,
    /// A datagram of another transport.
    Datagram = 7,
    /// A copy that a link made.
    Duplicate = 8,
}

/// What a link did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Delivered it.
    Delivered = 0,
    /// Marked it (ECN) and delivered it.
    Marked = 1,
    /// Damaged it and delivered it.
    Damaged = 2,
    /// Dropped it: the queue was full.
    QueueFull = 10,
    /// Dropped it: the queue's law decided so.
    QueueLaw = 11,
    /// Dropped it: it was over a policer's rate.
    Policer = 12,
    /// Dropped it: random loss.
    Loss = 13,
    /// Dropped it: longer than the MTU.
    Mtu = 14,
}

/// Records packets as rows, up to a number.
#[derive(Debug)]
pub(crate) struct Recorder {
    links: Vec<LinkState>,
    /// Packets that have left a link at `moved_at`.
    moving: Vec<(Key, u32)>,
    moved_at: Instant,
    /// Segments that are about to enter their first link once more.
    resent: VecDeque<Resent>,
    count: u32,
    space_left: usize,
    pub(crate) packets: Vec<f64>,
    pub(crate) crossings: Vec<f64>,
    pub(crate) sacks: Vec<f64>,
    /// When something first was not recorded.
    pub(crate) cut: Option<Instant>,
}

/// The packets in a link, in the order of entry.
#[derive(Debug, Default)]
struct LinkState {
    inside: VecDeque<Inside>,
}

/// A packet in a link.
#[derive(Clone, Copy, Debug)]
struct Inside {
    stamp: u32,
    packet: u32,
    entered: Instant,
    queued: Duration,
    ecn: Ecn,
    corrupted: bool,
}

/// What identifies a packet between two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    flow: u32,
    is_forward: bool,
    sent: Instant,
    seq: u64,
}

impl Recorder {
    /// Records up to `max_crossings` rows of ways over links.
    pub(crate) fn new(spec: &RunSpec, max_crossings: usize) -> Self {
        Self {
            links: spec.links.iter().map(|_| LinkState::default()).collect(),
            moving: Vec::new(),
            moved_at: Instant::ZERO,
            resent: VecDeque::new(),
            count: 0,
            space_left: max_crossings,
            packets: Vec::new(),
            crossings: Vec::new(),
            sacks: Vec::new(),
            cut: None,
        }
    }

    /// Writes the rows of packets that are still in a link: they never leave it.
    pub(crate) fn finish(&mut self) {
        for link in 0..self.links.len() {
            while let Some(inside) = self.links[link].inside.pop_front() {
                self.write(link, &inside, None, f64::INFINITY, Fate::Delivered);
            }
        }
    }

    fn enter(&mut self, link: usize, at: Instant, packet: &Packet) {
        let id = self.arrive(at, packet).unwrap_or_else(|| {
            let kind = self.kind(packet);
            self.new_packet(packet, kind)
        });
        if self.space_left == 0 {
            self.cut.get_or_insert(at);
            return;
        }
        self.space_left -= 1;
        self.links[link].inside.push_back(Inside {
            stamp: packet.stamp,
            packet: id,
            entered: at,
            queued: packet.queued,
            ecn: packet.ecn,
            corrupted: packet.corrupted,
        });
    }

    fn leave(&mut self, link: usize, at: Instant, packet: &Packet) {
        let inside = &mut self.links[link].inside;
        let found = inside.iter().position(|inside| inside.stamp == packet.stamp);
        let id = match found.and_then(|index| inside.remove(index)) {
            Some(inside) => {
                let fate = if packet.ecn == Ecn::Ce && inside.ecn != Ecn::Ce {
                    Fate::Marked
                } else if packet.corrupted && !inside.corrupted {
                    Fate::Damaged
                } else {
                    Fate::Delivered
                };
                let waited = packet.queued.saturating_sub(inside.queued);
                self.write(link, &inside, Some(waited), at.as_secs_f64(), fate);
                inside.packet
            }
            None if self.cut.is_some() => return,
            None => self.new_packet(packet, PacketKind::Duplicate),
        };
        if self.moved_at < at {
            // Those that no link has taken have arrived.
            self.moving.clear();
            self.moved_at = at;
        }
        self.moving.push((Key::of(packet), id));
    }

    /// The number of a packet that has left another link at this instant.
    fn arrive(&mut self, at: Instant, packet: &Packet) -> Option<u32> {
        if packet.hop == 0 || self.moved_at != at {
            return None;
        }
        let key = Key::of(packet);
        let index = self.moving.iter().position(|(moving, _)| *moving == key)?;
        Some(self.moving.remove(index).1)
    }

    fn new_packet(&mut self, packet: &Packet, kind: PacketKind) -> u32 {
        let id = self.count;
        if self.space_left == 0 {
            return id;
        }
        self.count += 1;
        self.packets.extend([
            f64::from(packet.flow),
            f64::from(u8::from(!packet.is_forward())),
            f64::from(kind as u8),
            packet.seq() as f64,
            f64::from(packet.payload()),
            f64::from(packet.ip_len),
            packet.sent.as_secs_f64(),
        ]);
        if let Body::Segment { segment, offset } = &packet.body {
            self.note_sacks(id, segment, *offset);
        }
        id
    }

    /// `ack` is the offset that a bare acknowledgement expects next.
    fn note_sacks(&mut self, id: u32, segment: &Segment, ack: u64) {
        if segment.payload_len > 0 {
            return;
        }
        for block in segment.options.sack.as_slice() {
            let offset =
                |seq: weir_transport::SeqNum| ack as f64 + f64::from(seq.since(segment.ack));
            self.sacks.extend([f64::from(id), offset(block.start), offset(block.end)]);
        }
    }

    fn kind(&mut self, packet: &Packet) -> PacketKind {
        let Body::Segment { segment, offset } = &packet.body else { return PacketKind::Datagram };
        if segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::RST) {
            return PacketKind::Handshake;
        }
        let is_this = |resent: &Resent| {
            let place = (resent.flow, resent.direction, resent.offset);
            place == (packet.flow, packet.direction, *offset)
        };
        if let Some(index) = self.resent.iter().position(is_this)
            && let Some(resent) = self.resent.remove(index)
        {
            return match resent.cause {
                ResendCause::Fast => PacketKind::Fast,
                ResendCause::Timeout => PacketKind::Timeout,
                ResendCause::Probe => PacketKind::Probe,
                ResendCause::Route => PacketKind::Route,
            };
        }
        match segment.payload_len {
            0 if segment.flags.contains(Flags::FIN) => PacketKind::Handshake,
            0 => PacketKind::Ack,
            _ => PacketKind::New,
        }
    }

    fn write(
        &mut self,
        link: usize,
        inside: &Inside,
        waited: Option<Duration>,
        left: f64,
        fate: Fate,
    ) {
        let started = waited.map_or(left, |waited| (inside.entered + waited).as_secs_f64());
        self.crossings.extend([
            link as f64,
            f64::from(inside.packet),
            inside.entered.as_secs_f64(),
            started,
            left,
            f64::from(fate as u8),
        ]);
    }
}

impl PacketTap for Recorder {
    fn links(&self) -> Vec<usize> {
        (0..self.links.len()).collect()
    }

    fn record(&mut self, index: usize, seen: &LinkCrossing<()>) {
        match seen.end {
            LinkEnd::Entry => self.enter(index, seen.at, &seen.packet),
            LinkEnd::Exit => self.leave(index, seen.at, &seen.packet),
        }
    }

    fn dropped(&mut self, index: usize, drop: &DropRecord) {
        let inside = &mut self.links[index].inside;
        // Most are dropped as they enter.
        let found = inside.iter().rposition(|inside| inside.stamp == drop.stamp);
        let Some(inside) = found.and_then(|index| inside.remove(index)) else { return };
        let fate = match drop.cause {
            DropCause::Queue | DropCause::Buffer => Fate::QueueFull,
            DropCause::Aqm => Fate::QueueLaw,
            DropCause::Policer => Fate::Policer,
            DropCause::Loss => Fate::Loss,
            DropCause::Mtu => Fate::Mtu,
        };
        self.write(index, &inside, None, drop.time.as_secs_f64(), fate);
    }

    fn resent(&mut self, resent: &Resent) {
        self.resent.push_back(*resent);
    }
}

impl Key {
    fn of(packet: &Packet) -> Self {
        let (flow, is_forward) = (packet.flow, packet.is_forward());
        Self { flow, is_forward, sent: packet.sent, seq: packet.seq() }
    }
}

//! The way out of the router: what has come off its last link, to the kernel at the other end.

use std::io::{self, IoSlice};

use weir_net::Ecn;
use weir_scene::{Body, Direction, Packet};
use weir_units::{Instant, Rng};

use super::Emulator;
use crate::emulator::device::Device;
use crate::emulator::load::Load;
use crate::emulator::outlet::Group;
use crate::emulator::superpacket::{MAX_HEADER, Prefix};
use crate::emulator::view;

impl Emulator {
    /// Hands to the kernel at the other end what is due.
    pub(super) fn deliver(&mut self) {
        while let Some((due, packet)) = self.due.pop_front() {
            if packet.direction == Direction::Forward && packet.payload() > 0 && !packet.corrupted {
                self.net.notes.data_packets += 1;
                self.passages[packet.flow as usize].record(packet.queued);
            }
            if let Some(counts) = &mut self.counts[packet.flow as usize] {
                counts.on_arrival(&packet, due);
            }
            if !self.offload || !self.join(due, &packet) {
                self.write(due, &packet);
            }
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            for group in std::mem::take(&mut self.groups[direction as usize]) {
                self.write_group(direction, &group);
            }
        }
    }

    /// Has a packet leave together with those before it, if it can; if it cannot, they leave first.
    fn join(&mut self, due: Instant, packet: &Packet<Load>) -> bool {
        let Body::Foreign { conversation, .. } = packet.body else { return false };
        let marked = is_newly_marked(packet);
        let groups = &mut self.groups[packet.direction as usize];
        let place = groups.iter().position(|group| group.is_of(conversation));
        if let Some(place) = place {
            if !packet.corrupted && groups[place].add(&packet.load, marked, due) {
                return true;
            }
            let done = groups.remove(place);
            self.write_group(packet.direction, &done);
        }
        if packet.corrupted {
            return false;
        }
        let group = Group::new(conversation, packet.load.clone(), marked, due);
        let begun = group.is_some();
        self.groups[packet.direction as usize].extend(group);
        begun
    }

    fn write_group(&mut self, direction: Direction, group: &Group) {
        let now = self.clock_in_step();
        group.dues.iter().for_each(|due| self.note_lateness(direction, *due, now));
        let written = group.write(self.exit(direction));
        let meter = &mut self.meters[direction as usize];
        let segments = group.dues.len() as u64;
        if written.is_err() {
            meter.unintended.send_errors += segments;
        } else {
            meter.sent += segments;
            meter.sent_bytes += group.wire_len();
        }
    }

    fn write(&mut self, due: Instant, packet: &Packet<Load>) {
        let now = self.clock_in_step();
        self.note_lateness(packet.direction, due, now);
        let written = self.write_alone(packet);
        let meter = &mut self.meters[packet.direction as usize];
        // A damaged header is a configured corruption, not an error.
        if written.is_err() && !packet.corrupted {
            meter.unintended.send_errors += 1;
        } else {
            meter.sent += 1;
            meter.sent_bytes += u64::from(packet.ip_len);
        }
    }

    fn write_alone(&mut self, packet: &Packet<Load>) -> io::Result<()> {
        let (load, layout) = (&packet.load, packet.load.layout());
        let marked = is_newly_marked(packet);
        let mut buffer = [0; MAX_HEADER];
        let headers = layout.write_header(&load.part(), load.payload().len(), &mut buffer);
        let has_headers = !headers.is_empty();
        if packet.corrupted || marked && !has_headers {
            let mut changed = load.to_vec();
            if marked {
                view::mark_ce(&mut changed);
            }
            if packet.corrupted {
                flip_a_bit(&mut changed, &mut self.rng);
            }
            let prefix = Prefix::default().bytes();
            return self.send(packet.direction, &prefix, [&[], &changed]);
        }
        if marked {
            view::mark_ce(headers);
        }
        let prefix = layout.prefix(load.is_v4(), None).bytes();
        self.send(packet.direction, &prefix, [headers, load.payload()])
    }

    fn send(&self, direction: Direction, prefix: &[u8], packet: [&[u8]; 2]) -> io::Result<()> {
        let prefix = if self.offload { prefix } else { &[] };
        let [headers, payload] = packet;
        let pieces = [IoSlice::new(prefix), IoSlice::new(headers), IoSlice::new(payload)];
        self.exit(direction).write(&pieces)
    }

    /// The device that a direction ends at.
    fn exit(&self, direction: Direction) -> &Device {
        match direction {
            Direction::Forward => &self.devices[1],
            Direction::Reverse => &self.devices[0],
        }
    }

    /// Records when the kernel gets a packet. What its receiving side does with it, which it does before a
    /// write returns, is no longer the link's.
    fn note_lateness(&mut self, direction: Direction, due: Instant, now: Instant) {
        self.health.record(due, now);
        self.meters[direction as usize].lateness.record(now.saturating_since(due));
    }
}

/// Whether a link has marked it.
fn is_newly_marked(packet: &Packet<Load>) -> bool {
    packet.ecn == Ecn::Ce && view::ecn(packet.load.start()) != Ecn::Ce
}

/// Flips one bit, as Linux's netem does: every checksum of the Internet's catches that.
fn flip_a_bit(bytes: &mut [u8], rng: &mut Rng) {
    let bits = bytes.len() as u64 * 8;
    if bits > 0 {
        let bit = rng.below(bits);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

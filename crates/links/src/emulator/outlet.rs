//! Segments that leave at the same time become superpackets again, as a receiver's offload would make
//! of them: the kernel is called once for all.

use std::io::{self, IoSlice};

use weir_units::Instant;

use super::device::Device;
use super::load::Load;
use super::superpacket::{ACK, FLAGS, MAX_HEADER, PSH};
use super::view;

/// Consecutive segments of one TCP flow. All have the size of the first, but the last may be shorter.
#[derive(Debug)]
pub(super) struct Group {
    conversation: u32,
    first: Load,
    is_marked: bool,
    /// Runs of parts of one buffer each: the first of a run and its last.
    runs: Vec<(Load, Load)>,
    segment: usize,
    payload: usize,
    /// Since when each segment was due.
    pub(super) dues: Vec<Instant>,
    is_closed: bool,
}

impl Group {
    /// A group of one; `None` if others cannot follow it.
    pub(super) fn new(
        conversation: u32,
        load: Load,
        is_marked: bool,
        due: Instant,
    ) -> Option<Self> {
        let payload = load.payload().len();
        let joins = load.layout().is_tcp() && payload > 0 && flags(&load) == ACK;
        joins.then(|| Self {
            conversation,
            is_marked,
            runs: vec![(load.clone(), load.clone())],
            first: load,
            segment: payload,
            payload,
            dues: vec![due],
            is_closed: false,
        })
    }

    pub(super) fn is_of(&self, conversation: u32) -> bool {
        self.conversation == conversation
    }

    /// Adds a segment if it belongs behind the others.
    pub(super) fn add(&mut self, load: &Load, is_marked: bool, due: Instant) -> bool {
        let payload = load.payload().len();
        let fits = load.layout().is_tcp()
            && !self.is_closed
            && is_marked == self.is_marked
            && (1..=self.segment).contains(&payload)
            && self.first.template().len() + self.payload + payload <= LONGEST
            && self.dues.len() < MOST_SEGMENTS
            && flags(load) & !PSH == ACK;
        if !fits || !self.is_continued_by(load) {
            return false;
        }
        match self.runs.last_mut() {
            Some((_, last)) if last.is_followed_by(load) => *last = load.clone(),
            _ => self.runs.push((load.clone(), load.clone())),
        }
        self.payload += payload;
        self.dues.push(due);
        self.is_closed = payload < self.segment || flags(load) & PSH != 0;
        true
    }

    /// Hands it to the kernel, in one piece.
    pub(super) fn write(&self, device: &Device) -> io::Result<()> {
        self.assemble(|pieces| device.write(pieces))
    }

    /// Makes one packet of it: what stands in front, the headers, the payload.
    fn assemble<T>(&self, done: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let layout = self.first.layout();
        let mut headers = [0; MAX_HEADER];
        let headers = layout.write_header(&self.first.part(), self.payload, &mut headers);
        let last = self.runs.last().map_or(&self.first, |(_, last)| last);
        headers[layout.ip_header() + FLAGS] |= flags(last) & PSH;
        if self.is_marked {
            view::mark_ce(headers);
        }
        let segment = (self.dues.len() > 1).then_some(self.segment);
        let prefix = layout.prefix(headers[0] >> 4 == 4, segment).bytes();
        let mut pieces = vec![IoSlice::new(&prefix), IoSlice::new(headers)];
        pieces.extend(self.runs.iter().map(|(from, to)| IoSlice::new(from.payload_up_to(to))));
        done(&pieces)
    }

    /// Bytes of its packets on the wire.
    pub(super) fn wire_len(&self) -> u64 {
        (self.first.template().len() * self.dues.len() + self.payload) as u64
    }

    /// Whether `load` is the next segment of the same stream, with headers that say the same.
    fn is_continued_by(&self, load: &Load) -> bool {
        let last = self.runs.last().map_or(&self.first, |(_, last)| last);
        if last.is_followed_by(load) {
            return true;
        }
        let (mine, others) = (self.first.template(), load.template());
        if mine.len() != others.len()
            || self.first.layout().ip_header() != load.layout().ip_header()
        {
            return false;
        }
        let ip = self.first.layout().ip_header();
        // All but lengths, identification, sequence number, flags (compared before) and checksums.
        let same_ip = if mine[0] >> 4 == 4 {
            mine[..2] == others[..2]
                && mine[6..10] == others[6..10]
                && mine[12..ip] == others[12..ip]
        } else {
            mine[..4] == others[..4] && mine[6..ip] == others[6..ip]
        };
        let (mine, others) = (&mine[ip..], &others[ip..]);
        let same_tcp = mine[..4] == others[..4]
            && mine[8..FLAGS] == others[8..FLAGS]
            && mine[14..16] == others[14..16]
            && mine[18..] == others[18..];
        same_ip && same_tcp && seq(&self.first).wrapping_add(self.payload as u32) == seq(load)
    }
}

/// The flags of a segment of TCP.
fn flags(load: &Load) -> u8 {
    let flags = load.template()[load.layout().ip_header() + FLAGS];
    load.part().flags(flags)
}

fn seq(load: &Load) -> u32 {
    let at = load.layout().ip_header() + 4;
    let bytes: [u8; 4] = load.template()[at..at + 4].try_into().expect("four bytes");
    u32::from_be_bytes(bytes).wrapping_add(load.part().offset)
}

/// The longest IP packet.
const LONGEST: usize = 65_535;
/// As many as the kernel's own offload joins.
const MOST_SEGMENTS: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_units::Bytes;

    use super::*;
    use crate::emulator::superpacket::{Layout, Prefix};
    use crate::emulator::view::{IpPacket, ones_sum};
    use crate::relay::MemoryLimit;

    const NOW: Instant = Instant::ZERO;

    /// A superpacket as a device hands it over: IPv4 or IPv6, TCP with timestamps, its checksum left.
    fn superpacket(is_v4: bool, payload: &[u8], segment: u16, flags: u8, seq: u32) -> Vec<u8> {
        let mut tcp = vec![0; 32];
        tcp[..4].copy_from_slice(&[0xc0, 1, 0x17, 0x70]);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        (tcp[11], tcp[12], tcp[FLAGS], tcp[15], tcp[24]) = (9, 8 << 4, flags, 77, 8);
        let len = (tcp.len() + payload.len()) as u16;
        let mut ip = if is_v4 {
            let mut ip = vec![0x45, 0b10, 0, 0, 0, 5, 0x40, 0, 64, 6, 0, 0];
            ip.extend([10, 77, 0, 1, 10, 77, 0, 2]);
            ip[2..4].copy_from_slice(&(20 + len).to_be_bytes());
            let sum = !ones_sum(&ip, 0);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip
        } else {
            let mut ip = vec![0; 40];
            (ip[0], ip[1], ip[6], ip[7], ip[23], ip[39]) = (0x60, 0x20, 6, 64, 1, 2);
            ip[4..6].copy_from_slice(&len.to_be_bytes());
            ip
        };
        let addresses = if is_v4 { 12..20 } else { 8..40 };
        let sum = ones_sum(&ip[addresses], 6 + u32::from(len));
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let kind = if payload.len() <= usize::from(segment) {
            0
        } else if is_v4 {
            1
        } else {
            4
        };
        let mut packet = vec![1, kind];
        for half in
            [(ip.len() + 32) as u16, if kind > 0 { segment } else { 0 }, ip.len() as u16, 16]
        {
            packet.extend(half.to_ne_bytes());
        }
        packet.append(&mut ip);
        packet.append(&mut tcp);
        packet.extend(payload);
        packet
    }

    fn load(read: &mut [u8]) -> Option<(Load, IpPacket)> {
        let (prefix, _) = Prefix::split(read)?;
        let packet = &mut read[Prefix::LEN..];
        let layout = Layout::of(&prefix, packet);
        Some((Load::new(packet, layout, &MemoryLimit::new(Bytes(1 << 30)))?, IpPacket::of(packet)))
    }

    fn merged(loads: impl Iterator<Item = Load>) -> Vec<Vec<u8>> {
        let mut groups: Vec<Group> = Vec::new();
        for load in loads {
            if !groups.last_mut().is_some_and(|group| group.add(&load, false, NOW)) {
                groups.push(Group::new(1, load, false, NOW).expect("a segment with data"));
            }
        }
        let whole = |group: &Group| {
            group.assemble(|pieces| pieces.iter().flat_map(|piece| piece.to_vec()).collect())
        };
        groups.iter().map(whole).collect()
    }

    fn sum_is_right(packet: &[u8], is_v4: bool) -> bool {
        let (ip, addresses) = if is_v4 { (20, 12..20) } else { (40, 8..40) };
        let len = (packet.len() - ip) as u32;
        let pseudo = u32::from(ones_sum(&packet[addresses], 6 + len));
        ones_sum(&packet[ip..], pseudo) == 0xffff
            && (!is_v4 || ones_sum(&packet[..20], 0) == 0xffff)
    }

    proptest! {
        #[test]
        fn what_is_cut_and_joined_is_as_it_was(
            is_v4: bool, segment in 200u16..3_000, seq: u32, len in 1usize..12_000, fill: u8,
        ) {
            let payload: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(31) ^ fill).collect();
            let original = superpacket(is_v4, &payload, segment, ACK, seq);
            let (first, _) = load(&mut original.clone()).expect("a packet");
            let parts: Vec<Load> = first.parts().collect();
            prop_assert_eq!(parts.len(), len.div_ceil(usize::from(segment)));
            let mut rest = &payload[..];
            for part in &parts {
                let packet = part.to_vec();
                prop_assert!(sum_is_right(&packet, is_v4));
                prop_assert_eq!(packet.len(), part.len());
                let view = IpPacket::of(&packet);
                prop_assert_eq!(view.payload as usize, rest.len().min(usize::from(segment)));
                prop_assert_eq!(view.seq, seq.wrapping_add((len - rest.len()) as u32));
                let (mine, others) = rest.split_at(view.payload as usize);
                prop_assert!(packet.ends_with(mine));
                rest = others;
            }
            prop_assert_eq!(merged(parts.into_iter()), vec![original]);
        }

        #[test]
        fn segments_of_several_superpackets_join_where_they_are_contiguous(
            cut in 1usize..3, segment in 500u16..1_500, gap: bool,
        ) {
            let payload = vec![7; usize::from(segment) * 4];
            let at = usize::from(segment) * cut;
            let hole = if gap { 10 } else { 0 };
            let mut first = superpacket(true, &payload[..at], segment, ACK, 100);
            let mut second = superpacket(true, &payload[at..], segment, ACK | PSH, 100 + at as u32 + hole);
            let (first, _) = load(&mut first).expect("a packet");
            let (second, _) = load(&mut second).expect("a packet");
            let parts: Vec<Load> = first.parts().chain(second.parts()).collect();
            let joined = merged(parts.into_iter());
            prop_assert_eq!(joined.len(), if gap { 2 } else { 1 });
            if !gap {
                prop_assert_eq!(&joined[0], &superpacket(true, &payload, segment, ACK | PSH, 100));
            }
        }

        #[test]
        fn whatever_a_device_says_nothing_breaks(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200), is_v4: bool, segment: u16,
            len in 0usize..400, at in 0usize..70, value: u8, kept in 0usize..500,
        ) {
            let mut packet = superpacket(is_v4, &vec![1; len], segment, ACK, 1);
            let at = at % packet.len();
            packet[at] = value;
            packet.truncate(kept);
            for read in [&mut bytes, &mut packet] {
                let Some((first, _)) = load(read) else { continue };
                let whole: usize = first.parts().map(|part| part.payload().len()).sum();
                prop_assert!(whole <= read.len());
                let mut group = None;
                for part in first.parts().take(70) {
                    let _ = part.to_vec();
                    match &mut group {
                        None => group = Group::new(1, part, true, NOW),
                        Some(group) => { group.add(&part, true, NOW); }
                    }
                }
                if let Some(group) = group {
                    group.assemble(|pieces| assert!(pieces.len() >= 3));
                }
            }
        }
    }

    #[test]
    fn a_mark_a_push_and_other_headers_end_what_is_joined() {
        let (first, _) =
            load(&mut superpacket(true, &[1; 3_000], 1_000, ACK | PSH, 0)).expect("a packet");
        let parts: Vec<Load> = first.parts().collect();
        let mut group = Group::new(1, parts[0].clone(), false, NOW).expect("data");
        assert!(!group.add(&parts[1], true, NOW), "the next is marked");
        assert!(!group.add(&parts[2], false, NOW), "the one between is missing");
        assert!(group.add(&parts[1], false, NOW) && group.add(&parts[2], false, NOW));
        let (next, _) =
            load(&mut superpacket(true, &[1; 1_000], 1_000, ACK, 3_000)).expect("a packet");
        assert!(!group.add(&next, false, NOW), "a push came before");
        let (alone, _) = load(&mut superpacket(true, &[], 1_000, ACK, 0)).expect("a packet");
        assert!(Group::new(1, alone, false, NOW).is_none(), "acknowledgements are not joined");
    }
}

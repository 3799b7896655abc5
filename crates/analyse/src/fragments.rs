//! Fragments of IP: the length of a packet is known with its last fragment.
//!
//! Sources: RFC 791 §3.2, RFC 8200 §4.5. Only lengths are put together: the headers are in the first fragment.

use crate::packet::{Content, FragmentKey, Packet, Part};

/// Packets of which some fragments are missing.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    open: Vec<Open>,
    /// Fragments that were given up, because the others did not come.
    lost: u64,
}

#[derive(Debug)]
struct Open {
    key: FragmentKey,
    first: Option<(Packet, u32)>,
    whole: Option<u32>,
    bytes: u32,
    count: u64,
}

impl Fragments {
    /// Processes a fragment, with its packet if it is the first. Returns the packet once all of it came.
    pub(crate) fn handle(&mut self, part: Part, first: Option<Packet>) -> Option<Packet> {
        let place = self.open.iter().position(|open| open.key == part.key);
        let place = place.unwrap_or_else(|| {
            if self.open.len() >= MOST_OPEN {
                self.lost += self.open.remove(0).count;
            }
            self.open.push(Open { key: part.key, first: None, whole: None, bytes: 0, count: 0 });
            self.open.len() - 1
        });
        let open = &mut self.open[place];
        open.count += 1;
        open.bytes = open.bytes.saturating_add(part.to - part.from);
        if let Some(packet) = first {
            open.first = Some((packet, part.to));
        }
        if part.is_last {
            open.whole = Some(part.to);
        }
        let (Some((packet, kept)), Some(whole)) = (open.first, open.whole) else { return None };
        if open.bytes < whole {
            return None;
        }
        self.open.remove(place);
        Some(lengthened(packet, whole.saturating_sub(kept)))
    }

    /// Fragments whose packet is not complete.
    pub(crate) fn incomplete(&self) -> u64 {
        self.lost + self.open.iter().map(|open| open.count).sum::<u64>()
    }
}

fn lengthened(mut packet: Packet, more: u32) -> Packet {
    match &mut packet.content {
        Content::Tcp(segment) => segment.payload = segment.payload.saturating_add(more),
        Content::Udp(datagram) => datagram.payload = datagram.payload.saturating_add(more),
    }
    packet
}

/// Packets that wait for fragments: most come at once.
const MOST_OPEN: usize = 64;

//! Copies of packets that a capture has more than once: of several interfaces, of both sides of a mirrored port, before and
//! after a router.
//!
//! A packet of IPv4 keeps its identification on its way, and a sender gives another one to a repetition (RFC 6864 §4.3 asks for
//! that within the lifetime of a packet). So the same identification with the same segment is the same packet, also if others
//! lie between. Where identifications are constant, or with IPv6, only what follows at once is a copy.

use crate::packet::{SYN, Segment};

/// The last packets of one end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    recent: Vec<Option<Seen>>,
    packets: u64,
    /// The last identification, and how often it stayed the same for another segment.
    last: Option<Seen>,
    constant: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    digest: u64,
    time: u64,
    id: u16,
}

impl Copies {
    /// Whether a packet is a copy of one before, by its identification and segment.
    pub(crate) fn contains(&mut self, time: u64, id: u16, segment: &Segment) -> bool {
        let digest = digest(id, segment);
        let seen = Seen { digest, time, id };
        self.packets += 1;
        let last = self.last.replace(seen);
        let is_same_next = last.is_some_and(|last| {
            let within = if id == 0 { AT_ONCE / 5 } else { AT_ONCE };
            last.digest == digest && time.abs_diff(last.time) < within
        });
        // Without an identification an acknowledgement that is repeated is one of its own.
        if is_same_next && (id != 0 || segment.payload > 0 || segment.has(SYN)) {
            return true;
        }
        self.constant += u64::from(last.is_some_and(|last| last.id == id && last.digest != digest));
        if id == 0 {
            return false;
        }
        self.grow();
        let place = place(id, self.recent.len());
        let before = self.recent[place].replace(seen);
        let says_something = self.constant * MOST_CONSTANT < self.packets;
        says_something
            && before.is_some_and(|before| {
                before.digest == digest && time.abs_diff(before.time) < LONGEST
            })
    }

    /// Bytes of memory that it takes, about.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(self.recent.as_slice())
    }

    /// A connection of few packets remembers few.
    fn grow(&mut self) {
        let len = self.recent.len();
        if len < MOST && self.packets >= len as u64 {
            let larger = if len == 0 { FEWEST } else { len * 4 };
            let before = std::mem::replace(&mut self.recent, vec![None; larger]);
            for seen in before.into_iter().flatten() {
                self.recent[place(seen.id, larger)] = Some(seen);
            }
        }
    }
}

/// The place of an identification among `len`, a power of two.
fn place(id: u16, len: usize) -> usize {
    usize::from(id) & (len - 1)
}

/// A number of what must be the same in a copy. What routers change is left out.
fn digest(id: u16, segment: &Segment) -> u64 {
    let (value, echo) = segment.timestamps.unwrap_or_default();
    let words = [
        u64::from(segment.seq) << 32 | u64::from(segment.ack),
        u64::from(value) << 32 | u64::from(echo),
        u64::from(segment.payload) << 32 | u64::from(id) << 16 | u64::from(segment.window),
        u64::from(segment.flags),
        segment
            .sack
            .iter()
            .fold(0, |sum, (left, right)| sum ^ (u64::from(left) << 32 | u64::from(right))),
    ];
    words.iter().fold(SEED, |hash: u64, word| (hash.rotate_left(5) ^ word).wrapping_mul(SEED))
}

/// Fowler's multiplier for 64 bits: odd, with bits all over.
const SEED: u64 = 0x517c_c1b7_2722_0a95;
/// Within this time the same packet is not sent again.
const AT_ONCE: u64 = 1_000_000;
/// A copy before and after the queue of a router.
const LONGEST: u64 = 2_000_000_000;
/// One packet of this number may have the identification of the one before.
const MOST_CONSTANT: u64 = 8;
const FEWEST: usize = 64;
const MOST: usize = 1_024;

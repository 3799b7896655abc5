//! What a sender has in flight, from its log: packets by number, and the amount that it reports.

use std::collections::BTreeMap;

/// The space of packet numbers (RFC 9000 §12.3), and the number.
pub(crate) type Number = (u8, u64);

/// Packets that are neither acknowledged nor lost, and lost ones that may still be acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    sent: BTreeMap<Number, Sent>,
    lost: BTreeMap<Number, Sent>,
    bytes: u64,
}

/// A packet that must be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) time: u64,
    /// Bytes that count as in flight.
    pub(crate) size: u64,
    /// Bytes of data.
    pub(crate) data: u64,
    pub(crate) place: i64,
    /// Its place in the list of packets (see `Passed`).
    pub(crate) index: u32,
}

impl Flight {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet. If there are too many, the first one is forgotten.
    pub(crate) fn send(&mut self, number: Number, sent: Sent) {
        self.bytes = self.bytes.saturating_add(sent.size);
        self.sent.insert(number, sent);
        if self.sent.len() > MOST {
            self.sent.pop_first();
        }
    }

    /// The sender reports its bytes in flight. Returns how many left since the last event.
    pub(crate) fn report(&mut self, bytes: u64) -> u64 {
        let left = self.bytes.saturating_sub(bytes);
        self.bytes = bytes;
        left
    }

    /// Removes the packets of `space` with these numbers, lost ones with `true`, and passes them in order.
    pub(crate) fn acknowledge(
        &mut self,
        space: u8,
        (first, last): (u64, u64),
        mut acked: impl FnMut(&Sent, bool),
    ) {
        if first > last {
            return;
        }
        let range = (space, first)..=(space, last);
        for (list, is_lost) in [(&mut self.sent, false), (&mut self.lost, true)] {
            while let Some((number, sent)) =
                list.range(range.clone()).next().map(|(number, sent)| (*number, *sent))
            {
                list.remove(&number);
                if !is_lost {
                    self.bytes = self.bytes.saturating_sub(sent.size);
                }
                acked(&sent, is_lost);
            }
        }
    }

    /// The sender regards a packet as lost.
    pub(crate) fn declare_lost(&mut self, number: Number) -> Option<Sent> {
        let sent = self.sent.remove(&number)?;
        self.bytes = self.bytes.saturating_sub(sent.size);
        self.lost.insert(number, sent);
        if self.lost.len() > MOST {
            self.lost.pop_first();
        }
        Some(sent)
    }
}

/// Packets of each list.
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(size: u64) -> Sent {
        Sent { time: 0, size, data: size, place: 0, index: 0 }
    }

    #[test]
    fn a_lost_packet_that_is_acknowledged_was_not_lost() {
        let mut flight = Flight::default();
        (0..4).for_each(|number| flight.send((0, number), sent(100)));
        flight.declare_lost((0, 1)).expect("it is in flight");
        let mut seen = Vec::new();
        flight.acknowledge(0, (0, 2), |_, is_lost| seen.push(is_lost));
        assert_eq!((seen, flight.bytes()), (vec![false, false, true], 100));
    }

    #[test]
    fn a_report_replaces_the_sum() {
        let mut flight = Flight::default();
        flight.send((0, 0), sent(1_000));
        assert_eq!((flight.report(300), flight.bytes()), (700, 300));
    }
}

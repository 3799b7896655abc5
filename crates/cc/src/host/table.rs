//! Packets in flight, for hosts that keep nothing of a controller with a packet.

use std::collections::VecDeque;

use weir_units::{Bytes, Instant};

use super::SentPacket;

/// Packets in flight, in the order in which they were sent.
///
/// A host identifies a packet by its number, by the time at which it was sent, or by both. QUIC has a number space per
/// encryption level, so that numbers repeat during the handshake. A batch is one entry.
///
/// ```
/// use weir_cc::CcConfig;
/// use weir_cc::host::{HostedController, SentPackets};
/// use weir_units::{Bytes, Duration, Instant, stream};
///
/// let (mss, now) = (Bytes(1_200), Instant::ZERO);
/// let mut cc = HostedController::new(CcConfig::Reno.build(mss, mss * 10)?, mss, stream(1, "controller"));
/// let mut table = SentPackets::default();
/// table.push(7, cc.on_sent(now, mss));
/// table.push(9, cc.on_sent(now + Duration::from_millis(1), mss * 2));
/// assert!(table.take(|number, _| number == 8, mss).is_none());
/// assert_eq!(table.take(|number, _| number == 7, mss).unwrap().sent_at(), now);
/// let batch = table.take(|_, packet| packet.sent_at() > now, mss).unwrap();
/// assert_eq!((batch.size(), table.bytes()), (mss * 2, mss), "half of the batch is still in flight");
/// # Ok::<(), weir_cc::CcBuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SentPackets {
    entries: VecDeque<Entry>,
    bytes: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    packet: SentPacket,
    /// Bytes of it still in flight.
    left: Bytes,
}

impl SentPackets {
    /// Adds a packet that is sent now. A batch has the number of its last packet.
    pub fn push(&mut self, number: u64, packet: SentPacket) {
        self.bytes += packet.size();
        self.entries.push_back(Entry { number, packet, left: packet.size() });
    }

    /// Removes `bytes` of the oldest packet that `matches` by its number and itself.
    pub fn take(
        &mut self,
        matches: impl Fn(u64, &SentPacket) -> bool,
        bytes: Bytes,
    ) -> Option<SentPacket> {
        let is_it = |entry: &Entry| matches(entry.number, &entry.packet);
        let index = self.entries.iter().position(is_it)?;
        Some(self.remove(index, bytes))
    }

    /// Removes up to `bytes` of the oldest packet, if it was sent at `latest` or before. Returns it, with what was
    /// removed.
    ///
    /// Packets are lost from the oldest on: what was sent before a lost packet is lost or acknowledged, by the packet
    /// threshold as by the time threshold (RFC 9002 §6.1).
    pub fn take_oldest(&mut self, latest: Instant, bytes: Bytes) -> Option<(SentPacket, Bytes)> {
        let entry = self.entries.front()?;
        let taken = entry.left.min(bytes);
        let due = entry.packet.sent_at() <= latest && taken > Bytes::ZERO;
        due.then(|| (self.remove(0, taken), taken))
    }

    /// Removes packets whose end the host did not report until `in_flight` bytes remain: the oldest that fit, sent at
    /// `latest` or before. Returns their bytes.
    pub fn trim(&mut self, in_flight: Bytes, latest: Instant) -> Bytes {
        let before = self.bytes;
        let mut index = 0;
        while self.bytes > in_flight {
            let Some(entry) = self.entries.get(index) else { break };
            if entry.packet.sent_at() > latest {
                break;
            }
            if entry.left <= self.bytes - in_flight {
                self.remove(index, entry.left);
            } else {
                index += 1;
            }
        }
        before - self.bytes
    }

    /// Bytes in flight.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    fn remove(&mut self, index: usize, bytes: Bytes) -> SentPacket {
        let entry = &mut self.entries[index];
        let bytes = bytes.min(entry.left);
        entry.left -= bytes;
        self.bytes -= bytes;
        let packet = entry.packet;
        if entry.left == Bytes::ZERO {
            self.entries.remove(index);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Duration, stream};

    use super::*;
    use crate::CcConfig;
    use crate::host::HostedController;

    const MSS: Bytes = Bytes(1_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Packets of these sizes, sent a millisecond apart, with their index as number.
    fn table(sizes: &[u64]) -> SentPackets {
        let cc = CcConfig::Reno.build(MSS, MSS * 10).unwrap();
        let mut cc = HostedController::new(cc, MSS, stream(1, "controller"));
        let mut table = SentPackets::default();
        for (number, size) in (0..).zip(sizes) {
            table.push(number, cc.on_sent(at(number), Bytes(*size)));
        }
        table
    }

    fn numbers(table: &SentPackets) -> Vec<u64> {
        table.entries.iter().map(|entry| entry.number).collect()
    }

    #[test]
    fn what_the_host_did_not_report_is_found_by_its_size() {
        // A packet that only acknowledged, behind a data packet that is still in flight.
        let mut table = table(&[1_000, 40, 1_000, 40]);
        assert_eq!(table.trim(Bytes(2_000), at(2)), Bytes(40));
        assert_eq!(numbers(&table), [0, 2, 3], "number 3 is newer than what is acknowledged");
        assert_eq!(table.trim(Bytes(5_000), at(9)), Bytes::ZERO);
    }

    #[test]
    fn the_oldest_is_lost_first_and_in_parts() {
        let mut table = table(&[1_000, 1_000]);
        let lost = |found: Option<(SentPacket, Bytes)>| {
            found.map(|(packet, bytes)| (packet.sent_at(), bytes))
        };
        assert_eq!(lost(table.take_oldest(at(0), Bytes(1_500))), Some((at(0), MSS)));
        assert_eq!(lost(table.take_oldest(at(0), Bytes(500))), None, "it was sent later");
        assert_eq!(lost(table.take_oldest(at(1), Bytes(500))), Some((at(1), Bytes(500))));
        assert_eq!((table.bytes(), numbers(&table)), (Bytes(500), vec![1]));
        assert_eq!(lost(table.take_oldest(at(1), Bytes::ZERO)), None);
    }
}

//! What a radio node counts.

use std::ops::AddAssign;

use weir_units::{Duration, Instant};

use super::datagram::DropReason;
use weir_net::feedback::Occupancy;

/// What one node, or a whole network, has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStats {
    /// Requests to send.
    pub rts: u64,
    /// Clearances.
    pub cts: u64,
    /// Data frames to one neighbour, repeats included.
    pub data: u64,
    /// Acknowledgements.
    pub acks: u64,
    /// Data frames to all neighbours.
    pub broadcasts: u64,
    /// The time of all these.
    pub airtime: Duration,
    /// Frames to one neighbour that it could not read.
    pub lost: u64,
    /// Receptions that ended with more than one frame lost.
    pub collisions: u64,
    /// RTS, and data frames without one, without an answer.
    pub short_retries: u64,
    /// Data frames behind a CTS without an ACK.
    pub long_retries: u64,
    /// Data frames that arrived again, their acknowledgement lost.
    pub duplicates: u64,
    /// Packets that the MAC took for lost though the neighbour has them: from there on there are two.
    pub copies: u64,
    /// Packets of flows that went no further, by reason: see [`Self::dropped`].
    parcels: [u64; DropReason::ALL.len()],
    /// Messages of routing protocols that went no further.
    messages: [u64; DropReason::ALL.len()],
    /// The longest interface queue.
    pub queue_peak: u64,
    /// Packets of flows that RED marked.
    pub marks: u64,
    /// How long the medium was busy, as the node sees it: sensed, reserved or used by itself.
    pub medium_busy: Duration,
    /// How long the MAC had a packet to send.
    pub service_busy: Duration,
}

/// What was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketClass {
    /// A flow's packet.
    Parcel,
    /// A routing protocol's.
    Message,
}

impl DropReason {
    /// All of them, in their order.
    pub const ALL: [Self; 7] = [
        Self::QueueFull,
        Self::MacRetries,
        Self::Arp,
        Self::NoRoute,
        Self::TtlExpired,
        Self::BufferFull,
        Self::FrameError,
    ];
}

impl RadioStats {
    /// How many were dropped for this reason.
    pub fn dropped(&self, cargo: PacketClass, reason: DropReason) -> u64 {
        match cargo {
            PacketClass::Parcel => self.parcels[reason as usize],
            PacketClass::Message => self.messages[reason as usize],
        }
    }

    /// All frames sent.
    pub fn frames(&self) -> u64 {
        self.rts + self.cts + self.data + self.acks + self.broadcasts
    }

    pub(super) fn count_drop(&mut self, cargo: PacketClass, reason: DropReason) {
        match cargo {
            PacketClass::Parcel => self.parcels[reason as usize] += 1,
            PacketClass::Message => self.messages[reason as usize] += 1,
        }
    }
}

impl AddAssign for RadioStats {
    fn add_assign(&mut self, other: Self) {
        self.rts += other.rts;
        self.cts += other.cts;
        self.data += other.data;
        self.acks += other.acks;
        self.broadcasts += other.broadcasts;
        self.airtime += other.airtime;
        self.lost += other.lost;
        self.collisions += other.collisions;
        self.short_retries += other.short_retries;
        self.long_retries += other.long_retries;
        self.duplicates += other.duplicates;
        self.copies += other.copies;
        for (own, more) in self.parcels.iter_mut().zip(other.parcels) {
            *own += more;
        }
        for (own, more) in self.messages.iter_mut().zip(other.messages) {
            *own += more;
        }
        self.queue_peak = self.queue_peak.max(other.queue_peak);
        self.marks += other.marks;
        self.medium_busy += other.medium_busy;
        self.service_busy += other.service_busy;
    }
}

/// The union of overlapping intervals, each known when it begins: how long a medium was busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    until: Instant,
    total: Duration,
    /// The last reported state.
    reported: Reported,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reported {
    #[default]
    Idle,
    Busy,
}

impl BusyTime {
    /// It is busy from `now` to `until` at least.
    pub(super) fn occupy(
        &mut self,
        now: Instant,
        until: Instant,
        mut notify: impl FnMut(Instant, Occupancy),
    ) {
        self.settle(now, &mut notify);
        if until <= self.until.max(now) {
            return;
        }
        if self.reported == Reported::Idle {
            self.reported = Reported::Busy;
            notify(now, Occupancy::Busy);
        }
        self.total += until - self.until.max(now);
        self.until = until;
    }

    /// Reports the end of the busy period if it is before `now`.
    pub(super) fn settle(&mut self, now: Instant, mut notify: impl FnMut(Instant, Occupancy)) {
        if self.reported == Reported::Busy && self.until < now {
            self.reported = Reported::Idle;
            notify(self.until, Occupancy::Idle);
        }
    }

    /// For how long it has been busy by `now`.
    pub(super) fn total(&self, now: Instant) -> Duration {
        self.total.saturating_sub(self.until.saturating_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_count_once_and_gaps_are_reported() {
        let at = |micros: u64| Instant::from_nanos(micros * 1_000);
        let mut reported = Vec::new();
        let mut busy = BusyTime::default();
        for (from, until) in [(10, 30), (20, 40), (25, 35), (40, 50), (60, 70)] {
            busy.occupy(at(from), at(until), |time, state| {
                reported.push((time.as_micros(), state))
            });
        }
        busy.settle(at(80), |time, state| reported.push((time.as_micros(), state)));
        let (on, off) = (Occupancy::Busy, Occupancy::Idle);
        assert_eq!(reported, [(10, on), (50, off), (60, on), (70, off)]);
        assert_eq!(busy.total(at(65)), Duration::from_micros(45));
        assert_eq!(busy.total(at(80)), Duration::from_micros(50));
    }

    #[test]
    fn every_reason_has_its_own_counter() {
        let mut stats = RadioStats::default();
        for (number, reason) in DropReason::ALL.into_iter().enumerate() {
            (0..=number).for_each(|_| stats.count_drop(PacketClass::Parcel, reason));
        }
        for (number, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(stats.dropped(PacketClass::Parcel, reason), number as u64 + 1);
            assert_eq!(stats.dropped(PacketClass::Message, reason), 0);
        }
    }
}

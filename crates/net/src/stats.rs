//! What a link counts.

use std::ops::Add;

use weir_units::{Bytes, Duration};

/// Parcels and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Parcels.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Why a parcel did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropCause {
    /// The queue was full.
    Queue,
    /// The switch had no memory left for this port.
    Buffer,
    /// A queue discipline chose to drop it.
    Aqm,
    /// Beyond what a policer lets through.
    Policer,
    /// Lost on the way: random loss or a drop list.
    Loss,
    /// Longer than the link's MTU.
    Mtu,
}

/// A link's counters up to an instant. All but the peaks only grow, so two of them subtracted give
/// an interval: see [`Stats::since`]. First what every parcel changes, so that it shares cache lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Everything offered to the link.
    pub offered: Tally,
    /// What the server sent, the parcel that it is sending included.
    pub served: Tally,
    /// What came out at the far end.
    pub delivered: Tally,
    /// How long the server has been sending. A link that replays a trace sends in no time at its
    /// opportunities: there compare the bytes with [`crate::Link::capacity`].
    pub busy: Duration,
    /// The largest backlog (waiting and in service) in parcels.
    pub max_packets: u64,
    /// The largest backlog (waiting and in service) in bytes.
    pub max_bytes: u64,
    /// Copies that the link made itself.
    pub duplicated: Tally,
    /// Refused by a full queue.
    pub dropped_queue: Tally,
    /// Refused because the switch had no memory left for this port.
    pub dropped_buffer: Tally,
    /// Dropped by a queue discipline.
    pub dropped_aqm: Tally,
    /// Dropped by a policer.
    pub dropped_policer: Tally,
    /// Lost at random or by a list.
    pub dropped_loss: Tally,
    /// Longer than the MTU.
    pub dropped_mtu: Tally,
    /// Parcels that the queue marked (ECN).
    pub marked: u64,
    /// Damaged parcels.
    pub corrupted: u64,
    /// Parcels that a later one overtook on the wire.
    pub reordered: u64,
    /// The backlog in parcels (waiting and in service) integrated over time, in nanoseconds:
    /// divided by a span it is the time-weighted mean.
    pub packet_nanos: u128,
}

impl Stats {
    /// What happened after `earlier`; the peaks stay those of the later one.
    ///
    /// ```
    /// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
    /// # use packet::Packet;
    /// use weir_net::{Link, LinkConfig};
    /// use weir_units::{Instant, stream};
    ///
    /// let mut link = Link::new(&LinkConfig::default(), |purpose| stream(1, purpose))?;
    /// link.offer(Instant::ZERO, Packet::new(1_500));
    /// let before = link.stats(Instant::ZERO);
    /// link.offer(Instant::ZERO, Packet::new(500));
    /// assert_eq!(link.stats(Instant::ZERO).since(&before).offered.bytes, 500);
    /// # Ok::<(), weir_net::ConfigError>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            offered: self.offered.since(earlier.offered),
            duplicated: self.duplicated.since(earlier.duplicated),
            served: self.served.since(earlier.served),
            delivered: self.delivered.since(earlier.delivered),
            dropped_queue: self.dropped_queue.since(earlier.dropped_queue),
            dropped_buffer: self.dropped_buffer.since(earlier.dropped_buffer),
            dropped_aqm: self.dropped_aqm.since(earlier.dropped_aqm),
            dropped_policer: self.dropped_policer.since(earlier.dropped_policer),
            dropped_loss: self.dropped_loss.since(earlier.dropped_loss),
            dropped_mtu: self.dropped_mtu.since(earlier.dropped_mtu),
            marked: self.marked - earlier.marked,
            corrupted: self.corrupted - earlier.corrupted,
            reordered: self.reordered - earlier.reordered,
            max_packets: self.max_packets,
            max_bytes: self.max_bytes,
            packet_nanos: self.packet_nanos - earlier.packet_nanos,
            busy: self.busy - earlier.busy,
        }
    }

    /// Everything dropped, whatever the cause.
    pub fn dropped(&self) -> Tally {
        self.dropped_by_queue() + self.dropped_loss + self.dropped_mtu
    }

    /// Everything that the queue, its discipline, the switch's memory or a policer dropped.
    pub fn dropped_by_queue(&self) -> Tally {
        let full = self.dropped_queue + self.dropped_buffer;
        full + self.dropped_aqm + self.dropped_policer
    }

    /// The time-weighted mean backlog in parcels, if this covers `span`.
    pub fn mean_packets(&self, span: Duration) -> f64 {
        self.packet_nanos as f64 / span.as_nanos() as f64
    }

    pub(crate) fn count_drop(&mut self, cause: DropCause, len: Bytes) {
        let tally = match cause {
            DropCause::Queue => &mut self.dropped_queue,
            DropCause::Buffer => &mut self.dropped_buffer,
            DropCause::Aqm => &mut self.dropped_aqm,
            DropCause::Policer => &mut self.dropped_policer,
            DropCause::Loss => &mut self.dropped_loss,
            DropCause::Mtu => &mut self.dropped_mtu,
        };
        tally.count(len);
    }
}

impl Tally {
    #[inline]
    pub(crate) fn count(&mut self, len: Bytes) {
        self.packets += 1;
        self.bytes += len.get();
    }

    fn since(self, earlier: Self) -> Self {
        Self { packets: self.packets - earlier.packets, bytes: self.bytes - earlier.bytes }
    }
}

impl Add for Tally {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

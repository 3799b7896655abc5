//! A path in real time: reports to its driver what it did, and how late.

use weir_net::ConfigError;
use weir_scene::Direction;
use weir_trace::Histogram;
use weir_units::{Bytes, Instant};

use super::health::{DirectionReport, UnintendedLoss};
use super::packet::Header;
use super::path::{Arrival, HostedLink, Path, Route};

/// A path with counters per direction.
#[derive(Debug)]
pub struct Host {
    path: Path,
    /// The links that only one direction crosses: what they did, that direction did.
    own_links: [Vec<usize>; 2],
    meters: [Meter; 2],
}

#[derive(Clone, Debug, Default)]
struct Meter {
    received: u64,
    received_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    unintended: UnintendedLoss,
    lateness: Histogram,
}

impl Host {
    /// Hosts `links`, with one route over them.
    ///
    /// # Errors
    /// If a link cannot be as it is described.
    pub fn new(links: &[HostedLink], route: Route, seed: u64) -> Result<Self, ConfigError> {
        let only = |mine: &[usize], other: &[usize]| {
            mine.iter().copied().filter(|link| !other.contains(link)).collect()
        };
        let own_links = [only(&route.up, &route.down), only(&route.down, &route.up)];
        let path = Path::new(links, vec![route], MEMORY, seed)?;
        Ok(Self { path, own_links, meters: Default::default() })
    }

    /// From now on corruption flips 1 to `corrupt_bits` bits of a packet, instead of one.
    pub fn set_corrupt_bits(&mut self, corrupt_bits: u8) {
        self.path.set_corrupt_bits(corrupt_bits);
    }

    /// Puts a packet in that arrived at `now`.
    pub fn offer(&mut self, now: Instant, header: Header, bytes: &[u8]) {
        let meter = &mut self.meters[header.direction as usize];
        meter.received += 1;
        meter.received_bytes += bytes.len() as u64;
        if self.path.offer(now, header, bytes).is_err() {
            meter.unintended.memory_full += 1;
        }
    }

    /// The next packet that is due by `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Arrival> {
        self.path.poll(now)
    }

    /// When the next packet may be due.
    pub fn next_time(&self) -> Option<Instant> {
        self.path.next_time()
    }

    /// Takes note of a packet of `len` bytes that was due at `due` and left at `now`.
    pub fn on_sent(&mut self, direction: Direction, len: usize, due: Instant, now: Instant) {
        let meter = &mut self.meters[direction as usize];
        meter.sent += 1;
        meter.sent_bytes += len as u64;
        meter.lateness.record(now.saturating_since(due));
    }

    /// Counters of unconfigured losses of a direction.
    pub fn unintended(&mut self, direction: Direction) -> &mut UnintendedLoss {
        &mut self.meters[direction as usize].unintended
    }

    /// The counters of a direction up to `now`.
    pub fn report(&mut self, now: Instant, direction: Direction) -> DirectionReport {
        let drops = self.path.drops(now, direction);
        let meter = &self.meters[direction as usize];
        let mut report = DirectionReport {
            received: meter.received,
            received_bytes: meter.received_bytes,
            sent: meter.sent,
            sent_bytes: meter.sent_bytes,
            lost: drops.loss,
            queue_dropped: drops.queue,
            too_long: drops.mtu,
            feedback: self.path.feedback(now, direction),
            unintended: meter.unintended,
            lateness: meter.lateness.spread(),
            ..DirectionReport::default()
        };
        for link in &self.own_links[direction as usize] {
            report.queued += self.path.queued(now, *link);
            let stats = self.path.stats(now, *link);
            report.duplicated += stats.duplicated.packets;
            report.corrupted += stats.corrupted;
            report.reordered += stats.reordered;
            report.marked += stats.marked;
        }
        report
    }
}

/// What a host holds at most: 10 Gbit/s for 200 ms.
pub(crate) const MEMORY: Bytes = Bytes(256 << 20);

//! A link: a queue, a server that empties it, and a wire.
//!
//! Service is lazy. A link that nobody touches does nothing; when it is touched, it catches up on all
//! that happened since, each dequeue at its exact time. So the world needs one pending event per
//! link, the next delivery, and how often a link is touched changes nothing that comes out of it.

use weir_units::{Bytes, Duration, Instant, Rng};

use crate::config::{ConfigError, LinkConfig, QueueConfig};
use crate::droptail::DropTail;
use crate::parcel::Parcel;
use crate::queue::{AnyQueue, Backlog, Dropped, Queue};
use crate::schedule::Schedule;
use crate::server::Server;
use crate::stats::{DropCause, Stats};
use crate::wire::{InFlight, Wire};

/// A one-way link, or a relay that two directions share.
#[derive(Clone, Debug)]
pub struct Link<P> {
    queue: AnyQueue<P>,
    server: Server,
    wire: Wire<P>,
    delay: Schedule<Duration>,
    mtu: Bytes,
    /// The end of the service in progress, or of the last one.
    busy_until: Instant,
    /// The length of the parcel whose service ends at `busy_until`.
    serving: Bytes,
    /// When the server next takes a parcel, if one waits.
    next_start: Instant,
    /// The latest arrival on the wire among parcels that keep their order.
    last_arrival: Instant,
    /// Sum of service ends minus sum of arrivals, over the parcels that the queue took in; wraps.
    residence: u128,
    stats: Stats,
    dropped: Vec<Dropped<P>>,
}

/// A parcel at the far end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The parcel.
    pub parcel: P,
    /// How long it waited from its arrival to the start of its service. Already added to the
    /// parcel's own record.
    pub sojourn: Duration,
}

impl<P: Parcel + Clone> Link<P> {
    /// An empty link. `stream` gives the random stream for each purpose (`"loss"`, `"jitter"`, ...);
    /// it is asked only for those that are used.
    pub fn new(
        config: &LinkConfig,
        _stream: impl FnMut(&'static str) -> Rng,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let QueueConfig::DropTail(queue) = config.queue;
        Ok(Self {
            queue: AnyQueue::DropTail(DropTail::new(queue)),
            server: Server::new(&config.service),
            wire: Wire::new(),
            delay: config.delay.clone(),
            mtu: config.mtu.unwrap_or(Bytes::MAX),
            busy_until: Instant::ZERO,
            serving: Bytes::ZERO,
            next_start: Instant::ZERO,
            last_arrival: Instant::ZERO,
            residence: 0,
            stats: Stats::default(),
            dropped: Vec::new(),
        })
    }

    /// Puts `parcel` in at `now`. Times must not decrease from call to call.
    #[inline]
    pub fn offer(&mut self, now: Instant, parcel: P) {
        self.advance(now);
        self.stats.offered.count(parcel.len());
        if parcel.len() > self.mtu {
            self.drop_parcel(&parcel, DropCause::Mtu);
            return;
        }
        self.admit(now, parcel);
    }

    /// The next parcel that has arrived at the far end by `now`; call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Delivery<P>> {
        self.advance(now);
        let InFlight { parcel, sojourn, .. } = self.wire.pop(now)?;
        self.stats.delivered.count(parcel.len());
        Some(Delivery { parcel, sojourn })
    }

    /// When the link must be polled next: the next delivery, or (where a server waits for its
    /// opportunity, or where parcels overtake) a moment before at which nothing may come out.
    #[inline]
    pub fn next_time(&self) -> Option<Instant> {
        let next = match self.wire.next_arrival() {
            Some(arrival) => arrival,
            None if self.queue.is_empty() => return None,
            None => self.next_start,
        };
        (next != Instant::MAX).then_some(next)
    }

    /// Catches up with `now`: every service that begins by then does.
    #[inline]
    pub fn advance(&mut self, now: Instant) {
        while self.next_start <= now && !self.queue.is_empty() {
            let start = self.next_start;
            let head = self.queue.dequeue(start, &mut self.dropped);
            self.settle_drops(start);
            match head {
                Some(head) => {
                    let sojourn = head.sojourn(start);
                    self.start_service(start, sojourn, head.parcel);
                }
                None => return,
            }
        }
    }

    /// What waits or is being sent at `now`.
    pub fn backlog(&mut self, now: Instant) -> Backlog {
        self.advance(now);
        let (waiting, serving) = (self.queue.backlog(), self.in_service(now));
        Backlog { packets: waiting.packets + serving.packets, bytes: waiting.bytes + serving.bytes }
    }

    /// The counters up to `now`.
    pub fn stats(&mut self, now: Instant) -> Stats {
        self.advance(now);
        let ahead = self.busy_until.saturating_since(now);
        let waiting = u128::from(self.queue.backlog().packets);
        let mut stats = self.stats;
        stats.busy -= ahead;
        stats.packet_nanos = self
            .residence
            .wrapping_add(waiting * u128::from(now.as_nanos()))
            .wrapping_sub(u128::from(ahead.as_nanos()));
        stats
    }

    /// Forgets the peaks of the backlog: a measured interval begins.
    pub fn restart_peaks(&mut self, now: Instant) {
        let backlog = self.backlog(now);
        self.stats.max_packets = backlog.packets;
        self.stats.max_bytes = backlog.bytes.get();
    }

    /// The bytes that the server could have sent between two times; `None` if it has no rate.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.capacity(from, to)
    }

    fn admit(&mut self, now: Instant, parcel: P) {
        let idle = self.busy_until <= now && self.queue.is_empty();
        if idle {
            self.next_start = self.server.ready_at(now);
        }
        if idle && self.next_start == now {
            let passed = self.queue.pass(now, parcel, &mut self.dropped);
            self.residence = self.residence.wrapping_sub(u128::from(now.as_nanos()));
            if let Some(parcel) = passed {
                self.start_service(now, Duration::ZERO, parcel);
            }
        } else {
            let in_service = self.in_service(now);
            self.residence = self.residence.wrapping_sub(u128::from(now.as_nanos()));
            self.queue.enqueue(now, parcel, in_service, &mut self.dropped);
        }
        self.settle_drops(now);
        self.note_peaks(now);
    }

    #[inline]
    fn start_service(&mut self, start: Instant, sojourn: Duration, mut parcel: P) {
        parcel.add_queue_delay(sojourn);
        let done = self.server.serve(start, &parcel);
        self.busy_until = done;
        self.serving = parcel.len();
        self.next_start = self.server.ready_at(done);
        self.stats.served.count(parcel.len());
        self.stats.busy += done - start;
        self.residence = self.residence.wrapping_add(u128::from(done.as_nanos()));
        let delay = if self.delay.is_constant() { self.delay.initial } else { self.delay.at(done) };
        let arrival = done.saturating_add(delay).max(self.last_arrival);
        self.last_arrival = arrival;
        self.wire.push(InFlight { arrival, sojourn, overtaken: false, parcel });
    }

    #[inline]
    fn in_service(&self, now: Instant) -> Backlog {
        if self.busy_until > now {
            Backlog { packets: 1, bytes: self.serving }
        } else {
            Backlog::default()
        }
    }

    #[inline]
    fn note_peaks(&mut self, now: Instant) {
        let (waiting, serving) = (self.queue.backlog(), self.in_service(now));
        self.stats.max_packets = self.stats.max_packets.max(waiting.packets + serving.packets);
        self.stats.max_bytes = self.stats.max_bytes.max(waiting.bytes.get() + serving.bytes.get());
    }

    #[inline]
    fn settle_drops(&mut self, now: Instant) {
        while let Some(Dropped { parcel, cause }) = self.dropped.pop() {
            self.residence = self.residence.wrapping_add(u128::from(now.as_nanos()));
            self.drop_parcel(&parcel, cause);
        }
    }

    fn drop_parcel(&mut self, parcel: &P, cause: DropCause) {
        self.stats.count_drop(cause, parcel.len());
    }
}

#[cfg(test)]
mod tests;

//! A link: a queue, a server that empties it, and a wire.
//!
//! Service is lazy. An untouched link does nothing; when it is touched, it catches up on all
//! that happened since, each dequeue at its exact time. So the world needs one pending event per
//! link, the next delivery, and how often a link is touched changes nothing that comes out of it.

mod any_queue;
mod departure;
mod pause;

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use self::any_queue::AnyQueue;
use self::departure::Departure;
use crate::config::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::droplog::{DropLog, DropRecord};
use crate::error::ConfigError;
use crate::feedback::{FeedbackAgent, Occupancy, Signal};
use crate::impair::{Fate, Ingress};
use crate::jitter::{Disorder, Flight};
use crate::parcel::Parcel;
use crate::queue::{Backlog, Dropped, Queue};
use crate::schedule::Schedule;
use crate::server::Server;
use crate::stats::{DropCause, Stats, Tally};
use crate::wire::{InFlight, Wire};

/// A one-way link, or a relay that two directions share.
///
/// ```
/// # mod packet { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/packet.rs")); }
/// # use packet::Packet;
/// use weir_net::{Link, LinkConfig};
/// use weir_units::{Bytes, Duration, Instant, Rate, stream};
///
/// let config = LinkConfig::new(Rate::from_mbit(12), Duration::ZERO);
/// let mut link = Link::new(&config, |purpose| stream(1, purpose))?;
/// for _ in 0..10 {
///     link.offer(Instant::ZERO, Packet::new(1_500));
/// }
/// let now = Instant::ZERO + Duration::from_millis(4);
/// assert_eq!(link.backlog(now).packets, 6, "four have left, the fifth is in service");
/// let deliveries = std::iter::from_fn(|| link.poll(now)).count();
/// assert_eq!(deliveries, 4);
/// assert_eq!(link.stats(now).busy, Duration::from_millis(4));
/// # Ok::<(), weir_net::ConfigError>(())
/// ```
// In this order in memory: what every parcel reads comes first, on as few cache lines as it can.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link<P> {
    /// When the server next takes a parcel, if one waits.
    next_start: Instant,
    /// The end of the service in progress, or of the last one.
    busy_until: Instant,
    /// The length of the parcel whose service ends at `busy_until`.
    serving: Bytes,
    /// The latest arrival on the wire among parcels that keep their order.
    last_arrival: Instant,
    wire: Wire<P>,
    queue: AnyQueue<P>,
    /// Whether the queue holds a parcel. Kept because some disciplines take long to tell, and each call asks.
    waits: bool,
    /// Whether it is what most links are: a FIFO, a constant rate and a constant delay. Parcels then take a
    /// path that tests for nothing else. Not while it is paused.
    plain: bool,
    /// Whether the server takes no parcel until it is resumed.
    paused: bool,
    may_overtake: bool,
    departure: Departure,
    mtu: Bytes,
    /// What each parcel takes beyond its length.
    overhead: Bytes,
    ingress: Option<Box<Ingress>>,
    disorder: Option<Box<Disorder>>,
    /// Tells the senders of passing parcels what it sees.
    agent: Option<Box<FeedbackAgent>>,
    /// What the queue dropped in the step at hand; empty between steps.
    dropped: Vec<Dropped<P>>,
    /// Over the parcels that the queue was given: the sum of the times at which their service ends
    /// or they were dropped, minus the sum of their arrivals. Wraps.
    residence: u128,
    server: Server,
    delay: Schedule<Duration>,
    log: DropLog,
    /// [`Self::plain`] while it is not paused.
    plain_if_resumed: bool,
    stats: Stats,
}

/// The two ways through a link: that of a link that is [`Link::plain`], and that of all others.
const PLAIN: bool = true;
const ANY: bool = false;

/// A parcel at the far end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery<P> {
    /// The parcel.
    pub parcel: P,
    /// How long it waited from its arrival to the start of its service, or until a shaper let it go.
    /// Already added to the parcel's own record.
    pub sojourn: Duration,
}

/// A link whose counters do not add up: a bug of the model, never of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {found}")]
#[non_exhaustive]
pub struct Violation {
    /// What should hold.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

impl<P: Parcel + Clone> Link<P> {
    /// An empty link. `stream` gives the random stream of each purpose (`"loss"`, `"jitter"`, ...);
    /// it is asked only for what the configuration uses.
    pub fn new(
        config: &LinkConfig,
        mut stream: impl FnMut(&'static str) -> Rng,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let (jitter, reorder) = (config.impairments.jitter, config.impairments.reorder);
        let disorder = Disorder::new(jitter, reorder, &mut stream);
        let server = Server::new(&config.service);
        let mtu = config.mtu.unwrap_or(Bytes::MAX);
        let departure = Departure::new(config);
        let longest = match departure {
            Departure::AtEnd => server.burst().saturating_sub(config.overhead),
            Departure::Gradual | Departure::AtStart => mtu,
        };
        let ingress = config.impairments.ingress(&mut stream);
        let plain = server.is_steady()
            && departure == Departure::Gradual
            && config.delay.is_constant()
            && matches!(config.queue, QueueConfig::DropTail(_))
            && ingress.is_none()
            && disorder.is_none()
            && config.feedback.is_none();
        Ok(Self {
            plain,
            plain_if_resumed: plain,
            paused: false,
            ingress,
            queue: AnyQueue::new(config, &mut stream),
            waits: false,
            server,
            delay: config.delay.clone(),
            may_overtake: disorder.as_ref().is_some_and(|disorder| disorder.may_overtake()),
            disorder,
            agent: config.feedback.map(|feedback| {
                let rate = config.rate().unwrap_or_default();
                Box::new(feedback.agent(rate, stream("feedback")))
            }),
            wire: Wire::new(),
            departure,
            mtu: mtu.min(longest),
            overhead: config.overhead,
            busy_until: Instant::ZERO,
            serving: Bytes::ZERO,
            next_start: Instant::ZERO,
            last_arrival: Instant::ZERO,
            residence: 0,
            stats: Stats::default(),
            log: DropLog::new(0),
            dropped: Vec::new(),
        })
    }

    /// Keeps a record of each drop from now on, `capacity` at most between two calls of
    /// [`Self::drain_drops`].
    pub fn log_drops(&mut self, capacity: usize) {
        self.log = DropLog::new(capacity);
    }

    /// Puts `parcel` in at `now`. Times must not decrease from call to call.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, parcel: P) {
        self.advance(now);
        self.stats.offered.count(parcel.len());
        if parcel.len() > self.mtu {
            self.record_drop(now, &parcel, DropCause::Mtu);
        } else if self.plain {
            self.admit::<PLAIN>(now, parcel);
        } else {
            self.offer_unlike(now, parcel);
        }
    }

    /// Drops `parcel`, which was offered at `now`, because the switch has no memory left for this port.
    #[cold]
    pub fn refuse(&mut self, now: Instant, parcel: &P) {
        self.advance(now);
        self.stats.offered.count(parcel.len());
        self.record_drop(now, parcel, DropCause::Buffer);
    }

    /// The next parcel that has arrived at the far end by `now`; call until `None`.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant) -> Option<Delivery<P>> {
        self.advance(now);
        let InFlight { mut parcel, sojourn, .. } = self.wire.pop(now)?;
        // Here and not when it starts on its way: its memory is at hand now.
        parcel.add_queue_delay(sojourn);
        self.stats.delivered.count(parcel.len());
        Some(Delivery { parcel, sojourn })
    }

    /// When the link must be polled next: the next delivery, or a moment before it at which nothing
    /// may come out yet (a server waits for its opportunity; parcels may overtake each other).
    #[inline]
    pub fn next_time(&self) -> Option<Instant> {
        let arrival = self.wire.next_arrival();
        let waits = self.waits && (self.may_overtake || self.wire.is_empty());
        let next = if waits { arrival.min(self.next_start) } else { arrival };
        (next != Instant::MAX).then_some(next)
    }

    /// Catches up with `now`: every service that begins by then does.
    #[inline(always)]
    pub fn advance(&mut self, now: Instant) {
        if self.waits && self.next_start <= now {
            self.catch_up(now);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now: Instant) {
        while self.waits && self.next_start <= now {
            let start = self.next_start;
            let head = self.queue.take(start, &mut self.dropped);
            self.waits = !self.queue.is_empty();
            self.settle_drops(start);
            let Some((head, len)) = head else { continue };
            if self.plain {
                self.start_service::<PLAIN>(start, head.sojourn(start), head.parcel, len);
            } else {
                self.start_service::<ANY>(start, head.sojourn(start), head.parcel, len);
            }
        }
    }

    /// What waits or is being sent at `now`.
    pub fn backlog(&mut self, now: Instant) -> Backlog {
        self.advance(now);
        self.queue.backlog() + self.in_service(now)
    }

    /// The counters up to `now`.
    pub fn stats(&mut self, now: Instant) -> Stats {
        self.advance(now);
        let ahead = self.busy_until.saturating_since(now);
        let waiting = u128::from(self.queue.backlog().packets);
        let mut stats = self.stats;
        stats.marked = self.queue.marks();
        stats.busy -= ahead;
        let ahead = if self.departure == Departure::AtStart { Duration::ZERO } else { ahead };
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

    /// Whether there are drops in the log.
    #[inline]
    pub fn has_drops(&self) -> bool {
        !self.log.is_empty()
    }

    /// Takes the drops out of the log. Those of the queue may be recorded late, but carry their
    /// exact time.
    pub fn drain_drops(&mut self) -> impl Iterator<Item = DropRecord> + '_ {
        self.log.drain()
    }

    /// The end of the service in progress, or of the last one.
    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }

    /// Whether all parcels come out in the order in which they went in.
    pub fn keeps_order(&self) -> bool {
        !self.may_overtake && self.queue.is_fifo()
    }

    /// The bytes that have left the server by `now`, overhead included; of the parcel in service those
    /// that are through, or for which a shaper that lets it go at once has had the time.
    pub fn sent(&mut self, now: Instant) -> Bytes {
        self.advance(now);
        self.taken() - self.unsent(now)
    }

    /// The bytes that the server's rate allows in `from .. to`; `None` if it has no rate.
    pub fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        self.server.capacity(from, to)
    }

    /// What a parcel of `len` bytes takes at the rate of `now`; `None` if there is none, or a blackout.
    pub fn time_of(&self, now: Instant, len: Bytes) -> Option<Duration> {
        let rate = self.server.rate()?.at(now);
        (rate > Rate::ZERO).then(|| rate.transmit_time(len + self.overhead, &mut 0))
    }

    /// How many parcels a policer has dropped.
    pub fn policed(&self) -> u64 {
        self.stats.dropped_policer.packets
    }

    /// How many bytes may be sent at once, beyond what [`Self::capacity`] says.
    pub fn burst(&self) -> Bytes {
        self.server.burst()
    }

    /// How many of these are left at `now`.
    pub fn ready(&self, now: Instant) -> Bytes {
        self.server.ready(now)
    }

    /// Checks what must always hold: nothing appears or vanishes, no more is sent than the rate
    /// allows, and what is on the wire is in order.
    pub fn check(&self) -> Result<(), Violation> {
        self.check_conservation()?;
        let arrivals: Vec<Instant> = self.wire.iter().map(|entry| entry.arrival).collect();
        if !arrivals.is_sorted() {
            return Err(Violation::new("the wire is in order", &arrivals));
        }
        // Times are rounded down to the nanosecond, within which a last byte may fall.
        let end = self.busy_until.saturating_add(Duration::from_nanos(1));
        let possible = self.capacity(Instant::ZERO, end).unwrap_or(Bytes::MAX).get();
        let possible = possible.saturating_add(self.burst().get());
        let stuck = self.busy_until == Instant::MAX;
        let sent = self.taken() - if stuck { self.unsent(Instant::MAX) } else { Bytes::ZERO };
        if sent.get() > possible.saturating_add(1) {
            return Err(Violation::new("no more is sent than the rate allows", &(sent, possible)));
        }
        Ok(())
    }

    fn check_conservation(&self) -> Result<(), Violation> {
        let stats = &self.stats;
        let waiting = self.queue.backlog();
        let mut flying = Tally::default();
        self.wire.iter().for_each(|entry| flying.count(entry.parcel.len()));

        let taken_in = stats.offered + stats.duplicated;
        let waiting = Tally { packets: waiting.packets, bytes: waiting.bytes.get() };
        let accounted = stats.dropped() + waiting + stats.served;
        if taken_in != accounted {
            const RULE: &str = "offered + duplicated = dropped + waiting + served";
            return Err(Violation::new(RULE, &(taken_in, accounted)));
        }
        if stats.served != flying + stats.delivered {
            const RULE: &str = "served = in flight + delivered";
            return Err(Violation::new(RULE, &(stats.served, flying, stats.delivered)));
        }
        Ok(())
    }

    /// The bytes that the server has taken, overhead included.
    fn taken(&self) -> Bytes {
        Bytes(self.stats.served.bytes) + self.overhead * self.stats.served.packets
    }

    /// The bytes of the parcel in service that are still to be sent at `now`: all of them if it is held,
    /// or if an endless blackout cuts it short.
    fn unsent(&self, now: Instant) -> Bytes {
        let whole = self.serving + self.overhead;
        match self.busy_until {
            Instant::MAX => whole,
            end if end <= now => Bytes::ZERO,
            _ if self.departure == Departure::AtEnd => whole,
            end => {
                let until = self.capacity(now, end).unwrap_or_default();
                (until + self.server.last_part()).min(whole)
            }
        }
    }

    /// Takes a parcel in where the link is not [`Self::plain`].
    #[inline(never)]
    fn offer_unlike(&mut self, now: Instant, parcel: P) {
        if self.ingress.is_some() {
            self.offer_impaired(now, parcel);
        } else {
            self.admit::<ANY>(now, parcel);
        }
    }

    #[cold]
    fn offer_impaired(&mut self, now: Instant, mut parcel: P) {
        let fate = self.ingress.as_mut().map(|ingress| ingress.decide(now, &parcel));
        let Some(Fate::Passes { corrupted, duplicated }) = fate else {
            self.record_drop(now, &parcel, DropCause::Loss);
            return;
        };
        if corrupted {
            parcel.corrupt();
            self.stats.corrupted += 1;
        }
        let copy = duplicated.then(|| parcel.clone());
        self.admit_policed(now, parcel);
        if let Some(copy) = copy {
            self.stats.duplicated.count(copy.len());
            self.admit_policed(now, copy);
        }
    }

    fn admit_policed(&mut self, now: Instant, parcel: P) {
        let len = parcel.len() + self.overhead;
        if self.ingress.as_mut().is_none_or(|ingress| ingress.admits(now, len)) {
            self.admit::<ANY>(now, parcel);
        } else {
            self.record_drop(now, &parcel, DropCause::Policer);
        }
    }

    /// Gives a parcel to the server, if that is free, or else to the queue.
    #[inline(always)]
    fn admit<const KIND: bool>(&mut self, now: Instant, mut parcel: P) {
        if KIND == ANY && self.agent.is_some() {
            self.notify_arrival(now, &mut parcel);
        }
        self.residence = self.residence.wrapping_sub(u128::from(now.as_nanos()));
        let idle = !self.waits && self.busy_until <= now;
        if idle && KIND == PLAIN {
            let len = parcel.len();
            self.start_service::<PLAIN>(now, Duration::ZERO, parcel, len);
            return self.note_peaks(now);
        }
        if idle {
            self.queue.on_idle(self.busy_until);
            self.next_start = if self.paused { Instant::MAX } else { self.server.ready_at(now) };
        }
        if idle && self.next_start == now {
            if let Some(parcel) = self.queue.pass(now, parcel, &mut self.dropped) {
                let len = parcel.len();
                self.start_service::<KIND>(now, Duration::ZERO, parcel, len);
            }
        } else {
            let in_service = self.in_service(now);
            self.queue.enqueue(now, parcel, in_service, &mut self.dropped);
        }
        self.waits = !self.queue.is_empty();
        self.settle_drops(now);
        self.note_peaks(now);
    }

    /// Sends a parcel of this length, which waited for `sojourn`.
    #[inline(always)]
    fn start_service<const KIND: bool>(
        &mut self,
        start: Instant,
        mut sojourn: Duration,
        mut parcel: P,
        len: Bytes,
    ) {
        if KIND == ANY && self.agent.is_some() {
            self.let_agent_mark(start, &mut parcel);
        }
        let len_on_wire = len + self.overhead;
        let done = if KIND == PLAIN {
            self.server.serve_steadily(start, len_on_wire)
        } else {
            self.server.serve(start, &parcel, len_on_wire)
        };
        let left = if KIND == ANY && self.departure == Departure::AtStart { start } else { done };
        if KIND == ANY && self.departure == Departure::AtEnd {
            sojourn += done - start;
        }
        self.busy_until = done;
        self.serving = len;
        self.next_start = if KIND == PLAIN { done } else { self.server.ready_at(done) };
        self.stats.served.count(len);
        self.stats.busy += done - start;
        self.residence = self.residence.wrapping_add(u128::from(left.as_nanos()));
        let arrival = if KIND == PLAIN {
            self.last_arrival = self.last_arrival.max(left.saturating_add(self.delay.initial));
            self.last_arrival
        } else {
            self.arrival(left)
        };
        self.stats.reordered += self.wire.push(arrival, sojourn, parcel);
    }

    /// The transmitter was idle since the last service if nothing waited, and has something to do from
    /// now on.
    #[cold]
    fn notify_arrival(&mut self, now: Instant, parcel: &mut P) {
        let (waiting, in_service) = (self.queue.backlog(), self.in_service(now));
        let Some(agent) = &mut self.agent else { return };
        let ahead = waiting + in_service;
        for signal in [Signal::Service, Signal::Medium] {
            if ahead.packets == 0 {
                agent.set_busy(self.busy_until, signal, Occupancy::Idle);
            }
            agent.set_busy(now, signal, Occupancy::Busy);
        }
        agent.on_arrival(now, parcel, ahead);
    }

    #[cold]
    fn let_agent_mark(&mut self, start: Instant, parcel: &mut P) {
        let behind = self.queue.backlog();
        let Some(agent) = &mut self.agent else { return };
        if let Some(rate) = self.server.rate().filter(|rate| !rate.is_constant()) {
            agent.set_rate(rate.at(start));
        }
        agent.on_departure(start, parcel, behind);
    }

    /// When a parcel arrives that left at `left`.
    #[inline]
    fn arrival(&mut self, left: Instant) -> Instant {
        let delay = if self.delay.is_constant() { self.delay.initial } else { self.delay.at(left) };
        let flight = match &mut self.disorder {
            None => Flight { delay, keeps_order: true },
            Some(disorder) => disorder.flight(delay),
        };
        let arrival = left.saturating_add(flight.delay);
        if !flight.keeps_order {
            return arrival;
        }
        self.last_arrival = self.last_arrival.max(arrival);
        self.last_arrival
    }

    #[inline]
    fn in_service(&self, now: Instant) -> Backlog {
        if self.busy_until > now && self.departure != Departure::AtStart {
            Backlog { packets: 1, bytes: self.serving }
        } else {
            Backlog::default()
        }
    }

    #[inline]
    fn note_peaks(&mut self, now: Instant) {
        let backlog = self.queue.backlog() + self.in_service(now);
        self.stats.max_packets = self.stats.max_packets.max(backlog.packets);
        self.stats.max_bytes = self.stats.max_bytes.max(backlog.bytes.get());
    }

    #[inline(always)]
    fn settle_drops(&mut self, now: Instant) {
        if !self.dropped.is_empty() {
            self.record_drops(now);
        }
    }

    #[cold]
    fn record_drops(&mut self, now: Instant) {
        let mut dropped = std::mem::take(&mut self.dropped);
        for Dropped { parcel, cause } in dropped.drain(..) {
            self.residence = self.residence.wrapping_add(u128::from(now.as_nanos()));
            self.record_drop(now, &parcel, cause);
        }
        self.dropped = dropped;
    }

    fn record_drop(&mut self, time: Instant, parcel: &P, cause: DropCause) {
        self.stats.count_drop(cause, parcel.len());
        self.log.push(DropRecord {
            time,
            cause,
            flow: parcel.flow(),
            is_forward: parcel.is_forward(),
            carries_data: parcel.carries_data(),
            len: parcel.len(),
            stamp: parcel.stamp(),
        });
    }
}

impl Violation {
    fn new(rule: &'static str, found: &impl std::fmt::Debug) -> Self {
        Self { rule, found: format!("{found:?}") }
    }
}

#[cfg(test)]
pub(crate) mod probe;
#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod theory;

//! How long a parcel takes to be sent.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::bucket::{NANO_BITS_PER_BYTE, TokenBucket};
use crate::opportunities::TraceServer;
use crate::parcel::Parcel;
use crate::schedule::Schedule;
use crate::service::Service;

/// The part of a link that sends, one parcel at a time.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Infinite,
    Rate(RateServer),
    Bucket(Box<TokenBucket>),
    PerPacket { forward: Duration, reverse: Duration },
    Trace(TraceServer),
}

/// Sends at a rate that may change in steps.
#[derive(Clone, Debug)]
pub(crate) struct RateServer {
    rate: Schedule<Rate>,
    /// The part of a nanosecond that the last service took beyond its rounded end, in bits per
    /// second times nanoseconds.
    carry: u64,
    /// What the last parcel took on its own: most are as long as the one before.
    last: Transmission,
}

/// How long a parcel takes at a constant rate, and what is left of the last nanosecond.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    len: Bytes,
    time: Duration,
    rest: u64,
}

impl Server {
    pub(crate) fn new(service: &Service) -> Self {
        match service {
            Service::Infinite => Self::Infinite,
            Service::Rate(rate) => Self::Rate(RateServer::new(rate.clone())),
            Service::Shaper { rate, burst } => {
                Self::Bucket(Box::new(TokenBucket::new(rate.clone(), *burst)))
            }
            Service::PerPacket { forward, reverse } => {
                Self::PerPacket { forward: *forward, reverse: *reverse }
            }
            Service::Trace(trace) => Self::Trace(TraceServer::new(trace.clone())),
        }
    }

    /// The earliest time from `time` on at which the server, then free, begins with a parcel;
    /// [`Instant::MAX`] if it never does.
    #[inline]
    pub(crate) fn ready_at(&mut self, time: Instant) -> Instant {
        match self {
            Self::Infinite | Self::PerPacket { .. } | Self::Bucket(_) => time,
            Self::Rate(server) if server.rate.is_constant() => time,
            Self::Rate(server) => server.end_of_blackout(time),
            Self::Trace(server) => server.ready_at(time),
        }
    }

    /// Sends `parcel`, `len` bytes with its overhead, from `start` on, a time that [`Self::ready_at`]
    /// gave; returns when it is done.
    #[inline(always)]
    pub(crate) fn serve<P: Parcel>(&mut self, start: Instant, parcel: &P, len: Bytes) -> Instant {
        match self {
            Self::Infinite => start,
            Self::Rate(server) => server.serve(start, len),
            Self::Bucket(bucket) => bucket.take(start, len),
            Self::PerPacket { forward, reverse } => {
                start.saturating_add(if parcel.is_forward() { *forward } else { *reverse })
            }
            Self::Trace(server) => server.serve(len),
        }
    }

    /// Whether it sends at a rate that never changes.
    pub(crate) fn is_steady(&self) -> bool {
        matches!(self, Self::Rate(server) if server.rate.is_constant())
    }

    /// As [`Self::serve`], of a server that [is steady](Self::is_steady).
    #[inline(always)]
    pub(crate) fn serve_steadily(&mut self, start: Instant, len: Bytes) -> Instant {
        match self {
            Self::Rate(server) => start.saturating_add(server.transmit_time(len)),
            _ => start,
        }
    }

    /// How many bytes may go at once, beyond those that the rate allows.
    pub(crate) fn burst(&self) -> Bytes {
        match self {
            Self::Bucket(bucket) => bucket.burst(),
            _ => Bytes::ZERO,
        }
    }

    /// How many of these may go at `now`.
    pub(crate) fn ready(&self, now: Instant) -> Bytes {
        match self {
            Self::Bucket(bucket) => bucket.ready(now),
            _ => Bytes::ZERO,
        }
    }

    /// At most what the end of the service in progress sends at once.
    pub(crate) fn last_part(&self) -> Bytes {
        match self {
            Self::Trace(server) => server.taken(),
            _ => Bytes::ZERO,
        }
    }

    /// The rate, if it has one.
    pub(crate) fn rate(&self) -> Option<&Schedule<Rate>> {
        match self {
            Self::Rate(server) => Some(&server.rate),
            Self::Bucket(bucket) => Some(bucket.rate()),
            Self::Infinite | Self::PerPacket { .. } | Self::Trace(_) => None,
        }
    }

    /// The bytes that the rate allows between two times; `None` if there is no rate.
    pub(crate) fn capacity(&self, from: Instant, to: Instant) -> Option<Bytes> {
        match self {
            Self::Trace(server) => Some(server.capacity(from, to)),
            _ => self.rate().map(|rate| capacity(rate, from, to)),
        }
    }
}

impl RateServer {
    fn new(rate: Schedule<Rate>) -> Self {
        let last = Transmission { len: Bytes::ZERO, time: Duration::ZERO, rest: 0 };
        Self { rate, carry: 0, last }
    }

    #[inline]
    fn serve(&mut self, start: Instant, len: Bytes) -> Instant {
        if self.rate.is_constant() {
            start.saturating_add(self.transmit_time(len))
        } else {
            self.serve_stepped(start, len)
        }
    }

    /// [`Rate::transmit_time`] at a rate that is constant, with a division only where the length changes.
    #[inline(always)]
    fn transmit_time(&mut self, len: Bytes) -> Duration {
        let rate = self.rate.initial;
        if len != self.last.len {
            let mut rest = 0;
            let time = rate.transmit_time(len, &mut rest);
            self.last = Transmission { len, time, rest };
        }
        let Transmission { time, rest, .. } = self.last;
        // Each of the two is less than a nanosecond, so together they make one at most.
        let lacking = rate.as_bits_per_sec() - rest;
        if self.carry >= lacking {
            self.carry -= lacking;
            return time + Duration::from_nanos(1);
        }
        self.carry += rest;
        time
    }

    /// Adds up what each stretch of constant rate sends until the parcel is through.
    #[inline(never)]
    fn serve_stepped(&mut self, start: Instant, len: Bytes) -> Instant {
        let mut work = u128::from(len.get()) * NANO_BITS_PER_BYTE + u128::from(self.carry);
        let mut begin = start;
        for (end, rate) in self.rate.pieces_from(start) {
            let speed = u128::from(rate.as_bits_per_sec());
            let possible = speed * u128::from((end - begin).as_nanos());
            if work <= possible && speed > 0 {
                self.carry = (work % speed) as u64;
                return begin.saturating_add(Duration::from_nanos((work / speed) as u64));
            }
            work -= possible;
            begin = end;
        }
        Instant::MAX
    }

    fn end_of_blackout(&self, time: Instant) -> Instant {
        let mut begin = time;
        for (end, rate) in self.rate.pieces_from(time) {
            if rate > Rate::ZERO {
                return begin;
            }
            begin = end;
        }
        Instant::MAX
    }
}

fn capacity(rate: &Schedule<Rate>, from: Instant, to: Instant) -> Bytes {
    Bytes(u64::try_from(rate.work(from, to) / NANO_BITS_PER_BYTE).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The parts of a nanosecond add up as if each parcel were divided anew.
        #[test]
        fn what_is_remembered_of_the_last_parcel_changes_no_time(
            bits in prop_oneof![1u64..1_000, 1_000_000..100_000_000_000u64, Just(u64::MAX)],
            lens in prop::collection::vec(prop_oneof![Just(0u64), Just(52u64), Just(1_500u64), 1..70_000u64], 1..200),
        ) {
            let rate = Rate::from_bits_per_sec(bits);
            let mut server = RateServer::new(rate.into());
            let (mut now, mut expected, mut carry) = (Instant::ZERO, Instant::ZERO, 0);
            for len in lens.into_iter().map(Bytes) {
                now = server.serve(now, len);
                expected = expected.saturating_add(rate.transmit_time(len, &mut carry));
                prop_assert_eq!(now, expected);
            }
        }
    }
}

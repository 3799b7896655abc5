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

    /// Sends `parcel`, with `overhead`, from `start` on, a time that [`Self::ready_at`] gave; returns when
    /// it is done.
    #[inline(always)]
    pub(crate) fn serve<P: Parcel>(
        &mut self,
        start: Instant,
        parcel: &P,
        overhead: Bytes,
    ) -> Instant {
        match self {
            Self::Infinite => start,
            Self::Rate(server) => server.serve(start, parcel.len() + overhead),
            Self::Bucket(bucket) => bucket.take(start, parcel.len() + overhead),
            Self::PerPacket { forward, reverse } => {
                start.saturating_add(if parcel.is_forward() { *forward } else { *reverse })
            }
            Self::Trace(server) => server.serve(parcel.len() + overhead),
        }
    }

    /// How many bytes may go at once, beyond those that the rate allows.
    pub(crate) fn burst(&self) -> Bytes {
        match self {
            Self::Bucket(bucket) => bucket.burst(),
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
        Self { rate, carry: 0 }
    }

    #[inline]
    fn serve(&mut self, start: Instant, len: Bytes) -> Instant {
        if self.rate.is_constant() {
            start.saturating_add(self.rate.initial.transmit_time(len, &mut self.carry))
        } else {
            self.serve_stepped(start, len)
        }
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

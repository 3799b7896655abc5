//! A token bucket: what may be sent now, and when what may not.
//!
//! Source: RFC 2697 §3 in its single-bucket form; Linux's `sch_tbf` and `act_police`. Tokens arrive at a
//! rate and are lost when `burst` of them are there; a parcel takes one per byte. So in any span t no
//! more than `burst + rate t` bytes get through: the arrival curve that bounds queues behind it (Cruz
//! 1991).
//!
//! As a shaper a parcel that lacks tokens waits for them, and those behind it wait too. The parcel that
//! waits has left its queue: Linux's `tbf_dequeue` peeks at the discipline below, and disciplines that
//! decide at dequeue (CoDel, FQ-CoDel) decide then. As a policer it is dropped and takes none.
//!
//! Tokens are exact: bits per second times nanoseconds. A departure is rounded up to the nanosecond,
//! and what arrives within it stays in the bucket. `peakrate` is not modelled.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::error::ConfigError;
use crate::schedule::Schedule;

/// A policer: drops what exceeds a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// How fast tokens arrive.
    pub rate: Rate,
    /// How many bytes may get through at once.
    pub burst: Bytes,
}

/// A token bucket, full at the beginning.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: Schedule<Rate>,
    burst: Bytes,
    /// In bits per second times nanoseconds, at `filled`.
    tokens: u128,
    filled: Instant,
}

impl PolicerConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if self.rate == Rate::ZERO {
            const HELP: &str = "it must be above zero; loss = 100% drops everything";
            return Err(ConfigError::new("policer.rate", self.rate, HELP));
        }
        if self.burst == Bytes::ZERO {
            const HELP: &str = "it must be above zero, or nothing gets through";
            return Err(ConfigError::new("policer.burst", self.burst, HELP));
        }
        Ok(())
    }
}

impl TokenBucket {
    pub(crate) fn new(rate: Schedule<Rate>, burst: Bytes) -> Self {
        Self { rate, burst, tokens: work(burst), filled: Instant::ZERO }
    }

    pub(crate) fn rate(&self) -> &Schedule<Rate> {
        &self.rate
    }

    pub(crate) fn burst(&self) -> Bytes {
        self.burst
    }

    /// Takes tokens for `len` bytes if they are there at `now`.
    pub(crate) fn try_take(&mut self, now: Instant, len: Bytes) -> bool {
        self.fill(now);
        let enough = self.tokens >= work(len);
        if enough {
            self.tokens -= work(len);
        }
        enough
    }

    /// Takes tokens for `len` bytes, `burst` at most, as soon as they are there from `now` on: returns
    /// when; [`Instant::MAX`] if never.
    pub(crate) fn take(&mut self, now: Instant, len: Bytes) -> Instant {
        if self.try_take(now, len) {
            return now;
        }
        let done = self.rate.time_of_work(now, work(len) - self.tokens);
        if done < Instant::MAX {
            self.tokens += self.rate.work(now, done);
            self.tokens -= work(len);
            self.filled = done;
        }
        done
    }

    /// How many bytes may go at once at `now`.
    pub(crate) fn ready(&self, now: Instant) -> Bytes {
        if self.filled > now {
            // What waits has taken all, and some of what is to come.
            return Bytes::ZERO;
        }
        let tokens = self.tokens + self.rate.work(self.filled, now);
        Bytes((tokens.min(work(self.burst)) / NANO_BITS_PER_BYTE) as u64)
    }

    fn fill(&mut self, now: Instant) {
        let added = self.rate.work(self.filled, now);
        self.tokens = (self.tokens + added).min(work(self.burst));
        self.filled = now;
    }
}

impl Schedule<Rate> {
    /// What can be sent between two times, in bits per second times nanoseconds.
    pub(crate) fn work(&self, from: Instant, to: Instant) -> u128 {
        let mut work = 0;
        let mut begin = from;
        for (end, rate) in self.pieces_from(from) {
            let span = end.min(to).saturating_since(begin);
            work += u128::from(rate.as_bits_per_sec()) * u128::from(span.as_nanos());
            begin = end;
        }
        work
    }

    /// The first nanosecond by which that amount can be sent from `from` on.
    fn time_of_work(&self, from: Instant, mut work: u128) -> Instant {
        let mut begin = from;
        for (end, rate) in self.pieces_from(from) {
            let speed = u128::from(rate.as_bits_per_sec());
            let possible = speed * u128::from((end - begin).as_nanos());
            if work <= possible && speed > 0 {
                return begin.saturating_add(Duration::from_nanos(work.div_ceil(speed) as u64));
            }
            work -= possible;
            begin = end;
        }
        Instant::MAX
    }
}

/// The tokens for a number of bytes.
fn work(len: Bytes) -> u128 {
    u128::from(len.get()) * NANO_BITS_PER_BYTE
}

pub(crate) const NANO_BITS_PER_BYTE: u128 = 8 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left counts as capacity: a server that uses it up sends more than its rate, and no more than it can.
    #[test]
    fn what_is_ready_is_what_was_not_taken() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        // Ten bytes a second.
        let rate = Schedule::from(Rate::from_bits_per_sec(80));
        let mut bucket = TokenBucket::new(rate, Bytes(100));
        assert_eq!(bucket.ready(at(0)), Bytes(100));
        assert!(bucket.try_take(at(0), Bytes(60)));
        assert_eq!((bucket.ready(at(0)), bucket.ready(at(3))), (Bytes(40), Bytes(70)));
        assert_eq!(bucket.ready(at(60)), Bytes(100));
        assert_eq!(bucket.take(at(0), Bytes(100)), at(6));
        assert_eq!((bucket.ready(at(5)), bucket.ready(at(7))), (Bytes::ZERO, Bytes(10)));
    }
}

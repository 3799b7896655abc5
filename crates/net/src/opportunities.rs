//! Links that send only at recorded moments: mahimahi's packet-delivery traces (Netravali et al.,
//! USENIX ATC 2015).
//!
//! A trace is a list of times in milliseconds, one delivery opportunity each, and repeats from its
//! last time on. An opportunity carries up to 1500 bytes: several small parcels, one, or a part of
//! one. Unused opportunities are lost.

use std::sync::Arc;

use weir_units::{Bytes, Duration, Instant};

/// Delivery opportunities, repeated for ever.
///
/// ```
/// use weir_net::{DeliveryTrace, TraceError};
/// use weir_units::{Bytes, Duration, Instant};
///
/// let trace = DeliveryTrace::parse("0\n5\n10\n")?;
/// assert_eq!(trace.period(), Duration::from_millis(10));
/// let at = |ms| Instant::ZERO + Duration::from_millis(ms);
/// assert_eq!(trace.capacity(at(0), at(7)), Bytes(2 * 1_500));
/// assert_eq!(DeliveryTrace::parse("5\nfast"), Err(TraceError::NotATime { line: 2 }));
/// # Ok::<(), TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Times since the beginning of a cycle, never decreasing; the last one is the cycle's length.
    times: Arc<[Duration]>,
    size: Bytes,
}

/// A trace that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is not a time.
    #[error("line {line}: not a time: write whole milliseconds, one per line")]
    NotATime {
        /// Counted from 1.
        line: usize,
    },
    /// A time lies before the one of the line above.
    #[error("line {line}: {time} ms comes after {previous} ms: times must not decrease")]
    Decreasing {
        /// Counted from 1.
        line: usize,
        /// The time that stands there, in milliseconds.
        time: u64,
        /// The time before it, in milliseconds.
        previous: u64,
    },
    /// There is no opportunity, or all are at time zero.
    #[error("the last time is the length of the cycle and must be above zero")]
    Empty,
}

/// A trace at work.
#[derive(Clone, Debug)]
pub(crate) struct TraceServer {
    trace: DeliveryTrace,
    cycle: u64,
    index: usize,
    /// What is left of the opportunity at `cycle` and `index`.
    left: u64,
}

impl DeliveryTrace {
    /// What an opportunity carries in mahimahi.
    pub const OPPORTUNITY: Bytes = Bytes(1500);

    /// Reads mahimahi's format: one time per line in whole milliseconds, in non-decreasing order.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        let mut previous = 0;
        for (index, text) in text.lines().enumerate() {
            let line = index + 1;
            let time: u64 = text
                .trim()
                .parse()
                .ok()
                .filter(|millis| *millis <= Self::LONGEST_MILLIS)
                .ok_or(TraceError::NotATime { line })?;
            if time < previous {
                return Err(TraceError::Decreasing { line, time, previous });
            }
            previous = time;
            times.push(Duration::from_millis(time));
        }
        if previous == 0 {
            return Err(TraceError::Empty);
        }
        Ok(Self { times: times.into(), size: Self::OPPORTUNITY })
    }

    /// The same opportunities, but each carries `size` bytes.
    ///
    /// # Panics
    /// If `size` is zero.
    pub fn with_opportunity(mut self, size: Bytes) -> Self {
        assert!(size > Bytes::ZERO, "an opportunity that carries nothing is none");
        self.size = size;
        self
    }

    /// How long a cycle is.
    pub fn period(&self) -> Duration {
        self.times[self.times.len() - 1]
    }

    /// The bytes that opportunities within `from .. to` carry.
    pub fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.size * self.count_before(to).saturating_sub(self.count_before(from))
    }

    fn count_before(&self, time: Instant) -> u64 {
        let (cycle, index) = self.first_from(time);
        cycle * self.times.len() as u64 + index as u64
    }

    /// Cycle and index of the first opportunity at `time` or later. The end of a cycle belongs to
    /// it, not to the next one.
    fn first_from(&self, time: Instant) -> (u64, usize) {
        let cycle = time.as_nanos().saturating_sub(1) / self.period().as_nanos();
        let offset = time - self.begin(cycle);
        (cycle, self.times.partition_point(|t| *t < offset))
    }

    fn begin(&self, cycle: u64) -> Instant {
        Instant::ZERO + self.period() * cycle
    }

    /// A hundred years: no file means more, and no sum of times overflows.
    const LONGEST_MILLIS: u64 = 100 * 365 * 86_400_000;
}

impl TraceServer {
    pub(crate) fn new(trace: DeliveryTrace) -> Self {
        let left = trace.size.get();
        Self { trace, cycle: 0, index: 0, left }
    }

    /// The first opportunity at `time` or later with capacity left; those before it are lost.
    pub(crate) fn ready_at(&mut self, time: Instant) -> Instant {
        if self.time() < time {
            (self.cycle, self.index) = self.trace.first_from(time);
            self.left = self.trace.size.get();
        } else if self.left == 0 {
            self.step();
        }
        self.time()
    }

    /// Sends `len` bytes from the present opportunity on; returns the time of the one that takes
    /// the last of them.
    pub(crate) fn serve(&mut self, len: Bytes) -> Instant {
        let mut rest = len.get();
        while rest > self.left {
            rest -= self.left;
            self.step();
        }
        self.left -= rest;
        self.time()
    }

    /// What the present opportunity has sent.
    pub(crate) fn taken(&self) -> Bytes {
        Bytes(self.trace.size.get() - self.left)
    }

    pub(crate) fn capacity(&self, from: Instant, to: Instant) -> Bytes {
        self.trace.capacity(from, to)
    }

    fn time(&self) -> Instant {
        self.trace.begin(self.cycle) + self.trace.times[self.index]
    }

    fn step(&mut self) {
        self.left = self.trace.size.get();
        self.index += 1;
        if self.index == self.trace.times.len() {
            self.index = 0;
            self.cycle += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_bad_line_is_named() {
        let message = |text| DeliveryTrace::parse(text).unwrap_err().to_string();
        assert!(message("1\n2\nx7\n").starts_with("line 3: not a time"));
        assert!(message("1\n\n3").starts_with("line 2: not a time"));
        assert!(message("5\n4\n").starts_with("line 2: 4 ms comes after 5 ms"));
        assert!(message("-1\n").starts_with("line 1"));
        assert!(message("99999999999999999999").starts_with("line 1"));
        assert!(message("").contains("above zero"));
        assert!(message("0\n0\n").contains("above zero"));
        assert!(DeliveryTrace::parse(" 1\r\n2").is_ok());
    }

    #[test]
    fn the_trace_repeats_from_its_last_time_on() {
        let mut server = TraceServer::new(DeliveryTrace::parse("0\n3\n3\n10\n").unwrap());
        let times: Vec<Instant> = (0..9)
            .map(|_| {
                let start = server.ready_at(Instant::ZERO);
                assert_eq!(server.serve(Bytes(1500)), start);
                start
            })
            .collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20].map(at));
    }

    #[test]
    fn an_idle_time_is_skipped_and_its_opportunities_lost() {
        let mut server = TraceServer::new(DeliveryTrace::parse("2\n5\n").unwrap());
        assert_eq!(server.ready_at(at(1)), at(2));
        assert_eq!(server.serve(Bytes(40)), at(2));
        assert_eq!(server.ready_at(at(2)), at(2), "1460 bytes are left");
        assert_eq!(server.ready_at(at(3)), at(5));
        assert_eq!(server.ready_at(at(5_000_000)), at(5_000_000));
        assert_eq!(server.serve(Bytes(1501)), at(5_000_002), "the rest waits for the next one");
        assert_eq!(server.ready_at(at(5_000_006)), at(5_000_007));
    }

    #[test]
    fn capacity_counts_opportunities_used_or_not() {
        let trace = DeliveryTrace::parse("0\n3\n3\n10\n").unwrap();
        assert_eq!(trace.capacity(at(0), at(3)), Bytes(1500));
        assert_eq!(trace.capacity(at(0), at(4)), Bytes(4500));
        assert_eq!(trace.capacity(at(4), at(10)), Bytes(0));
        assert_eq!(trace.capacity(at(0), at(1_000)), Bytes(1500 * 399));
        let small = trace.with_opportunity(Bytes(100));
        assert_eq!(small.capacity(at(0), at(1_000)), Bytes(100 * 399));
    }
}

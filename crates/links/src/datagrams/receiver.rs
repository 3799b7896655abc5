//! The receiving end of a load of datagrams.

use std::io;
use std::sync::atomic::Ordering;

use weir_sockets::clock::{self, Interest};
use weir_sockets::socket::{Inbox, Socket};

use super::{HEAD_BYTES, LoadSpec, MAX_WAIT, NAME_BYTES, Shared, overflow};

/// What was received. Times are nanoseconds of this machine's monotonic clock; a transit time is the
/// receiver's clock less the sender's.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Number of datagrams.
    pub received: u64,
    /// Their bytes of UDP payload.
    pub bytes: u64,
    /// Datagrams with a smaller number than one before.
    pub reordered: u64,
    /// Datagrams for which this machine's receive buffer had no space.
    pub dropped: u64,
    /// Interarrival jitter in nanoseconds.
    pub jitter: f64,
    /// Bytes received until a time, at most every 5 ms.
    pub log: Vec<(u64, u64)>,
    /// When a datagram arrived, and its transit time: of all datagrams, or of every n-th.
    pub transits: Vec<(u64, i64)>,
    /// The first datagrams of the load.
    pub first: Vec<FirstDatagram>,
}

/// One of the first datagrams.
#[derive(Clone, Copy, Debug)]
pub struct FirstDatagram {
    /// Its number.
    pub number: u32,
    /// When it was sent, on the sender's clock.
    pub sent: u64,
    /// When it arrived.
    pub arrived: u64,
}

/// Receives until the load ends.
pub(super) fn run(socket: &Socket, spec: &LoadSpec, shared: &Shared) -> io::Result<Received> {
    let dropped = || overflow::drops(socket);
    let (mut inbox, mut sink) = (Inbox::default(), Sink::default());
    let dropped_before = dropped();
    while !shared.receiving_ends.load(Ordering::Relaxed) {
        if !socket.wait(Interest::Readable, MAX_WAIT)? || !socket.receive(&mut inbox)? {
            continue;
        }
        for arrival in inbox.arrivals() {
            let now = clock::to_monotonic_nanos(arrival.time);
            for bytes in arrival.datagrams() {
                if let Some((number, sent)) = read(bytes, spec) {
                    sink.take(number, sent, now, bytes.len() as u64);
                }
            }
        }
        shared.received_bytes.store(sink.found.bytes, Ordering::Relaxed);
    }
    sink.found.dropped = dropped().saturating_sub(dropped_before);
    Ok(sink.finish())
}

/// Number and time of a datagram of the load.
fn read(bytes: &[u8], spec: &LoadSpec) -> Option<(u32, u64)> {
    let head: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
    let (name, sent) = head.split_at(NAME_BYTES);
    let (kind, number) = name.strip_prefix(&spec.token)?.split_first()?;
    let number = u32::from_be_bytes(number.try_into().ok()?);
    (*kind == spec.kind).then_some((number, u64::from_be_bytes(sent.try_into().ok()?)))
}

/// Counts datagrams. The jitter is that of RFC 3550 §6.4.1: a mean of differences of transit times with a
/// gain of 1/16. It needs no common clock.
#[derive(Default)]
struct Sink {
    found: Received,
    highest: Option<u32>,
    transit: Option<i64>,
    last: (u64, u64),
    /// Every 2^n-th transit time is kept.
    thinned: u32,
}

impl Sink {
    fn take(&mut self, number: u32, sent: u64, now: u64, len: u64) {
        let found = &mut self.found;
        let transit = now.wrapping_sub(sent).cast_signed();
        if let Some(before) = self.transit.replace(transit) {
            found.jitter += (transit.abs_diff(before) as f64 - found.jitter) / 16.0;
        }
        if found.first.len() < MOST_FIRST && (number as usize) < MOST_FIRST {
            found.first.push(FirstDatagram { number, sent, arrived: now });
        }
        if found.received.is_multiple_of(1 << self.thinned) {
            found.transits.push((now, transit));
        }
        if found.transits.len() >= MOST_TRANSITS {
            let mut number = 0u32;
            found.transits.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.thinned += 1;
        }
        found.received += 1;
        found.bytes += len;
        found.reordered += u64::from(self.highest.is_some_and(|highest| number < highest));
        self.highest = self.highest.max(Some(number));
        self.last = (now, found.bytes);
        let logged = found.log.last().map_or(0, |last| last.0);
        if now.saturating_sub(logged) >= LOG_NANOS {
            found.log.push(self.last);
        }
    }

    fn finish(mut self) -> Received {
        if self.found.received > 0 && self.found.log.last() != Some(&self.last) {
            self.found.log.push(self.last);
        }
        self.found
    }
}

/// Between two entries of the log.
const LOG_NANOS: u64 = 5_000_000;
/// Transit times that are kept.
const MOST_TRANSITS: usize = 100_000;
/// Datagrams of which a policer can be recognised, as `weir read` takes.
const MOST_FIRST: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jitter_is_that_of_rfc_3550() {
        let mut sink = Sink::default();
        for (number, transit) in (0u32..).zip([1_000_000, 3_000_000, 2_000_000]) {
            let sent = u64::from(number) * 20_000_000;
            sink.take(number, sent, sent + transit, 100);
        }
        let first = 2_000_000.0 / 16.0;
        assert_eq!(sink.found.jitter, first + (1_000_000.0 - first) / 16.0);
        sink.take(1, 0, 0, 100);
        assert_eq!((sink.found.received, sink.found.reordered, sink.found.bytes), (4, 1, 400));
    }

    #[test]
    fn transit_times_are_thinned_evenly_and_all_bytes_are_logged() {
        let mut sink = Sink::default();
        let count = 3 * MOST_TRANSITS as u64;
        for number in 0..count {
            sink.take(number as u32, number * 10_000, number * 10_000 + number, 100);
        }
        let found = sink.finish();
        assert_eq!(found.log.last(), Some(&((count - 1) * 10_001, count * 100)));
        assert!((MOST_TRANSITS / 2..MOST_TRANSITS).contains(&found.transits.len()));
        let transits: Vec<i64> = found.transits.iter().map(|(_, transit)| *transit).collect();
        let step = transits[1] - transits[0];
        assert!(step > 1 && transits.windows(2).all(|pair| pair[1] - pair[0] == step));
        assert_eq!((found.first.len(), found.first[9].number), (MOST_FIRST, 9));
    }
}

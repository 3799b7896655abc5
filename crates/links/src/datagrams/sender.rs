//! The sending end of a load of datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use weir_sockets::clock::{self, Alarm, Interest};
use weir_sockets::socket::{SendBatch, Socket};
use weir_units::{Duration, Ecn, Instant, Rate};

use super::{HEADERS, LoadSpec, MAX_WAIT, NAME_BYTES, Shared};

/// What was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Number of datagrams, with those that were refused.
    pub sent: u64,
    /// Datagrams that this machine did not send.
    pub refused: u64,
}

/// When each datagram is due.
struct Schedule {
    origin: Instant,
    /// Number of the next datagram.
    next: u64,
    bits: u64,
    rate: Rate,
}

/// Sends at `rate` until the load ends. Datagrams that are due together are handed over together.
pub(super) fn run(
    socket: &Socket,
    remote: SocketAddr,
    spec: &LoadSpec,
    rate: Rate,
    shared: &Shared,
) -> Sent {
    let _alarm = Alarm::set();
    let most = socket.max_segments().min(MOST_BYTES / spec.length).max(1);
    let bits = ((spec.length + HEADERS) * 8) as u64;
    let mut schedule = Schedule { origin: clock::now(), next: 0, bits, rate };
    let (mut batch, mut done) = (Vec::new(), Sent::default());
    while !shared.sending_ends.load(Ordering::Relaxed) {
        let now = clock::now();
        let first = schedule.next;
        let count = schedule.take(now, most);
        if count == 0 {
            let left = schedule.due().saturating_since(now).min(MAX_WAIT);
            std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
            continue;
        }
        fill(&mut batch, spec, first..first + count, clock::monotonic_nanos());
        let departure = SendBatch {
            to: remote,
            from: None,
            ecn: Ecn::NotEct,
            bytes: &batch,
            stride: spec.length,
        };
        if send(socket, &departure, shared).is_err() {
            done.refused += count;
        }
        done.sent += count;
        shared.sent.store(done.sent, Ordering::Relaxed);
    }
    done
}

impl Schedule {
    fn due(&self) -> Instant {
        let nanos = u128::from(self.next) * u128::from(self.bits) * 1_000_000_000
            / u128::from(self.rate.as_bits_per_sec().max(1));
        self.origin + Duration::from_nanos(nanos as u64)
    }

    /// Takes the datagrams that are due by `now`, `most` of them at a time; returns their number. After a
    /// longer pause those that were missed are not sent in one burst.
    fn take(&mut self, now: Instant, most: usize) -> u64 {
        let late = now.saturating_since(self.due());
        self.origin += late.saturating_sub(MOST_LATE);
        let first = self.next;
        while self.next - first < most as u64 && self.due() <= now {
            self.next += 1;
        }
        self.next - first
    }
}

fn fill(batch: &mut Vec<u8>, spec: &LoadSpec, numbers: std::ops::Range<u64>, sent: u64) {
    batch.clear();
    for number in numbers {
        let end = batch.len() + spec.length;
        batch.extend(spec.token);
        batch.push(spec.kind);
        batch.extend((number as u32).to_be_bytes());
        debug_assert_eq!(batch.len(), end - spec.length + NAME_BYTES);
        batch.extend(sent.to_be_bytes());
        batch.resize(end, 0);
    }
}

/// Waits for space in the system's buffer, as a blocking socket does.
fn send(socket: &Socket, departure: &SendBatch<'_>, shared: &Shared) -> io::Result<()> {
    loop {
        match socket.send(departure) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && !shared.sending_ends.load(Ordering::Relaxed) =>
            {
                socket.wait(Interest::ReadableOrWritable, SHORT)?;
            }
            result => return result,
        }
    }
}

/// Handed over in one call: a burst of this length is what a path may see at once.
const MOST_BYTES: usize = 32 << 10;
const MOST_LATE: Duration = Duration::from_millis(20);
/// Until the next attempt to send.
const SHORT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_due_at_their_rate_and_a_long_pause_is_not_made_up_for() {
        let origin = Instant::from_nanos(5_000_000_000);
        let rate = Rate::from_mbit(8);
        let mut schedule = Schedule { origin, next: 0, bits: 8_000, rate };
        let at = |millis| origin + Duration::from_millis(millis);
        assert_eq!(schedule.take(origin, 10), 1);
        assert_eq!(schedule.due(), at(1));
        assert_eq!(schedule.take(at(4), 3), 3);
        assert_eq!(schedule.take(at(4), 3), 1);
        assert_eq!(schedule.take(at(4), 3), 0);
        // After a second only those of the last 20 ms are due.
        assert_eq!(schedule.take(at(1_004), 1_000), 21);
    }
}

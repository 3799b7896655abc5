//! Applications: what the two ends of a flow ask of their transport, as plain state machines.

use weir_units::{Bytes, Duration, Instant, Rate};

use crate::requests::Answer;
use crate::spec::Workload;

/// What an application wants done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Make so many more bytes available to the transport.
    pub(crate) write: u64,
    /// Close after everything written.
    pub(crate) close: bool,
}

/// The application at the sender.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    workload: Workload,
    began: Instant,
    /// Messages written so far: ticks of a constant rate, or requests.
    written: u64,
    /// When the pending request was made.
    asked_at: Instant,
    /// Bytes of the pending request's answer that are still to come; 0 while pausing.
    awaited: u64,
    next: Option<Instant>,
}

/// The application at the receiver.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    workload: Workload,
    /// Bytes of the present request that have arrived.
    received: u64,
}

/// More than any simulated link carries, far from overflow.
const ENDLESS: u64 = 1 << 60;

impl Client {
    pub(crate) fn new(workload: Workload, start: Instant) -> Self {
        Self { workload, began: start, written: 0, asked_at: start, awaited: 0, next: Some(start) }
    }

    /// When it next wants to do something by itself.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.next
    }

    /// Its time has come.
    pub(crate) fn on_time(&mut self, now: Instant) -> Demand {
        let mut demand = Demand::default();
        while self.next.is_some_and(|at| at <= now) {
            let due = self.act(now);
            demand.write += due.write;
            demand.close |= due.close;
        }
        demand
    }

    /// `bytes` of an answer arrived; the request if that completed it.
    pub(crate) fn on_read(&mut self, now: Instant, bytes: u64) -> Option<Answer> {
        let Workload::Request { gap, .. } = self.workload else { return None };
        if self.awaited == 0 || bytes == 0 {
            return None;
        }
        self.awaited = self.awaited.saturating_sub(bytes);
        if self.awaited > 0 {
            return None;
        }
        self.next = Some(now.saturating_add(gap));
        let (number, asked_at) = (self.written - 1, self.asked_at);
        Some(Answer { number, asked_at, latency: now - asked_at })
    }

    /// Requests that wait for an answer.
    pub(crate) fn unanswered(&self) -> u64 {
        u64::from(self.awaited > 0)
    }

    fn act(&mut self, now: Instant) -> Demand {
        let number = self.written;
        self.written += 1;
        self.next = None;
        match self.workload {
            Workload::Bulk => Demand { write: ENDLESS, close: false },
            Workload::File { size } => Demand { write: size.get(), close: true },
            Workload::Rate { rate, size } => {
                self.next = Some(self.began.saturating_add(nth_tick(rate, size, number + 1)));
                Demand { write: size.get(), close: false }
            }
            Workload::Request { request, response, .. } => {
                self.asked_at = now;
                self.awaited = response.get();
                Demand { write: request.get(), close: false }
            }
        }
    }
}

impl Server {
    pub(crate) fn new(workload: Workload) -> Self {
        Self { workload, received: 0 }
    }

    /// `bytes` arrived; how many to answer.
    pub(crate) fn on_read(&mut self, bytes: u64) -> u64 {
        let Workload::Request { request, response, .. } = self.workload else { return 0 };
        self.received += bytes;
        let complete = self.received / request.get();
        self.received %= request.get();
        complete * response.get()
    }
}

/// From the first message of a constant-rate source to its `n`-th; never drifts.
pub(crate) fn nth_tick(rate: Rate, size: Bytes, n: u64) -> Duration {
    let bits = u128::from(size.get()) * 8 * u128::from(n);
    let nanos = bits * 1_000_000_000 / u128::from(rate.as_bits_per_sec());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_file_is_written_once_and_closed() {
        let mut client = Client::new(Workload::File { size: Bytes(5_000) }, at(3));
        assert_eq!(client.next_time(), Some(at(3)));
        assert_eq!(client.on_time(at(3)), Demand { write: 5_000, close: true });
        assert_eq!(client.next_time(), None);
    }

    #[test]
    fn a_constant_rate_catches_up_and_does_not_drift() {
        // 3 Mbit/s in messages of 1000 bytes: 2.666… ms each.
        let workload = Workload::Rate { rate: Rate::from_mbit(3), size: Bytes(1_000) };
        let mut client = Client::new(workload, at(0));
        let written: u64 = (0..=1_000).map(|ms| client.on_time(at(ms)).write).sum();
        assert_eq!(written, 376 * 1_000, "one at the start, then 375 in a second");
        assert_eq!(client.on_time(at(2_000)).write, 375 * 1_000);
    }

    #[test]
    fn a_request_waits_for_the_whole_answer_and_pauses() {
        let (request, response) = (Bytes(100), Bytes(1_000));
        let gap = Duration::from_millis(7);
        let workload = Workload::Request { request, response, gap };
        let (mut client, mut server) = (Client::new(workload, at(0)), Server::new(workload));
        assert_eq!(client.on_time(at(0)).write, 100);
        assert_eq!(client.next_time(), None);
        assert_eq!(server.on_read(60), 0);
        assert_eq!(server.on_read(40), 1_000);
        assert_eq!(client.on_read(at(20), 400), None);
        let latency = Duration::from_millis(25);
        let answer = Answer { number: 0, asked_at: at(0), latency };
        assert_eq!(client.unanswered(), 1);
        assert_eq!(client.on_read(at(25), 600), Some(answer));
        assert_eq!(client.unanswered(), 0);
        assert_eq!(client.next_time(), Some(at(32)));
        assert_eq!(client.on_time(at(32)).write, 100);
    }
}

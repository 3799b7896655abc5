//! Applications: what the two ends of a flow ask of their transport, as plain state machines.

use std::collections::VecDeque;

use weir_units::{Instant, Rng};

use crate::periods::{Action, Periods, nth_tick};
use crate::requests::Answer;
use crate::spec::Workload;

/// What an application wants done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteRequest {
    /// Number of further bytes to make available to the transport.
    pub write: u64,
    /// Close after everything written.
    pub close: bool,
    /// Take back what the transport has not sent yet, before anything is written.
    pub withdraw: bool,
}

/// The application at the sender.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    workload: Workload,
    rng: Rng,
    began: Instant,
    /// Messages written so far: ticks of a constant rate, or requests.
    written: u64,
    /// When each request that waits for its answer was made, the oldest first.
    asked: VecDeque<Instant>,
    /// Bytes of the oldest one's answer that have arrived.
    answered: u64,
    /// Only of a source that is on and off.
    periods: Option<Periods>,
    next: Option<Instant>,
}

/// The application at the receiver.
#[derive(Clone, Debug)]
pub struct Server {
    workload: Workload,
    /// Bytes of the present request that have arrived.
    received: u64,
}

/// More than any simulated link carries, far from overflow.
const ENDLESS: u64 = 1 << 60;

impl Client {
    /// `rng` decides when requests arrive, and how long it is on and off.
    pub(crate) fn new(workload: Workload, start: Instant, rng: Rng) -> Self {
        let periods = match workload {
            Workload::OnOff(spec) => Some(Periods::new(spec, start, rng.clone())),
            _ => None,
        };
        Self {
            rng,
            began: start,
            written: 0,
            asked: VecDeque::new(),
            answered: 0,
            periods,
            next: (!workload.has_responses()).then_some(start),
            workload,
        }
    }

    /// When it next wants to do something by itself.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.next
    }

    /// The connection is up. Requests begin now, as those of netperf's `TCP_RR` do: its clock does
    /// not count the handshake.
    pub(crate) fn on_connected(&mut self, now: Instant) {
        self.next = match self.workload {
            Workload::Request { .. } => Some(now),
            Workload::PoissonRequest { mean_gap, .. } => {
                Some(now.saturating_add(self.rng.exponential(mean_gap)))
            }
            _ => self.next,
        };
    }

    /// Its time has come.
    pub(crate) fn on_time(&mut self, now: Instant) -> WriteRequest {
        let mut demand = WriteRequest::default();
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.next = None;
            let due = self.act(at);
            if due.withdraw {
                demand = WriteRequest::default();
            }
            demand.write += due.write;
            demand.close |= due.close;
            demand.withdraw |= due.withdraw;
        }
        demand
    }

    /// `bytes` of answers arrived; [`poll_answer`](Self::poll_answer) tells what they completed.
    pub(crate) fn on_read(&mut self, bytes: u64) {
        self.answered += bytes;
    }

    /// The next request that is answered completely.
    pub(crate) fn poll_answer(&mut self, now: Instant) -> Option<Answer> {
        let response = self.workload.response().filter(|size| self.answered >= size.get())?;
        let number = self.written - self.asked.len() as u64;
        let asked_at = self.asked.pop_front()?;
        self.answered -= response.get();
        if let Workload::Request { gap, .. } = self.workload {
            self.next = Some(now.saturating_add(gap));
        }
        Some(Answer { number, asked_at, latency: now - asked_at })
    }

    /// Requests that wait for an answer.
    pub(crate) fn unanswered(&self) -> u64 {
        self.asked.len() as u64
    }

    /// Bytes that arrived although nothing was asked; there must never be any.
    pub(crate) fn surplus(&self) -> u64 {
        if self.asked.is_empty() { self.answered } else { 0 }
    }

    /// Does what is due at `at`.
    fn act(&mut self, at: Instant) -> WriteRequest {
        let number = self.written;
        self.written += 1;
        let mut demand = WriteRequest::default();
        match self.workload {
            Workload::Bulk => demand.write = ENDLESS,
            // Each of its connections has a client of its own.
            Workload::FlowSizes(_) | Workload::Listed(_) => {}
            Workload::File { size } => {
                demand.write = size.get();
                demand.close = true;
            }
            Workload::Rate { rate, size } => {
                self.next = Some(self.began.saturating_add(nth_tick(rate, size, number + 1)));
                demand.write = size.get();
            }
            Workload::Request { request, .. } => {
                self.asked.push_back(at);
                demand.write = request.get();
            }
            Workload::PoissonRequest { request, mean_gap, .. } => {
                self.asked.push_back(at);
                self.next = Some(at.saturating_add(self.rng.exponential(mean_gap)));
                demand.write = request.get();
            }
            Workload::OnOff(spec) => {
                let deed = self.periods.as_mut().map(Periods::act);
                self.next = self.periods.as_ref().map(Periods::next_time);
                match deed {
                    Some(Action::On) if spec.rate.is_none() => demand.write = ENDLESS,
                    Some(Action::Off) if spec.rate.is_none() => demand.withdraw = true,
                    Some(Action::Message) => demand.write = spec.size.get(),
                    _ => {}
                }
            }
        }
        demand
    }
}

impl Server {
    /// The other end of a client with this workload.
    pub fn new(workload: Workload) -> Self {
        Self { workload, received: 0 }
    }

    /// `bytes` arrived; how many to answer.
    pub fn on_read(&mut self, bytes: u64) -> u64 {
        let (Workload::Request { request, response, .. }
        | Workload::PoissonRequest { request, response, .. }) = self.workload
        else {
            return 0;
        };
        self.received += bytes;
        let complete = self.received / request.get();
        self.received %= request.get();
        complete * response.get()
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Bytes, Duration, Rate, stream};

    use super::*;
    use crate::spec::{OnOff, PeriodSpread};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn client(workload: Workload, start: Instant) -> Client {
        Client::new(workload, start, stream(1, "application"))
    }

    fn writes(write: u64) -> WriteRequest {
        WriteRequest { write, ..WriteRequest::default() }
    }

    #[test]
    fn a_file_is_written_once_and_closed() {
        let mut client = client(Workload::File { size: Bytes(5_000) }, at(3));
        assert_eq!(client.next_time(), Some(at(3)));
        assert_eq!(client.on_time(at(3)), WriteRequest { close: true, ..writes(5_000) });
        assert_eq!(client.next_time(), None);
    }

    #[test]
    fn a_constant_rate_catches_up_and_does_not_drift() {
        // 3 Mbit/s in messages of 1000 bytes: 2.666… ms each.
        let workload = Workload::Rate { rate: Rate::from_mbit(3), size: Bytes(1_000) };
        let mut client = client(workload, at(0));
        let written: u64 = (0..=1_000).map(|ms| client.on_time(at(ms)).write).sum();
        assert_eq!(written, 376 * 1_000, "one at the start, then 375 in a second");
        assert_eq!(client.on_time(at(2_000)).write, 375 * 1_000);
    }

    #[test]
    fn a_request_waits_for_the_connection_for_the_whole_answer_and_pauses() {
        let (request, response) = (Bytes(100), Bytes(1_000));
        let gap = Duration::from_millis(7);
        let workload = Workload::Request { request, response, gap };
        let (mut client, mut server) = (client(workload.clone(), at(0)), Server::new(workload));
        assert_eq!(client.next_time(), None);
        client.on_connected(at(10));
        assert_eq!(client.on_time(at(10)), writes(100));
        assert_eq!(client.next_time(), None);
        assert_eq!(server.on_read(60), 0);
        assert_eq!(server.on_read(40), 1_000);
        client.on_read(400);
        assert_eq!(client.poll_answer(at(20)), None);
        client.on_read(600);
        assert_eq!(client.unanswered(), 1);
        let latency = Duration::from_millis(15);
        let answer = Answer { number: 0, asked_at: at(10), latency };
        assert_eq!(client.poll_answer(at(25)), Some(answer));
        assert_eq!((client.unanswered(), client.surplus()), (0, 0));
        assert_eq!(client.next_time(), Some(at(32)));
        assert_eq!(client.on_time(at(32)), writes(100));
    }

    #[test]
    fn requests_of_an_open_loop_do_not_wait_for_answers_and_are_answered_in_order() {
        let (request, response) = (Bytes(100), Bytes(50));
        let mean_gap = Duration::from_millis(10);
        let workload = Workload::PoissonRequest { request, response, mean_gap };
        let (mut client, mut server) = (client(workload.clone(), at(0)), Server::new(workload));
        client.on_connected(at(0));
        let first = client.next_time().expect("a first request");
        let written = client.on_time(at(1_000)).write;
        let made = written / 100;
        assert!(made > 50, "{made} requests in 100 mean gaps");
        client.on_read(server.on_read(written) + 7);
        let answers: Vec<Answer> = std::iter::from_fn(|| client.poll_answer(at(1_005))).collect();
        assert_eq!(answers.len() as u64, made);
        assert!((0..).zip(&answers).all(|(number, answer)| answer.number == number));
        assert_eq!(answers[0].asked_at, first, "when it arrived, not when it was written");
        assert_eq!(answers[0].latency, at(1_005) - first);
        assert_eq!((client.unanswered(), client.surplus()), (0, 7), "seven bytes too many");
    }

    #[test]
    fn a_greedy_source_takes_back_what_was_not_sent_in_time() {
        let (on, off) = (Duration::from_millis(10), Duration::from_millis(20));
        let spread = PeriodSpread::Fixed;
        let workload = Workload::OnOff(OnOff { on, off, spread, rate: None, size: Bytes(1) });
        let mut client = client(workload, at(0));
        assert_eq!(client.on_time(at(0)), writes(ENDLESS));
        assert_eq!(client.next_time(), Some(at(10)));
        let withdrawal = WriteRequest { withdraw: true, ..WriteRequest::default() };
        assert_eq!(client.on_time(at(10)), withdrawal);
        assert_eq!(client.on_time(at(45)), withdrawal, "on and off again meanwhile");
        assert_eq!(client.on_time(at(60)), writes(ENDLESS));
    }
}

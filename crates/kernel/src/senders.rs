//! The sending ends of the kernel's flows: one thread does what all their applications want, and asks
//! the kernel how the connections are.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;

use rustix::event::PollFlags;
use rustix::net::{Shutdown, connect, shutdown};
use weir_scene::{ConnectionSample, FlowEnd, FlowSpec, MeasureSpec, Workload};
use weir_sockets::clock::Alarm;
use weir_trace::SampleRow;
use weir_units::{Duration, Instant};

use super::info::{TcpInfoReader, failure};
use super::record::LoggedFlow;
use super::shared::{Polls, Shared, raise_priority};
use super::sockets::{IoOutcome, MESSAGE, PIECE, break_off, discard, write};
use weir_links::health::thread_cpu_time;

/// All of them.
pub(super) struct Senders<'a> {
    pub(super) list: Vec<Sender<'a>>,
    pub(super) measure: MeasureSpec,
    pub(super) shared: &'a Shared,
    /// When they end, if the run is not over before.
    pub(super) end: Instant,
}

/// What every sender needs besides its flow.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) shared: &'a Shared,
    pub(super) info_reader: TcpInfoReader,
    pub(super) events: &'a mpsc::Sender<FlowEvent>,
}

/// One flow's sending end.
pub(super) struct Sender<'a> {
    context: Context<'a>,
    flow: LoggedFlow,
    spec: &'a FlowSpec,
    index: u32,
    socket: Option<OwnedFd>,
    address: SocketAddrV4,
    stage: Stage,
    /// Bytes that the application wants sent and the kernel has not taken.
    unwritten: u64,
    written: u64,
    /// Whether the kernel took no more.
    is_full: bool,
    closes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    Connecting,
    Connected,
    Over,
}

/// Something for table `events`.
#[derive(Debug)]
pub(super) struct FlowEvent {
    pub(super) at: Instant,
    pub(super) flow: u32,
    pub(super) kind: &'static str,
    pub(super) detail: String,
}

/// What the thread leaves behind.
pub(super) struct Legacy {
    /// Each flow with its index.
    pub(super) flows: Vec<(u32, LoggedFlow)>,
    pub(super) samples: Vec<SampleRow>,
    /// How punctual applications and samples were.
    pub(super) lateness: Lateness,
    pub(super) cpu: Duration,
}

/// How often something was done, and how often too late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    pub(super) done: u64,
    pub(super) late: u64,
}

/// An application that is later than this is not the one that was described.
pub(super) const LATE: Duration = Duration::from_millis(2);

impl Lateness {
    pub(super) fn record(&mut self, by: Duration) {
        self.done += 1;
        self.late += u64::from(by > LATE);
    }
}

impl Senders<'_> {
    /// Works until the run is over.
    ///
    /// # Errors
    /// What the system refuses, and answers without a request.
    pub(super) fn run(mut self) -> io::Result<Legacy> {
        raise_priority();
        let _alarm = Alarm::set();
        let (mut samples, mut lateness) = (Vec::new(), Lateness::default());
        let mut scratch = vec![0; SCRATCH];
        let warmed_up = Instant::ZERO + self.measure.warmup;
        let mut next_sample = self.measure.sample_interval.map(|interval| Instant::ZERO + interval);
        let mut is_warm = false;
        self.shared.await_start();
        while !self.shared.is_over() && self.shared.now() < self.end {
            let now = self.shared.now();
            if !is_warm && now >= warmed_up {
                is_warm = true;
                self.begin_measurement(now)?;
            }
            for sender in &mut self.list {
                let due = sender.next_time().filter(|at| *at <= now);
                if let Some(due) = due {
                    lateness.record(now - due);
                }
                sender.act(now, is_warm)?;
            }
            if let Some(due) = next_sample.filter(|at| *at <= now) {
                lateness.record(now - due);
                self.sample(due, &mut samples)?;
                next_sample = self.measure.sample_interval.map(|every| after(due, every, now));
            }
            let warming = Some(warmed_up).filter(|_| !is_warm);
            self.wait([next_sample, warming], &mut scratch)?;
        }
        self.finish()?;
        let flows = self.list.into_iter().map(|sender| (sender.index, sender.flow)).collect();
        Ok(Legacy { flows, samples, lateness, cpu: thread_cpu_time() })
    }

    fn begin_measurement(&mut self, now: Instant) -> io::Result<()> {
        for sender in self.list.iter_mut().filter(|sender| sender.stage != Stage::Waiting) {
            let reading = sender.read()?;
            sender.flow.begin_measurement(now, &reading);
        }
        Ok(())
    }

    fn sample(&mut self, due: Instant, rows: &mut Vec<SampleRow>) -> io::Result<()> {
        for sender in self.list.iter_mut().filter(|sender| sender.is_up()) {
            let reading = sender.read()?;
            rows.extend(sender.flow.sample(due, &reading));
        }
        Ok(())
    }

    /// Waits for a socket, or for what comes next; does what sockets are ready for.
    fn wait(&mut self, others: [Option<Instant>; 2], scratch: &mut [u8]) -> io::Result<()> {
        let mut polls = Polls::default();
        for (number, sender) in self.list.iter().enumerate() {
            if let Some(socket) = sender.socket.as_ref().filter(|_| sender.is_up()) {
                polls.add(number, socket.as_fd(), sender.interest());
            }
        }
        let own = self.list.iter().filter_map(Sender::next_time);
        let next = own.chain(others.into_iter().flatten()).min().unwrap_or(Instant::MAX);
        let most = next.saturating_since(self.shared.now()).min(LONGEST_WAIT);
        for (number, flags) in polls.wait(without_slack(most))? {
            self.list[number].work(flags, scratch)?;
        }
        Ok(())
    }

    /// The run is over: what did not end before ends now.
    fn finish(&mut self) -> io::Result<()> {
        let end = (Instant::ZERO + self.measure.duration).min(self.shared.now());
        for sender in &mut self.list {
            sender.take_note_of_completion()?;
            if !sender.flow.is_closed() {
                let reading = sender.read()?;
                sender.flow.end_measurement(end, &reading, FlowEnd::OutOfTime);
            }
            if sender.flow.is_logged()
                && let Some(socket) = sender.socket.take()
            {
                // Between hosts nothing else keeps what is in its buffer from being sent.
                break_off(socket);
            }
        }
        Ok(())
    }
}

impl<'a> Sender<'a> {
    pub(super) fn new(
        context: Context<'a>,
        flow: LoggedFlow,
        spec: &'a FlowSpec,
        index: u32,
        socket: OwnedFd,
        address: SocketAddrV4,
    ) -> Self {
        Self {
            context,
            flow,
            spec,
            index,
            socket: Some(socket),
            address,
            stage: Stage::Waiting,
            unwritten: 0,
            written: 0,
            is_full: false,
            closes: false,
        }
    }

    /// When it wants to do something by itself.
    fn next_time(&self) -> Option<Instant> {
        match self.stage {
            Stage::Waiting => Some(self.flow.start()),
            Stage::Connecting | Stage::Connected => {
                let next = self.flow.next_time().filter(|_| !self.flow.is_closed());
                [next, self.stop()].into_iter().flatten().min()
            }
            Stage::Over => None,
        }
    }

    /// When it is stopped, unless it has ended before.
    fn stop(&self) -> Option<Instant> {
        self.spec.stop.filter(|_| !self.flow.is_closed())
    }

    fn is_up(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Connected)
    }

    fn interest(&self) -> PollFlags {
        if self.stage == Stage::Connecting || self.is_full {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        }
    }

    /// Does what its time has come for, and takes note of what its receiver has.
    fn act(&mut self, now: Instant, is_warm: bool) -> io::Result<()> {
        if self.stage == Stage::Waiting && self.flow.start() <= now {
            self.begin(now, is_warm)?;
        }
        if !self.is_up() {
            return Ok(());
        }
        self.take_note_of_completion()?;
        if self.stop().is_some_and(|stop| stop <= now) {
            self.log(now, "stopped", "");
            let reading = self.read()?;
            self.flow.end_measurement(now, &reading, FlowEnd::Stopped);
            self.end();
            return Ok(());
        }
        if self.flow.next_time().is_some_and(|at| at <= now) {
            let demand = self.flow.on_time(now);
            if demand.withdraw {
                self.unwritten = 0;
            }
            self.unwritten = self.unwritten.saturating_add(demand.write);
            self.closes |= demand.close;
        }
        self.write(now)
    }

    /// The receiver's thread says when the last byte had arrived.
    fn take_note_of_completion(&mut self) -> io::Result<()> {
        let completed = self.context.shared.completed(self.index as usize);
        if let Some(at) = completed.filter(|_| !self.flow.is_closed()) {
            self.log(at, "completed", "");
            let reading = self.read()?;
            self.flow.end_measurement(at, &reading, FlowEnd::Completed);
        }
        Ok(())
    }

    fn begin(&mut self, now: Instant, is_warm: bool) -> io::Result<()> {
        self.log(now, "start", "");
        let Some(socket) = &self.socket else { return Ok(()) };
        match connect(socket, &self.address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        self.stage = Stage::Connecting;
        if is_warm {
            self.flow.begin_measurement(now, &ConnectionSample::default());
        }
        Ok(())
    }

    /// Does what its socket is ready for.
    fn work(&mut self, flags: PollFlags, scratch: &mut [u8]) -> io::Result<()> {
        let now = self.context.shared.now();
        let Some(socket) = &self.socket else { return Ok(()) };
        if let Some(error) = failure(socket) {
            return self.fail(now, &error);
        }
        if flags.contains(PollFlags::OUT) {
            self.is_full = false;
            if self.stage == Stage::Connecting {
                self.stage = Stage::Connected;
                self.log(now, "connected", "");
                self.flow.on_connected(now);
            }
        }
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            match discard(socket, scratch) {
                Ok(IoOutcome::Bytes(bytes)) => {
                    self.flow.on_answer(now, bytes).map_err(io::Error::other)?;
                }
                Ok(IoOutcome::Closed) => return self.on_closed(now),
                Ok(IoOutcome::Blocked) => {}
                Err(error) => return self.fail(now, &error),
            }
        }
        self.write(now)
    }

    /// The other end has closed, which it does when it has everything.
    fn on_closed(&mut self, now: Instant) -> io::Result<()> {
        if self.flow.is_logged() && matches!(self.spec.workload, Workload::File { .. }) {
            // Whether it had everything is in the record of the other host.
            self.context.shared.set_completed(self.index as usize);
        }
        if self.context.shared.completed(self.index as usize).is_none() {
            let early = io::Error::other("the receiver closed before it had everything");
            return self.fail(now, &early);
        }
        self.take_note_of_completion()?;
        self.stage = Stage::Over;
        self.socket = None;
        self.context.shared.close_flow();
        Ok(())
    }

    fn write(&mut self, now: Instant) -> io::Result<()> {
        let Some(socket) = self.socket.as_ref().filter(|_| self.stage == Stage::Connected) else {
            return Ok(());
        };
        let piece = match self.spec.workload {
            Workload::Request { .. } | Workload::PoissonRequest { .. } => MESSAGE,
            _ => PIECE,
        };
        // A bound, so that other flows have their turn; what is left is written in the next.
        for _ in 0..ROUNDS {
            if self.unwritten == 0 || self.is_full {
                break;
            }
            match write(socket, self.unwritten, piece) {
                Ok(IoOutcome::Bytes(bytes)) => {
                    self.unwritten -= bytes;
                    self.written += bytes;
                }
                Ok(_) => self.is_full = true,
                Err(error) => return self.fail(now, &error),
            }
        }
        if self.unwritten > 0 {
            self.is_full = true;
        } else if std::mem::take(&mut self.closes) {
            // A connection that has broken says so when it is read.
            let _ = shutdown(socket, Shutdown::Write);
        }
        Ok(())
    }

    fn fail(&mut self, now: Instant, error: &io::Error) -> io::Result<()> {
        self.log(now, "failed", &error.to_string());
        let reading = self.read()?;
        self.flow.end_measurement(now, &reading, FlowEnd::Failed(error.to_string()));
        self.end();
        Ok(())
    }

    /// Breaks the connection off.
    fn end(&mut self) {
        if let Some(socket) = self.socket.take() {
            break_off(socket);
        }
        self.stage = Stage::Over;
        self.context.shared.close_flow();
    }

    fn read(&self) -> io::Result<ConnectionSample> {
        let delivered = self.context.shared.delivered(self.index as usize);
        match &self.socket {
            Some(socket) => self.context.info_reader.query(socket, self.written, delivered),
            None => Ok(ConnectionSample { delivered, ..ConnectionSample::default() }),
        }
    }

    fn log(&self, at: Instant, kind: &'static str, detail: &str) {
        let event = FlowEvent { at, flow: self.index, kind, detail: detail.to_owned() };
        // The receiver is gone when the run is over.
        let _ = self.context.events.send(event);
    }
}

/// The next of the times that are `every` apart and begin at `due`, once it is later than `now`.
pub(super) fn after(due: Instant, every: Duration, now: Instant) -> Instant {
    let passed = (now - due).as_nanos() / every.as_nanos();
    due.saturating_add(every.saturating_mul(passed + 1))
}

/// A wait that ends within `wait`, though a poll may last a thousandth longer (`select_estimate_accuracy`). What is
/// left is another wait, and a thousandth of that is nothing.
fn without_slack(wait: Duration) -> Duration {
    wait - wait / 1_000
}

/// As much of an answer is discarded at a time.
const SCRATCH: usize = 256 << 10;
/// Pieces that are written in a row: as much as fills the buffer that a connection begins with. A kernel
/// that has taken less says only when a third of it is free that it takes more.
const ROUNDS: usize = 128;
/// Between looks at whether the run is over.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

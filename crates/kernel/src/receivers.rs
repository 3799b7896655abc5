//! The receiving ends of the kernel's flows: one thread takes all that arrives, and answers.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::net::{Shutdown, SocketFlags, acceptfrom_with, shutdown};
use weir_scene::{FlowSpec, Server, Workload};
use weir_units::{Bytes, Duration};

use super::shared::{Polls, Shared, raise_priority};
use super::sockets::{IoOutcome, MESSAGE, discard, write};
use weir_links::health::thread_cpu_time;

/// One flow's receiving end.
pub(super) struct Receiver {
    index: usize,
    listener: Option<OwnedFd>,
    connection: Option<OwnedFd>,
    server: Server,
    /// Bytes of answers to be written.
    unwritten: u64,
    /// Whether the connection took no more of them.
    is_full: bool,
    has_ended: bool,
    delivered: u64,
    /// How many bytes make the flow complete.
    size: Option<Bytes>,
    /// The only sender that may connect; any, within namespaces of our own.
    sender: Option<SocketAddrV4>,
    arrivals: Option<Arrivals>,
}

/// Bytes received until a time in nanoseconds of the run, at most a row per interval.
#[derive(Debug)]
pub(super) struct Arrivals {
    rows: Vec<(u64, u64)>,
    interval: Duration,
}

/// Takes what arrives until `shared` says that it is over; returns the processor time that took.
pub(super) fn run(mut receivers: Vec<Receiver>, shared: &Shared) -> io::Result<Received> {
    raise_priority();
    let mut scratch = vec![0; SCRATCH];
    while !shared.is_over() {
        let mut polls = Polls::default();
        for (number, receiver) in receivers.iter().enumerate() {
            if let Some(socket) = receiver.connection.as_ref().or(receiver.listener.as_ref()) {
                polls.add(number, socket.as_fd(), receiver.interest());
            }
        }
        let ready = polls.wait(LONGEST_WAIT)?;
        for (number, flags) in ready {
            receivers[number].work(flags, shared, &mut scratch);
        }
    }
    Ok(Received { receivers, cpu: thread_cpu_time() })
}

/// What the thread leaves behind.
pub(super) struct Received {
    pub(super) receivers: Vec<Receiver>,
    pub(super) cpu: Duration,
}

impl Arrivals {
    pub(super) fn new(interval: Duration) -> Self {
        Self { rows: Vec::new(), interval }
    }

    pub(super) fn into_rows(self) -> Vec<(u64, u64)> {
        self.rows
    }

    /// Records the number of bytes that have arrived by a time.
    pub(super) fn note(&mut self, at: u64, bytes: u64) {
        if self.rows.last().map_or(0, |last| last.1) == bytes {
            return;
        }
        let [.., (earlier, _), last] = &mut self.rows[..] else {
            return self.rows.push((at, bytes));
        };
        if at - *earlier < self.interval.as_nanos() {
            *last = (at, bytes);
        } else {
            self.rows.push((at, bytes));
        }
    }
}

impl Receiver {
    pub(super) fn new(index: usize, flow: &FlowSpec, listener: OwnedFd) -> Self {
        Self {
            index,
            listener: Some(listener),
            connection: None,
            server: Server::new(flow.workload.clone()),
            unwritten: 0,
            is_full: false,
            has_ended: false,
            delivered: 0,
            size: match flow.workload {
                Workload::File { size } => Some(size),
                _ => None,
            },
            sender: None,
            arrivals: None,
        }
    }

    /// One whose sender is on another host: no other may connect, and what arrives is recorded.
    pub(super) fn of_host(self, sender: SocketAddrV4, interval: Duration) -> Self {
        let arrivals = Some(Arrivals::new(interval));
        Self { sender: Some(sender), arrivals, ..self }
    }

    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Bytes received until a time, if they were recorded.
    pub(super) fn into_arrivals(self) -> Vec<(u64, u64)> {
        self.arrivals.map_or_else(Vec::new, Arrivals::into_rows)
    }

    fn interest(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        if !self.has_ended {
            flags |= PollFlags::IN;
        }
        if self.is_full {
            flags |= PollFlags::OUT;
        }
        flags
    }

    /// Does what its socket is ready for. A connection that breaks is its sender's affair.
    fn work(&mut self, flags: PollFlags, shared: &Shared, scratch: &mut [u8]) {
        if flags.contains(PollFlags::OUT) {
            self.is_full = false;
        }
        let worked = match self.connection {
            None => self.accept(),
            Some(_) => self.read(shared, scratch).and_then(|()| self.answer()),
        };
        if worked.is_err() {
            self.connection = None;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match acceptfrom_with(listener, flags) {
            Ok((_, peer)) if self.sender.is_some_and(|sender| peer != Some(sender.into())) => {}
            Ok((connection, _)) => {
                self.connection = Some(connection);
                self.listener = None;
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn read(&mut self, shared: &Shared, scratch: &mut [u8]) -> io::Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        // A bound, so that other flows have their turn.
        for _ in 0..ROUNDS {
            match discard(connection, scratch)? {
                IoOutcome::Bytes(bytes) => {
                    self.delivered += bytes;
                    self.unwritten += self.server.on_read(bytes);
                    shared.set_delivered(self.index, self.delivered);
                    if let Some(arrivals) = &mut self.arrivals {
                        arrivals.note(shared.now().as_nanos(), self.delivered);
                    }
                    if self.size.is_some_and(|size| size.get() == self.delivered) {
                        shared.set_completed(self.index);
                    }
                }
                IoOutcome::Closed => {
                    self.has_ended = true;
                    break;
                }
                IoOutcome::Blocked => break,
            }
        }
        Ok(())
    }

    /// Writes what is to be answered; closes when nothing more comes.
    fn answer(&mut self) -> io::Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        while self.unwritten > 0 && !self.is_full {
            match write(connection, self.unwritten, MESSAGE)? {
                IoOutcome::Bytes(bytes) => self.unwritten -= bytes,
                _ => self.is_full = true,
            }
        }
        if self.has_ended && self.unwritten == 0 {
            shutdown(connection, Shutdown::Write)?;
            self.connection = None;
        }
        Ok(())
    }
}

/// As much is discarded at a time.
const SCRATCH: usize = 1 << 20;
const ROUNDS: usize = 16;
/// Between looks at whether it is over.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

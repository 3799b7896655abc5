//! What the threads of a run share: its time, what has arrived, whether it is over; and how they wait.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_sockets::clock;
use weir_units::{Duration, Instant};

/// What is known of the kernel's flows on all threads.
#[derive(Debug)]
pub(super) struct Shared {
    /// When the run began, on the machine's clock.
    origin: Instant,
    delivered: Vec<AtomicU64>,
    /// When the last byte had arrived, in nanoseconds of the run; [`NEVER`] before.
    completed: Vec<AtomicU64>,
    /// Flows to which something can still happen.
    open: AtomicUsize,
    over: AtomicBool,
}

const NEVER: u64 = u64::MAX;
/// A run that is broken off before it begins ends within this.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);
/// The timers of threads that wait for a run are late by this many nanoseconds (prctl(2), `PR_SET_TIMERSLACK`).
const LEAST_SLACK: u64 = 1;

impl Shared {
    /// For a run of `flows` flows, of which `open` are the kernel's.
    pub(super) fn new(origin: Instant, flows: usize, open: usize) -> Self {
        Self {
            origin,
            delivered: (0..flows).map(|_| AtomicU64::new(0)).collect(),
            completed: (0..flows).map(|_| AtomicU64::new(NEVER)).collect(),
            open: AtomicUsize::new(open),
            over: AtomicBool::new(false),
        }
    }

    /// The time of the run.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + clock::now().saturating_since(self.origin)
    }

    /// Waits until the run begins. What is sent earlier waits for that on its first link, and the first
    /// round trip of its connection seems longer.
    ///
    /// A poll would be late by up to a thousandth of the wait (`select_estimate_accuracy`). A sleep is late by the slack
    /// of the thread's timers, which a guest's exact clock shows. A run that is broken off before does not wait for it.
    pub(super) fn await_start(&self) {
        while !self.is_over() {
            let left = self.origin.saturating_since(clock::now()).min(LONGEST_SLEEP);
            if left == Duration::ZERO {
                break;
            }
            let early = left.as_nanos().saturating_sub(LEAST_SLACK).max(1);
            std::thread::sleep(std::time::Duration::from_nanos(early));
        }
    }

    pub(super) fn delivered(&self, flow: usize) -> u64 {
        self.delivered[flow].load(Ordering::Acquire)
    }

    pub(super) fn set_delivered(&self, flow: usize, bytes: u64) {
        self.delivered[flow].store(bytes, Ordering::Release);
    }

    /// When all of a flow had arrived.
    pub(super) fn completed(&self, flow: usize) -> Option<Instant> {
        let nanos = self.completed[flow].load(Ordering::Acquire);
        (nanos != NEVER).then(|| Instant::from_nanos(nanos))
    }

    /// All of a flow has arrived now.
    pub(super) fn set_completed(&self, flow: usize) {
        self.completed[flow].store(self.now().as_nanos(), Ordering::Release);
    }

    /// How many flows can still do something.
    pub(super) fn open_flows(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Nothing more happens to a flow.
    pub(super) fn close_flow(&self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether threads must end.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Passes on what became of a thread's work; the others need not go on without it.
    pub(super) fn end_unless_ok<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|_| self.end())
    }

    /// Asks all threads to end.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Sockets to wait for, each with a number.
#[derive(Debug, Default)]
pub(super) struct Polls<'fd> {
    numbers: Vec<usize>,
    fds: Vec<PollFd<'fd>>,
}

impl<'fd> Polls<'fd> {
    pub(super) fn add(&mut self, number: usize, fd: BorrowedFd<'fd>, flags: PollFlags) {
        self.numbers.push(number);
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
    }

    /// Waits until one is ready, or for `most`; returns those that are.
    pub(super) fn wait(mut self, most: Duration) -> io::Result<Vec<(usize, PollFlags)>> {
        let nanos = most.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        match poll(&mut self.fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = self.numbers.into_iter().zip(&self.fds);
        let flagged = ready.map(|(number, fd)| (number, fd.revents()));
        Ok(flagged.filter(|(_, flags)| !flags.is_empty()).collect())
    }
}

/// Gives this thread, which a punctual one has started, the most that an ordinary one can have. It
/// holds the locks of its sockets while it reads and writes: the kernel's TCP stands still if something
/// else takes the processor from it then.
pub(super) fn raise_priority() {
    clock::use_ordinary_priority();
    // Only for this thread (setpriority(2)); without the right to, it stays as ordinary as others.
    let _ = rustix::process::nice(-20);
}

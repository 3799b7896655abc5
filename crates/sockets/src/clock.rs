//! The machine's clock as the models know time, and waits that are precise below a millisecond.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
#[cfg(target_os = "linux")]
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};
use weir_units::{Duration, Instant};

/// The time since this process first asked, on the machine's monotonic clock.
pub fn now() -> Instant {
    let origin = origin_nanos();
    Instant::from_nanos(monotonic_nanos() - origin)
}

fn origin_nanos() -> u64 {
    static ORIGIN: OnceLock<u64> = OnceLock::new();
    *ORIGIN.get_or_init(monotonic_nanos)
}

/// A time of [`now`] as [`monotonic_nanos`] has it.
pub fn to_monotonic_nanos(at: Instant) -> u64 {
    origin_nanos() + at.as_nanos()
}

/// The next moment that lies to the ticks of Linux's timers as the simulator's times begin to its own:
/// 250 µs after one. They fall on whole milliseconds of the monotonic clock (`tick_setup_sched_timer`,
/// since Linux 6.4 and 6.1.30), if the kernel has `CONFIG_HZ` = 1000.
pub fn next_aligned_to_ticks() -> Instant {
    const TICK_NANOS: u64 = 1_000_000;
    const AFTER_TICK_NANOS: u64 = 250_000;
    let now = now();
    let since_tick = (origin_nanos() + now.as_nanos()) % TICK_NANOS;
    let wait = (AFTER_TICK_NANOS + TICK_NANOS - since_tick) % TICK_NANOS;
    now + Duration::from_nanos(wait)
}

/// `CLOCK_MONOTONIC` in nanoseconds: the same clock for all processes of a machine.
pub fn monotonic_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // It starts at zero when the machine does.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Whether this is a guest of User-Mode Linux: its timers are on time, and to look at its clock is what
/// makes virtual time go on.
pub fn is_virtual() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|cpu| cpu.contains("User Mode Linux"))
}

/// The same moment on our clock and on the wall's (`CLOCK_REALTIME` since 1970), which the system
/// writes on datagrams. Read again where something came between the two readings.
pub(crate) fn now_and_wall() -> (Instant, std::time::Duration) {
    const AT_ONCE: Duration = Duration::from_micros(2);
    let mut before = now();
    for _ in 0..3 {
        let time = clock_gettime(ClockId::Realtime);
        let after = now();
        if after.saturating_since(before) < AT_ONCE {
            return (before, std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
        }
        before = after;
    }
    // Without a wall's clock nothing on a datagram is believed.
    (before, std::time::Duration::ZERO)
}

/// What to wait for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Readable,
    /// Something to read, or space to write.
    ReadableOrWritable,
}

/// Waits until there is something to do on `fd`, or until `time` is over, which has the precision of
/// the system's high-resolution timers (`ppoll`, where the system has it). Returns whether there is.
///
/// # Errors
/// What the system reports; an interrupting signal counts as nothing to do.
pub fn wait(fd: BorrowedFd<'_>, interest: Interest, time: Duration) -> io::Result<bool> {
    let flags = match interest {
        Interest::Readable => PollFlags::IN,
        Interest::ReadableOrWritable => PollFlags::IN | PollFlags::OUT,
    };
    let nanos = time.as_nanos();
    let timeout = Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000) as _,
    };
    match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Lets this thread's timers end when they should. Linux puts them off by up to 50 µs otherwise, so
/// that several can share an interrupt (`PR_SET_TIMERSLACK` in prctl(2)).
#[derive(Debug)]
pub struct Alarm {
    #[cfg(target_os = "linux")]
    slack: Option<u64>,
}

impl Alarm {
    /// Until this is dropped.
    pub fn set() -> Self {
        #[cfg(target_os = "linux")]
        {
            use rustix::thread::{current_timer_slack, set_current_timer_slack};
            let slack = current_timer_slack().ok();
            let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
            Self { slack }
        }
        #[cfg(not(target_os = "linux"))]
        Self {}
    }
}

#[cfg(target_os = "linux")]
impl Drop for Alarm {
    fn drop(&mut self) {
        let slack = self.slack.and_then(std::num::NonZeroU64::new);
        let _ = rustix::thread::set_current_timer_slack(slack);
    }
}

/// Lets this thread run ahead of all ordinary ones (`SCHED_FIFO` in sched(7)) until it is dropped,
/// where the system allows that: otherwise whatever else a busy machine does makes it late, by
/// milliseconds. A thread that is started meanwhile inherits it, until it calls [`use_ordinary_priority`].
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct TimerSlackGuard {
    was_ordinary: bool,
}

#[cfg(target_os = "linux")]
impl TimerSlackGuard {
    /// Until this is dropped. A thread that runs ahead already goes on as it did.
    pub fn set() -> Self {
        let was_ordinary = is_ordinary();
        if was_ordinary {
            let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
            let me = thread_native_id();
            let _ = set_thread_priority_and_policy(me, ThreadPriority::Min, policy);
        }
        Self { was_ordinary }
    }
}

#[cfg(target_os = "linux")]
impl Drop for TimerSlackGuard {
    fn drop(&mut self) {
        if self.was_ordinary {
            use_ordinary_priority();
        }
    }
}

/// Makes this thread one of the ordinary ones again, if it is not: one that a [`TimerSlackGuard`] thread has
/// started.
#[cfg(target_os = "linux")]
pub fn use_ordinary_priority() {
    /// Nice 0, on this scale.
    const MIDDLE: u8 = 47;
    if is_ordinary() {
        return;
    }
    let policy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
    if let Ok(middle) = ThreadPriorityValue::try_from(MIDDLE) {
        let priority = ThreadPriority::Crossplatform(middle);
        let _ = set_thread_priority_and_policy(thread_native_id(), priority, policy);
    }
}

#[cfg(target_os = "linux")]
fn is_ordinary() -> bool {
    !matches!(thread_schedule_policy(), Ok(ThreadSchedulePolicy::Realtime(_)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Priority and policy of this thread: fields 40 and 41 of proc_pid_stat(5).
    fn scheduling() -> [String; 2] {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("a thread has a file");
        let fields: Vec<&str> =
            stat.rsplit_once(')').expect("a name in parentheses").1.split_whitespace().collect();
        [37, 38].map(|field| fields[field].to_owned())
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
    fn a_punctual_thread_is_as_it_was_afterwards_and_need_not_pass_it_on() {
        let on_its_own = || {
            use_ordinary_priority();
            assert_eq!(scheduling(), ["0", "0"]);
            let punctual = TimerSlackGuard::set();
            if scheduling()[1] != "1" {
                return println!("skipped: SCHED_FIFO is not permitted");
            }
            let inside = std::thread::spawn(|| {
                use_ordinary_priority();
                scheduling()
            });
            assert_eq!(inside.join().unwrap(), ["0", "0"]);
            drop(punctual);
            assert_eq!(scheduling(), ["0", "0"]);
        };
        std::thread::spawn(on_its_own).join().unwrap();
    }
}

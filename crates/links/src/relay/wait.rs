//! Waiting for several sources at once, as precisely as the machine can.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir_units::Duration;

/// Waits until one of `sources` can be read, or for `most`, and says of each whether it can.
///
/// # Errors
/// What the system reports; an interrupting signal counts as nothing to do.
pub(crate) fn wait_any(
    sources: &[BorrowedFd<'_>],
    most: Duration,
    readable: &mut Vec<bool>,
) -> io::Result<()> {
    let left = most.min(LONGEST).as_nanos();
    let timeout =
        Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
    let mut polled: Vec<PollFd<'_>> =
        sources.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    readable.clear();
    match poll(&mut polled, Some(&timeout)) {
        // An error of a socket is read like data.
        Ok(_) => readable.extend(polled.iter().map(|fd| !fd.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => readable.resize(sources.len(), false),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Longest wait without checking for an end.
const LONGEST: Duration = Duration::from_secs(1);

//! What was written and waits in the host: behind the end of a record (`MSG_EOR`), or for more (`MSG_MORE`,
//! `TCP_CORK`).

use std::collections::{BTreeSet, VecDeque};

use weir_transport::State;
use weir_units::Instant;

use super::Flow;

/// Data of a connection that its transport does not have yet.
#[derive(Debug, Default)]
pub(in crate::simulated) struct Held {
    /// Bytes that follow the end of a record, and whether they end one too.
    records: VecDeque<(u64, bool)>,
    /// What the transport has ends a record: nothing is appended before it has left.
    at_end: bool,
    /// Less than a segment, which waits for more.
    more: u64,
    /// `TCP_CORK` is on.
    corked: bool,
    /// `TCP_NODELAY` is off.
    nagle: bool,
    /// When that goes at the latest.
    deadline: Option<Instant>,
    /// The stream ends here.
    ends: bool,
    /// How much the transport has, and where writes end in that: there it is pushed, also when it is sent again
    /// (`tcp_mark_push`).
    total: u64,
    write_ends: BTreeSet<u64>,
}

impl Held {
    pub(in crate::simulated) fn new(nagle: bool) -> Self {
        Self { nagle, ..Self::default() }
    }

    pub(in crate::simulated) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(in crate::simulated) const fn is_corked(&self) -> bool {
        self.corked
    }

    /// The transport has `bytes` more, which end a write.
    pub(in crate::simulated) fn on_written(&mut self, bytes: u64) {
        self.total += bytes;
        self.write_ends.insert(self.total);
    }

    /// Whether a write ends here.
    pub(in crate::simulated) fn is_write_end(&self, offset: u64) -> bool {
        self.write_ends.contains(&offset)
    }
}

impl Flow {
    /// The application writes `bytes`, which may have to wait for more, or end a record.
    pub(in crate::simulated) fn write(
        &mut self,
        now: Instant,
        bytes: u64,
        more: bool,
        ends_record: bool,
    ) {
        let all = self.held.more + bytes;
        let mss = self.connection.snapshot().mss.get();
        self.held.more = if more || self.held.corked { all % mss } else { 0 };
        let whole = all - self.held.more;
        if whole > 0 {
            self.held.records.push_back((whole, ends_record));
        }
        self.held.deadline = match self.held.more {
            0 => None,
            // Linux's probe timer has the timeout's length (`tcp_check_probe_timer`).
            _ => self.held.deadline.or(Some(now + self.connection.snapshot().rto)),
        };
        self.feed(now);
    }

    /// Hands over what need not wait. Returns whether there was any.
    pub(in crate::simulated) fn feed(&mut self, now: Instant) -> bool {
        let mut fed = false;
        while let Some((bytes, ends_record)) = self.held.records.front().copied() {
            if self.held.at_end && self.connection.unsent().get() > 0 {
                break;
            }
            self.held.records.pop_front();
            // Only the last segment of all may wait for another one (`tcp_nagle_test`).
            self.connection.set_nagle(self.held.nagle && self.held.records.is_empty());
            self.connection.write(now, bytes);
            self.held.on_written(bytes);
            self.held.at_end = ends_record;
            fed = true;
            if ends_record {
                break;
            }
        }
        if self.held.ends && self.held.records.is_empty() {
            self.held.ends = false;
            self.connection.close(now);
            fed = true;
        }
        fed
    }

    /// An acknowledgement lets go what `MSG_MORE` holds, but not what `TCP_CORK` does.
    pub(in crate::simulated) fn release(&mut self, now: Instant) {
        if !self.held.corked && self.held.more > 0 {
            self.release_all();
            self.feed(now);
        }
    }

    pub(in crate::simulated) fn release_all(&mut self) {
        let more = std::mem::take(&mut self.held.more);
        self.held.deadline = None;
        if more > 0 {
            self.held.records.push_back((more, false));
        }
    }

    /// Switches `TCP_NODELAY`, which lets go what waits.
    pub(in crate::simulated) fn set_no_delay(&mut self, on: bool) {
        self.held.nagle = !on;
        self.connection.set_nagle(!on);
        if on {
            self.release_all();
        }
    }

    /// Switches `TCP_CORK`.
    pub(in crate::simulated) fn set_cork(&mut self, on: bool) {
        self.held.corked = on;
        if !on {
            self.release_all();
        }
    }

    /// The stream ends behind all that was written.
    pub(in crate::simulated) fn finish(&mut self, now: Instant) {
        self.release_all();
        self.feed(now);
        if self.held.records.is_empty() {
            self.connection.close(now);
        } else {
            self.held.ends = true;
        }
    }

    /// Whether the application may write.
    pub(in crate::simulated) fn takes_data(&self) -> bool {
        let open = matches!(self.connection.state(), State::Established | State::CloseWait);
        open && !self.held.ends
    }
}

//! A sender that does not decide what leaves: a recording of another one does.
//!
//! Everything else runs as usual: the scoreboard, loss recovery, the epoch with PRR, the RTT, the rate samples and the
//! controller. A retransmission that the recovery scheme did not expect shows what the recorded sender knew: its timer
//! had expired, it probed, or it had found the loss earlier.

use std::ops::Range;

use weir_cc::Cause;
use weir_units::{Bytes, Instant, Rng};

use super::Sender;
use super::transmit::Kind;
use crate::scoreboard::Fate;
use crate::stats::Stats;

impl Sender {
    /// Runs the timers that expire until `now`, but the retransmission timer: the recording shows whether it did.
    pub(crate) fn follow_time(&mut self, now: Instant, stats: &mut Stats) {
        for _ in 0..MOST_EXPIRIES {
            let retransmission = self.timers.rto_deadline(now, &self.rtt);
            let Some(at) = self.next_timeout(now).filter(|at| *at <= now) else { return };
            if self.board.is_empty() || retransmission.is_some_and(|due| due <= at) {
                return;
            }
            self.on_timeout(at, stats);
        }
    }

    /// The recorded sender sent these bytes now, which may have been sent before.
    pub(crate) fn follow_sent(&mut self, now: Instant, range: Range<u64>, stats: &mut Stats) {
        let next = self.board.nxt();
        if range.start < next {
            let again = self.board.within(range.start..range.end.min(next));
            let again: Vec<u64> = again.map(|sent| sent.start).collect();
            for start in again {
                self.follow_repeat(now, start, stats);
            }
        }
        self.written = u64::MAX / 4;
        while self.board.nxt() < range.end {
            let size = (range.end - self.board.nxt()).min(self.mss);
            let departure = self.send_new(now, size);
            self.account(now, &departure, stats);
            if std::mem::take(&mut self.probe_due) {
                self.on_probe_sent(now);
            }
        }
    }

    /// Nothing more leaves before the next acknowledgement. `is_full` says that the window was the reason.
    pub(crate) fn follow_rest(&mut self, is_full: bool) {
        if std::mem::take(&mut self.usage.sent) || is_full {
            self.validate_cwnd(is_full);
        }
    }

    /// The application had nothing more to send.
    pub(crate) fn follow_application(&mut self) {
        self.sampler.on_app_limited(self.board.in_flight());
    }

    fn follow_repeat(&mut self, now: Instant, start: u64, stats: &mut Stats) {
        // Not earlier: a timeout at one segment marks the others lost.
        let found = self.board.within(start..start + 1).next().map(|sent| sent.fate);
        let Some(fate) = found.filter(|fate| *fate != Fate::Sacked) else { return };
        let mut kind = Kind::Retransmission;
        if fate != Fate::Lost {
            let is_first = start == self.board.una();
            let is_last = self.board.last().is_some_and(|last| last.start == start);
            if is_first && self.is_timer_due(now) {
                self.on_rto(now, stats);
            } else if is_last {
                kind = Kind::Probe;
                self.probe_due = false;
            } else {
                let prior_in_flight = self.board.in_flight();
                let lost = self.board.lose_at(start);
                stats.lost_bytes += lost;
                self.reduce(now, Cause::FastRetransmit, lost, prior_in_flight, stats);
            }
        }
        let departure = self.resend(now, start, kind, stats);
        self.account(now, &departure, stats);
        if kind == Kind::Probe {
            self.on_probe_sent(now);
        }
    }

    /// Whether the retransmission timer has expired, or nearly: the RTT is known to the capture's precision.
    fn is_timer_due(&self, now: Instant) -> bool {
        let early = self.rtt.base_rto() / 8;
        self.timers.rto_deadline(now, &self.rtt).is_some_and(|due| due <= now + early)
    }

    /// Draws from `rng` from now on.
    pub(crate) fn reseed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// When the pacer lets the next segment leave.
    pub(crate) fn next_departure(&self) -> Instant {
        self.pacer.next_departure()
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> Bytes {
        self.board.in_flight()
    }
}

/// Timers that expire between two recorded events: reordering and probe, each once, and what they arm.
const MOST_EXPIRIES: usize = 4;

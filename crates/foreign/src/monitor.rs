//! What a hosted stack reports only to its congestion controller: round trips, acknowledged bytes
//! and bytes in flight. The hosts wrap each controller to listen in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use weir_units::Duration;

use crate::clock::{HostInstant, duration};

/// A sender's counters, shared by its controller and its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor(Arc<Mutex<Counts>>);

/// See [`Monitor`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) in_flight: u64,
    pub(crate) acked: u64,
    pub(crate) rtt: Option<Duration>,
    /// Round trips not taken yet.
    pub(crate) samples: VecDeque<Duration>,
    /// When the newest packet that was acknowledged had left.
    newest: Option<HostInstant>,
    /// Whether the acknowledgement at hand covers that packet.
    fresh: bool,
}

impl Monitor {
    /// Reads or changes the counters.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Counts) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn on_sent(&self, bytes: u64) {
        self.with(|counts| counts.in_flight += bytes);
    }

    /// A packet was acknowledged; the packets of one acknowledgement come in ascending order.
    pub(crate) fn on_ack(&self, sent: HostInstant, bytes: u64) {
        self.with(|counts| {
            counts.acked += bytes;
            if counts.newest.is_none_or(|newest| sent >= newest) {
                counts.newest = Some(sent);
                counts.fresh = true;
            }
        });
    }

    /// The acknowledgement is processed, and `in_flight` is exact. A round trip counts only if the
    /// newest packet is acknowledged (RFC 9002 §5.1).
    pub(crate) fn on_end_acks(&self, now: HostInstant, in_flight: u64) {
        self.with(|counts| {
            counts.in_flight = in_flight;
            if let Some(newest) = counts.newest.filter(|_| std::mem::take(&mut counts.fresh)) {
                let rtt = duration(now.saturating_duration_since(newest));
                counts.rtt = Some(rtt);
                counts.samples.push_back(rtt);
            }
        });
    }

    pub(crate) fn on_lost(&self, bytes: u64) {
        self.with(|counts| counts.in_flight = counts.in_flight.saturating_sub(bytes));
    }
}

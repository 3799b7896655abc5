//! How far the window of a sender may grow that does not use it: draft-ietf-ccwg-ratelimited-increase-10.
//!
//! ```text
//! maxFS = initial window                   at the start
//!       = max(maxFS, FlightSize)           after each transmission
//!       = 0                                when the window is reduced
//! cwnd <= 2 maxFS in slow start, maxFS + mss afterwards, while FlightSize < cwnd
//! ```
//!
//! The rule bounds growth; it lowers no window.

use weir_units::Bytes;

/// The largest flight size since the last reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimited {
    max_flight: Bytes,
}

/// A window before and after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) before: Bytes,
    pub(crate) after: Bytes,
    pub(crate) slow_start: bool,
    /// Bytes in flight before the acknowledgement.
    pub(crate) flight: Bytes,
}

impl RateLimited {
    pub(crate) fn new(initial_window: Bytes) -> Self {
        Self { max_flight: initial_window }
    }

    /// The largest flight size since the last reduction.
    pub(crate) fn max_flight(&self) -> Bytes {
        self.max_flight
    }

    /// After a transmission, `flight` bytes are in flight.
    pub(crate) fn on_sent(&mut self, flight: Bytes) {
        self.max_flight = self.max_flight.max(flight);
    }

    /// The window was reduced.
    pub(crate) fn on_reduction(&mut self) {
        self.max_flight = Bytes::ZERO;
    }

    /// The window that is permitted.
    pub(crate) fn bound(&self, growth: Growth, mss: Bytes) -> Bytes {
        let Growth { before, after, slow_start, flight } = growth;
        // A window without space for another segment is in use.
        if flight + mss > before {
            return after;
        }
        let most = if slow_start { self.max_flight * 2 } else { self.max_flight + mss };
        after.min(most.max(before))
    }
}

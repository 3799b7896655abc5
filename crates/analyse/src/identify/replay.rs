//! A replay under one controller: how far its window is from what was in flight.

use weir_cc::AckTimestamps;
use weir_transport::{RecordedAck, Replay};
use weir_units::{Bytes, Duration, Instant, Rng};

use super::history::{Ack, Step};

/// What is known of the connection besides its history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) mss: u32,
    pub(crate) round_trip: Option<u64>,
    pub(crate) has_sack: bool,
    pub(crate) has_ecn: bool,
}

/// How a candidate differs from the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fit {
    /// Samples of the window, and the sum of their relative errors.
    pub(crate) windows: u32,
    pub(crate) window_error: f64,
    /// Samples of paced departures, and the sum of their errors in shares of the gap.
    pub(crate) departures: u32,
    pub(crate) departure_error: f64,
}

/// A replay and what it compares.
#[derive(Clone)]
pub(super) struct Comparison {
    replay: Replay,
    mss: u64,
    /// Of the present round.
    fit: Fit,
    /// The right edge of the receiver's window, and the byte after the last one sent.
    edge: u64,
    next: u64,
    una: u64,
    /// The last new segment was not full.
    is_short: bool,
    /// When the window last let something leave.
    opened: Instant,
    burst: Burst,
    /// Something was sent since the last acknowledgement.
    has_sent: bool,
}

/// New segments that were sent at once, and how long the pacer waits after them.
#[derive(Clone, Copy, Default)]
struct Burst {
    at: Instant,
    gap: Duration,
}

impl Fit {
    /// The mean error of the window or of the departures, the larger one.
    pub(crate) fn error(&self) -> f64 {
        let mean = |sum: f64, count: u32| if count == 0 { 0.0 } else { sum / f64::from(count) };
        let window = mean(self.window_error, self.windows);
        window.max(mean(self.departure_error, self.departures))
    }

    pub(crate) fn samples(&self) -> u32 {
        self.windows + self.departures
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        self.window_error += other.window_error;
        self.departures += other.departures;
        self.departure_error += other.departure_error;
    }
}

impl Comparison {
    /// Before the first event, at `start`. The receiver offers `window` bytes.
    pub(super) fn new(replay: Replay, start: Instant, mss: u32, window: u64) -> Self {
        Self {
            replay,
            mss: u64::from(mss),
            fit: Fit::default(),
            edge: window,
            next: 0,
            una: 0,
            is_short: false,
            opened: start,
            burst: Burst::default(),
            has_sent: false,
        }
    }

    /// Processes an event.
    pub(super) fn step(&mut self, now: Instant, step: &Step) {
        match step {
            Step::Sent(from, to) => self.on_sent(now, *from, *to),
            Step::Ack(ack) => self.on_ack(now, ack),
        }
    }

    /// A round is over, and its fit counted.
    pub(super) fn begin_round(&mut self) {
        self.fit = Fit::default();
    }

    /// Draws from `rng` from now on.
    pub(super) fn reseed(&mut self, rng: Rng) {
        self.replay.reseed(rng);
    }

    /// How it differs from the recording in the present round.
    pub(super) fn fit(&self) -> &Fit {
        &self.fit
    }

    /// The first byte that is not acknowledged, and the byte after the last one sent.
    pub(super) fn places(&self) -> (u64, u64) {
        (self.una, self.next)
    }

    fn on_sent(&mut self, now: Instant, from: u64, to: u64) {
        self.replay.on_time(now);
        if from >= self.next {
            self.compare_departure(now, to - from);
            self.is_short = !(to - from).is_multiple_of(self.mss);
        }
        self.next = self.next.max(to);
        self.has_sent = true;
        self.replay.on_sent(now, from..to);
        if self.is_short {
            self.replay.on_app_limited();
        }
    }

    fn on_ack(&mut self, now: Instant, ack: &Ack) {
        let is_full = !self.is_held();
        if is_full {
            self.compare_window(now);
        }
        self.has_sent = false;
        self.replay.on_sending_paused(is_full);
        self.una = self.una.max(ack.place);
        self.next = self.next.max(ack.place);
        if let Some(window) = ack.window {
            self.edge = self.edge.max(ack.place + window);
        }
        let was_full = self.space() < self.mss;
        self.replay.on_ack(
            now,
            &RecordedAck {
                ack: ack.place,
                sack: &ack.blocks[..ack.count],
                window: ack.window,
                carries_data: ack.carries_data,
                timestamps: ack.timestamps.map(|(value, echo)| AckTimestamps { value, echo }),
                echoes_mark: ack.echoes_mark,
            },
        );
        if was_full && self.space() >= self.mss {
            self.opened = now;
        }
    }

    /// Whether something other than the congestion window holds the sender.
    fn is_held(&self) -> bool {
        self.is_short || self.next == self.una || self.next + self.mss > self.edge
    }

    fn space(&self) -> u64 {
        self.replay.window().get().saturating_sub(self.replay.bytes_in_flight().get())
    }

    /// Compares the window with what is in flight, less what does not fill a segment. A sender that waits for its pacer
    /// does not use the window.
    fn compare_window(&mut self, now: Instant) {
        let window = self.replay.window().get();
        let flight = self.replay.bytes_in_flight().get();
        let due = self.replay.next_departure().max(self.burst.at + self.burst.gap);
        let waits = self.replay.pacing_rate().is_some() && due > now;
        let unused = if waits { 0 } else { window.saturating_sub(flight + self.mss - 1) };
        let beyond = if self.has_sent { flight.saturating_sub(window) } else { 0 };
        self.fit.windows += 1;
        self.fit.window_error += unused.max(beyond) as f64 / window.max(flight).max(1) as f64;
    }

    /// Compares when a burst was sent with when the pacer lets it leave: after the burst before, or after all of them.
    fn compare_departure(&mut self, now: Instant, bytes: u64) {
        let Some(rate) = self.replay.pacing_rate() else { return };
        let gap = rate.transmit_time(Bytes(bytes), &mut 0);
        let is_in_burst = now.saturating_since(self.burst.at) < BURST;
        if is_in_burst {
            self.burst.gap += gap;
            return;
        }
        let by_burst = self.burst.at + self.burst.gap;
        let off = [self.replay.next_departure(), by_burst]
            .map(|due| due.max(self.opened))
            .map(|due| now.saturating_since(due).max(due.saturating_since(now)));
        self.burst = Burst { at: now, gap };
        let share = off[0].min(off[1]).as_nanos() as f64 / gap.as_nanos().max(1) as f64;
        self.fit.departures += 1;
        self.fit.departure_error += share.min(1.0);
    }
}

/// Segments that are sent within this time belong to one burst.
const BURST: Duration = Duration::from_micros(20);

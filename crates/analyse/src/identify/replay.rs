//! One candidate, replayed: how far its window is from what was in flight.

use weir_cc::{AckTimestamps, CcConfig};
use weir_transport::{Config, RecordedAck, RecoveryConfig, Replay, Stack};
use weir_units::{Bytes, Duration, Instant, stream};

use super::history::{Ack, History, Step};

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

/// One candidate. If it draws random numbers there are several replays of it: after each round those that differ much
/// from the recording go on as copies of the best one, with other numbers.
pub(super) struct Candidate {
    particles: Vec<Comparison>,
    fit: Fit,
    /// The round is over when this is acknowledged.
    round_end: u64,
    copies: u64,
    /// It differs too much: the rest is not replayed.
    is_hopeless: bool,
}

/// A replay and what it compares.
#[derive(Clone)]
struct Comparison {
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

    fn add(&mut self, other: &Self) {
        self.windows += other.windows;
        self.window_error += other.window_error;
        self.departures += other.departures;
        self.departure_error += other.departure_error;
    }
}

impl Candidate {
    /// A replay of `history` under `controller`, before its first event.
    pub(super) fn new(history: &History, path: &Path, controller: CcConfig) -> Option<Self> {
        let recovery: RecoveryConfig = "rack".parse().ok()?;
        let count = particles(&controller);
        let config = Config {
            mss: path.mss,
            sack: path.has_sack,
            ecn: Some(path.has_ecn),
            initial_window: first_flight(history, path.mss),
            ..Config::new(Stack { recovery, controller })
        };
        let window = history.first_window().unwrap_or(u64::from(u32::MAX));
        let rtt = path.round_trip.map(Duration::from_nanos);
        let start = history.steps().next()?.0;
        let particle = |number: u64| {
            let rng = stream(number, "replay");
            let replay = Replay::new(&config, start, Bytes(window), rtt, rng).ok()?;
            Some(Comparison {
                replay,
                mss: u64::from(path.mss),
                fit: Fit::default(),
                edge: window,
                next: 0,
                una: 0,
                is_short: false,
                opened: start,
                burst: Burst::default(),
            })
        };
        let particles = (0..count).map(particle).collect::<Option<Vec<_>>>()?;
        Some(Self {
            particles,
            fit: Fit::default(),
            round_end: 0,
            copies: count,
            is_hopeless: false,
        })
    }

    /// Takes in an event.
    pub(super) fn step(&mut self, now: Instant, step: &Step) {
        if self.is_hopeless {
            return;
        }
        for particle in &mut self.particles {
            match step {
                Step::Sent(from, to) => particle.on_sent(now, *from, *to),
                Step::Ack(ack) => particle.on_ack(now, ack),
            }
        }
        let first = &self.particles[0];
        if first.una >= self.round_end && first.next > self.round_end {
            self.round_end = first.next;
            self.end_round();
        }
    }

    /// How it differs from the recording so far.
    pub(super) fn fit(&self) -> Fit {
        self.fit
    }

    fn end_round(&mut self) {
        let errors = self.particles.iter().map(|particle| particle.fit.error());
        let Some((best, least)) = errors.enumerate().min_by(|one, other| one.1.total_cmp(&other.1))
        else {
            return;
        };
        self.fit.add(&self.particles[best].fit);
        self.is_hopeless = self.fit.samples() > ENOUGH_SAMPLES && self.fit.error() > HOPELESS;
        for at in 0..self.particles.len() {
            if self.particles[at].fit.error() > least + MARGIN {
                self.particles[at] = self.particles[best].clone();
                self.particles[at].replay.reseed(stream(self.copies, "replay"));
                self.copies += 1;
            }
        }
        self.particles.iter_mut().for_each(|particle| particle.fit = Fit::default());
    }
}

impl Comparison {
    fn on_sent(&mut self, now: Instant, from: u64, to: u64) {
        self.replay.on_time(now);
        if from >= self.next {
            self.compare_departure(now, to - from);
            self.is_short = !(to - from).is_multiple_of(self.mss);
        }
        self.next = self.next.max(to);
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
        self.replay.on_rest(is_full);
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
        let beyond = flight.saturating_sub(window);
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

/// The initial window in segments: Linux's, or what was sent before the first acknowledgement if that is more.
fn first_flight(history: &History, mss: u32) -> u32 {
    let first = history.steps().map_while(|(_, step)| match step {
        Step::Sent(_, to) => Some(to),
        Step::Ack(ack) => (ack.place == 0).then_some(0),
    });
    let segments = first.max().unwrap_or(0).div_ceil(u64::from(mss.max(1)));
    segments.clamp(INITIAL_WINDOW, LARGEST_INITIAL_WINDOW) as u32
}

/// Replays of a candidate: several if it draws random numbers.
fn particles(controller: &CcConfig) -> u64 {
    use CcConfig::{Bbr, Cdg, Lp, Nv};
    if matches!(controller, Bbr { .. } | Cdg | Lp { .. } | Nv) { 8 } else { 1 }
}

/// RFC 6928.
const INITIAL_WINDOW: u64 = 10;
const LARGEST_INITIAL_WINDOW: u64 = 1_000;
/// Segments that are sent within this time belong to one burst.
const BURST: Duration = Duration::from_micros(20);
/// A mean error after this number of samples beyond which a candidate is given up.
const HOPELESS: f64 = 0.3;
const ENOUGH_SAMPLES: u32 = 1_000;
/// By how much more than the best one a replay may differ in a round.
const MARGIN: f64 = 0.02;

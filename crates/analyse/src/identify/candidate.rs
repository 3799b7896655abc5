//! A candidate: one replay, or several of a controller that draws random numbers.
//!
//! After each round trip the replays that differ much from the recording go on as copies of the best one. All then draw
//! other numbers. If even the best one differs much, the last two round trips are replayed again with other numbers.

use weir_cc::CcConfig;
use weir_transport::{Config, RecoveryConfig, Replay, Stack};
use weir_units::{Bytes, Duration, Instant, Rng, stream};

use super::history::{History, Step};
use super::replay::{Comparison, Fit, Path};

/// The replays of a candidate.
pub(super) struct Candidate {
    particles: Vec<Comparison>,
    /// Of the rounds that are over.
    fit: Fit,
    /// The round is over when this is acknowledged.
    round_end: u64,
    draws: Draws,
    /// Where to begin again, if all replays differ.
    last: Checkpoint,
    retries: u32,
    /// Events that these took.
    replayed: usize,
    /// It differs too much: the rest is not replayed.
    is_rejected: bool,
}

/// The best replay as it was two rounds ago, and as it was one round ago after `split` of the events since.
struct Checkpoint {
    older: (Comparison, Fit),
    newer: (Comparison, Fit),
    events: Vec<(Instant, Step)>,
    split: usize,
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
        let mut draws = Draws::default();
        let particle = |number: u64| {
            let rng = draws.next(number);
            let replay = Replay::new(&config, start, Bytes(window), rtt, rng).ok()?;
            Some(Comparison::new(replay, start, path.mss, window))
        };
        let particles = (0..count).map(particle).collect::<Option<Vec<_>>>()?;
        let place = (particles.first()?.clone(), Fit::default());
        let last = Checkpoint { older: place.clone(), newer: place, events: Vec::new(), split: 0 };
        let (fit, round_end, retries, replayed) = (Fit::default(), 0, 0, 0);
        let is_rejected = false;
        Some(Self { particles, fit, round_end, draws, last, retries, replayed, is_rejected })
    }

    /// Processes an event.
    pub(super) fn step(&mut self, now: Instant, step: &Step) {
        if self.is_rejected {
            return;
        }
        self.particles.iter_mut().for_each(|particle| particle.step(now, step));
        if self.is_random() {
            self.last.events.push((now, step.clone()));
        }
        let (una, next) = self.particles[0].places();
        if una >= self.round_end && next > self.round_end {
            self.round_end = next;
            self.end_round();
        }
    }

    /// How it differs from the recording so far.
    pub(super) fn fit(&self) -> Fit {
        self.fit
    }

    fn is_random(&self) -> bool {
        self.particles.len() > 1
    }

    fn end_round(&mut self) {
        if self.is_random() && self.best().1 > MARGIN && self.fit.error() < RETRIED {
            self.retry();
        }
        let (best, least) = self.best();
        self.fit.add(self.particles[best].fit());
        self.is_rejected = self.fit.samples() > ENOUGH_SAMPLES && self.fit.error() > REJECTED;
        if self.is_random() {
            self.resample(best, least);
            self.last.advance(&self.particles[best], self.fit);
        }
        self.particles.iter_mut().for_each(Comparison::begin_round);
    }

    /// The replay that differs least in this round, and by how much.
    fn best(&self) -> (usize, f64) {
        let errors = self.particles.iter().map(|particle| particle.fit().error()).enumerate();
        errors.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((0, 1.0))
    }

    fn resample(&mut self, best: usize, least: f64) {
        for at in 0..self.particles.len() {
            if self.particles[at].fit().error() > least + MARGIN {
                self.particles[at] = self.particles[best].clone();
            }
            self.particles[at].reseed(self.draws.next(at as u64));
        }
    }

    /// Replays the last two rounds with other numbers until one differs little.
    fn retry(&mut self) {
        for _ in 0..TRIES {
            let work = self.last.events.len() * self.particles.len();
            if self.retries >= MOST_RETRIES || self.replayed + work > MOST_REPLAYED {
                return;
            }
            self.retries += 1;
            self.replayed += work;
            let again = |draws: &mut Draws| {
                let mut particle = self.last.older.0.clone();
                particle.begin_round();
                particle.reseed(draws.any());
                self.last.events.iter().for_each(|(now, step)| particle.step(*now, step));
                particle
            };
            let found: Vec<_> = self.particles.iter().map(|_| again(&mut self.draws)).collect();
            if found.iter().any(|particle| particle.fit().error() <= MARGIN) {
                self.particles = found;
                self.fit = self.last.older.1;
                self.last.go_back();
                return;
            }
        }
    }
}

impl Checkpoint {
    /// A round is over: `best` was its best replay, and `fit` that of all rounds.
    fn advance(&mut self, best: &Comparison, fit: Fit) {
        self.events.drain(..self.split);
        self.split = self.events.len();
        self.older = std::mem::replace(&mut self.newer, (best.clone(), fit));
    }

    /// The replay since `older` is discarded, and its events were replayed again.
    fn go_back(&mut self) {
        self.newer = self.older.clone();
        self.split = 0;
    }
}

/// Random streams for the replays of a candidate.
#[derive(Clone, Copy, Debug, Default)]
struct Draws {
    count: u64,
}

impl Draws {
    /// A stream whose first draw falls into the seventh of `number`: whatever BBR's first phase was, one of seven replays
    /// has it.
    fn next(&mut self, number: u64) -> Rng {
        loop {
            let rng = self.any();
            if rng.clone().below(PHASES) == number % PHASES {
                return rng;
            }
        }
    }

    fn any(&mut self) -> Rng {
        self.count += 1;
        stream(self.count, "replay")
    }
}

/// Replays of a candidate.
fn particles(controller: &CcConfig) -> u64 {
    match controller {
        CcConfig::Bbr { .. } | CcConfig::Nv => PHASES,
        CcConfig::Cdg | CcConfig::Lp { .. } => MANY,
        _ => 1,
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

/// First phases of BBR's cycle.
const PHASES: u64 = 7;
/// CDG draws a number per round, and TCP-LP one that decides when it gives way.
const MANY: u64 = 28;
/// By how much more than the best one a replay may differ in a round.
const MARGIN: f64 = 0.02;
/// Rounds are replayed again while the mean error is below this, so often each, and so often in all.
const RETRIED: f64 = 0.05;
const TRIES: u32 = 12;
const MOST_RETRIES: u32 = 200;
/// Events that are replayed again in all: rounds are as long as a capture makes them.
const MOST_REPLAYED: usize = 1 << 22;
/// A mean error after this number of samples beyond which a candidate is given up.
const REJECTED: f64 = 0.3;
const ENOUGH_SAMPLES: u32 = 1_000;
/// RFC 6928.
const INITIAL_WINDOW: u64 = 10;
const LARGEST_INITIAL_WINDOW: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn place(windows: u32) -> (Comparison, Fit) {
        let stack = "rack/reno".parse().expect("a stack");
        let start = Instant::from_nanos(1);
        let replay =
            Replay::new(&Config::new(stack), start, Bytes(1 << 20), None, stream(1, "replay"));
        let comparison = Comparison::new(replay.expect("built in"), start, 1_448, 1 << 20);
        (comparison, Fit { windows, ..Fit::default() })
    }

    fn windows(checkpoint: &Checkpoint) -> (u32, u32) {
        (checkpoint.older.1.windows, checkpoint.newer.1.windows)
    }

    /// The round before the one that was replayed again is no place to begin again: it is of the discarded replay.
    #[test]
    fn what_is_discarded_is_no_checkpoint() {
        let event = |nanos: u64| (Instant::from_nanos(nanos), Step::Sent(0, 1_448));
        let mut last = Checkpoint {
            older: place(1),
            newer: place(2),
            events: vec![event(1), event(2), event(3)],
            split: 1,
        };
        last.go_back();
        let (best, fit) = place(3);
        last.advance(&best, fit);
        assert_eq!(windows(&last), (1, 3));
        assert_eq!(last.events.len(), 3, "all events since the older one");
        last.events.push(event(4));
        let (best, fit) = place(4);
        last.advance(&best, fit);
        assert_eq!(windows(&last), (3, 4));
        assert_eq!(last.events.len(), 1);
    }
}

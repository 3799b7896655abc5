//! Which congestion control a sender ran: each candidate is replayed over what the sender saw.
//!
//! The acknowledgements of the capture pass through our transport, which sends what the capture shows
//! ([`weir_transport::Replay`]). Before each acknowledgement the window of the candidate is compared with the bytes in
//! flight, where nothing else holds the sender; departures are compared with a candidate's pacing rate. The error of a
//! candidate is the mean relative difference. It is near zero for the true one, whose code is validated against Linux's.
//!
//! | result | rule |
//! |---|---|
//! | class | the candidates whose error is within [`ALIKE`] of the least: they predict the same here |
//! | confidence | 1 - error of the best / error of the best outside the class |
//! | unknown | no error is at most [`LARGEST_ERROR`], or the confidence is below [`LEAST_CONFIDENCE`], or the class has more than [`LARGEST_CLASS`] names |
//!
//! The limits were set on captures of three paths (docs/read.md).

mod candidate;
mod history;
mod replay;

use weir_cc::{CcConfig, KERNEL_CONTROLLERS};

use candidate::Candidate;
pub(crate) use history::History;
pub(crate) use replay::Path;

/// What a capture shows of a sender's congestion control.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Identity {
    /// The names that fit, the usual one first; empty if it is unknown.
    pub(crate) class: Vec<&'static str>,
    pub(crate) confidence: Option<f64>,
    /// The error of each candidate, the least first.
    pub(crate) errors: Vec<(&'static str, f64)>,
    /// Why it is unknown.
    pub(crate) reason: Option<&'static str>,
}

/// What is kept of a connection until its congestion control is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) history: History,
    pub(crate) path: Path,
    /// Whether the capture was made at the receiver.
    pub(crate) is_at_receiver: bool,
    /// Whether no acknowledgement was captured.
    pub(crate) is_one_way: bool,
}

impl Evidence {
    /// Replays all candidates.
    pub(crate) fn identify(&self) -> Identity {
        match self.refusal() {
            Some(reason) => Identity::unknown(Vec::new(), reason),
            None => Identity::of(self.replay()),
        }
    }

    fn refusal(&self) -> Option<&'static str> {
        let history = &self.history;
        if self.is_at_receiver {
            return Some("the capture was made at the receiver");
        }
        if self.is_one_way {
            return Some("only one direction was captured");
        }
        if self.path.mss < LEAST_MSS {
            return Some("the segments are too short");
        }
        if history.most_outstanding() > MOST_SEGMENTS * u64::from(self.path.mss) {
            return Some("too much was in flight");
        }
        if history.unseen() * MOST_UNSEEN > history.bytes() {
            return Some("packets are missing from the capture");
        }
        let repeats = u64::from(history.repeats());
        (repeats * MOST_REPEATS > history.packets()).then_some("too much was sent again")
    }

    fn replay(&self) -> Vec<(&'static str, Candidate)> {
        let candidate = |name: &'static str| {
            let config = CcConfig::parse(name).ok()?;
            Some((name, Candidate::new(&self.history, &self.path, config)?))
        };
        let mut all: Vec<_> = names().filter_map(candidate).collect();
        for (now, step) in self.history.steps() {
            all.iter_mut().for_each(|(_, candidate)| candidate.step(now, &step));
        }
        all
    }
}

impl Identity {
    pub(crate) fn unknown(errors: Vec<(&'static str, f64)>, reason: &'static str) -> Self {
        Self { errors, reason: Some(reason), ..Self::default() }
    }

    fn of(candidates: Vec<(&'static str, Candidate)>) -> Self {
        let samples = candidates.iter().map(|(_, candidate)| candidate.fit().samples()).max();
        let mut errors: Vec<_> =
            candidates.iter().map(|(name, candidate)| (*name, candidate.fit().error())).collect();
        errors.sort_by(|one, other| one.1.total_cmp(&other.1));
        if samples.is_none_or(|samples| samples < LEAST_SAMPLES) {
            return Self::unknown(errors, "the congestion window limited too little of it");
        }
        let least = errors.first().map_or(1.0, |(_, error)| *error);
        let alike = errors.partition_point(|(_, error)| *error <= least + ALIKE);
        let next = errors.get(alike).map_or(1.0, |(_, error)| *error);
        let confidence = 1.0 - least / next;
        if least > LARGEST_ERROR {
            return Self::unknown(errors, "no candidate predicts the window");
        }
        if alike > LARGEST_CLASS {
            return Self::unknown(errors, "too many candidates predict the same");
        }
        if confidence < LEAST_CONFIDENCE {
            return Self::unknown(errors, "candidates that differ predict it equally well");
        }
        let fits = |name: &&'static str| errors[..alike].iter().any(|(other, _)| other == name);
        let class = names().filter(|name| fits(name)).collect();
        Self { class, confidence: Some(confidence), errors, reason: None }
    }
}

/// Linux's congestion controls, the more usual ones first.
fn names() -> impl Iterator<Item = &'static str> {
    let others = KERNEL_CONTROLLERS.into_iter().filter(|name| !USUAL.contains(name));
    USUAL.into_iter().chain(others)
}

const USUAL: [&str; 5] = ["cubic", "bbr", "reno", "dctcp", "lp"];
/// The largest mean error of a candidate that fits.
const LARGEST_ERROR: f64 = 0.03;
/// Candidates whose errors differ by less predict the same.
const ALIKE: f64 = 0.005;
const LEAST_CONFIDENCE: f64 = 0.4;
/// A class of more says too little.
const LARGEST_CLASS: usize = 8;
/// Moments at which the window is compared.
const LEAST_SAMPLES: u32 = 100;
/// Bytes.
const LEAST_MSS: u32 = 200;
/// Segments in flight.
const MOST_SEGMENTS: u64 = 1 << 14;
/// One byte of this number may be missing from the capture.
const MOST_UNSEEN: u64 = 1_000;
/// One packet of this number may be sent again.
const MOST_REPEATS: u64 = 4;

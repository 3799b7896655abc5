//! `drai`: TCP Muzha's data rate adjustment index.
//!
//! Source: Hsiao and Lien, "A New TCP Congestion Control Mechanism over Mobile Ad Hoc Networks by
//! Router-Assisted Approach", slides, 2006. They fix that each router turns the bandwidth that is left on
//! its outgoing side into a small index, that a packet keeps the smallest, and that the total over the
//! number of flows goes into it. The average, the thresholds and the layout are not published: those
//! here are our own.
//!
//! ```text
//! u       share of the time in which the transmitter is busy, averaged over `memory`
//! f       = 1 - u, the part of the bandwidth that is left
//! n       conversations whose data passed in the last second
//! level   = 1 + the number of thresholds that f (or f / n, see Share) reaches
//! packet  = min(packet, level), evaluated when it leaves the queue
//! ```
//!
//! With [`Estimator::Hybrid`] (the slides' "new DRAI" of version 2, again our reading) queue and MAC come
//! first, with five levels: q the queue length averaged over arrivals with weight 0.1, r the retries per
//! frame with weight 1/8,
//!
//! ```text
//! q >= 5 or r >= 2   1
//! q >= 2 or r >= 1   2
//! else, by the share of the time in which the medium is idle: 5 from 0.5, 4 from 0.25, else 3
//! ```
//!
//! Parameters: levels (3 to 7, 5), thresholds (by the number of levels), memory (200 ms), signal
//! (service), share (accelerate), estimator (utilisation).

use weir_units::{Duration, Feedback, Instant, Ratio};

use super::check_memory;
use super::flows::RecentFlows;
use super::occupancy::{Occupancy, Signal, Utilisation, billionths};
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// How an index comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraiConfig {
    /// Shares of the bandwidth left from which the next higher level begins; one less than levels.
    pub thresholds: Thresholds,
    /// What of the transmitter is watched.
    pub signal: Signal,
    /// The time constant of the average.
    pub memory: Duration,
    /// What the number of flows does.
    pub share: Share,
    /// What the index is made of.
    pub estimator: Estimator,
}

/// Up to six rising thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    shares: [Ratio; Self::MAX],
    len: u8,
}

/// What the number of flows does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Nothing.
    None,
    /// What is left is divided among the flows before it is judged, as the slides put it: many flows
    /// then rest at a low utilisation.
    Literal,
    /// Only levels that accelerate are judged by a flow's share.
    #[default]
    Accelerate,
}

/// What an index is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// The average utilisation.
    #[default]
    Utilisation,
    /// Queue and MAC retries first, then the average utilisation of the medium (version 2).
    Hybrid,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Drai {
    config: DraiConfig,
    utilisation: Utilisation,
    flows: RecentFlows,
    /// Averages of the queue in packets and of the retries per frame, in 1/1024.
    queue: u64,
    retries: u64,
}

impl DraiConfig {
    /// Version 2.
    pub fn hybrid() -> Self {
        Self { estimator: Estimator::Hybrid, signal: Signal::Medium, ..Self::default() }
    }

    /// The number of levels.
    pub fn levels(&self) -> u8 {
        self.thresholds.len + 1
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_memory("feedback.memory", self.memory)?;
        if self.estimator == Estimator::Hybrid && self.levels() != HYBRID_LEVELS {
            const HELP: &str = "the hybrid estimator has five levels";
            return Err(ConfigError::new("feedback.levels", self.levels(), HELP));
        }
        Ok(())
    }
}

impl Default for DraiConfig {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::FIVE_LEVELS,
            signal: Signal::Service,
            memory: Duration::from_millis(200),
            share: Share::Accelerate,
            estimator: Estimator::Utilisation,
        }
    }
}

impl Thresholds {
    const MAX: usize = 6;
    const FIVE_LEVELS: Self = Self::from_percents(&[5, 15, 30, 50]);

    /// These; `None` unless they are two to six and rise.
    pub fn new(shares: &[Ratio]) -> Option<Self> {
        let fits = (2..=Self::MAX).contains(&shares.len());
        if !fits || !shares.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut all = [Ratio::ONE; Self::MAX];
        all[..shares.len()].copy_from_slice(shares);
        Some(Self { shares: all, len: shares.len() as u8 })
    }

    /// Those for `levels` levels.
    pub fn usual(levels: u8) -> Option<Self> {
        let percents: &[u32] = match levels {
            3 => &[10, 40],
            4 => &[5, 20, 50],
            5 => return Some(Self::FIVE_LEVELS),
            6 => &[5, 10, 20, 35, 50],
            7 => &[5, 10, 15, 30, 40, 50],
            _ => return None,
        };
        Some(Self::from_percents(percents))
    }

    /// In rising order.
    pub fn as_slice(&self) -> &[Ratio] {
        &self.shares[..usize::from(self.len)]
    }

    const fn from_percents(percents: &[u32]) -> Self {
        let mut shares = [Ratio::ONE; Self::MAX];
        let mut index = 0;
        while index < percents.len() {
            shares[index] = Ratio::from_percent(percents[index]);
            index += 1;
        }
        Self { shares, len: percents.len() as u8 }
    }

    /// The level of this many billionths left.
    fn level(&self, left: u64) -> u8 {
        1 + self.as_slice().iter().filter(|share| left >= billionths(**share)).count() as u8
    }
}

impl Drai {
    /// Nothing seen yet: all of the bandwidth is left.
    pub fn new(config: &DraiConfig) -> Self {
        Self {
            config: *config,
            utilisation: Utilisation::new(config.memory),
            flows: RecentFlows::default(),
            queue: 0,
            retries: 0,
        }
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        if signal == self.config.signal {
            self.utilisation.set(now, occupancy);
        }
    }

    pub(super) fn on_arrival(&mut self, ahead: Backlog) {
        self.queue = (self.queue * 9 + ahead.packets.min(LONGEST_QUEUE) * UNIT) / 10;
    }

    pub(super) fn on_frame(&mut self, retries: u32) {
        self.retries = (self.retries * 7 + u64::from(retries) * UNIT) / 8;
    }

    pub(super) fn on_departure<P: Parcel>(&mut self, now: Instant, parcel: &mut P) {
        if parcel.carries_data() {
            self.flows.note(now, parcel.conversation());
        }
        if let Some(Feedback::Drai(_)) = parcel.feedback() {
            let level = self.level(now);
            if let Some(Feedback::Drai(index)) = parcel.feedback() {
                index.stamp(level);
            }
        }
    }

    /// What it would have senders do at `now`.
    pub fn level(&mut self, now: Instant) -> u8 {
        let left = self.utilisation.idle(now);
        match self.config.estimator {
            Estimator::Hybrid => self.hybrid_level(left),
            Estimator::Utilisation => self.shared_level(now, left),
        }
    }

    fn shared_level(&mut self, now: Instant, left: u64) -> u8 {
        let thresholds = self.config.thresholds;
        let level = thresholds.level(left);
        match self.config.share {
            Share::None => level,
            Share::Literal => thresholds.level(left / self.flows.count(now)),
            Share::Accelerate => {
                // The level that holds or, where none does, the lowest that accelerates.
                let steady = self.config.levels() / 2 + 1;
                if level <= steady {
                    return level;
                }
                thresholds.level(left / self.flows.count(now)).max(steady)
            }
        }
    }

    fn hybrid_level(&self, left: u64) -> u8 {
        if self.queue >= 5 * UNIT || self.retries >= 2 * UNIT {
            1
        } else if self.queue >= 2 * UNIT || self.retries >= UNIT {
            2
        } else if left >= billionths(Ratio::from_percent(50)) {
            5
        } else if left >= billionths(Ratio::from_percent(25)) {
            4
        } else {
            3
        }
    }
}

/// The unit of the averages of queue and retries.
const UNIT: u64 = 1 << 10;
/// Longer ones say nothing more.
const LONGEST_QUEUE: u64 = 1 << 20;
const HYBRID_LEVELS: u8 = 5;

#[cfg(test)]
mod tests;

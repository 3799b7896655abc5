//! `anti-ecn`: a bit that says whether every link on the way has spare capacity.
//!
//! Source: Kunniyur, "AntiECN marking: a marking scheme for high bandwidth delay connections", ICC 2003. A
//! packet leaves its sender with the bit set, and each router that is used well enough clears it: the
//! logical and of the path.
//!
//! Deviation: the paper has a virtual queue that is a little slower than the link. Here a link has spare capacity if
//! its average utilisation is below `below` and at most one packet waits behind the one that leaves.
//!
//! Parameters: below (90 %), memory (200 ms), the time constant of the average.

use weir_units::feedback::Headroom;
use weir_units::{Duration, Feedback, Instant, Ratio};

use super::check_memory;
use super::occupancy::{Occupancy, Signal, Utilisation, billionths};
use crate::error::ConfigError;
use crate::parcel::Parcel;
use crate::queue::Backlog;

/// When a link has spare capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AntiEcnConfig {
    /// The average utilisation below which it has.
    pub below: Ratio,
    /// The time constant of the average.
    pub memory: Duration,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct AntiEcn {
    config: AntiEcnConfig,
    utilisation: Utilisation,
}

impl Default for AntiEcnConfig {
    fn default() -> Self {
        Self { below: Ratio::from_percent(90), memory: Duration::from_millis(200) }
    }
}

impl AntiEcnConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check_memory("feedback.memory", self.memory)
    }
}

impl AntiEcn {
    /// Nothing seen yet.
    pub fn new(config: &AntiEcnConfig) -> Self {
        Self { config: *config, utilisation: Utilisation::new(config.memory) }
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        if signal == Signal::Service {
            self.utilisation.set(now, occupancy);
        }
    }

    pub(super) fn on_departure<P: Parcel>(
        &mut self,
        now: Instant,
        parcel: &mut P,
        behind: Backlog,
    ) {
        if let Some(Feedback::AntiEcn(headroom)) = parcel.feedback() {
            let idle = self.utilisation.idle(now);
            let used = billionths(Ratio::ONE) - idle;
            if behind.packets > MOST_WAITING || used >= billionths(self.config.below) {
                *headroom = Headroom::Scarce;
            }
        }
    }
}

/// Packets that may wait where there is headroom.
const MOST_WAITING: u64 = 1;

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;
    use crate::link::probe::Probe;

    fn bit(agent: &mut AntiEcn, now: Instant, headroom: Headroom, packets: u64) -> Headroom {
        let mut probe =
            Probe { feedback: Some(Feedback::AntiEcn(headroom)), ..Probe::data(0, 100) };
        agent.on_departure(now, &mut probe, Backlog { packets, bytes: Bytes(packets * 100) });
        match probe.feedback {
            Some(Feedback::AntiEcn(headroom)) => headroom,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn headroom_is_an_unused_link_and_a_short_queue_and_is_never_set_again() {
        let mut agent = AntiEcn::new(&AntiEcnConfig::default());
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(bit(&mut agent, at(0), Headroom::Spare, 1), Headroom::Spare);
        assert_eq!(bit(&mut agent, at(0), Headroom::Spare, 2), Headroom::Scarce);
        assert_eq!(bit(&mut agent, at(0), Headroom::Scarce, 0), Headroom::Scarce);
        agent.set_busy(at(0), Signal::Service, Occupancy::Busy);
        // 1 - exp(-t / 200 ms) passes 0.9 after 460.5 ms.
        assert_eq!(bit(&mut agent, at(460), Headroom::Spare, 0), Headroom::Spare);
        assert_eq!(bit(&mut agent, at(461), Headroom::Spare, 0), Headroom::Scarce);
    }
}

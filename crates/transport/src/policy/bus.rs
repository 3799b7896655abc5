//! `bus`: TCP with buffering capability and sequence information (Kim, Toh and Choi, ICC 2000).
//!
//! ```text
//! normal          ERDN(sequence)   -> reestablishing  send nothing, freeze timers
//! reestablishing  ERSN(expected)   -> normal          send again what lies from expected to sequence
//! reestablishing  probe timer      -> reestablishing  ask the peer what it expects
//! reestablishing  answer to that   -> normal          as for an ERSN
//! ```
//!
//! `sequence` is what waits first at the pivoting node, where the route broke: from there on the nodes up
//! to it keep what they have and send it when the route is repaired. Only what was beyond them is lost.
//! After the pause the timeout is doubled until something new is acknowledged, and losses that
//! acknowledgements suggest are not held against the window until all that was outstanding has arrived:
//! both for the segments that wait in the network.
//!
//! Deviations: the paper doubles timeouts that run on while the route is repaired; here they stand
//! still, as its source does, and are doubled afterwards. The probe is an empty segment, because what is
//! unacknowledged waits in the network already. A second ERDN may say that less waits.
//!
//! Parameter: `probe`, the interval at which a source asks that hears nothing; ours is 2 s.

use weir_units::{Duration, Instant};

use super::elfn::PROBE;
use super::{
    AckInfo, AtResume, Order, Policy, PolicyCx, Probe, ResendRequest, Resume, RouteState, Rto,
};

/// Parameters of `bus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusConfig {
    /// The time between probes.
    pub probe: Duration,
}

/// TCP-BuS's states.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    config: BusConfig,
    repair: Option<Repair>,
}

/// The route is being repaired.
#[derive(Clone, Debug)]
struct Repair {
    /// What follows this waits in the network.
    sequence: u64,
    probe_at: Instant,
    /// A probe is out, and an acknowledgement may answer it.
    probed: bool,
}

impl Default for BusConfig {
    fn default() -> Self {
        Self { probe: PROBE }
    }
}

impl Bus {
    pub(super) fn new(config: BusConfig) -> Self {
        Self { config, repair: None }
    }

    /// The route works again, and the peer expects what follows `expected`.
    fn restart(&mut self, expected: u64) -> Order {
        let Some(repair) = self.repair.take() else { return Order::Nothing };
        let again = ResendRequest::Between(expected, repair.sequence);
        Order::Resume(Resume { window: AtResume::Keep, rto: Rto::Doubled, again })
    }
}

impl Policy for Bus {
    fn state(&self) -> RouteState {
        if self.repair.is_some() { RouteState::Reestablishing } else { RouteState::Normal }
    }

    fn on_failure(&mut self, cx: &PolicyCx, sequence: Option<u64>) -> Order {
        let sequence = sequence.unwrap_or(cx.nxt);
        if let Some(repair) = &mut self.repair {
            repair.sequence = repair.sequence.max(sequence);
            return Order::Nothing;
        }
        let probe_at = cx.now.saturating_add(self.config.probe);
        self.repair = Some(Repair { sequence, probe_at, probed: false });
        Order::Freeze(AtResume::Keep)
    }

    fn on_restored(&mut self, cx: &PolicyCx, expected: Option<u64>) -> Order {
        self.restart(expected.unwrap_or(cx.una))
    }

    fn on_ack(&mut self, cx: &PolicyCx, news: &AckInfo) -> Order {
        let answers = self.repair.as_ref().is_some_and(|repair| repair.probed);
        if answers || news.covers_all(cx) { self.restart(news.ack) } else { Order::Nothing }
    }

    fn on_timeout(&mut self, cx: &PolicyCx) -> Order {
        let Some(repair) = &mut self.repair else { return Order::Nothing };
        repair.probe_at = cx.now.saturating_add(self.config.probe);
        repair.probed = true;
        Order::Probe(Probe::Empty)
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.repair.as_ref().map(|repair| repair.probe_at)
    }
}

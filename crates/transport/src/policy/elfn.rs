//! `elfn`: explicit link failure notification (Holland and Vaidya, MobiCom 1999).
//!
//! ```text
//! normal   notice             -> standby  the retransmission timer stops; a probe timer runs
//! standby  probe timer        -> standby  send the first unacknowledged segment
//! standby  any acknowledgement -> normal  RTO and cwnd as they were
//! standby  notice             -> standby  ignored
//! ```
//!
//! What the broken route lost, ordinary recovery finds afterwards. How long it probes is unlimited, as
//! there; `max_wait` bounds it.
//!
//! Parameters: `probe`, the interval; and the paper's ablations, which begin anew after standby:
//! `window=one` with one segment, for which what is outstanding counts as lost; `rto=reset` with a
//! timeout of 6 s, held until the next round trip is measured.

use weir_units::{Duration, Instant};

use super::{
    AckInfo, AtResume, Order, Policy, PolicyCx, Probe, ResendRequest, Resume, RouteState, Rto,
};

/// Parameters of `elfn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfnConfig {
    /// The time between probes.
    pub probe: Duration,
    /// The window after standby; anew, it is one segment.
    pub window: AtResume,
    /// The retransmission timeout after standby; anew, it is 6 s.
    pub rto: AtResume,
}

/// ELFN's states.
#[derive(Clone, Debug)]
pub(super) struct Elfn {
    config: ElfnConfig,
    /// In standby: when the next probe is due.
    probe_at: Option<Instant>,
}

impl Default for ElfnConfig {
    fn default() -> Self {
        Self { probe: PROBE, window: AtResume::Keep, rto: AtResume::Keep }
    }
}

impl Elfn {
    pub(super) fn new(config: ElfnConfig) -> Self {
        Self { config, probe_at: None }
    }

    fn resume(&self) -> Resume {
        let rto = match self.config.rto {
            AtResume::Keep => Rto::Saved,
            AtResume::Anew => Rto::Initial(INITIAL_RTO),
        };
        Resume { window: self.config.window, rto, again: ResendRequest::Nothing }
    }
}

impl Policy for Elfn {
    fn state(&self) -> RouteState {
        if self.probe_at.is_some() { RouteState::Standby } else { RouteState::Normal }
    }

    fn on_failure(&mut self, cx: &PolicyCx, _sequence: Option<u64>) -> Order {
        if self.probe_at.is_some() {
            return Order::Nothing;
        }
        self.probe_at = Some(cx.now.saturating_add(self.config.probe));
        Order::Freeze(AtResume::Keep)
    }

    fn on_ack(&mut self, _cx: &PolicyCx, _news: &AckInfo) -> Order {
        match self.probe_at.take() {
            Some(_) => Order::Resume(self.resume()),
            None => Order::Nothing,
        }
    }

    fn on_timeout(&mut self, cx: &PolicyCx) -> Order {
        self.probe_at = Some(cx.now.saturating_add(self.config.probe));
        Order::Probe(Probe::Oldest)
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.probe_at
    }
}

/// Holland and Vaidya's interval.
pub(super) const PROBE: Duration = Duration::from_secs(2);

/// The paper's initial timeout.
const INITIAL_RTO: Duration = Duration::from_secs(6);

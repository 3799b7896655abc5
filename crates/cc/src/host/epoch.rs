//! Which congestion signals belong together.

use crate::{Cause, RecoveryState};

/// The recovery epoch: all signals until what was sent before the first of them is acknowledged ask for one
/// reduction (RFC 6582 §3.2, RFC 9002 §7.3.2).
///
/// Positions are stream offsets or packet numbers, as the host counts. `weir-transport` has an epoch of its own, which
/// also detects spurious losses and meters by PRR.
///
/// ```
/// use weir_cc::host::RecoveryEpoch;
/// use weir_cc::{Cause, RecoveryState};
///
/// let mut epoch = RecoveryEpoch::default();
/// assert!(epoch.on_congestion(Cause::FastRetransmit, 100), "the first loss opens an epoch");
/// assert!(!epoch.on_congestion(Cause::FastRetransmit, 104), "the second one belongs to it");
/// assert!(!epoch.on_ack(99));
/// assert!(epoch.on_ack(100));
/// assert_eq!(epoch.state(), RecoveryState::Open);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryEpoch {
    state: RecoveryState,
    /// The next position to send when the epoch began.
    point: u64,
}

impl RecoveryEpoch {
    /// The state, for [`CcContext::state`](crate::CcContext::state).
    pub fn state(&self) -> RecoveryState {
        self.state
    }

    /// Whether what was sent up to `position` was sent before the last epoch began. Its loss asks for no other reduction,
    /// also after the end of that epoch (RFC 9002 §7.3.2).
    pub fn covers(&self, position: u64) -> bool {
        position <= self.point
    }

    /// Processes a signal while `next` is the next position to send. Returns whether it opens an epoch:
    /// [`CongestionEvent::first_in_epoch`](crate::CongestionEvent::first_in_epoch).
    ///
    /// A timeout inside an epoch extends it. A loss inside an epoch that a mark began turns it into one of loss.
    pub fn on_congestion(&mut self, cause: Cause, next: u64) -> bool {
        let first = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        self.state = match (cause, self.state) {
            (Cause::Timeout { .. }, _) => RecoveryState::Loss,
            (Cause::FastRetransmit, RecoveryState::Loss) => RecoveryState::Loss,
            (Cause::FastRetransmit, _) => RecoveryState::Recovery,
            (Cause::EcnEcho | Cause::Delay, _) if first => RecoveryState::Cwr,
            (Cause::EcnEcho | Cause::Delay, state) => state,
        };
        if first || matches!(cause, Cause::Timeout { .. }) {
            self.point = next;
        }
        first
    }

    /// Everything below `acknowledged` has arrived. Returns whether this ends the epoch:
    /// [`on_epoch_end`](crate::CongestionController::on_epoch_end) is due.
    pub fn on_ack(&mut self, acknowledged: u64) -> bool {
        let open = !matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        let ends = open && acknowledged >= self.point;
        if ends {
            self.state = RecoveryState::Open;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Cause = Cause::Timeout { backoff: 0 };

    #[test]
    fn a_timeout_extends_the_epoch_without_another_reduction() {
        let mut epoch = RecoveryEpoch::default();
        assert!(epoch.on_congestion(Cause::FastRetransmit, 10));
        assert!(!epoch.on_congestion(TIMEOUT, 20));
        assert_eq!(epoch.state(), RecoveryState::Loss);
        assert!(!epoch.on_congestion(Cause::FastRetransmit, 21));
        assert_eq!(epoch.state(), RecoveryState::Loss);
        assert!(!epoch.on_ack(19));
        assert!(epoch.on_ack(20));
        assert!(!epoch.on_ack(30), "an epoch ends once");
    }

    #[test]
    fn a_loss_after_a_mark_keeps_the_end_of_the_epoch() {
        let mut epoch = RecoveryEpoch::default();
        assert!(epoch.on_congestion(Cause::EcnEcho, 10));
        assert_eq!(epoch.state(), RecoveryState::Cwr);
        assert!(!epoch.on_congestion(Cause::FastRetransmit, 15));
        assert!(!epoch.on_congestion(Cause::Delay, 16));
        assert_eq!(epoch.state(), RecoveryState::Recovery);
        assert!(epoch.on_ack(10));
        assert!(epoch.on_congestion(TIMEOUT, 30), "the next signal opens an epoch");
    }
}

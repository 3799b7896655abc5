//! Round-trip times as RFC 9002 §5 estimates them.

use weir_units::Duration;

use crate::RttSnapshot;

/// RTT estimator: one sample for each acknowledgement of the newest packet.
///
/// The peer's ACK delay stays in the samples, as in TCP, because hosts do not report it to their controllers.
///
/// ```
/// use weir_cc::host::RttFilter;
/// use weir_units::Duration;
///
/// let mut filter = RttFilter::default();
/// filter.on_sample(Duration::from_millis(40));
/// filter.on_sample(Duration::from_millis(48));
/// let rtt = filter.snapshot();
/// assert_eq!((rtt.srtt, rtt.min), (Some(Duration::from_millis(41)), Some(Duration::from_millis(40))));
/// assert_eq!(rtt.rttvar, Duration::from_millis(17));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RttFilter(RttSnapshot);

impl RttFilter {
    /// Processes a sample (RFC 9002 §5.3).
    pub fn on_sample(&mut self, rtt: Duration) {
        let Self(state) = self;
        state.latest = Some(rtt);
        state.min = Some(state.min.map_or(rtt, |min| min.min(rtt)));
        let Some(srtt) = state.srtt else {
            (state.srtt, state.rttvar) = (Some(rtt), rtt / 2);
            return;
        };
        let error = srtt.max(rtt) - srtt.min(rtt);
        state.rttvar = (state.rttvar * 3 + error) / 4;
        state.srtt = Some((srtt * 7 + rtt) / 8);
    }

    /// The estimates, for [`CcContext::rtt`](crate::CcContext::rtt).
    pub fn snapshot(&self) -> RttSnapshot {
        self.0
    }

    /// The probe timeout (RFC 9002 §6.2.1) with the default `max_ack_delay`; before the first sample that of
    /// `kInitialRtt`.
    pub fn probe_timeout(&self) -> Duration {
        let Some(srtt) = self.0.srtt else { return INITIAL_RTT * 3 };
        srtt + (self.0.rttvar * 4).max(GRANULARITY) + MAX_ACK_DELAY
    }
}

/// RFC 9002 §6.2.2.
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// RFC 9002 §6.1.2.
const GRANULARITY: Duration = Duration::from_millis(1);
/// RFC 9000 §18.2.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

//! What all flows of a run achieved together.

use weir_units::{Duration, Instant};

/// What crossed the network for one flow while it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Bytes handed to the receiving application.
    pub(crate) delivered: u64,
    /// IP bytes of the data packets sent.
    pub(crate) sent_ip_bytes: u64,
}

/// Goodput and throughput in Mbit/s over the time in which at least one flow was measured; `None`
/// where that is no time at all. Adding up the flows' own rates would count the time of flows that
/// follow each other twice.
pub(crate) fn rates(mut flows: Vec<Measured>) -> Option<(f64, f64)> {
    flows.sort_by_key(|flow| flow.from);
    let mut active = Duration::ZERO;
    let mut reached = Instant::ZERO;
    for flow in &flows {
        let from = flow.from.max(reached);
        active += flow.to.saturating_since(from);
        reached = reached.max(flow.to);
    }
    let seconds = active.as_secs_f64();
    let mbps = |bytes: u64| bytes as f64 * 8e-6 / seconds;
    let delivered = flows.iter().map(|flow| flow.delivered).sum();
    let sent = flows.iter().map(|flow| flow.sent_ip_bytes).sum();
    (seconds > 0.0).then(|| (mbps(delivered), mbps(sent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(from: u64, to: u64, delivered: u64) -> Measured {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        Measured { from: at(from), to: at(to), delivered, sent_ip_bytes: 2 * delivered }
    }

    #[test]
    fn time_that_flows_share_counts_once_and_time_without_any_not_at_all() {
        let flows = vec![flow(2, 6, 250_000), flow(0, 4, 500_000), flow(10, 12, 250_000)];
        assert_eq!(rates(flows), Some((1.0, 2.0)));
    }

    #[test]
    fn a_flow_within_another_adds_no_time() {
        assert_eq!(rates(vec![flow(0, 8, 500_000), flow(2, 4, 500_000)]), Some((1.0, 2.0)));
    }

    #[test]
    fn without_time_there_is_no_rate() {
        assert_eq!(rates(vec![]), None);
        assert_eq!(rates(vec![flow(3, 3, 7)]), None);
    }
}

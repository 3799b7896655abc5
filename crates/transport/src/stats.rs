//! What a connection counts about itself.

use weir_cc::RecoveryState;
use weir_units::{Bytes, Duration, Instant, Rate};

use crate::RouteState;

/// Counters since the connection opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Segments sent that carried data, retransmissions included.
    pub data_segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub data_bytes_sent: u64,
    /// All segments sent.
    pub segments_sent: u64,
    /// All segments received that were valid.
    pub segments_received: u64,
    /// Segments that did not belong: wrong sequence or acknowledgement numbers, old timestamps.
    pub segments_rejected: u64,
    /// Data segments sent again, for any cause.
    pub retransmits: u64,
    /// Of these, after acknowledgements showed a loss.
    pub retransmits_fast: u64,
    /// Of these, after a timeout.
    pub retransmits_rto: u64,
    /// Of these, as tail loss probes.
    pub retransmits_tlp: u64,
    /// Of these, on behalf of a route-failure policy, without notifying the controller of a loss.
    pub retransmits_route: u64,
    /// Retransmissions of which the receiver said that it had the data before (DSACK). Such reports
    /// beyond the number of retransmissions stem from a network that duplicates, and do not count.
    pub retransmits_spurious: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Retransmission timer expiries.
    pub timeouts: u64,
    /// Bytes declared lost.
    pub lost_bytes: u64,
    /// Episodes of reduction.
    pub reductions: u64,
    /// Reductions taken back.
    pub undone: u64,
    /// Duplicate acknowledgements received.
    pub duplicate_acks: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Times that a route-failure policy stopped the sender.
    pub route_failures: u64,
    /// Probes for a route.
    pub route_probes: u64,
    /// Losses, found by acknowledgements or by a timeout, that a policy kept from the controller.
    pub losses_hidden: u64,
    /// Bytes that the peer acknowledged.
    pub acked_bytes: u64,
    /// Bytes delivered in order to the application on this side.
    pub delivered_bytes: u64,
    /// Time during which the congestion window (or its pacing) held the sender back.
    pub cwnd_limited: Duration,
    /// Time during which the receiver's window held it back.
    pub rwnd_limited: Duration,
    /// Time during which the application had nothing to send.
    pub app_limited: Duration,
    /// Time spent waiting for a retransmission timeout.
    pub rto_wait: Duration,
    /// Time during which a route-failure policy held the sender back.
    pub route_limited: Duration,
}

/// What holds a sender back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    #[default]
    Application,
    Congestion,
    Receiver,
    Route,
}

/// Accounts the time that passes to what limited the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct LimitClock {
    since: Option<Instant>,
    limit: Limit,
}

impl LimitClock {
    /// From now on `limit` holds the sender back.
    pub(crate) fn set(&mut self, now: Instant, limit: Limit, stats: &mut Stats) {
        self.book(now, stats);
        self.limit = limit;
    }

    /// The time since the last event was spent waiting for the timeout that fires now.
    pub(crate) fn timed_out(&mut self, now: Instant, stats: &mut Stats) {
        if let Some(since) = self.since.replace(now) {
            stats.rto_wait += now.saturating_since(since);
        }
    }

    /// Accounts the time up to now.
    pub(crate) fn book(&mut self, now: Instant, stats: &mut Stats) {
        let Some(since) = self.since.replace(now) else { return };
        let spent = now.saturating_since(since);
        match self.limit {
            Limit::Application => stats.app_limited += spent,
            Limit::Congestion => stats.cwnd_limited += spent,
            Limit::Receiver => stats.rwnd_limited += spent,
            Limit::Route => stats.route_limited += spent,
        }
    }

    /// The connection is over: no more time is booked.
    pub(crate) fn stop(&mut self, now: Instant, stats: &mut Stats) {
        self.book(now, stats);
        self.since = None;
    }
}

/// What is in flight, and what may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flight {
    /// As [`Snapshot::cwnd`].
    pub cwnd: Bytes,
    /// As [`Snapshot::bytes_in_flight`].
    pub bytes_in_flight: Bytes,
    /// As [`Snapshot::state`].
    pub state: RecoveryState,
}

/// The state of the sending side, for tables and plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The window in force: the controller's, or PRR's while it meters; the recovery scheme's or the
    /// peer's where that is smaller.
    pub cwnd: Bytes,
    /// The slow-start threshold, if the controller has a finite one.
    pub ssthresh: Option<Bytes>,
    /// Sent, neither acknowledged nor declared lost.
    pub bytes_in_flight: Bytes,
    /// Sent and not acknowledged cumulatively; the next three are parts of it.
    pub unacked: Bytes,
    /// Acknowledged selectively, or by duplicates where there is no SACK.
    pub sacked: Bytes,
    /// Declared lost, sent again or not.
    pub lost: Bytes,
    /// Declared lost and sent again since.
    pub resent: Bytes,
    /// The largest distance by which a segment is known to have come late.
    pub reordering: Bytes,
    /// The payload of a full segment.
    pub mss: Bytes,
    /// The highest stream offset that the peer's window permits, less the oldest unacknowledged.
    pub send_window: Bytes,
    /// The smoothed RTT.
    pub srtt: Option<Duration>,
    /// The newest RTT sample.
    pub latest_rtt: Option<Duration>,
    /// How far RTT samples lie from `srtt`, on average.
    pub rttvar: Option<Duration>,
    /// The smallest recent RTT.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout with back-off.
    pub rto: Duration,
    /// Timeouts in a row: since the peer last acknowledged something new, or an undo showed that they were none.
    pub fruitless: u32,
    /// The rate at which segments leave, if they are paced: the controller's, unless the configuration
    /// has one.
    pub pacing_rate: Option<Rate>,
    /// The recovery epoch's state.
    pub state: RecoveryState,
    /// Where the route-failure policy stands.
    pub route: RouteState,
    /// The controller's phase.
    pub phase: &'static str,
}

//! What the sender says of itself: snapshots, variables, the time in each limit.

use weir_units::{Bytes, Instant, Rate};

use super::Sender;
use crate::stats::{Flight, Snapshot, Stats};

impl Sender {
    /// The connection is over.
    pub(crate) fn stop(&mut self, now: Instant, stats: &mut Stats) {
        self.clock.stop(now, stats);
    }

    /// Accounts the time up to now.
    pub(crate) fn book(&mut self, now: Instant, stats: &mut Stats) {
        self.clock.book(now, stats);
    }

    /// The controller's internal variables.
    pub(crate) fn variables(&self) -> Vec<weir_cc::Variable> {
        self.controller.variables()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.reported_window(),
            ssthresh: self.controller.ssthresh(),
            bytes_in_flight: self.board.in_flight(),
            unacked: Bytes(self.board.outstanding()),
            sacked: Bytes(self.board.sacked()),
            lost: Bytes(self.board.lost()),
            resent: Bytes(self.board.resent()),
            reordering: Bytes(self.reordering),
            mss: Bytes(self.mss),
            send_window: Bytes(self.edge().saturating_sub(self.board.una())),
            srtt: self.rtt.srtt(),
            latest_rtt: self.rtt.latest(),
            rttvar: self.rtt.srtt().map(|_| self.rtt.mdev()),
            min_rtt: self.rtt.min(),
            rto: self.rtt.rto(),
            fruitless: self.timers.fruitless,
            pacing_rate: self.pacing_rate(),
            state: self.epoch.state(),
            route: self.route_state(),
            phase: self.controller.phase(),
        }
    }

    pub(crate) fn flight(&self) -> Flight {
        Flight {
            cwnd: self.reported_window(),
            bytes_in_flight: self.board.in_flight(),
            state: self.epoch.state(),
        }
    }

    pub(crate) fn delivery_rate(&self) -> Option<Rate> {
        self.sampler.rate()
    }
}

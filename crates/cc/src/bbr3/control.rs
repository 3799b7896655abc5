//! What the model makes of window and pacing rate (draft-ietf-ccwg-bbr §5.6).

use weir_units::{Bytes, Duration, Rate};

use super::{Bbr3, LEAST_SEGMENTS, State, UNIT};
use crate::CcContext;
use crate::bbr::aggregation::LONGEST;

impl Bbr3 {
    /// `gain / 100` of the bandwidth-delay product.
    pub(super) fn bdp(&self, bandwidth: Rate, gain: u64) -> Bytes {
        let Some(min_rtt) = self.min_rtt else { return self.initial_window };
        bandwidth.bytes_in(min_rtt).mul_ratio(gain, UNIT).min(LARGEST_BDP)
    }

    /// `QuantizationBudget`: space for three bursts, and two more segments while probing upwards.
    fn quantised(&self, mss: Bytes, window: Bytes) -> Bytes {
        let burst = self.pacing_rate.bytes_in(Duration::from_millis(1)).min(LARGEST_BURST);
        let budget = burst.max(mss * 2) * 3;
        let extra = if self.state == State::Up { mss * 2 } else { Bytes::ZERO };
        window.max(budget).max(mss * LEAST_SEGMENTS) + extra
    }

    /// The bytes that may be in flight at `bandwidth`.
    pub(super) fn inflight(&self, mss: Bytes, bandwidth: Rate) -> Bytes {
        self.quantised(mss, self.bdp(bandwidth, UNIT))
    }

    /// The bytes that are wanted in flight: the bandwidth-delay product unless congestion cut the window.
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw(), UNIT).min(self.cwnd)
    }

    /// `SetCwnd`.
    pub(super) fn update_cwnd(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let bandwidth = self.bw();
        let most = self.bdp(bandwidth, self.cwnd_gain())
            + self.aggregation.window(bandwidth.bytes_in(LONGEST));
        let most = self.quantised(cx.mss, most);
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + acked).min(most);
        } else if self.cwnd < most || self.delivered < self.initial_window {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(cx.mss * LEAST_SEGMENTS);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt.window(cx));
        }
        self.bound_cwnd(cx.mss);
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd(&mut self, mss: Bytes) {
        let longterm = match self.state {
            State::Startup | State::Drain => None,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(mss),
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
        };
        for cap in [longterm, self.model.inflight_shortterm].into_iter().flatten() {
            self.cwnd = self.cwnd.min(cap.max(mss * LEAST_SEGMENTS));
        }
    }

    pub(super) fn update_pacing_rate(&mut self, cx: &CcContext<'_>, gain: u64) {
        self.take_first_rtt(cx);
        let rate = paced(self.bw(), gain);
        if self.full_pipe.reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(LEAST_RATE);
        }
    }

    /// The first RTT replaces the millisecond that the first pacing rate assumed.
    pub(super) fn take_first_rtt(&mut self, cx: &CcContext<'_>) {
        if let (false, Some(srtt)) = (self.has_seen_rtt, cx.rtt.srtt) {
            self.has_seen_rtt = true;
            self.pacing_rate = self.initial_rate(srtt);
        }
    }

    pub(super) fn initial_rate(&self, rtt: Duration) -> Rate {
        let rtt = rtt.max(Duration::from_micros(1));
        let rate = Rate::from_transfer(self.initial_window, rtt).unwrap_or(LEAST_RATE);
        paced(rate, STARTUP_GAIN).max(LEAST_RATE)
    }

    pub(super) fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => STARTUP_GAIN,
            State::Drain => UNIT / 2,
            State::Down => UNIT * 9 / 10,
            State::Cruise | State::Refill | State::ProbeRtt => UNIT,
            State::Up => UNIT * 5 / 4,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.state {
            State::Up => UNIT * 9 / 4,
            State::ProbeRtt => UNIT / 2,
            _ => UNIT * 2,
        }
    }
}

/// One percent below the rate, so that a standing queue drains.
fn paced(rate: Rate, gain: u64) -> Rate {
    rate.mul_ratio(gain, UNIT).mul_ratio(99, 100)
}

/// `4 ln 2` is the smallest gain that doubles delivery per round.
const STARTUP_GAIN: u64 = 277;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);
const LARGEST_BURST: Bytes = Bytes(64 << 10);
/// Sums with it cannot overflow.
const LARGEST_BDP: Bytes = Bytes(u64::MAX / 16);

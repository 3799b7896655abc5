//! What the model makes of window and pacing rate (draft-ietf-ccwg-bbr §5.6).

use weir_units::{Bytes, Duration, Rate};

use super::{BoundedBbr, LEAST_SEGMENTS, State, UNIT, Version};
use crate::CcContext;
use crate::bbr::aggregation::LONGEST;

impl BoundedBbr {
    /// `gain / 1000` of the bandwidth-delay product.
    pub(super) fn bdp(&self, bandwidth: Rate, gain: u64) -> Bytes {
        let Some(min_rtt) = self.min_rtt else { return self.initial_window };
        bandwidth.bytes_in(min_rtt).mul_ratio(gain, UNIT).min(LARGEST_BDP)
    }

    /// `QuantizationBudget`: space for three bursts, and two more segments while probing upwards.
    fn quantised(&self, mss: Bytes, window: Bytes) -> Bytes {
        let burst = self.pacing_rate.bytes_in(Duration::from_millis(1));
        let budget = match self.version {
            Version::Two(_) => self.short_path_burst(mss, burst) * 3,
            Version::Three(_) => burst.min(LARGEST_BURST).max(mss * 2) * 3,
        };
        let extra = if self.state == State::Up { mss * 2 } else { Bytes::ZERO };
        window.max(budget).max(mss * LEAST_SEGMENTS) + extra
    }

    /// The bytes that may be in flight at `gain / 1000` of `bandwidth`.
    pub(super) fn inflight(&self, mss: Bytes, bandwidth: Rate, gain: u64) -> Bytes {
        self.quantised(mss, self.bdp(bandwidth, gain))
    }

    /// The bytes that are wanted in flight: the bandwidth-delay product unless congestion cut the window.
    pub(super) fn target_inflight(&self, mss: Bytes) -> Bytes {
        let product = match self.version {
            Version::Two(_) => self.inflight(mss, self.bw(), UNIT),
            Version::Three(_) => self.bdp(self.bw(), UNIT),
        };
        product.min(self.cwnd)
    }

    /// `SetCwnd`.
    pub(super) fn update_cwnd(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        let bandwidth = self.bw();
        let most = self.bdp(bandwidth, self.cwnd_gain())
            + self.aggregation.window(bandwidth.bytes_in(LONGEST));
        let most = self.quantised(cx.mss, most);
        if self.full_pipe.reached {
            self.cwnd = (self.cwnd + acked).min(most);
        } else if self.cwnd < most || self.is_first_flight() {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(cx.mss * LEAST_SEGMENTS);
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt.window(cx));
        }
        self.bound_cwnd(cx.mss);
    }

    /// Whether startup raises the window above its target: until the first flight, or in version 2 the second, is over.
    fn is_first_flight(&self) -> bool {
        match self.version {
            Version::Two(_) => self.cwnd < self.initial_window * 2,
            Version::Three(_) => self.delivered < self.initial_window,
        }
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
        paced(rate, self.startup_gain()).max(LEAST_RATE)
    }

    fn startup_gain(&self) -> u64 {
        match self.version {
            Version::Two(_) => DOUBLING_WINDOW_GAIN,
            Version::Three(_) => DOUBLING_RATE_GAIN,
        }
    }

    pub(super) fn pacing_gain(&self) -> u64 {
        let version_2 = self.version.is_2();
        match self.state {
            State::Startup => self.startup_gain(),
            State::Drain if version_2 => UNIT * UNIT / DOUBLING_WINDOW_GAIN,
            State::Drain => UNIT / 2,
            State::Down if version_2 => UNIT * 3 / 4,
            State::Down => UNIT * 9 / 10,
            State::Cruise | State::Refill | State::ProbeRtt => UNIT,
            State::Up => PROBE_GAIN,
        }
    }

    pub(super) fn cwnd_gain(&self) -> u64 {
        let version_2 = self.version.is_2();
        match self.state {
            State::Startup | State::Drain if version_2 => DOUBLING_WINDOW_GAIN,
            State::Up if !version_2 => UNIT * 9 / 4,
            State::ProbeRtt if version_2 => UNIT,
            State::ProbeRtt => UNIT / 2,
            _ => UNIT * 2,
        }
    }
}

/// One percent below the rate, so that a standing queue drains.
fn paced(rate: Rate, gain: u64) -> Rate {
    rate.mul_ratio(gain, UNIT).mul_ratio(99, 100)
}

/// Of the rate in the state that probes for more.
pub(super) const PROBE_GAIN: u64 = UNIT * 5 / 4;
/// `4 ln 2` is the smallest gain that doubles delivery per round.
const DOUBLING_RATE_GAIN: u64 = 2_770;
/// `2 / ln 2`, with which a paced sender sends what slow start sends in a round.
const DOUBLING_WINDOW_GAIN: u64 = 2_885;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);
pub(super) const LARGEST_BURST: Bytes = Bytes(64 << 10);
/// Sums with it cannot overflow.
const LARGEST_BDP: Bytes = Bytes(u64::MAX / 16);

//! The rate that controllers of data centres share: a start that doubles, a window that only bounds what is in
//! flight, a reduction that can be taken back.

use weir_units::{Bytes, Duration, Rate};

use crate::{Cause, CcContext, CongestionEvent};

/// A rate to pace at, and the window that goes with it.
#[derive(Clone, Debug)]
pub(crate) struct PacedRate {
    /// In bits per second; unknown before the first round trip.
    rate: Option<u64>,
    cwnd: Bytes,
    /// It doubles with every round trip.
    starting: bool,
    least: u64,
    most: u64,
    /// Rate and window to return to if the last reduction proves unfounded.
    checkpoint: Option<(Option<u64>, Bytes)>,
}

impl PacedRate {
    /// Starts with `initial_window` per round trip, within these rates.
    pub(crate) fn new(initial_window: Bytes, least: Rate, most: Rate) -> Self {
        let (least, most) = (least.as_bits_per_sec().max(1), most.as_bits_per_sec());
        let most = most.max(least);
        Self { rate: None, cwnd: initial_window, starting: true, least, most, checkpoint: None }
    }

    /// Bits per second.
    pub(crate) fn get(&self) -> u64 {
        self.rate.unwrap_or(self.least)
    }

    pub(crate) fn is_starting(&self) -> bool {
        self.starting
    }

    /// The window that doubles grows by what was acknowledged while the sender uses it.
    pub(crate) fn double(&mut self, cx: &CcContext<'_>, acked: Bytes) {
        if !cx.app_limited {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.min(cx.peer_window).max(cx.mss);
        let srtt = cx.rtt.srtt.unwrap_or_default();
        let rate = per_round_trip(self.cwnd, srtt).as_bits_per_sec();
        self.rate = Some(rate.clamp(self.least, self.most));
        if rate >= self.most {
            self.end_start(cx);
        }
    }

    pub(crate) fn end_start(&mut self, cx: &CcContext<'_>) {
        self.starting = false;
        self.set(cx, self.get());
    }

    /// Sets the rate, and the window to two round trips' worth.
    pub(crate) fn set(&mut self, cx: &CcContext<'_>, rate: u64) {
        let rate = rate.clamp(self.least, self.most);
        self.rate = Some(rate);
        let srtt = cx.rtt.srtt.unwrap_or_default();
        let per_rtt = Rate::from_bits_per_sec(rate).bytes_in(srtt);
        let most = cx.peer_window.max(cx.mss);
        self.cwnd = (per_rtt * 2).max(cx.mss * LEAST_SEGMENTS).min(most);
    }

    /// What a loss or a timeout does: the first of an epoch reduces the rate, and never enlarges the window; a
    /// timeout leaves a segment more than what is in flight until the next acknowledgement.
    pub(crate) fn on_loss(
        &mut self,
        cx: &CcContext<'_>,
        event: &CongestionEvent,
        reduced: impl FnOnce(u64) -> u64,
    ) {
        if event.cause != Cause::EcnEcho {
            let (rate, cwnd) = self.checkpoint.unwrap_or_default();
            self.checkpoint = Some((rate.max(self.rate), cwnd.max(self.cwnd)));
        }
        if event.first_in_epoch {
            let before = self.cwnd.max(cx.mss * LEAST_SEGMENTS);
            self.starting = false;
            self.set(cx, reduced(self.get()));
            self.cwnd = self.cwnd.min(before);
        }
        if matches!(event.cause, Cause::Timeout { .. }) {
            self.cwnd = cx.bytes_in_flight + cx.mss;
        }
    }

    pub(crate) fn forget(&mut self) {
        self.checkpoint = None;
    }

    pub(crate) fn undo(&mut self) {
        if let Some((rate, cwnd)) = self.checkpoint.take() {
            self.rate = self.rate.max(rate);
            self.cwnd = self.cwnd.max(cwnd);
        }
    }

    pub(crate) fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.rate.map(Rate::from_bits_per_sec)
    }
}

/// The methods of a controller whose field `paced` is a [`PacedRate`].
macro_rules! paced_rate {
    () => {
        fn on_epoch_end(&mut self, _cx: &mut $crate::CcContext<'_>) {
            self.paced.forget();
        }

        fn on_spurious(&mut self, _cx: &mut $crate::CcContext<'_>) {
            self.paced.undo();
        }

        fn cwnd(&self) -> weir_units::Bytes {
            self.paced.cwnd()
        }

        fn pacing_rate(&self) -> Option<weir_units::Rate> {
            self.paced.pacing_rate()
        }
    };
}
pub(crate) use paced_rate;

/// A window per round trip.
pub(crate) fn per_round_trip(window: Bytes, rtt: Duration) -> Rate {
    let rtt = rtt.max(Duration::from_nanos(1));
    Rate::from_transfer(window, rtt).map_or(LEAST_RATE, |rate| rate.max(LEAST_RATE))
}

/// `value * num / den`, rounded down, at most what fits; a `den` of zero counts as 1.
pub(crate) fn mul_div(value: u64, num: u64, den: u64) -> u64 {
    let product = u128::from(value) * u128::from(num) / u128::from(den.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

const LEAST_SEGMENTS: u64 = 2;
const LEAST_RATE: Rate = Rate::from_bits_per_sec(1_000);

//! `hpcc`: HPCC (Li et al., "HPCC: high precision congestion control", SIGCOMM 2019), a window that in-band telemetry
//! of every hop sets.
//!
//! Each link with feedback `int` adds a record to a data packet: time, bytes sent, queue, rate. The newest
//! acknowledged packet's records come back. With T the base round trip and a prime for the records before:
//!
//! ```text
//! hop i     u_i = (bytes_i - bytes_i') / (time_i - time_i') / rate_i + min(queue_i, queue_i') / (rate_i T)
//! filter    U = U (1 - tau / T) + tau / T max u_i         tau: that hop's time between the records, at most T
//! window    U >= eta or stage >= max_stage:  W = Wc eta / U + wai T     else  W = Wc + wai T
//! once per round trip  Wc = W; stage = 0 in the first case, stage + 1 in the other
//! pace      W / T
//! ```
//!
//! U is 1 at first. A flow starts at the rate of its first link, in the records of the handshake. Windows are at most that rate's.
//!
//! Values: `eta` 0.95 and `max_stage` 5 as in the paper (its simulator's scripts run with 0); `base` 13 us and `wai`, 50
//! Mbit/s, as in the simulator at 100 Gbit/s. `base` is to be the largest round trip of the network without queues.
//!
//! Deviations: the simulator's lowest rate of 100 Mbit/s is 1 Mbit/s here. Losses, for which HPCC has no rule
//! because its network has PFC, are repaired and change nothing; a timeout leaves a segment more than what is in
//! flight until the next record. Where no record comes back this is Reno.
//!
//! Parameters: `base`, `eta`, `max_stage`, `wai`.

use weir_units::feedback::{Hop, Telemetry};
use weir_units::{Bytes, Duration, Feedback, FeedbackKind, Rate};

use crate::paced::mul_div;
use crate::window::{AckClockedWindow, may_raise};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Decimal, Needs, PathEvent,
    Variable,
};

/// The parameters of HPCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpccShape {
    /// The base round trip T.
    pub base: Duration,
    /// The use of a link that it aims at.
    pub eta: Decimal,
    /// Round trips of additive increase before a multiplicative one.
    pub max_stage: u64,
    /// What a round trip adds to the rate.
    pub wai: Rate,
}

/// HPCC's window.
#[derive(Clone, Debug)]
pub struct Hpcc {
    shape: HpccShape,
    /// Reno's, until a record comes; then HPCC's.
    window: AckClockedWindow,
    control: Option<Control>,
    /// Records that the acknowledgement at hand brings.
    news: Option<Telemetry>,
    /// The window before the last timeout.
    checkpoint: Option<Bytes>,
}

/// What the records have led to.
#[derive(Clone, Debug)]
struct Control {
    /// Bits per second: the first link's, that in use, and that of the round trip's start.
    line: u64,
    rate: u64,
    reference: u64,
    /// U, in millionths.
    utilisation: u64,
    stage: u64,
    /// The round trip is over when this is acknowledged.
    ends_at: u64,
    before: Telemetry,
}

impl HpccShape {
    /// 13 us, 0.95, 5, 50 Mbit/s.
    pub const DEFAULT: Self = Self {
        base: Duration::from_micros(13),
        eta: Decimal::NINETEEN_TWENTIETHS,
        max_stage: 5,
        wai: Rate::from_mbit(50),
    };
}

impl Hpcc {
    /// Starts with `initial_window` until a record comes back.
    pub fn new(initial_window: Bytes, shape: HpccShape) -> Self {
        let window = AckClockedWindow::new(initial_window);
        Self { shape, window, control: None, news: None, checkpoint: None }
    }

    fn obey(&mut self, cx: &CcContext<'_>, now: &Telemetry) {
        let Some(first) = now.hops().first() else { return };
        let line = first.rate().as_bits_per_sec().max(LEAST);
        let control = self.control.get_or_insert_with(|| Control::new(line, now));
        if control.before.hops().len() == now.hops().len() {
            control.measure(&self.shape, now);
        }
        control.before = *now;
        control.react(&self.shape, cx);
        let rate = Rate::from_bits_per_sec(control.rate);
        let window = rate.bytes_in(self.shape.base);
        self.window.cwnd = window.max(cx.mss).min(cx.peer_window.max(cx.mss));
    }
}

impl Control {
    fn new(line: u64, before: &Telemetry) -> Self {
        let (utilisation, stage, ends_at) = (FULL, 0, 0);
        Self { line, rate: line, reference: line, utilisation, stage, ends_at, before: *before }
    }

    /// Takes the most used hop into the filter.
    fn measure(&mut self, shape: &HpccShape, now: &Telemetry) {
        let hops = self.before.hops().iter().zip(now.hops());
        let used = hops.filter_map(|(before, now)| utilisation(shape.base, before, now));
        let Some((most, tau)) = used.max() else { return };
        let base = shape.base.as_nanos().max(1);
        let tau = tau.min(base);
        self.utilisation =
            mul_div(self.utilisation, base - tau, base).saturating_add(mul_div(most, tau, base));
    }

    fn react(&mut self, shape: &HpccShape, cx: &CcContext<'_>) {
        let eta = u64::from(shape.eta.thousandths()) * 1_000;
        let multiplies = self.utilisation >= eta || self.stage >= shape.max_stage;
        let scaled = if multiplies {
            mul_div(self.reference, eta, self.utilisation.max(1))
        } else {
            self.reference
        };
        let rate = scaled.saturating_add(shape.wai.as_bits_per_sec());
        self.rate = rate.clamp(LEAST, self.line);
        if cx.snd_una > self.ends_at {
            self.reference = self.rate;
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.ends_at = cx.snd_nxt;
        }
    }
}

/// How much a hop is used, in millionths, and over which time in nanoseconds; none where none has passed.
fn utilisation(base: Duration, before: &Hop, now: &Hop) -> Option<(u64, u64)> {
    let tau = u64::from(now.nanos.wrapping_sub(before.nanos));
    let rate = now.rate().as_bits_per_sec();
    if tau == 0 || tau > u64::from(u32::MAX / 2) || rate == 0 {
        return None;
    }
    let sent = u64::from(now.bytes.wrapping_sub(before.bytes));
    let queue = u64::from(now.queue.min(before.queue));
    // Bits per second times nanoseconds, over bits, in millionths.
    let share = |bytes: u64, nanos: u64| {
        let carried = u128::from(rate) * u128::from(nanos.max(1));
        let used = u128::from(bytes) * 8 * MILLION * NANOS / carried.max(1);
        u64::try_from(used).unwrap_or(u64::MAX).min(MOST_USED)
    };
    Some((share(sent, tau) + share(queue, base.as_nanos()), tau))
}

impl CongestionController for Hpcc {
    fn name(&self) -> &'static str {
        "hpcc"
    }

    fn needs(&self) -> Needs {
        Needs {
            feedback: Some(FeedbackKind::Int),
            own_reduction: true,
            pacing: true,
            ..Needs::default()
        }
    }

    fn request(&mut self, _cx: &mut CcContext<'_>) -> Option<Feedback> {
        Some(Feedback::Int)
    }

    fn on_telemetry(&mut self, records: &Telemetry) {
        self.news = Some(*records);
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        match (&self.control, event.cause) {
            (None, _) => self.window.on_congestion(cx, event, |cwnd| cwnd / 2),
            (Some(_), Cause::Timeout { .. }) => {
                self.checkpoint = self.checkpoint.max(Some(self.window.cwnd));
                self.window.cwnd = cx.bytes_in_flight + cx.mss;
            }
            (Some(_), _) => {}
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        match self.news.take() {
            Some(records) => self.obey(cx, &records),
            None if self.control.is_none() && may_raise(cx, ack) => {
                self.window.grow_as_reno(cx, ack.acked);
            }
            None => {}
        }
    }

    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {
        self.checkpoint = None;
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
        if let Some(cwnd) = self.checkpoint.take() {
            self.window.cwnd = self.window.cwnd.max(cwnd);
        }
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        if self.control.is_none() {
            self.window.on_path(cx.mss, event);
        }
    }

    fn cwnd(&self) -> Bytes {
        self.window.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh().filter(|_| self.control.is_none())
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.control.as_ref().map(|control| Rate::from_bits_per_sec(control.rate))
    }

    fn phase(&self) -> &'static str {
        if self.control.is_some() { "controlled" } else { self.window.phase() }
    }

    fn variables(&self) -> Vec<Variable> {
        let Some(control) = &self.control else { return Vec::new() };
        vec![("utilisation", control.utilisation as f64 / 1e6), ("stage", control.stage as f64)]
    }
}

/// Bits per second.
const LEAST: u64 = 1_000_000;
const MILLION: u128 = 1_000_000;
const NANOS: u128 = 1_000_000_000;
/// U at first.
const FULL: u64 = 1_000_000;
/// A thousand times the rate.
const MOST_USED: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;

    const MSS: Bytes = Bytes(1_000);

    /// One hop of 100 Gbit/s.
    fn records(nanos: u32, bytes: u32, queue: u32) -> Telemetry {
        let mut records = Telemetry::default();
        records.push(Hop { nanos, bytes, queue, kbit: 100_000_000 });
        records
    }

    /// The acknowledgement of everything before `una` returns these records; the rate in Mbit/s after it.
    fn ack(cc: &mut Hpcc, una: u64, records: &Telemetry) -> u64 {
        let mut rng = stream(1, "unused");
        let cx = CcContext::new(Instant::ZERO, MSS, &mut rng);
        let mut cx = CcContext { snd_una: una, snd_nxt: una + 100_000, ..cx };
        cc.on_telemetry(records);
        cc.on_ack(&mut cx, &AckEvent { acked: MSS, ..AckEvent::default() });
        cc.pacing_rate().expect("a record has come").as_bits_per_sec() / 1_000_000
    }

    /// Equations 1 to 4 of the paper with T = 13 us: half the rate and a queue of 81 250 bytes, half of
    /// `rate T`, are a use of 1.
    #[test]
    fn the_window_is_what_the_fullest_hop_allows() {
        let mut cc = Hpcc::new(MSS * 10, HpccShape::DEFAULT);
        // U is 1 at first: 0.95 of the line and 50 Mbit/s.
        assert_eq!(ack(&mut cc, 1, &records(0, 0, 81_250)), 95_050);
        assert_eq!(cc.cwnd(), Bytes(95_050 * 13 / 8));
        // A whole T later the filter has forgotten what was before; reference is 95 050.
        assert_eq!(ack(&mut cc, 2, &records(13_000, 81_250, 200_000)), 95_050 * 95 / 100 + 50);
    }

    /// Below eta it adds for `max_stage` round trips, then it multiplies.
    #[test]
    fn the_window_is_multiplied_after_five_stages() {
        let mut cc = Hpcc::new(MSS * 10, HpccShape::DEFAULT);
        ack(&mut cc, 1, &records(0, 0, 0));
        let rates: Vec<u64> = (1..=7_u32)
            .map(|n| ack(&mut cc, 1 + u64::from(n) * 100_001, &records(n * 13_000, n * 130_000, 0)))
            .collect();
        // 10 bytes per nanosecond are 80 % of the rate.
        assert_eq!(rates[..5], [95_100, 95_150, 95_200, 95_250, 95_300]);
        assert_eq!(rates[5], 100_000, "95 300 / 0.8 * 0.95 is more than the line");
    }

    /// What comes within a round trip does not compound.
    #[test]
    fn the_reference_changes_once_per_round_trip() {
        let mut cc = Hpcc::new(MSS * 10, HpccShape::DEFAULT);
        ack(&mut cc, 1, &records(0, 0, 162_500));
        let first = ack(&mut cc, 2, &records(13_000, 162_500, 162_500));
        let second = ack(&mut cc, 3, &records(26_000, 325_000, 162_500));
        assert_eq!((first, second), (45_198, 45_198), "a use of 2: 95 050 / 2 * 0.95 + 50");
    }
}

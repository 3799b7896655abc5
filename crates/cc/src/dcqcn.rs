//! `dcqcn`: DCQCN (Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015), in the variant
//! of Mellanox's cards that HPCC's simulator has (Li et al., SIGCOMM 2019, its public code).
//!
//! ```text
//! CNP       where marks arrived, at most every `cnp`: the first sets alpha = 1
//! alpha     every `interval`: alpha = (1 - g) alpha, + g if a CNP came in it
//! on CNP    target = rate, unless no stage passed since the last one; rate *= 1 - alpha / 2; the timer restarts
//! timer     every `timer` without CNP:  1st: nothing is added   2nd: target += ai   from the 3rd: target += hai
//!           rate = (rate + target) / 2
//! ```
//!
//! In RDMA the receiver counts the 50 us and sends notification packets. Here it echoes every mark, as for DCTCP
//! (RFC 8257 §3.2), and the sender counts: a CNP is the first acknowledgement with marks after `cnp` without one.
//! That is what the receiver's rule gives, because an echo arrives with the acknowledgement of the packet.
//!
//! `alpha` is computed when a CNP comes, from the intervals that have passed: `alpha (1 - g)^k + g`. The timer's
//! stages are made up for at the next acknowledgement. Nothing runs every microsecond.
//!
//! Defaults are those of HPCC's simulator for 100 Gbit/s, where `interval` is 1 us and `timer` 300 us; the paper has 55
//! us for both and F = 5 timers before it adds. The lowest rate is ours: the simulator has 100 Mbit/s.
//!
//! Deviations: RDMA cards start at the line rate, which `start=line` does; by default the rate doubles per round trip
//! until the first CNP or loss. Stages by bytes sent, which the paper has next to those by time, are left out, as in
//! HPCC's simulator. A loss or a timeout counts as a CNP, once per epoch, because a network without PFC loses packets.
//! The rate does not rise beyond twice what arrives.
//! The window is two round trips' worth.
//!
//! Parameters: `cnp`, 50 us; `interval`, 1 us; `g`, 1/256; `timer`, 300 us; `ai`, 20 Mbit/s; `hai`, 200 Mbit/s; `min`, 1
//! Mbit/s; `line`, 100 Gbit/s; `start`.

use weir_units::{Bytes, Duration, Ecn, Instant, Rate};

use crate::paced::{PacedRate, mul_div, paced_rate};
use crate::{
    AckEvent, Cause, CcContext, CongestionController, CongestionEvent, Gain, Needs, Variable,
};

/// The parameters of DCQCN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcqcnShape {
    /// The least time between notifications.
    pub cnp: Duration,
    /// How often `alpha` decays.
    pub interval: Duration,
    /// The gain of `alpha`.
    pub g: Gain,
    /// How long a stage takes.
    pub timer: Duration,
    /// What the second stage adds.
    pub ai: Rate,
    /// What further ones add.
    pub hai: Rate,
    /// The lowest rate.
    pub min: Rate,
    /// The highest.
    pub line: Rate,
    /// The first.
    pub start: DcqcnStart,
}

/// The first rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DcqcnStart {
    /// The initial window per round trip, and it doubles.
    #[default]
    Slow,
    /// The highest.
    Line,
}

/// DCQCN's rate.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    shape: DcqcnShape,
    paced: PacedRate,
    /// In bits per second.
    target: u64,
    /// In units of 2^-32, and since when it has not decayed; none before the first notification.
    alpha: Option<(u64, Instant)>,
    /// Marks since the last notification.
    marks: bool,
    /// Bytes marked so far.
    marked: Bytes,
    notified_at: Option<Instant>,
    /// Stages since the last notification, and when the one in progress began.
    stage: u32,
    stage_at: Instant,
}

impl DcqcnShape {
    /// As in HPCC's simulator.
    pub const DEFAULT: Self = Self {
        cnp: Duration::from_micros(50),
        interval: Duration::from_micros(1),
        g: Gain::DCQCN,
        timer: Duration::from_micros(300),
        ai: Rate::from_mbit(20),
        hai: Rate::from_mbit(200),
        min: Rate::from_mbit(1),
        line: Rate::from_mbit(100_000),
        start: DcqcnStart::Slow,
    };
}

impl Dcqcn {
    /// Starts with `initial_window`.
    pub fn new(initial_window: Bytes, shape: DcqcnShape) -> Self {
        Self {
            shape,
            paced: PacedRate::new(initial_window, shape.min.min(shape.line), shape.line),
            target: shape.line.as_bits_per_sec(),
            alpha: None,
            marks: false,
            marked: Bytes::ZERO,
            notified_at: None,
            stage: 0,
            stage_at: Instant::ZERO,
        }
    }

    /// The stages that have passed since the last call.
    fn catch_up(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        let timer = self.shape.timer.max(Duration::from_micros(1));
        let line = self.shape.line.as_bits_per_sec();
        let most = delivered(ack).map_or(line, |rate| rate.saturating_mul(2).min(line));
        let mut rate = self.paced.get();
        for _ in 0..MOST_STAGES {
            if cx.now.saturating_since(self.stage_at) < timer {
                break;
            }
            self.stage_at += timer;
            let step = match self.stage {
                0 => Rate::ZERO,
                1 => self.shape.ai,
                _ => self.shape.hai,
            };
            let target = self.target.saturating_add(step.as_bits_per_sec());
            self.target = target.min(most.max(self.target));
            rate = rate.midpoint(self.target).min(most.max(rate));
            self.stage = self.stage.saturating_add(1);
        }
        if cx.now.saturating_since(self.stage_at) >= timer {
            self.stage_at = cx.now;
        }
        self.paced.set(cx, rate);
    }

    /// What is to become of `rate`.
    fn notified(&mut self, now: Instant, rate: u64) -> u64 {
        if self.alpha.is_none() || self.stage > 0 {
            self.target = rate;
        }
        self.notified_at = Some(now);
        self.marks = false;
        self.stage = 0;
        self.stage_at = now;
        rate - mul_div(rate, self.next_alpha(now), 2 * ONE)
    }

    /// `alpha (1 - g)^k + g` after `k` intervals; 1 the first time.
    fn next_alpha(&mut self, now: Instant) -> u64 {
        let Some((alpha, since)) = self.alpha else {
            self.alpha = Some((ONE, now));
            return ONE;
        };
        let interval = self.shape.interval.max(Duration::from_nanos(1));
        let passed = now.saturating_since(since).as_nanos() / interval.as_nanos();
        let gain = self.shape.g.of(ONE);
        let decayed = power(ONE - gain, passed);
        let alpha = (mul_div(alpha, decayed, ONE) + gain).min(ONE);
        self.alpha = Some((alpha, since + interval.saturating_mul(passed)));
        alpha
    }
}

impl CongestionController for Dcqcn {
    fn name(&self) -> &'static str {
        "dcqcn"
    }

    fn needs(&self) -> Needs {
        Needs {
            ecn: Ecn::Ect0,
            rate_samples: true,
            own_reduction: true,
            pacing: true,
            ..Needs::default()
        }
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.cause == Cause::EcnEcho {
            return;
        }
        let rate = self.paced.get();
        let reduced = if event.first_in_epoch { self.notified(cx.now, rate) } else { rate };
        self.paced.on_loss(cx, event, |_| reduced);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.marks |= cx.delivered_marked > self.marked;
        self.marked = cx.delivered_marked;
        if ack.acked == Bytes::ZERO {
            return;
        }
        if self.paced.is_starting() {
            self.paced.double(cx, ack.acked);
            if self.shape.start == DcqcnStart::Line {
                self.paced.end_start(cx);
                self.paced.set(cx, self.shape.line.as_bits_per_sec());
            }
        } else {
            self.catch_up(cx, ack);
        }
        let due = self.notified_at.is_none_or(|at| cx.now.saturating_since(at) >= self.shape.cnp);
        if self.marks && due {
            self.paced.end_start(cx);
            let rate = self.paced.get();
            let reduced = self.notified(cx.now, rate);
            self.paced.set(cx, reduced);
        }
    }

    paced_rate!();

    fn phase(&self) -> &'static str {
        match (self.paced.is_starting(), self.stage) {
            (true, _) => "start",
            (false, 0) => "fast_recovery",
            (false, 1) => "additive_increase",
            (false, _) => "hyper_increase",
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let alpha = self.alpha.map(|(alpha, _)| ("alpha", alpha as f64 / ONE as f64));
        let target = Rate::from_bits_per_sec(self.target).as_mbit_f64();
        alpha.into_iter().chain([("target_mbps", target)]).collect()
    }
}

/// The rate at which data arrives, in bits per second, if it is known.
fn delivered(ack: &AckEvent) -> Option<u64> {
    ack.rate.and_then(|sample| sample.rate()).map(Rate::as_bits_per_sec)
}

/// `share^times`, in the units of `alpha`.
fn power(mut share: u64, mut times: u64) -> u64 {
    let mut product = ONE;
    while times > 0 && product > 0 {
        if times % 2 == 1 {
            product = mul_div(product, share, ONE);
        }
        share = mul_div(share, share, ONE);
        times /= 2;
    }
    product
}

/// What `alpha` counts in.
const ONE: u64 = 1 << 32;
/// More stages than this in one acknowledgement are dropped: 0.6 s at 300 us.
const MOST_STAGES: u32 = 2_000;

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    const MSS: Bytes = Bytes(1_000);

    /// Acknowledges one segment at `micros` of a path of 10 us, with this many bytes marked so far.
    fn ack(cc: &mut Dcqcn, micros: u64, marked: u64) {
        let mut rng = stream(1, "unused");
        let now = Instant::ZERO + Duration::from_micros(micros);
        let mut cx =
            CcContext { delivered_marked: Bytes(marked), ..CcContext::new(now, MSS, &mut rng) };
        cx.rtt.srtt = Some(Duration::from_micros(10));
        cc.on_ack(&mut cx, &AckEvent { acked: MSS, ..AckEvent::default() });
    }

    fn at_line_rate() -> Dcqcn {
        let mut cc =
            Dcqcn::new(MSS * 10, DcqcnShape { start: DcqcnStart::Line, ..DcqcnShape::DEFAULT });
        ack(&mut cc, 10, 0);
        assert_eq!(cc.pacing_rate(), Some(Rate::from_mbit(100_000)));
        cc
    }

    /// The closed form is what a timer every microsecond would compute.
    #[test]
    fn alpha_decays_as_with_a_timer() {
        let mut cc = at_line_rate();
        ack(&mut cc, 20, 1_000);
        assert_eq!(cc.alpha.map(|(alpha, _)| alpha), Some(ONE));
        for passed in [50, 51, 400, 3_000] {
            let (alpha, since) = cc.alpha.expect("a notification");
            let next = cc.next_alpha(since + Duration::from_micros(passed)) as f64;
            let timed = (0..passed).fold(alpha as f64, |alpha, _| alpha * 255.0 / 256.0);
            let timed = timed + ONE as f64 / 256.0;
            assert!((next / timed - 1.0).abs() < 1e-6, "{next} {timed}");
        }
    }

    /// Marks of 50 us are one notification; marks in between wait for its end.
    #[test]
    fn a_notification_comes_every_50_us() {
        let mut cc = at_line_rate();
        let rates: Vec<u64> = (2..=12)
            .map(|step| {
                ack(&mut cc, step * 10, step * 1_000);
                cc.paced.get()
            })
            .collect();
        assert_eq!(rates[0], 50_000_000_000, "alpha is 1 at first");
        assert_eq!(rates[1..5], [rates[0]; 4]);
        assert!(rates[5] < rates[4], "{rates:?}");
        assert_eq!(rates[6..10], [rates[5]; 4]);
        assert!(rates[10] < rates[9], "{rates:?}");
    }

    /// Fast recovery halves the distance to the target, then the target rises.
    #[test]
    fn stages_follow_the_timer() {
        let mut cc = at_line_rate();
        ack(&mut cc, 20, 1_000);
        cc.target = 80_000_000_000;
        let rate = |cc: &mut Dcqcn, micros| {
            ack(cc, micros, 1_000);
            cc.paced.get() / 1_000_000
        };
        assert_eq!((rate(&mut cc, 319), cc.phase()), (50_000, "fast_recovery"));
        assert_eq!((rate(&mut cc, 320), cc.phase()), (65_000, "additive_increase"));
        assert_eq!((rate(&mut cc, 620), cc.phase()), (72_510, "hyper_increase"));
        assert_eq!(rate(&mut cc, 920), 76_365);
    }
}

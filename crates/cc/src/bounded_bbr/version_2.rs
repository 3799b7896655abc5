//! `bbr2`: BBR version 2, from `net/ipv4/tcp_bbr2.c` of Google's alpha release for Linux, commit
//! 0487ade55081731c2b2dc31c780f0883ce76212c of `google/bbr`. What follows is how it differs from version 3.
//!
//! ```text
//! bw      = min(max_bw, bw_shortterm, bw_longterm)             bw_lo, bw_hi; inflight_lo, inflight_hi
//! min_rtt = smallest RTT of 10 s; one of 5 s schedules probe_rtt, and an equal sample is as good as a smaller one
//!
//! state            pacing_gain  cwnd_gain  until
//! startup          2.885        2.885      3 rounds without 25 % more, or 8 losses and > 2 % of a round lost,
//!                                          or 2 rounds with >= 50 % marked
//! drain            1 / 2.885    2.885      in flight <= max_bw min_rtt
//! probe_bw_down    0.75         2          in flight <= max_bw min_rtt and <= 0.85 longterm
//! probe_bw_cruise  1            2          2 to 3 s, or as many rounds as Reno needs, at most 63
//! probe_bw_refill  1            2          a round
//! probe_bw_up      1.25         2          in flight >= 1.25 max_bw min_rtt after min_rtt, or >= longterm if the
//!                                          probe before was too high, or > 2 % lost, or >= 50 % marked
//! probe_rtt        1            1          200 ms and a round at 0.5 bw min_rtt
//! ```
//!
//! Every acknowledgement of a probe is judged, not only what it shows to be lost. Entering cruise lowers
//! `inflight_shortterm` to `inflight_longterm`. Losses that prove unfounded restore the bounds and the window, not the
//! state. Only what follows a timeout restores the window otherwise.
//!
//! Marks count with `ecn=on` (the source's `ecn_enable`, off by default) and a `min_rtt` of at most 5 ms. They are those of
//! a router that marks as for DCTCP, and each is echoed for itself:
//!
//! ```text
//! alpha              = 15/16 alpha + 1/16 (marked / delivered), once per round, from 1 on, in 256ths
//! cut                = 1 - alpha / 3
//! bw_shortterm, inflight_shortterm: * cut after a round with marks outside of probes
//! bw_longterm        = bw_longterm * cut where a probe was too high from its first sample on
//! ```
//!
//! Deviations from the source: bytes are counted instead of segments; shares are 2, 15 and 30 %, not 256ths just
//! below; of several segments that one acknowledgement shows to be lost, the last is judged; the fast path for
//! application-limited flows, which saves time, is left out; the pacing rate stays above 1 kbit/s. Its experiments that are
//! off by default are left out too: `usage_based_cwnd`, `ecn_reprobe_gain`, `refill_add_inc`.

use std::collections::VecDeque;

use weir_units::{Bytes, Duration, Rate};

use super::control::LARGEST_BURST;
use super::{BoundedBbr, UNIT, Version};
use crate::{AckEvent, CcContext, RateSample, RecoveryState};

/// Whether BBRv2 uses congestion marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bbr2Ecn {
    /// They have no effect.
    #[default]
    Off,
    /// Those of routers that mark as for DCTCP, where the smallest RTT is at most 5 ms.
    On,
}

/// What marks say.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// Whether the path is short enough.
    eligible: bool,
    /// The filtered share of marked bytes, in 256ths.
    alpha: u64,
    /// Delivered and of that marked when `alpha` was last updated.
    delivered: Bytes,
    marked: Bytes,
    /// Rounds of startup in a row with too many.
    startup_rounds: u32,
    /// Bytes marked up to the newest acknowledgement.
    now: Bytes,
    /// What was delivered, and of that marked, after each acknowledgement with a mark in the round trip.
    history: VecDeque<(Bytes, Bytes)>,
    /// Bytes marked when the newest acknowledged segment left.
    at_departure: Bytes,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            eligible: false,
            alpha: MARK_UNIT,
            delivered: Bytes::ZERO,
            marked: Bytes::ZERO,
            startup_rounds: 0,
            now: Bytes::ZERO,
            history: VecDeque::new(),
            at_departure: Bytes::ZERO,
        }
    }
}

impl Marks {
    /// Processes the marks of an acknowledgement of a segment that left when `prior_delivered` bytes had been delivered. Whether
    /// there are new ones.
    pub(super) fn on_ack(
        &mut self,
        marked: Bytes,
        delivered: Bytes,
        prior_delivered: Bytes,
    ) -> bool {
        let more = marked > self.now;
        if more {
            self.now = marked;
            self.history.push_back((delivered, marked));
        }
        while let Some(&(at, marked)) = self.history.front()
            && at <= prior_delivered
        {
            self.at_departure = marked;
            self.history.pop_front();
        }
        more
    }

    /// Updates the filter after a round; the share of marks in it, in 256ths.
    fn end_round(&mut self, cx: &CcContext<'_>) -> Option<u64> {
        let delivered = cx.delivered.saturating_sub(self.delivered).get();
        let marked = cx.delivered_marked.saturating_sub(self.marked).get();
        let share = (marked * MARK_UNIT).checked_div(delivered)?;
        let kept = (MARK_UNIT - ALPHA_GAIN) * self.alpha / MARK_UNIT;
        self.alpha = (kept + ALPHA_GAIN * share / MARK_UNIT).min(MARK_UNIT);
        self.delivered = cx.delivered;
        self.marked = cx.delivered_marked;
        Some(share)
    }

    /// Whether half of what the newest acknowledged segment measured is marked.
    pub(super) fn are_too_many(&self, delivered: Bytes) -> bool {
        let marked = self.since_departure();
        self.eligible && marked > Bytes::ZERO && marked >= delivered / 2
    }

    /// Bytes marked since the newest acknowledged segment left.
    pub(super) fn since_departure(&self) -> Bytes {
        self.now.saturating_sub(self.at_departure)
    }

    /// Marks count from when the path is known to be short.
    pub(super) fn note_path(&mut self, min_rtt: Option<Duration>) {
        self.eligible |= min_rtt.is_some_and(|rtt| rtt <= LONGEST_MARKED_RTT);
    }

    /// What marks leave of a rate.
    pub(super) fn cut(&self, rate: Rate) -> Rate {
        rate.mul_ratio(self.left(), MARK_UNIT)
    }

    /// What marks leave of a volume.
    pub(super) fn cut_bytes(&self, volume: Bytes) -> Bytes {
        volume.mul_ratio(self.left(), MARK_UNIT)
    }

    fn left(&self) -> u64 {
        MARK_UNIT - self.alpha * MARK_FACTOR / MARK_UNIT
    }

    /// The filtered share of marked bytes, for tables.
    pub(super) fn alpha(&self) -> f64 {
        self.alpha as f64 / MARK_UNIT as f64
    }
}

impl BoundedBbr {
    pub(super) fn uses_marks(&self) -> bool {
        self.version == Version::Two(Bbr2Ecn::On)
    }

    pub(super) fn update_marks(&mut self, cx: &CcContext<'_>, sample: &RateSample) {
        if !self.uses_marks() {
            return;
        }
        if self.round.start {
            self.marks.note_path(self.min_rtt);
            if let Some(share) = self.marks.end_round(cx) {
                self.check_marks_in_startup(cx.mss, share);
            }
        }
        let more = self.marks.on_ack(cx.delivered_marked, self.delivered, sample.prior_delivered);
        self.signals.mark_in_round |= more && self.marks.eligible;
    }

    fn check_marks_in_startup(&mut self, mss: Bytes, share: u64) {
        if self.full_pipe.reached || !self.marks.eligible {
            return;
        }
        let too_many = share >= MARK_UNIT / 2;
        self.marks.startup_rounds = if too_many { self.marks.startup_rounds + 1 } else { 0 };
        if self.marks.startup_rounds >= FULL_PIPE_MARKED_ROUNDS {
            self.end_startup_at_bound(mss);
        }
    }

    /// A probe with too many marks or losses that never had a good sample was too fast.
    pub(super) fn lower_longterm_bw(&mut self) {
        if self.marks.eligible && !self.probe.has_good_sample {
            let bw = self.model.bw_longterm.unwrap_or(self.model.max_bw());
            self.model.bw_longterm = Some(self.marks.cut(bw));
        }
    }

    /// A rate without too many marks or losses is safe.
    pub(super) fn raise_longterm_bw(&mut self, sample: &RateSample) {
        let bound = &mut self.model.bw_longterm;
        *bound = bound.map(|bw| bw.max(sample.rate().unwrap_or(bw)));
    }

    /// The timer fired. Where nothing bounds the short term yet, the window of before does.
    pub(super) fn on_timeout(&mut self) {
        self.recovery = RecoveryState::Loss;
        self.full_pipe.bandwidth = Rate::ZERO;
        if !self.state.probes_upwards() {
            self.model.inflight_shortterm.get_or_insert(self.prior_cwnd);
        }
    }

    /// What the states of the cycle compare with the model: in version 2 what was in flight before the acknowledgement, less what
    /// leaves the path until the next segment enters it.
    pub(super) fn flight_of_cycle(&self, cx: &CcContext<'_>, ack: &AckEvent) -> Bytes {
        match self.version {
            Version::Two(_) => self.in_flight_at_departure(cx, ack.prior_in_flight),
            Version::Three(_) => cx.bytes_in_flight,
        }
    }

    /// What of `in_flight` will be in the network when the pacer releases the next burst, with that if the rate is to grow.
    pub(super) fn in_flight_at_departure(&self, cx: &CcContext<'_>, in_flight: Bytes) -> Bytes {
        let wait = cx.next_departure.saturating_since(cx.now);
        let burst = self.pacing_rate.bytes_in(Duration::from_millis(1));
        let next = if self.pacing_gain() > UNIT {
            self.short_path_burst(cx.mss, burst)
        } else {
            Bytes::ZERO
        };
        (in_flight + next).saturating_sub(self.bw().bytes_in(wait))
    }

    /// The whole segments that leave at once: more than `burst` on a short path, where they halve with every 512 µs of
    /// `min_rtt`.
    pub(super) fn short_path_burst(&self, mss: Bytes, burst: Bytes) -> Bytes {
        let halvings = self.min_rtt.map_or(u64::MAX, |rtt| rtt.as_micros() / 512).min(63);
        let more = Bytes(LARGEST_BURST.get() >> halvings);
        let least = if self.pacing_rate < SINGLE_SEGMENT_RATE { 1 } else { 2 };
        let segments = (burst.min(LARGEST_BURST) + more).min(LARGEST_BURST).get() / mss.get();
        mss * segments.max(least)
    }
}

const MARK_UNIT: u64 = 256;
const ALPHA_GAIN: u64 = MARK_UNIT / 16;
const MARK_FACTOR: u64 = MARK_UNIT / 3;
const LONGEST_MARKED_RTT: Duration = Duration::from_millis(5);
const FULL_PIPE_MARKED_ROUNDS: u32 = 2;
const SINGLE_SEGMENT_RATE: Rate = Rate::from_bits_per_sec(1_200_000);

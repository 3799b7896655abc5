//! COBALT: CoDel for flows that listen, BLUE for those that do not.
//!
//! Sources: Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", 2018, §III-C; Palmei et al., "Design and
//! evaluation of COBALT queue discipline", 2019; Feng et al., "BLUE", 1999; Linux 6.1's `sch_cake`.
//!
//! CoDel's schedule `next += interval / sqrt(count)` runs in both directions. While sojourns are
//! above `target` each time it reaches is a signal and `count` grows; while they are not, `count` shrinks at
//! the same times, so that the next episode begins from where the last one has decayed to. The first
//! signal of an episode comes an interval after it began, divided by the root like the others; but in a
//! queue's very first episode with the next parcel, for Linux begins with a reciprocal root of zero
//! (`cobalt_vars_init`).
//!
//! BLUE drops with a probability that grows by 1/256 when the queue overflows and shrinks by 1/4096
//! when it is found empty, each once per `target` at most. CoDel's signal is a mark if the parcel is
//! capable, BLUE's never is.
//!
//! `1/sqrt(count)` is exact to 32 bits below a count of 16; from there on each change of the count
//! improves it by one Newton step, as in Linux.

use weir_units::{Duration, Instant, Rng};

use crate::parcel::Parcel;
use crate::queue::{Queued, mark};

/// The parameters as they apply to a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// What a full-sized parcel takes; sojourns of four of these are never too long.
    pub(super) mtu_time: Duration,
}

/// What it remembers of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CobaltState {
    count: u32,
    /// `1/sqrt(count)` in units of 2^-32; zero until the count has changed for the first time.
    inv_sqrt: u32,
    /// Sojourns are above the target.
    is_signalling: bool,
    next: Instant,
    /// BLUE's probability, in units of 2^-32.
    blue: u32,
    blue_moved: Instant,
}

/// What to do with the head of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Goes,
    Falls,
}

impl Cobalt {
    fn after(&self, last: Instant, inv_sqrt: u32) -> Instant {
        let nanos = (u128::from(self.interval.as_nanos()) * u128::from(inv_sqrt)) >> 32;
        last.saturating_add(Duration::from_nanos(nanos as u64))
    }

    fn is_late(&self, sojourn: Duration) -> bool {
        sojourn > self.target && sojourn > self.mtu_time.saturating_mul(4)
    }
}

impl CobaltState {
    /// Judges the head of the queue as it leaves, and marks it if that is what is due
    /// (`cobalt_should_drop`).
    pub(super) fn judge<P: Parcel>(
        &mut self,
        now: Instant,
        law: &Cobalt,
        head: &mut Queued<P>,
        rng: &mut Rng,
        marks: &mut u64,
    ) -> Fate {
        let is_due = self.count > 0 && now >= self.next;
        if law.is_late(head.sojourn(now)) {
            if !self.is_signalling {
                self.is_signalling = true;
                self.next = law.after(now, self.inv_sqrt);
            }
            self.count = self.count.max(1);
        } else {
            self.is_signalling = false;
        }
        let signals = is_due && self.is_signalling;
        if signals {
            self.set_count(self.count.saturating_add(1));
            self.next = law.after(self.next, self.inv_sqrt);
        } else if is_due {
            self.decay(now, law);
        }
        // BLUE decides first, so that nothing is dropped behind a mark.
        let by_blue = self.blue > 0 && rng.next_u32() < self.blue;
        let falls = by_blue || signals && !mark(&mut head.parcel, marks);
        if self.count == 0 {
            // The schedule serves as a timeout of activity.
            self.next = now.saturating_add(law.interval);
        } else if now > self.next && !falls {
            self.next = now;
        }
        if falls { Fate::Falls } else { Fate::Goes }
    }

    /// Handles a drop because the queue is full (`cobalt_queue_full`).
    pub(super) fn on_overflow(&mut self, now: Instant, law: &Cobalt) {
        if now.saturating_since(self.blue_moved) > law.target {
            self.blue = self.blue.saturating_add(BLUE_UP);
            self.blue_moved = now;
        }
        self.is_signalling = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue had its turn and was empty (`cobalt_queue_empty`).
    pub(super) fn on_empty(&mut self, now: Instant, law: &Cobalt) {
        if self.blue > 0 && now.saturating_since(self.blue_moved) > law.target {
            self.blue = self.blue.saturating_sub(BLUE_DOWN);
            self.blue_moved = now;
        }
        self.is_signalling = false;
        if self.count > 0 && now >= self.next {
            self.set_count(self.count - 1);
            self.next = law.after(self.next, self.inv_sqrt);
        }
    }

    /// Whether there is nothing left to remember.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.blue == 0 && self.count == 0 && now >= self.next
    }

    /// Changes the count, and the reciprocal root with it (`cobalt_invsqrt`).
    fn set_count(&mut self, count: u32) {
        self.count = count;
        let old = u64::from(self.inv_sqrt);
        let new = if count < EXACT_BELOW {
            (u64::MAX / u64::from(count.max(1))).isqrt()
        } else {
            // y' = y (3 - n y^2) / 2, in steps that do not overflow.
            let part = (3 << 32) - u64::from(count) * ((old * old) >> 32);
            ((part >> 2) * old) >> 31
        };
        self.inv_sqrt = new.min(u64::from(u32::MAX)) as u32;
    }

    /// Goes back in the schedule as far as `now`.
    fn decay(&mut self, now: Instant, law: &Cobalt) {
        while self.count > 0 && now >= self.next {
            self.set_count(self.count - 1);
            self.next = law.after(self.next, self.inv_sqrt);
        }
    }
}

/// Linux's `REC_INV_SQRT_CACHE`.
const EXACT_BELOW: u32 = 16;
/// 1/256.
const BLUE_UP: u32 = 1 << 24;
/// 1/4096.
const BLUE_DOWN: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use weir_units::{Bytes, stream};

    use super::*;
    use crate::link::probe::Probe;
    use crate::parcel::Ecn;

    const MS: Duration = Duration::from_millis(1);
    const LAW: Cobalt = Cobalt {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_time: Duration::ZERO,
    };

    /// Judges a parcel each millisecond from `from` on; the milliseconds at which one fell.
    fn falls(state: &mut CobaltState, from: u64, sojourn: Duration, count: u64) -> Vec<u64> {
        let mut rng = stream(1, "cake");
        let judged = (from..from + count).filter(|ms| {
            let now = Instant::ZERO + MS * *ms;
            let parcel = Probe::data(*ms, 1_500);
            assert_eq!(parcel.len(), Bytes(1_500));
            let mut head = Queued { parcel, arrived: now - sojourn };
            state.judge(now, &LAW, &mut head, &mut rng, &mut 0) == Fate::Falls
        });
        judged.collect()
    }

    #[test]
    fn signals_speed_up_and_the_count_decays_when_delays_are_short() {
        let mut state = CobaltState::default();
        assert_eq!(
            falls(&mut state, 100, MS * 20, 30),
            [101],
            "the first episode of all does not wait"
        );
        assert!(falls(&mut state, 130, MS, 500).is_empty());
        assert_eq!(state.count, 0);
        let fallen = falls(&mut state, 1_000, MS * 20, 1_000);
        assert_eq!(fallen[0], 1_100, "an interval after the delay exceeded the target");
        for (index, pair) in fallen.windows(2).enumerate() {
            let exact = 100.0 / libm::sqrt((index + 2) as f64);
            assert!(((pair[1] - pair[0]) as f64 - exact).abs() <= 1.0, "{index}: {pair:?}");
        }
        let (grown, signals) = (state.count, fallen.len());
        assert_eq!(grown as usize, signals + 1);
        assert!(falls(&mut state, 2_000, MS, 300).is_empty());
        assert!(0 < state.count && state.count < grown, "{} of {grown}", state.count);
        assert!(falls(&mut state, 2_300, MS, 5_000).is_empty());
        assert_eq!(state.count, 0);
    }

    #[test]
    fn blue_drops_what_does_not_listen_and_forgets() {
        let mut state = CobaltState::default();
        // Overflow each millisecond: the probability grows each sixth.
        for ms in 1_000..1_600 {
            state.on_overflow(Instant::ZERO + MS * ms, &LAW);
        }
        assert_eq!(state.blue, 100 * BLUE_UP);
        let now = Instant::ZERO + MS * 1_600;
        let mut rng = stream(1, "cake");
        let mut fallen = 0;
        for id in 0..10_000 {
            state.count = 0;
            let parcel = Probe { ecn: Ecn::Ect0, ..Probe::data(id, 1_500) };
            let mut head = Queued { parcel, arrived: now };
            fallen += u32::from(state.judge(now, &LAW, &mut head, &mut rng, &mut 0) == Fate::Falls);
        }
        // Binomial with p = 100/256: a standard deviation is 49.
        assert!((3_906 - 200..3_906 + 200).contains(&fallen), "{fallen}");
        for ms in 1_600..1_600 + 6 * 1_700 {
            state.on_empty(Instant::ZERO + MS * ms, &LAW);
        }
        assert!(state.is_at_rest(Instant::ZERO + MS * 20_000), "{state:?}");
    }
}

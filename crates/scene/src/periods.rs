//! A source that is on and off in turn. While it is on it sends messages at a rate, or as much as it
//! can; while it is off, nothing.
//!
//! Periods are of fixed length or exponential, as of the sources whose sum is the usual model of
//! background traffic (ns-2's and ns-3's `OnOff` application). The clock of the messages runs only
//! while the source is on, so that its mean rate is `rate · on / (on + off)` however short the periods.

use weir_units::{Bytes, Duration, Instant, Rate, Rng};

use crate::spec::{OnOff, PeriodSpread};

/// A source that is on and off in turn.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    spec: OnOff,
    rng: Rng,
    on: bool,
    since: Instant,
    until: Instant,
    /// For how long it was on before the present period.
    spent: Duration,
    messages: u64,
}

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A period begins in which it sends.
    On,
    /// It sends a message.
    Message,
    /// A period begins in which it is silent.
    Off,
}

impl Periods {
    /// The first period begins at `start` and is on.
    pub(crate) fn new(spec: OnOff, start: Instant, rng: Rng) -> Self {
        let spent = Duration::ZERO;
        Self { spec, rng, on: false, since: start, until: start, spent, messages: 0 }
    }

    /// Whether it sends as much as it can at present.
    pub(crate) fn is_greedy(&self) -> bool {
        self.on && self.spec.rate.is_none()
    }

    /// When it does something next.
    pub(crate) fn next_time(&self) -> Instant {
        self.next_message().unwrap_or(self.until)
    }

    /// Does what comes next, at the time that was announced for it.
    pub(crate) fn act(&mut self) -> Action {
        if self.next_message().is_some() {
            self.messages += 1;
            return Action::Message;
        }
        if self.on {
            self.spent += self.until - self.since;
        }
        self.on = !self.on;
        self.since = self.until;
        let (mean, deed) =
            if self.on { (self.spec.on, Action::On) } else { (self.spec.off, Action::Off) };
        let length = match self.spec.spread {
            PeriodSpread::Fixed => mean,
            PeriodSpread::Exponential => self.rng.exponential(mean),
        };
        self.until = self.since.saturating_add(length);
        deed
    }

    /// When the next message is due, if it is within this period.
    fn next_message(&self) -> Option<Instant> {
        let rate = self.spec.rate.filter(|_| self.on)?;
        let after = nth_tick(rate, self.spec.size, self.messages).saturating_sub(self.spent);
        Some(self.since.saturating_add(after)).filter(|at| *at < self.until)
    }
}

/// From the first message of a constant-rate source to its `n`-th; never drifts.
pub(crate) fn nth_tick(rate: Rate, size: Bytes, n: u64) -> Duration {
    let bits = u128::from(size.get()) * 8 * u128::from(n);
    let nanos = bits * 1_000_000_000 / u128::from(rate.as_bits_per_sec());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use weir_units::stream;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn source(on: u64, off: u64, spread: PeriodSpread, rate: Option<Rate>) -> Periods {
        let (on, off) = (Duration::from_millis(on), Duration::from_millis(off));
        let spec = OnOff { on, off, spread, rate, size: Bytes(1_000) };
        Periods::new(spec, at(5), stream(1, "periods"))
    }

    /// What it does until `end`, in order.
    fn deeds(mut source: Periods, end: Instant) -> Vec<(Instant, Action)> {
        std::iter::from_fn(|| {
            let at = source.next_time();
            (at < end).then(|| (at, source.act()))
        })
        .collect()
    }

    #[test]
    fn fixed_periods_alternate() {
        let greedy = source(10, 20, PeriodSpread::Fixed, None);
        assert!(!greedy.is_greedy());
        let expected = [(5, Action::On), (15, Action::Off), (35, Action::On), (45, Action::Off)];
        assert_eq!(deeds(greedy, at(65)), expected.map(|(ms, deed)| (at(ms), deed)));
    }

    #[test]
    fn the_clock_of_the_messages_stands_still_while_it_is_off() {
        // A message every 8 ms, 10 ms on: what is left of a tick is waited for in the next period.
        let paced = source(10, 20, PeriodSpread::Fixed, Some(Rate::from_mbit(1)));
        let messages: Vec<Instant> = deeds(paced, at(95))
            .into_iter()
            .filter_map(|(at, deed)| (deed == Action::Message).then_some(at))
            .collect();
        assert_eq!(messages, [5, 13, 41, 69].map(at));
    }

    /// The mean of n exponential lengths has a standard deviation of one nth root of the length.
    #[test]
    fn exponential_periods_have_their_mean_and_keep_the_rate() {
        let paced = source(30, 70, PeriodSpread::Exponential, Some(Rate::from_mbit(1)));
        let all = deeds(paced, at(1_000_000));
        let count = |deed| all.iter().filter(|(_, done)| *done == deed).count() as f64;
        let (periods, messages) = (count(Action::On), count(Action::Message));
        // Cycles of 100 ms with a variance of 30² + 70²: 10 000 in 1000 s, √(10 000 · 0.58) around.
        assert!((periods - 10_000.0).abs() < 4.0 * 76.2, "{periods} periods");
        // 30 % of 1000 s at 125 per second. The time on has a variance of
        // (30² · 70² + 70² · 30²) / 100³ ms per ms, which is 1 % of it, four times over.
        assert!((messages / 37_500.0 - 1.0).abs() < 0.04, "{messages} messages");
    }
}

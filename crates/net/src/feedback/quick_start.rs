//! `quick-start`: a router that approves rates to start with (RFC 4782).
//!
//! The standard leaves the decision to the router. This one decides as ns-2.35's does, from its busiest
//! 0.2 s of the last five and what it has approved lately:
//!
//! ```text
//! u        peak utilisation over five spans of 0.2 s
//! granted  the sum of what was approved in this span and the one before
//! approve  min(request, threshold C - (u C + granted)), or nothing if that leaves none
//! ```
//!
//! A router that approves takes one off the QS TTL; one that lowers the rate makes the nonce of the rates
//! above unknown (RFC 4782 §3.3, §3.4). Random numbers come from stream `"feedback"`.
//!
//! Parameters: threshold (85 %).

use weir_units::feedback::RateCode;
use weir_units::{Duration, Feedback, Instant, Rate, Ratio, Rng};

use super::bytes_per_second;
use super::occupancy::{Occupancy, Signal, billionths};
use crate::parcel::Parcel;

/// A router's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickStartConfig {
    /// The share of the capacity up to which rates are approved.
    pub threshold: Ratio,
}

/// The agent.
#[derive(Clone, Debug)]
pub struct QuickStart {
    threshold: Ratio,
    rate: Rate,
    rng: Rng,
    /// The span at hand, the newest first: how long it was busy and what was approved in it.
    spans: [Span; SPANS],
    began: Instant,
    busy_since: Option<Instant>,
}

/// What happened within 0.2 s.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    busy: Duration,
    /// Bytes per second.
    granted: u64,
}

impl Default for QuickStartConfig {
    fn default() -> Self {
        Self { threshold: Ratio::from_percent(85) }
    }
}

impl QuickStart {
    /// Nothing seen yet.
    pub fn new(config: &QuickStartConfig, rate: Rate, rng: Rng) -> Self {
        Self {
            threshold: config.threshold,
            rate,
            rng,
            spans: [Span::default(); SPANS],
            began: Instant::ZERO,
            busy_since: None,
        }
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    pub(super) fn set_busy(&mut self, now: Instant, signal: Signal, occupancy: Occupancy) {
        if signal == Signal::Service {
            self.advance(now);
            self.busy_since = (occupancy == Occupancy::Busy).then_some(now.max(self.began));
        }
    }

    pub(super) fn on_departure<P: Parcel>(&mut self, now: Instant, parcel: &mut P) {
        let Some(Feedback::QuickStart(request)) = parcel.feedback() else { return };
        self.advance(now);
        let left = self.left();
        let approved = request.rate.min(RateCode::at_most(left));
        if approved == RateCode::NONE {
            request.lower_to(RateCode::NONE, self.rng.next_u32());
            return;
        }
        request.ttl = request.ttl.wrapping_sub(1);
        request.lower_to(approved, self.rng.next_u32());
        self.spans[0].granted += bytes_per_second(approved.rate());
    }

    /// What may still be approved.
    fn left(&self) -> Rate {
        let capacity = self.rate.as_bits_per_sec();
        let busiest = self.spans.iter().map(|span| span.busy).max().unwrap_or_default();
        let used = self.rate.mul_ratio(busiest.as_nanos(), SPAN.as_nanos()).as_bits_per_sec();
        let granted = (self.spans[0].granted + self.spans[1].granted).saturating_mul(8);
        let most = self.rate.mul_ratio(billionths(self.threshold), billionths(Ratio::ONE));
        let most = most.as_bits_per_sec().min(capacity);
        Rate::from_bits_per_sec(most.saturating_sub(used.min(capacity)).saturating_sub(granted))
    }

    /// Counts the time up to `now`, span by span.
    fn advance(&mut self, now: Instant) {
        if now.saturating_since(self.began) >= SPAN * SPANS as u64 * 2 {
            // Longer ago than is remembered: all spans are alike.
            let busy = if self.busy_since.is_some() { SPAN } else { Duration::ZERO };
            self.spans = [Span { busy, granted: 0 }; SPANS];
            self.spans[0].busy = Duration::ZERO;
            let passed = now.saturating_since(self.began).as_nanos() / SPAN.as_nanos();
            self.began += SPAN * passed;
            self.busy_since = self.busy_since.map(|_| self.began);
        }
        while now.saturating_since(self.began) >= SPAN {
            let end = self.began + SPAN;
            self.count_busy(end);
            self.spans.rotate_right(1);
            self.spans[0] = Span::default();
            self.began = end;
        }
        self.count_busy(now);
    }

    fn count_busy(&mut self, until: Instant) {
        if let Some(since) = &mut self.busy_since {
            self.spans[0].busy += until.saturating_since(*since);
            *since = until.max(*since);
        }
    }
}

const SPAN: Duration = Duration::from_millis(200);
/// Five that are over, and the one at hand.
const SPANS: usize = 6;

#[cfg(test)]
mod tests {
    use weir_units::feedback::{NONCE, QuickStart as Request};
    use weir_units::stream;

    use super::*;
    use crate::link::probe::Probe;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ask(agent: &mut QuickStart, millis: u64, rate: RateCode) -> Request {
        let request = Request { rate, ttl: 9, hops: 0, nonce: NONCE };
        let mut parcel =
            Probe { feedback: Some(Feedback::QuickStart(request)), ..Probe::data(0, 60) };
        agent.on_departure(at(millis), &mut parcel);
        match parcel.feedback {
            Some(Feedback::QuickStart(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn agent() -> QuickStart {
        QuickStart::new(&QuickStartConfig::default(), Rate::from_mbit(10), stream(1, "feedback"))
    }

    fn code(kbit: u64) -> RateCode {
        RateCode::at_most(Rate::from_bits_per_sec(kbit * 1_000))
    }

    #[test]
    fn an_idle_link_approves_up_to_its_threshold_and_remembers_it() {
        let mut agent = agent();
        let first = ask(&mut agent, 0, code(5_120));
        assert_eq!((first.rate, first.ttl, first.nonce), (code(5_120), 8, NONCE));
        // 8.5 less 5.12 Mbit/s.
        let second = ask(&mut agent, 10, code(5_120));
        assert_eq!((second.rate, second.ttl), (code(2_560), 8));
        assert_eq!(second.nonce & 0xfff, 0xfff, "what is approved stays known");
        assert_ne!(second.nonce, NONCE);
        // Grants are forgotten after the next span.
        assert_eq!(ask(&mut agent, 420, code(5_120)).rate, code(5_120));
    }

    #[test]
    fn a_busy_link_refuses_for_a_second() {
        let mut agent = agent();
        agent.set_busy(at(1_000), Signal::Service, Occupancy::Busy);
        agent.set_busy(at(1_200), Signal::Service, Occupancy::Idle);
        for (millis, rate) in [(1_300, RateCode::NONE), (2_100, RateCode::NONE), (2_250, code(80))]
        {
            let answer = ask(&mut agent, millis, code(80));
            assert_eq!(answer.rate, rate, "at {millis}");
            assert_eq!(answer.ttl, if rate == RateCode::NONE { 9 } else { 8 });
        }
    }

    #[test]
    fn half_used_it_approves_what_is_left() {
        let mut agent = agent();
        for span in 5..10 {
            agent.set_busy(at(span * 200), Signal::Service, Occupancy::Busy);
            agent.set_busy(at(span * 200 + 100), Signal::Service, Occupancy::Idle);
        }
        // 8.5 less 5 Mbit/s.
        assert_eq!(ask(&mut agent, 2_000, RateCode::MAX).rate, code(2_560));
    }

    #[test]
    fn a_link_busy_for_ever_approves_nothing() {
        let mut agent = agent();
        agent.set_busy(at(0), Signal::Service, Occupancy::Busy);
        assert_eq!(ask(&mut agent, 1_000_000, RateCode::MAX).rate, RateCode::NONE);
    }
}

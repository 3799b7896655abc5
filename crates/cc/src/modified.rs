//! What any controller with a slow start may take: another end of slow start, another rule for senders that do not use
//! their window.
//!
//! `slow_start=hystart-plus-plus` is RFC 9406 ([`hystart`](crate::hystart)), `slow_start=search` is SEARCH
//! ([`search`](crate::search)). `increase=rate-limited` replaces Linux's rule, by which the window grows only while more than
//! half of it is used in slow start, and all of it afterwards ([`rate_limited`](crate::rate_limited)).
//!
//! A wrapper around the controller corrects its window after each call.

use weir_units::{Bytes, Rate};

use crate::hystart::SlowStartExit;
use crate::rate_limited::{Growth, RateLimited};
use crate::search::Search;
use crate::{
    AckEvent, CcContext, CongestionController, CongestionEvent, Hystart, PathEvent, Variable,
};

/// What a controller with a slow start may take in addition to its own parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// How slow start ends.
    pub slow_start: SlowStart,
    /// How the window grows while it is not used.
    pub increase: UnusedIncrease,
}

/// How slow start ends before it loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// As the controller itself ends it.
    #[default]
    Own,
    /// By HyStart++ (RFC 9406).
    HystartPlusPlus,
    /// By SEARCH (draft-chung-ccwg-search).
    Search,
}

/// How the window grows while the sender does not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnusedIncrease {
    /// As in Linux.
    #[default]
    Linux,
    /// Up to a bound that follows the largest flight size (draft-ietf-ccwg-ratelimited-increase).
    RateLimited,
}

/// A controller whose window these rules correct.
#[derive(Clone, Debug)]
pub(crate) struct Modified {
    inner: Box<dyn CongestionController>,
    exit: Exit,
    limit: Option<RateLimited>,
}

#[derive(Clone, Debug)]
enum Exit {
    Own,
    PlusPlus(SlowStartExit),
    Search(Box<Search>),
}

/// What a wrapper of the controller in its field `inner` leaves to it.
macro_rules! its_inner_controller_answers {
    () => {
        fn needs(&self) -> $crate::Needs {
            self.inner.needs()
        }

        fn on_delivery(&mut self, cx: &mut $crate::CcContext<'_>, ack: &$crate::AckEvent) {
            self.inner.on_delivery(cx, ack);
        }

        fn request(&mut self, cx: &mut $crate::CcContext<'_>) -> Option<weir_units::Feedback> {
            self.inner.request(cx)
        }

        fn poll_episode(&mut self) -> bool {
            self.inner.poll_episode()
        }

        fn allows_fast_retransmit(&self) -> bool {
            self.inner.allows_fast_retransmit()
        }

        fn cwnd(&self) -> weir_units::Bytes {
            self.inner.cwnd()
        }

        fn ssthresh(&self) -> Option<weir_units::Bytes> {
            self.inner.ssthresh()
        }
    };
}
pub(crate) use its_inner_controller_answers;

/// Whether the window is below the threshold.
pub(crate) fn in_slow_start(cc: &dyn CongestionController) -> bool {
    cc.ssthresh().is_none_or(|ssthresh| cc.cwnd() < ssthresh)
}

impl Modified {
    pub(crate) fn new(
        inner: Box<dyn CongestionController>,
        initial_window: Bytes,
        modifiers: Modifiers,
    ) -> Self {
        let exit = match modifiers.slow_start {
            SlowStart::Own => Exit::Own,
            SlowStart::HystartPlusPlus => Exit::PlusPlus(SlowStartExit::new(Hystart::PlusPlus)),
            SlowStart::Search => Exit::Search(Box::default()),
        };
        let limited = modifiers.increase == UnusedIncrease::RateLimited;
        Self { inner, exit, limit: limited.then(|| RateLimited::new(initial_window)) }
    }

    /// Ends slow start if the chosen method says so.
    fn sample(&mut self, cx: &CcContext<'_>, ack: &AckEvent) {
        if !in_slow_start(self.inner.as_ref()) {
            return;
        }
        let cwnd = self.inner.cwnd();
        let end = match (&mut self.exit, ack.rtt) {
            (Exit::Search(search), rtt) => search.on_ack(cx.now, ack.acked, rtt),
            (Exit::PlusPlus(exit), Some(rtt)) => exit.on_rtt(cx, cwnd, rtt, rtt).then_some(cwnd),
            _ => None,
        };
        if let Some(end) = end {
            let end = end.clamp(cx.mss * 2, cwnd.max(cx.mss * 2));
            self.inner.replace_window(end, Some(end));
        }
    }

    /// Lowers what the controller made of its window to what is permitted.
    fn correct(&mut self, cx: &CcContext<'_>, growth: Growth) {
        let mut after = growth.after;
        if let (Exit::PlusPlus(exit), true) = (&self.exit, growth.slow_start) {
            after = growth.before + exit.growth(after.saturating_sub(growth.before), cx.mss);
        }
        if let Some(limit) = &self.limit {
            after = limit.bound(Growth { after, ..growth }, cx.mss);
        }
        if after < growth.after {
            self.inner.replace_window(after, None);
        }
    }

    /// Calls the controller; a reduction restarts the measurement of the flight size.
    fn call(&mut self, call: impl FnOnce(&mut dyn CongestionController)) {
        let before = self.inner.cwnd();
        call(self.inner.as_mut());
        if let Some(limit) = &mut self.limit
            && self.inner.cwnd() < before
        {
            limit.on_reduction();
        }
    }
}

impl CongestionController for Modified {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    its_inner_controller_answers!();

    fn on_sent(&mut self, cx: &mut CcContext<'_>, bytes: Bytes) {
        if let Some(limit) = &mut self.limit {
            limit.on_sent(cx.bytes_in_flight + bytes);
        }
        if let Exit::Search(search) = &mut self.exit {
            search.on_sent(bytes);
        }
        self.inner.on_sent(cx, bytes);
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        match &mut self.exit {
            Exit::Own => {}
            Exit::PlusPlus(exit) => exit.on_congestion(),
            Exit::Search(search) => search.restart(),
        }
        self.call(|inner| inner.on_congestion(cx, event));
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        self.sample(cx, ack);
        let before = self.inner.cwnd();
        let slow_start = in_slow_start(self.inner.as_ref());
        let linux = cx.cwnd_limited;
        // The draft's bound takes the place of Linux's rule.
        cx.cwnd_limited |= self.limit.is_some();
        self.call(|inner| inner.on_ack(cx, ack));
        cx.cwnd_limited = linux;
        let after = self.inner.cwnd();
        if after > before {
            let flight = ack.prior_in_flight;
            self.correct(cx, Growth { before, after, slow_start, flight });
        }
    }

    fn on_epoch_end(&mut self, cx: &mut CcContext<'_>) {
        self.call(|inner| inner.on_epoch_end(cx));
    }

    fn on_spurious(&mut self, cx: &mut CcContext<'_>) {
        self.inner.on_spurious(cx);
    }

    fn replace_window(&mut self, cwnd: Bytes, ssthresh: Option<Bytes>) {
        self.inner.replace_window(cwnd, ssthresh);
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        self.call(|inner| inner.on_path(cx, event));
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.inner.pacing_rate()
    }

    fn phase(&self) -> &'static str {
        match &self.exit {
            Exit::PlusPlus(exit)
                if exit.is_conservative() && in_slow_start(self.inner.as_ref()) =>
            {
                "conservative_slow_start"
            }
            _ => self.inner.phase(),
        }
    }

    fn variables(&self) -> Vec<Variable> {
        let mut found = self.inner.variables();
        found.extend(
            self.limit.as_ref().map(|limit| ("max_flight_bytes", limit.max_flight().get() as f64)),
        );
        found
    }
}

#[cfg(test)]
#[path = "modified/tests.rs"]
mod tests;

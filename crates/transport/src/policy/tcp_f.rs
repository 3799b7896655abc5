//! `tcp-f`: TCP with route failure notices (Chandran, Raghunathan, Venkatesan and Prakash, ICDCS 1998).
//!
//! ```text
//! established  notice of failure     -> snooze       send nothing, freeze timers, cwnd, RTO and RTT
//! snooze       notice of a route     -> established  timers go on; send all that was outstanding
//! snooze       route-failure timer   -> established  timers go on; TCP reacts as ever
//! ```
//!
//! Acknowledgements that arrive in snooze are booked, but move neither state nor window. Parameter: the
//! timer; the paper's value is not known, ours is 10 s.

use weir_units::{Duration, Instant};

use super::{AtResume, Order, Policy, PolicyCx, ResendRequest, Resume, RouteState, Rto};

/// Parameters of `tcp-f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFConfig {
    /// How long it waits for a route.
    pub timer: Duration,
}

/// TCP-F's states.
#[derive(Clone, Debug)]
pub(super) struct TcpF {
    config: TcpFConfig,
    /// In snooze: when it ends at the latest.
    until: Option<Instant>,
}

impl Default for TcpFConfig {
    fn default() -> Self {
        Self { timer: Duration::from_secs(10) }
    }
}

impl TcpF {
    pub(super) fn new(config: TcpFConfig) -> Self {
        Self { config, until: None }
    }

    fn wake(&mut self, again: ResendRequest) -> Order {
        match self.until.take() {
            Some(_) => Order::Resume(Resume { window: AtResume::Keep, rto: Rto::Remaining, again }),
            None => Order::Nothing,
        }
    }
}

impl Policy for TcpF {
    fn state(&self) -> RouteState {
        if self.until.is_some() { RouteState::Snooze } else { RouteState::Normal }
    }

    fn on_failure(&mut self, cx: &PolicyCx, _sequence: Option<u64>) -> Order {
        if self.until.is_some() {
            return Order::Nothing;
        }
        self.until = Some(cx.now.saturating_add(self.config.timer));
        Order::Freeze(AtResume::Keep)
    }

    fn on_restored(&mut self, _cx: &PolicyCx, _expected: Option<u64>) -> Order {
        self.wake(ResendRequest::All)
    }

    fn on_timeout(&mut self, _cx: &PolicyCx) -> Order {
        self.wake(ResendRequest::Nothing)
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.until
    }
}

//! `atcp`: a layer between IP and TCP that tells loss, congestion and disconnection apart (Liu and
//! Singh, IEEE JSAC 19(7), 2001).
//!
//! ```text
//! normal        third duplicate or RTO -> persist       TCP hears nothing; ATCP sends again
//! normal        ECN echo               -> congested     TCP reacts
//! any           unreachable            -> disconnected  TCP probes, with a window of one segment
//! persist       new acknowledgement    -> normal        TCP goes on
//! persist       ECN echo               -> congested     TCP goes on and reacts
//! congested     losses                 -> congested     TCP reacts
//! congested     new data leaves        -> normal
//! disconnected  probe answered         -> normal        TCP goes on from one segment
//! ```
//!
//! In place of the third duplicate stands whatever shows the recovery scheme a loss. It marks what to
//! send again; ATCP's own timer, the RTO doubled each time, sends all that is unacknowledged. Probes
//! back off like those of a closed window (RFC 9293 §3.8.6.1).
//!
//! Deviation: what was outstanding when the destination went away counts as lost, so that it is sent again
//! as the window grows, without a timeout. Only after a probe does an acknowledgement answer one.

use weir_units::{Duration, Instant};

use super::{
    AckInfo, AtResume, Order, Policy, PolicyCx, Probe, ResendRequest, Resume, RouteState, Rto,
};

/// ATCP's states.
#[derive(Clone, Debug, Default)]
pub(super) struct Atcp {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Normal,
    /// ATCP repairs.
    Loss(BackOff),
    Congested,
    Disconnected(BackOff),
}

/// A timer that is set for twice as long each time.
#[derive(Clone, Copy, Debug)]
struct BackOff {
    wait: Duration,
    at: Instant,
    expiries: u32,
}

impl BackOff {
    fn new(now: Instant, wait: Duration) -> Self {
        Self { wait, at: now.saturating_add(wait), expiries: 0 }
    }

    fn next(self, now: Instant) -> Self {
        let wait = self.wait.saturating_mul(2).min(LONGEST_WAIT).max(self.wait);
        Self { wait, at: now.saturating_add(wait), expiries: self.expiries.saturating_add(1) }
    }
}

/// Linux's largest wait for an answer to a probe (TCP_RTO_MAX).
const LONGEST_WAIT: Duration = Duration::from_secs(120);

impl Policy for Atcp {
    fn state(&self) -> RouteState {
        match self.state {
            State::Normal => RouteState::Normal,
            State::Loss(_) => RouteState::Loss,
            State::Congested => RouteState::Congested,
            State::Disconnected(_) => RouteState::Disconnected,
        }
    }

    fn on_failure(&mut self, cx: &PolicyCx, _sequence: Option<u64>) -> Order {
        if let State::Disconnected(_) = self.state {
            return Order::Nothing;
        }
        self.state = State::Disconnected(BackOff::new(cx.now, cx.rto));
        Order::Freeze(AtResume::Anew)
    }

    fn on_ack(&mut self, cx: &PolicyCx, news: &AckInfo) -> Order {
        match self.state {
            State::Disconnected(probes) if probes.expiries > 0 || news.covers_all(cx) => {
                self.state = State::Normal;
                let window = AtResume::Keep;
                Order::Resume(Resume { window, rto: Rto::Saved, again: ResendRequest::Nothing })
            }
            State::Disconnected(_) => Order::Nothing,
            _ if news.marked => {
                self.state = State::Congested;
                Order::Nothing
            }
            State::Loss(_) if news.moves(cx) => {
                self.state = State::Normal;
                Order::Nothing
            }
            _ => Order::Nothing,
        }
    }

    fn on_timeout(&mut self, cx: &PolicyCx) -> Order {
        match &mut self.state {
            State::Loss(timer) => {
                *timer = timer.next(cx.now);
                Order::SendAgain
            }
            State::Disconnected(timer) => {
                *timer = timer.next(cx.now);
                Order::Probe(Probe::Empty)
            }
            State::Normal | State::Congested => Order::Nothing,
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Loss(timer) | State::Disconnected(timer) => Some(timer.at),
            State::Normal | State::Congested => None,
        }
    }

    fn hides_losses(&self) -> bool {
        matches!(self.state, State::Normal | State::Loss(_))
    }

    fn on_hidden_loss(&mut self, cx: &PolicyCx) {
        if let State::Normal = self.state {
            self.state = State::Loss(BackOff::new(cx.now, cx.rto));
        }
    }

    fn on_new_data(&mut self) {
        if let State::Congested = self.state {
            self.state = State::Normal;
        }
    }
}

//! How the sender executes the orders of a route-failure policy, with any recovery and controller.
//!
//! A frozen sender's time stands still: what it had sent and set before the pause counts at its end as
//! sent and shifted by that time. What it sends again on behalf of the route counts as lost without notifying
//! the controller (`Epoch::enter_silently`). What was in flight when the route broke measures no round
//! trip.

use std::collections::VecDeque;

use weir_cc::{Cause, CongestionEvent, RecoveryState};
use weir_units::{Bytes, Duration, Instant};

use super::{IncomingAck, Kind, OutgoingRange, Sender};
use crate::pause::Pause;
use crate::policy::{
    AckInfo, AtResume, Order, PathEvent, Policy, PolicyCx, Probe, ResendRequest, Resume,
    RoutePolicy, RouteState, Rto, SendPermission,
};
use crate::scoreboard::Sent;
use crate::stats::{Limit, Stats};

/// The policy at work and what it has the sender do.
#[derive(Clone, Debug)]
pub(super) struct Route {
    policy: Box<dyn Policy>,
    /// Since when time stands still.
    frozen_at: Option<Instant>,
    probe_due: Option<Probe>,
    /// Bytes below this offset were in flight when the route broke.
    pub(super) untimed_below: u64,
    /// The timeout with which to begin anew, once the present acknowledgement is taken in.
    initial_rto: Option<Duration>,
    /// States that were entered and not yet reported.
    entered: VecDeque<RouteState>,
}

impl Route {
    pub(super) fn new(policy: RoutePolicy) -> Option<Self> {
        policy.build().map(|policy| Self {
            policy,
            frozen_at: None,
            probe_due: None,
            untimed_below: 0,
            initial_rto: None,
            entered: VecDeque::new(),
        })
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.policy.next_timeout()
    }

    fn permits(&self) -> SendPermission {
        self.policy.state().permits()
    }
}

impl Sender {
    /// What the network says.
    pub(crate) fn on_path_event(&mut self, now: Instant, event: PathEvent, stats: &mut Stats) {
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let clamp = |offset: u64| offset.clamp(una, nxt);
        let outstanding = !self.board.is_empty();
        let order = match event {
            PathEvent::Hops(hops) => {
                self.window_limit.hops = Some(hops);
                return;
            }
            PathEvent::RouteFailed { sequence } if outstanding => {
                self.ask_policy(now, |policy, cx| policy.on_failure(cx, Some(clamp(sequence))))
            }
            PathEvent::Unreachable if outstanding => {
                self.ask_policy(now, |policy, cx| policy.on_failure(cx, None))
            }
            PathEvent::RouteRestored { expected } => {
                self.ask_policy(now, |policy, cx| policy.on_restored(cx, expected.map(clamp)))
            }
            PathEvent::RouteFailed { .. } | PathEvent::Unreachable => return,
        };
        self.execute(now, order.unwrap_or(Order::Nothing), stats);
    }

    /// Processes an acknowledgement, or only counts what it covers, as the policy has it.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ack: &IncomingAck,
        stats: &mut Stats,
    ) -> Option<Duration> {
        let news = AckInfo { ack: ack.ack, marked: ack.ece && self.ecn };
        let Some(order) = self.ask_policy(now, |policy, cx| policy.on_ack(cx, &news)) else {
            return self.process_ack(now, ack, stats);
        };
        self.execute(now, order, stats);
        if self.permits() != SendPermission::Everything {
            self.absorb(now, ack, stats);
            return None;
        }
        let sample = self.process_ack(now, ack, stats);
        if let Some(rto) = self.route.as_mut().and_then(|route| route.initial_rto.take()) {
            self.rtt.forget(rto);
        }
        sample
    }

    /// Processes an acknowledgement of less than is known to have arrived.
    pub(crate) fn on_old_ack(&mut self, now: Instant, ack: &IncomingAck, stats: &mut Stats) {
        if self.permits() == SendPermission::Everything {
            self.process_old_ack(now, ack, stats);
        }
    }

    /// The policy's deadline may have passed.
    pub(super) fn on_route_timeout(&mut self, now: Instant, stats: &mut Stats) {
        if self.route.as_ref().and_then(Route::next_timeout).is_some_and(|at| at <= now)
            && let Some(order) = self.ask_policy(now, |policy, cx| policy.on_timeout(cx))
        {
            self.execute(now, order, stats);
        }
    }

    /// New data leaves.
    pub(super) fn notify_policy_of_new_data(&mut self, now: Instant) {
        self.ask_policy(now, |policy, _| policy.on_new_data());
    }

    /// Whether a loss that was just found is kept from the controller.
    pub(super) fn hides_loss(&mut self, now: Instant, stats: &mut Stats) -> bool {
        if !self.hides_losses() {
            return false;
        }
        self.ask_policy(now, |policy, cx| policy.on_hidden_loss(cx));
        stats.losses_hidden += 1;
        true
    }

    pub(super) fn hides_losses(&self) -> bool {
        self.route.as_ref().is_some_and(|route| route.policy.hides_losses())
    }

    /// What of the sender runs.
    pub(super) fn permits(&self) -> SendPermission {
        self.route.as_ref().map_or(SendPermission::Everything, Route::permits)
    }

    pub(crate) fn route_state(&self) -> RouteState {
        self.route.as_ref().map_or(RouteState::Normal, |route| route.policy.state())
    }

    /// A state that the policy has entered, oldest first.
    pub(crate) fn poll_route_state(&mut self) -> Option<RouteState> {
        self.route.as_mut()?.entered.pop_front()
    }

    /// A probe that is due, while the policy alone decides on what leaves.
    pub(super) fn poll_route_probe(
        &mut self,
        now: Instant,
        stats: &mut Stats,
    ) -> Option<OutgoingRange> {
        let probe = self.route.as_mut()?.probe_due.take()?;
        let start = self.board.first()?.start;
        stats.route_probes += 1;
        match probe {
            Probe::Empty => Some(OutgoingRange::probe_at(start)),
            Probe::Oldest => {
                stats.retransmits_route += 1;
                let departure = self.resend(now, start, Kind::Probe, stats);
                self.account(now, &departure, stats);
                self.clock.set(now, Limit::Route, stats);
                Some(departure)
            }
        }
    }

    /// A timeout that the controller does not hear of.
    pub(super) fn on_hidden_timeout(&mut self, now: Instant, stats: &mut Stats) {
        self.timers.fruitless += 1;
        self.timers.restart(now);
        self.presume_lost(now, stats);
        self.epoch.enter_silently(RecoveryState::Loss, &self.board);
    }

    fn ask_policy<T>(
        &mut self,
        now: Instant,
        ask: impl FnOnce(&mut dyn Policy, &PolicyCx) -> T,
    ) -> Option<T> {
        let route = self.route.as_mut()?;
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let cx = PolicyCx { now, rto: self.rtt.rto(), una, nxt };
        let before = route.policy.state();
        let answer = ask(route.policy.as_mut(), &cx);
        let after = route.policy.state();
        if after != before {
            route.entered.push_back(after);
        }
        Some(answer)
    }

    fn execute(&mut self, now: Instant, order: Order, stats: &mut Stats) {
        match order {
            Order::Nothing => {}
            Order::Freeze(window) => self.freeze(now, window, stats),
            Order::Resume(resume) => self.resume(now, &resume, stats),
            Order::Probe(probe) => {
                if let Some(route) = &mut self.route {
                    route.probe_due = Some(probe);
                }
            }
            Order::SendAgain => {
                self.timers.fruitless += 1;
                self.lose_silently(stats, |_| true);
            }
        }
    }

    fn freeze(&mut self, now: Instant, window: AtResume, stats: &mut Stats) {
        let Some(route) = &mut self.route else { return };
        stats.route_failures += 1;
        route.frozen_at = Some(now);
        route.untimed_below = self.board.nxt();
        self.probe_due = false;
        (self.timeout_segments, self.early_repairs) = (0, 0);
        self.timers.window_probe_due = false;
        if window == AtResume::Anew {
            self.restart_window(now, stats);
        }
        self.clock.set(now, Limit::Route, stats);
    }

    fn resume(&mut self, now: Instant, resume: &Resume, stats: &mut Stats) {
        let Some(route) = &mut self.route else { return };
        route.probe_due = None;
        if let Some(from) = route.frozen_at.take() {
            let pause = Pause { from, to: now };
            self.timers.postpone(pause);
            self.recovery.postpone(pause);
            self.board.postpone(pause);
            self.last_sent_at = pause.shift(self.last_sent_at);
        }
        match resume.rto {
            Rto::Remaining => {}
            Rto::Saved => self.timers.restart(now),
            Rto::Doubled => self.timers.restart_doubled(now),
            Rto::Initial(rto) => {
                self.timers.restart(now);
                route.initial_rto = Some(rto);
            }
        }
        match resume.again {
            ResendRequest::Nothing => {}
            ResendRequest::All => self.lose_silently(stats, |_| true),
            ResendRequest::Between(start, end) => {
                self.lose_silently(stats, |sent| sent.start >= start && sent.end() <= end);
            }
        }
        if resume.window == AtResume::Anew {
            self.restart_window(now, stats);
        }
        if self.board.is_empty() {
            self.timers.stop_retransmission();
        }
    }

    /// The window is one segment again, with nothing in it; where it had been is remembered.
    fn restart_window(&mut self, now: Instant, stats: &mut Stats) {
        let prior_in_flight = self.board.in_flight();
        self.lose_silently(stats, |_| true);
        // As for a timeout within an episode: the threshold stays.
        let cause = Cause::Timeout { backoff: 0 };
        let event =
            CongestionEvent { cause, first_in_epoch: false, lost: Bytes::ZERO, prior_in_flight };
        self.with_controller(now, |controller, cx| controller.on_congestion(cx, &event));
    }

    /// Declares lost, of all that is not selectively acknowledged, what `choose` picks, without telling
    /// the controller. Until all that is outstanding now has arrived, nothing else is held against it.
    fn lose_silently(&mut self, stats: &mut Stats, choose: impl Fn(&Sent) -> bool) {
        if self.board.is_empty() {
            return;
        }
        self.board.clear_duplicates();
        if self.board.is_reneged() {
            self.board.forget_sacks();
        }
        stats.lost_bytes += self.board.lose_where(|_, sent| choose(sent));
        self.epoch.enter_silently(RecoveryState::Loss, &self.board);
    }
}

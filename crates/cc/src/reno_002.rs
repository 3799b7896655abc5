//! `reno-002`: the state machine that a course report prints as its Reno (source 002 of the study
//! `lab-udp`, §3.3.5 and its figure 2).
//!
//! ```text
//! slow start            new ACK         cwnd += mss; above ssthresh: congestion avoidance
//!                       duplicate ACK   counted, nothing else
//! congestion avoidance  new ACK         cwnd += mss per cwnd ACKs
//!                       3rd duplicate   ssthresh = cwnd / 2,  cwnd = ssthresh + 3 mss: fast recovery
//! fast recovery         duplicate ACK   cwnd += mss
//!                       new ACK         cwnd = ssthresh: congestion avoidance
//! any                   timeout         ssthresh = cwnd / 2,  cwnd = mss: slow start
//! ```
//!
//! It differs from RFC 5681 and from the figure in Kurose and Ross that it resembles (§3.7, "FSM
//! description of TCP congestion control") in one transition: a third duplicate in slow start reveals no
//! loss there, so that loss waits for the timer. Nor does it in fast recovery, where the duplicates
//! inflate the window. The report runs it over go-back-N; so should you, for schemes that count
//! duplicates out of what is in flight inflate the window a second time. SACK-based schemes find losses
//! without duplicates and are not held back.
//!
//! Deviations: `ssthresh` is in whole segments and at least two (the report prints neither), and
//! congestion avoidance begins at `ssthresh`, not one segment above it.
//!
//! Parameter: `ssthresh`, the first threshold in segments; infinite by default. The report does not print
//! its own. The figure in Kurose and Ross starts with 64 KB.

use weir_units::Bytes;

use crate::window::{AckClockedWindow, may_raise};
use crate::{AckEvent, Cause, CcContext, CongestionController, CongestionEvent, PathEvent};

/// The window of source 002's Reno.
#[derive(Clone, Debug)]
pub struct Reno002 {
    /// Without the inflation of fast recovery.
    window: AckClockedWindow,
    /// A segment for every duplicate since the last new acknowledgement.
    duplicates: Bytes,
    in_fast_recovery: bool,
}

impl Reno002 {
    /// Starts with `initial_window`, in slow start up to `ssthresh`.
    pub fn new(initial_window: Bytes, ssthresh: Option<Bytes>) -> Self {
        let mut window = AckClockedWindow::new(initial_window);
        window.ssthresh = ssthresh.unwrap_or(window.ssthresh);
        Self { window, duplicates: Bytes::ZERO, in_fast_recovery: false }
    }
}

impl CongestionController for Reno002 {
    fn name(&self) -> &'static str {
        "reno-002"
    }

    fn allows_fast_retransmit(&self) -> bool {
        !self.in_fast_recovery && !self.window.in_slow_start()
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.window.on_congestion(cx, event, |cwnd| cwnd / 2);
        match event.cause {
            Cause::Timeout { .. } => {
                self.in_fast_recovery = false;
                self.duplicates = Bytes::ZERO;
            }
            Cause::FastRetransmit if event.first_in_epoch => self.in_fast_recovery = true,
            Cause::FastRetransmit | Cause::EcnEcho | Cause::Delay => {}
        }
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        if ack.duplicate {
            self.duplicates += cx.mss;
        }
        if ack.cum_acked == Bytes::ZERO {
            return;
        }
        self.duplicates = Bytes::ZERO;
        if !std::mem::take(&mut self.in_fast_recovery) && may_raise(cx, ack) {
            // By acknowledgements, not by what they acknowledge.
            self.window.grow_as_reno(cx, cx.mss);
        }
    }

    fn on_spurious(&mut self, _cx: &mut CcContext<'_>) {
        self.window.undo();
        self.in_fast_recovery = false;
    }

    fn on_path(&mut self, cx: &mut CcContext<'_>, event: &PathEvent) {
        self.window.on_path(cx.mss, event);
    }

    fn cwnd(&self) -> Bytes {
        let inflation = if self.in_fast_recovery { self.duplicates } else { Bytes::ZERO };
        self.window.cwnd + inflation
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.window.finite_ssthresh()
    }

    fn phase(&self) -> &'static str {
        if self.in_fast_recovery { "fast_recovery" } else { self.window.phase() }
    }
}

#[cfg(test)]
mod tests {
    use weir_units::{Instant, stream};

    use super::*;
    use crate::{RecoveryState, RttSnapshot};

    const MSS: Bytes = Bytes(1_000);

    fn with_cx(call: impl FnOnce(&mut CcContext<'_>)) {
        call(&mut CcContext {
            now: Instant::from_nanos(1),
            mss: MSS,
            rtt: RttSnapshot::default(),
            bytes_in_flight: Bytes::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            delivered: Bytes::ZERO,
            delivered_marked: Bytes::ZERO,
            next_departure: Instant::from_nanos(1),
            paced: false,
            app_limited: false,
            cwnd_limited: true,
            peer_window: Bytes(1 << 40),
            feedback: None,
            state: RecoveryState::Open,
            rng: &mut stream(1, "reno-002"),
        });
    }

    impl Reno002 {
        fn acks(&mut self, count: usize) {
            let ack = AckEvent { acked: MSS, cum_acked: MSS, ..AckEvent::default() };
            (0..count).for_each(|_| with_cx(|cx| self.on_ack(cx, &ack)));
        }

        fn duplicates(&mut self, count: usize) {
            let ack = AckEvent { duplicate: true, ..AckEvent::default() };
            (0..count).for_each(|_| with_cx(|cx| self.on_ack(cx, &ack)));
        }

        fn congestion(&mut self, cause: Cause) {
            let nothing = Bytes::ZERO;
            let event = CongestionEvent {
                cause,
                first_in_epoch: true,
                lost: nothing,
                prior_in_flight: nothing,
            };
            with_cx(|cx| self.on_congestion(cx, &event));
        }

        fn segments(&self) -> u64 {
            self.cwnd().get() / MSS.get()
        }
    }

    /// Ten segments, above a threshold of ten.
    fn avoiding() -> Reno002 {
        let mut reno = Reno002::new(MSS, Some(MSS * 10));
        reno.acks(9);
        assert_eq!((reno.segments(), reno.phase()), (10, "congestion_avoidance"));
        reno
    }

    #[test]
    fn slow_start_counts_acks_and_avoidance_adds_one_per_window_of_them() {
        let mut reno = avoiding();
        reno.acks(10);
        assert_eq!(reno.segments(), 11);
        reno.acks(11);
        assert_eq!(reno.segments(), 12);
    }

    #[test]
    fn only_congestion_avoidance_may_retransmit_for_duplicates() {
        let mut reno = Reno002::new(MSS, None);
        reno.acks(20);
        assert_eq!((reno.phase(), reno.allows_fast_retransmit()), ("slow_start", false));
        reno.duplicates(5);
        assert_eq!(reno.segments(), 21);
        let mut reno = avoiding();
        assert!(reno.allows_fast_retransmit());
        reno.congestion(Cause::FastRetransmit);
        assert_eq!((reno.phase(), reno.allows_fast_retransmit()), ("fast_recovery", false));
    }

    #[test]
    fn fast_recovery_starts_three_above_half_inflates_and_deflates() {
        let mut reno = avoiding();
        reno.duplicates(2);
        assert_eq!(reno.segments(), 10);
        reno.congestion(Cause::FastRetransmit);
        reno.duplicates(1);
        assert_eq!(reno.segments(), 5 + 3);
        reno.duplicates(4);
        assert_eq!(reno.segments(), 5 + 3 + 4);
        reno.acks(1);
        assert_eq!((reno.segments(), reno.phase()), (5, "congestion_avoidance"));
    }

    #[test]
    fn a_timeout_restarts_slow_start_up_to_half() {
        let mut reno = avoiding();
        reno.duplicates(2);
        reno.congestion(Cause::Timeout { backoff: 0 });
        assert_eq!((reno.segments(), reno.phase()), (1, "slow_start"));
        reno.acks(4);
        assert_eq!((reno.segments(), reno.phase()), (5, "congestion_avoidance"));
    }
}

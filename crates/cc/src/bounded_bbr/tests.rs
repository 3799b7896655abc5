//! Version 2's states by scripted acknowledgements, next to version 3's where they differ. The path takes 100 packets of 1000
//! bytes in 100 ms, or in 4 ms where marks count.

use proptest::prelude::*;
use weir_units::{Rng, stream};

use super::*;
use crate::LossSample;

const MSS: Bytes = Bytes(1_000);
/// 100 packets.
const BDP: Bytes = Bytes(100_000);
const RTT: Duration = Duration::from_millis(100);

/// A connection whose acknowledgements a test makes.
struct Script {
    bbr: BoundedBbr,
    now: Instant,
    delivered: Bytes,
    marked: Bytes,
    state: RecoveryState,
    rng: Rng,
}

/// An acknowledgement of a round trip that delivered `delivered` at the path's rate.
#[derive(Clone, Copy)]
struct Ack {
    rtt: Duration,
    delivered: Bytes,
    /// After it, and when the acknowledged segment left.
    in_flight: Bytes,
    /// Since the acknowledged segment left, and whether this acknowledgement shows some of it.
    lost: Bytes,
    shows_loss: bool,
    marked: Bytes,
    /// Whether it ends a round.
    round: bool,
    cwnd_limited: bool,
}

const ACK: Ack = Ack {
    rtt: RTT,
    delivered: BDP,
    in_flight: BDP,
    lost: Bytes::ZERO,
    shows_loss: true,
    marked: Bytes::ZERO,
    round: true,
    cwnd_limited: true,
};

impl Script {
    fn new(bbr: BoundedBbr) -> Self {
        let now = Instant::ZERO + Duration::from_secs(1);
        let rng = stream(1, "controller");
        let (delivered, marked) = (Bytes::ZERO, Bytes::ZERO);
        Self { bbr, now, delivered, marked, state: RecoveryState::Open, rng }
    }

    fn version_2() -> Self {
        Self::new(BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off))
    }

    /// It has measured the path and cruises; nothing makes it probe.
    fn cruising(mut self, rtt: Duration) -> Self {
        self.ack(Ack { rtt, ..ACK });
        self.bbr.full_pipe.reached = true;
        self.bbr.cwnd = BDP * 2;
        self.with_cx(ACK, |bbr, cx| bbr.start_down(cx));
        self.bbr.state = State::Cruise;
        self.wait_for_ever();
        self
    }

    fn wait_for_ever(&mut self) {
        self.bbr.probe.rounds_since = 0;
        self.bbr.probe.wait = Duration::from_secs(1_000);
    }

    fn with_cx(&mut self, ack: Ack, call: impl FnOnce(&mut BoundedBbr, &mut CcContext<'_>)) {
        let mut cx = CcContext {
            bytes_in_flight: ack.in_flight,
            delivered: self.delivered,
            delivered_marked: self.marked,
            cwnd_limited: ack.cwnd_limited,
            state: self.state,
            ..CcContext::new(self.now, MSS, &mut self.rng)
        };
        call(&mut self.bbr, &mut cx);
    }

    /// Acknowledges a segment a millisecond later.
    fn ack(&mut self, ack: Ack) {
        self.now += Duration::from_millis(1);
        if self.bbr.min_rtt_at.is_none() {
            self.with_cx(ack, |bbr, cx| bbr.on_sent(cx, MSS));
        }
        let prior_delivered = if ack.round { self.delivered } else { Bytes::ZERO };
        self.delivered += MSS;
        self.marked += ack.marked;
        let sample = RateSample {
            delivered: ack.delivered,
            interval: ack.rtt,
            prior_delivered,
            total_delivered: self.delivered,
            in_flight_at_send: ack.in_flight,
            lost: ack.lost,
            app_limited: false,
        };
        let shows_loss = ack.shows_loss && ack.lost > Bytes::ZERO;
        let loss = shows_loss.then_some(LossSample {
            size: MSS,
            in_flight_at_send: ack.in_flight,
            lost: ack.lost,
            app_limited: false,
        });
        let event = AckEvent {
            acked: MSS,
            rtt: Some(ack.rtt),
            rate: Some(sample),
            lost: if shows_loss { MSS } else { Bytes::ZERO },
            loss,
            prior_in_flight: ack.in_flight,
            ..AckEvent::default()
        };
        self.with_cx(ack, |bbr, cx| bbr.on_ack(cx, &event));
    }

    fn congestion(&mut self, cause: Cause, state: RecoveryState) {
        let first_in_epoch = self.state == RecoveryState::Open;
        self.state = state;
        let event = CongestionEvent { cause, first_in_epoch, lost: MSS, prior_in_flight: BDP };
        self.with_cx(ACK, |bbr, cx| bbr.on_congestion(cx, &event));
    }

    fn enter_recovery(&mut self) {
        self.congestion(Cause::FastRetransmit, RecoveryState::Recovery);
    }
}

/// `bbr_update_gains`.
#[test]
fn gains_of_the_states() {
    let mut bbr = BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off);
    let states = [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill];
    let gains =
        [states.as_slice(), &[State::Up, State::ProbeRtt]].concat().into_iter().map(|state| {
            bbr.state = state;
            (bbr.pacing_gain(), bbr.cwnd_gain())
        });
    let expected = [
        (2_885, 2_885),
        (346, 2_885),
        (750, 2_000),
        (1_000, 2_000),
        (1_000, 2_000),
        (1_250, 2_000),
    ];
    assert_eq!(gains.collect::<Vec<_>>(), [expected.as_slice(), &[(1_000, 1_000)]].concat());
}

/// `bbr_full_loss_cnt`: eight acknowledgements with losses in a round, six in version 3.
#[test]
fn startup_ends_after_losses_in_eight_places_of_a_round() {
    let ends_after = |bbr: BoundedBbr| {
        (1..20)
            .find(|count| {
                let mut script = Script::new(bbr.clone());
                script.ack(ACK);
                script.enter_recovery();
                for _ in 1..*count {
                    script.ack(Ack { lost: MSS * 4, round: false, ..ACK });
                }
                script.ack(Ack { lost: MSS * 4, ..ACK });
                script.bbr.full_pipe.reached
            })
            .expect("losses end it")
    };
    assert_eq!(ends_after(BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off)), 8);
    assert_eq!(ends_after(BoundedBbr::version_3(MSS, MSS * 10, Bbr3Text::Draft06)), 6);
}

/// What may be in flight is then the product: `bbr2_handle_queue_too_high_in_startup`. Two of a hundred lost are too few.
#[test]
fn startup_ends_only_above_two_percent() {
    for (lost, ends) in [(2, false), (3, true)] {
        let mut script = Script::version_2();
        script.ack(ACK);
        script.enter_recovery();
        for round in [vec![false; 9], vec![true]].concat() {
            script.ack(Ack { lost: MSS * lost, round, ..ACK });
        }
        assert_eq!(script.bbr.full_pipe.reached, ends, "{lost}");
        assert_eq!(script.bbr.model.inflight_longterm, ends.then_some(BDP), "{lost}");
    }
}

/// `bbr_full_bw_cnt`: three rounds without 25 % more.
#[test]
fn startup_ends_at_a_plateau_and_drains_until_the_product_is_in_flight() {
    let mut script = Script::version_2();
    let reached = [(); 4].map(|()| {
        script.ack(Ack { in_flight: BDP * 3, ..ACK });
        script.bbr.full_pipe.reached
    });
    assert_eq!(reached, [false, false, false, true]);
    for _ in 0..10 {
        script.ack(Ack { in_flight: BDP + MSS, ..ACK });
        assert_eq!(script.bbr.state, State::Drain, "no matter how many rounds");
    }
    script.ack(ACK);
    assert_ne!(script.bbr.state, State::Drain);
}

/// `bbr2_adapt_lower_bounds`: 0.7 of it, but not below what the round delivered.
#[test]
fn a_round_with_losses_lowers_the_bounds_by_three_tenths_at_most() {
    let mut script = Script::version_2().cruising(RTT);
    let max_bw = script.bbr.model.max_bw();
    script.ack(Ack { delivered: BDP / 2, lost: MSS, ..ACK });
    let left = script.bbr.cwnd * 7 / 10;
    script.ack(Ack { delivered: BDP / 2, ..ACK });
    assert_eq!(script.bbr.model.bw_shortterm, Some(max_bw.mul_ratio(7, 10)));
    assert_eq!(script.bbr.model.inflight_shortterm, Some(left));
    assert_eq!(script.bbr.cwnd, left);
    let mut script = Script::version_2().cruising(RTT);
    script.ack(Ack { delivered: BDP * 9 / 10, lost: MSS, ..ACK });
    script.ack(Ack { delivered: BDP * 9 / 10, ..ACK });
    assert_eq!(script.bbr.model.bw_shortterm, Some(max_bw.mul_ratio(9, 10)));
}

/// A round of refill, then up until a quarter more than the product is in flight for the minimum RTT.
#[test]
fn a_probe_refills_goes_up_and_down_and_cruises() {
    let mut script = Script::version_2().cruising(RTT);
    script.bbr.probe.wait = Duration::ZERO;
    script.ack(ACK);
    assert_eq!(script.bbr.state, State::Refill);
    script.ack(Ack { round: false, ..ACK });
    assert_eq!(script.bbr.state, State::Refill);
    script.ack(ACK);
    assert_eq!(script.bbr.state, State::Up);
    let up = Ack { in_flight: BDP * 5 / 4 + MSS * 10, ..ACK };
    script.now += RTT - Duration::from_millis(1);
    script.ack(up);
    assert_eq!(script.bbr.state, State::Up, "for no longer than the minimum RTT");
    script.ack(ACK);
    assert_eq!(script.bbr.state, State::Up, "with no more than the product in flight");
    script.ack(up);
    assert_eq!(script.bbr.state, State::Down);
    script.wait_for_ever();
    script.ack(Ack { in_flight: BDP + MSS * 10, ..ACK });
    assert_eq!(script.bbr.state, State::Down);
    script.ack(ACK);
    assert_eq!(script.bbr.state, State::Cruise);
}

/// An acknowledgement that shows more than 2 % lost ends it; the next probe stops there, and the one after that follows at once.
#[test]
fn a_probe_that_loses_too_much_bounds_the_next() {
    let mut script = Script::version_2().cruising(RTT);
    let probe = |script: &mut Script| {
        script.bbr.probe.wait = Duration::ZERO;
        (0..3).for_each(|_| script.ack(ACK));
        assert_eq!(script.bbr.state, State::Up);
    };
    probe(&mut script);
    script.ack(Ack { in_flight: BDP * 6 / 5, lost: MSS * 3, ..ACK });
    assert_eq!(script.bbr.state, State::Down);
    let longterm = script.bbr.model.inflight_longterm.expect("a bound");
    assert!((BDP..BDP * 6 / 5).contains(&longterm), "{longterm:?}");
    script.wait_for_ever();
    script.ack(ACK);
    script.ack(ACK);
    probe(&mut script);
    script.ack(Ack { in_flight: longterm, ..ACK });
    assert_eq!(script.bbr.state, State::Down, "a precaution");
    script.ack(ACK);
    assert_eq!(script.bbr.state, State::Refill, "it lost nothing");
}

/// `bbr2_adapt_upper_bounds` judges what every acknowledgement says of the losses since its segment left.
#[test]
fn a_probe_ends_with_any_acknowledgement_of_too_much_loss() {
    let probing = |bbr| {
        let mut script = Script::new(bbr).cruising(RTT);
        script.bbr.probe.wait = Duration::ZERO;
        (0..2).for_each(|_| script.ack(ACK));
        assert_eq!(script.bbr.state, State::Up);
        script.ack(Ack { in_flight: BDP * 6 / 5, lost: MSS * 3, shows_loss: false, ..ACK });
        script.bbr
    };
    let two = probing(BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off));
    assert_eq!((two.state, two.model.inflight_longterm), (State::Down, Some(BDP * 6 / 5)));
    let three = probing(BoundedBbr::version_3(MSS, MSS * 10, Bbr3Text::Draft06));
    assert_eq!((three.state, three.model.inflight_longterm), (State::Up, None));
}

/// `bbr2_probe_inflight_hi_upward`: the bound grows by what a full window acknowledges, and that alone counts.
#[test]
fn a_bound_grows_only_while_the_window_is_used() {
    let mut script = Script::version_2().cruising(RTT);
    script.bbr.state = State::Up;
    script.bbr.model.inflight_longterm = Some(BDP);
    script.bbr.cwnd = BDP;
    script.with_cx(ACK, |bbr, cx| {
        bbr.raise_slope(MSS);
        bbr.round.start = false;
        bbr.probe_longterm_upward(cx, MSS * 50);
    });
    assert_eq!(script.bbr.model.inflight_longterm, Some(BDP), "half of a window");
    script
        .with_cx(Ack { cwnd_limited: false, ..ACK }, |bbr, cx| bbr.probe_longterm_upward(cx, MSS));
    script.with_cx(ACK, |bbr, cx| bbr.probe_longterm_upward(cx, MSS * 50));
    assert_eq!(script.bbr.model.inflight_longterm, Some(BDP), "the first half is forgotten");
    script.with_cx(ACK, |bbr, cx| bbr.probe_longterm_upward(cx, MSS * 50));
    assert_eq!(script.bbr.model.inflight_longterm, Some(BDP + MSS));
}

/// `bbr2_start_bw_probe_cruise`.
#[test]
fn cruise_begins_below_the_long_term_bound() {
    let mut script = Script::version_2().cruising(RTT);
    script.bbr.model.inflight_longterm = Some(BDP);
    script.bbr.start_cruise();
    assert_eq!(script.bbr.model.inflight_shortterm, None, "nothing was lost");
    script.bbr.model.inflight_shortterm = Some(BDP * 2);
    script.bbr.start_cruise();
    assert_eq!(script.bbr.model.inflight_shortterm, Some(BDP));
}

/// `bbr_packets_in_net_at_edt` and `bbr_tso_segs_generic`: at 1 Mbyte/s a segment leaves the path each millisecond.
#[test]
fn what_leaves_until_the_next_departure_is_not_in_flight() {
    let mut script = Script::version_2().cruising(RTT);
    script.bbr.pacing_rate = Rate::from_mbit(8);
    script.with_cx(ACK, |bbr, cx| {
        cx.next_departure = cx.now + Duration::from_millis(10);
        assert_eq!(bbr.in_flight_at_departure(cx, BDP), BDP - MSS * 10);
        bbr.state = State::Up;
        assert_eq!(bbr.in_flight_at_departure(cx, BDP), BDP - MSS * 8, "a burst of two");
    });
}

/// 64 KiB, halved with every 512 us of RTT, and a millisecond at the rate: three times that may be in flight.
#[test]
fn bursts_are_larger_on_short_paths() {
    let segments = |micros| {
        let mut bbr = BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off);
        bbr.pacing_rate = Rate::from_mbit(80);
        bbr.min_rtt = Some(Duration::from_micros(micros));
        bbr.inflight(MSS, Rate::ZERO, UNIT).get() / MSS.get()
    };
    assert_eq!([100, 600, 40_000].map(segments), [3 * 65, 3 * 42, 3 * 10]);
}

/// `bbr2_is_reno_coexistence_probe_time`: the rounds that Reno needs, 63 at most; `bbr2_pick_probe_wait`: 2 to 3 s.
#[test]
fn probes_come_as_often_as_reno_needs_and_every_three_seconds() {
    for (flight, expected) in [(BDP / 4, 25), (BDP, 63)] {
        let mut script = Script::version_2().cruising(RTT);
        script.bbr.cwnd = flight;
        script.bbr.model.inflight_shortterm = Some(flight);
        let rounds = (1..).find(|_| {
            script.ack(ACK);
            script.bbr.state == State::Refill
        });
        assert_eq!(rounds, Some(expected));
    }
    let waits = (0..1_000).map(|seed| {
        let mut script = Script::version_2().cruising(RTT);
        script.rng = stream(seed, "controller");
        script.with_cx(ACK, |bbr, cx| bbr.start_down(cx));
        assert!(script.bbr.probe.rounds_since < 2);
        script.bbr.probe.wait.as_millis()
    });
    let waits: std::collections::BTreeSet<_> = waits.collect();
    assert!(waits.iter().all(|wait| (2_000..=3_000).contains(wait)));
    assert!(waits.len() > 500, "{}", waits.len());
}

/// `probe_rtt_win_ms` and `probe_rtt_mode_ms`: after 5 s without an RTT as small as the smallest, 200 ms at half of the product.
#[test]
fn probe_rtt_follows_five_seconds_of_larger_rtts() {
    let mut script = Script::version_2().cruising(RTT);
    let seconds = |script: &mut Script, seconds: u64, rtt: Duration| {
        for _ in 0..seconds * 100 {
            script.now += Duration::from_millis(9);
            script.wait_for_ever();
            script.ack(Ack { rtt, ..ACK });
        }
    };
    seconds(&mut script, 20, RTT);
    assert_eq!(script.bbr.state, State::Cruise, "equal samples are as good");
    seconds(&mut script, 5, RTT + Duration::from_millis(1));
    assert_eq!(script.bbr.state, State::Cruise);
    seconds(&mut script, 1, RTT + Duration::from_millis(1));
    assert_eq!(script.bbr.state, State::ProbeRtt);
    assert_eq!(script.bbr.cwnd, BDP / 2);
    script.ack(Ack { in_flight: BDP / 2, ..ACK });
    for (wait, state) in [(199, State::ProbeRtt), (1, State::ProbeRtt), (1, State::Cruise)] {
        script.now += Duration::from_millis(wait - 1);
        script.ack(Ack { in_flight: BDP / 2, ..ACK });
        assert_eq!(script.bbr.state, state, "{wait}");
    }
    assert!(script.bbr.cwnd > BDP, "the window of before");
}

/// `bbr2_undo_cwnd`: bounds and window return, the state does not.
#[test]
fn losses_that_prove_unfounded_leave_no_bound() {
    let mut script = Script::version_2().cruising(RTT);
    script.enter_recovery();
    script.ack(Ack { lost: MSS, ..ACK });
    script.ack(ACK);
    assert!(script.bbr.model.bw_shortterm.is_some() && script.bbr.cwnd < BDP * 2);
    script.with_cx(ACK, |bbr, cx| bbr.on_spurious(cx));
    assert_eq!(script.bbr.model.bw_shortterm, None);
    assert_eq!(script.bbr.model.inflight_shortterm, None);
    assert_eq!((script.bbr.state, script.bbr.cwnd), (State::Cruise, BDP * 2));
    for (bbr, returns_to) in [
        (BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::Off), State::Down),
        (BoundedBbr::version_3(MSS, MSS * 10, Bbr3Text::Draft06), State::Refill),
    ] {
        let mut script = Script::new(bbr).cruising(RTT);
        script.bbr.probe.wait = Duration::ZERO;
        (0..2).for_each(|_| script.ack(ACK));
        script.ack(Ack { lost: MSS * 3, ..ACK });
        assert_eq!(script.bbr.state, State::Down);
        script.with_cx(ACK, |bbr, cx| bbr.on_spurious(cx));
        assert_eq!(script.bbr.state, returns_to);
    }
}

/// `bbr_check_full_bw_reached` compares the filter's maximum: a timeout restarts it from there, not from what is delivered then.
#[test]
fn a_timeout_restarts_the_plateau_of_startup() {
    let mut script = Script::version_2();
    (0..2).for_each(|_| script.ack(ACK));
    script.congestion(Cause::Timeout { backoff: 0 }, RecoveryState::Loss);
    assert_eq!(script.bbr.full_pipe.bandwidth, Rate::ZERO);
    script.ack(Ack { delivered: BDP / 2, ..ACK });
    assert_eq!(script.bbr.full_pipe.bandwidth, script.bbr.model.max_bw());
    assert_eq!(script.bbr.model.inflight_shortterm, None, "startup probes");
}

/// `bbr2_set_state`: the timer restarts the window, whose old size bounds what follows. The end of what it repairs restores it, which
/// the end of a recovery does not.
#[test]
fn only_the_end_of_a_timeout_restores_the_window() {
    let mut script = Script::version_2().cruising(RTT);
    script.congestion(Cause::Timeout { backoff: 0 }, RecoveryState::Loss);
    assert_eq!(script.bbr.model.inflight_shortterm, Some(BDP * 2));
    assert_eq!(script.bbr.cwnd, BDP + MSS);
    script.state = RecoveryState::Open;
    script.ack(ACK);
    assert_eq!(script.bbr.cwnd, BDP * 2);
    script.enter_recovery();
    script.ack(ACK);
    script.bbr.cwnd = BDP;
    script.state = RecoveryState::Open;
    script.ack(ACK);
    assert_eq!(script.bbr.cwnd, BDP + MSS);
}

/// A router marks from now on on a path of 4 ms.
fn marked(ecn: Bbr2Ecn, rtt: Duration) -> Script {
    Script::new(BoundedBbr::version_2(MSS, MSS * 10, ecn)).cruising(rtt)
}

const SHORT: Duration = Duration::from_millis(4);

/// `bbr2_ecn_cut`: by a third of `alpha`, which is 1 at first. Without `ecn=on` and beyond 5 ms marks have no effect.
#[test]
fn a_round_with_marks_lowers_the_bounds_by_a_third_of_alpha() {
    let others = [(Bbr2Ecn::Off, SHORT, false), (Bbr2Ecn::On, SHORT * 2, false)];
    for (ecn, rtt, counts) in [(Bbr2Ecn::On, SHORT, true)].into_iter().chain(others) {
        let mut script = marked(ecn, rtt);
        script.bbr.marks = Marks::default();
        script.bbr.marks.note_path(script.bbr.min_rtt);
        let max_bw = script.bbr.model.max_bw();
        script.ack(Ack { rtt, marked: MSS, round: false, ..ACK });
        script.ack(Ack { rtt, ..ACK });
        let bound = script.bbr.model.bw_shortterm;
        assert_eq!(bound.is_some(), counts, "{ecn:?} {rtt:?}");
        if let Some(bound) = bound {
            let share = bound.as_bits_per_sec() as f64 / max_bw.as_bits_per_sec() as f64;
            assert!((share - 2.0 / 3.0).abs() < 0.03, "{share}");
        }
    }
}

/// `bbr_full_ecn_cnt`: two rounds in a row with half of it marked.
#[test]
fn startup_ends_after_two_rounds_with_many_marks() {
    let ends = |rounds: &[u64]| {
        let mut script = Script::new(BoundedBbr::version_2(MSS, MSS * 10, Bbr2Ecn::On));
        let mut delivered = BDP;
        for marked in [0].iter().chain(rounds) {
            delivered += delivered;
            script.ack(Ack { rtt: SHORT, marked: Bytes(*marked), delivered, ..ACK });
        }
        script.bbr.full_pipe.reached
    };
    assert!(ends(&[500, 500]));
    assert!(!ends(&[500, 490, 500]) && !ends(&[490, 490, 490]));
}

/// A probe that is marked from its first sample on lowers the long-term rate, and a faster sample without marks raises it again.
#[test]
fn a_marked_probe_bounds_the_rate() {
    let mut script = marked(Bbr2Ecn::On, SHORT);
    script.bbr.probe.wait = Duration::ZERO;
    let max_bw = script.bbr.model.max_bw();
    for _ in 0..2 {
        script.ack(Ack { rtt: SHORT, ..ACK });
    }
    assert_eq!(script.bbr.state, State::Up);
    script.bbr.probe.has_good_sample = false;
    script.ack(Ack { rtt: SHORT, marked: BDP / 2, ..ACK });
    assert_eq!(script.bbr.state, State::Down);
    assert!(script.bbr.model.bw_longterm.is_some_and(|bound| bound < max_bw));
    assert!(script.bbr.bw() < max_bw);
    script.wait_for_ever();
    script.ack(Ack { rtt: SHORT, ..ACK });
    assert_eq!(script.bbr.bw(), max_bw);
}

/// The filter of 1/16 with the truncation of 256ths: shares below 1/16 add nothing.
#[test]
fn alpha_follows_the_share_of_marks() {
    let mut script = marked(Bbr2Ecn::On, SHORT);
    let mut after = |rounds: usize, marked: u64| {
        for _ in 0..rounds {
            script.wait_for_ever();
            script.ack(Ack { rtt: SHORT, marked: Bytes(marked), ..ACK });
        }
        script.bbr.marks.alpha()
    };
    assert_eq!(after(200, 60), 0.0);
    let half = after(200, 500);
    assert!((0.44..=0.5).contains(&half), "{half}");
    assert!(after(1, 0) < half * 0.95);
}

proptest! {
    /// The bytes marked when a segment left are those of the last acknowledgement before it did.
    #[test]
    fn marks_are_known_for_each_departure(acks in proptest::collection::vec((1..5_u64, 0..3_u64, 0..9_usize), 1..100)) {
        let (mut marks, mut known) = (Marks::default(), vec![(Bytes::ZERO, Bytes::ZERO)]);
        let mut departure = 0;
        for (delivered, marked, later) in acks {
            let (at, of_it) = known[known.len() - 1];
            departure = (departure + later).min(known.len() - 1);
            known.push((at + Bytes(delivered), of_it + Bytes(marked.min(delivered))));
            let (now, sum) = known[known.len() - 1];
            let more = marks.on_ack(sum, now, known[departure].0);
            prop_assert_eq!(more, sum > of_it);
            prop_assert_eq!(marks.since_departure(), sum - known[departure].1);
        }
    }
}

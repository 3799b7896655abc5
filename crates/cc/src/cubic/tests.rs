use weir_units::stream;

use super::*;

/// With the default `c`.
const CUBE_PER_SEGMENT: u64 = (1 << 40) / 410;

#[test]
fn cube_roots_are_close() {
    for n in (1..10_000).map(|n| n * CUBE_PER_SEGMENT).chain((30..64).map(|bit| 1 << bit)) {
        let (root, exact) = (cube_root(n) as f64, libm::cbrt(n as f64));
        assert!((root / exact - 1.0).abs() <= 0.005, "{n}: {root} for {exact}");
    }
    for n in (0..1_000).chain([u64::MAX]) {
        let (root, exact) = (cube_root(n) as f64, libm::cbrt(n as f64));
        assert!((root - exact).abs() <= 1.0 + exact * 0.005, "{n}: {root} for {exact}");
    }
}

#[test]
fn k_is_what_linux_computes() {
    // K in 1/1024 s for a window the given number of segments below W_max.
    let linux = [(1, 1_388), (5, 2_375), (10, 2_991), (20, 3_770), (28, 4_215), (49, 5_088)];
    for (below, k) in linux {
        assert_eq!(cube_root(below * CUBE_PER_SEGMENT), k, "{below}");
    }
}

#[test]
fn what_cubic_is_given_survives_a_timeout() {
    let half = Decimal::HALF;
    let shape = CubicShape { beta: half, friendliness: Friendliness::Off, ..CubicShape::LINUX };
    let mss = Bytes(1_000);
    let mut cubic = Cubic::new(mss * 100, Hystart::Off, shape);
    let (mut rng, mut reduced) = (stream(1, "cubic"), Vec::new());
    for cause in [Cause::Timeout { backoff: 0 }, Cause::FastRetransmit] {
        let mut cx = CcContext::new(Instant::from_nanos(1), mss, &mut rng);
        cubic.window.cwnd = mss * 100;
        let event =
            CongestionEvent { cause, first_in_epoch: true, lost: mss, prior_in_flight: mss * 100 };
        cubic.on_congestion(&mut cx, &event);
        reduced.extend(cubic.ssthresh());
    }
    assert_eq!(reduced, [mss * 50; 2]);
    assert_eq!(cubic.curve.shape, shape);
}

/// The window after 200 rounds in which one acknowledgement empties the flight, at twice the window of a loss.
fn window_after_emptied_flights(idle: Idle) -> Bytes {
    let mss = Bytes(1_000);
    let shape = CubicShape { idle, ..CubicShape::LINUX };
    let mut cubic = Cubic::new(mss * 10, Hystart::Off, shape);
    let (mut rng, rtt) = (stream(1, "cubic"), Duration::from_millis(10));
    let loss = CongestionEvent {
        cause: Cause::FastRetransmit,
        first_in_epoch: true,
        lost: mss,
        prior_in_flight: mss * 3,
    };
    let mut now = Instant::ZERO;
    for round in 0..200 {
        let mut cx = CcContext { cwnd_limited: true, ..CcContext::new(now, mss, &mut rng) };
        cubic.on_sent(&mut cx, mss);
        if round == 0 {
            cubic.window.cwnd = mss * 3;
            cubic.on_congestion(&mut cx, &loss);
        }
        now += rtt;
        cx.now = now;
        let acked = cubic.cwnd();
        cubic.on_ack(
            &mut cx,
            &AckEvent { acked, cum_acked: acked, rtt: Some(rtt), ..AckEvent::default() },
        );
    }
    cubic.cwnd()
}

#[test]
fn a_flight_that_empties_never_leaves_recovery_where_idle_time_moves_it() {
    assert_eq!(window_after_emptied_flights(Idle::Recovery), Bytes(2_000));
    assert!(window_after_emptied_flights(Idle::Epoch) > Bytes(20_000));
}

/// While a reduction is metered and the window is below the threshold, Linux's HyStart goes on, and ends slow start at
/// the window in force (`tcp_in_slow_start` in `cubictcp_acked`).
#[test]
fn long_round_trips_end_the_slow_start_of_a_metered_reduction() {
    let mss = Bytes(1_000);
    let threshold = |metered_window: Option<Bytes>| {
        let mut cubic = Cubic::new(mss * 57, Hystart::Linux, CubicShape::LINUX);
        let mut rng = stream(1, "cubic");
        let mut now = Instant::ZERO;
        let mut answer = |cubic: &mut Cubic, snd_una: u64, rtt_ms: u64| {
            now += Duration::from_millis(5);
            let snd_nxt = if snd_una > 60_000 { 200_000 } else { 60_000 };
            let mut cx = CcContext { snd_una, snd_nxt, ..CcContext::new(now, mss, &mut rng) };
            cx.state = crate::RecoveryState::Recovery;
            let rtt = Some(Duration::from_millis(rtt_ms));
            let ack = AckEvent { acked: mss, rtt, metered_window, ..AckEvent::default() };
            cubic.on_ack(&mut cx, &ack);
        };
        answer(&mut cubic, 1_000, 10);
        let mut rng = stream(1, "cubic");
        let loss = CongestionEvent {
            cause: Cause::FastRetransmit,
            first_in_epoch: true,
            lost: mss,
            prior_in_flight: mss * 57,
        };
        cubic.on_congestion(&mut CcContext::new(Instant::ZERO, mss, &mut rng), &loss);
        (61..80).for_each(|segment| answer(&mut cubic, segment * 1_000, 20));
        (cubic.cwnd(), cubic.ssthresh())
    };
    assert_eq!(threshold(Some(mss * 22)), (mss * 22, Some(mss * 22)));
    assert_eq!(threshold(Some(mss * 15)), (mss * 39, Some(mss * 39)), "below the smallest window");
    assert_eq!(threshold(None), (mss * 39, Some(mss * 39)));
}

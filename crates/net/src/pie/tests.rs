use weir_units::{Rate, stream};

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, at_us, link};
use crate::parcel::Ecn;

const MS: Duration = Duration::from_millis(1);

fn fraction(units: u64) -> f64 {
    units as f64 / ONE as f64
}

fn units(fraction: f64) -> u64 {
    (fraction * ONE as f64) as u64
}

/// The probability after one update from `probability`, at this delay and the one before.
fn updated(probability: f64, delay: Duration, before: Duration) -> f64 {
    let mut state = PieState {
        probability: units(probability),
        delay,
        delay_before: before,
        ..PieState::default()
    };
    state.update(&PieLaw::DEFAULT, Bytes(9_000));
    fraction(state.probability)
}

/// RFC 8033 §4.2 with Linux's scale: alpha 1/8 and beta 5/4 per second, over 2, and over 4 again for each
/// power of ten below 1/100.
#[test]
fn updates_follow_the_controller() {
    let scale = [(0.5, 1.0), (0.05, 2.0), (0.005, 8.0), (5e-4, 32.0), (5e-5, 128.0)];
    let finest = [(5e-6, 512.0), (5e-7, 2_048.0)];
    for (probability, divisor) in scale.into_iter().chain(finest) {
        for (delay, before) in [(20, 17), (15, 15), (18, 25)] {
            let error = (delay as f64 - 15.0) / 1e3;
            let change = (delay as f64 - before as f64) / 1e3;
            let expected = (probability + (0.125 * error + 1.25 * change) / divisor).max(0.0);
            let seen = updated(probability, MS * delay, MS * before);
            assert!((seen - expected).abs() < 1e-9, "{probability}, {delay}: {seen}, {expected}");
        }
    }
}

#[test]
fn steps_are_bounded_and_extremes_hold() {
    let step = updated(0.2, MS * 240, Duration::ZERO) - 0.2;
    assert!((step - 0.02).abs() < 1e-9, "at most 2 %: {step}");
    let step = updated(0.2, MS * 260, Duration::ZERO) - 0.2;
    assert!((step - 0.04).abs() < 1e-9, "2 % more above 250 ms: {step}");
    assert_eq!(updated(0.99, MS * 900, Duration::ZERO), 1.0);
    assert_eq!(updated(0.001, Duration::ZERO, MS * 15), 0.0);
}

/// RFC 8033 §5.4 at a probability of 1 %.
#[test]
fn a_signal_needs_the_sum_of_probabilities() {
    let mut rng = stream(3, "pie");
    let mut gaps = Vec::new();
    let mut state = PieState {
        probability: units(0.01),
        delay: MS * 20,
        burst_left: Duration::ZERO,
        ..PieState::default()
    };
    let mut last = 0;
    for arrival in 1..2_000_000_u64 {
        if state.judge(&PieLaw::DEFAULT, Bytes(9_000), Bytes(1_500), &mut rng) == Verdict::Signal {
            gaps.push(arrival - last);
            last = arrival;
        }
    }
    let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
    // One more at either end, for the probability is rounded down.
    assert!(*least >= 85 && *most <= 851, "{least} to {most}");
    // 84 without, then geometric with 1 %, cut at 850: 184 on average, deviation 100.
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    let sigma = 100.0 / (gaps.len() as f64).sqrt();
    assert!((mean - 184.0).abs() < 4.0 * sigma + 1.0, "{mean}, sigma {sigma}");
}

#[test]
fn nothing_is_signalled_in_calm_bursts_and_short_queues() {
    let overdue = PieState {
        probability: ONE,
        accumulated: ONE,
        delay: MS * 20,
        burst_left: Duration::ZERO,
        ..PieState::default()
    };
    let verdict = |state: PieState, backlog| {
        let mut state = state;
        state.judge(&PieLaw::DEFAULT, Bytes(backlog), Bytes(1_500), &mut stream(1, "pie"))
    };
    assert_eq!(verdict(overdue, 3_000), Verdict::Signal);
    assert_eq!(verdict(overdue, 2_999), Verdict::Pass);
    assert_eq!(verdict(PieState { burst_left: MS, ..overdue }, 3_000), Verdict::Pass);
    let calm = PieState { delay: MS * 7, accumulated: 9 * ONE, ..overdue };
    assert_eq!(verdict(calm, 3_000), Verdict::Signal);
    let rare = PieState { probability: ONE / 5 - 1, ..calm };
    assert_eq!(verdict(rare, 3_000), Verdict::Pass);
    assert_eq!(verdict(PieState { delay: MS * 8, ..rare }, 3_000), Verdict::Signal);
}

/// 12 Mbit/s, on which 1500 bytes take a millisecond, under PIE; offered a parcel each `gap`
/// microseconds up to `seconds`. Returns the link and how long parcels waited in its second half.
fn constant_rate(law: PieLaw, ecn: Ecn, gap: u64, seconds: u64) -> (Link<Probe>, Vec<f64>) {
    let queue = QueueConfig::Pie(PieConfig { limit: Limit::Packets(1_000), law });
    let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) };
    let mut link = link(&config);
    let mut waits = Vec::new();
    for id in 0..seconds * 1_000_000 / gap {
        let now = at_us(id * gap);
        link.offer(now, Probe { ecn, ..Probe::data(id, 1_500) });
        while let Some(delivery) = link.poll(now) {
            if id * gap > seconds * 500_000 {
                waits.push(delivery.sojourn.as_millis_f64());
            }
        }
    }
    (link, waits)
}

/// What does not listen is dropped as far as it exceeds the rate, and the integral holds the delay at the
/// target (RFC 8033 §4.2: the only rest of the equation).
#[test]
fn constant_overload_settles_at_the_target() {
    for (gap, excess) in [(800, 0.2), (500, 0.5)] {
        let (mut link, waits) = constant_rate(PieLaw::DEFAULT, Ecn::NotEct, gap, 120);
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        assert!((mean - 15.0).abs() < 0.75, "{mean} ms");
        let stats = link.stats(at_us(120_000_000));
        let dropped = stats.dropped_aqm.packets as f64 / stats.offered.packets as f64;
        // It took a second to find the probability, out of 120.
        assert!((dropped - excess).abs() < 0.01, "{dropped} dropped of {excess}");
        assert_eq!(stats.dropped_queue.packets, 0);
    }
}

#[test]
fn a_tenth_is_marked_and_more_is_dropped() {
    let law = PieLaw { ecn: true, ..PieLaw::DEFAULT };
    let (mut link, _) = constant_rate(law, Ecn::Ect0, 800, 60);
    let stats = link.stats(at_us(60_000_000));
    assert!(stats.marked > 0);
    // Marks do not slow the sender, so the probability rises beyond a tenth, where marking ends.
    let dropped = stats.dropped_aqm.packets as f64 / stats.offered.packets as f64;
    assert!((dropped - 0.2).abs() < 0.02, "{dropped}");
    assert!(stats.marked < stats.dropped_aqm.packets / 10, "{stats:?}");
    let (mut link, _) = constant_rate(PieLaw::DEFAULT, Ecn::Ect0, 800, 20);
    assert_eq!(link.stats(at_us(20_000_000)).marked, 0);
}

#[test]
fn updates_missed_while_idle_are_made_up_for() {
    let law = PieLaw::DEFAULT;
    let busy = PieState { probability: units(0.3), delay: MS * 30, ..PieState::default() };
    let mut stepwise = busy;
    stepwise.delay = Duration::ZERO;
    let mut at_once = stepwise;
    for step in 1..=4_000 {
        stepwise.catch_up(Instant::ZERO + MS * 15 * step, &law, Bytes::ZERO);
    }
    at_once.catch_up(Instant::ZERO + MS * 15 * 4_000, &law, Bytes::ZERO);
    assert_eq!(format!("{stepwise:?}"), format!("{at_once:?}"));
    assert_eq!((at_once.probability, at_once.burst_left), (0, BURST));
    at_once.catch_up(Instant::MAX, &law, Bytes::ZERO);
    assert_eq!(at_once.probability, 0);
}

use weir_units::{Rate, stream};

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::probe::{Probe, at_us, link};
use crate::parcel::Ecn;
use crate::service::Service;

/// In packets, with an average that follows the backlog at once.
fn config() -> RedConfig {
    RedConfig {
        limit: Limit::Infinite,
        min: Limit::Packets(10),
        max: Limit::Packets(30),
        probability: Ratio::from_percent(10),
        weight: Ratio::ONE,
        gentle: false,
        ecn: true,
    }
}

/// A queue that holds `backlog` parcels at each arrival: which of `count` arrivals are signalled.
fn held(config: RedConfig, backlog: u64, count: u64) -> Vec<bool> {
    let mut queue = Red::new(config, Bytes::ZERO, None, stream(1, "red"));
    let now = Instant::ZERO;
    let in_service = Backlog { packets: backlog, bytes: Bytes(1_500 * backlog) };
    (0..count)
        .map(|id| {
            let (before, mut dropped) = (queue.marks(), Vec::new());
            let ecn = if config.ecn { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(now, Probe { ecn, ..Probe::data(id, 1_500) }, in_service, &mut dropped);
            queue.dequeue(now, &mut dropped);
            assert!(dropped.iter().all(|drop| drop.cause == DropCause::Aqm));
            queue.marks() > before || !dropped.is_empty()
        })
        .collect()
}

fn share(signals: &[bool]) -> f64 {
    signals.iter().filter(|signal| **signal).count() as f64 / signals.len() as f64
}

/// p = 10 % (avg - min) / (max - min); gaps are uniform in 1 ..= 1/p, so 2 p / (1 + p) are signalled.
/// The gap has variance (1/p^2 - 1) / 12.
#[test]
fn a_held_average_is_signalled_as_the_formula_says() {
    const N: u64 = 400_000;
    for (backlog, p) in [(12, 0.01), (20, 0.05), (29, 0.095)] {
        for ecn in [true, false] {
            let signals = held(RedConfig { ecn, ..config() }, backlog, N);
            let gap = (1.0 / p + 1.0) / 2.0;
            let deviation = libm::sqrt((1.0 / (p * p) - 1.0) / 12.0);
            let sigma = deviation / gap / libm::sqrt(N as f64 / gap);
            let relative = share(&signals) * gap - 1.0;
            assert!(relative.abs() < 4.0 * sigma + 0.005, "{backlog}: {relative}, sigma {sigma}");
        }
    }
}

#[test]
fn gaps_are_uniform() {
    // p = 5 %: every gap from 1 to 20 is as frequent.
    let signals = held(config(), 20, 400_000);
    let mut gaps = [0u32; 22];
    let mut last = None;
    for (index, _) in signals.iter().enumerate().filter(|(_, signal)| **signal) {
        if let Some(last) = last {
            gaps[index - last] += 1;
        }
        last = Some(index);
    }
    let total: u32 = gaps.iter().sum();
    let expected = f64::from(total) / 20.0;
    assert!(gaps[0] == 0 && gaps[21] == 0, "{gaps:?}");
    let sigma = libm::sqrt(expected);
    assert!(
        gaps[1..=20].iter().all(|n| (f64::from(*n) - expected).abs() < 4.5 * sigma),
        "{gaps:?}"
    );
}

#[test]
fn thresholds_are_exact() {
    assert_eq!(share(&held(config(), 9, 1_000)), 0.0);
    assert_eq!(share(&held(config(), 10, 10_000)), 0.0, "p is zero at min");
    assert_eq!(share(&held(config(), 30, 1_000)), 1.0);
    let gentle = RedConfig { gentle: true, ..config() };
    // p = 10 % + 90 % / 2 between max and twice max.
    let half = share(&held(gentle, 45, 100_000));
    // Gaps of 1 or 2: n p >= u happens at 1 with 0.55, else at 2.
    assert!((half - 1.0 / 1.45).abs() < 0.01, "{half}");
    assert_eq!(share(&held(gentle, 60, 1_000)), 1.0);
}

#[test]
fn bytes_count_overhead_and_the_bound_holds() {
    let config = RedConfig {
        limit: Limit::Bytes(Bytes(4 * 1_514)),
        min: Limit::Bytes(Bytes(2 * 1_514)),
        max: Limit::Bytes(Bytes(2 * 1_514 + 1)),
        ..config()
    };
    let mut queue = Red::new(config, Bytes(14), None, stream(1, "red"));
    let mut dropped = Vec::new();
    for id in 0..6 {
        let parcel = Probe { ecn: Ecn::Ect1, ..Probe::data(id, 1_500) };
        queue.enqueue(Instant::ZERO, parcel, Backlog::default(), &mut dropped);
    }
    // The third meets an average at min, the fourth one above max; the others find the queue full.
    assert_eq!((queue.marks(), queue.backlog().packets), (1, 4));
    assert!(dropped.len() == 2 && dropped.iter().all(|drop| drop.cause == DropCause::Queue));
}

/// Linux's average, `q + backlog - (q >> wlog)` in units of `2^-wlog` bytes.
#[test]
fn an_average_of_bytes_is_linuxs() {
    for halvings in [1, 2, 5, 9] {
        let config = RedConfig {
            min: Limit::Bytes(Bytes(15_140)),
            max: Limit::Bytes(Bytes(16_000)),
            weight: Ratio::from_billionths(1_000_000_000 >> halvings).unwrap(),
            ..config()
        };
        let mut queue: Red<Probe> = Red::new(config, Bytes::ZERO, None, stream(1, "red"));
        let mut linux = 0;
        for arrival in 0..50_000_u64 {
            // Long at ten packets, then up and down.
            let packets = if arrival < 20_000 { 10 } else { 5 + arrival / 7 % 12 };
            let bytes = 1_514 * packets;
            queue.early.observe(Instant::ZERO, Backlog { packets, bytes: Bytes(bytes) });
            linux += bytes;
            linux -= (linux - bytes) >> halvings;
            assert_eq!(queue.early.average, linux, "arrival {arrival}");
        }
    }
}

#[test]
fn the_average_is_exponential_and_decays_while_idle() {
    let config = RedConfig { weight: Ratio::from_percent(10), ..config() };
    let mut queue = Red::new(config, Bytes::ZERO, Some(Duration::from_millis(1)), stream(1, "red"));
    let mut average = 0.0;
    let busy = Backlog { packets: 5, bytes: Bytes(7_500) };
    let offer = |queue: &mut Red<Probe>, millis: u64, in_service| {
        let now = at_us(millis * 1_000);
        queue.enqueue(now, Probe::data(0, 1_500), in_service, &mut Vec::new());
        queue.dequeue(now, &mut Vec::new());
        queue.early.average as f64 / f64::from(1u32 << queue.early.point)
    };
    for _ in 0..20 {
        average += 0.1 * (5.0 - average);
        assert!((offer(&mut queue, 0, busy) - average).abs() < 1e-4);
    }
    queue.on_idle(at_us(10_000));
    average *= libm::pow(0.9, 7.0);
    assert!((offer(&mut queue, 17, Backlog::default()) - average).abs() < 1e-4);
}

/// Nine packets at once lift the average; after a second, a thousand packets' time, the next one finds
/// it gone, but for a token bucket.
#[test]
fn a_link_reports_idle_times_but_not_below_a_token_bucket() {
    let marks = |shaped: bool| {
        let min = Limit::Packets(2);
        let red =
            RedConfig { weight: Ratio::from_percent(50), min, max: Limit::Packets(3), ..config() };
        let rate = Rate::from_mbit(12);
        let shaper = Service::Shaper { rate: rate.into(), burst: Bytes(1_500) };
        let config =
            LinkConfig { queue: QueueConfig::Red(red), ..LinkConfig::new(rate, Duration::ZERO) };
        let mut link =
            link(&if shaped { LinkConfig { service: shaper, ..config } } else { config });
        let parcel = |id| Probe { ecn: Ecn::Ect0, ..Probe::data(id, 1_500) };
        (0..9).for_each(|id| link.offer(Instant::ZERO, parcel(id)));
        let before = link.stats(at_us(900_000)).marked;
        link.offer(at_us(1_000_000), parcel(9));
        link.stats(at_us(1_000_000)).marked - before
    };
    assert_eq!((marks(false), marks(true)), (0, 1));
}

/// 17 packets of 1514 bytes against a minimum of ten: what `tc` prints as `ewma 4`; and the usual burst.
#[test]
fn weights_are_those_of_tc() {
    let weight = |min, max, burst| {
        let bytes = |packets: u64| Limit::Bytes(Bytes(1_514 * packets));
        RedConfig::weight_for_burst(bytes(min), bytes(max), Bytes(1_514), burst)
    };
    assert_eq!(weight(10, 30, Some(17)), Ratio::from_billionths(62_500_000));
    assert_eq!(weight(10, 30, Some(11)), Ratio::from_billionths(250_000_000));
    assert_eq!(weight(10, 30, Some(9)), None, "the burst alone exceeds min");
    assert_eq!(weight(10, 30, None), weight(10, 30, Some(17)));
}

//! Links against closed forms.

use weir_units::{Bytes, Duration, Instant, Rate, Ratio, Rng, stream};

use super::probe::{Probe, drain_until, link};
use super::*;
use crate::bucket::PolicerConfig;
use crate::impair::Impairments;
use crate::loss::GilbertElliott;
use crate::service::Service;

/// A byte takes a nanosecond.
fn nanosecond_per_byte() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(8_000), Duration::ZERO)
}

fn exponential(rng: &mut Rng, mean: f64) -> u64 {
    libm::round(-mean * libm::log(1.0 - rng.unit_f64())) as u64
}

/// Poisson arrivals at `load`; returns the mean wait in units of the mean service time, having
/// checked the mean backlog against Little's law.
fn mean_wait(
    config: &LinkConfig,
    load: f64,
    mut service: impl FnMut() -> u64,
    mean_service: f64,
) -> f64 {
    const PARCELS: u64 = 1_000_000;
    let at_once = matches!(config.service, Service::Shaper { .. });
    let mut link = link(config);
    let mut gaps = stream(3, "arrivals");
    let mut now = Instant::ZERO;
    let (mut waited, mut served) = (0u128, 0u128);
    let mut take = |parcel: Probe| {
        waited += u128::from(parcel.waited.as_nanos());
        served += if at_once { 0 } else { u128::from(parcel.len) };
    };
    for id in 0..PARCELS {
        now += Duration::from_nanos(exponential(&mut gaps, mean_service / load));
        while let Some(delivery) = link.poll(now) {
            take(delivery.parcel);
        }
        link.offer(now, Probe::data(id, service()));
    }
    let end = drain_until(&mut link, Instant::MAX).into_iter().fold(now, |_, (time, parcel)| {
        take(parcel);
        time
    });
    let stats = link.stats(end);
    assert_eq!(stats.packet_nanos, waited + served, "L = lambda W, exactly");
    assert!(at_once || u128::from(stats.busy.as_nanos()) == served);
    waited as f64 / PARCELS as f64 / mean_service
}

fn assert_within_3_percent(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.03, "{measured} instead of {expected}");
}

#[test]
fn regular_arrivals_at_full_load_never_wait() {
    let mut link = link(&nanosecond_per_byte());
    for id in 0..10_000 {
        let now = Instant::from_nanos(id * 1_500);
        while let Some(delivery) = link.poll(now) {
            assert_eq!((delivery.parcel.id, delivery.sojourn), (id - 1, Duration::ZERO));
        }
        link.offer(now, Probe::data(id, 1_500));
    }
    let end = Instant::from_nanos(10_000 * 1_500);
    assert_eq!(link.stats(end).busy, end - Instant::ZERO);
}

/// D/D/1 above capacity: the n-th parcel waits n times the difference of service time and gap.
#[test]
fn regular_arrivals_above_capacity_wait_ever_longer() {
    let mut link = link(&nanosecond_per_byte());
    for id in 0..1_000 {
        link.offer(Instant::from_nanos(id * 1_400), Probe::data(id, 1_500));
    }
    for (time, parcel) in drain_until(&mut link, Instant::MAX) {
        assert_eq!(parcel.waited.as_nanos(), parcel.id * 100);
        assert_eq!(time.as_nanos(), (parcel.id + 1) * 1_500);
    }
}

/// A rate that does not divide a second: 3 Mbit/s gives 1000 bytes 2 666 666.67 ns.
#[test]
fn rounding_never_drifts() {
    let constant = Schedule::constant(Rate::from_mbit(3));
    let same_again = (Instant::from_nanos(1_234_567_890), Rate::from_mbit(3));
    let stepped = Schedule { initial: Rate::from_mbit(3), steps: vec![same_again] };
    for rate in [constant, stepped] {
        let service = Service::Rate(rate);
        let mut link = link(&LinkConfig { service, ..LinkConfig::default() });
        (0..3_000).for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 1_000)));
        let last = drain_until(&mut link, Instant::MAX).pop().map(|(time, _)| time);
        assert_eq!(last, Some(Instant::from_nanos(8_000_000_000)));
    }
}

/// Pollaczek and Khinchine: W = S rho / (2 (1 - rho)) for constant service times S.
#[test]
fn md1_waits_as_pollaczek_and_khinchine_say() {
    for load in [0.5, 0.8] {
        let measured = mean_wait(&nanosecond_per_byte(), load, || 100_000, 100_000.0);
        assert_within_3_percent(measured, load / (2.0 * (1.0 - load)));
    }
}

/// With a burst of one packet a token bucket lets a packet go when the server of M/D/1 would begin with
/// it.
#[test]
fn a_bucket_of_one_packet_makes_md1_wait() {
    let rate = Rate::from_mbit(8_000).into();
    let service = Service::Shaper { rate, burst: Bytes(100_000) };
    let config = LinkConfig { service, ..LinkConfig::default() };
    for load in [0.5, 0.8] {
        let measured = mean_wait(&config, load, || 100_000, 100_000.0);
        assert_within_3_percent(measured, load / (2.0 * (1.0 - load)));
    }
}

/// What is backlogged goes at the rate, after the burst.
#[test]
fn a_backlogged_bucket_sends_its_burst_and_then_its_rate() {
    let rate = Rate::from_mbit(3).into();
    let service = Service::Shaper { rate, burst: Bytes(5_000) };
    let mut link = link(&LinkConfig { service, ..LinkConfig::default() });
    (0..3_005).for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 1_000)));
    let out = drain_until(&mut link, Instant::MAX);
    for (index, (time, parcel)) in (0u64..).zip(&out) {
        // 1000 bytes take 2 666 666 2/3 ns.
        let nanos = ((index + 1).saturating_sub(5) * 8_000_000).div_ceil(3);
        assert_eq!((time.as_nanos(), parcel.id), (nanos, index));
        assert_eq!(parcel.waited.as_nanos(), nanos);
    }
    assert_eq!(link.stats(Instant::from_nanos(8_000_000_000)).busy.as_secs_f64(), 8.0);
}

/// The generic cell rate algorithm (ITU-T I.371), which is a token bucket in other words: a parcel
/// conforms unless it comes earlier than its theoretical time less the burst.
#[test]
fn a_policer_drops_exactly_what_does_not_conform() {
    const BURST: u64 = 4_000;
    let policer = PolicerConfig { rate: Rate::from_mbit(8), burst: Bytes(BURST) };
    let impairments = Impairments { policer: Some(policer), ..Impairments::default() };
    let mut link = link(&LinkConfig { impairments, ..LinkConfig::default() });
    let mut rng = stream(5, "offers");
    let (mut now, mut theoretical) = (0, 0);
    let mut passed: Vec<(u64, u64)> = Vec::new();
    for id in 0..20_000 {
        // A byte takes a microsecond.
        now += rng.below(1_800_000);
        let len = 1 + rng.below(2_000);
        let end = std::cmp::max(theoretical, now) + len * 1_000;
        let conforms = end <= now + BURST * 1_000;
        let at = Instant::from_nanos(now);
        link.offer(at, Probe::data(id, len));
        assert_eq!(link.poll(at).is_some(), conforms, "parcel {id}");
        if conforms {
            theoretical = end;
            passed.push((now, len));
        }
    }
    let dropped = link.stats(Instant::from_nanos(now)).dropped_policer.packets;
    assert!(dropped > 1_000 && dropped + passed.len() as u64 == 20_000);
    for (first, (from, _)) in passed.iter().enumerate() {
        let mut sum = 0;
        for (to, len) in passed[first..].iter().take(50) {
            sum += len;
            assert!(sum * 1_000 <= BURST * 1_000 + (to - from), "{sum} bytes from {from} to {to}");
        }
    }
}

/// W = S rho / (1 - rho) for exponential service times of mean S.
#[test]
fn mm1_waits_twice_as_long() {
    for load in [0.5, 0.8] {
        let mut lengths = stream(3, "lengths");
        let measured = mean_wait(
            &nanosecond_per_byte(),
            load,
            || exponential(&mut lengths, 100_000.0),
            100_000.0,
        );
        assert_within_3_percent(measured, load / (1.0 - load));
    }
}

/// Which of `count` parcels get through these impairments.
fn survivors(impairments: Impairments, count: u64) -> Vec<bool> {
    let mut link = link(&LinkConfig { impairments, ..LinkConfig::default() });
    (0..count)
        .map(|id| {
            link.offer(Instant::ZERO, Probe::data(id, 100));
            link.poll(Instant::ZERO).is_some()
        })
        .collect()
}

fn loss_ratio(survived: &[bool]) -> f64 {
    survived.iter().filter(|through| !**through).count() as f64 / survived.len() as f64
}

#[test]
fn random_losses_are_binomial_and_independent() {
    const N: u64 = 400_000;
    for percent in [1, 10, 50] {
        let loss = Ratio::from_percent(percent);
        let survived = survivors(Impairments { loss, ..Impairments::default() }, N);
        let p = loss.as_f64();
        let sigma = libm::sqrt(p * (1.0 - p) / N as f64);
        assert!((loss_ratio(&survived) - p).abs() < 4.0 * sigma, "{percent} %");
        // Two in a row are lost as often as independence has it.
        let pairs: Vec<bool> = survived.windows(2).map(|pair| pair[0] || pair[1]).collect();
        let sigma = libm::sqrt(p * p / N as f64 * (1.0 + 2.0 * p));
        assert!((loss_ratio(&pairs) - p * p).abs() < 4.0 * sigma, "{percent} % twice");
    }
    let never = survivors(Impairments::default(), 1_000);
    let always = Impairments { loss: Ratio::ONE, ..Impairments::default() };
    assert!(loss_ratio(&never) == 0.0 && loss_ratio(&survivors(always, 1_000)) == 1.0);
}

#[test]
fn a_step_changes_the_loss_from_its_time_on() {
    let at = Instant::from_nanos(10);
    let loss_steps = vec![(at, Ratio::ZERO)];
    let impairments = Impairments { loss: Ratio::ONE, loss_steps, ..Impairments::default() };
    let mut link = link(&LinkConfig { impairments, ..LinkConfig::default() });
    let mut survives = |now: Instant| {
        link.offer(now, Probe::data(0, 100));
        link.poll(now).is_some()
    };
    assert!(!survives(Instant::ZERO) && !survives(at - Duration::from_nanos(1)));
    assert!(survives(at) && survives(at + Duration::from_secs(1)));
}

/// In Gilbert's model bursts of losses are geometric with mean 1/r, gaps with mean 1/p.
#[test]
fn gilbert_bursts_have_their_lengths() {
    const N: u64 = 1_000_000;
    let chain = GilbertElliott {
        good_to_bad: Ratio::from_percent(1),
        bad_to_good: Ratio::from_percent(25),
        loss_in_good: Ratio::ZERO,
        loss_in_bad: Ratio::ONE,
    };
    let survived = survivors(Impairments { burst_loss: Some(chain), ..Default::default() }, N);
    let bursts = survived.chunk_by(|a, b| a == b).filter(|run| !run[0]).collect::<Vec<_>>();
    let lost: usize = bursts.iter().map(|run| run.len()).sum();
    let mean = lost as f64 / bursts.len() as f64;
    // A geometric length of mean 4 has variance 12; about 9 600 bursts.
    let sigma = libm::sqrt(12.0 / bursts.len() as f64);
    assert!((mean - 4.0).abs() < 4.0 * sigma, "mean burst {mean}");
    assert!((chain.mean_loss() - 0.01 / 0.26).abs() < 1e-12);
    assert!((loss_ratio(&survived) / chain.mean_loss() - 1.0).abs() < 0.05);
}

#[test]
fn both_states_of_elliotts_model_lose_their_share() {
    let chain = GilbertElliott {
        good_to_bad: Ratio::from_percent(5),
        bad_to_good: Ratio::from_percent(15),
        loss_in_good: Ratio::from_percent(2),
        loss_in_bad: Ratio::from_percent(40),
    };
    let survived =
        survivors(Impairments { burst_loss: Some(chain), ..Default::default() }, 500_000);
    assert!((chain.mean_loss() - (0.75 * 0.02 + 0.25 * 0.4)).abs() < 1e-12);
    assert!((loss_ratio(&survived) / chain.mean_loss() - 1.0).abs() < 0.02);
}

#[test]
fn one_random_stream_does_not_shift_another() {
    let loss = Ratio::from_percent(10);
    let alone = survivors(Impairments { loss, ..Impairments::default() }, 1_000);
    let corrupt = Ratio::from_percent(50);
    let both = survivors(Impairments { loss, corrupt, ..Impairments::default() }, 1_000);
    assert_eq!(alone, both);
}

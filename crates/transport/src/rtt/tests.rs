use proptest::prelude::*;

use super::*;

const LINUX: RttConfig = RttConfig {
    variation: RttVariation::Linux,
    min_rto: Duration::from_millis(200),
    max_rto: Duration::from_secs(120),
    initial_rto: Duration::from_secs(1),
    max_doublings: u32::MAX,
    longest_backoff: Duration::MAX,
    fixed_rto: None,
};

const RFC: RttConfig =
    RttConfig { variation: RttVariation::Rfc6298, min_rto: Duration::from_secs(1), ..LINUX };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One sample per round trip, each covering everything that was outstanding.
struct Rounds {
    rtt: RttEstimator,
    now: Instant,
    snd_una: u64,
}

impl Rounds {
    fn new(config: RttConfig) -> Self {
        Self { rtt: RttEstimator::new(config), now: Instant::ZERO, snd_una: 0 }
    }

    fn sample(&mut self, sample: Duration) {
        self.now += sample;
        self.snd_una += 2;
        let outstanding = Outstanding { snd_una: self.snd_una, snd_nxt: self.snd_una + 1 };
        self.rtt.on_sample(self.now, sample, outstanding);
    }
}

#[test]
fn before_a_sample_the_initial_timeout_holds() {
    let rtt = RttEstimator::new(LINUX);
    assert_eq!(rtt.rto(), Duration::from_secs(1));
    assert_eq!(rtt.snapshot(), RttSnapshot::default());
}

#[test]
fn the_first_sample_gives_three_round_trips_or_the_minimum() {
    for (config, sample, rto) in [
        (LINUX, ms(46), ms(246)),
        (LINUX, ms(300), ms(900)),
        (RFC, ms(46), ms(1_000)),
        (RFC, ms(400), ms(1_200)),
    ] {
        let mut rounds = Rounds::new(config);
        rounds.sample(sample);
        assert_eq!(rounds.rtt.rto(), rto, "{config:?}");
        assert_eq!(rounds.rtt.rttvar(), (rto - sample).min(rounds.rtt.rttvar() * 4) / 4);
    }
}

/// A kernel's trace at 10 Mbit/s, 40 ms and a queue of one BDP has srtt and RTO of 45.9 and 246,
/// 55.1 and 256, 80.8 and 281, 42.4 and 243 ms: always 200 ms apart, whole milliseconds rounded up.
#[test]
fn linux_keeps_its_margin_while_the_queue_breathes() {
    let mut rounds = Rounds::new(LINUX);
    for sample in (41..82).chain((42..81).rev()).chain(42..80) {
        rounds.sample(ms(sample));
        let srtt = rounds.rtt.srtt().expect("measured");
        assert_eq!(rounds.rtt.rto(), srtt + ms(200));
    }
}

#[test]
fn linux_margin_rises_at_once_and_sinks_by_a_quarter_of_its_excess_per_round() {
    let mut rounds = Rounds::new(LINUX);
    rounds.sample(ms(40));
    // mdev4 = 80, deviation 960: 80 - 20 + 960 = 1020, above the minimum.
    rounds.sample(ms(1_000));
    assert_eq!(rounds.rtt.rttvar(), ms(1_020) / 4);
    // srtt has become 160. Shorter by 120, below mdev = 255: mdev4 = 1020 - 135 = 885. The round's
    // maximum started over at 200, hence 885, and the margin sinks to 1020 - 135 / 4.
    rounds.sample(ms(40));
    assert_eq!(rounds.rtt.rttvar() * 4, Duration::from_micros(986_250));
    // srtt = 145, shorter by 105: mdev = 221.25, mdev4 = 768.75, margin 986.25 - 217.5 / 4.
    rounds.sample(ms(40));
    assert_eq!(rounds.rtt.rttvar() * 4, Duration::from_micros(931_875));
}

#[test]
fn linux_counts_a_deviation_to_shorter_times_an_eighth() {
    let second = |sample| {
        let mut rounds = Rounds::new(RttConfig { min_rto: Duration::ZERO, ..LINUX });
        (0..60).for_each(|_| rounds.sample(ms(500)));
        let before = rounds.rtt.rttvar();
        rounds.sample(sample);
        (before, rounds.rtt.rttvar())
    };
    let ((settled, longer), (_, shorter)) = (second(ms(900)), second(ms(100)));
    assert!(settled < ms(1), "{settled:?}");
    let ratio = longer.as_millis_f64() / shorter.as_millis_f64();
    assert!((7.5..8.5).contains(&ratio), "{longer:?} against {shorter:?}");
}

#[test]
fn linux_holds_the_margin_within_a_round() {
    let mut rtt = RttEstimator::new(LINUX);
    let within = Outstanding { snd_una: 1, snd_nxt: 100 };
    rtt.on_sample(Instant::ZERO, ms(400), within);
    for _ in 0..50 {
        rtt.on_sample(Instant::ZERO, ms(400), within);
    }
    assert_eq!(rtt.rto(), ms(1_200), "mdev has sunk, the margin waits for the round to end");
    rtt.on_sample(Instant::ZERO, ms(400), Outstanding { snd_una: 101, snd_nxt: 200 });
    rtt.on_sample(Instant::ZERO, ms(400), Outstanding { snd_una: 201, snd_nxt: 300 });
    assert!(rtt.rto() < ms(1_200), "{:?}", rtt.rto());
}

#[test]
fn back_off_doubles_to_the_maximum_and_ends_with_a_sample() {
    let mut rounds = Rounds::new(LINUX);
    rounds.sample(ms(300));
    let doubled: Vec<u64> = (0..9)
        .map(|_| {
            rounds.rtt.on_timeout();
            rounds.rtt.rto().as_millis()
        })
        .collect();
    let expected = [1_800, 3_600, 7_200, 14_400, 28_800, 57_600, 115_200, 120_000, 120_000];
    assert_eq!(doubled, expected);
    assert_eq!((rounds.rtt.base_rto(), rounds.rtt.backoff()), (ms(900), 9));
    for _ in 0..100 {
        rounds.rtt.on_timeout();
    }
    assert_eq!(rounds.rtt.rto(), Duration::from_secs(120), "no overflow");
    rounds.sample(ms(300));
    assert_eq!(rounds.rtt.rto(), rounds.rtt.base_rto());
}

#[test]
fn a_lost_syn_starts_data_at_three_seconds_unless_measured() {
    let mut lost = RttEstimator::new(LINUX);
    lost.on_timeout();
    assert_eq!(lost.rto(), Duration::from_secs(2));
    lost.on_handshake_after_syn_loss();
    assert_eq!(lost.rto(), Duration::from_secs(3));

    let mut measured = Rounds::new(LINUX);
    measured.sample(ms(46));
    measured.rtt.on_handshake_after_syn_loss();
    assert_eq!(measured.rtt.rto(), ms(246));
}

#[test]
fn a_fixed_timeout_stays() {
    let mut rounds = Rounds::new(RttConfig { fixed_rto: Some(ms(100)), ..LINUX });
    rounds.sample(ms(500));
    rounds.rtt.on_timeout();
    assert_eq!(rounds.rtt.rto(), ms(100));
    assert_eq!(rounds.rtt.srtt(), Some(ms(500)));
}

#[test]
fn the_minimum_forgets() {
    let mut rtt = RttEstimator::new(LINUX);
    let outstanding = Outstanding { snd_una: 0, snd_nxt: 0 };
    let mut min_at = |secs: u64, sample| {
        rtt.on_sample(Instant::from_nanos(secs * 1_000_000_000), sample, outstanding);
        rtt.min().expect("measured")
    };
    assert_eq!(min_at(1_000, ms(40)), ms(40));
    assert_eq!(min_at(1_010, ms(50)), ms(40));
    assert_eq!(min_at(1_160, ms(60)), ms(40));
    assert_eq!(min_at(1_299, ms(70)), ms(40));
    assert_eq!(min_at(1_300, ms(80)), ms(60), "300 s after the smallest");
    assert_eq!(min_at(9_000, ms(90)), ms(90), "after a long silence nothing old counts");
}

proptest! {
    /// RFC 6298 §2.3 in floating point.
    #[test]
    fn the_textbook_estimator_follows_its_formula(
        samples in prop::collection::vec(1_000u64..2_000_000_000, 1..200),
    ) {
        let mut rounds = Rounds::new(RttConfig { min_rto: Duration::ZERO, ..RFC });
        let first = samples[0] as f64;
        let (mut srtt, mut rttvar) = (first, first / 2.0);
        for (n, sample) in samples.iter().enumerate() {
            rounds.sample(Duration::from_nanos(*sample));
            if n > 0 {
                rttvar = 0.75 * rttvar + 0.25 * (srtt - *sample as f64).abs();
                srtt = 0.875 * srtt + 0.125 * *sample as f64;
            }
            let ours = rounds.rtt.rto().as_nanos() as f64;
            prop_assert!((ours - (srtt + 4.0 * rttvar)).abs() < 200.0);
        }
    }

    /// Whatever comes: `srtt` stays within the samples and Linux's margin at or above its minimum.
    #[test]
    fn linux_stays_within_bounds(
        samples in prop::collection::vec((0u64..100_000_000_000, 0u64..3, 0u64..40), 1..200),
    ) {
        let mut rtt = RttEstimator::new(LINUX);
        let (mut una, mut now) = (0, Instant::ZERO);
        let (mut least, mut most) = (u64::MAX, 0);
        for (sample, acked, outstanding) in samples {
            una += acked;
            now += Duration::from_nanos(sample);
            let outstanding = Outstanding { snd_una: una, snd_nxt: una + outstanding };
            rtt.on_sample(now, Duration::from_nanos(sample), outstanding);
            (least, most) = (least.min(sample), most.max(sample));
            let srtt = rtt.srtt().expect("measured").as_nanos();
            prop_assert!((least..=most).contains(&srtt));
            prop_assert!(rtt.rttvar() >= LINUX.min_rto / 4);
            prop_assert!(rtt.rto() <= LINUX.max_rto);
        }
    }
}

#[test]
fn a_bounded_back_off_ends_where_it_should() {
    let mut rtt = RttEstimator::new(RttConfig { max_doublings: 2, ..LINUX });
    let rtos: Vec<u64> = (0..4)
        .map(|_| {
            let rto = rtt.rto().as_millis();
            rtt.on_timeout();
            rto
        })
        .collect();
    assert_eq!(rtos, [1_000, 2_000, 4_000, 4_000]);
}

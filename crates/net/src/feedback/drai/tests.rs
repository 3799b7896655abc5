use proptest::prelude::*;
use weir_units::feedback::Drai as Index;
use weir_units::{Bytes, Rate, stream};

use super::*;
use crate::config::LinkConfig;
use crate::feedback::FeedbackConfig;
use crate::link::Link;
use crate::link::probe::Probe;

fn percent(percent: u32) -> Ratio {
    Ratio::from_percent(percent)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn probe(flow: u32, level: u8) -> Probe {
    let feedback = Some(Feedback::Drai(Index { level, hops: 0 }));
    Probe { flow, feedback, ..Probe::data(0, 1_000) }
}

fn index(probe: &Probe) -> Index {
    match probe.feedback {
        Some(Feedback::Drai(index)) => index,
        other => panic!("an index, not {other:?}"),
    }
}

/// Keeps a new agent busy until this share is left; returns when that is.
fn left(agent: &mut Drai, share: f64) -> Instant {
    let memory = agent.config.memory.as_secs_f64();
    agent.set_busy(Instant::ZERO, agent.config.signal, Occupancy::Busy);
    let busy_for = Duration::from_nanos((-libm::log(share) * memory * 1e9) as u64);
    Instant::ZERO + busy_for
}

fn with_levels(levels: u8) -> DraiConfig {
    let thresholds = Thresholds::usual(levels).expect("a table");
    DraiConfig { thresholds, ..DraiConfig::default() }
}

#[test]
fn each_number_of_levels_has_its_thresholds() {
    for (levels, percents) in [
        (3, &[10, 40][..]),
        (4, &[5, 20, 50]),
        (5, &[5, 15, 30, 50]),
        (6, &[5, 10, 20, 35, 50]),
        (7, &[5, 10, 15, 30, 40, 50]),
    ] {
        let config = with_levels(levels);
        assert_eq!(config.levels(), levels);
        let thresholds: Vec<_> = percents.iter().map(|p| percent(*p)).collect();
        assert_eq!(config.thresholds.as_slice(), thresholds);
    }
    assert_eq!(Thresholds::usual(2), None);
    assert_eq!(Thresholds::usual(8), None);
}

#[test]
fn thresholds_rise() {
    assert!(Thresholds::new(&[percent(10), percent(20)]).is_some());
    assert!(Thresholds::new(&[percent(20), percent(20)]).is_none());
    assert!(Thresholds::new(&[percent(20)]).is_none());
    assert!(Thresholds::new(&[percent(20); 7]).is_none());
}

#[test]
fn a_level_begins_at_its_threshold() {
    let thresholds = Thresholds::FIVE_LEVELS;
    for (left, level) in
        [(0, 1), (49, 1), (50, 2), (149, 2), (150, 3), (300, 4), (500, 5), (1_000, 5)]
    {
        assert_eq!(thresholds.level(left * 1_000_000), level, "{left} thousandths");
    }
}

/// 0.6 of the bandwidth among three flows is 0.2 for each.
#[test]
fn shares_decide_by_mode() {
    for (share, level) in [(Share::None, 5), (Share::Literal, 3), (Share::Accelerate, 3)] {
        let mut agent = Drai::new(&DraiConfig { share, ..DraiConfig::default() });
        (0..3).for_each(|flow| agent.on_departure(Instant::ZERO, &mut probe(flow, 5)));
        let now = left(&mut agent, 0.6);
        assert_eq!(agent.level(now), level, "{share:?}");
    }
}

#[test]
fn shares_never_decelerate_by_themselves() {
    for levels in 3..=7 {
        let config = with_levels(levels);
        let mut agent = Drai::new(&config);
        (0..100).for_each(|flow| agent.on_departure(Instant::ZERO, &mut probe(flow, 7)));
        assert_eq!(agent.level(at(1)), levels / 2 + 1, "{levels} levels, all of it left");
    }
}

#[test]
fn a_link_without_rest_says_slow_down_and_an_idle_one_speed_up() {
    let config = LinkConfig {
        feedback: Some(FeedbackConfig::Drai(DraiConfig::default())),
        ..LinkConfig::new(Rate::from_mbit(8), Duration::ZERO)
    };
    let mut link = Link::new(&config, |name| stream(1, name)).expect("a link");
    // 1000 bytes take a millisecond: two per millisecond keep it busy.
    let mut levels = Vec::new();
    for millis in 0..1_000 {
        while let Some(delivery) = link.poll(at(millis)) {
            levels.push(index(&delivery.parcel));
        }
        link.offer(at(millis), probe(1, 5));
        link.offer(at(millis), probe(1, 5));
    }
    assert_eq!(levels.first(), Some(&Index { level: 5, hops: 1 }));
    assert_eq!(levels.last(), Some(&Index { level: 1, hops: 1 }));
    assert!(levels.is_sorted_by(|a, b| a.level >= b.level));
    // With a memory of 0.2 s half is left after 139 ms, 5 % after 599 ms.
    let below = |level| levels.iter().filter(|index| index.level >= level).count();
    assert!((138..=141).contains(&below(5)), "{}", below(5));
    assert!((598..=602).contains(&below(2)), "{}", below(2));

    let mut late = link;
    while late.poll(at(10_000)).is_some() {}
    late.offer(at(20_000), probe(1, 5));
    let delivery = late.poll(at(20_001)).expect("it is through");
    assert_eq!(index(&delivery.parcel).level, 5);
}

#[test]
fn version_two_looks_at_queue_and_retries_first() {
    let mut agent = Drai::new(&DraiConfig::hybrid());
    assert_eq!(agent.level(at(1)), 5);
    (0..8).for_each(|_| agent.on_frame(2));
    assert_eq!(agent.level(at(1)), 2, "more than one retry on average");
    (0..40).for_each(|_| agent.on_frame(7));
    assert_eq!(agent.level(at(1)), 1);
    (0..40).for_each(|_| agent.on_frame(0));
    assert_eq!(agent.level(at(1)), 5);
    let ahead = Backlog { packets: 6, bytes: Bytes(6_000) };
    (0..6).for_each(|_| agent.on_arrival(ahead));
    assert_eq!(agent.level(at(1)), 2);
    (0..40).for_each(|_| agent.on_arrival(ahead));
    assert_eq!(agent.level(at(1)), 1);
}

#[test]
fn version_two_has_five_levels() {
    let config = DraiConfig { thresholds: Thresholds::usual(7).unwrap(), ..DraiConfig::hybrid() };
    assert!(config.validate().is_err());
    assert!(DraiConfig::hybrid().validate().is_ok());
}

proptest! {
    /// Along a path an index never rises, and ends as the smallest of what the routers said.
    #[test]
    fn the_smallest_arrives(shares in prop::collection::vec(0.01..1.0f64, 1..8)) {
        let mut parcel = probe(1, 5);
        let mut smallest = 5;
        for (hop, share) in shares.iter().enumerate() {
            let mut agent = Drai::new(&DraiConfig::default());
            let now = left(&mut agent, *share);
            let before = index(&parcel).level;
            smallest = smallest.min(agent.clone().level(now));
            agent.on_departure(now, &mut parcel);
            prop_assert!(index(&parcel).level <= before);
            prop_assert_eq!(index(&parcel), Index { level: smallest, hops: hop as u8 + 1 });
        }
    }
}

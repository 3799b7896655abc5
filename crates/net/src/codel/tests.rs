use weir_units::Rate;

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::probe::{Probe, at_us, drain_until, link};
use crate::parcel::Ecn;

const MS: Duration = Duration::from_millis(1);

/// Times of the signals that a queue of capable or other parcels gets, its server asking every
/// 10 microseconds: in milliseconds since the first parcel had waited for as long as the target.
fn signals(law: CodelLaw, ecn: Ecn, until_ms: u64) -> Vec<f64> {
    let mut state = CodelState::default();
    let mut times = Vec::new();
    let mut marks = 0;
    for step in 0..until_ms * 100 {
        let now = Instant::ZERO + MS * 1_000 + Duration::from_micros(step * 10);
        let mut dropped = Vec::new();
        let before = marks;
        let signals =
            Signals { law: &law, mtu: Bytes(1_500), dropped: &mut dropped, marks: &mut marks };
        let parcel = Probe { ecn, ..Probe::data(step, 1_500) };
        let arrived = now - law.target;
        let head = || {
            Some(Head { queued: Queued { parcel: parcel.clone(), arrived }, behind: Bytes(9_000) })
        };
        assert!(state.dequeue(now, signals, head).is_some());
        let given = dropped.len() as u64 + marks - before;
        assert!(given <= 1);
        times.extend((given == 1).then_some(step as f64 / 100.0));
    }
    times
}

/// What Linux's approximation of 1/sqrt(count) gives, in floating point.
fn schedule(signals: usize) -> Vec<f64> {
    let mut root = 1.0;
    let mut times = vec![100.0, 200.0];
    for count in 2..signals {
        root = root * (3.0 - count as f64 * root * root) / 2.0;
        times.push(times[count - 1] + 100.0 * root);
    }
    times
}

#[test]
fn signals_follow_the_control_law() {
    let times = signals(CodelLaw::DEFAULT, Ecn::NotEct, 2_000);
    assert!(times.len() > 60, "{} drops in two seconds", times.len());
    for (index, (seen, law)) in times.iter().zip(schedule(times.len())).enumerate() {
        // The queue stands when the interval is over, so the first signal is one step late; each root
        // is cut to 16 bits.
        assert!(
            (seen - law).abs() < 0.05 + 0.01 * index as f64,
            "signal {index}: {seen} not {law}"
        );
    }
    for (index, pair) in times.windows(2).enumerate().skip(8) {
        let exact = 100.0 / libm::sqrt((index + 1) as f64);
        assert!(((pair[1] - pair[0]) / exact - 1.0).abs() < 0.01, "interval {index}");
    }
}

#[test]
fn marks_come_when_drops_would() {
    let law = CodelLaw { ecn: true, ..CodelLaw::DEFAULT };
    let drops = signals(CodelLaw::DEFAULT, Ecn::Ect0, 1_000);
    assert_eq!(signals(law, Ecn::Ect0, 1_000), drops);
    assert_eq!(signals(law, Ecn::NotEct, 1_000), drops, "what cannot be marked is dropped");
}

/// Milliseconds of the drops before and after a break, from one second on, in which one packet at
/// most is behind the head.
fn drops_around_a_break(break_ms: u64) -> (Vec<u64>, Vec<u64>) {
    let law = CodelLaw::DEFAULT;
    let mut state = CodelState::default();
    let mut drops = Vec::new();
    let pause = 1_000_000..1_000_000 + break_ms * 1_000;
    for micros in (0..2_000_000 + break_ms * 1_000).step_by(100) {
        let now = at_us(1_000_000 + micros);
        let broken = pause.contains(&micros);
        let behind = if broken { Bytes(1_500) } else { Bytes(1_501) };
        let (mut dropped, mut marks) = (Vec::new(), 0);
        let signals =
            Signals { law: &law, mtu: Bytes(1_500), dropped: &mut dropped, marks: &mut marks };
        let queued = Queued { parcel: Probe::data(0, 1_500), arrived: now - law.target };
        state.dequeue(now, signals, || Some(Head { queued: queued.clone(), behind }));
        if broken {
            assert!(!state.signalling, "one packet left behind is no standing queue");
        }
        drops.extend((!dropped.is_empty()).then_some(micros / 1_000));
    }
    drops.iter().partition(|ms| **ms < 1_000)
}

#[test]
fn a_short_break_ends_the_episode_and_the_next_begins_where_it_was() {
    for break_ms in [1, 1_450] {
        let (first, second) = drops_around_a_break(break_ms);
        assert_eq!(first[0], 100);
        assert!((1_100..=1_101).contains(&(second[0] - break_ms)), "{break_ms} ms");
        // Linux's count goes on from the signals of the first episode less one.
        let next = second[1] - second[0];
        let expected = 100.0 / libm::sqrt((first.len() - 1) as f64);
        assert!((next as f64 - expected).abs() < 2.0, "{next} ms after {} signals", first.len());
    }
}

/// Sixteen intervals after the last signal was due (`codel_dequeue`; RFC 8289 §5.5).
#[test]
fn after_a_long_break_an_episode_begins_anew() {
    let (first, second) = drops_around_a_break(1_550);
    assert!(first.len() > 10);
    assert_eq!(second[1] - second[0], 100, "the whole interval");
}

/// A link at half of what is offered: sojourns settle around the target (RFC 8289 §3.1), and what
/// waits too long is marked.
#[test]
fn a_threshold_marks_all_that_waited_longer() {
    let law = CodelLaw { ce_threshold: Some(MS * 3), interval: MS * 1_000, ..CodelLaw::DEFAULT };
    let queue = QueueConfig::Codel(CodelConfig { limit: Limit::Infinite, law });
    let mut link =
        link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) });
    for id in 0..10 {
        link.offer(Instant::ZERO, Probe { ecn: Ecn::Ect1, ..Probe::data(id, 1_500) });
    }
    let marked: Vec<u64> = drain_until(&mut link, Instant::MAX)
        .into_iter()
        .filter(|(_, parcel)| parcel.ecn == Ecn::Ce)
        .map(|(_, parcel)| parcel.id)
        .collect();
    assert_eq!(
        marked,
        [4, 5, 6, 7, 8, 9],
        "each waits a millisecond longer; the fourth exactly 3 ms"
    );
    assert_eq!(link.stats(at_us(10_000)).marked, 6);
}

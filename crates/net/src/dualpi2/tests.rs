use weir_units::Rate;

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, at_us, drain_until, link};

const MS: Duration = Duration::from_millis(1);

fn of(config: DualPi2Config, mbit: u64) -> Link<Probe> {
    let queue = QueueConfig::DualPi2(config);
    link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(mbit), Duration::ZERO) })
}

fn queue() -> DualPi2<Probe> {
    DualPi2::new(DualPi2Config::DEFAULT, Bytes::ZERO, Bytes(1_500))
}

fn fraction(units: u64) -> f64 {
    units as f64 / ONE as f64
}

/// RFC 9332, appendix A.1: alpha = 0.1 · 15 ms / (100 ms)^2 = 0.15 Hz, beta = 3 Hz.
#[test]
fn the_base_moves_as_the_equation_says() {
    let mut queue = queue();
    assert_eq!(queue.update, MS * 15);
    let mut expected: f64 = 0.0;
    let mut before = 0.0;
    for millis in [0, 20, 40, 35, 35, 60, 10, 0, 0, 15] {
        let delay = f64::from(millis) / 1e3;
        expected = (expected + 0.15 * (delay - 0.015) + 3.0 * (delay - before)).clamp(0.0, 1.0);
        before = delay;
        queue.update(MS * u64::from(millis as u32));
        assert!((fraction(queue.base) - expected).abs() < 1e-6, "{millis} ms: {expected}");
    }
}

#[test]
fn signals_are_coupled_by_the_square_and_spread_evenly() {
    let mut queue = queue();
    queue.base = ONE * 3 / 10;
    for _ in 0..9 {
        let parcel = Probe::data(0, 1_500);
        queue.classic.fifo.enqueue(Instant::ZERO, parcel, Backlog::default(), &mut Vec::new());
    }
    let (classic, coupled) = queue.coupled(&Probe::data(0, 1_500));
    assert!((fraction(classic) - 0.09).abs() < 1e-6);
    assert!((fraction(coupled) - 0.6).abs() < 1e-6);
    let signals: Vec<usize> = (0..1_000).filter(|_| queue.classic.recur(classic)).collect();
    assert!((89..=90).contains(&signals.len()), "{}", signals.len());
    assert!(signals.windows(2).all(|pair| (11..=12).contains(&(pair[1] - pair[0]))));
}

/// 8 µs for 1500 bytes: all within 0.8 ms pass, all above 1.2 ms are marked, half of those between.
#[test]
fn the_ramp_marks_around_a_millisecond() {
    let marked = |ramp| {
        let mut link = of(DualPi2Config { ramp, ..DualPi2Config::DEFAULT }, 1_500);
        for id in 0..200 {
            link.offer(Instant::ZERO, Probe { ecn: Ecn::Ect1, ..Probe::data(id, 1_500) });
        }
        let out = drain_until(&mut link, Instant::MAX);
        let marked = out.iter().filter(|(_, p)| p.ecn == Ecn::Ce).map(|(_, p)| p.id);
        marked.collect::<Vec<u64>>()
    };
    let ramped = marked(MS.mul_ratio(4, 10));
    // Parcel n waits 8 n µs; the sum of a ramp over 50 parcels is 25.
    let between = ramped.iter().filter(|id| (101..=150).contains(*id)).count();
    assert!(ramped[0] > 100 && (24..=25).contains(&between), "{ramped:?}");
    assert!((151..199).all(|id| ramped.contains(&id)));
    assert!(!ramped.contains(&199), "nothing waits behind the last");
    let step = marked(Duration::ZERO);
    // The sum must exceed one, so the first beyond the step goes.
    assert_eq!(step, (127..199).collect::<Vec<u64>>());
}

/// While both wait, the classic queue has its tenth.
#[test]
fn the_classic_queue_does_not_starve() {
    let order = |scheduler| {
        let never = DualPi2Config { rtt_max: MS * 10_000, ..DualPi2Config::DEFAULT };
        let mut link = of(DualPi2Config { scheduler, ..never }, 1_200);
        for id in 0..2_000 {
            for (flow, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect1)] {
                link.offer(Instant::ZERO, Probe { flow, ecn, ..Probe::data(id, 1_500) });
            }
        }
        let out = drain_until(&mut link, at_us(10_000));
        out.iter().map(|(_, parcel)| parcel.flow).collect::<Vec<u32>>()
    };
    let weighted = order(Scheduler::Weighted(Ratio::from_percent(10)));
    let classic = weighted.iter().filter(|flow| **flow == 0).count();
    assert!(weighted.len() >= 999 && (98..=102).contains(&classic), "{classic}");
    // All came at once, so a start of any length sends the L queue first, but for the parcel in service.
    let shifted = order(Scheduler::TimeShifted(MS * 50));
    assert!(shifted[0] == 0 && shifted[1..].iter().all(|flow| *flow == 1));
}

#[test]
fn a_time_shift_lets_the_classic_queue_go_when_it_is_older() {
    let scheduler = Scheduler::TimeShifted(MS * 5);
    let mut link = of(DualPi2Config { scheduler, ..DualPi2Config::DEFAULT }, 12);
    // A millisecond each: classic parcels first, then one of the L queue each millisecond.
    for id in 0..20 {
        link.offer(Instant::ZERO, Probe { flow: 0, ..Probe::data(id, 1_500) });
    }
    let mut order = Vec::new();
    for id in 0..8 {
        let now = at_us(3_500 + id * 1_000);
        order.extend(drain_until(&mut link, now).iter().map(|d| d.1.flow));
        link.offer(now, Probe { flow: 1, ecn: Ecn::Ect1, ..Probe::data(id, 1_500) });
    }
    // At 4 and 5 ms the L queue's head counts as older; later the classic head has waited for more than
    // its start.
    assert_eq!(order[..3], [0, 0, 0]);
    let first_low = order.iter().position(|flow| *flow == 1);
    assert_eq!(first_low, Some(4), "{order:?}");
    assert_eq!(order[6..], [0; 4], "{order:?}");
}

/// Classic traffic at 1.2 times the rate, which does not listen: p_C reaches 1 - 1/1.2 and the delay to its target.
#[test]
fn constant_overload_settles_at_the_target() {
    let mut link = of(DualPi2Config::DEFAULT, 12);
    let (mut waits, mut delivered) = (Vec::new(), 0);
    for id in 0..72_000 {
        let now = at_us(id * 10_000 / 12);
        link.offer(now, Probe::data(id, 1_500));
        for (_, parcel) in drain_until(&mut link, now) {
            delivered += 1;
            if id > 24_000 {
                waits.push(parcel.waited.as_millis_f64());
            }
        }
    }
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 15.0).abs() < 0.75, "{mean} ms");
    let stats = link.stats(at_us(60_000_000));
    let dropped = stats.dropped_aqm.packets as f64 / stats.offered.packets as f64;
    assert!((dropped - 1.0 / 6.0).abs() < 0.01 && delivered > 59_000, "{dropped}");
}

/// Twice the rate of L4S packets that do not listen: marks are of no use, so half is dropped (A.2), and
/// classic packets in between wait for about as long.
#[test]
fn overload_drops_what_is_capable_too() {
    let mut link = of(DualPi2Config::DEFAULT, 12);
    for id in 0..120_000 {
        let now = at_us(id * 500);
        link.offer(now, Probe { ecn: Ecn::Ect1, ..Probe::data(id, 1_500) });
        if id % 20 == 0 {
            link.offer(now, Probe { flow: 1, ecn: Ecn::Ect0, ..Probe::data(id, 1_500) });
        }
        drain_until(&mut link, now);
    }
    let stats = link.stats(at_us(60_000_000));
    let dropped = stats.dropped_aqm.packets as f64 / stats.offered.packets as f64;
    // Of 2100 parcels per second 1000 pass; the controller takes two seconds of sixty.
    assert!((dropped - 1_100.0 / 2_100.0).abs() < 0.02, "{dropped}");
    assert_eq!(stats.dropped_queue.packets, 0);
    assert!(link.backlog(at_us(60_000_000)).packets < 40);
}

#[test]
fn the_ecn_field_selects_the_class() {
    let lows = |classifier| {
        let config = DualPi2Config { classifier, ..DualPi2Config::DEFAULT };
        let queue: DualPi2<Probe> = DualPi2::new(config, Bytes::ZERO, Bytes(1_500));
        [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce].map(|ecn| queue.is_low(ecn))
    };
    assert_eq!(lows(Classifier::L4s), [false, false, true, true]);
    assert_eq!(lows(Classifier::AnyEct), [false, true, true, true]);
}

use weir_units::Rate;

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, at_us, drain_until, link};
use crate::parcel::Ecn;

/// 12 Mbit/s: 1500 bytes take a millisecond.
fn slow(config: FqConfig) -> Link<Probe> {
    let queue = QueueConfig::Fq(config);
    link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) })
}

fn parcel(flow: u32, id: u64, len: u64) -> Probe {
    Probe { flow, ..Probe::data(id, len) }
}

#[test]
fn flows_share_equally_after_their_first_turn() {
    let unbounded = FqConfig { limit: Limit::Infinite, flow_limit: u32::MAX, ..FqConfig::DEFAULT };
    let mut link = slow(unbounded);
    for (flow, len) in (0..).zip([1_500, 700]) {
        (0..600_000 / len).for_each(|id| link.offer(Instant::ZERO, parcel(flow, id, len)));
    }
    let order: Vec<u32> = drain_until(&mut link, at_us(800_000)).iter().map(|d| d.1.flow).collect();
    // An initial credit of 15140 bytes lets eleven parcels of 1500 pass.
    assert_eq!(order.iter().position(|flow| *flow == 1), Some(11), "{order:?}");
    let sent = |flow| order.iter().filter(|other| **other == flow).count() as i64;
    let apart = sent(0) * 1_500 - sent(1) * 700;
    assert!(apart.abs() <= 2 * 3_028 + 1_500, "{apart} bytes apart");
}

#[test]
fn a_flow_that_floods_loses_only_its_own() {
    let mut link = slow(FqConfig::DEFAULT);
    (0..500).for_each(|id| link.offer(Instant::ZERO, parcel(0, id, 1_500)));
    (0..100).for_each(|id| link.offer(Instant::ZERO, parcel(1, id, 1_500)));
    let dropped = link.stats(Instant::ZERO).dropped_queue.packets;
    assert_eq!(dropped, 399, "one is sent, a hundred wait");
    let through = drain_until(&mut link, Instant::MAX);
    assert_eq!(through.iter().filter(|(_, p)| p.flow == 1).count(), 100);
}

#[test]
fn all_queues_together_are_bounded() {
    let mut link = slow(FqConfig { limit: Limit::Packets(10), ..FqConfig::DEFAULT });
    (0..30).for_each(|id| link.offer(Instant::ZERO, parcel(id as u32, id, 1_500)));
    let through: Vec<u64> = drain_until(&mut link, Instant::MAX).iter().map(|d| d.1.id).collect();
    assert_eq!(through, (0..10).collect::<Vec<u64>>());
}

/// Credit that a flow has left is still there after a short pause, and after a long one it is at least a quantum.
#[test]
fn a_pause_refills_the_credit() {
    let quanta = FqConfig { initial_quantum: Bytes(1), quantum: Bytes(2_000), ..FqConfig::DEFAULT };
    let order = |pause: u64| {
        let mut link = slow(quanta);
        link.offer(Instant::ZERO, parcel(0, 0, 1_500));
        // Flow 1 makes the queue look at flow 0 once more, and find it empty and in debt.
        (0..3).for_each(|id| link.offer(Instant::ZERO, parcel(1, id, 1_500)));
        drain_until(&mut link, at_us(4_000));
        let now = at_us(4_000 + pause);
        link.offer(now, parcel(2, 0, 1_500));
        (0..2).for_each(|id| link.offer(now, parcel(0, id, 1_500)));
        (0..2).for_each(|id| link.offer(now, parcel(3, id, 1_500)));
        drain_until(&mut link, Instant::MAX).iter().map(|d| d.1.flow).collect::<Vec<u32>>()
    };
    // With 501 bytes left one parcel passes, with 2000 two.
    assert_eq!(order(1_000), [2, 0, 3, 0, 3]);
    assert_eq!(order(100_000), [2, 0, 0, 3, 3]);
}

#[test]
fn a_threshold_marks_what_waited_longer() {
    let threshold = Some(Duration::from_millis(3));
    let mut link = slow(FqConfig { ce_threshold: threshold, ..FqConfig::DEFAULT });
    for id in 0..8 {
        link.offer(Instant::ZERO, Probe { ecn: Ecn::Ect0, ..parcel(0, id, 1_500) });
    }
    let out = drain_until(&mut link, Instant::MAX);
    let marked: Vec<u64> =
        out.iter().filter(|(_, p)| p.ecn == Ecn::Ce).map(|(_, p)| p.id).collect();
    assert_eq!(marked, [4, 5, 6, 7]);
    assert_eq!(link.stats(at_us(8_000)).marked, 4);
}

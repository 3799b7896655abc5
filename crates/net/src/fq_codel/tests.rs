use weir_units::{Duration, Rate, stream};

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, at_us, drain_until, link};

const MS: Duration = Duration::from_millis(1);

/// 12 Mbit/s: 1500 bytes take a millisecond. CoDel does nothing.
fn slow(limit: Limit) -> Link<Probe> {
    let law = CodelLaw { interval: MS * 100_000, ..CodelLaw::DEFAULT };
    let queue = QueueConfig::FqCodel(FqCodelConfig { limit, law, ..FqCodelConfig::DEFAULT });
    link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) })
}

fn parcel(flow: u32, id: u64, len: u64) -> Probe {
    Probe { flow, ..Probe::data(id, len) }
}

#[test]
fn backlogged_flows_share_within_a_quantum() {
    let mut link = slow(Limit::Infinite);
    let lengths = [1_500, 400, 97];
    for (flow, len) in (0..).zip(lengths) {
        (0..600_000 / len).for_each(|id| link.offer(Instant::ZERO, parcel(flow, id, len)));
    }
    let mut sent = [0u64; 3];
    for (_, parcel) in drain_until(&mut link, at_us(1_100_000)) {
        sent[parcel.flow as usize] += parcel.len;
        // Shreedhar and Varghese 1996, lemma 2: a quantum and a packet apart at most, here twice that
        // while one is a turn ahead.
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= 2 * 1_514 + 1_500, "{sent:?}");
    }
    assert!(sent.iter().sum::<u64>() > 1_600_000, "{sent:?}");
}

#[test]
fn a_sparse_flow_waits_for_one_packet_only() {
    let mut link = slow(Limit::Infinite);
    (0..1_000).for_each(|id| link.offer(Instant::ZERO, parcel(0, id, 1_500)));
    let mut waits = Vec::new();
    for turn in 1..50 {
        let now = at_us(turn * 17_300);
        for (_, parcel) in drain_until(&mut link, now) {
            waits.extend((parcel.flow == 1).then_some(parcel.waited));
        }
        link.offer(now, parcel(1, turn, 200));
    }
    assert!(waits.len() > 40);
    assert!(waits.iter().all(|wait| *wait <= MS), "{waits:?}");
}

/// A flow that comes back for more than its credit is old like the others.
#[test]
fn a_flow_that_fills_the_link_loses_its_priority() {
    let mut link = slow(Limit::Infinite);
    for flow in 0..2 {
        (0..4).for_each(|id| link.offer(Instant::ZERO, parcel(flow, id, 1_500)));
    }
    let order: Vec<u32> =
        drain_until(&mut link, Instant::MAX).iter().map(|(_, p)| p.flow).collect();
    // Parcel 0 of flow 0 went at once and ended its turn as a new flow; a credit of 1514 bytes lets two
    // parcels of 1500 pass.
    assert_eq!(order, [0, 0, 1, 1, 0, 1, 0, 1]);
}

#[test]
fn an_overflow_halves_the_longest_queue_from_its_head() {
    let mut link = slow(Limit::Packets(21));
    link.log_drops(100);
    (0..2).for_each(|id| link.offer(Instant::ZERO, parcel(0, id, 1_500)));
    (0..18).for_each(|id| link.offer(Instant::ZERO, parcel(1, id, 1_500)));
    assert_eq!(link.stats(Instant::ZERO).dropped().packets, 0);
    (2..4).for_each(|id| link.offer(Instant::ZERO, parcel(0, id, 1_500)));
    let drops: Vec<u32> = link.drain_drops().map(|drop| drop.flow).collect();
    assert_eq!(drops, [1; 9], "half of eighteen packets");
    assert_eq!(link.stats(Instant::ZERO).dropped_queue.packets, 9);
    let left: Vec<u64> = drain_until(&mut link, Instant::MAX)
        .into_iter()
        .filter(|(_, parcel)| parcel.flow == 1)
        .map(|(_, parcel)| parcel.id)
        .collect();
    assert_eq!(left, (9..18).collect::<Vec<u64>>());
}

#[test]
fn flows_are_spread_over_all_queues() {
    let queue: FqCodel<Probe> =
        FqCodel::new(FqCodelConfig::DEFAULT, Bytes::ZERO, Bytes(1_500), stream(1, "fq-codel"));
    let mut counts = vec![0u32; 1_024];
    (0..102_400).for_each(|flow| counts[queue.flows.place_of(&parcel(flow, 0, 1))] += 1);
    // 100 each; Poisson's deviation is 10.
    assert!(counts.iter().all(|n| (50..160).contains(n)), "{counts:?}");
    let back = Probe { is_forward: false, ..parcel(7, 0, 1) };
    assert_ne!(queue.flows.place_of(&back), queue.flows.place_of(&parcel(7, 0, 1)));
}

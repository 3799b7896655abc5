use weir_units::{Duration, Rate, stream};

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::Link;
use crate::link::probe::{Probe, drain_until, link};

/// 12 Mbit/s: 1500 bytes take a millisecond.
fn slow(config: SfqConfig) -> Link<Probe> {
    let queue = QueueConfig::Sfq(config);
    link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) })
}

fn parcel(flow: u32, id: u64, len: u64) -> Probe {
    Probe { flow, ..Probe::data(id, len) }
}

fn sfq(config: SfqConfig) -> Sfq<Probe> {
    Sfq::new(config, Bytes::ZERO, stream(1, "sfq"))
}

/// Enqueues with nothing in service; returns the flows that lost a parcel.
fn offer(queue: &mut Sfq<Probe>, flow: u32, id: u64) -> Vec<(u32, u64)> {
    let mut dropped = Vec::new();
    queue.enqueue(Instant::ZERO, parcel(flow, id, 1_000), Backlog::default(), &mut dropped);
    dropped.iter().map(|drop| (drop.parcel.flow, drop.parcel.id)).collect()
}

fn order(queue: &mut Sfq<Probe>) -> Vec<(u32, u64)> {
    let mut next = || queue.dequeue(Instant::ZERO, &mut Vec::new());
    std::iter::from_fn(|| next().map(|queued| (queued.parcel.flow, queued.parcel.id))).collect()
}

#[test]
fn flows_share_bytes_and_a_new_one_waits_for_the_round() {
    let unbounded = SfqConfig { limit: Limit::Infinite, depth: u32::MAX, ..SfqConfig::DEFAULT };
    let mut link = slow(unbounded);
    for (flow, len) in (0..).zip([1_500, 700]) {
        (0..600_000 / len).for_each(|id| link.offer(Instant::ZERO, parcel(flow, id, len)));
    }
    let until = Instant::ZERO + Duration::from_millis(800);
    let order: Vec<u32> = drain_until(&mut link, until).iter().map(|d| d.1.flow).collect();
    let sent = |flow| order.iter().filter(|other| **other == flow).count() as i64;
    let apart = sent(0) * 1_500 - sent(1) * 700;
    assert!(apart.abs() <= 2 * 1_514 + 1_500, "{apart} bytes apart");
}

#[test]
fn a_new_flow_joins_the_end_of_the_ring() {
    let mut queue = sfq(SfqConfig { quantum: Bytes(1_000), ..SfqConfig::DEFAULT });
    for (flow, id) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)] {
        assert_eq!(offer(&mut queue, flow, id), []);
    }
    assert_eq!(order(&mut queue), [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
}

#[test]
fn an_overflow_costs_the_longest_queue_its_newest_parcel() {
    let mut queue = sfq(SfqConfig { limit: Limit::Packets(5), ..SfqConfig::DEFAULT });
    for (flow, id) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
        assert_eq!(offer(&mut queue, flow, id), []);
    }
    assert_eq!(offer(&mut queue, 2, 0), [(0, 2)]);
    // Flow 1 and 0 hold two each: flow 0 changed last, as it lost one.
    assert_eq!(offer(&mut queue, 3, 0), [(0, 1)]);
    assert_eq!(offer(&mut queue, 4, 0), [(1, 1)]);
    // All hold one: the next to be sent goes.
    assert_eq!(offer(&mut queue, 5, 0), [(0, 0)]);
    assert_eq!(order(&mut queue), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);
}

#[test]
fn with_head_drop_the_oldest_goes() {
    let config = SfqConfig { depth: 2, limit: Limit::Packets(4), ..SfqConfig::DEFAULT };
    let mut queue = sfq(SfqConfig { head_drop: true, ..config });
    assert_eq!(offer(&mut queue, 0, 0), []);
    assert_eq!(offer(&mut queue, 0, 1), []);
    assert_eq!(offer(&mut queue, 0, 2), [(0, 0)], "its own depth");
    assert_eq!(offer(&mut queue, 1, 0), []);
    assert_eq!(offer(&mut queue, 1, 1), []);
    assert_eq!(offer(&mut queue, 2, 0), [(1, 0)], "the bound of all");
    let mut queue = sfq(config);
    (0..2).for_each(|id| assert_eq!(offer(&mut queue, 0, id), []));
    assert_eq!(offer(&mut queue, 0, 2), [(0, 2)], "without it the newest");
}

#[test]
fn a_flow_that_floods_loses_only_its_own() {
    let mut link = slow(SfqConfig::DEFAULT);
    (0..500).for_each(|id| link.offer(Instant::ZERO, parcel(0, id, 1_500)));
    (0..60).for_each(|id| link.offer(Instant::ZERO, parcel(1, id, 1_500)));
    let through = drain_until(&mut link, Instant::MAX);
    assert_eq!(through.len(), 127, "the bound, the one in service included");
    assert_eq!(through.iter().filter(|(_, parcel)| parcel.flow == 1).count(), 60);
}

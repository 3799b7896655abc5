//! A link's behaviour in scripts.

use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

use super::probe::{Probe, at_us, drain, drain_until, link};
use super::*;
use crate::codel::{CodelConfig, CodelLaw};
use crate::disciplines::QueueConfig;
use crate::droptail::{Counting, DropTailConfig, Limit};
use crate::ecn_step::{EcnStepConfig, StepThreshold};
use crate::impair::Impairments;
use crate::jitter::{Jitter, Order, Reorder, Spread};
use crate::loss::{DropList, Numbering};
use crate::opportunities::DeliveryTrace;
use crate::parcel::Ecn;
use crate::service::Service;

const MS: Duration = Duration::from_millis(1);

/// 1500 bytes take a millisecond.
fn slow() -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(12), Duration::ZERO)
}

fn offer_at_once(link: &mut Link<Probe>, ids: std::ops::Range<u64>) {
    ids.for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 1500)));
}

#[test]
fn parcels_wait_for_each_other_and_take_rate_plus_delay() {
    let mut link = link(&LinkConfig::new(Rate::from_mbit(12), MS * 20));
    offer_at_once(&mut link, 0..3);
    assert_eq!(link.backlog(at_us(500)).packets, 3);
    assert_eq!(link.backlog(at_us(1_000)).packets, 2);
    let out = drain_until(&mut link, Instant::MAX);
    let seen = out.iter().map(|(time, p)| (time.as_micros(), p.id, p.waited.as_millis()));
    assert_eq!(seen.collect::<Vec<_>>(), [(21_000, 0, 0), (22_000, 1, 1), (23_000, 2, 2)]);
}

#[test]
fn a_link_without_a_rate_is_a_delay() {
    let mut link = link(&LinkConfig { delay: (MS * 5).into(), ..LinkConfig::default() });
    link.offer(at_us(10), Probe::data(0, 1500));
    link.offer(at_us(10), Probe::data(1, 1500));
    assert_eq!(drain(&mut link), [(5_010, 0), (5_010, 1)]);
    assert_eq!(link.capacity(Instant::ZERO, at_us(10)), None);
}

#[test]
fn the_bound_counts_the_parcel_in_service() {
    let mut link = link(&slow().with_limit(Limit::Packets(2)));
    offer_at_once(&mut link, 0..3);
    assert_eq!(drain(&mut link), [(1_000, 0), (2_000, 1)]);
    let stats = link.stats(at_us(10_000));
    assert_eq!((stats.dropped_queue.packets, stats.max_packets, stats.max_bytes), (1, 2, 3_000));
    assert_eq!((stats.busy, stats.packet_nanos), (MS * 2, 3_000_000));
}

#[test]
fn a_bound_in_bytes_is_kept_to_the_byte() {
    let mut link = link(&slow().with_limit(Limit::Bytes(Bytes(3_100))));
    offer_at_once(&mut link, 0..2);
    link.offer(Instant::ZERO, Probe::data(2, 101));
    link.offer(Instant::ZERO, Probe::data(3, 100));
    assert_eq!(drain(&mut link), [(1_000, 0), (2_000, 1), (2_066, 3)]);
}

#[test]
fn an_empty_link_takes_a_parcel_whatever_its_bound() {
    let mut link = link(&slow().with_limit(Limit::Bytes(Bytes::ZERO)));
    offer_at_once(&mut link, 0..2);
    link.offer(at_us(1_000), Probe::data(2, 1500));
    assert_eq!(drain(&mut link), [(1_000, 0), (2_000, 2)]);
}

/// The window that a path holds without loss is what fits on the wire plus the buffer, so that half
/// of it just keeps a link with one BDP of buffer busy (Appenzeller et al., SIGCOMM 2004).
#[test]
fn one_bdp_of_buffer_holds_twice_the_bdp() {
    let bdp = 40;
    let config = LinkConfig::new(Rate::from_mbit(12), MS * bdp).with_limit(Limit::Packets(bdp));
    // Each parcel is sent again as soon as it arrives; a new one joins every fourth round trip.
    let drops_with_window = |window: u64| {
        let mut link = link(&config);
        for id in 0..window {
            let joins = Instant::ZERO + MS * (4 * bdp * id);
            while let Some(time) = link.next_time().filter(|time| *time <= joins) {
                while let Some(delivery) = link.poll(time) {
                    link.offer(time, delivery.parcel);
                }
            }
            link.offer(joins, Probe::data(id, 1500));
        }
        link.stats(link.next_time().unwrap()).dropped_queue.packets
    };
    assert_eq!(drops_with_window(2 * bdp), 0);
    assert_eq!(drops_with_window(2 * bdp + 1), 1);
}

#[test]
fn what_exceeds_the_mtu_is_dropped() {
    let mut link = link(&LinkConfig { mtu: Some(Bytes(1500)), ..slow() });
    link.log_drops(10);
    link.offer(at_us(3), Probe::data(0, 1501));
    link.offer(at_us(3), Probe::data(1, 1500));
    assert_eq!(drain(&mut link), [(1_003, 1)]);
    let records: Vec<DropRecord> = link.drain_drops().collect();
    let expected = DropRecord {
        time: at_us(3),
        cause: DropCause::Mtu,
        flow: 7,
        is_forward: true,
        carries_data: true,
        len: Bytes(1501),
        stamp: 0,
    };
    assert_eq!(records, [expected]);
}

#[test]
fn the_drop_log_is_bounded() {
    let mut link = link(&slow().with_limit(Limit::Packets(1)));
    link.log_drops(2);
    offer_at_once(&mut link, 0..5);
    assert_eq!(link.drain_drops().count(), 2);
    offer_at_once(&mut link, 5..6);
    assert_eq!(link.drain_drops().count(), 1);
}

#[test]
fn a_rate_may_change_in_the_middle_of_a_parcel() {
    let steps = vec![(at_us(500), Rate::from_mbit(6)), (at_us(1_700), Rate::from_mbit(12))];
    let rate = Schedule { initial: Rate::from_mbit(12), steps };
    let mut link = link(&LinkConfig { service: Service::Rate(rate), ..LinkConfig::default() });
    offer_at_once(&mut link, 0..3);
    // Half at 12 and half at 6; then 200 us at 6 and the rest at 12.
    assert_eq!(drain(&mut link), [(1_500, 0), (2_600, 1), (3_600, 2)]);
    assert_eq!(link.capacity(at_us(0), at_us(1_700)), Some(Bytes(750 + 900)));
}

#[test]
fn a_blackout_keeps_what_waits_and_what_is_half_sent() {
    let steps = vec![(at_us(1_500), Rate::ZERO), (at_us(9_000), Rate::from_mbit(12))];
    let rate = Schedule { initial: Rate::from_mbit(12), steps };
    let mut link = link(&LinkConfig { service: Service::Rate(rate), ..LinkConfig::default() });
    offer_at_once(&mut link, 0..3);
    assert_eq!(drain(&mut link), [(1_000, 0), (9_500, 1), (10_500, 2)]);
}

#[test]
fn a_parcel_that_ends_with_the_rate_is_through() {
    let rate = Schedule { initial: Rate::from_mbit(12), steps: vec![(at_us(1_000), Rate::ZERO)] };
    let mut link = link(&LinkConfig { service: Service::Rate(rate), ..LinkConfig::default() });
    offer_at_once(&mut link, 0..2);
    assert_eq!(drain(&mut link), [(1_000, 0)]);
    assert_eq!(link.next_time(), None, "nothing will ever come");
    assert_eq!(link.backlog(at_us(1_000_000)).packets, 1);
}

#[test]
fn a_parcel_cut_by_an_endless_blackout_never_arrives() {
    let rate = Schedule { initial: Rate::from_mbit(12), steps: vec![(at_us(999), Rate::ZERO)] };
    let mut link = link(&LinkConfig { service: Service::Rate(rate), ..LinkConfig::default() });
    offer_at_once(&mut link, 0..2);
    assert_eq!(drain(&mut link), []);
    let stats = link.stats(at_us(2_000));
    assert_eq!((stats.packet_nanos, stats.busy), (4_000_000, MS * 2));
    assert_eq!(link.unsent(at_us(500)), Bytes(1_500), "it will never be through");
}

#[test]
fn a_parcel_in_service_is_sent_bit_by_bit() {
    let mut link = link(&slow());
    offer_at_once(&mut link, 0..1);
    let sent = [0, 250, 1_000].map(|us| link.sent(at_us(us)).get());
    assert_eq!(sent, [0, 375, 1_500]);
}

#[test]
fn overhead_takes_time_and_space() {
    let bound = Limit::Bytes(Bytes(3 * 1_500));
    let overhead = Bytes(500);
    let mut link = link(&LinkConfig {
        overhead,
        ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO).with_limit(bound)
    });
    (0..4).for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 1_000)));
    let times: Vec<u64> =
        drain_until(&mut link, Instant::MAX).iter().map(|(time, _)| time.as_micros()).collect();
    assert_eq!(times, [1_000, 2_000, 3_000], "as packets of 1500 bytes");
    assert_eq!((link.sent(at_us(2_500)), link.sent(at_us(3_000))), (Bytes(3_750), Bytes(4_500)));
}

/// As Linux's tbf, which peeks at the queue below: the next parcel leaves its queue when the one
/// before has gone, and is then held until there are tokens.
#[test]
fn a_shaper_takes_the_next_parcel_out_of_the_queue_early() {
    let law = CodelLaw { ce_threshold: Some(MS), ..CodelLaw::DEFAULT };
    let queue = QueueConfig::Codel(CodelConfig { limit: Limit::Packets(3), law });
    let rate = Rate::from_mbit(12);
    let service = Service::Shaper { rate: rate.into(), burst: Bytes(1_500) };
    let mut link = link(&LinkConfig { service, queue, ..LinkConfig::default() });
    for id in 0..5 {
        link.offer(Instant::ZERO, Probe { ecn: Ecn::Ect0, ..Probe::data(id, 1_500) });
    }
    assert_eq!(link.backlog(at_us(500)), Backlog { packets: 3, bytes: Bytes(4_500) });
    let out: Vec<(u64, u64, Ecn)> = drain_until(&mut link, Instant::MAX)
        .into_iter()
        .map(|(time, parcel)| (time.as_micros(), parcel.id, parcel.ecn))
        .collect();
    let (plain, marked) = (Ecn::Ect0, Ecn::Ce);
    // The parcel held counts against the bound. Parcel 2 was taken out after exactly 1 ms, parcel 3
    // after 2 ms; they left a millisecond later.
    assert_eq!(out, [(0, 0, plain), (1_000, 1, plain), (2_000, 2, plain), (3_000, 3, marked)]);
    assert_eq!(link.stats(at_us(3_000)).dropped_queue.packets, 1);
    let tall = Probe::data(9, 1_501);
    link.offer(at_us(9_000), tall);
    assert_eq!(link.stats(at_us(9_000)).dropped_mtu.packets, 1, "no burst lets it through");
}

#[test]
fn a_shortened_delay_does_not_reorder() {
    let delay = Schedule { initial: MS * 50, steps: vec![(at_us(1_500), MS * 10)] };
    let mut link = link(&LinkConfig { delay, ..slow() });
    offer_at_once(&mut link, 0..2);
    link.offer(at_us(50_000), Probe::data(2, 1500));
    assert_eq!(drain(&mut link), [(51_000, 0), (51_000, 1), (61_000, 2)]);
}

/// The laboratory's router: 64 KiB of socket buffer hold four datagrams of 15 kB besides the one
/// that it sleeps on.
#[test]
fn the_serial_relay_sleeps_per_datagram_behind_a_socket_buffer() {
    let config = LinkConfig::serial_relay(MS * 100, Duration::ZERO, Limit::Bytes(Bytes(65_536)));
    let mut link = link(&config);
    (0..6).for_each(|id| link.offer(Instant::ZERO, Probe::data(id, 15_000)));
    assert_eq!(
        drain(&mut link),
        [(100_000, 0), (200_000, 1), (300_000, 2), (400_000, 3), (500_000, 4)]
    );
    assert_eq!(link.stats(at_us(500_000)).dropped_queue.packets, 1);
}

#[test]
fn both_directions_share_the_serial_relay() {
    let config = LinkConfig::serial_relay(MS * 10, MS, Limit::Bytes(Bytes(65_536)));
    let mut link = link(&config);
    link.offer(Instant::ZERO, Probe::data(0, 1500));
    link.offer(at_us(2_000), Probe::ack(1));
    link.offer(at_us(3_000), Probe::data(2, 1500));
    assert_eq!(drain(&mut link), [(10_000, 0), (11_000, 1), (21_000, 2)]);
}

#[test]
fn a_socket_buffer_charges_overhead_per_datagram() {
    let queue = DropTailConfig {
        limit: Limit::Bytes(Bytes(4_000)),
        counting: Counting::Waiting,
        overhead: Bytes(500),
    };
    let mut link = link(&LinkConfig { queue: QueueConfig::DropTail(queue), ..slow() });
    offer_at_once(&mut link, 0..4);
    assert_eq!(drain(&mut link).len(), 3, "one is sent, two wait and are charged 2000 each");
}

#[test]
fn a_trace_sends_at_its_opportunities_only() {
    let trace = DeliveryTrace::parse("2\n2\n7\n").unwrap();
    let config =
        LinkConfig { service: Service::Trace(trace), delay: MS.into(), ..LinkConfig::default() };
    let mut link = link(&config);
    offer_at_once(&mut link, 0..4);
    link.offer(at_us(9_500), Probe::data(4, 100));
    link.offer(at_us(9_500), Probe::data(5, 1500));
    let expected = [(3_000, 0), (3_000, 1), (8_000, 2), (10_000, 3), (15_000, 4), (17_000, 5)];
    assert_eq!(drain(&mut link), expected, "parcel 5 needs the rest of 14 ms and some of 16 ms");
}

#[test]
fn of_a_parcel_that_needs_two_opportunities_the_first_part_is_sent_first() {
    let trace = DeliveryTrace::parse("2\n7\n12\n").unwrap();
    let mut link = link(&LinkConfig { service: Service::Trace(trace), ..LinkConfig::default() });
    link.offer(Instant::ZERO, Probe::data(0, 52));
    link.offer(Instant::ZERO, Probe::data(1, 1500));
    assert_eq!(link.sent(at_us(3_000)), Bytes(1500));
    assert_eq!(link.sent(at_us(8_000)), Bytes(1552));
}

#[test]
fn a_drop_list_numbers_the_parcels_that_it_counts() {
    let survivors = |counts| {
        let impairments = Impairments {
            drops: vec![DropList { counts, numbers: vec![3, 1] }],
            ..Impairments::default()
        };
        let mut link = link(&LinkConfig { impairments, ..LinkConfig::default() });
        link.offer(Instant::ZERO, Probe { carries_data: false, ..Probe::data(0, 60) });
        for id in 0..3 {
            link.offer(Instant::ZERO, Probe::ack(10 + id));
            link.offer(Instant::ZERO, Probe::data(1 + id, 1500));
        }
        drain(&mut link).into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(survivors(Numbering::Data), [0, 10, 11, 2, 12]);
    assert_eq!(survivors(Numbering::Forward), [10, 1, 11, 12, 3]);
    assert_eq!(survivors(Numbering::Reverse), [0, 1, 11, 2, 3]);
    assert_eq!(survivors(Numbering::Any), [10, 11, 2, 12, 3]);
}

#[test]
fn duplicates_follow_their_original_through_the_queue() {
    let impairments = Impairments { duplicate: Ratio::ONE, ..Impairments::default() };
    let mut link = link(&LinkConfig { impairments, ..slow().with_limit(Limit::Packets(3)) });
    offer_at_once(&mut link, 0..2);
    assert_eq!(drain(&mut link), [(1_000, 0), (2_000, 0), (3_000, 1)]);
    let stats = link.stats(at_us(3_000));
    assert_eq!((stats.duplicated.packets, stats.dropped_queue.packets), (2, 1));
}

#[test]
fn corruption_is_marked_and_counted() {
    let impairments = Impairments { corrupt: Ratio::ONE, ..Impairments::default() };
    let mut link = link(&LinkConfig { impairments, ..slow() });
    offer_at_once(&mut link, 0..1);
    assert!(drain_until(&mut link, Instant::MAX)[0].1.corrupt);
    assert_eq!(link.stats(at_us(3_000)).corrupted, 1);
}

#[test]
fn a_parcel_held_back_is_overtaken_by_those_that_fit_in() {
    let reorder = Reorder { probability: Ratio::from_percent(10), extra_delay: MS * 5 };
    let impairments = Impairments { reorder: Some(reorder), ..Impairments::default() };
    let mut link = link(&LinkConfig { impairments, ..slow() });
    offer_at_once(&mut link, 0..1_000);
    let order: Vec<u64> = drain(&mut link).into_iter().map(|(_, id)| id).collect();
    let mut latest = 0;
    let mut late = 0;
    for id in order {
        late += u64::from(id < latest);
        latest = latest.max(id);
    }
    assert_eq!(link.stats(at_us(2_000_000)).reordered, late);
    assert!((60..140).contains(&late), "{late} of about 100");
}

#[test]
fn jitter_keeps_order_unless_asked() {
    let arrivals = |order| {
        let jitter = Jitter { spread: Spread::Normal(MS * 5), order };
        let impairments = Impairments { jitter: Some(jitter), ..Impairments::default() };
        let mut link = link(&LinkConfig { impairments, delay: (MS * 20).into(), ..slow() });
        offer_at_once(&mut link, 0..500);
        let ids = drain(&mut link).into_iter().map(|(_, id)| id).collect::<Vec<_>>();
        (ids, link.stats(at_us(1_000_000)).reordered)
    };
    let (kept, reordered) = arrivals(Order::Kept);
    assert!(kept.is_sorted() && reordered == 0);
    let (free, reordered) = arrivals(Order::Free);
    assert!(!free.is_sorted() && reordered > 100);
}

#[test]
fn an_interval_is_the_difference_of_two_readings() {
    let mut link = link(&slow());
    offer_at_once(&mut link, 0..4);
    let before = link.stats(at_us(1_500));
    link.restart_peaks(at_us(1_500));
    let after = link.stats(at_us(2_500)).since(&before);
    assert_eq!((after.busy, after.packet_nanos), (MS, 2_500_000));
    assert_eq!((after.served.packets, after.max_packets), (1, 3));
}

#[test]
fn a_link_that_cannot_be_is_refused_with_key_and_value() {
    let refusal = |config: LinkConfig| config.validate().unwrap_err().to_string();
    let message = refusal(LinkConfig::new(Rate::ZERO, MS));
    assert!(message.starts_with("rate = 0bit") && message.contains("above zero"), "{message}");
    let steps = vec![(at_us(20), MS), (at_us(10), MS)];
    let message = refusal(LinkConfig { delay: Schedule { initial: MS, steps }, ..slow() });
    assert!(message.starts_with("delay_steps = step at 0.000010000s: "), "{message}");
    let message = refusal(LinkConfig { mtu: Some(Bytes::ZERO), ..slow() });
    assert!(message.starts_with("mtu = 0b"), "{message}");
    let message = refusal(LinkConfig { delay: Duration::MAX.into(), ..slow() });
    assert!(message.starts_with("delay = ") && message.contains("24h"), "{message}");
    let drops = vec![DropList { counts: Numbering::Data, numbers: vec![0] }];
    let impairments = Impairments { drops, ..Impairments::default() };
    assert!(refusal(LinkConfig { impairments, ..slow() }).starts_with("drop = 0"));
}

/// When each of ten parcels, one every half a millisecond, arrives on a link that takes a millisecond for
/// each and is paused from 2.5 to 7.2 ms. `touches` says how often it is looked at meanwhile.
fn paused_for_a_while(config: &LinkConfig, touches: u64) -> Vec<(u64, u64)> {
    let mut link = link(config);
    let mut out = Vec::new();
    for step in 0..=200 {
        let now = at_us(step * 100);
        match step {
            25 => link.pause(now),
            72 => link.resume(now),
            _ => {}
        }
        if step % 5 == 0 && step < 50 {
            link.offer(now, Probe::data(step / 5, 1_500));
        }
        if touches > 0 && step % touches == 0 {
            link.backlog(now);
            out.extend(std::iter::from_fn(|| link.poll(now)).map(|delivery| (step, delivery)));
        }
    }
    let end = at_us(30_000);
    out.extend(std::iter::from_fn(|| link.poll(end)).map(|delivery| (200, delivery)));
    link.check().unwrap();
    out.iter().map(|(_, delivery)| (delivery.parcel.id, delivery.sojourn.as_micros())).collect()
}

#[test]
fn a_paused_link_sends_what_it_has_begun_and_goes_on_when_it_is_resumed() {
    let marking = StepThreshold::Backlog(Limit::Packets(2));
    let managed = EcnStepConfig { limit: Limit::Infinite, threshold: marking };
    let managed = LinkConfig { queue: QueueConfig::EcnStep(managed), ..slow() };
    // Service begins at 0, 1 and 2 ms, and then from 7.2 ms on.
    let waited = |id: u64| if id < 3 { id * 500 } else { 7_200 + (id - 3) * 1_000 - id * 500 };
    let expected: Vec<(u64, u64)> = (0..10).map(|id| (id, waited(id))).collect();
    for config in [slow(), managed] {
        for touches in [0, 1, 7] {
            assert_eq!(paused_for_a_while(&config, touches), expected, "touched each {touches}");
        }
    }
}

#[test]
fn a_link_that_is_paused_while_idle_takes_nothing_and_asks_for_nothing() {
    let mut link = link(&slow());
    link.pause(at_us(10));
    link.offer(at_us(20), Probe::data(0, 1_500));
    assert_eq!((link.next_time(), link.next_change(at_us(20))), (None, None));
    assert_eq!(link.backlog(at_us(5_000)).packets, 1);
    link.resume(at_us(5_000));
    assert_eq!(link.next_change(at_us(5_000)), Some(at_us(6_000)));
    assert_eq!(drain(&mut link), [(6_000, 0)]);
    assert_eq!(link.stats(at_us(9_000)).busy, MS);
}

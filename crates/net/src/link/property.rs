//! What holds for any link under any sequence of operations.

mod strategies;

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_units::{Bytes, Duration, Instant, Rate};

use self::strategies::{Offer, config, nanos, offers};
use super::probe::{Probe, link};
use super::*;
use crate::disciplines::QueueConfig;
use crate::droptail::Limit;
use crate::dualpi2::Classifier;
use crate::impair::Impairments;
use crate::jitter::{Jitter, Order, Spread};
use crate::parcel::Ecn;

/// How a driver treats a link between offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Driver {
    /// Polls when the link asks for it.
    Punctual,
    /// The same, and touches it at many other moments too.
    Nervous,
    /// Polls only when everything is over.
    Absent,
}

/// What came out of a link, in order, and its counters at the end.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    deliveries: Vec<(Instant, Delivery<Probe>)>,
    stats: Stats,
    drops: Vec<DropRecord>,
}

/// Which parcels of a queue keep their order among each other: those of the same number.
fn course(queue: &QueueConfig, parcel: &Probe, sent: Ecn) -> (u32, bool, bool) {
    let (flow, is_forward) = (parcel.flow, parcel.is_forward);
    match queue {
        QueueConfig::FqCodel(_)
        | QueueConfig::Fq(_)
        | QueueConfig::FqPie(_)
        | QueueConfig::Sfq(_) => (flow, is_forward, false),
        // A queue of hosts or of all keeps more; each flow's own order holds in every mode.
        QueueConfig::Cake(_) => (flow, is_forward, false),
        QueueConfig::DualPi2(config) => {
            let is_low = match config.classifier {
                Classifier::L4s => matches!(sent, Ecn::Ect1 | Ecn::Ce),
                Classifier::AnyEct => sent != Ecn::NotEct,
            };
            (0, false, is_low)
        }
        QueueConfig::DropTail(_)
        | QueueConfig::Codel(_)
        | QueueConfig::Red(_)
        | QueueConfig::Choke(_)
        | QueueConfig::Pie(_)
        | QueueConfig::EcnStep(_) => (0, false, false),
    }
}

const END: Instant = Instant::from_nanos(1_000_000_000_000);

fn drive(config: &LinkConfig, offers: &[Offer], driver: Driver) -> Outcome {
    let mut link = link(config);
    link.log_drops(usize::MAX);
    let mut deliveries = Vec::new();
    let mut now = Instant::ZERO;
    for (id, offer) in offers.iter().enumerate() {
        let before = now;
        now += offer.gap;
        if driver == Driver::Nervous {
            for part in 0..5 {
                let moment = before + offer.gap.mul_ratio(part, 5);
                run_until(&mut link, moment, &mut deliveries);
                link.backlog(moment);
                link.stats(moment);
                link.check().unwrap();
            }
        }
        if driver != Driver::Absent {
            run_until(&mut link, now, &mut deliveries);
        }
        link.offer(now, probe(id, offer));
        link.check().unwrap();
    }
    if driver == Driver::Absent {
        deliveries.extend(std::iter::from_fn(|| link.poll(END)).map(|delivery| (END, delivery)));
    }
    run_until(&mut link, END, &mut deliveries);
    link.check().unwrap();
    let mut drops: Vec<DropRecord> = link.drain_drops().collect();
    drops.sort_by_key(|drop| drop.time);
    Outcome { deliveries, stats: link.stats(END), drops }
}

fn probe(id: usize, offer: &Offer) -> Probe {
    let Offer { len, is_forward, flow, ecn, .. } = *offer;
    Probe { is_forward, flow, ecn, ..Probe::data(id as u64, len) }
}

/// Polls the link whenever it asks for it, up to and including `until`.
fn run_until(
    link: &mut Link<Probe>,
    until: Instant,
    deliveries: &mut Vec<(Instant, Delivery<Probe>)>,
) {
    while let Some(time) = link.next_time().filter(|time| *time <= until) {
        while let Some(delivery) = link.poll(time) {
            deliveries.push((time, delivery));
        }
        assert!(link.next_time().is_none_or(|next| next > time), "next_time lies in the past");
    }
}

fn least_delay(config: &LinkConfig) -> Duration {
    let delays = config.delay.steps.iter().map(|step| step.1);
    let least = delays.fold(config.delay.initial, Duration::min);
    match config.impairments.jitter {
        None => least,
        Some(Jitter { spread: Spread::Uniform(size), .. }) => least.saturating_sub(size),
        Some(Jitter { spread: Spread::Normal(_), .. }) => Duration::ZERO,
    }
}

fn keeps_order(impairments: &Impairments) -> bool {
    let jitter_keeps = impairments.jitter.is_none_or(|jitter| jitter.order == Order::Kept);
    jitter_keeps && impairments.reorder.is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn how_a_link_is_driven_changes_nothing(config in config(), offers in offers()) {
        let punctual = drive(&config, &offers, Driver::Punctual);
        let nervous = drive(&config, &offers, Driver::Nervous);
        prop_assert_eq!(&punctual, &nervous);
        let absent = drive(&config, &offers, Driver::Absent);
        prop_assert_eq!(&punctual.stats, &absent.stats);
        prop_assert_eq!(&punctual.drops, &absent.drops);
        let parcels = |outcome: Outcome| outcome.deliveries.into_iter().map(|d| d.1).collect::<Vec<_>>();
        prop_assert_eq!(parcels(punctual), parcels(absent));
    }

    #[test]
    fn parcels_are_conserved_in_order_and_never_early(config in config(), offers in offers()) {
        let Outcome { deliveries, stats, drops } = drive(&config, &offers, Driver::Punctual);
        prop_assert_eq!(stats.offered.packets, offers.len() as u64);
        prop_assert_eq!(stats.delivered.packets, deliveries.len() as u64);
        prop_assert_eq!(stats.dropped().packets, drops.len() as u64);
        prop_assert!(stats.delivered.packets <= stats.offered.packets + stats.duplicated.packets);

        let offered_at: Vec<Instant> = offers.iter().scan(Instant::ZERO, |now, offer| {
            *now += offer.gap;
            Some(*now)
        }).collect();
        let least = least_delay(&config);
        for (time, Delivery { parcel, sojourn }) in &deliveries {
            let earliest = offered_at[parcel.id as usize] + *sojourn + least;
            prop_assert!(*time >= earliest, "{} arrived at {time}, before {earliest}", parcel.id);
            prop_assert_eq!(parcel.waited, *sojourn);
        }
        let marked = |d: &&(Instant, Delivery<Probe>)| {
            let Probe { id, ecn, .. } = d.1.parcel;
            ecn == Ecn::Ce && offers[id as usize].ecn != Ecn::Ce
        };
        // What is marked is delivered, unless a blackout holds it for ever: nothing is dropped behind a mark,
        // except by CHOKe, which drops parcels out of the middle of its queue.
        let marked = deliveries.iter().filter(marked).count() as u64;
        let through = stats.dropped() + stats.delivered;
        let stuck = (stats.offered + stats.duplicated).packets - through.packets;
        let drops_marked = matches!(config.queue, QueueConfig::Choke(_));
        let gone = if drops_marked { stats.dropped_aqm.packets } else { 0 };
        prop_assert!(marked <= stats.marked && stats.marked <= marked + stuck + gone);
        prop_assert!(deliveries.is_sorted_by_key(|(time, _)| *time));
        if keeps_order(&config.impairments) {
            let mut courses = BTreeMap::<_, Vec<u64>>::new();
            for (_, Delivery { parcel, .. }) in &deliveries {
                let sent = offers[parcel.id as usize].ecn;
                courses.entry(course(&config.queue, parcel, sent)).or_default().push(parcel.id);
            }
            prop_assert!(courses.values().all(|ids| ids.is_sorted()), "{courses:?}");
            prop_assert_eq!(stats.reordered, 0);
        }
    }

    /// A drop-tail queue before a constant rate, computed the textbook way.
    #[test]
    fn drop_tail_at_a_constant_rate_is_the_textbooks(
        offers in offers(), rate in 1u64..=8, limit in 1usize..20, delay in nanos(0..100_000),
    ) {
        // Up to eight nanoseconds per byte, without remainder.
        let config = LinkConfig::new(Rate::from_bits_per_sec(8_000_000_000 / rate), delay);
        prop_assume!(8_000_000_000 % rate == 0);
        let mut expected = Vec::new();
        let mut ends: Vec<Instant> = Vec::new();
        let mut now = Instant::ZERO;
        for (id, offer) in offers.iter().enumerate() {
            now += offer.gap;
            if ends.iter().filter(|end| **end > now).count() < limit {
                let start = ends.last().copied().unwrap_or(now).max(now);
                let end = start + Duration::from_nanos(offer.len * rate);
                ends.push(end);
                expected.push((end + delay, id as u64, start - now));
            }
        }
        let config = config.with_limit(Limit::Packets(limit as u64));
        let outcome = drive(&config, &offers, Driver::Punctual);
        let seen: Vec<_> = outcome.deliveries.iter().map(|(t, d)| (*t, d.parcel.id, d.sojourn)).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn no_more_is_sent_than_the_rate_allows_between_any_two_deliveries(
        config in config(), offers in offers(),
    ) {
        // A constant delay, so that deliveries are service ends shifted.
        let delay = config.delay.initial;
        let config = LinkConfig { delay: delay.into(), impairments: Impairments::default(), ..config };
        let out = drive(&config, &offers, Driver::Punctual).deliveries;
        let link = link(&config);
        let starts = matches!(&config.queue, QueueConfig::Cake(cake) if cake.shapes);
        for (first, (from, delivery)) in out.iter().enumerate() {
            let (mut sent, mut last) = (0, delivery);
            for (to, delivery) in &out[first + 1..] {
                // What leaves before its time is over has left at its beginning.
                let paid = if starts { &last.parcel } else { &delivery.parcel };
                sent += paid.len + config.overhead.get();
                last = delivery;
                // Rounding down may shift either end by a nanosecond.
                let to = *to - delay + Duration::from_nanos(1);
                let possible = link.capacity(*from - delay, to).unwrap_or(Bytes::MAX);
                let possible = possible.get().saturating_add(link.burst().get());
                prop_assert!(sent <= possible.saturating_add(3), "{sent} of {possible}");
            }
        }
    }
}

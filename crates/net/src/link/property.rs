//! What holds for any link under any sequence of operations.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

use super::probe::{Probe, link};
use super::*;
use crate::bucket::PolicerConfig;
use crate::cake::{CakeConfig, Isolation};
use crate::choke::ChokeConfig;
use crate::codel::{CodelConfig, CodelLaw};
use crate::disciplines::QueueConfig;
use crate::droptail::{Counting, DropTailConfig, Limit};
use crate::dualpi2::{Classifier, DualPi2Config, Scheduler};
use crate::ecn_step::{EcnStepConfig, StepThreshold};
use crate::fq::FqConfig;
use crate::fq_codel::FqCodelConfig;
use crate::fq_pie::FqPieConfig;
use crate::impair::Impairments;
use crate::jitter::{Jitter, Order, Reorder, Spread};
use crate::loss::{DropList, GilbertElliott, Numbering};
use crate::opportunities::DeliveryTrace;
use crate::parcel::{Ecn, Hosts};
use crate::pie::{PieConfig, PieLaw};
use crate::red::RedConfig;
use crate::service::Service;
use crate::sfq::SfqConfig;

/// A parcel to offer, this long after the one before.
#[derive(Clone, Copy, Debug)]
struct Offer {
    gap: Duration,
    len: u64,
    is_forward: bool,
    flow: u32,
    ecn: Ecn,
}

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

fn nanos(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_nanos)
}

fn ratio() -> impl Strategy<Value = Ratio> {
    prop_oneof![3 => Just(Ratio::ZERO), 1 => (0u32..=100).prop_map(Ratio::from_percent)]
}

fn schedule<T: Copy + std::fmt::Debug + 'static>(
    value: BoxedStrategy<T>,
) -> impl Strategy<Value = Schedule<T>> {
    let step = (1u64..500_000, value.clone());
    let steps = prop::collection::vec(step, 0..6).prop_map(|gaps| {
        let mut time = 0;
        let later = |(gap, value)| {
            time += gap;
            (Instant::from_nanos(time), value)
        };
        gaps.into_iter().map(later).collect()
    });
    (value, steps).prop_map(|(initial, steps)| Schedule { initial, steps })
}

fn service() -> impl Strategy<Value = Service> {
    let rate = prop_oneof![
        1 => Just(Rate::ZERO),
        6 => (1_000_000u64..20_000_000_000).prop_map(Rate::from_bits_per_sec),
    ];
    // A rate of zero from the beginning to the end is refused; it is made to end.
    let rates = schedule(rate.boxed()).prop_map(|mut rate| {
        if rate.is_constant() && rate.initial == Rate::ZERO {
            rate.steps.push((Instant::from_nanos(100_000), Rate::from_mbit(100)));
        }
        Service::Rate(rate)
    });
    let rates = rates.boxed();
    let shaper = (rates.clone(), 1u64..6_000).prop_map(|(service, burst)| match service {
        Service::Rate(rate) => Service::Shaper { rate, burst: Bytes(burst) },
        other => other,
    });
    let trace = (prop::collection::vec(0u64..2, 1..8), 1u64..3_000).prop_map(|(gaps, size)| {
        let times = gaps.iter().scan(1, |time, gap| {
            *time += gap;
            Some(format!("{time}\n"))
        });
        let trace = DeliveryTrace::parse(&times.collect::<String>()).unwrap();
        Service::Trace(trace.with_opportunity(Bytes(size)))
    });
    prop_oneof![
        1 => Just(Service::Infinite),
        4 => rates,
        1 => (nanos(0..50_000), nanos(0..50_000))
            .prop_map(|(forward, reverse)| Service::PerPacket { forward, reverse }),
        2 => trace,
        3 => shaper,
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Infinite),
        (0u64..10).prop_map(Limit::Packets),
        (0u64..10_000).prop_map(|n| Limit::Bytes(Bytes(n))),
    ]
}

/// Times short enough for the control law to act within a test.
fn control_law() -> impl Strategy<Value = CodelLaw> {
    let threshold = prop::option::of(nanos(0..50_000));
    (nanos(0..20_000), nanos(1..100_000), any::<bool>(), threshold).prop_map(
        |(target, interval, ecn, ce_threshold)| CodelLaw { target, interval, ecn, ce_threshold },
    )
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let counting = prop_oneof![Just(Counting::WithService), Just(Counting::Waiting)];
    let drop_tail = (limit(), counting, 0u64..300).prop_map(|(limit, counting, overhead)| {
        QueueConfig::DropTail(DropTailConfig { limit, counting, overhead: Bytes(overhead) })
    });
    let codel = (limit(), control_law())
        .prop_map(|(limit, law)| QueueConfig::Codel(CodelConfig { limit, law }));
    let fq_codel =
        (limit(), 1u32..5, 1u64..4_000, control_law()).prop_map(|(limit, flows, quantum, law)| {
            QueueConfig::FqCodel(FqCodelConfig { limit, flows, quantum: Bytes(quantum), law })
        });
    let packets = (limit(), 0u64..5, 1u64..5)
        .prop_map(|(limit, min, span)| (limit, Limit::Packets(min), Limit::Packets(min + span)));
    let bytes = (limit(), 0u64..5_000, 1u64..5_000).prop_map(|(limit, min, span)| {
        (limit, Limit::Bytes(Bytes(min)), Limit::Bytes(Bytes(min + span)))
    });
    let rng = (ratio(), (1u32..=100).prop_map(Ratio::from_percent));
    let red = (prop_oneof![packets, bytes], rng, any::<bool>(), any::<bool>()).prop_map(
        |((limit, min, max), (probability, weight), gentle, ecn)| RedConfig {
            limit,
            min,
            max,
            probability,
            weight,
            gentle,
            ecn,
        },
    );
    let red = (red, any::<bool>()).prop_map(|(red, compares)| match compares {
        true => QueueConfig::Choke(ChokeConfig(red)),
        false => QueueConfig::Red(red),
    });
    let threshold = prop_oneof![
        limit().prop_map(StepThreshold::Backlog),
        nanos(0..50_000).prop_map(StepThreshold::Sojourn),
    ];
    let step = (limit(), threshold)
        .prop_map(|(limit, threshold)| QueueConfig::EcnStep(EcnStepConfig { limit, threshold }));
    prop_oneof![
        drop_tail,
        codel,
        fq_codel,
        red,
        step,
        pie(),
        fq(),
        fq_pie(),
        cake(),
        dualpi2(),
        sfq()
    ]
}

/// Updates frequent enough, and weights large enough, for the control law to act within a test.
fn pie_law() -> impl Strategy<Value = PieLaw> {
    let weights = (0u32..1_024, 0u32..1_024);
    (nanos(0..50_000), nanos(10_000..200_000), weights, any::<bool>()).prop_map(
        |(target, update, (alpha, beta), ecn)| PieLaw { target, update, alpha, beta, ecn },
    )
}

fn pie() -> impl Strategy<Value = QueueConfig> {
    (limit(), pie_law()).prop_map(|(limit, law)| QueueConfig::Pie(PieConfig { limit, law }))
}

fn fq_pie() -> impl Strategy<Value = QueueConfig> {
    (limit(), 1u32..5, 1u64..4_000, pie_law()).prop_map(|(limit, flows, quantum, law)| {
        QueueConfig::FqPie(FqPieConfig { limit, flows, quantum: Bytes(quantum), law })
    })
}

fn fq() -> impl Strategy<Value = QueueConfig> {
    let times = (nanos(0..200_000), prop::option::of(nanos(0..50_000)));
    (limit(), 1u32..5, (1u64..4_000, 0u64..9_000), 0u32..9, times).prop_map(
        |(limit, flows, (quantum, initial), flow_limit, (refill_delay, ce_threshold))| {
            QueueConfig::Fq(FqConfig {
                limit,
                flow_limit,
                flows,
                quantum: Bytes(quantum),
                initial_quantum: Bytes(initial),
                refill_delay,
                ce_threshold,
            })
        },
    )
}

fn sfq() -> impl Strategy<Value = QueueConfig> {
    (limit(), 1u32..9, 1u32..5, 1u64..4_000, any::<bool>()).prop_map(
        |(limit, depth, buckets, quantum, head_drop)| {
            let quantum = Bytes(quantum);
            QueueConfig::Sfq(SfqConfig { limit, depth, buckets, quantum, head_drop })
        },
    )
}

fn cake() -> impl Strategy<Value = QueueConfig> {
    use Isolation::{DstHost, DualDstHost, DualSrcHost, FlowBlind, Flows, SrcHost, TripleIsolate};
    let modes = [
        FlowBlind,
        SrcHost,
        DstHost,
        Isolation::Hosts,
        Flows,
        DualSrcHost,
        DualDstHost,
        TripleIsolate,
    ];
    let hosts = prop::collection::vec((0u32..3, 0u32..3), 0..4)
        .prop_map(|pairs| pairs.into_iter().map(|(from, to)| Hosts { from, to }).collect());
    let times = (nanos(0..20_000), nanos(1..100_000));
    (limit(), prop::sample::select(modes.to_vec()), times, hosts).prop_map(
        |(limit, isolation, (target, interval), hosts)| {
            let shapes = false;
            QueueConfig::Cake(CakeConfig { limit, isolation, target, interval, shapes, hosts })
        },
    )
}

fn dualpi2() -> impl Strategy<Value = QueueConfig> {
    let scheduler = prop_oneof![
        ratio().prop_map(Scheduler::Weighted),
        nanos(0..100_000).prop_map(Scheduler::TimeShifted),
    ];
    let classifier = prop_oneof![Just(Classifier::L4s), Just(Classifier::AnyEct)];
    let delays = (nanos(10_000..100_000), nanos(10_000..100_000), nanos(0..20_000), 0u64..=2);
    (limit(), delays, 1u32..5, classifier, scheduler).prop_map(
        |(limit, (target, rtt_max, threshold, ramps), coupling, classifier, scheduler)| {
            let ramp = threshold * ramps;
            QueueConfig::DualPi2(DualPi2Config {
                limit,
                target,
                rtt_max,
                coupling,
                threshold,
                ramp,
                classifier,
                scheduler,
            })
        },
    )
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

fn impairments() -> impl Strategy<Value = Impairments> {
    let chain = (ratio(), ratio(), ratio(), ratio()).prop_map(|(p, r, good, bad)| GilbertElliott {
        good_to_bad: p,
        bad_to_good: r,
        loss_in_good: good,
        loss_in_bad: bad,
    });
    let list = prop::collection::vec(1u64..60, 0..5)
        .prop_map(|numbers| DropList { counts: Numbering::Forward, numbers });
    let order = prop_oneof![Just(Order::Kept), Just(Order::Free)];
    let spread = nanos(0..200_000)
        .prop_flat_map(|size| prop_oneof![Just(Spread::Uniform(size)), Just(Spread::Normal(size))]);
    let jitter = (spread, order).prop_map(|(spread, order)| Jitter { spread, order });
    let reorder = (ratio(), nanos(1..200_000))
        .prop_map(|(probability, extra_delay)| Reorder { probability, extra_delay });
    let drops = prop::collection::vec(list, 0..2);
    let policer = (1_000_000u64..1_000_000_000, 1u64..6_000).prop_map(|(rate, burst)| {
        PolicerConfig { rate: Rate::from_bits_per_sec(rate), burst: Bytes(burst) }
    });
    let step = (0u64..2_000_000, ratio());
    let losses = (ratio(), prop::collection::vec(step, 0..3)).prop_map(|(loss, mut steps)| {
        steps.sort_by_key(|(at, _)| *at);
        steps.dedup_by_key(|(at, _)| *at);
        (loss, steps.into_iter().map(|(at, ratio)| (Instant::from_nanos(at), ratio)).collect())
    });
    (
        losses,
        prop::option::weighted(0.2, chain),
        drops,
        ratio(),
        ratio(),
        prop::option::weighted(0.2, policer),
        prop::option::weighted(0.2, reorder),
        prop::option::weighted(0.3, jitter),
    )
        .prop_map(
            |(losses, burst_loss, drops, corrupt, duplicate, policer, reorder, jitter)| {
                let (loss, loss_steps) = losses;
                Impairments {
                    loss,
                    loss_steps,
                    burst_loss,
                    drops,
                    corrupt,
                    duplicate,
                    policer,
                    reorder,
                    jitter,
                }
            },
        )
}

fn config() -> impl Strategy<Value = LinkConfig> {
    let mtu = prop::option::weighted(0.2, (1_000u64..2_000).prop_map(Bytes));
    let overhead = prop_oneof![Just(Bytes::ZERO), Just(Bytes(14))];
    let delay = schedule(nanos(0..300_000).boxed());
    (service(), delay, overhead, mtu, queue(), impairments()).prop_map(
        |(service, delay, overhead, mtu, mut queue, impairments)| {
            if let (QueueConfig::Cake(cake), Service::Rate(_)) = (&mut queue, &service) {
                cake.shapes = overhead > Bytes::ZERO;
            }
            LinkConfig { service, delay, overhead, mtu, queue, impairments, feedback: None }
        },
    )
}

fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let gap =
        prop_oneof![2 => Just(Duration::ZERO), 3 => nanos(1..5_000), 1 => nanos(0..2_000_000)];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let offer = (gap, 1u64..2_000, any::<bool>(), 0u32..4, ecn)
        .prop_map(|(gap, len, is_forward, flow, ecn)| Offer { gap, len, is_forward, flow, ecn });
    prop::collection::vec(offer, 1..60)
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

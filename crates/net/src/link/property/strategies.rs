//! Any link, and anything that may be offered to it.

use proptest::prelude::*;
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

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
use crate::link::LinkConfig;
use crate::loss::{DropList, GilbertElliott, Numbering};
use crate::opportunities::DeliveryTrace;
use crate::parcel::{Ecn, Hosts};
use crate::pie::{PieConfig, PieLaw};
use crate::red::RedConfig;
use crate::schedule::Schedule;
use crate::service::Service;
use crate::sfq::SfqConfig;

/// A parcel to offer, this long after the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) gap: Duration,
    pub(super) len: u64,
    pub(super) is_forward: bool,
    pub(super) flow: u32,
    pub(super) ecn: Ecn,
}

pub(super) fn nanos(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
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

pub(super) fn config() -> impl Strategy<Value = LinkConfig> {
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

pub(super) fn offers() -> impl Strategy<Value = Vec<Offer>> {
    let gap =
        prop_oneof![2 => Just(Duration::ZERO), 3 => nanos(1..5_000), 1 => nanos(0..2_000_000)];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    let offer = (gap, 1u64..2_000, any::<bool>(), 0u32..4, ecn)
        .prop_map(|(gap, len, is_forward, flow, ecn)| Offer { gap, len, is_forward, flow, ecn });
    prop::collection::vec(offer, 1..60)
}

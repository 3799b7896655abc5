//! Queue disciplines against what their sources promise for senders that listen.

use crate::common::{Flow, over, secs, spec_of};
use weir_net::{
    CakeConfig, ChokeConfig, Classifier, DualPi2Config, FqConfig, FqPieConfig, Hosts, Limit,
    LinkConfig, PieConfig, PieLaw, QueueConfig, RedConfig,
};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{MeasureSpec, Outcome, TransportSpec, UdpConfig, Workload};
use weir_sim::run;
use weir_trace::FlowRow;
use weir_units::{Bytes, Duration, Rate, Ratio};

/// A minute of endless flows over a bottleneck with this queue, its first ten seconds left out.
fn minute(queue: QueueConfig, rate: Rate, flows: &[(Flow, Duration)]) -> Outcome {
    let (flows, rtts): (Vec<Flow>, Vec<Duration>) = flows.iter().cloned().unzip();
    let delay = rtts.iter().min().copied().unwrap_or_default() / 2;
    let forward = LinkConfig { queue, ..LinkConfig::new(rate, delay) };
    let reverse = LinkConfig::new(Rate::from_mbit(10_000), delay);
    let topology =
        Dumbbell { forward, reverse, access: Access::None, rtts }.build().expect("a path");
    let measure = MeasureSpec { duration: secs(60), warmup: secs(10), ..MeasureSpec::default() };
    let spec = spec_of(&flows, topology, measure);
    run(&spec, 1).expect("the run is sound")
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An endless transfer that negotiates ECN.
fn capable(stack: &str) -> Flow {
    let mut transport = over(stack);
    if let TransportSpec::Reliable(config) = &mut transport {
        config.ecn = Some(true);
    }
    Flow::new(transport, Workload::Bulk)
}

fn goodputs(outcome: &Outcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.goodput_mbps.expect("a measured flow")).collect()
}

/// RFC 8033 §4: the delay is held at its reference whatever the number of flows; Pan et al., "PIE: a
/// lightweight control scheme to address the bufferbloat problem", 2013, figures 5 and 6, stay within a
/// few milliseconds of it.
#[test]
fn pie_holds_its_target_with_many_flows() {
    for flows in [5, 20, 50] {
        let queue =
            QueueConfig::Pie(PieConfig { limit: Limit::Packets(1_000), law: PieLaw::DEFAULT });
        let senders = vec![(Flow::bulk("rack/reno").jittered(500), ms(100)); flows];
        let outcome = minute(queue, Rate::from_mbit(10), &senders);
        let link = &outcome.links[0];
        let mean = link.queue_delay_ms_mean.unwrap();
        assert!((mean - 15.0).abs() < 3.0, "{flows} flows: {mean} ms");
        assert!(link.utilisation.unwrap() > 0.95, "{link:?}");
        assert_eq!(link.dropped_queue, 0);
    }
}

/// Tang, Wang and Low, "Understanding CHOKe", 2003: with many TCP flows, a flow that does not respond has
/// 1/(e + 1) = 26.9 % of the link at most, whatever it sends, and the less the more it sends beyond that.
/// RED gives it all that it sends. The path is that of Pan et al., 2000, §4.1.
#[test]
fn choke_bounds_a_flow_that_does_not_respond() {
    let red = RedConfig {
        limit: Limit::Packets(300),
        min: Limit::Packets(100),
        max: Limit::Packets(200),
        probability: Ratio::from_percent(2),
        weight: Ratio::from_billionths(2_000_000).unwrap(),
        gentle: false,
        ecn: false,
    };
    let rate = Rate::from_mbit(1);
    let share = |queue, sent| {
        let udp = Workload::Rate { rate: Rate::from_mbit(sent), size: Bytes(972) };
        let udp = Flow::new(TransportSpec::Udp(UdpConfig { payload: 972 }), udp);
        let mut tcp = over("sack/reno");
        if let TransportSpec::Reliable(config) = &mut tcp {
            config.mss = 960;
        }
        let tcp = Flow::new(tcp, Workload::Bulk).jittered(500);
        let mut flows = vec![(tcp, ms(6)); 32];
        flows.push((udp, ms(6)));
        goodputs(&minute(queue, rate, &flows))[32]
    };
    let choke = QueueConfig::Choke(ChokeConfig(red));
    let shares = [1, 2, 10].map(|sent| share(choke.clone(), sent));
    assert!(shares.iter().all(|share| *share < 0.269), "{shares:?}");
    assert!(shares.is_sorted_by(|one, more| one > more), "{shares:?}");
    assert!(shares[2] < 0.05, "{shares:?}");
    assert!(share(QueueConfig::Red(red), 2) > 0.9);
}

/// Fair queueing: every backlogged flow has the same, whatever its round trip and algorithm.
#[test]
fn queues_per_flow_share_equally() {
    let flows = [
        (Flow::bulk("rack/cubic"), ms(20)),
        (Flow::bulk("rack/reno"), ms(40)),
        (Flow::bulk("rack/reno"), ms(20)),
        (Flow::bulk("rack/cubic"), ms(60)),
    ];
    let fq_pie = QueueConfig::FqPie(FqPieConfig::DEFAULT);
    let fq = QueueConfig::Fq(FqConfig::DEFAULT);
    for queue in [fq_pie, fq] {
        let outcome = minute(queue.clone(), Rate::from_mbit(40), &flows);
        let goodputs = goodputs(&outcome);
        let fair = goodputs.iter().sum::<f64>() / 4.0;
        assert!(goodputs.iter().all(|own| (own / fair - 1.0).abs() < 0.05), "{goodputs:?}");
        assert!(outcome.links[0].utilisation.unwrap() > 0.97);
    }
}

/// "Piece of CAKE" §III-B: a host with eight flows has no more than a host with two. The round trip is
/// so short that COBALT's 5 ms are enough space for a sender to fill its part.
#[test]
fn cake_is_fair_among_hosts() {
    let flows = vec![(Flow::bulk("rack/cubic"), ms(10)); 10];
    let hosts = (0..10).map(|flow| Hosts { from: u32::from(flow >= 8), to: 10 + flow }).collect();
    let queue = QueueConfig::Cake(CakeConfig { hosts, ..CakeConfig::usual() });
    let outcome = minute(queue, Rate::from_mbit(40), &flows);
    let goodputs = goodputs(&outcome);
    let (busy, calm) = (goodputs[..8].iter().sum::<f64>(), goodputs[8..].iter().sum::<f64>());
    assert!((calm / busy - 1.0).abs() < 0.05, "{calm} against {busy}");
    assert!(goodputs[..8].iter().all(|own| (own * 8.0 / busy - 1.0).abs() < 0.05), "{goodputs:?}");
}

/// RFC 9332 §2.1 with k = 2: scalable and classic flows of the same round trip have rates within a factor
/// of two, the L queue waits for less than a millisecond and the classic one for its target.
#[test]
fn dualpi2_couples_two_kinds_of_senders() {
    for (rate, rtt, each) in [(40, 10, 1), (40, 20, 1), (100, 20, 4)] {
        let mut flows = vec![(Flow::bulk("rack/cubic"), ms(rtt)); each];
        flows.extend(vec![(capable("rack/dctcp"), ms(rtt)); each]);
        // Our DCTCP sends ECT(0).
        let any_ect = DualPi2Config { classifier: Classifier::AnyEct, ..DualPi2Config::DEFAULT };
        let outcome = minute(QueueConfig::DualPi2(any_ect), Rate::from_mbit(rate), &flows);
        let (classic, scalable) = outcome.flows.split_at(each);
        let sum = |flows: &[FlowRow]| {
            flows.iter().map(|flow| flow.goodput_mbps.expect("a measured flow")).sum::<f64>()
        };
        let ratio = sum(scalable) / sum(classic);
        assert!((0.5..2.0).contains(&ratio), "{rate} Mbit/s, {rtt} ms: {ratio}");
        let delay = |flow: &FlowRow| flow.queue_delay_ms_mean.unwrap();
        assert!(scalable.iter().all(|flow| delay(flow) < 1.0), "{scalable:?}");
        // The base probability is moved by the longer of two delays, so it holds the classic one.
        assert!(classic.iter().all(|flow| (delay(flow) - 15.0).abs() < 1.5), "{classic:?}");
        assert!(scalable.iter().all(|flow| flow.retransmits == 0), "{scalable:?}");
        assert!(outcome.links[0].utilisation.unwrap() > 0.99);
    }
}

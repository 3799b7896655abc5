//! What draft-ietf-ccwg-bbr claims for BBRv3, over one bottleneck of 50 Mbit/s.

use crate::common::{Flow, Path, secs};
use weir_scene::Outcome;
use weir_sim::run;
use weir_units::{BufferSize, Duration, Rate, Ratio};

/// 40 ms with a queue in thousandths of a BDP.
fn path(queue: u64) -> Path {
    Path { rate: Rate::from_mbit(50), queue: BufferSize::Bdp(queue), ..Path::default() }
}

/// 40 s without the first ten: one stay in probe_rtt at least, and ten probes.
fn outcome(path: &Path, flows: &[Flow]) -> Outcome {
    outcome_of(path, flows, 1)
}

fn outcome_of(path: &Path, flows: &[Flow], seed: u64) -> Outcome {
    let mut spec = path.spec(flows, secs(40));
    spec.measure.warmup = secs(10);
    run(&spec, seed).expect("a run")
}

fn utilisation(outcome: &Outcome) -> f64 {
    outcome.links[0].utilisation.expect("the link has a rate")
}

/// §3.1: the full throughput with low queue pressure, whatever the queue. Where nothing is lost, it paces
/// 1 % below the bandwidth and spends another 1 % on probe_rtt (§5.3.4.2).
#[test]
fn alone_it_fills_the_link_and_keeps_the_queue_short() {
    let bdp = 50e6 / 8.0 * 0.04 / 1_500.0;
    for queue in [250, 1_000, 4_000] {
        let outcome = outcome(&path(queue), &[Flow::bulk("bbr3")]);
        let link = &outcome.links[0];
        assert!(utilisation(&outcome) > 0.95, "{queue}: {}", utilisation(&outcome));
        // Probes queue a quarter of a BDP or more, for a tenth of the time.
        assert!(link.queue_packets_mean < bdp / 10.0, "{queue}: {}", link.queue_packets_mean);
        assert_eq!(link.queue_delay_ms_p50, Some(0.0), "{queue}");
    }
}

/// §1: queues too short for a loss-based controller and for version 1, which keeps two BDP in flight and loses
/// what does not fit; version 3 remembers what did (§3.1 aims at less than 1 %).
#[test]
fn it_loses_much_less_than_version_1_in_a_shallow_queue() {
    for queue in [50, 100] {
        let [new, old] = ["bbr3", "bbr"].map(|stack| outcome(&path(queue), &[Flow::bulk(stack)]));
        let lost = |outcome: &Outcome| outcome.flows[0].retransmit_ratio;
        assert!(lost(&old) > 0.01, "{queue}: {}", lost(&old));
        assert!(lost(&new) < lost(&old) / 10.0, "{queue}: {} of {}", lost(&new), lost(&old));
        // What it cruises below: 15 % of headroom.
        assert!(utilisation(&new) > 0.85, "{queue}: {}", utilisation(&new));
    }
}

/// §5.3.3.1: gains of 0.9 and 1.25 let rates converge "to approximate fairness": neither of two flows, one five
/// seconds older, has twice the other's.
#[test]
fn two_flows_share_about_evenly() {
    for queue in [500, 2_000] {
        let flows = [Flow::bulk("bbr3"), Flow::bulk("bbr3").starting(5)];
        let outcome = outcome(&path(queue), &flows);
        let ratio = outcome.flows[0].goodput_mbps.expect("a measured flow")
            / outcome.flows[1].goodput_mbps.expect("a measured flow");
        assert!((0.5..2.0).contains(&ratio), "{queue}: {ratio}");
        assert!(utilisation(&outcome) > 0.95, "{queue}: {}", utilisation(&outcome));
    }
}

/// §5.3.3.5.1: CUBIC is to get 25 Mbit/s at 30 ms, which is half of this link. Against version 1 it does not.
/// CUBIC's saw-tooth falls to 0.7 and averages 0.85 of its peak, so a fifth less than half is still half.
#[test]
fn it_leaves_cubic_its_half() {
    for queue in [500, 1_000] {
        let path = Path { rtt: Duration::from_millis(30), ..path(queue) };
        // One run says little: over 12 seeds CUBIC gets from 18 to 30 Mbit/s behind the deeper queue.
        let cubics = |own: &str| {
            let flows = [Flow::bulk(own), Flow::bulk("cubic")];
            let runs = (1..=SEEDS).map(|seed| outcome_of(&path, &flows, seed));
            let sums = runs.fold([0.0; 2], |sums, run| {
                [
                    sums[0] + run.flows[0].goodput_mbps.expect("a measured flow"),
                    sums[1] + run.flows[1].goodput_mbps.expect("a measured flow"),
                ]
            });
            sums.map(|sum| sum / SEEDS as f64)
        };
        let (new, old) = (cubics("bbr3"), cubics("bbr"));
        assert!(new.iter().all(|mbps| *mbps > 20.0), "{queue}: {new:?}");
        assert!(old[1] < 10.0, "{queue}: {old:?}");
    }
}

/// §5.3.3.5.3: it tolerates 1 % of random loss, with some of the bandwidth; more than the threshold of 2 %
/// it takes for congestion, which version 1 does not.
#[test]
fn it_tolerates_losses_below_its_threshold() {
    let lossy = |percent, stack: &str| {
        let mut path = path(1_000);
        path.forward.impairments.loss = Ratio::from_percent(percent);
        utilisation(&outcome(&path, &[Flow::bulk(stack)]))
    };
    let (one, cubic) = (lossy(1, "bbr3"), lossy(1, "cubic"));
    assert!(one > 0.6 && one > 5.0 * cubic, "{one}, cubic {cubic}");
    let (five, old) = (lossy(5, "bbr3"), lossy(5, "bbr"));
    assert!(five < 0.3 && old > 0.9, "{five}, version 1 {old}");
}

/// Runs whose mean is judged.
const SEEDS: u64 = 4;

use weir_units::{Duration, Rate};

use super::*;
use crate::LinkConfig;
use crate::disciplines::QueueConfig;
use crate::link::probe::{Probe, at_us, drain_until, link};

/// Three flows send 1500 bytes each 1 ms, 1.5 ms and 20 ms on a link that takes a millisecond for each.
/// Returns the waits in milliseconds and the parcels delivered of each after the first ten seconds.
fn three_flows(config: FqPieConfig) -> ([Vec<f64>; 3], u64) {
    let queue = QueueConfig::FqPie(config);
    let config = LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) };
    let mut link = link(&config);
    let mut waits = [const { Vec::new() }; 3];
    for step in 0..120_000_u64 {
        let now = at_us(step * 500);
        for (flow, every) in [(0, 2), (1, 3), (2, 40)] {
            if step % every == 0 {
                link.offer(now, Probe { flow, ..Probe::data(step, 1_500) });
            }
        }
        for (_, parcel) in drain_until(&mut link, now) {
            if step > 20_000 {
                waits[parcel.flow as usize].push(parcel.waited.as_millis_f64());
            }
        }
    }
    (waits, link.stats(at_us(60_000_000)).dropped_queue.packets)
}

/// Of 1000 parcels per second the sparse flow has its 50, the other two 475 each, and each greedy one waits
/// for the target.
#[test]
fn flows_share_equally_and_each_queue_holds_the_target() {
    let (waits, overflows) = three_flows(FqPieConfig::DEFAULT);
    let [first, second, sparse] = &waits;
    assert_eq!((sparse.len(), overflows), (2_500, 0), "nothing of the sparse flow is lost");
    let ratio = first.len() as f64 / second.len() as f64;
    assert!((ratio - 1.0).abs() < 0.01, "{} to {}", first.len(), second.len());
    assert!(sparse.iter().all(|wait| *wait <= 1.0), "the sparse flow waits for one parcel only");
    for greedy in [first, second] {
        let mean = greedy.iter().sum::<f64>() / greedy.len() as f64;
        assert!((mean - 15.0).abs() < 1.5, "{mean} ms");
    }
}

#[test]
fn what_arrives_at_a_full_queue_is_dropped_whosever_it_is() {
    let queue =
        QueueConfig::FqPie(FqPieConfig { limit: Limit::Packets(5), ..FqPieConfig::DEFAULT });
    let mut link =
        link(&LinkConfig { queue, ..LinkConfig::new(Rate::from_mbit(12), Duration::ZERO) });
    for flow in [0, 0, 0, 0, 0, 1] {
        link.offer(Instant::ZERO, Probe { flow, ..Probe::data(0, 1_500) });
    }
    let out = drain_until(&mut link, Instant::MAX);
    assert!(out.len() == 5 && out.iter().all(|(_, parcel)| parcel.flow == 0));
}

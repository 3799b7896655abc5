//! Chains against closed forms and published measurements.

use super::*;

/// A window of one: each packet of 1000 bytes and its headers is sent when the acknowledgement of the
/// one before is back. Kilobits of payload per second.
fn stop_and_wait(config: &RadioConfig, hops: i64, seconds: u64) -> f64 {
    let mut radio = chain(config, hops, 1);
    let (source, sink) = (NodeId(0), NodeId(hops as u16));
    let mut received = 0u64;
    radio.offer(Instant::ZERO, source, sink, Probe::data(0, 1_040));
    run_until(&mut radio, secs(seconds), |radio, now, event| match event {
        RadioEvent::Delivered { parcel, .. } if parcel.is_forward => {
            received += 1;
            radio.offer(now, sink, source, Probe { len: 40, ..Probe::ack(received) });
        }
        RadioEvent::Delivered { .. } => {
            radio.offer(now, source, sink, Probe::data(received, 1_040));
        }
        other => panic!("{other:?}"),
    });
    received as f64 * 8.0 / seconds as f64
}

/// 8000 bits every h times 7.608 ms (see `airtime.rs`). At each end of the chain a node that has just
/// sent is the next to send again: its backoff b after the last packet ran while its neighbour waited
/// for c slots. If b > c it waits for the rest, otherwise for a fresh backoff; b and c are uniform in
/// 0 ..= 30. Four standard errors of a sum of backoffs (180 us each) are below 0.3 %.
#[test]
fn stop_and_wait_carries_one_over_h() {
    let (fresh, mut again) = (15.0, 0.0);
    for (b, c) in (0..31).flat_map(|b| (0..31).map(move |c| (b, c))) {
        again += if b > c { f64::from(b - c) } else { fresh } / (31.0 * 31.0);
    }
    let saved_us = 2.0 * (fresh - again) * 20.0;
    let config = RadioConfig::default();
    for hops in 1..=4 {
        let found = stop_and_wait(&config, hops, 100);
        let table = 8_000.0 / (hops as f64 * 7.608);
        let exact = 8_000.0 / (hops as f64 * 7.608 - saved_us / 1_000.0);
        println!(
            "stop and wait, {hops} hops: {found:.1} kbit/s, {exact:.1} exactly, {table:.1} in the table"
        );
        assert!(near(found, exact, 0.3), "{hops} hops: {found} instead of {exact}");
        assert!(near(found, table, 1.2), "{hops} hops: {found} instead of {table}");
    }
}

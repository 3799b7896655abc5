//! Chains against closed forms and published measurements.

use super::*;
use crate::{Access, MacConfig};

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

/// The mean time of a round in microseconds: h exchanges of data and h of acknowledgements, 7.608 ms in
/// all for each hop with backoffs of 15 slots (see `airtime.rs`). Where the chain turns around, and
/// rarely elsewhere, a node sends again before the backoff that followed its last packet is over, and
/// waits for the rest of it only: a game of dice that is played here.
fn round_trip_us(hops: usize) -> f64 {
    const ROUNDS: u32 = 200_000;
    let mut rng = stream(2, "dice");
    let mut left = vec![None; hops + 1];
    let senders: Vec<usize> = (0..hops).chain((1..=hops).rev()).collect();
    let mut slots = 0;
    for sender in (0..ROUNDS).flat_map(|_| &senders) {
        let wait: u64 = left[*sender].unwrap_or_else(|| rng.below(31));
        slots += wait;
        let heard = sender.saturating_sub(2)..=(sender + 2).min(hops);
        for backoff in &mut left[heard] {
            *backoff =
                backoff.and_then(|left: u64| left.checked_sub(wait)).filter(|left| *left > 0);
        }
        left[*sender] = Some(rng.below(31));
    }
    let frames = (5_804.0 + 1_804.0 - 600.0) * hops as f64;
    frames + slots as f64 * 20.0 / f64::from(ROUNDS)
}

/// Four standard errors of the sum of backoffs are below 0.3 %.
#[test]
fn stop_and_wait_carries_one_over_h() {
    let config = RadioConfig::default();
    for hops in 1..=4 {
        let found = stop_and_wait(&config, hops, 200);
        let table = 8_000.0 / (hops as f64 * 7.608);
        let exact = 8_000_000.0 / round_trip_us(hops as usize);
        println!(
            "stop and wait, {hops} hops: {found:.1} kbit/s, {exact:.1} exactly, {table:.1} in the table"
        );
        assert!(near(found, exact, 0.3), "{hops} hops: {found} instead of {exact}");
        assert!(near(found, table, 1.2), "{hops} hops: {found} instead of {table}");
    }
}

/// Kilobits per second of IP packets of 1528 bytes over a chain whose first node always has more.
fn saturated(config: &RadioConfig, hops: i64, seconds: u64) -> f64 {
    const LEN: u64 = 1_528;
    let mut radio = chain(config, hops, 1);
    let (source, sink) = (NodeId(0), NodeId(hops as u16));
    let (mut received, mut now) = (0u64, Instant::ZERO);
    while now < secs(seconds) {
        for _ in radio.queue_len(source)..10 {
            radio.offer(now, source, sink, Probe::data(0, LEN));
        }
        now += Duration::from_millis(1);
        run_until(&mut radio, now, |_, time, event| {
            let delivered = matches!(event, RadioEvent::Delivered { .. });
            received += u64::from(delivered && time > secs(1));
        });
    }
    (received * LEN * 8) as f64 / 1e3 / (seconds - 1) as f64
}

/// Li, Blake, De Couto, Lee and Morris, MobiCom 2001: a long chain carries a seventh of one hop, since
/// its first node injects more than the others can pass on. Their seventh is a rounded figure.
#[test]
fn a_long_chain_carries_a_seventh_of_one_hop() {
    for access in [Access::Ns2, Access::Standard] {
        let mac = MacConfig { access, ..MacConfig::default() };
        let config = RadioConfig { mac, ..RadioConfig::default() };
        let one = saturated(&config, 1, 21);
        for hops in [6, 8, 10] {
            let found = saturated(&config, hops, 51);
            println!(
                "{access:?}, {hops} hops: {found:.0} kbit/s, one hop {one:.0}: 1/{:.1}",
                one / found
            );
            assert!(near(found, one / 7.0, 20.0), "{hops} hops: {found} of {one}");
        }
    }
}

/// With four hops the ideal is a quarter of one hop: hops 0-1, 1-2 and 2-3 exclude each other.
#[test]
fn a_short_chain_carries_one_over_h() {
    let config = RadioConfig::default();
    let one = saturated(&config, 1, 21);
    for hops in [2, 3, 4] {
        let found = saturated(&config, hops, 51);
        let ideal = one / hops as f64;
        println!("{hops} hops: {found:.0} kbit/s, ideally {ideal:.0}");
        assert!(found < ideal * 1.001 && near(found, ideal, 10.0), "{hops} hops: {found}, {ideal}");
    }
}

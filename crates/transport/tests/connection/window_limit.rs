use weir_transport::{Config, DelayedAck, PathEvent};
use weir_units::{Bytes, Duration};

use super::pair::Side::{Client, Server};
use super::pair::{Pair, Verdict};
use super::with_stack;

const MSS: u64 = 1_000;

/// The most that was outstanding at once, in segments, by what the peer had acknowledged.
fn most_outstanding(pair: &Pair) -> u64 {
    let (mut acked, mut most) = (None, 0);
    for passing in &pair.log {
        let segment = passing.segment;
        if passing.from == Client {
            let origin = segment.seq.0.wrapping_sub(passing.offset as u32);
            let una = acked.map_or(0, |ack: u32| u64::from(ack.wrapping_sub(origin)));
            let end = passing.offset + u64::from(segment.payload_len);
            most = most.max(end.saturating_sub(una));
        } else {
            acked = Some(segment.ack.0);
        }
    }
    most.div_ceil(MSS)
}

fn config(stack: &str, limit: &str) -> Config {
    Config {
        mss: MSS as u32,
        window_limit: Some(limit.parse().expect("a limit")),
        delayed_ack: Some(DelayedAck::Off),
        ..with_stack(stack)
    }
}

#[test]
fn no_more_segments_are_outstanding_than_the_limit_says() {
    for stack in ["newreno/reno", "sack/cubic", "rack/reno", "reno/none", "go-back-n/none"] {
        for limit in [1, 4, 8, 32] {
            let mut pair = Pair::connected(&config(stack, &limit.to_string()));
            // In recovery too.
            pair.lose_nth(40, |p| p.from == Client && p.segment.payload_len > 0);
            pair.write(Client, 400 * MSS);
            pair.close(Client);
            pair.drive();
            assert_eq!(pair.server.read, 400 * MSS);
            assert_eq!(most_outstanding(&pair), limit, "{stack}");
            let cwnd = pair.client.connection.snapshot().cwnd;
            assert!(cwnd <= Bytes(limit * MSS), "{stack}: {cwnd}");
        }
    }
}

#[test]
fn cwl_follows_the_length_of_the_route() {
    let mut pair = Pair::connected(&config("newreno/reno", "cwl"));
    pair.write(Client, 1_000 * MSS);
    pair.drive_for(Duration::from_millis(15));
    assert_eq!(most_outstanding(&pair), 10, "nothing is known of the route yet");
    for (hops, segments) in [(8, 3), (32, 13), (2, 2), (16, 6)] {
        pair.notify(Client, PathEvent::Hops(hops));
        // What was on its way under the limit before is acknowledged first.
        pair.drive_for(Duration::from_millis(200));
        let acked = pair.client.connection.snapshot();
        assert_eq!(acked.cwnd, Bytes(segments * MSS), "{hops} hops");
        assert_eq!(acked.bytes_in_flight, Bytes(segments * MSS), "{hops} hops");
    }
    pair.network(|_| Verdict::Deliver);
    pair.drive();
    assert_eq!(pair.server.read, 1_000 * MSS);
}

#[test]
fn a_receiver_offers_a_window_by_the_length_of_the_route() {
    for mss in [1_000, 1_447, 1_448] {
        let limit = config("newreno/reno", "receiver-cwl");
        let mut pair = Pair::connected(&Config { mss, ..limit });
        pair.notify(Server, PathEvent::Hops(4));
        pair.write(Client, 2_000 * u64::from(mss));
        for (hops, segments) in [(8, 3), (32, 13), (2, 2), (16, 6)] {
            pair.notify(Server, PathEvent::Hops(hops));
            // What was offered before stands until it has arrived.
            pair.drive_for(Duration::from_millis(500));
            let in_flight = pair.client.connection.snapshot().bytes_in_flight;
            assert_eq!(in_flight, Bytes(segments * u64::from(mss)), "{hops} hops of {mss}");
        }
        pair.drive();
        assert_eq!(pair.server.read, 2_000 * u64::from(mss));
    }
}

#[test]
fn a_receiver_that_knows_the_route_offers_no_more_from_the_first_window_on() {
    let mut pair = Pair::new(&config("newreno/reno", "receiver-cwl"));
    pair.notify(Server, PathEvent::Hops(8));
    pair.drive();
    pair.write(Client, 400 * MSS);
    pair.drive();
    assert_eq!(pair.server.read, 400 * MSS);
    assert_eq!(most_outstanding(&pair), 3);
}

use weir_transport::{Config, Flags, Segment};
use weir_units::{Bytes, Duration};

use super::pair::Side::{Client, Server};
use super::pair::{Pair, RTT, Reading, Verdict};
use super::{has_data, is_pure_ack, with_stack};

const BUFFER: u64 = 64 << 10;

/// The server's application does not read; its buffer is full.
fn full() -> Pair {
    let config = Config { recv_buffer: Bytes(BUFFER), ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    pair.server.reading = Reading::Manual;
    pair.write(Client, 1_000_000);
    pair.drive_for(Duration::from_secs(10));
    pair
}

#[test]
fn a_receiver_is_never_sent_more_than_it_can_hold() {
    let pair = full();
    let readable = pair.server.connection.readable();
    assert!(readable <= BUFFER, "{readable}");
    assert!(readable > BUFFER / 2, "and the buffer is put to use: {readable}");
}

#[test]
fn a_closed_window_is_probed_ever_more_slowly() {
    let mut pair = full();
    pair.drive_for(Duration::from_secs(50));
    let stats = pair.client.connection.stats();
    assert!(stats.window_probes >= 5, "{stats:?}");
    assert_eq!(stats.timeouts, 0, "probing is no loss: {stats:?}");
    assert!(stats.rwnd_limited > Duration::from_secs(50), "{stats:?}");
    let probes: Vec<_> = pair.log.iter().rev().filter(|p| p.from == Client).take(5).collect();
    let gaps: Vec<u64> = probes.windows(2).map(|w| (w[0].at - w[1].at).as_millis()).collect();
    // Each wait begins with the answer to the probe before (Linux's `tcp_ack_probe`).
    let rtt = RTT.as_millis();
    assert!(gaps.windows(2).all(|w| w[0] - rtt == 2 * (w[1] - rtt)), "newest first: {gaps:?}");
}

#[test]
fn an_unread_receiver_may_stay_closed_for_ever() {
    let mut pair = full();
    pair.drive_for(Duration::from_secs(20_000));
    assert!(
        !pair.client.connection.is_closed(),
        "the peer answers, so it lives (RFC 9293 §3.8.6.1)"
    );
    pair.server.reading = Reading::Eager;
    pair.read(Server, u64::MAX);
    pair.drive();
    assert_eq!(pair.server.read, 1_000_000);
}

#[test]
fn reading_opens_the_window_at_once() {
    let mut pair = full();
    let before = pair.now;
    pair.server.reading = Reading::Eager;
    pair.drive();
    assert_eq!(pair.server.read, 1_000_000);
    let resumed = pair.log.iter().find(|p| p.at > before && p.from == Client && has_data(p));
    let waited = resumed.expect("sent").at - before;
    assert_eq!(waited, super::pair::ONE_WAY, "the update, not the next probe, resumes");
}

/// What the driver sets is offered at once, also where the peer waits for it, and never taken back.
#[test]
fn a_driver_sets_the_window() {
    const SMALL: u64 = 32 << 10;
    // The window travels in units of 2 KiB, rounded up, with each acknowledgement as far as a sixteenth allows.
    let fills = |pair: &Pair, window: u64| {
        pair.server.connection.readable().abs_diff(window) < window / 16 + 2_048
    };
    let mut pair = Pair::new(&with_stack("rack/none(1000)"));
    pair.server.connection.set_recv_window(Bytes(SMALL));
    pair.server.reading = Reading::Manual;
    pair.write(Client, 1_000_000);
    pair.drive_for(Duration::from_secs(10));
    assert!(fills(&pair, SMALL));
    let before = pair.now;
    pair.server.connection.set_recv_window(Bytes(4 * SMALL));
    pair.drive_for(RTT * 3);
    let update = pair.log.iter().find(|p| p.at >= before && p.from == Server).expect("announced");
    assert_eq!(update.at, before);
    assert!(fills(&pair, 4 * SMALL));
    pair.server.connection.set_recv_window(Bytes(SMALL));
    pair.server.reading = Reading::Eager;
    pair.read(Server, u64::MAX);
    pair.drive();
    assert_eq!(pair.server.read, 1_000_000);
    assert!(pair.client.connection.snapshot().send_window < Bytes(SMALL + 2_048));
}

/// What the receiver offers after 5 MB of a sender that its window alone bounds.
fn last_offer(config: &Config) -> u64 {
    let mut pair = Pair::connected(config);
    pair.write(Client, 5_000_000);
    pair.drive();
    assert_eq!(pair.server.read, 5_000_000);
    pair.client.connection.snapshot().send_window.get()
}

#[test]
fn a_buffer_grows_up_to_its_largest_size() {
    const LARGEST: u64 = 512 << 10;
    let fixed = Config { recv_buffer: Bytes(BUFFER), ..with_stack("rack/none(1000)") };
    let growing = Config { max_recv_buffer: Some(Bytes(LARGEST)), ..fixed.clone() };
    let without_timestamps = Config { timestamps: false, ..growing.clone() };
    // An offer grows by whole segments (RFC 9293 §3.8.6.2.2), and travels in units of up to 16 bytes.
    let most = |buffer: u64| buffer - 1_448 - 16..=buffer;
    let offers = [fixed, growing, without_timestamps].map(|config| last_offer(&config));
    assert!(most(BUFFER).contains(&offers[0]), "{offers:?}");
    assert!(offers[1..].iter().all(|offer| most(LARGEST).contains(offer)), "{offers:?}");
}

#[test]
fn a_buffer_does_not_grow_for_an_application_that_reads_nothing() {
    let config = Config {
        recv_buffer: Bytes(BUFFER),
        max_recv_buffer: Some(Bytes(8 * BUFFER)),
        ..with_stack("rack/none(1000)")
    };
    let mut pair = Pair::connected(&config);
    pair.server.reading = Reading::Manual;
    pair.write(Client, 1_000_000);
    pair.drive_for(Duration::from_secs(10));
    // Windows travel in units of 16 bytes, rounded up with each acknowledgement as far as a sixteenth allows.
    assert!(pair.server.connection.readable() < BUFFER + BUFFER / 16 + 16);
}

#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let mut pair = full();
    pair.lose_first(|p| p.from == Server && is_pure_ack(p));
    pair.server.reading = Reading::Eager;
    pair.drive();
    assert_eq!(pair.server.read, 1_000_000);
}

/// RFC 9293 §3.8.6.2: windows open in large steps, so that no sender sends slivers.
#[test]
fn a_slow_reader_does_not_cause_small_segments() {
    let mut pair = full();
    pair.log.clear();
    for _ in 0..2_000 {
        pair.read(Server, 100);
        pair.drive_for(Duration::from_millis(50));
    }
    let data: Vec<u32> =
        pair.log.iter().filter(|p| has_data(p)).map(|p| p.segment.payload_len).collect();
    let mean = data.iter().sum::<u32>() / data.len() as u32;
    assert!(mean > 1_448 / 2, "{mean} bytes in the mean of {}", data.len());
}

#[test]
fn the_window_scales_beyond_sixteen_bits() {
    let config = Config { recv_buffer: Bytes(4 << 20), ..with_stack("sack/none(2000)") };
    let mut pair = Pair::connected(&config);
    pair.write(Client, 20_000_000);
    pair.drive_for(RTT * 8);
    let in_flight = pair.client.connection.snapshot().bytes_in_flight;
    assert!(in_flight > Bytes(1_000_000), "{in_flight:?}");
    pair.drive();
    assert_eq!(pair.server.read, 20_000_000);
}

/// Linux's tcp_grow_window: two segments for each that arrives, out of order too, and each such arrival is
/// acknowledged at once.
#[test]
fn the_offer_grows_by_twice_what_arrives_even_out_of_order() {
    let mut pair = Pair::connected(&with_stack("rack/none(20)"));
    pair.lose_nth(20, has_data);
    pair.write(Client, 60 * 1_448);
    pair.drive();
    let acks: Vec<_> =
        pair.log.iter().filter(|p| p.from == Server && is_pure_ack(p)).map(|p| p.segment).collect();
    let offers: Vec<u32> = acks.iter().map(|ack| u32::from(ack.window)).collect();
    let stuck: Vec<u32> = acks
        .iter()
        .zip(&offers)
        .filter(|(ack, _)| ack.ack == acks[20].ack)
        .map(|(_, offer)| *offer)
        .collect();
    // One for the last in order, then one for each beyond the hole: the window and what limited
    // transmit and the recovery's start add.
    let beyond = stuck.len() as u32 - 1;
    assert!((19..=21).contains(&beyond), "{beyond}");
    // In units of 2^11 bytes.
    let grown = (stuck[stuck.len() - 1] - stuck[0]) << 11;
    assert!(grown.abs_diff(beyond * 2 * 1_448) <= 1 << 12, "{grown} bytes, {stuck:?}");
}

#[test]
fn the_longest_wait_begins_with_the_first_probe_answered_or_not() {
    let max_wait = Duration::from_secs(3);
    let config =
        Config { recv_buffer: Bytes(BUFFER), max_wait: Some(max_wait), ..with_stack("sack/reno") };
    let mut pair = Pair::connected(&config);
    pair.server.reading = Reading::Manual;
    pair.write(Client, 1_000_000);
    pair.drive();
    assert!(pair.client.connection.is_closed());
    let probe =
        pair.log.iter().find(|p| p.from == Client && is_pure_ack(p) && p.segment.seq_len() == 0);
    let probe = probe.expect("a probe").at;
    let reset = pair.log.iter().rev().find(|p| p.from == Client).expect("a reset");
    assert!(reset.segment.flags.contains(Flags::RST));
    assert_eq!(reset.at, probe + max_wait);
}

/// A window that was taken back with data out: each repetition is answered, so the peer lives (RFC 9293 §3.8.6.1).
#[test]
fn a_window_taken_back_does_not_end_a_connection_that_is_answered() {
    let mut pair = Pair::connected(&with_stack("sack/reno"));
    pair.network(|p| if has_data(p) { Verdict::Drop } else { Verdict::Deliver });
    pair.write(Client, 1_000);
    pair.drive_for(Duration::from_millis(1));
    let first = pair.log.last().expect("sent").segment;
    for _ in 0..2_000 {
        pair.drive_for(Duration::from_secs(1));
        let ack = Segment {
            seq: first.ack,
            ack: first.seq,
            flags: Flags::ACK,
            payload_len: 0,
            window: 0,
            ..first
        };
        let (now, client) = (pair.now, &mut pair.client.connection);
        client.handle_segment(now, &ack, weir_units::Ecn::NotEct);
    }
    assert!(!pair.client.connection.is_closed());
    assert!(pair.client.connection.stats().timeouts > 15);
}

/// An application that writes 64 KiB at a time has the middle of each write pushed, and the end of all.
#[test]
fn pushes_stand_where_linux_puts_them() {
    let mut pair = Pair::connected(&with_stack("rack/none(20)"));
    pair.write(Client, 200_000);
    pair.drive();
    let pushes: Vec<u64> = pair
        .log
        .iter()
        .filter(|p| p.from == Client && p.segment.flags.contains(Flags::PSH))
        .map(|p| p.offset / 1_448)
        .collect();
    assert_eq!(pushes, [32_768 / 1_448, 98_304 / 1_448, 163_840 / 1_448, 199_999 / 1_448]);
}

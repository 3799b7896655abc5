//! Sequence numbers have 32 bits; streams do not end there.

use weir_transport::{Config, Connection};
use weir_units::{Bytes, Duration, Ecn, Instant, stream};

use super::pair::Side::Client;
use super::pair::{Pair, Verdict};
use super::{has_data, with_stack};

/// A random stream from which the client draws a number just below 2^32.
fn stream_near_the_end() -> String {
    let near = |name: &String| stream(1, name).next_u32() > u32::MAX - 50_000;
    (0..).map(|n| format!("client {n}")).find(near).expect("one in 86 000")
}

#[test]
fn numbers_start_over_in_the_middle_of_a_window() {
    let name = stream_near_the_end();
    for stack in ["go-back-n(20)/none", "selective-repeat(20)/none", "newreno/reno", "rack/cubic"] {
        let config = with_stack(stack);
        let mut pair = Pair::drawing(&config, &config, &name);
        let mut n = 0;
        pair.network(move |p| {
            n += u32::from(has_data(p));
            if has_data(p) && n % 9 == 0 { Verdict::Drop } else { Verdict::Deliver }
        });
        pair.write(Client, 200_000);
        pair.close(Client);
        pair.drive();
        assert_eq!(pair.server.read, 200_000, "{stack}");
        assert!(pair.client.connection.is_closed(), "{stack}");
        let sent: Vec<u32> =
            pair.log.iter().filter(|p| p.from == Client).map(|p| p.segment.seq.0).collect();
        let (highest, lowest) = (sent.iter().max(), sent.iter().min());
        assert!(highest > Some(&(u32::MAX - 50_000)) && lowest < Some(&200_000), "{stack}");
    }
}

/// Six gigabytes, without bytes: only the connections' own accounts.
#[test]
fn a_stream_is_longer_than_the_numbers_are_wide() {
    let config = Config { mss: 60_000, recv_buffer: Bytes(16 << 20), ..with_stack("rack/cubic") };
    let length = 6_000_000_000;
    let mut now = Instant::ZERO;
    let mut client = Connection::connect(&config, now, stream(1, "client"));
    let mut server = Connection::listen(&config, stream(1, "server"));
    client.write(now, length);
    let mut read = 0;
    while read < length {
        now += Duration::from_millis(1);
        client.handle_timeout(now);
        server.handle_timeout(now);
        while let Some(sent) = client.poll_transmit(now) {
            if let Some(arrived) = server.handle_segment(now, &sent.segment, Ecn::NotEct) {
                assert_eq!(arrived.offset, sent.offset + u64::from(arrived.skip));
            }
        }
        read += server.read(now, u64::MAX);
        while let Some(sent) = server.poll_transmit(now) {
            client.handle_segment(now, &sent.segment, Ecn::NotEct);
        }
        assert!(now < Instant::ZERO + Duration::from_secs(600), "stuck at {read}");
    }
    assert_eq!(read, length);
    assert_eq!(client.stats().retransmits, 0);
}

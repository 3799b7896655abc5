//! Flows of UDP and QUIC.

use weir_analyse::UdpRow;

use crate::script::{End, Script};

const INITIAL: [u8; 5] = [0xc3, 0, 0, 0, 1];
const ONE_WAY_MS: u32 = 20;

/// What the two ends do with the spin bit.
#[derive(Clone, Copy)]
enum Spin {
    /// The client inverts it, the server copies it.
    Used,
    /// The bit in each packet, by its number.
    Set(fn(u32) -> bool),
}

/// QUIC as captured at the client: it sends every 2 ms and its server every millisecond, for 2 s.
fn quic(first: &[u8], spin: Spin) -> Script {
    let mut script = Script::empty();
    script.datagram(0.0, End::Client, 5_000, first, 1_200);
    script.datagram(40.0, End::Server, 5_000, first, 1_200);
    // The bits as the two ends sent them, a millisecond each.
    let (mut client, mut server): (Vec<bool>, Vec<bool>) = (Vec::new(), Vec::new());
    for time in 0..2_000_usize {
        let before = |sent: &[bool]| {
            time.checked_sub(ONE_WAY_MS as usize)
                .is_some_and(|at| sent.get(at).is_some_and(|bit| *bit))
        };
        let (ours, theirs) = (!before(&server), before(&client));
        client.push(ours);
        server.push(theirs);
        let bit = |used: bool| match spin {
            Spin::Used => used,
            Spin::Set(of) => of(time as u32),
        };
        let head = |used: bool| [0x40 | u8::from(bit(used)) << 5];
        let at = 100.0 + time as f64;
        if time.is_multiple_of(2) {
            script.datagram(at, End::Client, 5_000, &head(ours), 50);
        }
        script.datagram(at + f64::from(ONE_WAY_MS), End::Server, 5_000, &head(theirs), 1_250);
    }
    script
}

fn only(script: &Script) -> UdpRow {
    let mut rows = script.tables().udp_flows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn the_spin_bit_shows_the_round_trip() {
    let row = only(&quic(&INITIAL, Spin::Used));
    assert_eq!((row.client.as_str(), row.server.as_str()), ("10.0.0.1:5000", "10.0.0.2:443"));
    assert_eq!(row.protocol, "QUIC 1");
    assert_eq!((row.client_packets, row.server_packets), (1_001, 2_001));
    assert_eq!((row.client_bytes, row.server_bytes), (51_200, 2_501_200));
    assert_eq!(row.datagram_bytes_max, 1_250);
    assert_eq!(row.first_answer_ms, Some(40.0));
    assert_eq!((row.spin_rtt_ms_min, row.spin_rtt_ms_p50), (Some(40.0), Some(40.0)));
    assert!((45..50).contains(&row.spin_samples), "{row:?}");
    // 2,501,200 bytes in 2.119 s.
    let rate = row.server_mbps.expect("a rate");
    assert!((rate - 2.501_2 * 8.0 / 2.119).abs() < 1e-9, "{rate}");
}

#[test]
fn a_bit_that_is_random_or_constant_shows_no_round_trip() {
    // By the bits of a multiplicative hash.
    let random = |number: u32| number.wrapping_mul(2_654_435_761) >> 31 == 1;
    for spin in [Spin::Set(|_| false), Spin::Set(|_| true), Spin::Set(random)] {
        let row = only(&quic(&INITIAL, spin));
        assert_eq!((row.spin_rtt_ms_min, row.spin_samples), (None, 0), "{row:?}");
        assert_eq!(row.protocol, "QUIC 1");
    }
}

#[test]
fn a_packet_that_overtakes_a_change_is_no_round_trip() {
    let mut script = quic(&INITIAL, Spin::Used);
    // Its bit is that of a millisecond ago: the server's bit is 1 from 140 to 180 ms.
    script.datagram(140.5, End::Server, 5_000, &[0x40], 1_250);
    let row = only(&script);
    let least = row.spin_rtt_ms_min.expect("a round trip");
    assert!((39.0..=40.0).contains(&least), "{row:?}");
}

#[test]
fn what_does_not_begin_with_a_known_version_is_udp() {
    let names = [
        (&[0xc3, 0, 0, 0, 1][..], "QUIC 1"),
        (&[0xd3, 0x6b, 0x33, 0x43, 0xcf], "QUIC 2"),
        (&[0xc3, 0xff, 0, 0, 29], "QUIC draft 29"),
        (&[0xc3, 0xfa, 0xce, 0xb0, 0x02], "QUIC mvfst 2"),
        (&[0xc3, b'Q', b'0', b'5', b'0'], "QUIC Google Q050"),
        (&[0x09, 1, 2, 3, 4, 5, 6, 7, 8, b'Q', b'0', b'4', b'3'], "QUIC Google Q043"),
        (&[0xc3, 0x0a, 0x0a, 0x0a, 0x0a], "UDP"),
        (&[0x83, 0, 0, 0, 1], "UDP"),
        (&[0xc3, 0, 0], "UDP"),
        (&[], "UDP"),
    ];
    for (first, name) in names {
        let row = only(&quic(first, Spin::Used));
        assert_eq!(row.protocol, name, "{first:?}");
        assert_eq!(row.spin_samples > 0, name != "UDP", "{first:?}");
    }
}

#[test]
fn of_too_many_flows_the_largest_are_kept() {
    let mut script = quic(&INITIAL, Spin::Used);
    for port in 10_000..15_000 {
        script.datagram(f64::from(port), End::Client, port, &[], 100);
    }
    let tables = script.tables();
    assert_eq!(tables.udp_flows.len(), 2_000);
    assert_eq!(tables.counts.dropped_udp_flows, 3_001);
    assert_eq!(tables.udp_flows[0].protocol, "QUIC 1");
    assert_eq!(tables.udp_flows[1].flow, 1);
    assert!(tables.udp_flows.iter().skip(1).all(|row| row.client_bytes == 100));
}

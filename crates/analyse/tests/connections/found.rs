//! Captures as others make them: copies, clocks that are set, one direction, tunnels, fragments, blocks of old files.

use std::io::Cursor;
use std::ops::ControlFlow;

use weir_analyse::{Reading, Tables};

use crate::script::{Fields, MSS, Script};

/// A transfer over 40 ms that loses nothing.
fn transfer() -> Script {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..100 {
        script.data(50.0 + 2.0 * f64::from(number), number);
        script.ack(90.0 + 2.0 * f64::from(number), number + 1, &[]);
    }
    script
}

fn read(file: &[u8]) -> Tables {
    let mut reading = Reading::default();
    let cut = reading.read("test", Cursor::new(file), || ControlFlow::Continue(()));
    assert_eq!(cut.expect("a capture"), None);
    reading.finish()
}

/// A capture of Ethernet as pcap: seconds, nanoseconds and bytes from the IP header on, with the length there.
fn pcap(packets: &[(u64, u64, Vec<u8>, u32)]) -> Vec<u8> {
    let mut file = Vec::new();
    [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101]
        .into_iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    for (seconds, nanos, bytes, len) in packets {
        for word in [*seconds as u32, *nanos as u32, bytes.len() as u32, *len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(bytes);
    }
    file
}

/// The packets of a script from `start` seconds on; `shift` moves each by seconds.
fn timed(script: &Script, start: u64, shift: impl Fn(usize) -> i64) -> Vec<u8> {
    let mut packets: Vec<_> = script.packets().iter().collect();
    packets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let timed: Vec<_> = packets
        .iter()
        .enumerate()
        .map(|(number, (at, bytes, len))| {
            let nanos = (at * 1e6) as u64;
            let seconds = (start + nanos / 1_000_000_000).saturating_add_signed(shift(number));
            (seconds, nanos % 1_000_000_000, bytes.clone(), *len)
        })
        .collect();
    pcap(&timed)
}

#[test]
fn copies_of_packets_count_once() {
    let expected = transfer().identified(0).row();
    // Of two interfaces, of both sides of a port, and before and after a router that holds packets.
    for (late, hops) in [(0.005, 0), (0.4, 0), (30.0, 1)] {
        let twice = transfer().identified(0).and(&transfer().identified(hops), late);
        let row = twice.row();
        assert_eq!((row.retransmits, row.sent_bytes), (0, expected.sent_bytes), "{late}");
        assert_eq!(row.duplicate_packets, expected.packets, "{late}");
        assert_eq!(row.rtt_ms_min, expected.rtt_ms_min);
        assert_eq!(row.limited_random_loss, Some(0.0));
    }
}

/// A repetition has the segment of the first transmission and another identification.
#[test]
fn a_repetition_is_no_copy() {
    let mut script = Script::connected(40.0, 0.1);
    script.data(50.0, 0);
    script.ack(90.0, 1, &[]);
    script.data(91.0, 1);
    script.data(91.0 + 250.0, 1);
    script.ack(390.0, 2, &[]);
    let row = script.identified(0).row();
    assert_eq!((row.retransmits, row.duplicate_packets), (1, 0));
}

/// Some middleboxes write the same identification into all packets.
#[test]
fn a_constant_identification_shows_no_copies() {
    let mut script = transfer();
    script.data(400.0, 5);
    let constant = |script: &Script| {
        let packets = script.packets().iter().map(|(at, bytes, len)| {
            let mut bytes = bytes.clone();
            bytes[4..6].copy_from_slice(&[0, 7]);
            (1_000, (at * 1e6) as u64, bytes, *len)
        });
        let mut packets: Vec<_> = packets.collect();
        packets.sort_by_key(|packet| packet.1);
        pcap(&packets)
    };
    let row = read(&constant(&script)).connections.remove(0);
    assert_eq!((row.retransmits, row.duplicate_packets), (1, 0));
}

/// A packet from before the clock had its date is another flow's, and moves no other time.
#[test]
fn a_packet_of_1970_moves_no_other() {
    let expected = transfer().row();
    let mut other = Script::empty();
    other.datagram(0.0, crate::script::End::Client, 40_000, &[], 100);
    let first = other.packets()[0].clone();
    let rest = timed(&transfer(), 1_795_000_000, |_| 0);
    let mut file = pcap(&[(5, 0, first.1, first.2)]);
    file.extend(&rest[24..]);
    let tables = read(&file);
    let row = &tables.connections[0];
    assert_eq!((row.duration_s, row.rtt_ms_min), (expected.duration_s, expected.rtt_ms_min));
    assert_eq!((tables.udp_flows.len(), tables.counts.clock_steps), (1, 0));
}

/// Also of one connection, whose capture begins before the clock has its date.
#[test]
fn a_clock_that_is_set_does_not_stop_time() {
    let expected = transfer().row();
    for shift in [-2, -3_600, 50 * 365 * 24 * 3_600] {
        let file = timed(&transfer(), 200_000_000, |number| if number < 90 { 0 } else { shift });
        let tables = read(&file);
        let row = &tables.connections[0];
        assert!((row.duration_s - expected.duration_s).abs() < 0.005, "{shift} {}", row.duration_s);
        // A round trip during which the clock is set loses what passed since the packet before.
        assert!((37.9..41.0).contains(&row.rtt_ms_min.expect("samples")), "{shift}");
        assert_eq!((row.retransmits, tables.counts.clock_steps), (0, 1), "{shift}");
    }
}

#[test]
fn one_direction_has_no_verdict() {
    let row = transfer().only(|_, of_client| of_client).row();
    assert_eq!((row.limit, row.goodput_mbps, row.rtt_ms_min), (None, None, None));
    assert_eq!((row.sent_bytes, row.delivered_bytes), (u64::from(100 * MSS), 0));
    assert!(row.limit_note.expect("a reason").contains("only one direction"));
    assert_eq!(row.controller.as_deref(), Some("unknown"));
}

/// The receiver answers data within 0.05 ms, and its own request took 40 ms to be acknowledged.
#[test]
fn a_capture_at_the_receiver_is_recognised_without_a_handshake() {
    let mut script = Script::empty();
    let fields = |seq, ack, payload| Fields {
        seq,
        ack,
        payload,
        flags: 16,
        window: 2_000,
        ..Fields::default()
    };
    script.server(0.0, &fields(1, 1, 50));
    for number in 0..60 {
        let (at, seq) = (40.0 + f64::from(number), 1 + number * MSS);
        script.client(at, &fields(seq, 51, MSS));
        script.server(at + 0.05, &fields(51, seq + MSS, 0));
    }
    let row = script.row();
    assert_eq!((row.sender, row.capture_point), ("server", "receiver"));
    assert_eq!((row.rtt_ms_min, row.limit), (None, None));
    assert!(row.limit_note.expect("a reason").contains("at the receiver"));
}

/// A window of nothing needs no scale: 20 s of probes are those of the receiver.
#[test]
fn a_closed_window_limits_without_a_handshake() {
    let mut script = Script::empty();
    let plain = Fields { flags: 16, window: 2_000, ..Fields::default() };
    script.client(0.0, &Fields { seq: 1, ack: 1, payload: MSS, ..plain.clone() });
    let closed = Fields { seq: 1, ack: 1 + MSS, window: 0, ..plain.clone() };
    script.server(40.0, &closed);
    for probe in 1..5 {
        let at = 5_000.0 * f64::from(probe);
        script.client(at, &Fields { seq: MSS, ack: 1, ..plain.clone() });
        script.server(at + 40.0, &closed);
    }
    let row = script.row();
    assert_eq!((row.limit, row.zero_windows), (Some("receiver-window"), 5));
    assert!(row.limited_receiver_window > Some(0.95));
}

/// The peer is gone in the middle of a transfer: the timer doubles until the sender gives up.
#[test]
fn a_peer_that_is_gone_is_no_random_loss() {
    let mut script = transfer();
    script.data(300.0, 100);
    let mut at = 300.0;
    for retry in 0..8 {
        at += 240.0 * f64::from(1 << retry);
        script.data(at, 100);
    }
    let row = script.row();
    assert_eq!(row.limit, Some("no-answer"));
    assert!(row.limited_no_answer > Some(0.95), "{:?}", row.limited_no_answer);
    assert!(row.limited_random_loss < Some(0.01));
}

/// What is below the first number was sent before the capture began, and is repeated.
#[test]
fn segments_below_the_first_number_count() {
    let mut script = Script::empty();
    let fields = |seq, payload| Fields {
        seq,
        ack: 1,
        payload,
        flags: 16,
        window: 2_000,
        ..Fields::default()
    };
    for number in 10..20 {
        script.client(f64::from(number), &fields(1 + number * MSS, MSS));
    }
    script.client(30.0, &fields(1 + 5 * MSS, MSS));
    script.server(60.0, &Fields { ack: 1 + 20 * MSS, seq: 1, ..fields(1, 0) });
    let row = script.row();
    assert_eq!((row.data_packets, row.sent_bytes), (11, u64::from(11 * MSS)));
}

/// Every data packet comes in two fragments of IP.
#[test]
fn fragments_are_one_packet() {
    let expected = transfer().identified(0).row();
    let mut packets = Vec::new();
    for (at, bytes, len) in transfer().identified(0).packets() {
        let nanos = (at * 1e6) as u64;
        if *len < 1_000 {
            packets.push((1_000, nanos, bytes.clone(), *len));
            continue;
        }
        let part = |from: u16, to: u32, more: bool| {
            let (mut bytes, len) = (bytes.clone(), to - u32::from(from) + 20);
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            let field = (from / 8) | if more { 0x2000 } else { 0 };
            bytes[6..8].copy_from_slice(&field.to_be_bytes());
            (1_000, nanos, if from == 0 { bytes } else { bytes[..20].to_vec() }, len)
        };
        packets.extend([part(0, 800, true), part(800, len - 20, false)]);
    }
    packets.sort_by_key(|packet| packet.1);
    let tables = read(&pcap(&packets));
    let row = &tables.connections[0];
    assert_eq!((row.sent_bytes, row.unseen_bytes), (expected.sent_bytes, 0));
    assert_eq!(row.limited_application, expected.limited_application);
    assert_eq!(tables.counts.fragments, 100);
    // Without the last fragments nothing is known of a packet, and that is said.
    packets.retain(|(_, _, bytes, _)| bytes.len() > 20);
    let tables = read(&pcap(&packets));
    assert!(
        tables
            .counts
            .unread
            .named()
            .iter()
            .any(|(name, count)| { name.contains("fragments") && *count == 100 })
    );
}

/// A packet inside another: GRE, IP in IP, VXLAN.
#[test]
fn tunnels_are_looked_into() {
    let expected = transfer().row();
    let outer = |protocol: u8, header: &[u8]| {
        let script = transfer();
        let packets = script.packets().iter().map(|(at, bytes, len)| {
            let whole = len + 20 + header.len() as u32;
            let mut outer = vec![0x45, 0, (whole >> 8) as u8, whole as u8];
            outer.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
            outer.extend(header);
            outer.extend(bytes);
            (1, (at * 1e6) as u64, outer, whole)
        });
        let mut packets: Vec<_> = packets.collect();
        packets.sort_by_key(|packet| packet.1);
        pcap(&packets)
    };
    let mut vxlan = vec![0x30, 0, 0x12, 0xb5, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 9, 0];
    vxlan.extend([&[0; 12][..], &[0x08, 0x00]].concat());
    let tunnels: [(u8, &[u8]); 4] = [
        (4, &[]),
        (47, &[0, 0, 0x08, 0x00]),
        (47, &[0x20, 0, 0x08, 0x00, 0, 0, 0, 1]),
        (17, &vxlan),
    ];
    for (protocol, header) in tunnels {
        let tables = read(&outer(protocol, header));
        assert_eq!(tables.connections.len(), 1, "{protocol}");
        assert_eq!(tables.connections[0].sent_bytes, expected.sent_bytes);
        assert!(tables.udp_flows.is_empty());
    }
}

/// What is not read is named and counted.
#[test]
fn what_is_not_read_has_a_name() {
    let ip = |protocol: u8, bytes: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(bytes);
        (1, 0, packet, 60)
    };
    let tables =
        read(&pcap(&[ip(1, &[]), ip(6, &[0; 10]), ip(132, &[]), ip(132, &[]), ip(6, &[])]));
    let found = tables.counts.unread.named();
    let named: Vec<_> = found.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    assert_eq!(named, [("SCTP", 2), ("too little of the packet was kept", 2), ("ICMP", 1)]);
    assert_eq!(tables.counts.other_packets, 5);
}

/// pcapng as programs wrote it before 2009, and packets without times.
#[test]
fn old_and_simple_blocks_are_read_or_named() {
    let expected = transfer().row();
    for (kind, is_big_endian) in [(2u32, false), (2, true), (3, false)] {
        let word = |value: u32| {
            if is_big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
        };
        let block = |kind: u32, body: Vec<u8>| {
            let len = 12 + body.len() as u32;
            [&word(kind)[..], &word(len), &body, &word(len)].concat()
        };
        let version = if is_big_endian { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
        let mut file = block(0x0a0d_0d0a, [&word(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat());
        let link = if is_big_endian { [0, 101, 0, 0] } else { [101, 0, 0, 0] };
        file.extend(block(1, [&link[..], &word(0)].concat()));
        let script = transfer();
        let mut packets: Vec<_> = script.packets().iter().collect();
        packets.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at, bytes, len) in packets {
            let micros = 1_000_000 + (at * 1e3) as u64;
            let mut body = Vec::new();
            if kind == 2 {
                let parts = [(micros >> 32) as u32, micros as u32, bytes.len() as u32, *len];
                body.extend(word(0));
                parts.into_iter().for_each(|part| body.extend(word(part)));
            } else {
                body.extend(word(*len));
            }
            body.extend(bytes);
            body.resize(body.len().next_multiple_of(4), 0);
            file.extend(block(kind, body));
        }
        let tables = read(&file);
        assert_eq!(tables.counts.packets, 203);
        if kind == 2 {
            assert_eq!(tables.connections[0].delivered_bytes, expected.delivered_bytes);
        } else {
            assert!(tables.connections.is_empty());
            assert!(tables.counts.unread.named()[0].0.contains("without a time"));
        }
    }
}

/// RFC 1761.
#[test]
fn captures_of_snoop_are_read() {
    let expected = transfer().row();
    let mut file = b"snoop\0\0\0\0\0\0\x02\0\0\0\x04".to_vec();
    let script = transfer();
    let mut packets: Vec<_> = script.packets().iter().collect();
    packets.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (at, bytes, len) in packets {
        let (kept, padding) = (bytes.len() as u32 + 14, 3);
        let micros = (at * 1e3) as u32;
        for word in [len + 14, kept, 24 + kept + padding, 0, 1, micros] {
            file.extend(word.to_be_bytes());
        }
        file.extend([&[0; 12][..], &[0x08, 0x00], bytes, &[0; 3]].concat());
    }
    let tables = read(&file);
    assert_eq!(tables.connections[0].sent_bytes, expected.sent_bytes);
    assert_eq!(tables.connections[0].rtt_ms_min, expected.rtt_ms_min);
}

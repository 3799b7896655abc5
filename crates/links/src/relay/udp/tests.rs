//! A relay on real sockets: packets of any sender come out as the path says.

use std::net::UdpSocket;

use weir_net::{DropList, Impairments, LinkConfig, Numbering};
use weir_units::Ratio;

use super::super::background::Background;
use super::*;

const LOOPBACK: &str = "127.0.0.1:0";

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    socket
}

fn spec(to: &UdpSocket, up: LinkConfig, down: LinkConfig) -> RelaySpec {
    let link = |name: &str, config| HostedLink { name: name.to_owned(), config };
    RelaySpec {
        listen: LOOPBACK.parse().unwrap(),
        to: to.local_addr().unwrap(),
        links: vec![link("up", up), link("down", down)],
        route: Route { up: vec![0], down: vec![1] },
        corrupt_bits: 1,
        seed: 1,
        clients: 2,
        idle: Duration::from_secs(60),
    }
}

fn start(spec: RelaySpec) -> (SocketAddr, Background) {
    let relay = UdpRelay::bind(spec).unwrap();
    (relay.local_addr(), Background::start(relay))
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 70_000];
    let (len, from) = socket.recv_from(&mut buffer).unwrap();
    buffer.truncate(len);
    (buffer, from)
}

#[test]
fn each_client_gets_its_own_answers_and_boundaries_are_kept() {
    let server = socket();
    let (at, work) = start(spec(&server, LinkConfig::default(), LinkConfig::default()));
    let clients = [socket(), socket()];
    for (number, client) in clients.iter().enumerate() {
        // Equal lengths travel in batches; the others must not be joined with them.
        for len in [1_200, 1_200, 1_200, 300, 0, 9_000, 60_000] {
            client.send_to(&vec![number as u8; len], at).unwrap();
            let (bytes, from) = receive(&server);
            assert_eq!(bytes, vec![number as u8; len]);
            server.send_to(&bytes, from).unwrap();
            assert_eq!(receive(client), (bytes, at));
        }
    }
    let report = work.stop().unwrap();
    assert_eq!(
        (report.clients, report.up.received, report.up.sent, report.down.sent),
        (2, 14, 14, 14)
    );
    assert_eq!(report.up.unintended.total() + report.down.unintended.total(), 0);
    assert_eq!(report.up.received_bytes, 2 * (3 * 1_200 + 300 + 9_000 + 60_000));
}

/// What is due together leaves with one call, and arrives as it was sent.
#[test]
fn a_burst_keeps_lengths_and_order() {
    let server = socket();
    let delay = Duration::from_millis(20).into();
    let up = LinkConfig { delay, ..LinkConfig::default() };
    let (at, work) = start(spec(&server, up, LinkConfig::default()));
    let client = socket();
    let lens =
        [500, 500, 500, 200, 500, 0, 0, 500, 900, 900, 1, 1, 1_452, 1_452, 30_000, 30_000, 30_000];
    for (number, len) in lens.iter().enumerate() {
        client.send_to(&vec![number as u8; *len], at).unwrap();
    }
    for (number, len) in lens.iter().enumerate() {
        assert_eq!(receive(&server).0, vec![number as u8; *len], "datagram {number}");
    }
    assert_eq!(work.stop().unwrap().up.sent, lens.len() as u64);
}

#[test]
fn the_path_does_what_it_does_in_the_simulator() {
    let server = socket();
    let drops = vec![DropList { counts: Numbering::Any, numbers: vec![2, 5] }];
    let impairments =
        Impairments { drops, corrupt: Ratio::ONE, duplicate: Ratio::ONE, ..Impairments::default() };
    let up =
        LinkConfig { impairments, delay: Duration::from_millis(5).into(), ..LinkConfig::default() };
    let (at, work) = start(spec(&server, up, LinkConfig::default()));
    let client = socket();
    let began = clock::now();
    for number in 1..=6u8 {
        client.send_to(&[number << 4; 64], at).unwrap();
    }
    let mut arrived: Vec<u8> = Vec::new();
    for _ in 0..8 {
        let (bytes, _) = receive(&server);
        let number = bytes
            .iter()
            .map(|byte| byte >> 4)
            .max_by_key(|n| bytes.iter().filter(|b| *b >> 4 == *n).count());
        arrived.extend(number);
        let flipped =
            bytes.iter().map(|byte| (byte ^ (arrived[arrived.len() - 1] << 4)).count_ones());
        assert_eq!(flipped.sum::<u32>(), 1, "one bit differs");
    }
    assert!(clock::now() - began >= Duration::from_millis(5));
    assert_eq!(arrived, [1, 1, 3, 3, 4, 4, 6, 6]);
    let report = work.stop().unwrap();
    assert_eq!((report.up.lost, report.up.corrupted, report.up.duplicated), (2, 4, 4));
}

#[test]
fn clients_beyond_the_limit_and_unknown_ones_are_counted() {
    let server = socket();
    let (at, work) = start(spec(&server, LinkConfig::default(), LinkConfig::default()));
    let clients = [socket(), socket(), socket()];
    let mut upstream = at;
    for client in &clients[..2] {
        // Enough to keep the place for the test.
        client.send_to(&[1; 60_000], at).unwrap();
        upstream = receive(&server).1;
    }
    clients[2].send_to(b"one too many", at).unwrap();
    // Who is not the server has nothing to say to a client.
    clients[2].send_to(b"forged", upstream).unwrap();
    server.send_to(b"real", upstream).unwrap();
    assert_eq!(receive(&clients[1]).0, b"real");
    while work.report().is_some_and(|report| report.up.unintended.unknown_client == 0) {}
    let report = work.stop().unwrap();
    assert_eq!(
        (report.up.unintended.unknown_client, report.down.unintended.unknown_client),
        (1, 1)
    );
    assert_eq!(report.up.sent, 2);
}

#[test]
fn an_address_in_use_is_refused_by_name() {
    let server = socket();
    let taken = socket().local_addr().unwrap();
    let holder = UdpSocket::bind(taken).unwrap();
    let mut spec = spec(&server, LinkConfig::default(), LinkConfig::default());
    spec.listen = holder.local_addr().unwrap();
    let error = UdpRelay::bind(spec).err().unwrap().to_string();
    assert!(error.contains(&taken.to_string()), "{error}");
}

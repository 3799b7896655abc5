//! Real programs' packets through emulated links. They need network namespaces and TUN devices, and are
//! ignored by default; `make test` runs them where it finds both.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration as StdDuration;

use weir_net::{DropTailConfig, Limit, LinkConfig, QueueConfig};
use weir_scene::{LinkSpec, MeasureSpec, RunSpec};
use weir_sockets::clock;
use weir_units::{Duration, Instant, Rate, Ratio};

use super::link::hosted_flow;
use super::*;
use crate::relay::{Background, HostedLink, Route};

fn namespaces() -> [Namespace; 2] {
    [(); 2].map(|()| Namespace::new().expect("a network namespace"))
}

fn link(name: &str, config: LinkConfig) -> LinkSpec {
    LinkSpec { name: name.to_owned(), config, monitored: true, one_at_a_time: false }
}

/// Works until `done` says so, for ten seconds at most, and returns what a program came to.
fn drive<T: Send + 'static>(
    emulator: &mut Emulator,
    program: impl FnOnce() -> T + Send + 'static,
) -> T {
    let program = std::thread::spawn(program);
    while !program.is_finished() {
        assert!(emulator.clock() < Instant::ZERO + Duration::from_secs(30), "it hangs");
        let until = emulator.net.now + Duration::from_millis(5);
        while emulator.net.now < until {
            emulator.step(until).unwrap();
        }
        assert_eq!(emulator.net.now, until, "time stands where the turns were to end");
        assert_eq!(emulator.net.notes.violation(), None);
    }
    program.join().unwrap()
}

const SERVER: &str = "10.77.0.2";

fn server(port: u16) -> SocketAddr {
    SocketAddr::new(SERVER.parse().unwrap(), port)
}

#[test]
#[ignore = "needs network namespaces: cargo test -p weir-links -- --ignored emulator"]
fn tcp_and_udp_take_the_ways_of_their_flows() {
    let [left, right] = namespaces();
    let delay =
        |millis| LinkConfig { delay: Duration::from_millis(millis).into(), ..Default::default() };
    let spec = RunSpec {
        radio: None,
        fabric: None,
        links: vec![link("a", delay(5)), link("b", delay(20)), link("back", delay(10))],
        flows: vec![
            hosted_flow("first", vec![0], vec![2]),
            hosted_flow("second", vec![1], vec![2]),
        ],
        measure: MeasureSpec::default(),
    };
    let options = Options { classify: Classify::ByPort { first: 6_000 }, ..Options::default() };
    let mut emulator = Emulator::open(&spec, 1, [&left, &right], &options).unwrap();

    // A TCP transfer on flow 1.
    let listener = right.run(|| TcpListener::bind(server(6_001))).unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&[7]).unwrap();
        all
    });
    let sent: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let (left, expected) = (left, sent.clone());
    let answer = drive(&mut emulator, move || {
        left.run(move || {
            let mut stream = TcpStream::connect(server(6_001)).unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = [0];
            stream.read_exact(&mut answer).unwrap();
            answer[0]
        })
    });
    assert_eq!((serving.join().unwrap(), answer), (expected, 7));
    let now = emulator.net.now;
    let delivered = |emulator: &mut Emulator, index: usize| {
        emulator.net.links[index].link.stats(now).delivered.packets
    };
    assert!(delivered(&mut emulator, 1) > 200, "data goes by flow 1's link");
    assert_eq!(delivered(&mut emulator, 0), 0, "and not by flow 0's");
    assert!(delivered(&mut emulator, 2) > 10);
    let health = emulator.health();
    assert_eq!(health.unasked_drops(), 0);
    assert!(health.lateness().samples > 200);
}

#[test]
#[ignore = "needs network namespaces: cargo test -p weir-links -- --ignored emulator"]
fn a_datagram_takes_as_long_as_the_links_on_its_way() {
    let [left, right] = namespaces();
    let there = LinkConfig { delay: Duration::from_millis(30).into(), ..Default::default() };
    let spec = RunSpec {
        radio: None,
        fabric: None,
        links: vec![link("there", there)],
        flows: vec![hosted_flow("all", vec![0], vec![])],
        measure: MeasureSpec::default(),
    };
    let mut emulator = Emulator::open(&spec, 1, [&left, &right], &Options::default()).unwrap();
    let echo = right.run(|| UdpSocket::bind(server(9))).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 2_000];
        while let Ok((len, from)) = echo.recv_from(&mut bytes) {
            echo.send_to(&bytes[..len], from).unwrap();
        }
    });
    let quickest = drive(&mut emulator, move || {
        let socket = left.run(|| UdpSocket::bind("10.77.0.1:0")).unwrap();
        socket.set_read_timeout(Some(StdDuration::from_secs(5))).unwrap();
        let round = |_| {
            let began = weir_sockets::clock::now();
            socket.send_to(&[1; 1_000], server(9)).unwrap();
            assert_eq!(socket.recv(&mut [0; 2_000]).unwrap(), 1_000);
            weir_sockets::clock::now() - began
        };
        (0..5).map(round).min().unwrap()
    });
    // Never sooner. How late the machine is, is its own affair, but not all day.
    assert!(quickest >= Duration::from_millis(30) && quickest < Duration::from_millis(130));
}

#[test]
#[ignore = "needs network namespaces: cargo test -p weir-links -- --ignored emulator"]
fn a_link_at_work_counts_what_it_loses_as_asked() {
    let [left, right] = namespaces();
    let mut up = LinkConfig::new(Rate::from_mbit(100), Duration::ZERO);
    up.impairments.loss = Ratio::from_percent(30);
    up.queue = QueueConfig::DropTail(DropTailConfig::from(Limit::Packets(5)));
    let links = [HostedLink { name: "up".to_owned(), config: up }];
    let route = Route { up: vec![0], down: vec![] };
    let link = TunLink::open([&left, &right], &links, route, 1, &Options::default()).unwrap();
    let work = Background::start(link);
    let receiver = right.run(|| UdpSocket::bind(server(9))).unwrap();
    receiver.set_read_timeout(Some(StdDuration::from_millis(500))).unwrap();
    let sender = left.run(|| UdpSocket::bind("10.77.0.1:0")).unwrap();
    for _ in 0..400 {
        sender.send_to(&[1; 1_000], server(9)).unwrap();
    }
    let mut arrived = 0;
    while receiver.recv(&mut [0; 2_000]).is_ok() {
        arrived += 1;
    }
    let report = work.stop().unwrap();
    let up = &report.up;
    // A receiver that is slow to read loses some more.
    assert!(up.received == 400 && (1..=up.sent).contains(&arrived), "{arrived}: {up:?}");
    assert_eq!(up.lost + up.queue_dropped + up.sent, 400, "{up:?}");
    assert!(up.lost > 60 && up.queue_dropped > 0, "{up:?}");
    assert_eq!((up.unintended.total(), up.received_bytes), (0, 400 * 1_028), "{up:?}");
}

#[test]
#[ignore = "needs network namespaces: cargo test -p weir-links -- --ignored emulator"]
fn a_namespace_is_gone_with_its_owner_and_can_be_entered_until_then() {
    let [namespace, other] = namespaces();
    let read = || std::fs::read_link("/proc/thread-self/ns/net").unwrap();
    let inside = namespace.run(read);
    assert_ne!(inside, read());
    assert_ne!(inside, other.run(read));
    let entered = Namespace::enter(namespace.file()).unwrap();
    assert_eq!(entered.run(read), inside);
    // Loopback works, and nothing else is there.
    assert!(namespace.run(|| UdpSocket::bind("127.0.0.1:0").is_ok()));
    let interfaces =
        namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    assert_eq!(interfaces.lines().count(), 3, "{interfaces}");
    let file = namespace.file().to_owned();
    drop(namespace);
    // A thread that joins another goes on a little before the kernel has done away with it.
    let patience = clock::now() + Duration::from_secs(5);
    let refused = loop {
        match Namespace::enter(&file) {
            Err(refused) => break refused,
            Ok(_) => assert!(clock::now() < patience, "{} is still there", file.display()),
        }
        std::thread::yield_now();
    };
    assert!(
        refused.to_string().starts_with("cannot enter the network namespace /proc/"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs network namespaces: cargo test -p weir-links -- --ignored emulator"]
fn superpackets_are_packets_to_the_link_and_streams_arrive_intact() {
    let [left, right] = namespaces();
    let mut up = LinkConfig::new(Rate::from_mbit(400), Duration::from_millis(2));
    up.impairments.loss = Ratio::from_percent(1);
    up.impairments.corrupt = Ratio::from_percent(1);
    up.impairments.duplicate = Ratio::from_percent(1);
    let back = LinkConfig { delay: Duration::from_millis(2).into(), ..Default::default() };
    let spec = RunSpec {
        radio: None,
        fabric: None,
        links: vec![link("up", up), link("back", back)],
        flows: vec![hosted_flow("all", vec![0], vec![1])],
        measure: MeasureSpec::default(),
    };
    let options = Options { offload: Offload::On, ..Options::default() };
    let mut emulator = Emulator::open(&spec, 1, [&left, &right], &options).unwrap();
    let listener = right.run(|| TcpListener::bind(server(80))).unwrap();
    let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    let expected = sent.clone();
    let received = drive(&mut emulator, move || {
        std::thread::spawn(move || {
            left.run(move || TcpStream::connect(server(80)).unwrap().write_all(&sent).unwrap());
        });
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    });
    assert!(received == expected);
    let stats = emulator.net.links[0].link.stats(emulator.net.now);
    let per_packet = stats.offered.bytes / stats.offered.packets;
    assert!(stats.offered.packets > 2_000 && per_packet <= 1_500, "{stats:?}");
    assert!(stats.dropped_loss.packets > 0 && stats.corrupted > 0, "{stats:?}");
    assert_eq!(emulator.health().unasked_drops(), 0);
}

//! Two endpoints on loopback, real sockets and the real clock.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use weir_sockets::clock;
use weir_sockets::places::Bounds;
use weir_transfer::endpoint::{Application, Datagram, Ended, Endpoint, Limits};
use weir_transfer::seal::Key;
use weir_transport::{Config, Connection, Event};
use weir_units::{Bytes, Duration, Instant};

/// Sends or receives bytes that follow from their offset.
struct Pattern {
    size: u64,
    received: u64,
    finished: bool,
}

fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Application for Pattern {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        assert!(offset + buf.len() as u64 <= self.size, "bytes requested that were not written");
        for (at, slot) in (offset..).zip(buf) {
            *slot = byte(at);
        }
        Ok(())
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let intact = (offset..).zip(bytes).all(|(at, got)| *got == byte(at));
        assert!(intact, "{} bytes at {offset} are not what was sent", bytes.len());
        self.received += bytes.len() as u64;
        Ok(())
    }

    fn on_step(&mut self, now: Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected if self.size > 0 => {
                    connection.write(now, self.size);
                    connection.close(now);
                }
                Event::Finished => {
                    self.finished = true;
                    connection.close(now);
                }
                Event::Failed(error) => return Err(io::Error::other(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

fn config(mss: u32) -> Config {
    Config {
        mss,
        recv_buffer: Bytes(1 << 20),
        time_wait: Duration::from_millis(100),
        stack: "rack/cubic".parse().unwrap(),
        ..Config::default()
    }
}

fn seal<A: Application>(endpoint: &mut Endpoint<A>, key: Option<&Key>) {
    if let Some(key) = key {
        endpoint.seal_with(key.clone()).unwrap();
    }
}

/// Sends `size` bytes from one endpoint to another; returns how many arrived.
fn pour(size: u64, mss: u32, key: Option<&Key>) -> u64 {
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = Endpoint::bind(loopback).unwrap();
    let address = server.socket().local_addr();
    seal(&mut server, key);
    let key = key.cloned();
    let sender = thread::spawn(move || {
        let mut client = Endpoint::bind(loopback).unwrap();
        seal(&mut client, key.as_ref());
        let id =
            client.connect(address, &config(mss), Pattern { size, received: 0, finished: false });
        while client.get(id).is_some() {
            client.step(Duration::from_secs(1)).unwrap();
        }
        let ended = client.next_ended().unwrap();
        assert!(ended.error.is_none(), "{:?}", ended.error);
        assert_eq!(ended.connection.stats().acked_bytes, size);
    });
    server.listen(config(mss), |_| Some(Pattern { size: 0, received: 0, finished: false }));
    let patience = clock::now() + Duration::from_secs(60);
    let ended = loop {
        server.step(Duration::from_secs(1)).unwrap();
        if let Some(ended) = server.next_ended() {
            break ended;
        }
        assert!(clock::now() < patience, "the transfer does not end");
    };
    assert!(ended.error.is_none() && ended.application.finished, "{:?}", ended.error);
    sender.join().unwrap();
    ended.application.received
}

#[test]
fn bytes_arrive_whatever_the_segment_size() {
    for (size, mss) in [(1, 1420), (200_000, 64), (20_000_000, 1420), (20_000_000, 65_447)] {
        assert_eq!(pour(size, mss, None), size, "mss {mss}");
    }
}

#[test]
fn sealed_bytes_arrive_too() {
    let key = Key::new([5; 32]);
    for (size, mss) in [(1, 1_396), (20_000_000, 1_396), (20_000_000, 65_423)] {
        assert_eq!(pour(size, mss, Some(&key)), size, "mss {mss}");
    }
}

/// What a sender learns from a receiver that has other ideas of keys.
fn refusal(receivers: Option<Key>, senders: Option<Key>) -> String {
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = Endpoint::bind(loopback).unwrap();
    let mut client = Endpoint::bind(loopback).unwrap();
    seal(&mut server, receivers.as_ref());
    seal(&mut client, senders.as_ref());
    let pattern = |size| Pattern { size, received: 0, finished: false };
    server.listen(config(1_396), move |_| Some(pattern(0)));
    client.connect(server.socket().local_addr(), &config(1_396), pattern(1));
    let patience = clock::now() + Duration::from_secs(60);
    loop {
        client.step(Duration::from_millis(1)).unwrap();
        server.step(Duration::from_millis(1)).unwrap();
        assert_eq!(server.connections().count(), 0);
        if let Some(ended) = client.next_ended() {
            return ended.error.unwrap().to_string();
        }
        assert!(clock::now() < patience, "the sender learns nothing");
    }
}

#[test]
fn a_sender_gets_the_reason_why_its_key_is_wrong() {
    let key = |byte| Some(Key::new([byte; 32]));
    assert_eq!(refusal(key(1), key(2)), "the receiver has another key");
    assert_eq!(refusal(key(1), None), "the receiver demands a key");
    let no_key = "the receiver has no key: start it with this one, or send without";
    assert_eq!(refusal(None, key(1)), no_key);
}

/// Sends a hundred loose datagrams once it is connected, and notes those that arrive.
#[derive(Default)]
struct Loosely {
    unsent: Option<u64>,
    arrived: Vec<u64>,
}

fn loose_len(number: u64) -> usize {
    if number == 99 { Datagram::MAX_LEN } else { number as usize * 16 }
}

impl Application for Loosely {
    fn fill(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_step(&mut self, _: Instant, connection: &mut Connection) -> io::Result<()> {
        while let Some(event) = connection.poll_event() {
            if event == Event::Connected {
                self.unsent = Some(0);
            }
        }
        Ok(())
    }

    fn poll_loose(&mut self, _: Instant) -> Option<Datagram> {
        let number = self.unsent.filter(|number| *number < 100)?;
        self.unsent = Some(number + 1);
        Some(Datagram { number, len: loose_len(number) })
    }

    fn fill_loose(&mut self, datagram: Datagram, buf: &mut [u8]) -> io::Result<()> {
        assert_eq!(datagram.len, buf.len());
        buf.fill(datagram.number as u8);
        Ok(())
    }

    fn store_loose(&mut self, _: Instant, number: u64, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(bytes.len(), loose_len(number));
        assert!(bytes.iter().all(|byte| *byte == number as u8));
        self.arrived.push(number);
        Ok(())
    }
}

#[test]
fn loose_datagrams_travel_beside_the_stream() {
    for key in [None, Some(Key::new([6; 32]))] {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut server = Endpoint::bind(loopback).unwrap();
        let mut client = Endpoint::bind(loopback).unwrap();
        seal(&mut server, key.as_ref());
        seal(&mut client, key.as_ref());
        server.listen(config(1_396), |_| Some(Loosely::default()));
        client.connect(server.socket().local_addr(), &config(1_396), Loosely::default());
        let patience = clock::now() + Duration::from_secs(60);
        // On loopback nothing overtakes, and few are on their way at once.
        while !server.connections().any(|(_, _, here)| here.arrived.last() == Some(&99)) {
            client.step(Duration::from_millis(1)).unwrap();
            server.step(Duration::from_millis(1)).unwrap();
            assert!(clock::now() < patience, "they do not arrive");
        }
        let (_, _, here) = server.connections().next().unwrap();
        assert_eq!(here.arrived, (0..100).collect::<Vec<_>>());
    }
}

/// A receiver and a sender of one byte, which take turns until the sender's connection has ended.
fn outcome(prepare: impl FnOnce(&mut Endpoint<Pattern>, &mut Endpoint<Pattern>)) -> Ended<Pattern> {
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = Endpoint::bind(loopback).unwrap();
    let mut client = Endpoint::bind(loopback).unwrap();
    prepare(&mut server, &mut client);
    let patience = clock::now() + Duration::from_secs(60);
    loop {
        client.step(Duration::from_millis(1)).unwrap();
        server.step(Duration::from_millis(1)).unwrap();
        if let Some(ended) = client.next_ended() {
            return ended;
        }
        assert!(clock::now() < patience, "the connection does not end");
    }
}

fn sender(size: u64) -> Pattern {
    Pattern { size, received: 0, finished: false }
}

#[test]
fn a_refused_sender_gets_an_answer() {
    let refused = |listen: fn(&mut Endpoint<Pattern>)| {
        outcome(|server, client| {
            listen(server);
            client.connect(server.socket().local_addr(), &config(1_396), sender(1));
        })
        .error
        .unwrap()
        .to_string()
    };
    let no = "the peer refused the connection";
    assert_eq!(refused(|_| {}), no, "no program listens");
    let particular = |server: &mut Endpoint<Pattern>| server.listen(config(1_396), |_| None);
    assert_eq!(refused(particular), "the peer reset the connection", "it was answered for");
}

/// And a client without a free slot connects when there is one.
#[test]
fn an_address_has_a_limit_of_connections() {
    for key in [None, Some(Key::new([5; 32]))] {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut server = Endpoint::bind(loopback).unwrap();
        let mut client = Endpoint::bind(loopback).unwrap();
        seal(&mut server, key.as_ref());
        seal(&mut client, key.as_ref());
        let places = Bounds { per_address: 2, ..Limits::default().places };
        server.set_limits(Limits { places, ..Limits::default() });
        server.listen(config(1_396), |_| Some(sender(0)));
        let address = server.socket().local_addr();
        let first = client.connect(address, &config(1_396), sender(0));
        client.connect(address, &config(1_396), sender(0));
        let patience = clock::now() + Duration::from_secs(60);
        let mut turn_until =
            |client: &mut Endpoint<Pattern>, is_time: &dyn Fn(&Endpoint<Pattern>) -> bool| {
                while !is_time(&server) {
                    client.step(Duration::from_millis(1)).unwrap();
                    server.step(Duration::from_millis(1)).unwrap();
                    assert!(client.next_ended().is_none_or(|ended| ended.id == first));
                    assert!(clock::now() < patience, "a connection request has no answer");
                }
            };
        turn_until(&mut client, &|server| server.connections().count() == 2);
        client.connect(address, &config(1_396), sender(1));
        let then = clock::now() + Duration::from_millis(300);
        turn_until(&mut client, &|server| {
            assert_eq!(server.connections().count(), 2);
            clock::now() >= then
        });
        client.abort(first);
        turn_until(&mut client, &|server| {
            server.connections().any(|(_, _, here)| here.received == 1)
        });
    }
}

/// How a connection ends whose receiver is killed at a certain point, and is back at once.
fn restarted(
    key: Option<&Key>,
    is_time: impl Fn(&Endpoint<Pattern>, &Endpoint<Pattern>) -> bool,
) -> String {
    let start = |address| {
        let mut server = Endpoint::bind(address).unwrap();
        seal(&mut server, key);
        server.listen(config(1_396), |_| Some(sender(0)));
        server
    };
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = start(loopback);
    let address = server.socket().local_addr();
    let mut client = Endpoint::bind(loopback).unwrap();
    seal(&mut client, key);
    client.connect(address, &config(1_396), sender(u64::MAX / 2));
    let patience = clock::now() + Duration::from_secs(20);
    while !is_time(&client, &server) {
        server.step(Duration::from_millis(1)).unwrap();
        client.step(Duration::ZERO).unwrap();
        assert!(clock::now() < patience, "it does not come so far");
    }
    drop(server);
    let mut again = start(address);
    loop {
        client.step(Duration::from_millis(1)).unwrap();
        again.step(Duration::from_millis(1)).unwrap();
        if let Some(ended) = client.next_ended() {
            return ended.error.unwrap().to_string();
        }
        assert!(clock::now() < patience, "the sender does not learn of it");
    }
}

#[test]
fn a_receiver_that_was_started_again_resets_what_it_does_not_know() {
    for key in [None, Some(Key::new([5; 32]))] {
        let ended = restarted(key.as_ref(), |_, server| {
            server.connections().any(|(_, _, here)| here.received > 0)
        });
        assert_eq!(ended, "the peer reset the connection", "{key:?}");
    }
}

/// It was killed when it had answered the first segment.
#[test]
fn a_receiver_that_was_started_again_resets_a_handshake_that_it_does_not_know() {
    for key in [None, Some(Key::new([5; 32]))] {
        let ended = restarted(key.as_ref(), |client, _| {
            client.connections().all(|(_, connection, _)| connection.is_synchronised())
        });
        assert_eq!(ended, "the peer reset the connection", "{key:?}");
    }
}

#[test]
fn the_first_segment_leaves_before_anything_else_is_done() {
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    there.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let mut client = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    client.connect(there.local_addr().unwrap(), &config(1_000), sender(1));
    let mut datagram = [0; 100];
    let len = there.recv(&mut datagram).unwrap();
    let syn = weir_transport::wire::parse(&datagram[..len]).unwrap();
    assert!(syn.segment.flags.contains(weir_transport::Flags::SYN));
}

#[test]
fn a_listener_keeps_nothing_for_a_syn() {
    let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let mut server = Endpoint::bind(loopback).unwrap();
    server.listen(config(1_396), |_| Some(sender(0)));
    for _ in 0..3 {
        let mut client = Endpoint::bind(loopback).unwrap();
        client.connect(server.socket().local_addr(), &config(1_396), sender(1));
        client.step(Duration::ZERO).unwrap();
        server.step(Duration::from_millis(100)).unwrap();
        assert_eq!(server.connections().count(), 0);
    }
}

#[test]
fn silence_ends_a_connection() {
    // A program has the port and does not answer.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ended = outcome(|_, client| {
        client.set_limits(Limits { handshake: Duration::from_millis(20), ..Limits::default() });
        client.connect(silent.local_addr().unwrap(), &config(1_396), sender(1));
    });
    let error = ended.error.unwrap().to_string();
    assert!(error.starts_with("nothing was heard of 127.0.0.1:"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_without_a_listener_is_named_at_once() {
    let ended = outcome(|_, client| {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        client.connect(gone, &config(1_396), sender(1));
    });
    let error = ended.error.unwrap().to_string();
    assert!(error.starts_with("no program listens on UDP address 127.0.0.1:"), "{error}");
}

#[test]
fn a_datagram_that_is_too_long_is_an_error_and_no_loss() {
    // The first segments are at most half of the window that the peer offers with its SYN.
    let ended = outcome(|server, client| {
        let config = Config { initial_window: 2, ..config(65_500) };
        server.listen(config.clone(), |_| Some(sender(0)));
        client.connect(server.socket().local_addr(), &config, sender(2_000_000));
    });
    let error = ended.error.unwrap().to_string();
    assert!(error.contains("longer than the system can send"), "{error}");
    assert_eq!(ended.connection.stats().lost_bytes, 0);
}

/// Passes datagrams between a sender and `server`, but drops those that `drops` names, until `done`.
fn lossy_way(
    server: SocketAddr,
    drops: impl Fn(u64) -> bool + Send + 'static,
    done: Arc<AtomicBool>,
) -> (SocketAddr, thread::JoinHandle<()>) {
    let outer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let inner = UdpSocket::bind("127.0.0.1:0").unwrap();
    outer.set_nonblocking(true).unwrap();
    inner.set_nonblocking(true).unwrap();
    let address = outer.local_addr().unwrap();
    let relay = thread::spawn(move || {
        let (mut sender, mut count, mut buffer) = (None, 0, [0; 2_000]);
        while !done.load(Ordering::Relaxed) {
            let (len, to, out) = if let Ok((len, from)) = outer.recv_from(&mut buffer) {
                sender = Some(from);
                (len, server, &inner)
            } else if let (Some(sender), Ok(len)) = (sender, inner.recv(&mut buffer)) {
                (len, sender, &outer)
            } else {
                thread::sleep(std::time::Duration::from_micros(50));
                continue;
            };
            count += 1;
            if !drops(count) {
                out.send_to(&buffer[..len], to).unwrap();
            }
        }
    });
    (address, relay)
}

#[test]
fn everything_arrives_whichever_datagram_is_lost() {
    let size = 60_000;
    // Each of the first dozen alone, then every fourth of all.
    let single =
        (1..=12u64).map(|lost| Box::new(move |n| n == lost) as Box<dyn Fn(u64) -> bool + Send>);
    let quarter: Box<dyn Fn(u64) -> bool + Send> = Box::new(|n: u64| byte(n) < 64);
    for drops in single.chain([quarter]) {
        let loopback: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut server = Endpoint::bind(loopback).unwrap();
        let mut client = Endpoint::bind(loopback).unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let (way, relay) = lossy_way(server.socket().local_addr(), drops, done.clone());
        let config = Config {
            initial_rto: Duration::from_millis(20),
            min_rto: Duration::from_millis(5),
            max_retransmits: 100,
            ..config(1_420)
        };
        server.listen(config.clone(), |_| Some(sender(0)));
        client.connect(way, &config, sender(size));
        let patience = clock::now() + Duration::from_secs(60);
        let arrived = loop {
            client.step(Duration::from_millis(1)).unwrap();
            server.step(Duration::from_millis(1)).unwrap();
            if let Some(ended) = server.next_ended() {
                break ended;
            }
            assert!(clock::now() < patience, "the transfer does not end");
        };
        done.store(true, Ordering::Relaxed);
        relay.join().unwrap();
        assert!(arrived.application.finished && arrived.error.is_none(), "{:?}", arrived.error);
        assert_eq!(arrived.application.received, size);
    }
}

//! Whole transfers on loopback: among hostile peers, over damaging paths, with receivers that vanish.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use weir_links::relay::{Background, HostedLink, RelaySpec, Route, UdpRelay};
use weir_net::{Impairments, LinkConfig};
use weir_sockets::clock;
use weir_transport::{Config, Connection};
use weir_units::{Bytes, Duration, Ratio};

use super::recv::Receiver;
use super::{Carrier, RecvOptions, SendOptions, Sent, TransferError, resolve, send};
use crate::endpoint::{Application, Endpoint};
use crate::file::{Announcement, Frame, Header};

/// Sends bytes that it was given and reads nothing.
struct RawSender {
    bytes: Vec<u8>,
    written: bool,
}

impl Application for RawSender {
    fn fill(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.copy_from_slice(&self.bytes[offset as usize..][..buf.len()]);
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_step(&mut self, now: weir_units::Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        while connection.poll_event().is_some() {}
        if !std::mem::replace(&mut self.written, true) {
            connection.write(now, self.bytes.len() as u64);
        }
        Ok(())
    }
}

/// Takes everything and answers nothing, as a receiver that is killed before its first verdict.
struct Silent;

impl Application for Silent {
    fn fill(&mut self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }

    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn on_step(&mut self, now: weir_units::Instant, connection: &mut Connection) -> io::Result<()> {
        connection.read(now, u64::MAX);
        while connection.poll_event().is_some() {}
        connection.set_recv_window(Bytes(1 << 20));
        Ok(())
    }
}

fn receiver(bind: SocketAddr, folder: &Path) -> Receiver {
    let options = RecvOptions {
        bind,
        folder: folder.to_owned(),
        max_size: None,
        max_files: 10_000,
        takes_folders: true,
        quota: None,
        expiry: Duration::from_secs(3_600),
        memory: Bytes(64 << 20),
        once: false,
        keys: None,
    };
    Receiver::open(&options).expect("a receiver")
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

fn options() -> SendOptions {
    SendOptions {
        carrier: Carrier::Stack(Config::default().stack),
        mss: 1_420,
        initial_window: 10,
        max_rate: None,
        pacing: true,
        max_retransmits: 100,
        max_wait: Duration::from_secs(30),
        key: None,
    }
}

/// Sends a file in a thread of its own, for `patience` at most.
fn sending(path: PathBuf, to: SocketAddr, patience: Duration) -> thread::JoinHandle<Sent> {
    thread::spawn(move || {
        let began = clock::now();
        let mut watch = |_: &_| match clock::now().saturating_since(began) < patience {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        send(&[path], &[to], &options(), &mut watch).expect("a readable file")
    })
}

/// Turns the receiver until the sender has ended.
fn serve(receiver: &mut Receiver, sender: thread::JoinHandle<Sent>) -> Sent {
    while !sender.is_finished() {
        receiver.step(Duration::from_millis(5)).expect("a working socket");
        receiver.report_ended(&mut |_| ControlFlow::Continue(()));
    }
    sender.join().expect("no panic")
}

fn file(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).expect("writable");
    path
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// A receiver sends nothing when it is killed when it has acknowledged everything and syncs the file.
#[test]
fn a_receiver_that_vanished_before_its_verdict_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(folder.path(), "a", &noise(300_000, 1));
    let mut first = Endpoint::<Silent>::bind(loopback()).expect("loopback");
    let address = first.socket().local_addr();
    first.listen(Config { recv_buffer: Bytes(1 << 20), ..Config::for_datagrams() }, |_| {
        Some(Silent)
    });
    let sender = sending(path, address, Duration::from_secs(20));
    let mut acknowledged = false;
    while !acknowledged {
        first.step(Duration::from_millis(5)).expect("a working socket");
        acknowledged = first
            .connections()
            .any(|(_, connection, _)| connection.stats().delivered_bytes > 200_000);
    }
    drop(first);
    let mut second = receiver(address, &folder.path().join("in"));
    let sent = serve(&mut second, sender);
    assert!(sent.is_complete(), "{:?}", sent.error);
    assert_eq!(sent.reconnects, 1);
}

/// Each announcement makes the receiver compare a large file that it has with what is announced.
#[test]
fn a_small_transfer_does_not_wait_for_lookups_of_unknown_senders() {
    let folder = tempfile::tempdir().expect("a folder");
    let inbox = folder.path().join("in");
    fs::create_dir(&inbox).expect("writable");
    const LARGE: u64 = 200_000_000;
    let large = fs::File::create(inbox.join("large")).expect("writable");
    large.set_len(LARGE).expect("sparse files");
    let mut receiver = receiver(loopback(), &inbox);
    let mut raw_senders = Endpoint::<RawSender>::bind(loopback()).expect("loopback");
    for sender in 0..20u8 {
        let mut bytes = Vec::new();
        Announcement::Hello { files: 100 }.encode(&mut bytes);
        for number in 0..15 {
            let hash = *blake3::hash(&[sender, number]).as_bytes();
            let header = Header::new("large".to_owned(), LARGE, hash);
            Announcement::File(header).encode(&mut bytes);
        }
        let config = Config::for_datagrams();
        raw_senders.connect(receiver.address(), &config, RawSender { bytes, written: false });
    }
    for _ in 0..100 {
        raw_senders.step(Duration::from_millis(1)).expect("a working socket");
        receiver.step(Duration::from_millis(1)).expect("a working socket");
    }
    let path = file(folder.path(), "small", &noise(1_000, 2));
    let address = receiver.address();
    let sent = serve(&mut receiver, sending(path, address, Duration::from_secs(8)));
    assert!(sent.is_complete(), "{:?}", sent.error);
    // Senders that have left and sent nothing leave nothing.
    drop(raw_senders);
    receiver.abort_all();
    receiver.step(Duration::ZERO).expect("a working socket");
    receiver.report_ended(&mut |_| ControlFlow::Continue(()));
    let left = fs::read_dir(&inbox).expect("readable").count();
    assert_eq!(left, 2, "the large file and the small one");
}

/// TCP's checksum misses one pair of flipped bits in 32.
#[test]
fn damage_that_the_checksum_misses_costs_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let inbox = folder.path().join("in");
    let mut receiver = receiver(loopback(), &inbox);
    let damaging = LinkConfig {
        impairments: Impairments { corrupt: Ratio::from_percent(5), ..Impairments::default() },
        ..LinkConfig::default()
    };
    let link = |name: &str, config| HostedLink { name: name.to_owned(), config };
    let relay = UdpRelay::bind(RelaySpec {
        listen: loopback(),
        to: receiver.address(),
        links: vec![link("up", damaging), link("down", LinkConfig::default())],
        route: Route { up: vec![0], down: vec![1] },
        corrupt_bits: 2,
        seed: 1,
        clients: 10,
        idle: Duration::from_secs(60),
    })
    .expect("loopback");
    let address = relay.local_addr();
    let work = Background::start(relay);
    for n in 0..3 {
        let content = noise(6_000_000, n);
        let path = file(folder.path(), &n.to_string(), &content);
        let sent = serve(&mut receiver, sending(path, address, Duration::from_secs(60)));
        assert!(sent.is_complete(), "{n}: {:?} {:?}", sent.error, sent.files[0].verdict);
        let arrived = fs::read(inbox.join(n.to_string())).expect("it is there");
        assert!(arrived == content);
        // What the transport sent again on its own account does not count.
        let bytes = (sent.segments - sent.retransmits) * 1_420;
        assert!(bytes < 9_000_000, "{bytes} bytes sent, {} connections", sent.reconnects + 1);
    }
    work.stop().expect("it worked");
}

#[test]
fn addresses_are_host_and_port() {
    for good in ["127.0.0.1:9000", "[::1]:9000"] {
        assert_eq!(resolve(good).expect("an address").len(), 1, "{good}");
    }
    for bad in
        ["127.0.0.1", "::1:9000", "host:", ":9000", "host:70000", "host:x", "host:0", "[::1:9000"]
    {
        assert!(matches!(resolve(bad), Err(TransferError::Address(_))), "{bad}");
    }
}

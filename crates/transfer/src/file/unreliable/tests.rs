//! Both ends on real sockets.

use std::net::SocketAddr;
use std::rc::Rc;

use weir_sockets::clock;
use weir_transport::Config;
use weir_units::{Bytes, Duration, Rate};

use super::{DatagramOptions, OutgoingDatagrams};
use crate::endpoint::Endpoint;
use crate::file::testing::{TempDir, noise};
use crate::file::{
    Finalizer, Folder, Incoming, OutgoingFile, SharedState, SystemDisk, Tally, Verdict,
};

/// Pours a file of `size` bytes; returns what the sender knows of it in the end.
fn pour(size: usize, pouring: DatagramOptions, into: &TempDir) -> OutgoingFile {
    let loopback: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let finalizer = Finalizer::start().expect("a thread");
    let from = TempDir::new();
    let path = from.path().join("poured");
    std::fs::write(&path, noise(size)).expect("writable");
    let file = OutgoingFile::prepare(&path, &mut |_, _| Ok(())).expect("readable");

    let folder = Folder {
        disk: SystemDisk::shared(),
        path: into.path().to_owned(),
        max_size: None,
        max_files: 1,
        takes_folders: true,
        quota: None,
        expiry: Duration::from_secs(3_600),
        memory: Bytes(64 << 20),
        window: Bytes(64 << 10)..Bytes(1 << 20),
    };
    let config = Config { recv_buffer: Bytes(1 << 20), ..Config::default() };
    let mut server = Endpoint::bind(loopback).expect("loopback");
    let mut client = Endpoint::bind(loopback).expect("loopback");
    let shared = Rc::new(SharedState::new(&folder));
    let session = move || Incoming::new(folder.clone(), Rc::clone(&shared), finalizer.handle());
    server.listen(config.clone(), move |_| Some(session()));
    let address = server.socket().local_addr();
    let id = client.connect(address, &config, OutgoingDatagrams::new(vec![file], pouring));
    let patience = clock::now() + Duration::from_secs(60);
    loop {
        server.step(Duration::from_millis(1)).expect("a working socket");
        client.step(Duration::from_millis(1)).expect("a working socket");
        let (_, sender) = client.get(id).expect("it lives until it was reported");
        assert_eq!(sender.failure(), None);
        if sender.is_settled() {
            return sender.files()[0].clone();
        }
        assert!(clock::now() < patience, "the receiver never says what arrived");
    }
}

#[test]
fn a_file_that_loses_nothing_is_kept() {
    // Few datagrams are on their way at once, whatever the system's buffers hold.
    let gently = Some(Rate::from_mbit(200));
    for (size, piece) in [(0, 1_000), (1, 1_000), (100_000, 1_000), (300_000, 65_000), (6_400, 64)]
    {
        let into = TempDir::new();
        let sent = pour(size, DatagramOptions { piece, rate: gently }, &into);
        let datagrams = (size as u64).div_ceil(u64::from(piece));
        let tally = sent.tally.expect("it was counted");
        let expected = Tally {
            sent: datagrams,
            arrived: datagrams,
            bytes: size as u64,
            duplicates: 0,
            span: tally.span,
        };
        assert_eq!(tally, expected);
        assert_eq!(sent.verdict, Some(Verdict::Kept { name: "poured".to_owned() }));
        let there = std::fs::read(into.path().join("poured")).expect("it is there");
        assert_eq!(there, noise(size));
    }
}

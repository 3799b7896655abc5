//! What an unknown peer's session may cost the receiver that serves all of them in one thread.

use std::sync::atomic::Ordering;

use super::frame::{EntryHeader, EntryKind};
use super::*;

/// Announces `count` files of random content that are never sent, named `name`.
fn announcements(count: u32, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Announcement::Hello { files: count }.encode(&mut bytes);
    for number in 0..count {
        let hash = *blake3::hash(&number.to_be_bytes()).as_bytes();
        let header = Header { number, ..Header::new(name, 5, hash) };
        Announcement::File(header).encode(&mut bytes);
    }
    bytes
}

/// Each header makes the receiver look for files and open one, in the thread that serves all senders.
#[test]
fn a_turn_reads_a_bounded_number_of_headers() {
    let to = TempDir::new();
    let finalizer = Finalizer::start().expect("a thread");
    let bytes = announcements(1_000, "x");
    let folder = Folder { max_files: 1_000, ..receiving_in(&to) };
    let mut incoming = Incoming::new(folder, shared(), finalizer.handle());
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    let mut at = 0;
    let mut most = 0;
    for now in (0..10_000).map(|ms| Instant::ZERO + Duration::from_millis(ms)) {
        let before = incoming.files().len();
        // As it arrives over a connection: 16 segments at a time.
        for _ in 0..16 {
            let segment = &bytes[at..bytes.len().min(at + 1_400)];
            incoming.store(at as u64, segment).expect("space");
            at += segment.len();
        }
        incoming.on_step(now, &mut connection).expect("a working disk");
        most = most.max(incoming.files().len() - before);
        if at == bytes.len() && incoming.files().len() < 1_000 {
            assert!(incoming.next_time().is_some_and(|at| at <= now), "there is more");
        }
    }
    assert_eq!(incoming.files().len(), 1_000, "all are read in the end");
    assert!(most <= 64, "{most} headers between two turns");
}

/// Making a folder takes as long as many headers do.
#[test]
fn a_turn_makes_one_folder() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let mut bytes = Vec::new();
    Announcement::Hello { files: 20 }.encode(&mut bytes);
    for number in 0..20 {
        let (path, kind) = (format!("folder-{number}"), EntryKind::Folder);
        let attributes = header_of("x", b"").attributes;
        Announcement::Entry(EntryHeader { number, path, attributes, kind }).encode(&mut bytes);
    }
    let mut incoming = Incoming::new(receiving_in(&to), shared(), finalizer.handle());
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    // The receiver has a hidden file too.
    let made = || to.names().iter().filter(|name| name.starts_with("folder-")).count();
    incoming.store(0, &bytes).expect("space");
    assert_eq!(made(), 0, "none as they arrive");
    for turn in 1..=20 {
        incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
        assert_eq!(made(), turn);
    }
}

/// Nor does it make a file before there is something to put into it.
#[test]
fn a_header_makes_no_file() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let mut incoming = Incoming::new(receiving_in(&to), shared(), finalizer.handle());
    let bytes = announcements(10, "x");
    incoming.store(0, &bytes).expect("space");
    assert_eq!(incoming.files().len(), 10);
    assert!(to.names().is_empty(), "{:?}", to.names());
    let mut piece = Vec::new();
    Announcement::Data { offset: 0, len: 3 }.encode(&mut piece);
    piece.extend(b"abc");
    incoming.store(bytes.len() as u64, &piece).expect("space");
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    let later = Instant::ZERO + Duration::from_secs(1);
    incoming.on_step(later, &mut connection).expect("a working disk");
    assert_eq!(to.names().len(), 1, "what was gathered is written after a while");
}

/// A few bytes of each of many long files must not take the memory of an honest sender; that one gets no memory
/// in which to gather bytes, and its bytes are written at once.
#[test]
fn what_a_session_holds_of_its_file_counts_as_memory() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    // Half of it is for what a session can do without, and these have most of that already.
    let folder = Folder { memory: Bytes(256 << 10), ..receiving_in(&to) };
    let shared = Rc::new(SharedState::new(&folder));
    let content = noise(400_000);
    let open = |name: &str| {
        let mut incoming = Incoming::new(folder.clone(), Rc::clone(&shared), finalizer.handle());
        let mut bytes = Vec::new();
        Announcement::Hello { files: 1 }.encode(&mut bytes);
        let header =
            Header { hash: *blake3::hash(name.as_bytes()).as_bytes(), ..header_of(name, &content) };
        Announcement::File(header).encode(&mut bytes);
        Announcement::Data { offset: 0, len: content.len() as u64 }.encode(&mut bytes);
        incoming.store(0, &bytes).expect("space");
        (incoming, bytes.len() as u64)
    };
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    let mut sessions: Vec<_> = (0..8).map(|n| open(&n.to_string())).collect();
    for (incoming, start) in &mut sessions {
        for (at, piece) in content.chunks(1_400).take(40).enumerate() {
            incoming.store(*start + at as u64 * 1_400, piece).expect("space");
        }
        incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
        assert!(incoming.held_memory() <= incoming.charged_memory());
        assert!(incoming.failure().is_none(), "{:?}", incoming.failure());
        assert_eq!(incoming.files()[0].arrived, 40 * 1_400);
    }
    let held: u64 = sessions.iter().map(|(incoming, _)| incoming.held_memory().get()).sum();
    assert!((16 << 10..=64 << 10).contains(&held), "{held} bytes");
}

/// Attackers open and leave connections faster than the frames of each are read.
#[test]
fn what_was_announced_on_a_connection_that_is_over_is_not_looked_at() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let mut incoming = Incoming::new(receiving_in(&to), shared(), finalizer.handle());
    incoming.store(0, &announcements(100, "x")).expect("space");
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
    let announced = incoming.files().len();
    assert!((16..99).contains(&announced), "{announced}");
    connection.abort(Instant::ZERO);
    incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
    assert_eq!(incoming.files().len(), announced);
}

/// Attackers acknowledge nothing, so what was evicted may be there for a minute.
#[test]
fn an_evicted_session_is_charged_for_what_it_still_holds() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let limit = Bytes(COST_OF_A_SESSION as u64 + (40 << 10));
    let folder = Folder { max_size: Some(Bytes(1)), memory: limit, ..receiving_in(&to) };
    let shared = Rc::new(SharedState::new(&folder));
    let mut incoming = Incoming::new(folder, Rc::clone(&shared), finalizer.handle());
    incoming.store(0, &announcements(15, "x")).expect("space");
    assert_eq!((incoming.failure(), incoming.files().len()), (None, 15));
    let _more = shared.memory.share(38 << 10);
    assert!(incoming.is_evicted());
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    incoming.on_step(Instant::ZERO, &mut connection).expect("space for its answers");
    assert_eq!((incoming.files().len(), incoming.omitted().refused), (0, 15));
    let held = incoming.held_memory();
    assert!(held > Bytes(300), "answers: {held}");
    assert!(held <= incoming.charged_memory() && shared.memory.used() <= limit);
    let _most = shared.memory.share(2 << 10);
    assert!(incoming.on_step(Instant::ZERO, &mut connection).is_err(), "there is no space left");
}

/// Another session may have made 999 files of that name before.
#[test]
fn a_header_costs_the_network_thread_few_look_ups() {
    let to = TempDir::new();
    for n in 0..=999 {
        fs::write(to.path().join(super::super::name::numbered("x", n)), b"1").expect("writable");
    }
    let finalizer = Finalizer::without_thread();
    let disk = Arc::new(TestDisk::default());
    let folder = Folder { disk: Arc::<TestDisk>::clone(&disk), ..receiving_in(&to) };
    let mut incoming = Incoming::new(folder, shared(), finalizer.handle());
    incoming.store(0, &announcements(10, "x")).expect("space");
    assert_eq!(incoming.files().len(), 10);
    let lookups = disk.lookups.load(Ordering::Relaxed);
    assert!(lookups <= 10 * 20, "{lookups} look-ups for 10 headers");
}

/// A session that announces ten files, of which the first may be there.
fn looking_for_what_is_there(to: &TempDir, finalizer: &Finalizer) -> (Incoming, Arc<TestDisk>) {
    fs::write(to.path().join("x"), b"there").expect("writable");
    let disk = Arc::new(TestDisk::default());
    let folder = Folder { disk: Arc::<TestDisk>::clone(&disk), ..receiving_in(to) };
    let mut incoming = Incoming::new(folder, shared(), finalizer.handle());
    incoming.store(0, &announcements(10, "x")).expect("space");
    (incoming, disk)
}

/// A session continues with the next file at once; what it has left is of no interest.
#[test]
fn a_session_has_one_look_up_in_the_queue() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let (incoming, _) = looking_for_what_is_there(&to, &finalizer);
    assert_eq!(incoming.files().len(), 10);
    let done = std::iter::from_fn(|| finalizer.work().then_some(())).count();
    assert_eq!(done, 1, "look-ups");
}

#[test]
fn look_ups_of_a_session_that_is_over_are_dropped() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let (incoming, disk) = looking_for_what_is_there(&to, &finalizer);
    drop(incoming);
    assert!(!finalizer.work(), "nothing is left to do");
    assert_eq!(disk.read.load(Ordering::Relaxed), 0, "of a session that is over");
}

/// What an earlier session has left is hashed by others than the network thread.
#[test]
fn a_turn_reads_little_of_what_is_there() {
    let content = noise(20_000_000);
    for there in [4_000_000, 19_000_000, 20_000_000] {
        let to = TempDir::new();
        let finalizer = Finalizer::without_thread();
        let disk = Arc::new(TestDisk::default());
        let folder = Folder { disk: Arc::<TestDisk>::clone(&disk), ..receiving_in(&to) };
        let size = if there == 4_000_000 { there } else { content.len() };
        let header = header_of("x", &content[..size]);
        let mut partial =
            partial::Partial::open(&folder.disk, to.path(), &header).expect("writable");
        partial.write(0, &content[..there]).expect("writable");
        partial.leave().expect("writable");
        let mut bytes = Vec::new();
        Announcement::Hello { files: 1 }.encode(&mut bytes);
        Announcement::File(header).encode(&mut bytes);
        let mut incoming = Incoming::new(folder, shared(), finalizer.handle());
        let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
        let mut before = disk.read.load(Ordering::Relaxed);
        incoming.store(0, &bytes).expect("space");
        for turn in 0..3 {
            incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
            let read = disk.read.load(Ordering::Relaxed);
            assert!(read - before < 4_096, "{there}, turn {turn}: {} bytes", read - before);
            before = read;
        }
    }
}

/// Bits for many datagrams need the most memory per byte received.
#[test]
fn who_hoards_memory_is_ended_for_a_repair() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let sessions = 4 * COST_OF_A_SESSION as u64;
    let folder = Folder { memory: Bytes((16 << 20) + sessions), ..receiving_in(&to) };
    let shared = Rc::new(SharedState::new(&folder));
    let session = |frames: &[Announcement]| {
        let mut bytes = Vec::new();
        Announcement::Hello { files: 1 }.encode(&mut bytes);
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let mut incoming = Incoming::new(folder.clone(), Rc::clone(&shared), finalizer.handle());
        incoming.store(0, &bytes).expect("space");
        let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
        incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
        incoming
    };
    let hoards = |number: u8| {
        let header = Header::new("x".to_owned(), 64 << 26, [number; 32]);
        session(&[Announcement::Datagram { header, piece: 64 }])
    };
    let hoarders = [hoards(1), hoards(2)];
    let header = Header::new("x".to_owned(), 1 << 30, [3; 32]);
    let honest = session(&[Announcement::Repair(header)]);
    assert_eq!(honest.failure(), None);
    assert_eq!(hoarders.iter().filter(|hoarder| hoarder.is_evicted()).count(), 1);
}

#[test]
fn a_datagram_that_comes_again_takes_nothing_of_the_quota() {
    let to = TempDir::new();
    let finalizer = Finalizer::without_thread();
    let folder = Folder { quota: Some(Bytes(10_000)), ..receiving_in(&to) };
    let shared = Rc::new(SharedState::new(&folder));
    let content = noise(5_000);
    let mut bytes = Vec::new();
    Announcement::Hello { files: 1 }.encode(&mut bytes);
    let header = header_of("x", &content);
    Announcement::Datagram { header, piece: 1_000 }.encode(&mut bytes);
    let mut incoming = Incoming::new(folder, shared, finalizer.handle());
    incoming.store(0, &bytes).expect("space");
    let mut connection = Connection::listen(&Config::default(), stream(1, "b"));
    incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
    for offset in [0, 0, 1_000, 1_000, 17, 0, 0, 0, 0, 0, 0, 0] {
        let datagram = &content[offset..offset + 1_000];
        incoming.store_loose(Instant::ZERO, offset as u64, datagram).expect("a working disk");
    }
    assert_eq!(incoming.failure(), None);
    assert_eq!(incoming.files()[0].arrived, 2_000);
}

/// A greeting, then a few bytes at the far end of what is offered: they must not cost what lies between.
#[test]
fn far_bytes_of_unknown_senders_cost_little_memory() {
    let to = TempDir::new();
    let finalizer = Finalizer::start().expect("a thread");
    let before = resident_kib();
    let mut sessions = Vec::new();
    for seed in 0..250 {
        let mut incoming = Incoming::new(receiving_in(&to), shared(), finalizer.handle());
        let mut hello = Vec::new();
        Announcement::Hello { files: 1 }.encode(&mut hello);
        incoming.store(0, &hello).expect("space");
        let mut connection = Connection::listen(&Config::default(), stream(seed, "b"));
        incoming.on_step(Instant::ZERO, &mut connection).expect("a working disk");
        incoming.store((1 << 20) - 64, &[7; 64]).expect("space");
        sessions.push(incoming);
    }
    let more = resident_kib().saturating_sub(before);
    assert!(more < 64 << 10, "{more} KiB for 250 sessions");
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

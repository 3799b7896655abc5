//! Whole sessions over a scripted network in virtual time.

use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;
use weir_transport::{Config, Connection};
use weir_units::{Bytes, Duration, Ecn, Instant, Rate, Rng, stream};

use super::testing::{TempDir, TestDisk, header_of, noise};
use super::*;
use crate::endpoint::Application;

mod limits;
mod takeover;

/// A datagram in flight: when it arrives, and a number that orders those of one instant.
type Due = (Instant, u64);

struct Network {
    now: Instant,
    rng: Rng,
    loss_percent: u64,
    jitter: Duration,
    /// To the receiver, and to the sender: the segment and its payload.
    under_way: [BTreeMap<Due, (weir_transport::Segment, Vec<u8>)>; 2],
    count: u64,
    /// Datagrams with a long payload, and which of them are damaged in a way that no checksum finds.
    long: u64,
    damaged: Vec<u64>,
}

struct Side<A> {
    connection: Connection,
    application: A,
}

impl Network {
    fn new(seed: u64, loss_percent: u64, jitter: Duration) -> Self {
        Self {
            now: Instant::ZERO,
            rng: stream(seed, "network"),
            loss_percent,
            jitter,
            under_way: [BTreeMap::new(), BTreeMap::new()],
            count: 0,
            long: 0,
            damaged: Vec::new(),
        }
    }

    /// Lets one side act on what is due.
    fn act<A: Application>(&mut self, side: &mut Side<A>, me: usize) {
        let later = self.under_way[me].split_off(&(self.now, u64::MAX));
        for (segment, payload) in std::mem::replace(&mut self.under_way[me], later).into_values() {
            let arrived = side.connection.handle_segment(self.now, &segment, Ecn::NotEct);
            if let Some(new) = arrived {
                let bytes = &payload[new.skip as usize..][..new.len as usize];
                side.application.store(new.offset, bytes).expect("within the window");
            }
        }
        if side.connection.next_timeout(self.now).is_some_and(|at| at <= self.now) {
            side.connection.handle_timeout(self.now);
        }
        side.application.on_step(self.now, &mut side.connection).expect("a working disk");
        while let Some(sent) = side.connection.poll_transmit(self.now) {
            let mut payload = vec![0; sent.segment.payload_len as usize];
            if !payload.is_empty() {
                side.application.fill(sent.offset, &mut payload).expect("it was written");
            }
            self.long += u64::from(payload.len() > 1_000);
            if payload.len() > 1_000 && self.damaged.contains(&self.long) {
                payload[500] ^= 1;
            }
            if self.rng.below(100) < self.loss_percent {
                continue;
            }
            let delay = Duration::from_millis(5) + self.rng.duration_up_to(self.jitter);
            self.count += 1;
            self.under_way[1 - me].insert((self.now + delay, self.count), (sent.segment, payload));
        }
    }

    /// When anything happens next.
    fn next<A: Application, B: Application>(&self, a: &Side<A>, b: &Side<B>) -> Instant {
        let arrivals = self.under_way.iter().filter_map(|way| way.keys().next().map(|due| due.0));
        let timers = [a.connection.next_timeout(self.now), b.connection.next_timeout(self.now)];
        let own = [a.application.next_time(), b.application.next_time()];
        let next = arrivals.chain(timers.into_iter().chain(own).flatten()).min();
        next.unwrap_or(self.now).max(self.now + Duration::from_micros(1))
    }
}

struct Session {
    network: Network,
    sender: Side<Outgoing>,
    receiver: Side<Incoming>,
}

impl Session {
    fn new(
        files: Vec<OutgoingFile>,
        folder: &TempDir,
        finalizer: &Finalizer,
        network: Network,
    ) -> Self {
        Self::sharing(files, folder, finalizer, network, shared(), None)
    }

    /// A session of a receiver that has others.
    fn sharing(
        files: Vec<OutgoingFile>,
        folder: &TempDir,
        finalizer: &Finalizer,
        network: Network,
        shared: Rc<SharedState>,
        max_pacing_rate: Option<Rate>,
    ) -> Self {
        let config = Config { recv_buffer: Bytes(1 << 20), max_pacing_rate, ..Config::default() };
        let now = network.now;
        let sender = Side {
            connection: Connection::connect(&config, now, stream(1, "a")),
            application: Outgoing::new(files),
        };
        let receiver = Side {
            connection: Connection::listen(&config, stream(1, "b")),
            application: Incoming::new(receiving_in(folder), shared, finalizer.handle()),
        };
        Self { network, sender, receiver }
    }

    fn step(&mut self) {
        self.network.act(&mut self.sender, 1);
        self.network.act(&mut self.receiver, 0);
        let next = self.network.next(&self.sender, &self.receiver);
        // The finalizer runs in real time.
        if next - self.network.now <= Duration::from_millis(1) {
            std::thread::yield_now();
        }
        self.network.now = next;
    }

    fn run(&mut self) {
        while !self.is_over() {
            self.step();
            assert!(self.network.now < Instant::ZERO + Duration::from_secs(3600), "it hangs");
        }
    }

    /// Continues until this many bytes of the first file have arrived.
    fn run_up_to(&mut self, bytes: u64) {
        let arrived = |file: &IncomingFile| file.arrived >= bytes;
        while !self.receiver.application.files().first().is_some_and(arrived) {
            self.step();
        }
    }

    fn is_over(&self) -> bool {
        let sender = &self.sender;
        sender.application.failure().is_some()
            || sender.application.is_settled() && sender.connection.is_finished()
    }

    fn verdicts(&self) -> Vec<Option<Verdict>> {
        self.sender.application.files().iter().map(|file| file.verdict.clone()).collect()
    }
}

fn shared() -> Rc<SharedState> {
    Rc::new(SharedState::new(&receiving_in(&TempDir::new())))
}

fn receiving_in(folder: &TempDir) -> Folder {
    Folder {
        disk: SystemDisk::shared(),
        path: folder.path().to_owned(),
        max_size: None,
        max_files: 100,
        takes_folders: true,
        quota: None,
        expiry: Duration::from_secs(3_600),
        memory: Bytes(64 << 20),
        window: Bytes(200_000)..Bytes(1 << 20),
    }
}

fn outgoing(folder: &TempDir, contents: &[Vec<u8>]) -> Vec<OutgoingFile> {
    let write = |(n, content)| {
        let path = folder.path().join(format!("file-{n}.bin"));
        fs::write(&path, content).expect("writable");
        OutgoingFile::prepare(&path, &mut |_, _| Ok(())).expect("readable")
    };
    contents.iter().enumerate().map(write).collect()
}

fn kept(n: usize) -> Option<Verdict> {
    Some(Verdict::Kept { name: format!("file-{n}.bin") })
}

fn assert_same(folder: &TempDir, contents: &[Vec<u8>]) {
    let names: Vec<_> = (0..contents.len()).map(|n| format!("file-{n}.bin")).collect();
    assert_eq!(folder.names(), names);
    for (name, content) in names.iter().zip(contents) {
        assert!(fs::read(folder.path().join(name)).expect("it is there") == *content, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_conditions_and_any_cuts_bring_the_files(
        seed in any::<u64>(),
        sizes in prop::collection::vec(0..200_000usize, 1..5),
        loss_percent in 0..20u64,
        jitter_ms in 0..20u64,
        cuts in prop::collection::vec(0..120usize, 0..4),
    ) {
        let (from, to) = (TempDir::new(), TempDir::new());
        let contents: Vec<_> = sizes.iter().map(|size| noise(*size)).collect();
        let files = outgoing(&from, &contents);
        let finalizer = Finalizer::start().expect("a thread");
        let network = |n| Network::new(seed + n, loss_percent, Duration::from_millis(jitter_ms));
        for (n, steps) in cuts.into_iter().enumerate() {
            let mut session = Session::new(files.clone(), &to, &finalizer, network(n as u64));
            for _ in 0..steps {
                session.step();
            }
        }
        let mut session = Session::new(files, &to, &finalizer, network(99));
        session.run();
        prop_assert_eq!(session.sender.application.failure(), None);
        for (n, verdict) in session.verdicts().into_iter().enumerate() {
            let name = format!("file-{n}.bin");
            let twice = Some(Verdict::Already { name });
            prop_assert!(verdict == kept(n) || verdict == twice, "{verdict:?}");
        }
        drop((session, finalizer));
        assert_same(&to, &contents);
    }
}

fn calm() -> Network {
    Network::new(1, 0, Duration::ZERO)
}

#[test]
fn a_session_that_was_cut_goes_on_where_it_stood() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files.clone(), &to, &finalizer, calm());
    session.run_up_to(1_500_000);
    drop(session);
    let mut session = Session::new(files, &to, &finalizer, calm());
    session.run();
    assert_eq!(session.verdicts(), [kept(0)]);
    let resumed = session.sender.application.files()[0].resumed_from;
    assert!(resumed.is_some_and(|from| from >= 1_500_000), "{resumed:?}");
    let sent = session.sender.connection.stats().data_bytes_sent;
    assert!(sent < 2_000_000, "{sent} bytes were sent again");
    drop((session, finalizer));
    assert_same(&to, &contents);
}

/// What has arrived takes space already: only the rest needs some.
#[test]
fn a_file_that_fills_the_disk_is_resumed() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files.clone(), &to, &finalizer, calm());
    session.run_up_to(2_000_000);
    let rest = 3_000_000 - session.receiver.application.files()[0].arrived;
    assert!(rest > 0);
    drop(session);
    let run_with = |free| {
        let mut session = Session::new(files.clone(), &to, &finalizer, calm());
        let disk = Arc::new(TestDisk { free: Some(free), ..TestDisk::default() });
        let folder = Folder { disk, ..receiving_in(&to) };
        session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
        session.run();
        session.verdicts().remove(0)
    };
    let refused = run_with(rest - 1);
    assert!(matches!(refused, Some(Verdict::Refused { .. })), "{refused:?}");
    assert_eq!(run_with(rest), kept(0));
    let there = Verdict::Already { name: "file-0.bin".into() };
    assert_eq!(run_with(0), Some(there), "nothing is to be written");
    drop(finalizer);
    assert_same(&to, &contents);
}

/// Small files are all sent before the receiver can say that they have to wait for their look-ups.
#[test]
fn files_that_are_there_need_no_space_however_long_the_look_up_takes() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(40_000), noise(30_000), noise(20_000)];
    let files = outgoing(&from, &contents);
    outgoing(&to, &contents);
    let finalizer = Finalizer::without_thread();
    let mut session = Session::new(files, &to, &finalizer, calm());
    let disk = Arc::new(TestDisk { free: Some(0), ..TestDisk::default() });
    let folder = Folder { disk, ..receiving_in(&to) };
    session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
    for _ in 0..3_000 {
        session.step();
    }
    assert_eq!(session.sender.application.failure(), None);
    while !session.is_over() {
        finalizer.work();
        session.step();
    }
    let there = |n| Some(Verdict::Already { name: format!("file-{n}.bin") });
    assert_eq!(session.verdicts(), [there(0), there(1), there(2)]);
    drop((session, finalizer));
    assert_same(&to, &contents);
}

#[test]
fn a_file_that_is_there_is_not_sent_again() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(2_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    fs::write(to.path().join("file-0.bin"), &contents[0]).expect("writable");
    let mut session = Session::new(files, &to, &finalizer, calm());
    session.run();
    assert_eq!(session.verdicts(), [Some(Verdict::Already { name: "file-0.bin".into() })]);
    drop((session, finalizer));
    assert_same(&to, &contents);
}

#[test]
fn damage_that_no_checksum_finds_costs_a_part_of_the_file() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000), noise(200_000)];
    let mut files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let mut damaging = calm();
    // In the first file, at its beginning, in the middle and near its end, and in the second.
    damaging.damaged = vec![3, 1_000, 1_001, 2_050, 2_100];
    let mut session = Session::new(files, &to, &finalizer, damaging);
    session.run();
    assert_eq!(session.verdicts(), [Some(Verdict::Mismatch), Some(Verdict::Mismatch)]);
    files = session.sender.application.files().to_vec();
    drop(session);
    for file in &mut files {
        assert!(file.prepare_repair().expect("readable"));
    }
    let mut session = Session::new(files, &to, &finalizer, calm());
    session.run();
    assert_eq!(session.verdicts(), [kept(0), kept(1)]);
    let sent = session.sender.connection.stats().data_bytes_sent;
    // Three parts of the first file, and all of the second, which is one part.
    assert!(sent < 3 * (256 << 10) + 201_000, "{sent} bytes were sent again");
    drop((session, finalizer));
    assert_same(&to, &contents);
}

/// What a session that repairs a file leaves when it is cut is as good as before.
#[test]
fn a_repair_that_was_cut_is_begun_again() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let finalizer = Finalizer::start().expect("a thread");
    let mut damaging = calm();
    damaging.damaged = vec![3, 1_500];
    let mut session = Session::new(outgoing(&from, &contents), &to, &finalizer, damaging);
    session.run();
    let mut files = session.sender.application.files().to_vec();
    assert!(files[0].prepare_repair().expect("readable"));
    drop(session);
    let mut cut = Session::new(files.clone(), &to, &finalizer, calm());
    while cut.sender.connection.stats().acked_bytes < 100_000 {
        cut.step();
    }
    drop(cut);
    let mut session = Session::new(files, &to, &finalizer, calm());
    session.run();
    assert_eq!(session.verdicts(), [kept(0)]);
    assert!(session.sender.connection.stats().data_bytes_sent < 600_000);
    drop((session, finalizer));
    assert_same(&to, &contents);
}

/// The files of a session that ends once that number of bytes of its stream is acknowledged.
fn cut_after(bytes: u64, mut session: Session) -> Vec<OutgoingFile> {
    while session.sender.connection.stats().acked_bytes < bytes {
        session.step();
    }
    session.sender.application.files().to_vec()
}

/// Otherwise a sender would give up after three cuts.
#[test]
fn a_repair_that_was_cut_has_brought_something() {
    let (from, to) = (TempDir::new(), TempDir::new());
    // The second one has a single part.
    let contents = [noise(3_000_000), noise(200_000)];
    let finalizer = Finalizer::start().expect("a thread");
    for n in 0..2 {
        let mut damaging = calm();
        damaging.damaged = vec![3, 100];
        let file = outgoing(&from, &contents).remove(n);
        let mut session = Session::new(vec![file], &to, &finalizer, damaging);
        session.run();
        let mut files = session.sender.application.files().to_vec();
        drop(session);
        assert!(files[0].prepare_repair().expect("readable"));
        let before = files[0].progress();
        assert!(before >= contents[n].len() as u64);
        files = cut_after(60_000, Session::new(files, &to, &finalizer, calm()));
        assert!(files[0].progress() > before);
        let mut session = Session::new(files, &to, &finalizer, calm());
        session.run();
        assert_eq!(session.verdicts(), [kept(n)]);
    }
    drop(finalizer);
    assert_same(&to, &contents);
}

/// Each of several connections over a slow and lossy path may end after some kilobytes.
#[test]
fn a_short_connection_brings_bytes_that_are_not_there_yet() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let finalizer = Finalizer::start().expect("a thread");
    let mut files = outgoing(&from, &[noise(3_000_000)]);
    files = cut_after(1_500_000, Session::new(files, &to, &finalizer, calm()));
    for _ in 0..3 {
        files = cut_after(20_000, Session::new(files, &to, &finalizer, calm()));
        let before = files[0].progress();
        files = cut_after(20_000, Session::new(files, &to, &finalizer, calm()));
        assert!(files[0].progress() > before, "{before} bytes before and after");
    }
}

/// A power failure, or another sender that has taken it over.
#[test]
fn a_sender_whose_receiver_has_lost_bytes_makes_progress_with_them() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let finalizer = Finalizer::start().expect("a thread");
    let mut files = outgoing(&from, &[noise(3_000_000)]);
    files = cut_after(1_500_000, Session::new(files, &to, &finalizer, calm()));
    let mut before = files[0].progress();
    for _ in 0..10 {
        for name in to.names() {
            fs::remove_file(to.path().join(name)).expect("it is there");
        }
        files = cut_after(500_000, Session::new(files, &to, &finalizer, calm()));
        assert!(files[0].progress() > before);
        before = files[0].progress();
    }
    for name in to.names() {
        fs::remove_file(to.path().join(name)).expect("it is there");
    }
    files = cut_after(300_000, Session::new(files, &to, &finalizer, calm()));
    assert!(files[0].progress() < before, "not without an end");
}

#[test]
fn a_file_that_changed_after_it_was_hashed_does_not_arrive() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let files = outgoing(&from, &[noise(300_000), noise(1000)]);
    let finalizer = Finalizer::start().expect("a thread");
    fs::write(&files[0].path, vec![1; 300_000]).expect("writable");
    let mut session = Session::new(files, &to, &finalizer, calm());
    session.run();
    assert_eq!(session.verdicts(), [Some(Verdict::Mismatch), kept(1)]);
    let visible: Vec<_> = to.names().into_iter().filter(|name| !name.starts_with('.')).collect();
    assert_eq!(visible, ["file-1.bin"]);
    let mut files = session.sender.application.files().to_vec();
    assert!(!files[0].prepare_repair().expect("readable"), "it is another file by now");
}

/// It is another one that arrives by then.
#[test]
fn an_error_names_the_file_that_it_is_about() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let files = outgoing(&from, &[noise(1_000), noise(3_000_000)]);
    for n in 0..=999 {
        fs::create_dir(to.path().join(name::numbered("file-0.bin", n))).expect("writable");
    }
    let finalizer = Finalizer::without_thread();
    let mut session = Session::new(files, &to, &finalizer, calm());
    let arrived = |session: &Session, n: usize| {
        session.receiver.application.files().get(n).map_or(0, |file| file.arrived)
    };
    // The receiver has to be asked whether it has the first one.
    while arrived(&session, 0) < 1_000 {
        session.step();
        finalizer.work();
    }
    while arrived(&session, 1) == 0 {
        session.step();
    }
    while finalizer.work() {}
    session.run();
    let reason = "cannot write 'file-0.bin': 'file-0.bin' and 999 numbered ones are taken";
    assert_eq!(session.sender.application.failure(), Some(&Failure::Refused(reason.to_owned())));
}

#[test]
fn a_file_that_is_too_large_is_refused_and_others_are_not() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let files = outgoing(&from, &[noise(300_000), noise(1000)]);
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files, &to, &finalizer, calm());
    let folder = Folder { max_size: Some(Bytes(1000)), ..receiving_in(&to) };
    session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
    session.run();
    let reason = "300000 bytes; at most 1000 are taken".into();
    assert_eq!(session.verdicts(), [Some(Verdict::Refused { reason }), kept(1)]);
    assert_eq!(to.names(), ["file-1.bin"]);
}

/// Of most the receiver keeps no row; their data comes nevertheless, and the answers take longer than
/// what is kept of them without an acknowledgement.
#[test]
fn thousands_of_files_are_refused_in_one_session() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let one = outgoing(&from, &[noise(2)]).remove(0);
    let files = vec![one; 5_000];
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files, &to, &finalizer, calm());
    let folder = Folder { max_size: Some(Bytes(1)), max_files: 5_000, ..receiving_in(&to) };
    session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
    session.run();
    assert_eq!(session.sender.application.failure(), None);
    let refused = |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::Refused { .. }));
    assert!(session.verdicts().iter().all(refused));
    assert_eq!(session.receiver.application.omitted().refused, 4_000);
    assert!(
        session.network.now < Instant::ZERO + Duration::from_secs(1),
        "{:?}",
        session.network.now
    );
}

#[test]
fn too_many_files_and_nonsense_end_the_session_with_a_reason() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let files = outgoing(&from, &[noise(10), noise(11)]);
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files, &to, &finalizer, calm());
    let folder = Folder { max_files: 1, ..receiving_in(&to) };
    session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
    session.run();
    let reason = "2 files at once; at most 1 are taken".to_owned();
    assert_eq!(session.sender.application.failure(), Some(&Failure::Refused(reason)));
    assert_eq!(to.names(), [""; 0]);
}

#[test]
fn a_missing_folder_is_reported_to_the_sender() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let files = outgoing(&from, &[noise(10)]);
    let finalizer = Finalizer::start().expect("a thread");
    let mut session = Session::new(files, &to, &finalizer, calm());
    let folder = Folder { path: to.path().join("gone"), ..receiving_in(&to) };
    session.receiver.application = Incoming::new(folder, shared(), finalizer.handle());
    session.run();
    let reason = "cannot write 'file-0.bin': No such file or directory".to_owned();
    assert_eq!(session.sender.application.failure(), Some(&Failure::Refused(reason)));
}

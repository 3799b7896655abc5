//! Several sessions with one file: a killed sender that begins anew, and two that live.

use super::*;

#[test]
fn two_senders_of_one_file_do_not_disturb_each_other() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(500_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let shared = shared();
    let mut sessions = [0, 1].map(|_| {
        Session::sharing(files.clone(), &to, &finalizer, calm(), Rc::clone(&shared), None)
    });
    while !sessions.iter().all(Session::is_over) {
        for session in sessions.iter_mut().filter(|session| !session.is_over()) {
            session.step();
        }
    }
    let verdicts: Vec<_> = sessions.iter().flat_map(Session::verdicts).collect();
    assert!(verdicts.contains(&kept(0)));
    assert!(verdicts.contains(&Some(Verdict::Already { name: "file-0.bin".into() })));
    drop((sessions, finalizer));
    assert_same(&to, &contents);
}

/// Two sessions of one receiver with the same file: the first stopped half way, the second begins.
fn killed_and_new(
    files: &[OutgoingFile],
    to: &TempDir,
    finalizer: &Finalizer,
) -> (Session, Session) {
    let shared = shared();
    let rate = Some(Rate::from_mbit(16));
    let begin =
        || Session::sharing(files.to_vec(), to, finalizer, calm(), Rc::clone(&shared), rate);
    let mut old = begin();
    old.run_up_to(1_500_000);
    (old, begin())
}

#[test]
fn a_sender_that_was_killed_goes_on_before_its_old_session_is_given_up() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let (mut old, mut new) = killed_and_new(&files, &to, &finalizer);
    new.run();
    assert_eq!(new.verdicts(), [kept(0)]);
    let resumed = new.sender.application.files()[0].resumed_from;
    assert!(resumed.is_some_and(|from| from >= 1_500_000), "{resumed:?}");
    // Should its sender not be dead after all, it hears of it, and may try again.
    old.run();
    let reason = "the same file is coming from another sender".to_owned();
    assert_eq!(old.sender.application.failure(), Some(&Failure::Ended(reason)));
    drop((old, new, finalizer));
    assert_same(&to, &contents);
}

/// Their paths make them fall silent now and then, for longer than a sender that was killed is waited for.
#[test]
fn of_two_live_senders_one_keeps_the_partial_file() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let shared = shared();
    let rate = Some(Rate::from_mbit(16));
    let begin = |now| {
        let network = Network { now, ..calm() };
        Session::sharing(files.clone(), &to, &finalizer, network, Rc::clone(&shared), rate)
    };
    let mut first = begin(Instant::ZERO);
    first.run_up_to(1_500_000);
    let mut second = begin(first.network.now);
    second.run_up_to(2_000_000);
    // The first one lives and gets a refusal, and begins anew while the second one is silent.
    first.network.now = second.network.now;
    for _ in 0..100 {
        first.step();
    }
    let reason = "the same file is coming from another sender".to_owned();
    assert_eq!(first.sender.application.failure(), Some(&Failure::Ended(reason)));
    let mut third = begin(first.network.now);
    third.network.now += Duration::from_secs(1);
    let until = third.network.now + Duration::from_secs(1);
    while third.network.now < until {
        third.step();
    }
    second.run();
    assert_eq!(second.verdicts(), [kept(0)]);
    third.run();
    assert_eq!(third.verdicts(), [Some(Verdict::Already { name: "file-0.bin".into() })]);
    drop((first, second, third, finalizer));
    assert_same(&to, &contents);
}

/// What the receiver has acknowledged of the new session, in order or not, is never sent again, so the
/// partial file that it takes over has to be given those bytes.
#[test]
fn a_takeover_keeps_the_bytes_that_the_new_session_has_acknowledged() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(600_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    for seed in 0..60 {
        let shared = shared();
        let begin = |network| {
            let rate = Some(Rate::from_mbit(16));
            Session::sharing(files.clone(), &to, &finalizer, network, Rc::clone(&shared), rate)
        };
        let mut old = begin(calm());
        old.run_up_to(40_000);
        let mut new = begin(Network::new(seed, 15, Duration::from_millis(3)));
        new.network.now = old.network.now + Duration::from_millis(seed * 10);
        while !new.is_over() {
            new.step();
            // It reports no progress before it knows how much is there.
            let arrived = new.sender.application.files()[0].arrived;
            assert!(arrived == 0 || arrived >= 40_000, "seed {seed}: {arrived}");
        }
        assert_eq!(new.sender.application.failure(), None, "seed {seed}");
        assert_eq!(new.verdicts(), [kept(0)], "seed {seed}");
        drop((old, new));
        assert_same(&to, &contents);
        fs::remove_file(to.path().join("file-0.bin")).expect("it is there");
    }
}

/// Who has been silent for long is not waited for.
#[test]
fn a_sender_that_was_killed_a_while_ago_goes_on_at_once() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::start().expect("a thread");
    let (old, mut new) = killed_and_new(&files, &to, &finalizer);
    new.network.now = old.network.now + Duration::from_millis(600);
    new.run();
    assert_eq!(new.verdicts(), [kept(0)]);
    // Half a second of waiting would be 1 MB more.
    let sent = new.sender.connection.stats().data_bytes_sent;
    assert!(sent < 2_000_000, "{sent} bytes were sent again");
    drop((old, new, finalizer));
    assert_same(&to, &contents);
}

/// Its file is complete and only has to be verified and synced, which may take long.
#[test]
fn a_sender_that_was_killed_before_the_verdict_waits_for_it_and_sends_little() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::without_thread();
    let shared = shared();
    let begin =
        || Session::sharing(files.clone(), &to, &finalizer, calm(), Rc::clone(&shared), None);
    let mut old = begin();
    old.run_up_to(3_000_000);
    drop(old);
    let mut new = begin();
    for _ in 0..3_000 {
        new.step();
    }
    assert_eq!(new.verdicts(), [None]);
    while !new.is_over() {
        finalizer.work();
        new.step();
    }
    assert_eq!(new.verdicts(), [Some(Verdict::Already { name: "file-0.bin".into() })]);
    assert_sent_little(&new);
    drop((new, finalizer));
    assert_same(&to, &contents);
}

/// The last bytes of a killed sender are in flight when it begins anew: its old session completes the file
/// while the new one watches it.
#[test]
fn a_file_that_its_old_session_completes_meanwhile_is_not_sent_again() {
    let (from, to) = (TempDir::new(), TempDir::new());
    let contents = [noise(3_000_000)];
    let files = outgoing(&from, &contents);
    let finalizer = Finalizer::without_thread();
    let shared = shared();
    let rate = Some(Rate::from_mbit(16));
    let begin =
        || Session::sharing(files.clone(), &to, &finalizer, calm(), Rc::clone(&shared), rate);
    let mut old = begin();
    old.run_up_to(2_900_000);
    let mut new = begin();
    new.network.now = old.network.now;
    while new.network.now < old.network.now + Duration::from_millis(100) {
        new.step();
    }
    assert_eq!(new.verdicts(), [None]);
    old.run_up_to(3_000_000);
    drop(old);
    while !new.is_over() {
        new.step();
        finalizer.work();
    }
    assert_eq!(new.verdicts(), [Some(Verdict::Already { name: "file-0.bin".into() })]);
    assert_sent_little(&new);
    drop((new, finalizer));
    assert_same(&to, &contents);
}

/// What goes ahead of an answer is a quarter of a megabyte and the end of a piece.
fn assert_sent_little(session: &Session) {
    let sent = session.sender.connection.stats().data_bytes_sent;
    assert!(sent < 350_000, "{sent} bytes were sent again");
}

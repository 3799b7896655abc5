use std::net::SocketAddr;

use proptest::prelude::*;
use weir_transport::wire::{Ports, emit, parse};
use weir_transport::{Flags, Options, Segment, SeqNum};
use weir_units::{Duration, Instant};

use super::*;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod erasure;

const KEY: Key = Key::new([7; 32]);

fn gate() -> Gate {
    Gate::new(KEY, [9; 32])
}

fn alice() -> SocketAddr {
    "192.0.2.1:4000".parse().unwrap()
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// From the sender, or with a SYN-ACK from the receiver.
fn segment(flags: Flags, payload: &[u8]) -> Vec<u8> {
    let segment = Segment {
        seq: SeqNum(1_000),
        flags,
        window: 500,
        payload_len: payload.len() as u32,
        options: Options { mss: flags.contains(Flags::SYN).then_some(1_408), ..Options::default() },
        ..Segment::default()
    };
    let mut bytes = Vec::new();
    let (source, destination) =
        if flags == Flags::SYN.with(Flags::ACK) { (9_000, 5) } else { (5, 9_000) };
    emit(&segment, Ports { source, destination }, payload, &mut bytes);
    bytes
}

fn syn() -> Vec<u8> {
    segment(Flags::SYN, &[])
}

fn syn_ack() -> Vec<u8> {
    segment(Flags::SYN.with(Flags::ACK), &[])
}

fn sealed(seal: &mut Seal, segment: &[u8]) -> Vec<u8> {
    sealed_at(seal, at(0), segment)
}

fn sealed_at(seal: &mut Seal, now: Instant, segment: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    let announced = seal.sealed_len(segment.len());
    seal.seal(now, segment, &mut datagram).unwrap();
    assert_eq!(datagram.len(), announced);
    datagram
}

fn answer(gate: &mut Gate, now: Instant, datagram: &[u8]) -> (Vec<u8>, Option<Initiator>) {
    let mut answer = Vec::new();
    let newcomer = gate.receive(now, alice(), datagram, &mut answer);
    assert!(answer.len() <= datagram.len(), "an answer is not longer than its question");
    (answer, newcomer)
}

/// An initiation that bears its cookie.
fn initiation(gate: &mut Gate, sender: &mut Seal, now: Instant) -> Vec<u8> {
    let first = sealed(sender, &syn());
    let (retry, newcomer) = answer(gate, now, &first);
    assert!(newcomer.is_none());
    match sender.open(at(0), &retry, &mut Vec::new()) {
        Opened::Answer(again) => again.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Both ends of a session; the receiver does not know yet that the sender has its keys.
fn pair() -> (Seal, Seal) {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let initiation = initiation(&mut gate, &mut sender, at(0));
    let (nothing, newcomer) = answer(&mut gate, at(1), &initiation);
    assert!(nothing.is_empty());
    let Initiator { seal: mut receiver, syn: arrived, .. } = newcomer.unwrap();
    assert_eq!(arrived, syn());
    let reply = sealed(&mut receiver, &syn_ack());
    assert!(reply.len() <= initiation.len());
    assert_eq!(sender.open(at(0), &reply, &mut Vec::new()), Opened::Segment(&syn_ack()));
    (sender, receiver)
}

fn opens(seal: &mut Seal, datagram: &[u8], segment: &[u8]) -> bool {
    match seal.open(at(0), datagram, &mut Vec::new()) {
        Opened::Segment(opened) => {
            assert_eq!(opened, segment);
            true
        }
        Opened::Nothing => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn segments_travel_both_ways() {
    let (mut sender, mut receiver) = pair();
    let there = segment(Flags::ACK, b"a file");
    let datagram = sealed(&mut sender, &there);
    assert_eq!(datagram.len(), there.len() + OVERHEAD);
    assert!(!datagram.windows(6).any(|window| window == b"a file"));
    assert!(opens(&mut receiver, &datagram, &there));
    let back = segment(Flags::ACK, b"done");
    let datagram = sealed(&mut receiver, &back);
    assert!(opens(&mut sender, &datagram, &back));
}

#[test]
fn the_handshake_is_sent_again_as_it_was() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let first = sealed(&mut sender, &syn());
    assert_eq!(sealed(&mut sender, &syn()), first);
    let with_cookie = initiation(&mut gate, &mut sender, at(0));
    assert_eq!(sealed(&mut sender, &syn()), with_cookie);

    let mut receiver = answer(&mut gate, at(1), &with_cookie).1.unwrap().seal;
    let reply = sealed(&mut receiver, &syn_ack());
    assert_eq!(sealed(&mut receiver, &syn_ack()), reply, "its first copy may be lost");
    assert!(opens(&mut sender, &reply, &syn_ack()));
    assert!(opens(&mut sender, &reply, &syn_ack()), "the connection acknowledges each copy");

    let ack = segment(Flags::ACK, &[]);
    let datagram = sealed(&mut sender, &ack);
    assert!(opens(&mut receiver, &datagram, &ack));
    let datagram = sealed(&mut receiver, &ack);
    assert!(opens(&mut sender, &datagram, &ack));
    assert!(!opens(&mut sender, &reply, &syn_ack()), "from here on it can only be a replay");
}

#[test]
fn a_cookie_is_for_one_initiation_from_one_address_for_a_while() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let initiation = initiation(&mut gate, &mut sender, at(1_000));
    let mut admits = |now, from| gate.receive(now, from, &initiation, &mut Vec::new()).is_some();
    assert!(!admits(at(16_001), alice()), "stale");
    assert!(!admits(at(999), alice()), "from the future");
    assert!(!admits(at(1_000), "192.0.2.1:4001".parse().unwrap()));
    assert!(!admits(at(1_000), "192.0.2.2:4000".parse().unwrap()));
    assert!(admits(at(16_000), alice()));
    assert!(!admits(at(16_000), alice()), "once");
    let mut other = Gate::new(KEY, [8; 32]);
    assert!(answer(&mut other, at(1_000), &initiation).1.is_none(), "another process's cookie");
}

#[test]
fn a_retry_is_answered_once() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let first = sealed(&mut sender, &syn());
    let (retry, _) = answer(&mut gate, at(0), &first);
    assert!(matches!(sender.open(at(0), &retry, &mut Vec::new()), Opened::Answer(_)));
    assert_eq!(sender.open(at(0), &retry, &mut Vec::new()), Opened::Nothing);
    let mut other = Seal::initiate(&KEY);
    sealed(&mut other, &syn());
    assert_eq!(other.open(at(0), &retry, &mut Vec::new()), Opened::Nothing, "not its token");
}

/// A recorded initiation, from another address with a fresh cookie, and from its own with its own.
#[test]
fn a_recorded_initiation_admits_no_sender() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let recorded = initiation(&mut gate, &mut sender, at(0));
    assert!(answer(&mut gate, at(0), &recorded).1.is_some());

    let mallory = "198.51.100.9:1".parse().unwrap();
    let mut retry = Vec::new();
    assert!(gate.receive(at(1), mallory, &recorded, &mut retry).is_none());
    let Some((_, Message::Retry { cookie, .. })) = Message::parse(&retry) else {
        panic!("a cookie for the other address")
    };
    let mut replayed = recorded.clone();
    replayed[12..52].copy_from_slice(&cookie);
    assert!(gate.receive(at(1), mallory, &replayed, &mut Vec::new()).is_none());

    let (retry, newcomer) = answer(&mut gate, at(2), &recorded);
    assert!(newcomer.is_none(), "its cookie is spent");
    assert!(matches!(Message::parse(&retry), Some((_, Message::Retry { .. }))));
    assert_eq!(gate.remembered(), 1);
    answer(&mut gate, at(15_001), &recorded);
    assert_eq!(gate.remembered(), 0, "a cookie that is too old need not be remembered");
}

#[test]
fn the_ports_are_sealed_too() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
    let mut moved = initiation(&mut gate, &mut sender, at(0));
    moved[0] ^= 1;
    let (retry, newcomer) = answer(&mut gate, at(0), &moved);
    assert!(newcomer.is_none());
    let Some((_, Message::Retry { cookie, .. })) = Message::parse(&retry) else {
        panic!("a cookie for the other ports")
    };
    moved[12..52].copy_from_slice(&cookie);
    assert!(answer(&mut gate, at(0), &moved).1.is_none());

    let (mut sender, mut receiver) = pair();
    let ack = segment(Flags::ACK, b"a file");
    let mut datagram = sealed(&mut sender, &ack);
    datagram[3] ^= 1;
    assert_eq!(receiver.open(at(0), &datagram, &mut Vec::new()), Opened::Nothing);
    datagram[3] ^= 1;
    assert!(opens(&mut receiver, &datagram, &ack));
}

#[test]
fn a_sender_with_another_key_gets_the_reason() {
    let (mut gate, mut sender) = (gate(), Seal::initiate(&Key::new([8; 32])));
    let initiation = initiation(&mut gate, &mut sender, at(0));
    let (notice, newcomer) = answer(&mut gate, at(0), &initiation);
    assert!(newcomer.is_none());
    assert_eq!(notices_until_refused(&mut sender, &notice), (Refusal::OtherKey, 3));
}

/// How many sendings have to be refused before that is believed. However often the notice comes for one, the
/// initiation may have been damaged on the way, and duplicated by the network.
fn notices_until_refused(sender: &mut Seal, notice: &[u8]) -> (Refusal, u32) {
    for sendings in 1..10 {
        sealed(sender, &syn());
        let mut open = || match sender.open(at(0), notice, &mut Vec::new()) {
            Opened::Refused(refusal) => Some(refusal),
            _ => None,
        };
        if let Some(refusal) = open() {
            return (refusal, sendings);
        }
        assert_eq!(open(), None, "a duplicate says nothing new");
    }
    panic!("never refused");
}

#[test]
fn a_receiver_with_several_keys_knows_whose_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for (name, byte) in [("alice", "07"), ("bob", "08")] {
        std::fs::write(folder.path().join(format!("{name}.key")), byte.repeat(32)).unwrap();
    }
    let mut gate = Gate::new(Keys::read_folder(folder.path()).unwrap(), [9; 32]);
    let mut admitted = |byte| {
        let mut sender = Seal::initiate(&Key::new([byte; 32]));
        let now = at(u64::from(byte));
        let initiation = initiation(&mut gate, &mut sender, now);
        let newcomer = answer(&mut gate, now, &initiation).1;
        newcomer.and_then(|newcomer| newcomer.key.name.clone())
    };
    assert_eq!(admitted(7).as_deref(), Some("alice"));
    assert_eq!(admitted(8).as_deref(), Some("bob"));
    assert_eq!(admitted(9), None);
    std::fs::remove_file(folder.path().join("alice.key")).unwrap();
    let mut gate = Gate::new(Keys::read_folder(folder.path()).unwrap(), [8; 32]);
    let mut sender = Seal::initiate(&KEY);
    let initiation = initiation(&mut gate, &mut sender, at(99));
    assert!(answer(&mut gate, at(99), &initiation).1.is_none(), "alice was removed");
}

#[test]
fn other_versions_are_refused_in_their_own_words() {
    let mut sender = Seal::initiate(&KEY);
    let mut initiation = sealed(&mut sender, &syn());
    for (version, reason) in [(b'1', 2), (b'3', 4)] {
        initiation[9] = version;
        initiation.truncate(180);
        let (notice, newcomer) = answer(&mut gate(), at(0), &initiation);
        assert!(newcomer.is_none());
        assert_eq!(notice[4..12], *[&b"weir/"[..], &[version], b" N"].concat());
        assert_eq!(notice[12..28], initiation[52..68], "the token");
        assert_eq!(notice[28..], [reason]);
        sender.open(at(0), &notice, &mut Vec::new());
    }
}

#[test]
fn a_stray_names_what_was_sealed_last() {
    let (mut sender, _) = pair();
    let ack = segment(Flags::ACK, &[]);
    let first = sealed(&mut sender, &ack);
    let last = sealed(&mut sender, &ack);
    let stray = |datagram: &[u8]| {
        let mut answer = Vec::new();
        answer_with_reset(datagram, &mut answer);
        assert!(!answer.is_empty() && answer.len() <= datagram.len());
        answer
    };
    assert_eq!(sender.open(at(0), &stray(&first), &mut Vec::new()), Opened::Nothing);
    assert_eq!(sender.open(at(0), &stray(&last), &mut Vec::new()), Opened::StatelessReset);
    let mut nothing = Vec::new();
    answer_with_reset(&syn()[..20], &mut nothing);
    assert!(nothing.is_empty());
}

/// The receiver's end seals nothing before it knows that the sender has its keys.
#[test]
fn a_stray_before_anything_was_sealed_names_nothing() {
    let (mut sender, mut receiver) = pair();
    let mut stray = Vec::new();
    answer_with_reset(&[&syn()[..4], &[0; COUNTER_LEN + TAG_LEN][..]].concat(), &mut stray);
    for seal in [&mut sender, &mut receiver] {
        assert_eq!(seal.open(at(0), &stray, &mut Vec::new()), Opened::Nothing);
    }
}

#[test]
fn keys_change_while_segments_travel() {
    let (mut sender, mut receiver) = pair();
    for minutes in 0..20 {
        let now = at(minutes * 60_000);
        for (from, to) in [(true, "there"), (false, "back")] {
            let (a, b) = match from {
                true => (&mut sender, &mut receiver),
                false => (&mut receiver, &mut sender),
            };
            let sent = segment(Flags::ACK, to.as_bytes());
            let datagram = sealed_at(a, now, &sent);
            assert_eq!(u64::from(datagram[5]), minutes / 2, "the epoch");
            let mut scratch = Vec::new();
            assert_eq!(b.open(now, &datagram, &mut scratch), Opened::Segment(&sent));
        }
    }
}

#[test]
fn a_receiver_without_a_key_says_so() {
    let mut sender = Seal::initiate(&KEY);
    let initiation = sealed(&mut sender, &syn());
    let mut notice = Vec::new();
    refuse_sealed(&initiation, &mut notice);
    assert!(!notice.is_empty() && notice.len() <= initiation.len());
    assert_eq!(notices_until_refused(&mut sender, &notice), (Refusal::NoKey, 3));
    let mut nothing = Vec::new();
    refuse_sealed(&syn(), &mut nothing);
    assert!(nothing.is_empty());
}

#[test]
fn a_syn_in_clear_is_reset_with_the_reason() {
    let refused = |question: &[u8]| {
        let mut answer = Vec::new();
        refuse_in_clear(question, &mut answer);
        assert!(answer.len() <= question.len());
        answer
    };
    let padded = refused(&segment(Flags::SYN, &[0; 60]));
    let reset = parse(&padded).unwrap();
    assert_eq!(reset.segment.flags, Flags::RST.with(Flags::ACK));
    assert_eq!(reset.segment.ack, SeqNum(1_001));
    assert_eq!(reset.ports, Ports { source: 9_000, destination: 5 });
    assert_eq!(Refusal::in_reset(reset.payload), Some(Refusal::KeyNeeded));
    let bare = refused(&syn());
    assert_eq!(parse(&bare).unwrap().payload, b"", "no space for it");
    assert!(refused(&syn_ack()).is_empty());
    assert!(refused(&segment(Flags::RST, &[0; 60])).is_empty());
    assert!(refused(b"whatever").is_empty());
}

/// What happens to datagrams on their way.
#[derive(Clone, Debug)]
enum Fate {
    Deliver,
    Twice,
    Lose,
    /// The bit at this place, modulo the length, turns over.
    Flip(usize),
    Cut(usize),
    Grow(Vec<u8>),
    /// It comes again after this many others.
    Late(usize),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Deliver),
        1 => Just(Fate::Twice),
        1 => Just(Fate::Lose),
        3 => any::<usize>().prop_map(Fate::Flip),
        1 => any::<usize>().prop_map(Fate::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Fate::Grow),
        1 => (1..40usize).prop_map(Fate::Late),
    ]
}

fn mangled(datagram: &[u8], fate: &Fate) -> Option<Vec<u8>> {
    let mut bytes = datagram.to_vec();
    match fate {
        Fate::Flip(at) => bytes[at / 8 % datagram.len()] ^= 1 << (at % 8),
        Fate::Cut(at) => bytes.truncate(at % datagram.len()),
        Fate::Grow(by) => bytes.extend(by),
        _ => return None,
    }
    Some(bytes)
}

proptest! {
    /// Whatever happens on the way, what opens is what was sealed, and each but once.
    #[test]
    fn what_opens_was_sealed(
        fates in prop::collection::vec((fate(), prop::collection::vec(any::<u8>(), 0..100)), 1..60)
    ) {
        let (mut sender, mut receiver) = pair();
        let mut late: Vec<(usize, Vec<u8>)> = Vec::new();
        for (step, (fate, payload)) in fates.iter().enumerate() {
            let sent = segment(Flags::ACK, payload);
            let datagram = sealed(&mut sender, &sent);
            let mut scratch = Vec::new();
            if let Some(bytes) = mangled(&datagram, fate) {
                prop_assert_eq!(receiver.open(at(0), &bytes, &mut scratch), Opened::Nothing);
                prop_assert!(opens(&mut receiver, &datagram, &sent));
            } else if !matches!(fate, Fate::Lose) {
                prop_assert!(opens(&mut receiver, &datagram, &sent));
            }
            match fate {
                Fate::Twice => prop_assert!(!opens(&mut receiver, &datagram, &sent)),
                Fate::Late(by) => late.push((step + by, datagram)),
                _ => {}
            }
            for (_, replayed) in late.iter().filter(|(due, _)| *due == step) {
                prop_assert_eq!(receiver.open(at(0), replayed, &mut scratch), Opened::Nothing);
            }
        }
    }

    /// A window's worth may arrive in any order.
    #[test]
    fn order_does_not_matter(order in Just((0..50usize).collect::<Vec<_>>()).prop_shuffle()) {
        let (mut sender, mut receiver) = pair();
        let sent: Vec<_> = order.iter().map(|i| segment(Flags::ACK, &[*i as u8])).collect();
        let datagrams: Vec<_> = sent.iter().map(|segment| sealed(&mut sender, segment)).collect();
        for i in order {
            prop_assert!(opens(&mut receiver, &datagrams[i], &sent[i]));
        }
    }

    /// The handshake survives any one of its datagrams being changed first: the change is not noticed
    /// by either side, except that a changed initiation may be asked to come again.
    #[test]
    fn a_changed_handshake_changes_nothing(fates in prop::collection::vec(fate(), 3)) {
        let (mut gate, mut sender) = (gate(), Seal::initiate(&KEY));
        let mut scratch = Vec::new();
        let first = sealed(&mut sender, &syn());
        if let Some(bytes) = mangled(&first, &fates[0]) {
            prop_assert!(gate.receive(at(0), alice(), &bytes, &mut Vec::new()).is_none());
        }
        let (retry, _) = answer(&mut gate, at(0), &first);
        if let Some(bytes) = mangled(&retry, &fates[1]) {
            let opened = sender.open(at(0), &bytes, &mut scratch);
            prop_assert!(matches!(opened, Opened::Nothing | Opened::Answer(_)));
        }
        let again = initiation(&mut gate, &mut sender, at(1));
        let mut receiver = answer(&mut gate, at(1), &again).1.unwrap().seal;
        let reply = sealed(&mut receiver, &syn_ack());
        if let Some(bytes) = mangled(&reply, &fates[2]) {
            prop_assert_eq!(sender.open(at(0), &bytes, &mut scratch), Opened::Nothing);
        }
        prop_assert!(opens(&mut sender, &reply, &syn_ack()));
    }

    /// Arbitrary bytes open nothing and get nothing longer back.
    #[test]
    fn any_bytes_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (mut sender, mut receiver) = pair();
        let mut scratch = Vec::new();
        prop_assert_eq!(sender.open(at(0), &bytes, &mut scratch), Opened::Nothing);
        prop_assert_eq!(receiver.open(at(0), &bytes, &mut scratch), Opened::Nothing);
        prop_assert!(answer(&mut gate(), at(0), &bytes).1.is_none());
        let sent = segment(Flags::ACK, b"still here");
        let datagram = sealed(&mut sender, &sent);
        prop_assert!(opens(&mut receiver, &datagram, &sent));
    }
}

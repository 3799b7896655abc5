use std::net::Ipv4Addr;

use proptest::prelude::*;
use weir_transport::{Event, Transmit};

use super::*;

fn at(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

fn address(host: u8, port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), port).into()
}

fn porter() -> Cookies {
    Cookies::new([7; 32])
}

/// A datagram with a note, as it arrives.
fn noted(segment: &Segment, note: &CookieField) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit_noted(segment, Ports { source: 1, destination: 2 }, note, &mut bytes);
    bytes
}

fn receive(cookies: &Cookies, now: Instant, from: SocketAddr, datagram: &[u8]) -> SynOutcome {
    match wire::parse(datagram) {
        Ok(syn) => cookies.receive(now, from, &Config::default(), &syn),
        Err(_) => SynOutcome::Nothing,
    }
}

fn open(now: Instant) -> (Connection, Segment) {
    let mut client = Connection::connect(&Config::default(), now, stream(1, "client"));
    let Transmit { segment, .. } = client.poll_transmit(now).unwrap();
    (client, segment)
}

/// The answer to a SYN and its cookie.
fn answer(now: Instant, from: SocketAddr, syn: &Segment) -> (Segment, CookieField) {
    match receive(&porter(), now, from, &noted(syn, &NO_COOKIE)) {
        SynOutcome::Answer(segment, cookie) => (segment, cookie),
        _ => panic!("a SYN is answered"),
    }
}

#[test]
fn a_returned_cookie_gives_the_connection_that_was_answered_for() {
    let (mut client, syn) = open(at(0));
    let (syn_ack, cookie) = answer(at(500), address(1, 9), &syn);
    client.handle_segment(at(1_000), &syn_ack, Ecn::NotEct);
    assert_eq!(client.poll_event(), Some(Event::Connected));
    let confirmation = client.poll_transmit(at(1_000)).unwrap().segment;

    let claim = noted(&syn, &cookie);
    let SynOutcome::Admitted(mut server) = receive(&porter(), at(1_500), address(1, 9), &claim)
    else {
        panic!("a cookie admits")
    };
    assert!(server.poll_transmit(at(1_500)).is_none(), "it was answered already");
    server.handle_segment(at(1_500), &confirmation, Ecn::NotEct);
    assert_eq!(server.poll_event(), Some(Event::Connected));
    assert_eq!(server.poll_rtt_sample(), Some(Duration::from_micros(1_000)), "since the answer");
}

#[test]
fn the_answer_is_no_longer_than_the_question() {
    let (_, syn) = open(at(0));
    let (syn_ack, cookie) = answer(at(500), address(1, 9), &syn);
    assert!(noted(&syn_ack, &cookie).len() <= noted(&syn, &NO_COOKIE).len());
    let mut unpadded = Vec::new();
    wire::emit(&syn, Ports::default(), &[], &mut unpadded);
    assert!(matches!(receive(&porter(), at(1), address(1, 9), &unpadded), SynOutcome::Nothing));
}

#[test]
fn an_introduction_lasts_until_the_peer_says_more() {
    let (_, syn) = open(at(0));
    let (syn_ack, cookie) = answer(at(500), address(1, 9), &syn);
    let mut introduction = CookieExchange::Asking(Vec::new());
    assert_eq!(introduction.on_leaving(&syn), Some(NO_COOKIE));
    let mut arrive_at = |micros: u64, segment: &Segment, note: &[u8]| {
        let segment = Segment { payload_len: note.len() as u32, ..*segment };
        let mut parsed = Parsed { segment, ports: Ports::default(), payload: note };
        let heard = introduction.on_arrival(at(micros), &mut parsed);
        (heard, parsed.segment.payload_len, introduction.claim())
    };
    let mut arrive = |segment: &Segment, note: &[u8]| arrive_at(1_000, segment, note);
    let claim = Some((syn, cookie));
    assert_eq!(arrive(&syn_ack, &cookie), (true, 0, claim), "the note is not the stream's");
    let reset = Segment { flags: Flags::RST, ..Segment::default() };
    assert_eq!(arrive(&reset, &[]), (false, 0, claim), "it missed the cookie");
    let (heard, ..) = arrive(&reset, &cookie);
    assert!(heard, "it saw the cookie");
    let ack = Segment { flags: Flags::ACK, ..Segment::default() };
    assert_eq!(arrive(&ack, &[1]), (true, 1, None));
    assert_eq!(arrive(&reset, &[]), (false, 0, None), "of what overtook the cookie");
    assert_eq!(arrive_at(1_001_000, &reset, &[]), (true, 0, None));
}

#[test]
fn of_two_syns_the_one_that_was_answered_is_shown() {
    let (mut client, first) = open(at(0));
    let later = client.next_timeout(at(0)).expect("the SYN's timer");
    client.handle_timeout(later);
    let second = client.poll_transmit(later).unwrap().segment;
    let mut introduction = CookieExchange::Asking(Vec::new());
    introduction.on_leaving(&first);
    introduction.on_leaving(&second);
    let (syn_ack, cookie) = answer(at(1_100_000), address(1, 9), &first);
    let segment = Segment { payload_len: 24, ..syn_ack };
    let mut parsed = Parsed { segment, ports: Ports::default(), payload: &cookie };
    assert!(introduction.on_arrival(at(1_100_000), &mut parsed));
    assert_eq!(introduction.claim(), Some((first, cookie)));
}

#[test]
fn a_reset_that_repeats_the_cookie_counts_whatever_its_number() {
    let (mut client, syn) = open(at(0));
    let mut introduction = CookieExchange::Asking(Vec::new());
    introduction.on_leaving(&syn);
    let (syn_ack, cookie) = answer(at(500), address(1, 9), &syn);
    let note = Segment { payload_len: 24, ..syn_ack };
    let mut parsed = Parsed { segment: note, ports: Ports::default(), payload: &cookie };
    assert!(introduction.on_arrival(at(1_000), &mut parsed));
    client.handle_segment(at(1_000), &parsed.segment, Ecn::NotEct);
    let reset = Segment { flags: Flags::RST, payload_len: 24, ..Segment::default() };
    let mut parsed = Parsed { segment: reset, ports: Ports::default(), payload: &cookie };
    assert!(introduction.on_arrival(at(1_500), &mut parsed));
    client.handle_segment(at(1_500), &parsed.segment, Ecn::NotEct);
    assert!(client.is_closed());
}

proptest! {
    #[test]
    fn only_the_cookie_itself_admits(
        bit in 0..usize::MAX,
        host in 1..4u8,
        port in 8..11u16,
        late in 0..40_000_000u64,
        asked in 0..1_000_000_000u64,
    ) {
        let (_, syn) = open(at(0));
        let (_, cookie) = answer(at(asked), address(1, 9), &syn);
        let claim = noted(&syn, &cookie);
        let here = host == 1 && port == 9;
        let fresh = late <= 15_000_000;
        let reception = receive(&porter(), at(asked + late), address(host, port), &claim);
        prop_assert_eq!(matches!(reception, SynOutcome::Admitted(_)), here && fresh);

        // A changed bit of the cookie or of the SYN, with a checksum that is right.
        let mut forged = claim.clone();
        let bits = forged.len() * 8;
        forged[bit % bits / 8] ^= 1 << (bit % 8);
        if let Some(resealed) = resealed(&forged, &claim) {
            let reception = receive(&porter(), at(asked), address(1, 9), &resealed);
            prop_assert!(!matches!(reception, SynOutcome::Admitted(_)));
        }
        let other = Cookies::new([8; 32]);
        let reception = receive(&other, at(asked), address(1, 9), &claim);
        prop_assert!(matches!(reception, SynOutcome::Stale(note) if note == cookie));
    }

    #[test]
    fn the_same_question_has_the_same_answer(asked in 0..1_000_000_000u64, host in 1..4u8) {
        let (_, syn) = open(at(0));
        let from = address(host, 9);
        prop_assert_eq!(answer(at(asked), from, &syn), answer(at(asked), from, &syn));
        let (later, _) = answer(at(asked + 1), from, &syn);
        prop_assert_ne!(later.seq, answer(at(asked), from, &syn).0.seq);
    }
}

/// The datagram with its checksum made right, if it says something else than `original`.
fn resealed(datagram: &[u8], original: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = datagram.to_vec();
    let right = (0..=u16::MAX).find(|sum| {
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        wire::parse(&bytes).is_ok()
    });
    right?;
    (wire::parse(&bytes) != wire::parse(original)).then_some(bytes)
}

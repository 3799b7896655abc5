//! Data on the SYN (RFC 7413).

use weir_transport::{Config, Connection, Flags, Segment, State};
use weir_units::{Duration, Ecn, Instant, stream};

const START: Instant = Instant::from_nanos(1_000_000_000);
const RTT: Duration = Duration::from_millis(40);

/// All that a connection sends now.
fn sent(connection: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| connection.poll_transmit(now)).map(|transmit| transmit.segment).collect()
}

/// A client that has written `written` bytes, of which its SYN carries `early`; the SYN.
fn client(written: u64, early: u32) -> (Connection, Segment) {
    let mut client = Connection::connect(&Config::default(), START, stream(1, "client"));
    client.write(START, written);
    client.send_with_syn(early);
    let syn = sent(&mut client, START);
    assert_eq!(syn.len(), 1);
    (client, syn[0])
}

fn server(opens: bool) -> Connection {
    let mut server = Connection::listen(&Config::default(), stream(1, "server"));
    if opens {
        server.open_with_syn();
    }
    server
}

#[test]
fn a_syn_carries_data_that_the_server_reads_and_answers_at_once() {
    let (mut client, syn) = client(1_000, 1_000);
    assert_eq!((syn.flags, syn.payload_len), (Flags::SYN, 1_000));
    let mut server = server(true);
    let half = START + RTT / 2;
    server.handle_segment(half, &syn, Ecn::NotEct);
    assert_eq!((server.readable(), server.is_unconfirmed()), (1_000, true));
    server.write(half, 500);
    let answers = sent(&mut server, half);
    let sizes: Vec<_> = answers.iter().map(|s| (s.flags, s.payload_len)).collect();
    let syn_ack = Flags::SYN.with(Flags::ACK);
    assert_eq!(sizes, [(syn_ack, 0), (Flags::ACK.with(Flags::PSH), 500)]);
    assert_eq!(answers[0].ack, syn.seq + 1_001);

    let end = START + RTT;
    for answer in &answers {
        client.handle_segment(end, answer, Ecn::NotEct);
    }
    assert!(client.syn_data_accepted() && client.unacknowledged().get() == 0);
    assert_eq!(client.readable(), 500);
    for segment in sent(&mut client, end) {
        server.handle_segment(end + RTT / 2, &segment, Ecn::NotEct);
    }
    assert!(!server.is_unconfirmed() && server.unacknowledged().get() == 0);
    assert_eq!(server.snapshot().srtt, Some(RTT));
}

#[test]
fn data_that_a_server_does_not_take_is_sent_again_without_a_loss() {
    let (mut client, syn) = client(3_000, 1_000);
    let mut server = server(false);
    server.handle_segment(START, &syn, Ecn::NotEct);
    assert_eq!((server.readable(), server.state()), (0, State::SynReceived));
    let answer = sent(&mut server, START)[0];
    assert_eq!(answer.ack, syn.seq + 1);
    let end = START + RTT;
    client.handle_segment(end, &answer, Ecn::NotEct);
    let sizes: Vec<u32> = sent(&mut client, end).iter().map(|s| s.payload_len).collect();
    assert_eq!(sizes, [1_000, 1_448, 552], "and no acknowledgement alone");
    assert!(!client.syn_data_accepted());
    assert_eq!((client.stats().retransmits, client.snapshot().ssthresh), (1, None));
}

#[test]
fn a_syn_that_is_sent_again_carries_no_data() {
    let (mut client, syn) = client(1_000, 1_000);
    let later = client.next_timeout(START).expect("the SYN's timer");
    client.handle_timeout(later);
    let again = sent(&mut client, later)[0];
    assert_eq!((again.seq, again.payload_len), (syn.seq, 0));
}

#[test]
fn the_answer_to_a_syn_that_opened_is_sent_again_until_it_is_acknowledged() {
    let (_, syn) = client(100, 100);
    let mut server = server(true);
    server.handle_segment(START, &syn, Ecn::NotEct);
    server.write(START, 100);
    assert_eq!(sent(&mut server, START).len(), 2);
    let later = server.next_timeout(START).expect("the handshake's timer");
    // Ticks are 64 ms apart that far ahead.
    let (least, most) = (Duration::from_secs(1), Duration::from_millis(1_064));
    assert!((least..=most).contains(&(later - START)), "{later:?}");
    server.handle_timeout(later);
    let again = sent(&mut server, later);
    assert_eq!(again.len(), 1, "data waits for the end of the handshake");
    assert!(again[0].flags.contains(Flags::SYN));
}

//! The state machine by itself, driven by carrier and frame events.

use weir_units::{Rate, stream};

use super::*;

const PACKET: Bytes = Bytes(1_040);
const PEER: NodeId = NodeId(2);

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}

fn mac(access: Access) -> Dcf {
    let config = MacConfig { access, ..MacConfig::default() };
    Dcf::new(NodeId(1), 4, Phy::default(), config, stream(1, "backoff"))
}

fn frame(kind: FrameKind, from: NodeId, to: NodeId, micros: u64) -> Header {
    let (duration, airtime) = (Duration::from_micros(micros), Duration::from_micros(304));
    Header { kind, from, to, duration, airtime, sequence: 1, announced: true }
}

/// The frame that ends at `now` is read.
fn hear(dcf: &mut Dcf, now: Instant, header: &Header) -> Action {
    dcf.carrier_on(now - header.airtime);
    dcf.carrier_off(now);
    let action = dcf.received(now, header);
    dcf.settle(now);
    action
}

/// Lets its deadline pass; says when that was.
fn expire(dcf: &mut Dcf) -> (Instant, Action) {
    let now = dcf.deadline().unwrap();
    let action = dcf.handle_timeout(now);
    dcf.settle(now);
    (now, action)
}

fn submit(dcf: &mut Dcf, now: Instant) {
    dcf.submit(now, PEER, PACKET);
    dcf.settle(now);
}

#[test]
fn an_overheard_reservation_is_kept_to_its_end() {
    let mut dcf = mac(Access::Ns2);
    hear(&mut dcf, at(1_000), &frame(FrameKind::Rts, NodeId(3), PEER, 5_000));
    submit(&mut dcf, at(1_100));
    let slots = dcf.deadline().unwrap() - at(6_000 + 50);
    assert!(slots.as_micros().is_multiple_of(20) && slots.as_micros() <= 30 * 20, "{slots:?}");
    assert_eq!(dcf.nav(), at(6_000));
}

#[test]
fn no_cts_is_returned_within_a_reservation() {
    let rts = frame(FrameKind::Rts, PEER, NodeId(1), 5_000);
    let mut dcf = mac(Access::Ns2);
    hear(&mut dcf, at(1_000), &rts);
    let (when, action) = expire(&mut dcf);
    assert_eq!(when, at(1_010));
    assert!(matches!(action, Action::Transmit(Header { kind: FrameKind::Cts, .. })));

    let mut dcf = mac(Access::Ns2);
    hear(&mut dcf, at(600), &frame(FrameKind::Rts, NodeId(3), NodeId(0), 5_000));
    hear(&mut dcf, at(1_000), &rts);
    assert_eq!(expire(&mut dcf), (at(1_010), Action::Nothing));
    assert_eq!(dcf.deadline(), None);
}

/// RTS + SIFS + CTS + 4 us, and a window twice as wide each time, up to the seventh.
#[test]
fn an_unanswered_rts_is_repeated_with_a_wider_window() {
    let mut dcf = mac(Access::Ns2);
    submit(&mut dcf, at(0));
    for expected in [63, 127, 255, 511, 1_023, 1_023] {
        let (sent, action) = expire(&mut dcf);
        assert!(matches!(action, Action::Transmit(Header { kind: FrameKind::Rts, .. })));
        let (failed, action) = expire(&mut dcf);
        assert_eq!(failed - sent, Duration::from_micros(352 + 10 + 304 + 4));
        assert_eq!((action, dcf.cw), (Action::Retry(Attempt::Short), expected));
    }
    expire(&mut dcf);
    let outcome = Outcome::GivenUp(Attempt::Short);
    assert_eq!(expire(&mut dcf).1, Action::Finished { outcome, retries: 6 });
    assert_eq!(dcf.cw, 31);
}

/// 0 ..= 30 slots in ns-2, 0 ..= 31 in the standard.
#[test]
fn windows_are_drawn_to_their_ends() {
    for (access, last) in [(Access::Ns2, 30), (Access::Standard, 31)] {
        let mut dcf = mac(access);
        let draws: Vec<u32> = (0..2_000).map(|_| dcf.draw()).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&0), Some(&last)));
    }
}

#[test]
fn the_unfrozen_wait_doubles_the_window_if_it_ends_in_traffic() {
    let mut dcf = mac(Access::Ns2Unfrozen);
    submit(&mut dcf, at(0));
    let end = dcf.deadline().unwrap();
    dcf.carrier_on(at(10));
    assert_eq!(dcf.deadline(), Some(end), "it does not freeze");
    assert_eq!(expire(&mut dcf), (end, Action::Nothing));
    assert_eq!((dcf.cw, dcf.deadline()), (63, None));
    dcf.carrier_off(at(10_000));
    dcf.settle(at(10_000));
    assert!(dcf.deadline().is_some_and(|when| when >= at(10_050)));
}

#[test]
fn a_repeated_frame_is_acknowledged_and_not_delivered() {
    let mut dcf = mac(Access::Ns2);
    let data = Header { announced: false, ..frame(FrameKind::Data, PEER, NodeId(1), 314) };
    for expected in [Action::Deliver, Action::Duplicate] {
        let start = dcf.sent_until + Duration::from_micros(1_000);
        assert_eq!(hear(&mut dcf, start, &data), expected);
        let (_, action) = expire(&mut dcf);
        assert!(matches!(action, Action::Transmit(Header { kind: FrameKind::Ack, .. })));
        expire(&mut dcf);
    }
    let next = Header { sequence: 2, ..data };
    assert_eq!(hear(&mut dcf, at(9_000), &next), Action::Deliver);
}

#[test]
fn a_backoff_follows_what_was_sent() {
    let mut dcf = mac(Access::Ns2);
    submit(&mut dcf, at(0));
    let (rts, _) = expire(&mut dcf);
    hear(&mut dcf, rts + Duration::from_micros(666), &frame(FrameKind::Cts, PEER, NodeId(1), 0));
    let (data, action) = expire(&mut dcf);
    assert!(matches!(action, Action::Transmit(Header { kind: FrameKind::Data, .. })));
    let now = data + Duration::from_micros(4_464 + 10 + 304);
    let action = hear(&mut dcf, now, &frame(FrameKind::Ack, PEER, NodeId(1), 0));
    assert_eq!(action, Action::Finished { outcome: Outcome::Sent, retries: 0 });
    dcf.complete(None);
    dcf.settle(now);
    let end = dcf.deadline().unwrap();
    submit(&mut dcf, now + Duration::from_micros(5));
    assert_eq!(dcf.deadline(), Some(end), "a packet that comes now waits for the same backoff");
}

/// §9.2.3.4: EIFS, which begins anew with each such frame, ends with one that can be read.
#[test]
fn the_standards_eifs_ends_with_a_readable_frame() {
    let mut dcf = mac(Access::Standard);
    dcf.carrier_on(at(100));
    dcf.carrier_off(at(500));
    dcf.received_garbage(at(500));
    assert_eq!(dcf.gap_end(at(500)), at(500 + 364));
    hear(&mut dcf, at(900), &frame(FrameKind::Ack, NodeId(3), PEER, 0));
    assert_eq!(dcf.gap_end(at(900)), at(900 + 50));
}

/// §9.2.5.7: the answer is missed if nothing has begun within SIFS and a slot.
#[test]
fn the_standard_misses_an_answer_early_unless_it_has_begun() {
    let mut dcf = mac(Access::Standard);
    submit(&mut dcf, at(0));
    let (sent, _) = expire(&mut dcf);
    assert_eq!(dcf.deadline(), Some(sent + Duration::from_micros(352 + 30)));
    dcf.carrier_on(sent + Duration::from_micros(352 + 11));
    assert_eq!(expire(&mut dcf).1, Action::Nothing);
    assert_eq!(dcf.deadline(), Some(sent + Duration::from_micros(352 + 30 + 304)));
    assert_eq!(expire(&mut dcf).1, Action::Retry(Attempt::Short));
}

/// What a broadcast costs: its airtime at the basic rate, and then a backoff.
#[test]
fn a_broadcast_expects_no_answer() {
    let phy = Phy { data: Rate::from_mbit(11), ..Phy::default() };
    let mut dcf = Dcf::new(NodeId(1), 4, phy, MacConfig::default(), stream(1, "backoff"));
    dcf.submit(at(0), NodeId::BROADCAST, Bytes(28));
    dcf.settle(at(0));
    let (sent, _) = expire(&mut dcf);
    let (done, action) = expire(&mut dcf);
    assert_eq!(done - sent, Duration::from_micros(192 + 56 * 8));
    assert_eq!(action, Action::Finished { outcome: Outcome::Sent, retries: 0 });
}

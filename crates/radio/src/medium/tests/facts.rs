//! Single facts about the channel and the MAC, seen in the frames on the air.

use weir_units::Ratio;

use super::*;
use crate::{Access, Arp, FrameKind, MacConfig, PacketClass, Phy};
use weir_net::Backlog;
use weir_net::feedback::Occupancy;

const DATA: u64 = 1_040;

/// What happened: frames as (kind, sender, start in microseconds, read), and events.
struct Run {
    radio: TestRadio,
    frames: Vec<(FrameKind, u16, u64, bool)>,
    delivered: Vec<(u64, u16)>,
    dropped: Vec<(u64, DropReason)>,
}

/// Offers (microsecond, from, to) in order, with numbers from zero, and runs for a second.
fn play(mut radio: TestRadio, offers: &[(u64, u16, u16)]) -> Run {
    radio.log_frames(1_000);
    let (mut delivered, mut dropped) = (Vec::new(), Vec::new());
    let mut note = |_: &mut TestRadio, _, event: RadioEvent<Probe>| match event {
        RadioEvent::Delivered { parcel, node, .. } => delivered.push((parcel.id, node.0)),
        RadioEvent::Dropped { parcel, reason, .. } => dropped.push((parcel.id, reason)),
        other => panic!("{other:?}"),
    };
    for (id, (micros, from, to)) in offers.iter().enumerate() {
        let now = Instant::from_nanos(micros * 1_000);
        run_until(&mut radio, now, &mut note);
        radio.offer(now, NodeId(*from), NodeId(*to), Probe::data(id as u64, DATA));
    }
    run_until(&mut radio, secs(1), note);
    let frame = |f: FrameRecord| (f.kind, f.node.0, f.start.as_micros(), f.readers > 0);
    let frames = radio.drain_frames().into_iter().map(frame).collect();
    Run { radio, frames, delivered, dropped }
}

/// The first DIFS ends in the first slot: a window of one has no other, so times are exact.
fn no_backoff(access: Access) -> RadioConfig {
    let phy = Phy { cw_min: 1, cw_max: 1, ..Phy::default() };
    let mac = MacConfig { access, ..MacConfig::default() };
    RadioConfig { phy, mac, ..RadioConfig::default() }
}

#[test]
fn an_exchange_has_four_frames_with_sifs_between_them() {
    let run = play(chain(&no_backoff(Access::Ns2), 1, 1), &[(0, 0, 1)]);
    let starts: Vec<_> = run.frames.iter().map(|(kind, node, at, _)| (*kind, *node, *at)).collect();
    let (rts, cts) = (25 + 50, 25 + 50 + 352 + 10);
    let data = cts + 304 + 10 + 1;
    let expected = [
        (FrameKind::Rts, 0, rts),
        (FrameKind::Cts, 1, cts),
        (FrameKind::Data, 0, data),
        (FrameKind::Ack, 1, data + 4_464 + 10 + 1),
    ];
    assert_eq!(starts, expected);
    assert_eq!(run.delivered, [(0, 1)]);
}

/// CTS and acknowledgements carry no packet.
#[test]
fn the_record_tells_what_a_frame_carries_and_from_where() {
    let mut radio = chain(&no_backoff(Access::Ns2), 1, 1);
    radio.log_frames(3);
    radio.offer(Instant::ZERO, NodeId(0), NodeId(1), Probe::data(7, DATA));
    run_until(&mut radio, secs(1), |_, _, _| {});
    let frames = radio.drain_frames();
    let decoded: Vec<_> = frames
        .iter()
        .map(|frame| (frame.kind, frame.place, frame.cargo.map(|cargo| (cargo.flow, cargo.mark))))
        .collect();
    let (near, far) = (radio.position(NodeId(0)).unwrap(), radio.position(NodeId(1)).unwrap());
    let packet = Some((Probe::data(7, DATA).flow(), None));
    let expected = [
        (FrameKind::Rts, near, packet),
        (FrameKind::Cts, far, None),
        (FrameKind::Data, near, packet),
    ];
    assert_eq!(decoded, expected, "and the log holds three");
}

/// IEEE 802.11-2007 §9.2.5.1: a medium that has been idle for DIFS is free at once.
#[test]
fn the_standard_sends_at_once_on_an_idle_medium() {
    let mac = MacConfig { access: Access::Standard, ..MacConfig::default() };
    let config = RadioConfig { mac, ..RadioConfig::default() };
    let run = play(chain(&config, 1, 1), &[(1_000, 0, 1)]);
    assert_eq!(run.frames[0], (FrameKind::Rts, 0, 1_025, true));
}

#[test]
fn packets_below_the_threshold_go_without_an_rts() {
    let mac = MacConfig { rts_threshold: Bytes(DATA + 1), ..MacConfig::default() };
    let run = play(chain(&RadioConfig { mac, ..RadioConfig::default() }, 1, 1), &[(0, 0, 1)]);
    let kinds: Vec<_> = run.frames.iter().map(|frame| frame.0).collect();
    assert_eq!(kinds, [FrameKind::Data, FrameKind::Ack]);
}

#[test]
fn seven_unanswered_rts_end_in_a_drop() {
    let run = play(line(&RadioConfig::default(), &[0, 251], 1), &[(0, 0, 1)]);
    assert_eq!(run.frames.len(), 7);
    assert!(run.frames.iter().all(|frame| frame.0 == FrameKind::Rts && !frame.3));
    assert_eq!(run.dropped, [(0, DropReason::MacRetries)]);
    let stats = run.radio.stats(NodeId(0), secs(1));
    assert_eq!((stats.short_retries, stats.lost), (7, 7));
    assert_eq!(stats.dropped(PacketClass::Parcel, DropReason::MacRetries), 1);
}

#[test]
fn four_unacknowledged_data_frames_end_in_a_drop() {
    let config = RadioConfig { frame_error: Ratio::ONE, ..RadioConfig::default() };
    let run = play(chain(&config, 1, 1), &[(0, 0, 1)]);
    let data = run.frames.iter().filter(|frame| frame.0 == FrameKind::Data).count();
    assert_eq!((data, run.dropped), (4, vec![(0, DropReason::MacRetries)]));
}

#[test]
fn a_loss_above_the_mac_is_not_repeated() {
    let config = RadioConfig { packet_loss: Ratio::ONE, ..RadioConfig::default() };
    let run = play(chain(&config, 1, 1), &[(0, 0, 1)]);
    assert_eq!((run.frames.len(), run.dropped), (4, vec![(0, DropReason::FrameError)]));
}

/// Without a backoff two nodes that begin together do so each time.
#[test]
fn a_frame_that_begins_while_a_node_sends_is_lost_to_it() {
    let run = play(chain(&no_backoff(Access::Ns2), 1, 1), &[(0, 0, 1), (0, 1, 0)]);
    assert_eq!(run.frames.len(), 14);
    assert!(run.frames.iter().all(|frame| frame.0 == FrameKind::Rts && !frame.3));
    assert_eq!(run.dropped, [(0, DropReason::MacRetries), (1, DropReason::MacRetries)]);
    assert_eq!(run.radio.total(secs(1)).collisions, 0, "neither hears two frames");
}

/// Node 4 sends to 5 while node 1 sends to 2: three hops apart, they do not sense each other.
fn three_hops_apart(first: (u16, u16), second: (u16, u16)) -> Run {
    let offers = [(0, first.0, first.1), (1_000, second.0, second.1)];
    play(chain(&no_backoff(Access::Ns2), 5, 1), &offers)
}

/// The upstream frame is 12 dB stronger at its receiver than what comes from two hops away.
#[test]
fn an_earlier_upstream_frame_survives_a_later_downstream_one() {
    let run = three_hops_apart((1, 2), (4, 5));
    let data: Vec<_> = run.frames.iter().filter(|frame| frame.0 == FrameKind::Data).collect();
    assert_eq!(data.len(), 2, "{data:?}");
    assert!(data.iter().all(|frame| frame.3), "{data:?}");
    assert_eq!(run.radio.total(secs(1)).short_retries, 0);
}

/// The RTS for node 2 meets the frames of node 4 there, and a later stronger one never captures.
#[test]
fn a_later_upstream_rts_is_lost_until_the_downstream_frame_ends() {
    let run = three_hops_apart((4, 5), (1, 2));
    let end = run.frames.iter().find(|frame| frame.0 == FrameKind::Ack).unwrap().2;
    let tries: Vec<_> =
        run.frames.iter().filter(|frame| frame.0 == FrameKind::Rts && frame.1 == 1).collect();
    let lost = tries.iter().filter(|frame| !frame.3).count();
    assert!(lost >= 3, "{tries:?}");
    assert!(tries.iter().all(|frame| frame.3 == (frame.2 > end)), "{tries:?}, {end}");
}

/// Nodes 0 and 2 cannot read each other but sense each other.
#[test]
fn nodes_in_carrier_sense_range_defer() {
    let run = play(chain(&no_backoff(Access::Ns2), 2, 1), &[(0, 0, 1), (200, 2, 1)]);
    let rts: Vec<_> = run.frames.iter().filter(|frame| frame.0 == FrameKind::Rts).collect();
    let ack = run.frames.iter().find(|frame| frame.0 == FrameKind::Ack).unwrap().2;
    assert_eq!(rts.len(), 2);
    assert!(rts[1].2 >= ack + 304 + 50, "{rts:?} {ack}");
}

/// A frame that is sensed but not read reserves the medium for EIFS beyond its end.
#[test]
fn an_unreadable_frame_reserves_the_medium_for_eifs() {
    let mut config = no_backoff(Access::Ns2);
    config.mac.rts_threshold = Bytes::MAX;
    let first = 25 + 50 + 4_464;
    // Node 2 senses the data of node 0 but not the ACK of a node 250 m behind it.
    let positions = [0, -249, 400, 600];
    let run = play(line(&config, &positions, 1), &[(0, 0, 1), (200, 2, 3)]);
    let second = run.frames.iter().find(|frame| frame.1 == 2).unwrap();
    assert_eq!(second.2, first + 1 + 364 + 50);
}

#[test]
fn a_broadcast_is_sent_once_at_the_basic_rate() {
    let config = RadioConfig { arp: Arp::Asked, ..RadioConfig::default() };
    let run = play(chain(&config, 1, 1), &[(0, 0, 1)]);
    let kinds: Vec<_> = run.frames.iter().map(|frame| (frame.0, frame.1)).collect();
    let exchange = |a, b| {
        [(FrameKind::Rts, a), (FrameKind::Cts, b), (FrameKind::Data, a), (FrameKind::Ack, b)]
    };
    let expected = [vec![(FrameKind::Data, 0)], exchange(1, 0).into(), exchange(0, 1).into()];
    assert_eq!(kinds, expected.concat());
    assert_eq!(run.delivered, [(0, 1)]);
    assert_eq!(run.radio.stats(NodeId(0), secs(1)).broadcasts, 1);
}

#[test]
fn three_questions_without_an_answer_fail_what_waits() {
    let config = RadioConfig { arp: Arp::Asked, ..RadioConfig::default() };
    let offers: Vec<_> = (0..4).map(|i| (i * 100_000, 0, 1)).collect();
    let run = play(line(&config, &[0, 251], 1), &offers);
    assert_eq!(run.frames.len(), 3);
    let arp = DropReason::Arp;
    assert_eq!(run.dropped, [(0, arp), (1, arp), (2, arp), (3, arp)]);
}

/// The fifty-first packet in the queue, the MAC holding one more.
#[test]
fn a_full_interface_queue_drops_what_comes() {
    let offers = [(0, 0, 1); 60];
    let run = play(line(&RadioConfig::default(), &[0, 200], 1), &offers);
    let expected: Vec<_> = (51..60).map(|id| (id, DropReason::QueueFull)).collect();
    assert_eq!(run.dropped, expected);
    assert_eq!(run.delivered.len(), 51);
}

#[test]
fn a_node_that_moves_away_is_lost_and_found() {
    let mut radio = chain(&RadioConfig::default(), 1, 1);
    radio.set_position(Instant::ZERO, NodeId(1), Position::metres(300, 0));
    assert_eq!(play(radio, &[(0, 0, 1)]).dropped.len(), 1);
    let mut radio = chain(&RadioConfig::default(), 1, 1);
    radio.set_position(Instant::ZERO, NodeId(1), Position::metres(300, 0));
    radio.set_position(Instant::ZERO, NodeId(1), Position::metres(0, 249));
    assert_eq!(play(radio, &[(0, 0, 1)]).delivered, [(0, 1)]);
}

#[test]
fn what_cannot_be_built_is_refused_with_its_reason() {
    let build = |config: &RadioConfig, routers: usize| {
        let routers = vec![Table(Vec::new()); routers];
        let built =
            Radio::<Probe, _>::new(config, &[Position::default()], routers, |name| stream(1, name));
        built.map(|_| ()).map_err(|error| error.key)
    };
    let config = RadioConfig::default();
    assert_eq!(build(&config, 1), Ok(()));
    assert_eq!(build(&config, 2), Err("nodes"));
    assert_eq!(build(&RadioConfig { capture: 0, ..config }, 1), Err("capture"));
    assert_eq!(build(&RadioConfig { ttl: 0, ..config }, 1), Err("ttl"));
    let phy = Phy { cw_min: 0, ..config.phy };
    assert_eq!(build(&RadioConfig { phy, ..config }, 1), Err("cw_min"));
}

/// The neighbour moves away while it receives: it has the packet, but its acknowledgement and all later
/// frames fail.
#[test]
fn a_packet_whose_acknowledgement_is_lost_lives_on_as_a_copy() {
    let mut radio = chain(&no_backoff(Access::Ns2), 1, 1);
    radio.offer(Instant::ZERO, NodeId(0), NodeId(1), Probe::data(0, DATA));
    let during_data = Instant::from_nanos(2_000_000);
    assert_eq!(radio.poll(during_data), None);
    radio.set_position(during_data, NodeId(1), Position::metres(2_000, 0));
    let run = play(radio, &[]);
    assert_eq!((run.delivered, run.dropped), (vec![(0, 1)], vec![(0, DropReason::MacRetries)]));
    assert_eq!(run.radio.total(secs(1)).copies, 1);
}

/// All calls of one agent.
#[derive(Clone, Debug, Default)]
struct CallLog(std::sync::Arc<std::sync::Mutex<Vec<(u64, String)>>>);

impl CallLog {
    fn note(&self, now: Instant, what: impl std::fmt::Debug) {
        self.0.lock().unwrap().push((now.as_micros(), format!("{what:?}")));
    }
}

impl Agent<Probe> for CallLog {
    fn on_service(&mut self, now: Instant, state: Occupancy) {
        self.note(now, ("service", state));
    }
    fn on_medium(&mut self, now: Instant, state: Occupancy) {
        self.note(now, ("medium", state));
    }
    fn on_arrival(&mut self, now: Instant, parcel: &mut Probe, ahead: Backlog) {
        self.note(now, ("arrival", parcel.id, ahead.packets));
    }
    fn on_frame(&mut self, now: Instant, retries: u32) {
        self.note(now, ("frame", retries));
    }
    fn on_departure(&mut self, now: Instant, parcel: &mut Probe, behind: Backlog) {
        parcel.corrupt();
        self.note(now, ("departure", parcel.id, behind.packets));
    }
}

#[test]
fn an_agent_is_called_in_order_and_may_rewrite_departing_parcels() {
    let mut radio = chain(&no_backoff(Access::Ns2), 2, 1);
    let (own, other) = (CallLog::default(), CallLog::default());
    radio.set_agent(NodeId(0), Box::new(own.clone()));
    radio.set_agent(NodeId(2), Box::new(other.clone()));
    let now = Instant::ZERO;
    radio.offer(now, NodeId(0), NodeId(1), Probe::data(7, DATA));
    let mut corrupt = false;
    run_until(&mut radio, secs(1), |_, _, event| {
        corrupt |= matches!(event, RadioEvent::Delivered { parcel, .. } if parcel.corrupt);
    });
    assert!(corrupt);
    let own = own.0.lock().unwrap();
    let kept: Vec<_> = own.iter().filter(|(_, what)| !what.contains("medium")).collect();
    let ack_end = 25 + 50 + 352 + 10 + 304 + 10 + 4_464 + 10 + 304 + 2;
    let expected = [
        (25, "(\"arrival\", 7, 0)"),
        (25, "(\"service\", Busy)"),
        (25, "(\"departure\", 7, 0)"),
        (ack_end, "(\"frame\", 0)"),
        (ack_end, "(\"service\", Idle)"),
    ];
    let kept: Vec<_> = kept.iter().map(|(time, what)| (*time, what.as_str())).collect();
    assert_eq!(kept, expected);
    assert!(own.is_sorted_by_key(|(time, _)| *time));
    let stats = radio.stats(NodeId(0), secs(1));
    assert_eq!(stats.service_busy.as_micros(), ack_end - 25);
    // Node 2 cannot read the data, and therefore keeps away for EIFS, which is longer than the ACK.
    let other = other.0.lock().unwrap();
    assert_eq!(*other, [(25 + 50 + 1, "(\"medium\", Busy)".to_owned())], "no query since");
    let busy = radio.stats(NodeId(2), secs(1)).medium_busy.as_micros();
    assert_eq!(busy, 352 + 10 + 304 + 10 + 4_464 + 364 + 1);
}

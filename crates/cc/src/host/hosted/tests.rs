use std::sync::{Arc, Mutex, MutexGuard};

use weir_units::stream;

use super::*;
use crate::CcConfig;

const MSS: Bytes = Bytes(1_000);
const RTT: Duration = Duration::from_millis(40);

/// Keeps what it receives, where the test can read it.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    acks: Vec<AckEvent>,
    congestion: Vec<CongestionEvent>,
    limited: Vec<bool>,
    departures: Vec<Instant>,
    restarts: u32,
    ended: u32,
}

impl Recorder {
    fn received(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap()
    }

    fn hosted() -> (HostedController, Self) {
        let recorder = Self::default();
        let rng = stream(1, "controller");
        (HostedController::new(Box::new(recorder.clone()), MSS, rng), recorder)
    }
}

impl CongestionController for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn on_congestion(&mut self, _cx: &mut CcContext<'_>, event: &CongestionEvent) {
        self.received().congestion.push(*event);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, ack: &AckEvent) {
        let mut received = self.received();
        received.acks.push(*ack);
        received.limited.push(cx.cwnd_limited);
        received.departures.push(cx.next_departure);
    }

    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {
        self.received().ended += 1;
    }

    fn on_path(&mut self, _cx: &mut CcContext<'_>, event: &PathEvent) {
        self.received().restarts += u32::from(matches!(event, PathEvent::IdleRestart { .. }));
    }

    fn cwnd(&self) -> Bytes {
        MSS * 10
    }

    fn ssthresh(&self) -> Option<Bytes> {
        Some(MSS)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_mbit(8))
    }

    fn phase(&self) -> &'static str {
        "none"
    }
}

/// A host's pacer may release packets together. Charged to a second pacer, they would make BBR believe that the next one
/// waits, and that what is in flight is gone by then.
#[test]
fn only_a_pacer_of_our_own_has_a_next_departure() {
    for (is_ours, ahead) in [(false, Duration::ZERO), (true, Duration::from_micros(9_500))] {
        let (mut cc, recorder) = Recorder::hosted();
        if is_ours {
            cc = cc.with_pacer();
        }
        let now = Instant::ZERO + RTT;
        let packets: Vec<_> = (0..10).map(|_| cc.on_sent(now, MSS)).collect();
        cc.on_acked(&packets[0], MSS);
        cc.end_of_acks(now);
        assert_eq!(recorder.received().departures[0].saturating_since(now), ahead, "{is_ours}");
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn send(cc: &mut HostedController, now: Instant, count: usize) -> Vec<SentPacket> {
    (0..count).map(|_| cc.on_sent(now, MSS)).collect()
}

fn acknowledge(cc: &mut HostedController, now: Instant, packets: &[SentPacket]) {
    packets.iter().for_each(|packet| cc.on_acked(packet, MSS));
    cc.end_of_acks(now);
}

fn reno() -> HostedController {
    let reno = CcConfig::Reno.build(MSS, MSS * 10).unwrap();
    HostedController::new(reno, MSS, stream(1, "controller"))
}

#[test]
fn a_loss_found_after_its_epoch_ended_reduces_nothing() {
    let mut cc = reno();
    let first = send(&mut cc, at(0), 10);
    acknowledge(&mut cc, at(40), &first[1..4]);
    cc.on_lost(&first[0], MSS);
    cc.on_congestion(at(40), Cause::FastRetransmit);
    let reduced = cc.cwnd();
    assert!(reduced < MSS * 10, "{reduced}");
    // The newest packet of the epoch arrives, and after it a packet of before is found lost.
    acknowledge(&mut cc, at(41), &first[5..]);
    cc.on_lost(&first[4], MSS);
    cc.on_congestion(at(41), Cause::FastRetransmit);
    assert_eq!(cc.cwnd(), reduced);
    // What was sent since then opens another epoch.
    let second = send(&mut cc, at(42), 4);
    acknowledge(&mut cc, at(82), &second[1..]);
    cc.on_lost(&second[0], MSS);
    cc.on_congestion(at(82), Cause::FastRetransmit);
    assert!(cc.cwnd() < reduced, "{} {reduced}", cc.cwnd());
}

#[test]
fn losses_after_an_acknowledgement_are_part_of_the_next() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 6);
    acknowledge(&mut cc, at(40), &packets[1..4]);
    cc.on_lost(&packets[0], MSS);
    cc.on_congestion(at(40), Cause::FastRetransmit);
    acknowledge(&mut cc, at(41), &packets[4..5]);
    acknowledge(&mut cc, at(42), &packets[5..]);
    let Received { acks, congestion, ended, .. } = &*recorder.received();
    let lost: Vec<_> = acks.iter().map(|ack| (ack.lost, ack.loss.is_some())).collect();
    assert_eq!(lost, [(Bytes::ZERO, false), (MSS, true), (Bytes::ZERO, false)]);
    assert_eq!((congestion[0].lost, congestion[0].first_in_epoch), (MSS, true));
    assert_eq!(congestion[0].prior_in_flight, MSS * 3);
    assert_eq!((acks[0].acked, acks[0].prior_in_flight), (MSS * 3, MSS * 6));
    assert_eq!((*ended, cc.bytes_in_flight()), (1, Bytes::ZERO));
}

#[test]
fn a_rate_sample_is_what_arrived_over_the_round_trip() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 5);
    acknowledge(&mut cc, at(40), &packets);
    let rate = recorder.received().acks[0].rate.expect("a sample");
    assert_eq!((rate.delivered, rate.interval), (MSS * 5, RTT));
    assert_eq!(rate.in_flight_at_send, MSS * 5);
    assert_eq!(cc.rtt().srtt, Some(RTT));
    assert!(cc.delivery_rate().is_some());
}

/// RFC 9002 §5.1: a packet that is not the newest says nothing about the path now.
#[test]
fn only_the_newest_packet_gives_a_round_trip() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 2);
    acknowledge(&mut cc, at(40), &packets[1..]);
    acknowledge(&mut cc, at(90), &packets[..1]);
    let rtts: Vec<_> = recorder.received().acks.iter().map(|ack| ack.rtt).collect();
    assert_eq!(rtts, [Some(RTT), None]);
}

#[test]
fn a_window_limits_only_if_it_was_full_in_the_round() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 3);
    acknowledge(&mut cc, at(40), &packets);
    let packets = send(&mut cc, at(40), 10);
    acknowledge(&mut cc, at(80), &packets);
    let packets = send(&mut cc, at(80), 3);
    cc.on_cwnd_limited();
    acknowledge(&mut cc, at(120), &packets);
    assert_eq!(recorder.received().limited, [false, true, true]);
}

#[test]
fn a_pause_restarts_and_discarded_packets_leave_the_flight() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 2);
    acknowledge(&mut cc, at(40), &packets[..1]);
    cc.on_discarded(MSS);
    assert_eq!(cc.bytes_in_flight(), Bytes::ZERO);
    send(&mut cc, at(100), 1);
    cc.on_discarded(MSS);
    assert_eq!(recorder.received().restarts, 0, "the probe timeout is 145 ms");
    send(&mut cc, at(300), 1);
    assert_eq!(recorder.received().restarts, 1);
}

#[test]
fn the_newest_mark_opens_one_epoch_per_window() {
    let (mut cc, recorder) = Recorder::hosted();
    let packets = send(&mut cc, at(0), 10);
    for (packet, millis) in packets.iter().zip(40..) {
        acknowledge(&mut cc, at(millis), std::slice::from_ref(packet));
        cc.on_marked(MSS);
        cc.on_congestion(at(millis), Cause::EcnEcho);
    }
    let first = recorder.received().congestion.iter().filter(|event| event.first_in_epoch).count();
    assert_eq!(first, 1, "{recorder:?}");
}

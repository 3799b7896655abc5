use proptest::prelude::*;
use weir_units::Bytes;
use weir_units::feedback::Xcp as Header;

use super::*;
use crate::link::probe::Probe;

const RATE: Rate = Rate::from_mbit(8);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn packet(rtt_millis: u32, spacing_micros: u32, delta: i32) -> Probe {
    let header =
        Header { rtt_micros: rtt_millis * 1_000, spacing_nanos: spacing_micros * 1_000, delta };
    Probe { feedback: Some(Feedback::Xcp(header)), ..Probe::data(0, 1_000) }
}

fn delta(probe: &Probe) -> i32 {
    match probe.feedback {
        Some(Feedback::Xcp(header)) => header.delta,
        other => panic!("{other:?}"),
    }
}

fn backlog(packets: u64) -> Backlog {
    Backlog { packets, bytes: Bytes(packets * 1_000) }
}

/// Packets every `gap` milliseconds that pass at once, with that backlog behind them.
fn pass(agent: &mut Xcp, millis: std::ops::Range<u64>, gap: usize, behind: u64) -> Vec<i32> {
    let mut deltas = Vec::new();
    for millis in millis.step_by(gap) {
        let mut parcel = packet(100, gap as u32 * 1_000, i32::MAX);
        agent.on_arrival(at(millis), &mut parcel, backlog(behind));
        agent.on_departure(at(millis), &mut parcel, backlog(behind));
        deltas.push(delta(&parcel));
    }
    deltas
}

/// A flow at a quarter of the capacity gets alpha of the other three quarters within a round trip.
#[test]
fn spare_bandwidth_is_handed_out_within_an_interval() {
    let mut agent = Xcp::new(&XcpConfig::default(), RATE);
    pass(&mut agent, 0..452, 4, 0);
    let given: i64 = pass(&mut agent, 452..552, 4, 0).iter().map(|delta| i64::from(*delta)).sum();
    // 0.4 (1,000,000 - 250,000) bytes per second, spread over 25 packets of 100 ms.
    assert!((given - 300_000).abs() <= 25, "{given}: a fraction per packet at most");
}

/// A standing queue is taken back: beta of it per round trip, while the link is full.
#[test]
fn a_standing_queue_is_drained() {
    let mut agent = Xcp::new(&XcpConfig::default(), RATE);
    pass(&mut agent, 0..1_050, 1, 50);
    let taken: i64 = pass(&mut agent, 1_050..1_150, 1, 50).iter().map(|d| i64::from(*d)).sum();
    // 0.226 of 50,000 bytes in 100 ms.
    assert!((taken + 113_000).abs() <= 5_000, "{taken}");
}

/// At full use without a queue a tenth of the input changes hands and nothing is gained.
#[test]
fn a_full_link_shuffles() {
    let mut agent = Xcp::new(&XcpConfig::default(), RATE);
    pass(&mut agent, 0..1_050, 1, 0);
    let sum: i64 = pass(&mut agent, 1_050..1_150, 1, 0).iter().map(|d| i64::from(*d)).sum();
    assert_eq!((agent.gain.all, agent.loss.all), (100_000, 100_000));
    assert_eq!(sum, 0);
}

#[test]
fn a_packet_that_asks_for_less_gets_less() {
    let mut agent = Xcp::new(&XcpConfig::default(), RATE);
    pass(&mut agent, 0..452, 4, 0);
    for requested in [0, -70, 12] {
        let mut parcel = packet(100, 4_000, requested);
        agent.on_departure(at(452), &mut parcel, backlog(0));
        assert_eq!(delta(&parcel), requested);
    }
}

proptest! {
    /// No header makes it hand out more than it has, raise what a packet requests, or stop.
    #[test]
    fn any_header_is_bounded(
        packets in prop::collection::vec((any::<u32>(), any::<u32>(), any::<i32>(), 0..50_000_000u64, 0..100u64), 1..200),
    ) {
        let mut agent = Xcp::new(&XcpConfig::default(), RATE);
        let mut now = Instant::ZERO;
        for (rtt_micros, spacing_nanos, requested, gap, waiting) in packets {
            now += Duration::from_nanos(gap);
            let header = Header { rtt_micros, spacing_nanos, delta: requested };
            let mut parcel =
                Probe { feedback: Some(Feedback::Xcp(header)), ..Probe::data(0, 1_000) };
            agent.on_arrival(now, &mut parcel, backlog(waiting));
            let most = agent.gain.left;
            agent.on_departure(now, &mut parcel, backlog(waiting));
            prop_assert!(delta(&parcel) <= requested);
            prop_assert!(agent.gain.left <= most);
        }
    }
}

//! The agent's event table, row by row.

use super::*;
use crate::routing::RouterCx;
use crate::routing::harness::{TestDatagram, TestParcel};
use weir_units::stream;

const SOURCE: NodeId = NodeId(0);
const HERE: NodeId = NodeId(3);
const DESTINATION: NodeId = NodeId(9);

/// An agent at one node, what it sends, and what it tells the transports there.
struct Bench {
    agent: NoticeAgent,
    node: NodeId,
    now: Instant,
    notices: Vec<(u32, Notice)>,
}

impl Bench {
    fn new(kind: Notices, node: NodeId) -> Self {
        Self { agent: NoticeAgent::new(kind), node, now: Instant::ZERO, notices: Vec::new() }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut NoticeAgent, &mut Cx<'_, TestParcel>) -> T) -> T {
        let mut upcalls = Vec::new();
        let mut rng = stream(1, "bench");
        let mut cx =
            RouterCx { now: self.now, node: self.node, rng: &mut rng, upcalls: &mut upcalls };
        let result = act(&mut self.agent, &mut cx);
        for upcall in upcalls {
            let Upcall::Notify { flow, notice } = upcall else { panic!("{upcall:?}") };
            self.notices.push((flow, notice));
        }
        result
    }

    fn lose(&mut self, flow: u32, sequence: u64) -> Option<Notice> {
        let lost = parcel(flow, sequence, true);
        self.with(|agent, cx| agent.failed(cx, &lost)).map(|message| message.notice)
    }

    fn pass(&mut self, notice: Notice, alternative: bool) -> Passing {
        let message = NoticeMessage { flow: 7, destination: DESTINATION, notice };
        self.with(|agent, cx| agent.passing(cx, SOURCE, message, alternative))
    }

    fn find(&mut self, expected: &[(u32, u64)]) -> Vec<(NodeId, Notice)> {
        let found = self.with(|agent, cx| agent.route_found(cx, DESTINATION, expected));
        found.into_iter().map(|(source, message)| (source, message.notice)).collect()
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }
}

fn parcel(flow: u32, sequence: u64, forward: bool) -> TestDatagram {
    let parcel = TestParcel { id: 1, flow, sequence, forward };
    let about = Message::Notice(NoticeMessage {
        flow,
        destination: DESTINATION,
        notice: Notice::Restored { expected: None },
    });
    let mut datagram = packet(SOURCE, DESTINATION, 64, about, Bytes::ZERO);
    datagram.content = Content::Parcel(parcel, None);
    datagram
}

const FAILED: Notice = Notice::Failed { sequence: 55 };
const RESTORED: Notice = Notice::Restored { expected: None };

#[test]
fn tcp_f_at_the_failure_point() {
    let mut bench = Bench::new(Notices::Rfn, HERE);
    assert_eq!(bench.lose(7, 55), Some(FAILED), "RFN towards the source");
    assert_eq!(bench.lose(7, 56), None, "once for a queue that fails");
    assert_eq!(bench.lose(8, 3), Some(Notice::Failed { sequence: 3 }), "for each flow");
    assert_eq!(bench.find(&[]), [(SOURCE, RESTORED), (SOURCE, RESTORED)], "RRN for each");
    assert_eq!(bench.find(&[]), [], "and no second one");
    bench.wait(100);
    assert_eq!(bench.lose(7, 60), Some(Notice::Failed { sequence: 60 }), "the next break");
}

#[test]
fn tcp_f_at_a_node_in_between() {
    let mut bench = Bench::new(Notices::Rfn, HERE);
    assert_eq!(bench.pass(FAILED, true), Passing::Absorb, "it has another route");
    assert_eq!(bench.find(&[]), [], "the source was not notified, so nothing is due");
    assert_eq!(
        bench.pass(RESTORED, false),
        Passing::Forward,
        "of others, of which it knows nothing"
    );
    assert_eq!(bench.pass(FAILED, false), Passing::Forward);
    assert_eq!(bench.pass(RESTORED, false), Passing::Forward, "the first");
    assert_eq!(bench.pass(RESTORED, false), Passing::Absorb, "a duplicate");
    assert_eq!(bench.find(&[]), [], "the source knows");
    bench.pass(FAILED, false);
    assert_eq!(bench.find(&[]), [(SOURCE, RESTORED)], "it remembers the source");
    assert_eq!(bench.notices, []);
}

#[test]
fn tcp_f_at_the_source() {
    let mut bench = Bench::new(Notices::Rfn, SOURCE);
    bench.pass(FAILED, true);
    assert_eq!(bench.notices, [], "absorbed: there is another route");
    assert_eq!(bench.pass(FAILED, false), Passing::Absorb);
    assert!(bench.agent.seeks(bench.now, SOURCE, DESTINATION), "silent, so its router looks");
    bench.pass(RESTORED, false);
    bench.pass(RESTORED, false);
    assert_eq!(bench.notices, [(7, FAILED), (7, RESTORED)], "one of each");
    assert!(!bench.agent.seeks(bench.now, SOURCE, DESTINATION));
    assert_eq!(bench.find(&[]), []);
    // The source itself finds a link broken, and later its own route.
    bench.wait(100);
    assert_eq!(bench.lose(7, 80), None);
    assert_eq!(bench.find(&[]), []);
    assert_eq!(bench.notices[2..], [(7, Notice::Failed { sequence: 80 }), (7, RESTORED)]);
}

#[test]
fn elfn_and_unreachable_owe_nothing() {
    for kind in [Notices::Elfn, Notices::Unreachable] {
        let mut bench = Bench::new(kind, HERE);
        assert_eq!(bench.lose(7, 55), Some(FAILED));
        assert_eq!(bench.find(&[]), []);
        assert_eq!(bench.pass(FAILED, true), Passing::Forward, "another route changes nothing");
        let mut source = Bench::new(kind, SOURCE);
        source.pass(FAILED, true);
        assert_eq!(source.notices, [(7, FAILED)]);
        assert!(!source.agent.seeks(source.now, SOURCE, DESTINATION));
    }
}

#[test]
fn tcp_bus_is_notified_once_per_break_with_the_next_expected_number() {
    let mut bench = Bench::new(Notices::Bus, HERE);
    assert_eq!(bench.lose(7, 55), Some(FAILED));
    bench.wait(5_000);
    assert_eq!(bench.lose(7, 56), None, "the source waits already");
    let restored = Notice::Restored { expected: Some(40) };
    assert_eq!(bench.find(&[(8, 1), (7, 40)]), [(SOURCE, restored)]);
    bench.wait(100);
    assert_eq!(bench.lose(7, 60), Some(Notice::Failed { sequence: 60 }));
}

#[test]
fn acknowledgements_and_silence_cause_no_notice() {
    let mut bench = Bench::new(Notices::Elfn, HERE);
    let lost = parcel(7, 0, false);
    assert_eq!(bench.with(|agent, cx| agent.failed(cx, &lost)), None);
    let mut silent = Bench::new(Notices::None, HERE);
    assert_eq!(silent.lose(7, 55), None);
}

#[test]
fn memory_is_bounded_and_ends() {
    let mut bench = Bench::new(Notices::Rfn, SOURCE);
    for flow in 0..1000 {
        bench.lose(flow, 1);
    }
    assert_eq!(bench.agent.remembered(), FLOWS);
    bench.wait(60_000);
    assert!(!bench.agent.seeks(bench.now, SOURCE, DESTINATION), "no search lasts for ever");
}

use super::*;
use crate::routing::harness::{TestDatagram, TestNet, TestParcel};
use crate::routing::{RouteReply, RouteRequest, RouterConfig, packet};
use proptest::prelude::*;
use weir_units::{Bytes, Duration, stream};

fn ns2() -> RouterConfig {
    RouterConfig::Aodv(AodvConfig::ns2())
}

fn rfc() -> RouterConfig {
    RouterConfig::Aodv(AodvConfig::rfc3561())
}

fn without_repair(notices: Notices) -> RouterConfig {
    RouterConfig::Aodv(AodvConfig { local_repair: LocalRepair::Off, notices, ..AodvConfig::ns2() })
}

/// The nodes and destinations of the errors on the air.
fn errors(net: &TestNet) -> Vec<(u16, Vec<u16>)> {
    let error = |(node, _, message): &(u16, NodeId, Message)| match message {
        Message::Aodv(AodvMessage::Error(error)) => {
            Some((*node, error.unreachable.iter().map(|(to, _)| to.0).collect()))
        }
        _ => None,
    };
    net.aired.iter().filter_map(error).collect()
}

fn requests(net: &TestNet, by: u16) -> usize {
    let request = |message: &Message| matches!(message, Message::Aodv(AodvMessage::Request(_)));
    net.aired.iter().filter(|(node, _, message)| *node == by && request(message)).count()
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// RFC 3561 §5; ns-2's structures are four bytes longer, for a time stamp.
#[test]
fn messages_have_the_lengths_of_the_rfc_and_of_ns2() {
    let error = RouteError { unreachable: vec![(NodeId(1), 1), (NodeId(2), 1)] };
    assert_eq!(error.len(), Bytes(4 + 8 * 2));
    let lengths = |config: AodvConfig| (config.rreq_len, config.rrep_len);
    assert_eq!(lengths(AodvConfig::rfc3561()), (Bytes(24), Bytes(20)));
    assert_eq!(lengths(AodvConfig::ns2()), (Bytes(28), Bytes(24)));
    let message = Message::Aodv(AodvMessage::Error(error));
    let whole: TestDatagram = packet(NodeId(0), NodeId::BROADCAST, 1, message, Bytes(20));
    assert_eq!(whole.len(), Bytes(20 + 20), "with its IP header");
}

#[test]
fn a_chain_of_32_hops_is_found_in_growing_rings() {
    for (config, rings) in [(ns2(), 3), (rfc(), 5)] {
        let mut net = TestNet::chain(&config, 32);
        let there = net.send(1, 0, 32);
        net.run_for(second() * 5);
        assert_eq!(net.delivered, [(there, NodeId(32))], "{config:?}");
        // TTL 5, 7, 64 or 1, 3, 5, 7, 64.
        assert_eq!(requests(&net, 0), rings);
        let back = net.acknowledge(1, 32, 0, 0);
        net.run_for(second());
        assert_eq!(net.delivered[1], (back, NodeId(0)), "the reply made the way back");
        assert_eq!(requests(&net, 32), 0);
    }
}

#[test]
fn a_node_with_a_fresh_route_answers_for_the_destination() {
    let mut net = TestNet::chain(&ns2(), 6);
    net.send(1, 1, 6);
    net.run_for(second());
    let before = net.aired.len();
    let parcel = net.send(2, 0, 6);
    net.run_for(second());
    assert!(net.delivered.contains(&(parcel, NodeId(6))));
    let after: Vec<u16> = net.aired[before..].iter().map(|(node, ..)| *node).collect();
    assert_eq!(after, [0, 1], "a request of node 0 and a reply of node 1");
}

#[test]
fn without_an_answer_parcels_are_dropped_after_the_last_flood() {
    let mut net = TestNet::new(&ns2(), 2, &[]);
    let lost = net.send(1, 0, 1);
    net.run_for(second() * 29);
    // TTL 5 and 7, then four floods, the last of them until after the parcel's time in the buffer.
    assert_eq!((requests(&net, 0), net.dropped.len()), (6, 0));
    net.run_for(second() * 11);
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    let mut net = TestNet::new(&rfc(), 2, &[]);
    net.send(1, 0, 1);
    net.run_for(second() * 100);
    // TTL 1, 3, 5, 7, then three floods (RREQ_RETRIES = 2).
    assert_eq!(requests(&net, 0), 7);
    assert_eq!(net.routers[0].aodv().buffered(), 0);
}

#[test]
fn a_break_near_the_destination_is_mended_on_the_spot() {
    // 0 - 1 - 2 - 3 - 4 - 5 with 6 as a way around the link of 4 and 5.
    let links = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6), (6, 5)];
    let mut net = TestNet::new(&ns2(), 7, &links);
    net.send(1, 0, 5);
    net.run_for(second());
    net.cut(4, 5);
    let late = net.send(1, 0, 5);
    let later = net.send(1, 0, 5);
    net.run_for(second() * 3);
    assert_eq!(net.path_of(late), [0, 1, 2, 3, 4, 4, 6]);
    assert!(net.delivered.ends_with(&[(late, NodeId(5)), (later, NodeId(5))]));
    assert_eq!((errors(&net), requests(&net, 4)), (vec![], 1 + 1));
}

#[test]
fn a_repair_that_fails_is_reported() {
    let mut net = TestNet::chain(&ns2(), 5);
    net.send(1, 0, 5);
    net.run_for(second());
    net.cut(4, 5);
    let lost = net.send(1, 0, 5);
    net.run_for(second() * 3);
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    let expected: Vec<(u16, Vec<u16>)> = [4, 3, 2, 1].map(|node| (node, vec![5])).to_vec();
    assert_eq!(errors(&net), expected);
}

#[test]
fn a_break_far_from_the_destination_is_reported_to_all_precursors() {
    // 6 and 0 both send over 1 - 2 - 3 - 4 - 5.
    let links = [(0, 1), (6, 1), (1, 2), (2, 3), (3, 4), (4, 5)];
    let mut net = TestNet::new(&ns2(), 7, &links);
    net.send(1, 0, 5);
    net.send(2, 6, 5);
    net.run_for(second());
    net.cut(2, 3);
    let lost = net.send(1, 0, 5);
    net.run_for(second() / 2);
    assert_eq!(net.dropped, [(lost, DropReason::MacRetries)]);
    assert_eq!(errors(&net), [(2, vec![5]), (1, vec![5])]);
    for source in [0, 6] {
        assert_eq!(net.routers[source].aodv().next_hop(net.now, NodeId(5)), None, "{source}");
    }
}

#[test]
fn what_waits_behind_a_broken_link_goes_with_it() {
    let mut net = TestNet::chain(&without_repair(Notices::None), 4);
    net.send(1, 0, 4);
    net.run_for(second());
    net.cut(1, 2);
    let lost = [net.send(1, 0, 4), net.send(1, 0, 4), net.send(1, 0, 4)];
    net.run_for(second() / 5);
    assert_eq!(net.dropped.iter().map(|(id, _)| *id).collect::<Vec<_>>(), lost);
    assert_eq!(net.delivered.len(), 1);
}

#[test]
fn hello_finds_a_break_without_a_parcel() {
    let hello = Some(HelloConfig { interval: second(), allowed_loss: 2 });
    let config = RouterConfig::Aodv(AodvConfig { hello, ..AodvConfig::rfc3561() });
    let mut net = TestNet::chain(&config, 3);
    net.send(1, 0, 3);
    net.run_for(second() * 2);
    net.cut(1, 2);
    net.send(1, 0, 1);
    net.run_for(second() * 3 + second() / 2);
    assert_eq!(net.routers[1].aodv().next_hop(net.now, NodeId(3)), None);
}

#[test]
fn elfn_goes_back_to_the_source_with_the_sequence_of_the_first_that_was_lost() {
    for notices in [Notices::Elfn, Notices::Unreachable] {
        let mut net = TestNet::chain(&without_repair(notices), 4);
        net.send(7, 0, 4);
        net.run_for(second());
        net.cut(2, 3);
        let lost = [net.send(7, 0, 4), net.send(7, 0, 4)];
        net.run_for(second());
        let notices: Vec<_> = net.notices.iter().map(|it| (it.node, it.flow, it.notice)).collect();
        assert_eq!(notices, [(0, 7, Notice::Failed { sequence: 1000 + lost[0] })]);
    }
}

#[test]
fn a_source_next_to_the_break_is_notified_at_once_and_receivers_never() {
    let mut net = TestNet::chain(&without_repair(Notices::Elfn), 2);
    net.send(7, 0, 2);
    net.run_for(second());
    net.cut(0, 1);
    net.cut(1, 2);
    net.acknowledge(7, 2, 0, 55);
    let lost = net.send(7, 0, 2);
    net.run_for(second());
    assert_eq!(net.notices.len(), 1);
    assert_eq!(net.notices[0].notice, Notice::Failed { sequence: 1000 + lost });
}

#[test]
fn a_silenced_flow_hears_once_when_its_route_is_back() {
    let mut net = TestNet::chain(&without_repair(Notices::Rfn), 4);
    net.send(7, 0, 4);
    net.run_for(second());
    net.cut(2, 3);
    let lost = net.send(7, 0, 4);
    net.run_for(second() * 3);
    let failed = Notice::Failed { sequence: 1000 + lost };
    assert_eq!(net.notices.iter().map(|it| it.notice).collect::<Vec<_>>(), [failed]);
    net.join(2, 3);
    net.run_for(second() * 20);
    let restored = Notice::Restored { expected: None };
    assert_eq!(net.notices.iter().map(|it| it.notice).collect::<Vec<_>>(), [failed, restored]);
    let parcel = net.send(7, 0, 4);
    net.run_for(second());
    assert!(net.delivered.contains(&(parcel, NodeId(4))));
}

/// TCP-F: the link that breaks is the source's own, so its router alone can look for a route.
#[test]
fn a_silenced_source_beside_the_break_looks_for_a_route() {
    let config = AodvConfig { notices: Notices::Rfn, ..AodvConfig::ns2() };
    let mut net = TestNet::chain(&RouterConfig::Aodv(config), 4);
    net.send(7, 0, 4);
    net.run_for(second());
    net.cut(0, 1);
    let lost = net.send(7, 0, 4);
    net.run_for(second() / 20);
    let notices = |net: &TestNet| net.notices.iter().map(|it| it.notice).collect::<Vec<_>>();
    let failed = Notice::Failed { sequence: 1000 + lost };
    assert_eq!(notices(&net), [failed]);
    net.join(0, 1);
    net.run_for(second() * 2);
    assert_eq!(notices(&net), [failed, Notice::Restored { expected: None }]);
}

fn any_message() -> impl Strategy<Value = AodvMessage> {
    let node = (0u16..5000).prop_map(NodeId);
    let request = (any::<u32>(), node.clone(), any::<Option<u32>>(), node.clone(), any::<u32>())
        .prop_map(|(id, destination, known, originator, own)| RouteRequest {
            id,
            destination,
            destination_sequence: known,
            originator,
            originator_sequence: own,
            hops: id as u8,
        })
        .prop_map(AodvMessage::Request);
    let reply = (node.clone(), any::<u32>(), node.clone(), any::<u8>(), any::<u64>())
        .prop_map(|(destination, sequence, originator, hops, lifetime)| RouteReply {
            destination,
            destination_sequence: sequence,
            originator,
            hops,
            lifetime: Duration::from_nanos(lifetime),
        })
        .prop_map(AodvMessage::Reply);
    let error = prop::collection::vec((node, any::<u32>()), 0..300)
        .prop_map(|unreachable| AodvMessage::Error(RouteError { unreachable }));
    prop_oneof![request, reply, error]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Any messages at any time: nothing panics and nothing grows beyond its limit.
    #[test]
    fn tables_are_bounded(
        messages in prop::collection::vec((any_message(), 0u16..5000, 0u64..200), 1..400),
    ) {
        let mut net = TestNet::chain(&rfc(), 2);
        for (message, from, pause) in messages {
            net.send(1, 1, from);
            let about = packet(NodeId(from), NodeId(1), 9, Message::Aodv(message), Bytes(24));
            net.inject(from, 1, about);
            net.run_for(Duration::from_millis(pause));
            let router = net.routers[1].aodv();
            prop_assert!(router.buffered() <= 64);
            prop_assert!(router.discoveries.len() <= discovery::DISCOVERIES);
            prop_assert!(router.seen.len() <= Seen::LIMIT);
            prop_assert!(router.notices.remembered() <= 64);
        }
        prop_assert!(net.routers[1].aodv().table.len() <= table::ROUTES);
    }

    /// Links come and go at random: next hops never lead in a circle, and every parcel has one fate.
    #[test]
    fn routes_have_no_loops(seed in any::<u64>(), preset in 0..2) {
        let config = if preset == 0 { ns2() } else { rfc() };
        let mut rng = stream(seed, "changes");
        let nodes = 12u16;
        let mut net = TestNet::new(&config, nodes, &[]);
        let pick = |rng: &mut weir_units::Rng| rng.below(u64::from(nodes)) as u16;
        for _ in 0..300 {
            let (a, b) = (pick(&mut rng), pick(&mut rng));
            match rng.below(3) {
                _ if a == b => {}
                0 if net.linked(a, b) => net.cut(a, b),
                0 | 1 if !net.linked(a, b) && rng.below(3) == 0 => net.join(a, b),
                _ => { net.send(1, a, b); }
            }
            net.run_for(Duration::from_millis(rng.below(400)));
            assert_no_loops(&mut net, nodes);
        }
        net.run_for(second() * 200);
        net.assert_one_fate_each();
        let settled = net.delivered.len() + net.dropped.len();
        prop_assert_eq!(settled as u64, net.sent, "after the buffers' time all is decided");
        prop_assert!(!net.delivered.is_empty());
    }
}

fn assert_no_loops(net: &mut TestNet, nodes: u16) {
    for destination in (0..nodes).map(NodeId) {
        for start in 0..nodes {
            let mut at = start;
            let mut steps = 0;
            while at != destination.0 {
                let router = net.routers[usize::from(at)].aodv();
                let Some(next) = router.next_hop(net.now, destination) else { break };
                at = next.0;
                steps += 1;
                assert!(steps <= nodes, "the way from {start} to {destination} is a circle");
            }
        }
    }
}

#[test]
fn parcels_for_other_protocols_are_none_of_its_business() {
    let parcel = TestParcel { id: 1, flow: 1, sequence: 0, forward: true };
    let mut net = TestNet::chain(&ns2(), 1);
    let mut stray = packet(
        NodeId(0),
        NodeId(9),
        1,
        Message::Aodv(AodvMessage::Error(RouteError { unreachable: vec![] })),
        Bytes(4),
    );
    stray.content = Content::Parcel(parcel, None);
    net.inject(0, 1, stray);
    assert_eq!(net.dropped, [(1, DropReason::TtlExpired)]);
}

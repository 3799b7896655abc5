use super::*;
use crate::routing::harness::TestNet;
use crate::routing::{Notice, Notices, RouterConfig};
use proptest::prelude::*;
use weir_units::stream;

fn with(notices: Notices) -> RouterConfig {
    RouterConfig::Dsr(DsrConfig { notices, ..DsrConfig::default() })
}

fn dsr() -> RouterConfig {
    with(Notices::None)
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// The messages on the air that `pick` picks, by who sent them.
fn aired(net: &TestNet, pick: impl Fn(&DsrMessage) -> bool) -> Vec<u16> {
    let sent = |(node, _, message): &(u16, NodeId, Message)| match message {
        Message::Dsr(message) if pick(message) => Some(*node),
        _ => None,
    };
    net.aired.iter().filter_map(sent).collect()
}

fn is_request(message: &DsrMessage) -> bool {
    matches!(message, DsrMessage::Request(_))
}

fn is_error(message: &DsrMessage) -> bool {
    matches!(message, DsrMessage::Error { .. })
}

fn notices(net: &TestNet) -> Vec<(u16, u32, Notice)> {
    net.notices.iter().map(|it| (it.node, it.flow, it.notice)).collect()
}

#[test]
fn a_chain_of_32_hops_is_found_and_the_receiver_knows_the_way_back() {
    let mut net = TestNet::chain(&dsr(), 32);
    let there = net.send(1, 0, 32);
    net.run_for(second());
    assert_eq!(net.delivered, [(there, NodeId(32))]);
    let floods = aired(&net, is_request);
    assert_eq!(floods.iter().filter(|node| **node == 0).count(), 2, "neighbours, then all");
    let back = net.acknowledge(1, 32, 0, 0);
    net.run_for(second());
    assert_eq!(net.delivered[1], (back, NodeId(0)));
    assert_eq!(aired(&net, is_request).len(), floods.len());
}

#[test]
fn parcels_and_messages_have_the_lengths_of_their_options() {
    let path: Arc<[NodeId]> = (0..5).map(NodeId).collect();
    let way = SourceRoute::along(path.clone());
    // Header 4, option 4, three nodes between the ends.
    assert_eq!(DsrMessage::Route(way.clone()).len(Bytes(36)), Bytes(20));
    let reply = DsrMessage::Reply { way: way.clone(), path: path.clone() };
    assert_eq!(reply.len(Bytes(36)), Bytes(20 + 4 + 16));
    let request = DsrRequest { id: 1, target: NodeId(4), path: path[..3].to_vec() };
    assert_eq!(DsrMessage::Request(request).len(Bytes(36)), Bytes(4 + 8 + 8));
    let error =
        |notice| DsrMessage::Error { way: way.clone(), broken: (NodeId(1), NodeId(2)), notice };
    assert_eq!(error(None).len(Bytes(36)), Bytes(36));
    let notice =
        NoticeMessage { flow: 1, destination: NodeId(4), notice: Notice::Failed { sequence: 0 } };
    assert_eq!(error(Some(notice)).len(Bytes(36)), Bytes(72));
}

#[test]
fn a_neighbour_that_knows_answers_alone() {
    let mut net = TestNet::new(&dsr(), 7, &[(1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    net.send(1, 1, 6);
    net.run_for(second());
    // It has overheard nothing.
    net.join(0, 1);
    let before = net.aired.len();
    let parcel = net.send(2, 0, 6);
    net.run_for(second());
    assert!(net.delivered.contains(&(parcel, NodeId(6))));
    let after: Vec<u16> = net.aired[before..].iter().map(|(node, ..)| *node).collect();
    assert_eq!(after, [0, 1]);
}

#[test]
fn without_an_answer_parcels_are_dropped_when_their_time_is_up() {
    let mut net = TestNet::new(&dsr(), 2, &[]);
    let lost = net.send(1, 0, 1);
    net.run_for(second() * 29);
    // Neighbours at 0 s, all at 0.03, 0.53, 1.53, 3.53, 7.53, 15.53, 25.53 s.
    assert_eq!((aired(&net, is_request).len(), net.dropped.len()), (8, 0));
    net.run_for(second() * 60);
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    assert_eq!(aired(&net, is_request).len(), 8, "no request without need");
}

/// 0 - 1 - 2 - 3 - 4 with node 9 next to 1 and 2, which no node asks.
#[test]
fn a_node_learns_the_ways_that_it_overhears() {
    let links = [(0, 1), (1, 2), (2, 3), (3, 4), (9, 1), (9, 2)];
    let mut net = TestNet::new(&dsr(), 10, &links[..4]);
    net.send(1, 0, 4);
    net.run_for(second());
    links[4..].iter().for_each(|(a, b)| net.join(*a, *b));
    net.send(1, 0, 4);
    net.run_for(second());
    let mut way = |to| {
        let path = net.routers[9].dsr().path(net.now, NodeId(to));
        path.map(|path| path.iter().map(|node| node.0).collect::<Vec<_>>())
    };
    assert_eq!(way(4), Some(vec![9, 2, 3, 4]));
    assert_eq!(way(0), Some(vec![9, 1, 0]));
    net.cut(2, 3);
    net.send(1, 0, 4);
    net.run_for(second() / 20);
    assert_eq!(net.routers[9].dsr().path(net.now, NodeId(4)), None, "it overhears the error too");
}

#[test]
fn a_way_is_shortened_once_a_second_by_a_node_that_hears_further() {
    let mut net = TestNet::chain(&dsr(), 5);
    net.send(1, 0, 5);
    net.run_for(second());
    net.join(1, 4);
    net.aired.clear();
    let first = [net.send(1, 0, 5), net.send(1, 0, 5)];
    net.run_for(second() / 10);
    let is_reply = |message: &DsrMessage| matches!(message, DsrMessage::Reply { .. });
    assert_eq!(net.path_of(first[0]), [0, 1, 2, 3, 4]);
    assert_eq!(aired(&net, is_reply), [4, 1], "one reply, over the link that was overheard");
    let next = net.send(1, 0, 5);
    net.run_for(second());
    assert_eq!(net.path_of(next), [0, 1, 4]);
}

/// 0 - 1 - 2 - 3 - 4, and 2 - 5 - 4 as another way.
fn two_ways(config: &RouterConfig) -> TestNet {
    TestNet::new(config, 6, &[(0, 1), (1, 2), (2, 3), (3, 4), (2, 5), (5, 4)])
}

#[test]
fn a_node_that_knows_another_way_salvages_and_reports() {
    let mut net = two_ways(&with(Notices::Elfn));
    net.send(1, 0, 4);
    net.run_for(second());
    // Node 2 learns both ways by answers to a request of its own.
    net.send(2, 2, 4);
    net.run_for(second());
    let used = net.routers[0].dsr().path(net.now, NodeId(4)).unwrap()[3];
    net.cut(2, used.0);
    let other = if used.0 == 3 { 5 } else { 3 };
    let parcel = net.send(1, 0, 4);
    net.run_for(second());
    assert_eq!(net.path_of(parcel), [0, 1, 2, 2, other]);
    assert!(net.delivered.contains(&(parcel, NodeId(4))));
    assert_eq!(aired(&net, is_error), [2, 1]);
    assert_eq!(notices(&net), [], "nothing is lost");
}

#[test]
fn an_error_carries_elfn_to_the_source() {
    for kind in [Notices::Elfn, Notices::Unreachable] {
        let mut net = TestNet::chain(&with(kind), 4);
        net.send(7, 0, 4);
        net.run_for(second());
        net.cut(2, 3);
        let lost = [net.send(7, 0, 4), net.send(7, 0, 4)];
        net.run_for(second());
        assert_eq!(notices(&net), [(0, 7, Notice::Failed { sequence: 1000 + lost[0] })]);
        assert_eq!(aired(&net, is_error), [2, 1]);
        let dropped: Vec<u64> = net.dropped.iter().map(|(id, _)| *id).collect();
        assert_eq!(dropped, lost);
        assert_eq!(net.routers[0].dsr().path(net.now, NodeId(4)), None);
    }
}

#[test]
fn a_source_beside_the_break_keeps_its_parcels_and_looks_for_another_way() {
    let links = [(0, 1), (1, 3), (0, 2), (2, 4), (4, 3)];
    let mut net = TestNet::new(&with(Notices::Elfn), 5, &links);
    net.send(7, 0, 3);
    net.run_for(second());
    net.cut(0, 1);
    let parcel = net.send(7, 0, 3);
    net.run_for(second() * 2);
    assert!(net.delivered.contains(&(parcel, NodeId(3))));
    assert_eq!(net.dropped, []);
}

#[test]
fn a_silenced_flow_hears_once_when_its_route_is_back() {
    let mut net = TestNet::chain(&with(Notices::Rfn), 4);
    net.send(7, 0, 4);
    net.run_for(second());
    net.cut(2, 3);
    let lost = net.send(7, 0, 4);
    net.run_for(second() * 3);
    let failed = (0, 7, Notice::Failed { sequence: 1000 + lost });
    assert_eq!(notices(&net), [failed]);
    net.join(2, 3);
    net.run_for(second() * 20);
    assert_eq!(notices(&net), [failed, (0, 7, Notice::Restored { expected: None })]);
}

#[test]
fn a_source_with_another_way_absorbs_tcp_fs_notice() {
    let mut net = two_ways(&with(Notices::Rfn));
    net.send(7, 0, 4);
    net.run_for(second());
    let way = |nodes: [u16; 5]| nodes.map(NodeId).to_vec();
    let now = net.now;
    for nodes in [[0, 1, 2, 3, 4], [0, 1, 2, 5, 4]] {
        net.routers[0].dsr().cache.add(now, &way(nodes));
    }
    let used = net.routers[0].dsr().path(net.now, NodeId(4)).unwrap()[3];
    net.routers[2].dsr().cache = RouteCache::new(second());
    net.cut(2, used.0);
    net.send(7, 0, 4);
    net.run_for(second());
    assert_eq!((notices(&net), aired(&net, is_error)), (vec![], vec![2, 1]));
    let next = net.send(7, 0, 4);
    net.run_for(second());
    assert!(net.delivered.contains(&(next, NodeId(4))));
}

fn any_message() -> impl Strategy<Value = DsrMessage> {
    let node = || (0u16..2000).prop_map(NodeId);
    let nodes = || prop::collection::vec(prop_oneof![node(), Just(NodeId(1))], 0..300);
    let way = || {
        (nodes(), any::<u8>(), any::<u8>()).prop_map(|(path, at, salvaged)| SourceRoute {
            path: path.into(),
            at,
            salvaged,
        })
    };
    let request = (any::<u32>(), node(), prop::collection::vec(node(), 0..300))
        .prop_map(|(id, target, path)| DsrMessage::Request(DsrRequest { id, target, path }));
    let reply =
        (way(), nodes()).prop_map(|(way, path)| DsrMessage::Reply { way, path: path.into() });
    let error = (way(), node(), node(), any::<Option<u64>>()).prop_map(|(way, a, b, lost)| {
        let notice = lost.map(|sequence| {
            let notice = Notice::Failed { sequence };
            NoticeMessage { flow: sequence as u32, destination: a, notice }
        });
        DsrMessage::Error { way, broken: (a, b), notice }
    });
    prop_oneof![way().prop_map(DsrMessage::Route), request, reply, error]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Any messages at any time: nothing panics and nothing grows beyond its limit.
    #[test]
    fn caches_are_bounded(
        messages in prop::collection::vec((any_message(), 0u16..2000, 0u64..200), 1..300),
    ) {
        let mut net = TestNet::chain(&with(Notices::Rfn), 2);
        for (mut message, from, pause) in messages {
            if let DsrMessage::Request(request) = &mut message {
                request.path.push(NodeId(from));
            }
            // Half of the ways do lead over this node.
            if let Some(way) = message.way_mut().filter(|_| from.is_multiple_of(2)) {
                let nodes: Vec<NodeId> = [0, 1, 2].map(NodeId).into();
                *way = SourceRoute::along(nodes.into());
            }
            net.send(1, 1, from);
            let about = packet(NodeId(from), NodeId(1), 9, Message::Dsr(message), Bytes(24));
            net.inject(from, 1, about);
            net.run_for(Duration::from_millis(pause));
            let router = net.routers[1].dsr();
            prop_assert!(router.buffered() <= 64);
            prop_assert!(router.discoveries.len() <= discovery::DISCOVERIES);
            prop_assert!(router.cache.len() <= cache::PATHS);
            prop_assert!(router.requests.len() <= cache::INITIATORS);
            prop_assert!(router.shortened.len() <= overhear::REPLIES);
            prop_assert!(router.notices.remembered() <= 64);
        }
    }

    /// Links come and go at random: no way visits a node twice, and every parcel has one fate.
    #[test]
    fn ways_have_no_loops(seed in any::<u64>()) {
        let mut rng = stream(seed, "changes");
        let nodes = 12u16;
        let mut net = TestNet::new(&with(Notices::Elfn), nodes, &[]);
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
            for node in 0..nodes {
                let now = net.now;
                for to in (0..nodes).map(NodeId) {
                    let path = net.routers[usize::from(node)].dsr().path(now, to);
                    prop_assert!(!path.is_some_and(|path| cache::has_loop(&path)));
                }
            }
        }
        net.run_for(second() * 200);
        net.assert_one_fate_each();
        let settled = net.delivered.len() + net.dropped.len();
        prop_assert_eq!(settled as u64, net.sent, "after the buffers' time all is decided");
        prop_assert!(!net.delivered.is_empty());
    }
}

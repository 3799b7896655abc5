use super::*;
use crate::routing::harness::TestNet;
use crate::routing::{AbrQuery, AbrReply, Notice, RouterConfig, Visit};
use proptest::prelude::*;
use weir_units::{Bytes, stream};

fn with(notices: Notices) -> RouterConfig {
    RouterConfig::Abr(AbrConfig { notices, ..AbrConfig::default() })
}

fn abr() -> RouterConfig {
    with(Notices::None)
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// The messages on the air that `pick` picks, by who sent them.
fn aired(net: &TestNet, pick: impl Fn(&AbrMessage) -> bool) -> Vec<u16> {
    let sent = |(node, _, message): &(u16, NodeId, Message)| match message {
        Message::Abr(message) if pick(message) => Some(*node),
        _ => None,
    };
    net.aired.iter().filter_map(sent).collect()
}

fn is_query(message: &AbrMessage) -> bool {
    matches!(message, AbrMessage::Query(_))
}

fn is_broken(message: &AbrMessage) -> bool {
    matches!(message, AbrMessage::Broken { .. })
}

fn notices(net: &TestNet) -> Vec<(u16, u32, Notice)> {
    net.notices.iter().map(|it| (it.node, it.flow, it.notice)).collect()
}

#[test]
fn a_chain_of_32_hops_is_found_and_parcels_come_back_the_same_way() {
    let mut net = TestNet::chain(&abr(), 32);
    let there = net.send(1, 0, 32);
    net.run_for(second());
    assert_eq!(net.delivered, [(there, NodeId(32))]);
    let queries = aired(&net, is_query).len();
    let back = net.acknowledge(1, 32, 0, 0);
    net.run_for(second());
    assert_eq!(net.delivered[1], (back, NodeId(0)));
    assert_eq!(aired(&net, is_query).len(), queries);
}

#[test]
fn old_links_are_chosen_before_short_ways() {
    // Two hops over 1, three over 2 and 3.
    let links = [(0, 2), (2, 3), (3, 4)];
    let mut net = TestNet::new(&abr(), 5, &links);
    net.run_for(second() * 8);
    net.join(0, 1);
    net.join(1, 4);
    net.run_for(second() * 2);
    let parcel = net.send(1, 0, 4);
    net.run_for(second());
    assert_eq!(net.path_of(parcel), [0, 2, 3]);
}

#[test]
fn of_equally_stable_ways_the_less_loaded_is_chosen_then_the_shorter() {
    // 0 to 5 over 1, over 2, or over 3 and 4.
    let links = [(0, 1), (1, 5), (0, 2), (2, 5), (0, 3), (3, 4), (4, 5), (6, 1), (1, 7)];
    let mut net = TestNet::new(&abr(), 8, &links);
    net.run_for(second() * 10);
    let relayed = net.send(1, 6, 7);
    net.run_for(second());
    assert_eq!(net.path_of(relayed), [6, 1]);
    let parcel = net.send(2, 0, 5);
    net.run_for(second());
    assert_eq!(net.path_of(parcel), [0, 2]);
}

#[test]
fn without_an_answer_parcels_are_dropped_after_the_last_query() {
    let mut net = TestNet::new(&abr(), 2, &[]);
    let lost = net.send(1, 0, 1);
    // Queries at 0, 1, 3 and 7 s.
    net.run_for(second() * 14);
    assert_eq!((aired(&net, is_query).len(), net.dropped.len()), (4, 0));
    net.run_for(second() * 2);
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    assert_eq!(aired(&net, |it| matches!(it, AbrMessage::Delete { .. })), [0]);
}

/// The first query is lost with the link. Its repetition waits for twice what the last reply took.
#[test]
fn a_source_that_has_measured_replies_soon_repeats_a_lost_query() {
    let mut net = TestNet::chain(&abr(), 4);
    net.send(1, 0, 4);
    net.run_for(second());
    net.cut(0, 1);
    let parcel = net.send(1, 0, 4);
    net.run_for(Duration::from_millis(20));
    net.join(0, 1);
    net.run_for(second() / 3);
    assert!(net.delivered.contains(&(parcel, NodeId(4))));
}

#[test]
fn measured_replies_do_not_make_a_source_give_up_sooner() {
    let mut net = TestNet::chain(&abr(), 1);
    net.send(1, 0, 1);
    net.run_for(second());
    net.cut(0, 1);
    let before = aired(&net, is_query).len();
    let lost = net.send(1, 0, 1);
    net.run_for(second() * 15);
    assert_eq!(net.dropped, []);
    net.run_for(second() * 2);
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    // One hop takes some milliseconds, a choice 50: waits double from there to a second, then to 8.
    assert_eq!(aired(&net, is_query).len() - before, 5 + 4);
}

#[test]
fn what_is_queued_behind_a_failed_parcel_waits_for_the_same_route() {
    let mut net = TestNet::chain(&abr(), 4);
    net.send(1, 0, 4);
    net.run_for(second());
    net.cut(0, 1);
    let parcels = [net.send(1, 0, 4), net.send(1, 0, 4), net.send(1, 0, 4)];
    net.run_for(Duration::from_millis(20));
    net.join(0, 1);
    net.run_for(second() * 2);
    assert_eq!(net.delivered[1..], parcels.map(|id| (id, NodeId(4))));
    assert_eq!(net.dropped, []);
}

/// Node 2 mends the route from 0 to 3, and looks for 3 on its own account; that query is lost.
#[test]
fn a_reply_to_a_repair_does_not_end_another_search() {
    let mut net = TestNet::new(&abr(), 5, &[(0, 1), (1, 2), (2, 3)]);
    net.send(1, 0, 3);
    net.run_for(second());
    net.cut(2, 3);
    net.join(2, 4);
    net.join(4, 3);
    let mended = net.send(1, 0, 3);
    net.run_for(Duration::from_millis(25));
    net.cut(2, 4);
    let own = net.send(2, 2, 3);
    net.run_for(Duration::from_millis(5));
    net.join(2, 4);
    net.run_for(second() / 2);
    assert_eq!(net.delivered[1..], [(mended, NodeId(3))]);
    net.run_for(second());
    assert_eq!(net.delivered[2..], [(own, NodeId(3))]);
}

/// 0 - 1 - 2 - 3 - 4 - 5, and 4 - 6 - 5 as a way around the last link.
fn detour(config: &RouterConfig) -> TestNet {
    let mut net = TestNet::new(config, 7, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    net.send(7, 0, 5);
    net.run_for(second());
    net.acknowledge(7, 5, 0, 1700);
    net.run_for(second());
    net.join(4, 6);
    net.join(6, 5);
    net.cut(4, 5);
    net
}

#[test]
fn the_pivoting_node_finds_a_way_around() {
    let mut net = detour(&with(Notices::Elfn));
    let parcels = [net.send(7, 0, 5), net.send(7, 0, 5)];
    net.run_for(second());
    assert_eq!(net.path_of(parcels[0]), [0, 1, 2, 3, 4, 4, 6]);
    assert_eq!(net.delivered[2..], parcels.map(|id| (id, NodeId(5))));
    assert_eq!((aired(&net, is_broken), notices(&net)), (vec![], vec![]));
    let back = net.acknowledge(7, 5, 0, 1800);
    net.run_for(second());
    assert_eq!(net.path_of(back), [5, 6, 4, 3, 2, 1]);
}

#[test]
fn a_failed_repair_backtracks_half_way_and_then_goes_to_the_source() {
    let mut net = TestNet::chain(&with(Notices::Unreachable), 6);
    net.send(7, 0, 6);
    net.run_for(second());
    net.cut(5, 6);
    let lost = net.send(7, 0, 6);
    net.run_for(second() * 3);
    // 5, 4 and 3 try in turn (3 is half-way); 2 and 1 pass on.
    let tried = aired(
        &net,
        |it| matches!(it, AbrMessage::Query(query) if query.asker != NodeId(0) && query.visits.is_empty()),
    );
    assert_eq!((tried, aired(&net, is_broken)), (vec![5, 4, 3], vec![5, 4, 3, 2, 1]));
    assert_eq!(net.dropped, [(lost, DropReason::NoRoute)]);
    assert_eq!(notices(&net), [(0, 7, Notice::Failed { sequence: 1000 + lost })]);
}

#[test]
fn a_break_near_the_source_is_left_to_it() {
    let mut net = TestNet::new(&with(Notices::Elfn), 7, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]);
    net.send(7, 0, 5);
    net.run_for(second());
    net.cut(1, 2);
    net.join(0, 6);
    net.join(6, 2);
    let lost = net.send(7, 0, 5);
    net.run_for(second() / 10);
    assert_eq!(notices(&net), [(0, 7, Notice::Failed { sequence: 1000 + lost })]);
    let next = net.send(7, 0, 5);
    net.run_for(second() * 2);
    assert_eq!(net.path_of(next), [0, 6, 2, 3, 4]);
}

/// Disconnection: ERDN with the parcel that waits first; reconnection: ERSN with what the
/// receiver expects; and what waits at the pivoting node is not lost.
#[test]
fn tcp_bus_hears_of_the_break_and_of_the_new_way() {
    let mut net = detour(&with(Notices::Bus));
    let parcels = [net.send(7, 0, 5), net.send(7, 0, 5), net.send(7, 0, 5)];
    net.run_for(second() * 2);
    let failed = Notice::Failed { sequence: 1000 + parcels[0] };
    let restored = Notice::Restored { expected: Some(1700) };
    assert_eq!(notices(&net), [(0, 7, failed), (0, 7, restored)]);
    assert_eq!(net.delivered[2..], parcels.map(|id| (id, NodeId(5))));
    let signals = |it: &AbrMessage| matches!(it, AbrMessage::Signal { .. });
    assert_eq!(aired(&net, signals), [4, 3, 2, 1, 4, 3, 2, 1], "each once: all are acknowledged");
}

#[test]
fn tcp_bus_repeats_its_messages_until_they_are_acknowledged() {
    let mut net = TestNet::chain(&with(Notices::Bus), 6);
    net.send(7, 0, 6);
    net.run_for(second());
    net.cut(5, 6);
    net.cut(3, 4);
    let lost = net.send(7, 4, 6);
    assert_eq!(net.path_of(lost), [] as [u16; 0]);
    net.join(3, 4);
    net.send(7, 0, 6);
    net.run_for(Duration::from_millis(7));
    net.cut(3, 4);
    net.run_for(second() / 2);
    net.join(3, 4);
    net.run_for(second() / 2);
    assert_eq!(notices(&net).iter().filter(|(node, ..)| *node == 0).count(), 1);
}

#[test]
fn parcels_between_source_and_break_stay_where_they_are() {
    let mut net = detour(&with(Notices::Bus));
    net.cut(4, 6);
    net.send(7, 0, 5);
    net.run_for(Duration::from_millis(20));
    // The source has been notified; what it still sends gets no further than its neighbour.
    assert_eq!(notices(&net).len(), 1);
    let probe = net.send(7, 0, 5);
    net.run_for(Duration::from_millis(50));
    assert_eq!((net.path_of(probe), net.routers[1].abr().buffered()), (vec![0], 1));
    net.join(4, 5);
    net.run_for(second() * 8);
    assert!(net.delivered.contains(&(probe, NodeId(5))));
}

#[test]
fn a_silenced_flow_hears_once_when_its_route_is_back() {
    let mut net = TestNet::chain(&with(Notices::Rfn), 4);
    net.send(7, 0, 4);
    net.run_for(second());
    net.cut(1, 2);
    let lost = net.send(7, 0, 4);
    net.run_for(second() * 3);
    let failed = (0, 7, Notice::Failed { sequence: 1000 + lost });
    assert_eq!(notices(&net), [failed]);
    net.join(1, 2);
    net.run_for(second() * 20);
    assert_eq!(notices(&net), [failed, (0, 7, Notice::Restored { expected: None })]);
}

/// A MAC that gives an acknowledgement up on a link that is whole: the next parcel from the source proves it.
#[test]
fn acknowledgements_get_through_again_after_one_was_lost_on_the_way_back() {
    for node in 1..=4 {
        let mut net = TestNet::chain(&abr(), 4);
        net.send(7, 0, 4);
        net.run_for(second());
        net.cut(node - 1, node);
        let lost = net.acknowledge(7, 4, 0, 1);
        net.run_for(second() / 4);
        assert!(!net.delivered.contains(&(lost, NodeId(0))));
        net.join(node - 1, node);
        let parcel = net.send(7, 0, 4);
        net.run_for(second() / 4);
        assert!(net.delivered.contains(&(parcel, NodeId(4))));
        let back = net.acknowledge(7, 4, 0, 2);
        net.run_for(second() / 4);
        assert!(net.delivered.contains(&(back, NodeId(0))), "lost between {node} and the source");
    }
}

/// The destination has answered a second query over 2, and its reply was lost. Parcels still come over 1.
#[test]
fn acknowledgements_follow_the_parcels_when_a_newer_reply_was_lost() {
    let mut net = TestNet::new(&abr(), 4, &[(0, 1), (1, 3)]);
    net.send(7, 0, 3);
    net.run_for(second());
    let key = RouteKey { source: NodeId(0), destination: NodeId(3) };
    let visits = vec![Visit { node: NodeId(2), ticks: 0, load: 0 }];
    let query = AbrQuery { id: 99, route: key, asker: NodeId(0), hops_up: 0, visits };
    let message = Message::Abr(AbrMessage::Query(query));
    net.inject(2, 3, packet(NodeId(0), NodeId::BROADCAST, 9, message, Bytes(28)));
    net.run_for(second());
    net.join(2, 3);
    let parcel = net.send(7, 0, 3);
    net.run_for(second() / 4);
    let back = net.acknowledge(7, 3, 0, 2);
    net.run_for(second() / 4);
    assert_eq!(net.delivered[1..], [(parcel, NodeId(3)), (back, NodeId(0))]);
}

/// What rules circles out downstream: not even an unused route goes back to an older reply.
#[test]
fn an_older_reply_changes_nothing() {
    let key = RouteKey { source: NodeId(0), destination: NodeId(3) };
    let mut net = TestNet::new(&abr(), 5, &[]);
    let mut ahead_after = |from: u16, message: AbrMessage| {
        net.inject(from, 1, packet(NodeId(from), NodeId(1), 9, Message::Abr(message), Bytes(24)));
        net.routers[1].abr().ahead(Instant::ZERO, key)
    };
    let reply = |number, by| {
        let path = [0, 1, by, 3].map(NodeId).into();
        AbrMessage::Reply(AbrReply {
            route: key,
            number,
            hops_up: 0,
            path,
            at: 1,
            expected: vec![],
        })
    };
    assert_eq!(ahead_after(2, reply(5, 2)), Next::Hop(NodeId(2)));
    assert_eq!(ahead_after(4, reply(4, 4)), Next::Hop(NodeId(2)));
    assert_eq!(ahead_after(0, AbrMessage::Delete { id: 1, route: key }), Next::Nowhere);
    assert_eq!(ahead_after(4, reply(4, 4)), Next::Nowhere);
    assert_eq!(ahead_after(4, reply(6, 4)), Next::Hop(NodeId(4)));
}

fn any_message() -> impl Strategy<Value = AbrMessage> {
    let node = || prop_oneof![(0u16..2000).prop_map(NodeId), (0u16..3).prop_map(NodeId)];
    let key =
        move || (node(), node()).prop_map(|(source, destination)| RouteKey { source, destination });
    let visit = move || {
        (node(), any::<u16>(), any::<u16>()).prop_map(|(node, ticks, load)| Visit {
            node,
            ticks,
            load,
        })
    };
    let query = (any::<u32>(), key(), node(), any::<u8>(), prop::collection::vec(visit(), 0..300))
        .prop_map(|(id, route, asker, hops_up, visits)| AbrQuery {
            id,
            route,
            asker,
            hops_up,
            visits,
        })
        .prop_map(AbrMessage::Query);
    let reply = (key(), any::<u8>(), prop::collection::vec(node(), 0..300), any::<u8>()).prop_map(
        |(route, hops_up, path, at)| {
            let (number, expected) = (u32::from(hops_up), vec![]);
            AbrMessage::Reply(AbrReply { route, number, hops_up, path: path.into(), at, expected })
        },
    );
    let broken = (key(), any::<bool>()).prop_map(|(route, here)| {
        let repair = if here { Backtrack::Here } else { Backtrack::Source };
        AbrMessage::Broken { route, repair }
    });
    let signal = (any::<u32>(), node(), node(), any::<Option<u64>>()).prop_map(
        |(id, source, destination, lost)| {
            let notice = lost.map_or(Notice::Restored { expected: None }, |sequence| {
                Notice::Failed { sequence }
            });
            AbrMessage::Signal {
                id,
                source,
                notice: NoticeMessage { flow: id, destination, notice },
            }
        },
    );
    prop_oneof![
        query,
        reply,
        broken,
        signal,
        (any::<u32>(), key()).prop_map(|(id, route)| AbrMessage::Delete { id, route }),
        any::<u32>().prop_map(|id| AbrMessage::SignalAck { id }),
        Just(AbrMessage::Beacon),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Any messages at any time: nothing panics and nothing grows beyond its limit.
    #[test]
    fn tables_are_bounded(
        messages in prop::collection::vec((any_message(), 0u16..2000, 0u64..200), 1..300),
    ) {
        let mut net = TestNet::chain(&with(Notices::Bus), 2);
        for (mut message, from, pause) in messages {
            match &mut message {
                AbrMessage::Query(query) if query.visits.is_empty() => query.asker = NodeId(from),
                AbrMessage::Query(query) => query.visits.last_mut().unwrap().node = NodeId(from),
                AbrMessage::Reply(reply) if from.is_multiple_of(2) => {
                    (reply.path, reply.at) = ([0, 1, from].map(NodeId).into(), 1);
                }
                _ => {}
            }
            net.send(1, 1, from);
            let about = packet(NodeId(from), NodeId(1), 9, Message::Abr(message), Bytes(24));
            net.inject(from, 1, about);
            net.run_for(Duration::from_millis(pause));
            let router = net.routers[1].abr();
            prop_assert!(router.buffered() <= 64);
            prop_assert!(router.discoveries.len() <= discovery::DISCOVERIES);
            prop_assert!(router.reply_times.len() <= discovery::DISCOVERIES);
            prop_assert!(router.choices.len() <= discovery::CHOICES);
            prop_assert!(router.table.len() <= table::ROUTES);
            prop_assert!(router.neighbours.len() <= 256);
            prop_assert!(router.seen.len() <= Seen::LIMIT);
            prop_assert!(router.signals.len() <= signal::SIGNALS);
            prop_assert!(router.notices.remembered() <= 64);
        }
    }

    /// Links come and go at random: next hops never lead in a circle, and every parcel has one fate.
    #[test]
    fn routes_have_no_loops(seed in any::<u64>(), bus in any::<bool>()) {
        change_at_random(seed, if bus { Notices::Bus } else { Notices::Elfn });
    }
}

/// Node 2 has a reply that makes 0 its upstream; the reply has not reached 0, for which 2 is upstream
/// since an older one.
#[test]
fn a_reply_on_its_way_makes_no_circle() {
    change_at_random(6670383104667563206, Notices::Elfn);
}

fn change_at_random(seed: u64, notices: Notices) {
    let mut rng = stream(seed, "changes");
    let nodes = 12u16;
    let mut net = TestNet::new(&with(notices), nodes, &[]);
    let pick = |rng: &mut weir_units::Rng| rng.below(u64::from(nodes)) as u16;
    for _ in 0..300 {
        let (a, b) = (pick(&mut rng), pick(&mut rng));
        match rng.below(3) {
            _ if a == b => {}
            0 if net.linked(a, b) => net.cut(a, b),
            0 | 1 if !net.linked(a, b) && rng.below(3) == 0 => net.join(a, b),
            _ if rng.below(3) == 0 => {
                net.acknowledge(1, a, b, 0);
            }
            _ => {
                net.send(1, a, b);
            }
        }
        net.run_for(Duration::from_millis(rng.below(400)));
        assert_no_loops(&mut net, nodes);
    }
    net.run_for(second() * 200);
    net.assert_one_fate_each();
    assert!(net.dropped.iter().all(|(_, reason)| *reason != DropReason::TtlExpired));
    let settled = net.delivered.len() + net.dropped.len();
    assert_eq!(settled as u64, net.sent, "after the buffers' time all is decided");
    assert!(!net.delivered.is_empty());
}

fn assert_no_loops(net: &mut TestNet, nodes: u16) {
    for source in (0..nodes).map(NodeId) {
        for destination in (0..nodes).map(NodeId).filter(|it| *it != source) {
            let now = net.now;
            let key = RouteKey { source, destination };
            follow(source, destination, nodes, |_, at| {
                match net.routers[usize::from(at.0)].abr().ahead(now, key) {
                    Next::Hop(next) => Some(next),
                    Next::Wait | Next::Nowhere => None,
                }
            });
            follow(destination, source, nodes, |from, at| {
                let router = net.routers[usize::from(at.0)].abr();
                match from {
                    Some(from) => router.back(now, key, from),
                    None => router.upstream(now, source, destination),
                }
            });
        }
    }
}

/// `next` receives where the parcel comes from and where it is.
fn follow(
    from: NodeId,
    to: NodeId,
    nodes: u16,
    mut next: impl FnMut(Option<NodeId>, NodeId) -> Option<NodeId>,
) {
    let (mut before, mut at) = (None, from);
    let mut steps = 0;
    while at != to {
        let Some(hop) = next(before, at) else { break };
        (before, at) = (Some(at), hop);
        steps += 1;
        assert!(steps <= nodes, "the way from {from} to {to} is a circle");
    }
}

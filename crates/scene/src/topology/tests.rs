use weir_net::Limit;
use weir_units::Bytes;

use super::*;

fn link(mbit: u64, millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit(mbit), Duration::from_millis(millis))
}

fn names(topology: &Topology, route: &[usize]) -> Vec<String> {
    route.iter().map(|&index| topology.links[index].name.clone()).collect()
}

fn round_trip(topology: &Topology, route: &Route) -> Duration {
    route.forward.iter().chain(&route.reverse).map(|&i| delay(&topology.links[i].config)).sum()
}

#[test]
fn a_dumbbell_gives_each_flow_the_round_trip_asked_for() {
    for access in [Access::None, Access::Rate(Rate::from_mbit(100))] {
        let rtts: Vec<Duration> = [40, 41, 100].map(Duration::from_millis).into();
        let dumbbell =
            Dumbbell { forward: link(10, 20), reverse: link(10, 20), access, rtts: rtts.clone() };
        let topology = dumbbell.build().unwrap();
        let built: Vec<Duration> =
            topology.routes.iter().map(|route| round_trip(&topology, route)).collect();
        assert_eq!(built, rtts);
    }
}

#[test]
fn access_links_are_left_out_where_they_would_do_nothing() {
    let dumbbell = |access| Dumbbell {
        forward: link(10, 20),
        reverse: link(10, 20),
        access,
        rtts: vec![Duration::from_millis(40)],
    };
    let direct = dumbbell(Access::None).build().unwrap();
    assert_eq!(names(&direct, &direct.routes[0].forward), ["bottleneck"]);
    assert_eq!(names(&direct, &direct.routes[0].reverse), ["bottleneck-reverse"]);
    let full = dumbbell(Access::Rate(Rate::from_mbit(100))).build().unwrap();
    assert_eq!(names(&full, &full.routes[0].forward), ["f0.up", "bottleneck", "f0.down"]);
    assert_eq!(
        names(&full, &full.routes[0].reverse),
        ["f0.ack-up", "bottleneck-reverse", "f0.ack-down"]
    );
}

#[test]
fn a_round_trip_below_the_bottlenecks_is_refused() {
    let dumbbell = Dumbbell {
        forward: link(10, 20),
        reverse: link(10, 20),
        access: Access::None,
        rtts: vec![Duration::from_millis(50), Duration::from_millis(30)],
    };
    let message = dumbbell.build().unwrap_err().to_string();
    assert_eq!(message, "flow 1: rtt 30ms is shorter than the 40ms of the links that it shares");
}

#[test]
fn a_parking_lot_has_one_long_flow_and_one_per_hop() {
    let hop = || Hop { forward: link(10, 5), reverse: link(10, 5) };
    let chain = Chain {
        hops: vec![hop(), hop(), hop()],
        access: Access::None,
        spans: parking_lot_spans(3, 4),
    };
    let topology = chain.build().unwrap();
    let forward = |flow: usize| names(&topology, &topology.routes[flow].forward);
    assert_eq!(forward(0), ["hop0", "hop1", "hop2"]);
    assert_eq!([forward(1), forward(2), forward(3)], [["hop0"], ["hop1"], ["hop2"]]);
    let back = names(&topology, &topology.routes[0].reverse);
    assert_eq!(back, ["hop2-reverse", "hop1-reverse", "hop0-reverse"]);
}

#[test]
fn a_flow_may_run_from_right_to_left() {
    let chain = Chain {
        hops: vec![Hop { forward: link(10, 5), reverse: link(2, 5) }],
        access: Access::None,
        spans: vec![Span { from: 1, to: 0 }],
    };
    let topology = chain.build().unwrap();
    assert_eq!(names(&topology, &topology.routes[0].forward), ["hop0-reverse"]);
    assert_eq!(names(&topology, &topology.routes[0].reverse), ["hop0"]);
}

/// A square a-b-d, a-c-d with a shortcut a-d, and a node e by itself.
fn square(shortcut: u32, span: Span) -> Result<Topology, TopologyError> {
    let edge = |name: &str, from, to, cost| Edge {
        name: name.into(),
        from,
        to,
        cost,
        config: link(10, 1),
        monitored: false,
    };
    let graph = Graph {
        nodes: ["a", "b", "c", "d", "e"].map(String::from).into(),
        edges: vec![
            edge("ac", 0, 2, 1),
            edge("ab", 0, 1, 1),
            edge("bd", 1, 3, 1),
            edge("cd", 2, 3, 1),
            edge("ad", 0, 3, shortcut),
            edge("da", 3, 0, 1),
        ],
        access: Access::None,
        spans: vec![span],
    };
    graph.build()
}

#[test]
fn a_graph_routes_by_cost_and_breaks_ties_always_alike() {
    let there = Span { from: 0, to: 3 };
    let dear = square(3, there).unwrap();
    assert_eq!(names(&dear, &dear.routes[0].forward), ["ab", "bd"]);
    assert_eq!(names(&dear, &dear.routes[0].reverse), ["da"]);
    let cheap = square(1, there).unwrap();
    assert_eq!(names(&cheap, &cheap.routes[0].forward), ["ad"]);
}

#[test]
fn a_graph_names_what_is_wrong() {
    let message = |from, to| square(1, Span { from, to }).unwrap_err().to_string();
    assert_eq!(message(3, 4), "flow 0: no way leads from 'd' to 'e'");
    assert!(message(0, 9).contains("two different nodes below 5"));
    assert!(message(2, 2).contains("two different nodes"));
}

#[test]
fn hosts_are_servers_in_front_of_the_ends() {
    let relay = Relay::Serial(LinkConfig {
        service: Service::PerPacket { forward: Duration::from_millis(20), reverse: Duration::ZERO },
        ..LinkConfig::default()
    });
    let router = LabRouter { relay, forward: None, reverse: None, flows: 1 };
    let mut topology = router.build();
    let buffer = DropTailConfig::from(Limit::Bytes(Bytes(65_536)));
    topology.add_hosts(0, &HostConfig { per_packet: Duration::from_millis(9), buffer });
    assert_eq!(names(&topology, &topology.routes[0].forward), ["relay", "f0.receiver"]);
    assert_eq!(names(&topology, &topology.routes[0].reverse), ["relay", "f0.sender"]);
}

#[test]
fn preparation_is_the_first_link_of_a_flow() {
    let dumbbell = Dumbbell {
        forward: link(10, 20),
        reverse: link(10, 20),
        access: Access::None,
        rtts: vec![Duration::from_millis(40); 2],
    };
    let mut topology = dumbbell.build().unwrap();
    topology.add_preparation(1, Duration::from_millis(5), Duration::from_millis(2));
    let forward = &topology.routes[1].forward;
    assert_eq!(names(&topology, forward), ["f1.preparation", "bottleneck"]);
    assert!(topology.links[forward[0]].one_at_a_time);
    assert_eq!(names(&topology, &topology.routes[0].forward), ["bottleneck"]);
}

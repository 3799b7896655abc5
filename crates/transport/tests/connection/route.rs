//! Route-failure policies at work: what leaves, when, and what the controller hears of it.

use std::cell::Cell;
use std::rc::Rc;

use weir_transport::{Config, DelayedAck, Event, PathEvent, RouteState, Stats};
use weir_units::{Bytes, Duration, Instant};

use super::pair::Side::{Client, Server};
use super::pair::{ONE_WAY, Pair, Passing, RTT, Verdict};
use super::{has_data, with_stack};

/// A transfer over a route that can break.
struct Transfer {
    pair: Pair,
    broken: Rc<Cell<bool>>,
}

const MSS: u64 = 1_000;
const WINDOW: u64 = 8;
/// Lasts for 2.5 s over an unbroken route.
const SEGMENTS: u64 = 1_000;

fn config(stack: &str, policy: &str) -> Config {
    Config {
        mss: MSS as u32,
        route_policy: policy.parse().expect("a policy"),
        window_limit: Some("8".parse().expect("a limit")),
        delayed_ack: Some(DelayedAck::Off),
        ..with_stack(stack)
    }
}

impl Transfer {
    /// In the middle, just before a window's acknowledgements arrive and the next window leaves.
    fn new(config: &Config) -> Self {
        let mut pair = Pair::connected(config);
        let broken = Rc::new(Cell::new(false));
        let is_broken = Rc::clone(&broken);
        pair.network(move |_| if is_broken.get() { Verdict::Drop } else { Verdict::Deliver });
        pair.write(Client, SEGMENTS * MSS);
        let mut transfer = Self { pair, broken };
        transfer.run(495);
        assert_eq!(transfer.outstanding(), WINDOW * MSS);
        transfer.pair.client.events.clear();
        transfer.pair.log.clear();
        transfer
    }

    fn of(stack: &str, policy: &str) -> Self {
        Self::new(&config(stack, policy))
    }

    fn run(&mut self, millis: u64) {
        self.pair.drive_for(Duration::from_millis(millis));
    }

    /// The route breaks: those acknowledgements still arrive, the window that they let go does not.
    fn cut(&mut self) {
        self.broken.set(true);
        self.run(ONE_WAY.as_millis());
        self.pair.log.clear();
    }

    fn heal(&mut self) {
        self.broken.set(false);
    }

    fn fails(&mut self) {
        let sequence = self.una();
        self.notify(PathEvent::RouteFailed { sequence });
    }

    fn is_back(&mut self) {
        self.notify(PathEvent::RouteRestored { expected: None });
    }

    fn notify(&mut self, event: PathEvent) {
        self.pair.notify(Client, event);
    }

    fn una(&self) -> u64 {
        SEGMENTS * MSS - self.pair.client.connection.unacknowledged().get()
    }

    fn outstanding(&self) -> u64 {
        self.stats().data_bytes_sent - self.stats().retransmitted_bytes - self.una()
    }

    fn stats(&self) -> Stats {
        *self.pair.client.connection.stats()
    }

    fn cwnd(&self) -> Bytes {
        self.pair.client.connection.snapshot().cwnd
    }

    /// The states that the policy came to since this was last asked.
    fn states(&mut self) -> Vec<RouteState> {
        let events = self.pair.client.events.drain(..);
        let state = |event| if let Event::Route(state) = event { Some(state) } else { None };
        events.filter_map(state).collect()
    }

    /// What the client has sent since: when, in milliseconds, and which segment, probes without payload as
    /// well.
    fn sent(&self, since: Instant) -> Vec<(u64, u64)> {
        let sent = self.pair.log.iter().filter(|p| p.from == Client && p.at >= since);
        sent.map(|p| ((p.at - since).as_millis(), p.offset / MSS)).collect()
    }

    /// The transfer completes.
    fn finish(mut self) -> Stats {
        self.pair.close(Client);
        self.pair.drive();
        assert_eq!(self.pair.server.read, SEGMENTS * MSS);
        assert_eq!(self.pair.client.events.last(), Some(&Event::Closed));
        self.stats()
    }
}

/// Stacks over which a frozen window is compared.
const STACKS: [&str; 7] = [
    "reno/reno",
    "newreno/reno",
    "sack/cubic",
    "rack/reno",
    "rack/bbr",
    "go-back-n/reno",
    "selective-repeat/none(8)",
];

#[test]
fn a_snoozing_sender_is_silent_and_resends_its_window_when_the_route_is_back() {
    for stack in STACKS {
        let mut transfer = Transfer::of(stack, "tcp-f");
        transfer.cut();
        transfer.fails();
        assert_eq!(transfer.states(), [RouteState::Snooze], "{stack}");
        let before = transfer.pair.client.connection.snapshot();
        let (start, una) = (transfer.pair.now, transfer.una() / MSS);
        transfer.run(5_000);
        assert_eq!(transfer.sent(start), [], "{stack}");
        transfer.heal();
        let resumed = transfer.pair.now;
        transfer.is_back();
        assert_eq!(transfer.states(), [RouteState::Normal], "{stack}");
        let after = transfer.pair.client.connection.snapshot();
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh), "{stack}");
        assert_eq!((after.srtt, after.rto), (before.srtt, before.rto), "{stack}");
        if !stack.ends_with("bbr") {
            // Paced, the window follows later.
            let window: Vec<_> = (una..una + WINDOW).map(|segment| (0, segment)).collect();
            assert_eq!(transfer.sent(resumed), window, "{stack}");
        }
        transfer.run(1_000);
        assert!(transfer.cwnd() >= before.cwnd, "{stack}");
        let stats = transfer.finish();
        assert_eq!((stats.timeouts, stats.reductions), (0, 0), "{stack}: {stats:?}");
        assert_eq!(stats.retransmits_route, stats.retransmits, "{stack}: {stats:?}");
        assert_eq!(stats.retransmits, WINDOW, "{stack}: {stats:?}");
        assert_eq!(stats.route_failures, 1);
        assert_eq!(stats.route_limited, Duration::from_secs(5), "{stack}");
    }
}

#[test]
fn the_route_failure_timer_leaves_tcp_what_remained_of_its_own() {
    let mut transfer = Transfer::of("newreno/reno", "tcp-f(timer=3s)");
    transfer.cut();
    let deadline = transfer.pair.client.connection.next_timeout(transfer.pair.now).unwrap();
    let frozen = transfer.pair.now;
    transfer.fails();
    transfer.run(1_000);
    transfer.fails();
    transfer.run(1_999);
    assert_eq!(transfer.states(), [RouteState::Snooze], "a second notice is ignored");
    transfer.run(1);
    assert_eq!(transfer.states(), [RouteState::Normal], "3 s after the first");
    let timer = Duration::from_secs(3);
    assert_eq!(
        transfer.pair.client.connection.next_timeout(transfer.pair.now),
        Some(deadline + timer)
    );
    assert_eq!(transfer.sent(frozen), []);
    transfer.run((deadline + timer - transfer.pair.now).as_millis() + 1);
    assert_eq!(transfer.stats().timeouts, 1);
    assert_eq!(transfer.cwnd(), Bytes(MSS), "TCP reacts as ever");
    transfer.is_back();
    assert_eq!(transfer.states(), [], "nothing to come back from");
    transfer.heal();
    transfer.finish();
}

#[test]
fn acknowledgements_in_snooze_are_booked_but_move_no_window() {
    let mut transfer = Transfer::of("sack/reno", "tcp-f");
    let cwnd = transfer.cwnd();
    transfer.fails();
    // Nothing is broken in truth: the whole window arrives and is acknowledged.
    transfer.run(100);
    assert_eq!((transfer.outstanding(), transfer.cwnd()), (0, cwnd));
    transfer.is_back();
    let stats = transfer.finish();
    assert_eq!((stats.retransmits, stats.reductions), (0, 0), "{stats:?}");
}

#[test]
fn a_sender_in_standby_probes_with_its_oldest_segment_until_it_is_answered() {
    for stack in STACKS {
        let mut transfer = Transfer::of(stack, "elfn");
        transfer.cut();
        let before = transfer.pair.client.connection.snapshot();
        let (start, una) = (transfer.pair.now, transfer.una() / MSS);
        transfer.fails();
        transfer.run(3_000);
        transfer.fails();
        transfer.is_back();
        transfer.run(2_000);
        assert_eq!(transfer.states(), [RouteState::Standby], "{stack}: both are ignored");
        transfer.heal();
        transfer.run(1_000 + RTT.as_millis() - 1);
        let probes = [(2_000, una), (4_000, una), (6_000, una)];
        assert_eq!(transfer.sent(start), probes, "{stack}");
        assert_eq!(transfer.cwnd(), before.cwnd, "{stack}");
        transfer.run(1);
        assert_eq!(transfer.states(), [RouteState::Normal], "{stack}");
        let after = transfer.pair.client.connection.snapshot();
        assert!(after.cwnd >= before.cwnd, "{stack}: {after:?}");
        assert_eq!((after.ssthresh, after.rto), (before.ssthresh, before.rto), "{stack}");
        let stats = transfer.stats();
        assert_eq!((stats.timeouts, stats.reductions), (0, 0), "{stack}: {stats:?}");
        assert_eq!((stats.route_probes, stats.retransmits_route), (3, 3), "{stack}");
        let stats = transfer.finish();
        assert_eq!(stats.route_limited, Duration::from_secs(6) + RTT, "{stack}");
    }
}

#[test]
fn whatever_is_acknowledged_ends_standby() {
    let mut transfer = Transfer::of("newreno/reno", "elfn");
    transfer.fails();
    transfer.run(RTT.as_millis());
    assert_eq!(transfer.states(), [RouteState::Standby, RouteState::Normal]);
    let stats = transfer.finish();
    assert_eq!((stats.route_probes, stats.retransmits), (0, 0));
}

#[test]
fn elfn_may_begin_anew() {
    for stack in ["newreno/reno", "rack/cubic"] {
        let mut transfer = Transfer::of(stack, "elfn(window=one,rto=reset)");
        transfer.cut();
        transfer.fails();
        transfer.heal();
        transfer.run(2_000 + RTT.as_millis());
        assert_eq!(transfer.states(), [RouteState::Standby, RouteState::Normal]);
        let snapshot = transfer.pair.client.connection.snapshot();
        // One segment, and one more for the segment that was acknowledged.
        assert_eq!(snapshot.cwnd, Bytes(2 * MSS), "{stack}");
        assert_eq!((snapshot.rto, snapshot.srtt), (Duration::from_secs(6), None), "{stack}");
        let stats = transfer.finish();
        assert_eq!((stats.reductions, stats.timeouts), (0, 0), "{stack}: {stats:?}");
    }
}

/// The network loses one data segment from now on.
fn lose_one(transfer: &mut Transfer) {
    transfer.pair.lose_nth(3, |p| p.from == Client && has_data(p));
}

#[test]
fn atcp_repairs_a_loss_without_telling_the_controller() {
    for stack in ["reno/reno", "newreno/reno", "sack/cubic", "rack/reno", "rack/bbr"] {
        let mut transfer = Transfer::of(stack, "atcp");
        let cwnd = transfer.cwnd();
        lose_one(&mut transfer);
        transfer.run(100);
        assert_eq!(transfer.states(), [RouteState::Loss, RouteState::Normal], "{stack}");
        assert!(transfer.cwnd() >= cwnd, "{stack}");
        let stats = transfer.finish();
        assert_eq!((stats.reductions, stats.timeouts), (0, 0), "{stack}: {stats:?}");
        assert_eq!((stats.losses_hidden, stats.retransmits), (1, 1), "{stack}: {stats:?}");
        assert_eq!(stats.retransmits_route, 1, "{stack}: {stats:?}");
    }
}

#[test]
fn atcp_holds_new_data_back_while_it_repairs() {
    let mut transfer = Transfer::of("newreno/reno", "atcp");
    lose_one(&mut transfer);
    while transfer.pair.client.connection.snapshot().route != RouteState::Loss {
        transfer.run(1);
    }
    let (start, una) = (transfer.pair.now, transfer.una() / MSS);
    transfer.run(RTT.as_millis() - 2);
    let later = start + Duration::from_millis(1);
    assert_eq!(transfer.sent(later), [], "only the lost segment left");
    transfer.run(2);
    assert_eq!(transfer.states(), [RouteState::Loss, RouteState::Normal]);
    assert!(transfer.una() / MSS > una);
    transfer.finish();
}

#[test]
fn atcp_repeats_by_a_timer_of_its_own_and_the_controller_hears_no_timeout() {
    for stack in ["newreno/reno", "rack(tlp=off)/cubic", "sack/reno", "go-back-n/reno"] {
        let mut transfer = Transfer::of(stack, "atcp");
        transfer.cut();
        let (start, cwnd) = (transfer.pair.now, transfer.cwnd());
        let over = transfer.pair.client.connection.next_timeout(start).unwrap();
        // With Linux's recovery on the tick after it.
        let rto = transfer.pair.client.connection.next_timeout(over).unwrap() - start;
        let base = transfer.pair.client.connection.snapshot().rto;
        transfer.run(1_500);
        transfer.heal();
        assert_eq!(transfer.states(), [RouteState::Loss], "{stack}");
        let times: Vec<_> = transfer.sent(start).into_iter().map(|(at, _)| at).collect();
        let [first, second, third] = [0, 1, 3].map(|n| (rto + base * n).as_millis());
        assert_eq!(times.first(), Some(&first), "{stack}");
        assert!(times.contains(&second) && times.contains(&third), "{stack}: {times:?}");
        assert!(times.iter().all(|at| [first, second, third].contains(at)), "{stack}: {times:?}");
        assert_eq!(transfer.cwnd(), cwnd, "{stack}");
        let stats = transfer.finish();
        assert_eq!((stats.reductions, stats.timeouts), (0, 0), "{stack}: {stats:?}");
        assert_eq!(stats.losses_hidden, 1, "{stack}: {stats:?}");
    }
}

/// A transfer with ECN of which the network marks and loses what `verdict` says of the data segments that
/// follow, counted from 0.
fn marked(stack: &str, verdict: impl Fn(u64) -> Verdict + 'static) -> Transfer {
    let config = Config { ecn: Some(true), limited_transmit: false, ..config(stack, "atcp") };
    let mut transfer = Transfer::new(&config);
    let mut seen = 0;
    transfer.pair.network(move |passing: &Passing| {
        if passing.from == Server || !has_data(passing) {
            return Verdict::Deliver;
        }
        seen += 1;
        verdict(seen - 1)
    });
    transfer
}

#[test]
fn atcp_leaves_marks_to_the_controller_until_new_data_leaves() {
    let mut transfer = marked("newreno/reno", |n| match n {
        0 => Verdict::Mark,
        _ => Verdict::Deliver,
    });
    transfer.run(60);
    // The peer echoes until it hears that the window was reduced.
    let states = transfer.states();
    assert_eq!(states[..2], [RouteState::Congested, RouteState::Normal], "{states:?}");
    assert!(!states.contains(&RouteState::Loss));
    let stats = transfer.finish();
    assert_eq!((stats.reductions, stats.losses_hidden), (1, 0), "{stats:?}");
}

#[test]
fn atcp_does_not_interfere_with_losses_while_the_network_is_congested() {
    // The first is lost, and the answers to those that follow echo a mark; none of them lets new data go.
    let mut transfer = marked("newreno/reno", |n| match n {
        0 => Verdict::Drop,
        1 => Verdict::Mark,
        _ => Verdict::Deliver,
    });
    transfer.run(60);
    let states = transfer.states();
    assert_eq!(states.first(), Some(&RouteState::Congested), "{states:?}");
    assert!(!states.contains(&RouteState::Loss), "{states:?}");
    let stats = transfer.finish();
    assert_eq!((stats.losses_hidden, stats.retransmits_fast), (0, 1), "{stats:?}");
}

#[test]
fn a_mark_takes_tcp_out_of_persist() {
    let mut transfer = marked("newreno/reno", |n| match n {
        0 => Verdict::Drop,
        5 => Verdict::Mark,
        _ => Verdict::Deliver,
    });
    transfer.run(100);
    let states = transfer.states();
    assert_eq!(states[..2], [RouteState::Loss, RouteState::Congested], "{states:?}");
    let stats = transfer.finish();
    assert_eq!(stats.losses_hidden, 1, "{stats:?}");
    assert!(stats.reductions > 0, "{stats:?}");
}

#[test]
fn atcp_probes_while_disconnected_and_begins_again_with_one_segment() {
    for stack in ["newreno/reno", "sack/reno", "rack/cubic", "go-back-n/reno"] {
        let mut transfer = Transfer::of(stack, "atcp");
        transfer.cut();
        let ssthresh = transfer.pair.client.connection.snapshot().ssthresh;
        let (start, una) = (transfer.pair.now, transfer.una() / MSS);
        let base = transfer.pair.client.connection.snapshot().rto;
        transfer.notify(PathEvent::Unreachable);
        assert_eq!(transfer.states(), [RouteState::Disconnected], "{stack}");
        assert_eq!(transfer.cwnd(), Bytes(MSS), "{stack}");
        transfer.run(1_000);
        transfer.notify(PathEvent::Unreachable);
        let probes: Vec<_> = [1, 3].map(|n| ((base * n).as_millis(), una)).to_vec();
        assert_eq!(transfer.sent(start), probes, "{stack}: twice the wait each time");
        assert!(transfer.pair.log.iter().all(|p| !has_data(p)), "{stack}: they are empty");
        transfer.heal();
        let answered = (base * 7).as_millis() + RTT.as_millis();
        transfer.run(answered - 1_000 - 1);
        assert_eq!(transfer.states(), [], "{stack}");
        transfer.run(1);
        assert_eq!(transfer.states(), [RouteState::Normal], "{stack}");
        let resumed = start + Duration::from_millis(answered);
        assert_eq!(transfer.sent(resumed), [(0, una)], "{stack}");
        transfer.run(RTT.as_millis());
        assert_eq!(transfer.sent(resumed)[1..], [(20, una + 1), (20, una + 2)], "{stack}");
        assert_eq!(transfer.pair.client.connection.snapshot().ssthresh, ssthresh, "{stack}");
        let stats = transfer.finish();
        assert_eq!((stats.timeouts, stats.reductions), (0, 0), "{stack}: {stats:?}");
        assert_eq!((stats.route_probes, stats.retransmits_route), (3, WINDOW), "{stack}");
    }
}

#[test]
fn bus_resends_only_what_does_not_wait_at_the_pivoting_node() {
    for stack in STACKS {
        let mut transfer = Transfer::of(stack, "bus");
        // Of eight segments on their way, one arrives, two are lost beyond the pivoting node, and five wait
        // there.
        transfer.cut();
        let una = transfer.una() / MSS;
        let cwnd = transfer.cwnd();
        let sequence = (una + 3) * MSS;
        transfer.notify(PathEvent::RouteFailed { sequence });
        let start = transfer.pair.now;
        transfer.run(1_900);
        assert_eq!(transfer.sent(start), [], "{stack}");
        assert_eq!(transfer.states(), [RouteState::Reestablishing], "{stack}");
        transfer.heal();
        let resumed = transfer.pair.now;
        let before = transfer.pair.client.connection.snapshot();
        transfer.notify(PathEvent::RouteRestored { expected: Some((una + 1) * MSS) });
        assert_eq!(transfer.states(), [RouteState::Normal], "{stack}");
        assert_eq!(transfer.cwnd(), cwnd, "{stack}");
        let sent: Vec<_> = transfer.sent(resumed).into_iter().map(|(_, n)| n).collect();
        if stack.ends_with("bbr") {
            assert_eq!(sent[..1], [una + 1], "{stack}");
        } else {
            assert_eq!(sent, [una + 1, una + 2], "{stack}");
        }
        if stack.starts_with("newreno") {
            let deadline = transfer.pair.client.connection.next_timeout(resumed);
            assert_eq!(deadline, Some(resumed + before.rto * 2), "{stack}");
        }
    }
}

/// Segments that the network holds for a while arrive as if nothing had happened.
#[test]
fn what_waits_at_the_pivoting_node_is_not_resent() {
    for stack in ["reno/reno", "newreno/reno", "sack/cubic", "rack/reno"] {
        let mut transfer = Transfer::of(stack, "bus");
        let held = transfer.una() + WINDOW * MSS;
        let repair = Duration::from_millis(1_500);
        let cut = transfer.pair.now;
        // What leaves within the next round trip reaches the pivoting node and waits there.
        transfer.pair.network(move |p| {
            if p.from == Client && p.at < cut + RTT {
                Verdict::Late(cut + RTT + repair - p.at)
            } else {
                Verdict::Deliver
            }
        });
        transfer.run(RTT.as_millis());
        assert_eq!(transfer.una(), held);
        let cwnd = transfer.cwnd();
        transfer.notify(PathEvent::RouteFailed { sequence: held });
        transfer.run(repair.as_millis());
        transfer.notify(PathEvent::RouteRestored { expected: Some(held) });
        transfer.run(100);
        assert!(transfer.cwnd() >= cwnd, "{stack}");
        let srtt = transfer.pair.client.connection.snapshot().srtt;
        assert!(srtt < Some(RTT * 2), "{stack}: {srtt:?}");
        let stats = transfer.finish();
        assert_eq!((stats.retransmits, stats.timeouts, stats.reductions), (0, 0, 0), "{stack}");
    }
}

#[test]
fn a_source_that_hears_nothing_of_the_repair_asks_its_peer() {
    let mut transfer = Transfer::of("sack/reno", "bus");
    transfer.cut();
    let (start, una) = (transfer.pair.now, transfer.una() / MSS);
    transfer.fails();
    transfer.run(3_000);
    transfer.heal();
    transfer.run(1_000 + RTT.as_millis());
    assert_eq!(transfer.states(), [RouteState::Reestablishing, RouteState::Normal]);
    assert_eq!(transfer.sent(start)[..2], [(2_000, una), (4_000, una)]);
    assert_eq!(transfer.stats().route_probes, 2);
    transfer.finish();
}

#[test]
fn notices_mean_nothing_where_nothing_is_under_way() {
    for policy in ["none", "tcp-f", "elfn", "atcp", "bus"] {
        let notices = [
            PathEvent::RouteFailed { sequence: 0 },
            PathEvent::Unreachable,
            PathEvent::RouteRestored { expected: Some(u64::MAX) },
            PathEvent::Hops(3),
        ];
        let mut pair = Pair::new(&config("sack/reno", policy));
        for notice in notices {
            pair.notify(Client, notice);
            pair.notify(Server, notice);
        }
        pair.drive();
        for notice in notices {
            pair.notify(Client, notice);
        }
        pair.write(Client, 50_000);
        pair.close(Client);
        pair.drive();
        for notice in notices {
            pair.notify(Client, notice);
            pair.notify(Server, notice);
        }
        pair.drive();
        assert_eq!(pair.server.read, 50_000);
        for side in [Client, Server] {
            let events = &pair.end(side).events;
            assert!(!events.iter().any(|e| matches!(e, Event::Route(_))), "{policy}: {events:?}");
        }
    }
}

/// Without a policy, notices change nothing at all.
#[test]
fn a_sender_without_a_policy_ignores_the_network() {
    let log = |notices: bool| {
        let mut transfer = Transfer::of("rack/cubic", "none");
        if notices {
            transfer.fails();
            transfer.notify(PathEvent::Unreachable);
            transfer.is_back();
            transfer.notify(PathEvent::Hops(8));
        }
        transfer.run(2_500);
        let log = transfer.pair.log.iter().map(|p| (p.at, p.segment, p.offset));
        log.collect::<Vec<_>>()
    };
    assert!(log(true).len() > 1_000);
    assert_eq!(log(true), log(false));
}

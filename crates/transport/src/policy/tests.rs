//! The tables of states, row by row: what each policy orders and where it then stands.

use super::*;

/// A policy in the middle of a transfer: offsets 1000 to 9000 are outstanding, the RTO is 300 ms.
struct Table(Box<dyn Policy>);

const UNA: u64 = 1_000;
const NXT: u64 = 9_000;

fn cx(millis: u64) -> PolicyCx {
    PolicyCx { now: at(millis), rto: Duration::from_millis(300), una: UNA, nxt: NXT }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

const DUPLICATE: AckInfo = AckInfo { ack: UNA, marked: false };
const NEW: AckInfo = AckInfo { ack: 2_000, marked: false };
const MARKED: AckInfo = AckInfo { ack: UNA, marked: true };
const ALL: AckInfo = AckInfo { ack: NXT, marked: false };

const UNCHANGED: Resume =
    Resume { window: AtResume::Keep, rto: Rto::Remaining, again: ResendRequest::Nothing };

impl Table {
    fn of(text: &str) -> Self {
        let policy: RoutePolicy = text.parse().unwrap();
        Self(policy.build().unwrap())
    }

    #[track_caller]
    fn failure(&mut self, millis: u64, sequence: Option<u64>, order: Order, state: RouteState) {
        assert_eq!(self.0.on_failure(&cx(millis), sequence), order);
        assert_eq!(self.0.state(), state);
    }

    #[track_caller]
    fn restored(&mut self, millis: u64, expected: Option<u64>, order: Order) {
        assert_eq!(self.0.on_restored(&cx(millis), expected), order);
    }

    #[track_caller]
    fn ack(&mut self, millis: u64, news: AckInfo, order: Order, state: RouteState) {
        assert_eq!(self.0.on_ack(&cx(millis), &news), order);
        assert_eq!(self.0.state(), state);
    }

    /// Its next deadline is at `millis`, and passes.
    #[track_caller]
    fn expires(&mut self, millis: u64, order: Order, state: RouteState) {
        assert_eq!(self.0.next_timeout(), Some(at(millis)));
        assert_eq!(self.0.on_timeout(&cx(millis)), order);
        assert_eq!(self.0.state(), state);
    }

    /// The recovery scheme finds a loss; whether the controller hears of it.
    #[track_caller]
    fn loss(&mut self, millis: u64, hidden: bool, state: RouteState) {
        assert_eq!(self.0.hides_losses(), hidden);
        if hidden {
            self.0.on_hidden_loss(&cx(millis));
        }
        assert_eq!(self.0.state(), state);
    }
}

#[test]
fn tcp_f() {
    use RouteState::{Normal, Snooze};
    let mut table = Table::of("tcp-f");
    table.restored(0, None, Order::Nothing);
    table.failure(0, None, Order::Freeze(AtResume::Keep), Snooze);
    table.failure(4_000, None, Order::Nothing, Snooze);
    table.ack(4_000, NEW, Order::Nothing, Snooze);
    table.expires(10_000, Order::Resume(UNCHANGED), Normal);
    assert_eq!(table.0.next_timeout(), None);

    table.failure(20_000, Some(5_000), Order::Freeze(AtResume::Keep), Snooze);
    table.restored(21_000, None, Order::Resume(Resume { again: ResendRequest::All, ..UNCHANGED }));
    assert_eq!((table.0.state(), table.0.next_timeout()), (Normal, None));
    table.loss(22_000, false, Normal);

    let mut table = Table::of("tcp-f(timer=5s)");
    table.failure(1_000, None, Order::Freeze(AtResume::Keep), Snooze);
    table.expires(6_000, Order::Resume(UNCHANGED), Normal);
}

#[test]
fn elfn() {
    use RouteState::{Normal, Standby};
    let mut table = Table::of("elfn");
    table.ack(0, NEW, Order::Nothing, Normal);
    table.failure(0, Some(3_000), Order::Freeze(AtResume::Keep), Standby);
    table.expires(2_000, Order::Probe(Probe::Oldest), Standby);
    table.failure(3_000, None, Order::Nothing, Standby);
    table.restored(3_000, None, Order::Nothing);
    table.expires(4_000, Order::Probe(Probe::Oldest), Standby);
    let saved = Resume { rto: Rto::Saved, ..UNCHANGED };
    table.ack(4_020, DUPLICATE, Order::Resume(saved), Normal);
    assert_eq!(table.0.next_timeout(), None);
    table.failure(5_000, None, Order::Freeze(AtResume::Keep), Standby);
    table.ack(5_001, NEW, Order::Resume(saved), Normal);
    table.loss(6_000, false, Normal);

    let mut table = Table::of("elfn(probe=500ms,window=one,rto=reset)");
    table.failure(0, None, Order::Freeze(AtResume::Keep), Standby);
    table.expires(500, Order::Probe(Probe::Oldest), Standby);
    let rto = Rto::Initial(Duration::from_secs(6));
    let anew = Resume { window: AtResume::Anew, rto, again: ResendRequest::Nothing };
    table.ack(520, NEW, Order::Resume(anew), Normal);
}

#[test]
fn atcp() {
    use RouteState::{Congested, Disconnected, Loss, Normal};
    let mut table = Table::of("atcp");
    // A loss without ECN: ATCP's own timer, the RTO doubled each time.
    table.loss(0, true, Loss);
    table.ack(10, DUPLICATE, Order::Nothing, Loss);
    table.expires(300, Order::SendAgain, Loss);
    table.loss(600, true, Loss);
    table.expires(900, Order::SendAgain, Loss);
    table.ack(950, NEW, Order::Nothing, Normal);
    assert_eq!(table.0.next_timeout(), None);

    // An ECN echo: TCP is left alone until it sends something new.
    table.ack(1_000, MARKED, Order::Nothing, Congested);
    table.loss(1_010, false, Congested);
    table.ack(1_020, NEW, Order::Nothing, Congested);
    table.0.on_new_data();
    assert_eq!(table.0.state(), Normal);

    table.loss(2_000, true, Loss);
    table.ack(2_010, MARKED, Order::Nothing, Congested);
    assert_eq!(table.0.next_timeout(), None, "TCP's timers run again");

    // From every state a destination may go away.
    let resumed = Order::Resume(Resume { rto: Rto::Saved, ..UNCHANGED });
    table.failure(3_000, None, Order::Freeze(AtResume::Anew), Disconnected);
    table.failure(3_050, Some(UNA), Order::Nothing, Disconnected);
    table.restored(3_050, None, Order::Nothing);
    table.ack(3_100, DUPLICATE, Order::Nothing, Disconnected);
    table.expires(3_300, Order::Probe(Probe::Empty), Disconnected);
    table.expires(3_900, Order::Probe(Probe::Empty), Disconnected);
    table.loss(4_000, false, Disconnected);
    table.ack(4_000, DUPLICATE, resumed, Normal);
    for before in [Normal, Loss] {
        if before == Loss {
            table.loss(5_000, true, Loss);
        }
        table.failure(5_100, None, Order::Freeze(AtResume::Anew), Disconnected);
        table.ack(5_200, ALL, resumed, Normal);
    }
}

#[test]
fn bus() {
    use RouteState::{Normal, Reestablishing};
    let doubled =
        |again| Order::Resume(Resume { window: AtResume::Keep, rto: Rto::Doubled, again });
    let mut table = Table::of("bus");
    table.restored(0, Some(UNA), Order::Nothing);
    table.failure(0, Some(5_000), Order::Freeze(AtResume::Keep), Reestablishing);
    table.ack(100, NEW, Order::Nothing, Reestablishing);
    table.restored(1_000, Some(3_000), doubled(ResendRequest::Between(3_000, 5_000)));
    assert_eq!((table.0.state(), table.0.next_timeout()), (Normal, None));

    // A notice that names no packet: nothing is known to wait. One that does not say what is expected.
    table.failure(2_000, None, Order::Freeze(AtResume::Keep), Reestablishing);
    table.restored(2_500, None, doubled(ResendRequest::Between(UNA, NXT)));

    // No notice says that the route is back: the source probes.
    table.failure(3_000, Some(4_000), Order::Freeze(AtResume::Keep), Reestablishing);
    table.failure(3_500, Some(6_000), Order::Nothing, Reestablishing);
    table.expires(5_000, Order::Probe(Probe::Empty), Reestablishing);
    table.expires(7_000, Order::Probe(Probe::Empty), Reestablishing);
    table.ack(7_020, NEW, doubled(ResendRequest::Between(2_000, 6_000)), Normal);

    table.failure(8_000, Some(UNA), Order::Freeze(AtResume::Keep), Reestablishing);
    table.ack(8_020, ALL, doubled(ResendRequest::Between(NXT, UNA)), Normal);
    table.loss(9_000, false, Normal);
}

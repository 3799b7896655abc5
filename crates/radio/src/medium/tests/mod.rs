//! Networks with static routes, and ways to drive them.

#![expect(clippy::print_stdout, reason = "measured figures are shown next to expected ones")]

mod bianchi;
mod chain;
mod facts;
mod property;

use weir_units::{Duration, Instant, stream};

use super::*;
use crate::probe::Probe;
use crate::routing::{LinkFailure, RouterCx};

pub(super) type TestRadio = Radio<Probe, Table>;

/// The next hop to each node; `None` where there is none.
#[derive(Clone, Debug)]
pub(super) struct Table(Vec<Option<NodeId>>);

impl Router<Probe> for Table {
    type Message = ();

    fn originate(&mut self, cx: &mut RouterCx<'_, Probe, ()>, datagram: Datagram<Probe, ()>) {
        let upcall = match self.0[usize::from(datagram.destination.0)] {
            _ if datagram.destination == cx.node => Upcall::Deliver(datagram),
            Some(next_hop) => Upcall::Send { next_hop, datagram, delay: Duration::ZERO },
            None => Upcall::Drop(datagram, DropReason::NoRoute),
        };
        cx.upcalls.push(upcall);
    }

    fn received(
        &mut self,
        cx: &mut RouterCx<'_, Probe, ()>,
        _from: NodeId,
        mut datagram: Datagram<Probe, ()>,
    ) {
        datagram.hops += 1;
        self.originate(cx, datagram);
    }

    fn link_failed(&mut self, cx: &mut RouterCx<'_, Probe, ()>, failure: LinkFailure<Probe, ()>) {
        let LinkFailure { next_hop, datagram, waiting } = failure;
        cx.upcalls.push(Upcall::Drop(datagram, DropReason::MacRetries));
        let again = |datagram| Upcall::Send { next_hop, datagram, delay: Duration::ZERO };
        cx.upcalls.extend(waiting.into_iter().map(again));
    }

    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _cx: &mut RouterCx<'_, Probe, ()>) {}
}

/// Nodes at these distances in metres from the first, in a line; routes go from each to the next.
pub(super) fn line(config: &RadioConfig, metres: &[i64], seed: u64) -> TestRadio {
    let positions: Vec<_> = metres.iter().map(|x| Position::metres(*x, 0)).collect();
    let count = positions.len() as u16;
    let table = |at: u16| {
        let step = |to: u16| (to != at).then(|| NodeId(if to > at { at + 1 } else { at - 1 }));
        Table((0..count).map(step).collect())
    };
    let routers = (0..count).map(table).collect();
    Radio::new(config, &positions, routers, |name| stream(seed, name)).unwrap()
}

/// A chain of `hops` hops of 200 m.
pub(super) fn chain(config: &RadioConfig, hops: i64, seed: u64) -> TestRadio {
    let metres: Vec<_> = (0..=hops).map(|hop| 200 * hop).collect();
    line(config, &metres, seed)
}

/// The events until then, with their times, from a world that polls whenever the network asks for it.
pub(super) fn run_until(
    radio: &mut TestRadio,
    until: Instant,
    mut each: impl FnMut(&mut TestRadio, Instant, RadioEvent<Probe>),
) {
    while let Some(time) = radio.next_time().filter(|time| *time <= until) {
        while let Some(event) = radio.poll(time) {
            assert_eq!(radio.time(), time);
            each(radio, time, event);
        }
    }
}

pub(super) fn secs(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

/// Whether `found` is within `percent` of `expected`.
pub(super) fn near(found: f64, expected: f64, percent: f64) -> bool {
    (found / expected - 1.0).abs() * 100.0 <= percent
}

//! The world: takes events in order of time, hands them to links and flows, and takes samples.

use std::ops::ControlFlow;

use weir_scene::{
    CaptureFilter, Event, EventQueue, FlowTable, LinkCrossing, LinkEnd, Network, Outcome,
    RadioOutput, Run, RunSpec, Side,
};
use weir_units::Instant;

use crate::error::SimError;
use crate::tap::PacketTap;

/// A run in progress.
pub(crate) struct World<'a, Q> {
    run: Run<'a>,
    end: Instant,
    net: Network<Q>,
    flow_table: FlowTable,
    /// Events since time last moved.
    at_once: u64,
    taped: Option<TappedLinks<'a>>,
}

/// A packet tap, and the links that it watches.
struct TappedLinks<'a> {
    tap: &'a mut dyn PacketTap,
    links: Vec<usize>,
    /// What passed in the event at hand.
    seen: Vec<(usize, LinkCrossing<()>)>,
}

/// This many events at one instant mean an endless loop.
const MAX_AT_ONCE: u64 = 50_000_000;
/// How often the watcher is asked, in events: a millisecond or so.
const WATCHED_EVERY: u64 = 4_096;

impl<'a, Q: EventQueue> World<'a, Q> {
    pub(crate) fn new(spec: &'a RunSpec, seed: u64) -> Result<Self, SimError> {
        let mut net = Network::new(spec, seed)?;
        let run = Run::new(spec, seed);
        run.schedule(&mut net);
        let flow_table = FlowTable::new(spec, seed, &mut net);
        Ok(Self { end: run.end(), run, net, flow_table, at_once: 0, taped: None })
    }

    /// Has `tap` record packets, from the first on: nothing is sent before the first event.
    pub(crate) fn with(mut self, tap: &'a mut dyn PacketTap) -> Self {
        let links = tap.links();
        links.iter().for_each(|index| self.net.links[*index].watch(CaptureFilter::All));
        self.taped = Some(TappedLinks { tap, links, seen: Vec::new() });
        self
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    pub(crate) fn run(
        mut self,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<Outcome, SimError> {
        while self.flow_table.is_open() || self.net.is_busy() {
            let before = self.net.now;
            let Some(event) = self.net.next_event_until(self.end) else { break };
            self.run.events += 1;
            self.at_once = if self.net.now > before { 0 } else { self.at_once + 1 };
            if self.at_once > MAX_AT_ONCE {
                self.net.notes.violate(format!("{MAX_AT_ONCE} events without any time passing"));
            }
            self.handle(event);
            if let Some(taped) = &mut self.taped {
                taped.take(&mut self.net);
            }
            if self.run.events.is_multiple_of(WATCHED_EVERY) && watch(self.net.now).is_break() {
                return Err(SimError::Stopped);
            }
            if let Some(what) = self.net.notes.violation() {
                return Err(self.run.failed(self.net.now, what).into());
            }
        }
        self.finish()
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(index) => {
                let Self { net, flow_table, .. } = self;
                net.on_link(index, |net, packet| {
                    flow_table.on_packet(&packet, net);
                    net.recycle(packet);
                });
            }
            Event::Endpoint(id) => {
                let side = if id % 2 == 0 { Side::Sender } else { Side::Receiver };
                self.flow_table.on_wake(id / 2, side, &mut self.net);
            }
            Event::Arrival(flow) => self.flow_table.on_arrival(flow, &mut self.net),
            Event::Radio => {
                let Self { net, flow_table, .. } = self;
                while let Some(happening) = net.next_happening() {
                    match happening {
                        RadioOutput::Arrived(packet) => flow_table.on_packet(&packet, net),
                        RadioOutput::Notice(flow, side, notice) => {
                            flow_table.on_notice(flow, side, notice, net);
                        }
                        RadioOutput::Dropped(..) => {}
                    }
                }
            }
            Event::Move => self.net.move_nodes(),
            Event::Sample => self.run.sample_again(&mut self.flow_table, &mut self.net),
            Event::WarmedUp => self.run.open(&mut self.flow_table, &mut self.net),
        }
    }

    fn finish(mut self) -> Result<Outcome, SimError> {
        self.run.finish(&mut self.flow_table, &mut self.net)?;
        Ok(self.run.close(self.flow_table.flows(), self.net))
    }
}

impl TappedLinks<'_> {
    fn take<Q: EventQueue>(&mut self, net: &mut Network<Q>) {
        let Self { tap, links, seen } = self;
        for index in links.iter() {
            seen.extend(net.links[*index].take_passed().map(|passing| (*index, passing)));
        }
        // What left a link at this instant is why something enters another.
        seen.sort_by_key(|(_, passing)| passing.end == LinkEnd::Entry);
        for (index, passing) in seen.drain(..) {
            tap.record(index, &passing);
        }
    }
}

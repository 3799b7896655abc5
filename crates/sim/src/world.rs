//! The world: takes events in order of time, hands them to links and flows, and takes samples.

use std::ops::{ControlFlow, Deref};

use weir_scene::{
    CaptureFilter, Event, EventQueue, FlowTable, LinkCrossing, LinkEnd, Load, Medium, Network,
    Outcome, Packet, PortEvent, RadioOutput, Run, RunSpec, Side, SpecError,
};
use weir_units::feedback::Telemetry;
use weir_units::{FeedbackKind, Instant};

use crate::error::SimError;
use crate::tap::PacketTap;

/// A run in progress.
pub(crate) struct World<S, Q, L: Load = ()> {
    pub(crate) run: Run<S>,
    end: Instant,
    pub(crate) net: Network<Q, L>,
    flow_table: FlowTable,
    /// Events since time last moved.
    at_once: u64,
    /// Whether a tap records the packets of any link.
    is_tapped: bool,
    /// The links that packets passed in the event at hand, of those that a tap watches.
    news: Vec<u32>,
    /// What passed them.
    seen: Vec<(usize, LinkCrossing<()>)>,
}

/// Why a run paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is over.
    Ended,
    /// The next event is later than it was to go.
    Reached,
    /// It has handled the number of events that it was allowed to.
    Interrupted,
}

/// This many events at one instant mean an endless loop.
const MAX_AT_ONCE: u64 = 50_000_000;
/// How often the watcher is asked, in events: a millisecond or so.
const WATCHED_EVERY: u64 = 4_096;

/// What packets carry in a simulation.
pub(crate) trait Simulated: Load {
    /// The network of a run.
    fn network<Q: EventQueue>(spec: &RunSpec, seed: u64) -> Result<Network<Q, Self>, SpecError>;

    /// Hands a packet over to its end of its flow.
    fn deliver<Q: EventQueue>(
        packet: &Packet<Self>,
        flow_table: &mut FlowTable,
        net: &mut Network<Q, Self>,
    );
}

impl Simulated for () {
    fn network<Q: EventQueue>(spec: &RunSpec, seed: u64) -> Result<Network<Q>, SpecError> {
        Network::with_radio(spec, seed)
    }

    #[inline(always)]
    fn deliver<Q: EventQueue>(packet: &Packet, table: &mut FlowTable, net: &mut Network<Q>) {
        table.on_packet(packet, net);
    }
}

impl Simulated for Telemetry {
    fn network<Q: EventQueue>(spec: &RunSpec, seed: u64) -> Result<Network<Q, Self>, SpecError> {
        Network::new(spec, seed)
    }

    fn deliver<Q: EventQueue>(
        packet: &Packet<Self>,
        flow_table: &mut FlowTable,
        net: &mut Network<Q, Self>,
    ) {
        net.arrived = Some(packet.load);
        flow_table.on_packet(&packet.with(()), net);
    }
}

/// Whether packets of a run carry telemetry.
pub(crate) fn has_telemetry(spec: &RunSpec) -> bool {
    let of_links = spec.links.iter().filter_map(|link| link.config.feedback.as_ref());
    of_links.into_iter().any(|feedback| feedback.kind() == FeedbackKind::Int)
}

impl<S: Deref<Target = RunSpec>, Q: EventQueue, L: Simulated> World<S, Q, L>
where
    Network<Q, L>: Medium<Queue = Q, Load = L>,
{
    pub(crate) fn new(spec: S, seed: u64) -> Result<Self, SimError> {
        let mut net = L::network(&spec, seed)?;
        let run = Run::new(spec, seed);
        run.schedule(&mut net);
        let flow_table = FlowTable::new(&run.spec, seed, &mut net);
        let (end, news, seen) = (run.end(), Vec::new(), Vec::new());
        Ok(Self { end, run, net, flow_table, at_once: 0, is_tapped: false, news, seen })
    }

    /// Has a tap record packets, from the first on: nothing is sent before the first event.
    pub(crate) fn watch(&mut self, tap: &dyn PacketTap) {
        let links = tap.links();
        for index in &links {
            self.net.links[*index].watch(*index as u32, CaptureFilter::All);
        }
        self.is_tapped = !links.is_empty();
        if self.is_tapped {
            self.net.notes.watch_resent();
        }
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    pub(crate) fn run(
        mut self,
        tap: &mut dyn PacketTap,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<Outcome, SimError> {
        self.watch(tap);
        while self.advance(None, WATCHED_EVERY, tap)? != Progress::Ended {
            if watch(self.net.now).is_break() {
                return Err(SimError::Stopped);
            }
        }
        self.finish()
    }

    /// Handles at most `max_events` events, those up to and including `until` if it is given. What
    /// passes the links that are watched goes to `tap`.
    pub(crate) fn advance(
        &mut self,
        until: Option<Instant>,
        max_events: u64,
        tap: &mut dyn PacketTap,
    ) -> Result<Progress, SimError> {
        for _ in 0..max_events {
            if !self.flow_table.is_open() && !self.net.is_busy() {
                return Ok(Progress::Ended);
            }
            if let Some(until) = until
                && self.net.next_time().is_some_and(|next| next > until && next < self.end)
            {
                return Ok(Progress::Reached);
            }
            let before = self.net.now;
            let Some(event) = self.net.next_event_until(self.end) else {
                return Ok(Progress::Ended);
            };
            self.run.events += 1;
            self.at_once = if self.net.now > before { 0 } else { self.at_once + 1 };
            if self.at_once > MAX_AT_ONCE {
                self.net.notes.violate(format!("{MAX_AT_ONCE} events without any time passing"));
            }
            self.handle(event);
            if self.is_tapped {
                self.pass_on(tap);
            }
            if let Some(what) = self.net.notes.violation() {
                return Err(self.run.failed(self.net.now, what).into());
            }
        }
        Ok(Progress::Interrupted)
    }

    /// Checks the network once more, after the last event.
    pub(crate) fn check(&mut self) -> Result<(), SimError> {
        Ok(self.run.check(&mut self.net)?)
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(index) => {
                let Self { net, flow_table, .. } = self;
                net.on_link(index, |net, packet| {
                    L::deliver(&packet, flow_table, net);
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
                while let Some(happening) = net.next_radio_output() {
                    match happening {
                        RadioOutput::Arrived(packet) => L::deliver(&packet, flow_table, net),
                        RadioOutput::Notice(flow, side, notice) => {
                            flow_table.on_notice(flow, side, notice, net);
                        }
                        RadioOutput::Dropped(..) => {}
                    }
                }
            }
            Event::Move => self.net.move_nodes(),
            Event::Port(what, link) => self.on_port(what, link),
            Event::Sample => self.run.sample_and_schedule(&mut self.flow_table, &mut self.net),
            Event::WarmedUp => self.run.open(&mut self.flow_table, &mut self.net),
        }
    }

    /// Ends the run where nothing moves any more.
    #[inline(never)]
    fn on_port(&mut self, what: PortEvent, link: u32) {
        self.net.on_port(what, link);
        if self.net.deadlock().is_some() {
            self.end = self.net.now;
        }
    }

    fn finish(mut self) -> Result<Outcome, SimError> {
        self.run.finish(&mut self.flow_table, &mut self.net)?;
        Ok(self.run.close(self.flow_table.flows(), self.net))
    }

    /// Hands what passed in the event at hand to `tap`.
    fn pass_on(&mut self, tap: &mut dyn PacketTap) {
        let Self { net, news, seen, .. } = self;
        net.notes.take_resent().for_each(|resent| tap.resent(&resent));
        net.take_news(news);
        news.sort_unstable();
        for &index in news.iter() {
            let index = index as usize;
            let passed = net.links[index].take_passed();
            seen.extend(passed.map(|LinkCrossing { at, end, packet }| {
                (index, LinkCrossing { at, end, packet: packet.with(()) })
            }));
        }
        // What left a link at this instant is why something enters another.
        seen.sort_by_key(|(_, passing)| passing.end == LinkEnd::Entry);
        for (index, passing) in seen.drain(..) {
            tap.record(index, &passing);
        }
        for index in news.drain(..) {
            let dropped = net.links[index as usize].take_dropped();
            dropped.for_each(|drop| tap.dropped(index as usize, &drop));
        }
    }
}

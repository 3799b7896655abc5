//! The world: takes events in order of time, hands them to links and flows, and takes samples.

use weir_scene::{
    Books, Closing, Event, EventQueue, Flow, Happening, Network, Outcome, RunSpec, Side, Violation,
};
use weir_units::Instant;

use crate::error::SimError;

/// A run in progress.
pub(crate) struct World<'a, Q> {
    spec: &'a RunSpec,
    seed: u64,
    end: Instant,
    net: Network<Q>,
    flows: Vec<Flow>,
    /// Flows to which something can still happen.
    open_flows: usize,
    books: Books,
    events: u64,
    /// Events since time last moved.
    at_once: u64,
}

/// So many events at one instant mean that something goes round in circles.
const MAX_AT_ONCE: u64 = 50_000_000;

impl<'a, Q: EventQueue> World<'a, Q> {
    pub(crate) fn new(spec: &'a RunSpec, seed: u64) -> Result<Self, SimError> {
        let mut net = Network::new(spec, seed)?;
        let measure = &spec.measure;
        net.schedule(Instant::ZERO + measure.warmup, Event::WarmedUp);
        if let Some(interval) = measure.sample_interval {
            net.schedule(Instant::ZERO + interval, Event::Sample);
        }
        let numbered = (0u32..).zip(&spec.flows);
        let flows: Vec<Flow> =
            numbered.map(|(index, flow)| Flow::new(index, flow, measure, seed, &mut net)).collect();
        Ok(Self {
            spec,
            seed,
            end: Instant::ZERO + measure.duration,
            open_flows: flows.len(),
            flows,
            books: Books::new(spec.links.len()),
            net,
            events: 0,
            at_once: 0,
        })
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    pub(crate) fn run(mut self) -> Result<Outcome, SimError> {
        while self.open_flows > 0 || self.net.is_busy() {
            let before = self.net.now;
            let Some(event) = self.net.next_event_until(self.end) else { break };
            self.events += 1;
            self.at_once = if self.net.now > before { 0 } else { self.at_once + 1 };
            if self.at_once > MAX_AT_ONCE {
                self.net.notes.violate(format!("{MAX_AT_ONCE} events without any time passing"));
            }
            self.handle(event);
            if let Some(what) = self.net.notes.violation() {
                return Err(self.failed(what));
            }
        }
        self.finish()
    }

    #[inline]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(index) => {
                let Self { net, flows, open_flows, .. } = self;
                net.on_link(index, |net, packet| {
                    let flow = &mut flows[packet.flow as usize];
                    touch(flow, open_flows, |flow| flow.on_packet(&packet, net));
                });
            }
            Event::Endpoint(id) => {
                let side = if id % 2 == 0 { Side::Sender } else { Side::Receiver };
                let flow = &mut self.flows[id as usize / 2];
                touch(flow, &mut self.open_flows, |flow| flow.on_wake(side, &mut self.net));
            }
            Event::Radio => {
                let Self { net, flows, open_flows, .. } = self;
                while let Some(happening) = net.next_happening() {
                    match happening {
                        Happening::Arrived(packet) => {
                            let flow = &mut flows[packet.flow as usize];
                            touch(flow, open_flows, |flow| flow.on_packet(&packet, net));
                        }
                        Happening::Told(flow, side, notice) => {
                            let flow = &mut flows[flow as usize];
                            touch(flow, open_flows, |flow| flow.on_notice(side, notice, net));
                        }
                        Happening::Dropped(..) => {}
                    }
                }
            }
            Event::Move => self.net.move_nodes(),
            Event::Sample => self.sample(),
            Event::WarmedUp => self.open_books(),
        }
    }

    fn open_books(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.open_books(&mut self.net));
        self.books.open(self.net.now, &mut self.net.links);
    }

    fn sample(&mut self) {
        let Network { now, links, notes, .. } = &mut self.net;
        self.books.sample(*now, self.spec, &mut self.flows, links, notes);
        if let Some(interval) = self.spec.measure.sample_interval {
            self.net.schedule(self.net.now + interval, Event::Sample);
        }
    }

    fn finish(mut self) -> Result<Outcome, SimError> {
        // Where flows remain, their time has passed to the end although nothing happened any more.
        if self.open_flows > 0 {
            self.net.now = self.end;
        }
        let now = self.net.now;
        if now < Instant::ZERO + self.spec.measure.warmup {
            self.open_books();
        }
        let sound = self.books.check(now, self.spec, &mut self.net.links);
        if let Err(what) = sound.and_then(|()| self.net.check_radio()) {
            return Err(self.failed(&what));
        }
        self.flows.iter_mut().for_each(|flow| flow.end(&mut self.net));
        let Self { spec, mut flows, net, books, events, .. } = self;
        Ok(books.close(Closing { spec, flows: &mut flows, net, events }))
    }

    fn failed(&self, what: &str) -> SimError {
        Violation { seed: self.seed, time: self.net.now, what: what.to_owned() }.into()
    }
}

/// Does something to a flow, and keeps count of those that are not over.
#[inline]
fn touch(flow: &mut Flow, open_flows: &mut usize, act: impl FnOnce(&mut Flow)) {
    let was_over = flow.is_over();
    act(flow);
    *open_flows -= usize::from(flow.is_over() && !was_over);
}

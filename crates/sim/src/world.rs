//! The world: takes events in order of time, hands them to links and flows, and takes samples.

use weir_trace::{QueueRow, SampleRow, SummaryRow, jain_index};
use weir_units::Instant;

use crate::aggregate;
use crate::error::SimError;
use crate::flow::{Flow, Side};
use crate::ledger::{Ending, Ledger};
use crate::network::Network;
use crate::outcome::Outcome;
use crate::probe::LinkProbe;
use crate::queue::{Event, EventQueue};
use crate::spec::{FlowSpec, SimSpec, Workload};

/// A run in progress.
pub(crate) struct World<'a, Q> {
    spec: &'a SimSpec,
    seed: u64,
    end: Instant,
    net: Network<Q>,
    flows: Vec<Flow>,
    /// Flows to which something can still happen.
    open_flows: usize,
    probes: Vec<LinkProbe>,
    samples: Vec<SampleRow>,
    queues: Vec<QueueRow>,
    events: u64,
    /// Events since time last moved.
    at_once: u64,
}

/// So many events at one instant mean that something goes round in circles.
const MAX_AT_ONCE: u64 = 50_000_000;

impl<'a, Q: EventQueue> World<'a, Q> {
    pub(crate) fn new(spec: &'a SimSpec, seed: u64) -> Result<Self, SimError> {
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
            probes: net.links.iter().map(|_| LinkProbe::default()).collect(),
            net,
            samples: Vec::new(),
            queues: Vec::new(),
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
                self.net.violate(format!("{MAX_AT_ONCE} events without any time passing"));
            }
            self.handle(event);
            if let Some(what) = self.net.violation() {
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
            Event::Sample => self.sample(),
            Event::WarmedUp => self.open_books(),
        }
    }

    fn open_books(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.open_books(&self.net));
        for (probe, link) in self.probes.iter_mut().zip(&mut self.net.links) {
            probe.open(self.net.now, link);
        }
    }

    fn sample(&mut self) {
        let now = self.net.now;
        self.samples.extend(self.flows.iter_mut().filter_map(|flow| flow.sample(now)));
        for index in 0..self.probes.len() {
            if let Err(what) = self.probes[index].check(now, &mut self.net.links[index]) {
                self.net.violate(format!("link '{}': {what}", self.spec.links[index].name));
            }
            if self.spec.links[index].monitored {
                let row = self.probes[index].sample(index as u32, now, &mut self.net.links[index]);
                self.queues.push(row);
            }
        }
        if let Some(interval) = self.spec.measure.sample_interval {
            self.net.schedule(now + interval, Event::Sample);
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
        for (index, link) in self.net.links.iter_mut().enumerate() {
            if let Err(what) = self.probes[index].check(now, link) {
                let what = format!("link '{}': {what}", self.spec.links[index].name);
                return Err(SimError::Check { seed: self.seed, time: now, what });
            }
        }
        self.flows.iter_mut().for_each(|flow| flow.close_books(&self.net, Ending::OutOfTime));
        Ok(self.outcome())
    }

    fn outcome(mut self) -> Outcome {
        let now = self.net.now;
        let flows: Vec<_> = (0u32..)
            .zip(&self.flows)
            .map(|(index, flow)| {
                let spec = &self.spec.flows[index as usize];
                let capacity = |from, to| self.capacity_mbps(&spec.route_forward, from, to);
                let mut row = flow.ledger().row(index, spec, capacity);
                row.slowdown = self.slowdown(spec, flow.ledger());
                row
            })
            .collect();
        let links: Vec<_> = (0u32..)
            .zip(&mut self.net.links)
            .map(|(i, link)| {
                self.probes[i as usize].row(i, &self.spec.links[i as usize], now, link)
            })
            .collect();
        let monitored = self.spec.links.iter().position(|link| link.monitored);
        let goodputs: Vec<f64> = flows.iter().map(|row| row.goodput_mbps).collect();
        let measured = self.flows.iter().filter_map(|flow| flow.ledger().measured()).collect();
        let (goodput_mbps, throughput_mbps) = aggregate::rates(measured).unzip();
        let summary = SummaryRow {
            jain_index: jain_index(&goodputs),
            utilisation: monitored.and_then(|index| links[index].utilisation),
            goodput_mbps,
            throughput_mbps,
            events: self.events,
            data_packets: self.net.data_packets,
            trace_hash: self.net.trace_hash(),
            sim_s: now.as_secs_f64(),
        };
        Outcome {
            flows,
            links,
            samples: self.samples,
            queues: self.queues,
            acks: self.flows.iter_mut().flat_map(Flow::take_acks).collect(),
            requests: self.flows.iter_mut().flat_map(Flow::take_requests).collect(),
            events: self.net.log.into_rows(),
            summary,
        }
    }

    /// The capacity of the monitored link on a route, or else of the slowest.
    fn capacity_mbps(&self, route: &[usize], from: Instant, to: Instant) -> Option<f64> {
        let monitored = route.iter().position(|index| self.spec.links[*index].monitored);
        let watched = monitored.map_or(route, |at| &route[at..=at]);
        self.slowest_mbps(watched, from, to).or_else(|| self.slowest_mbps(route, from, to))
    }

    /// The capacity of the slowest link of a route.
    fn slowest_mbps(&self, route: &[usize], from: Instant, to: Instant) -> Option<f64> {
        let seconds = to.saturating_since(from).as_secs_f64();
        let capacities = route.iter().filter_map(|index| {
            let bytes = self.net.links[*index].link.capacity(from, to)?;
            Some(bytes.get() as f64 * 8e-6 / seconds)
        });
        capacities.min_by(f64::total_cmp).filter(|mbps| *mbps > 0.0)
    }

    /// A transfer's completion time over what it would be if nothing was in its way: `size / rate`
    /// and a round trip.
    fn slowdown(&self, spec: &FlowSpec, ledger: &Ledger) -> Option<f64> {
        let Workload::File { size } = spec.workload else { return None };
        let (from, to) = ledger.completed()?;
        let mbps = self.slowest_mbps(&spec.route_forward, from, to)?;
        let links = spec.route_forward.iter().chain(&spec.route_reverse);
        let delay = |index: &usize| self.spec.links[*index].config.delay.initial.as_secs_f64();
        let ideal = size.get() as f64 * 8e-6 / mbps + links.map(delay).sum::<f64>();
        Some((to - from).as_secs_f64() / ideal)
    }

    fn failed(&self, what: &str) -> SimError {
        SimError::Check { seed: self.seed, time: self.net.now, what: what.to_owned() }
    }
}

/// Does something to a flow, and keeps count of those that are not over.
#[inline]
fn touch(flow: &mut Flow, open_flows: &mut usize, act: impl FnOnce(&mut Flow)) {
    let was_over = flow.is_over();
    act(flow);
    *open_flows -= usize::from(flow.is_over() && !was_over);
}

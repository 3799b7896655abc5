//! What every world does around its flows: it opens the recorder when the warm-up is over, takes samples, and
//! ends the run with its checks and tables.

use std::ops::Deref;

use weir_trace::{QueueRow, SampleRow};
use weir_units::Instant;

use crate::error::Violation;
use crate::flow::Flow;
use crate::flow_table::FlowTable;
use crate::medium::Medium;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::packet::Load;
use crate::queue::{Event, EventQueue};
use crate::recorder::{Recorder, RunEnd};
use crate::spec::RunSpec;

/// A run in progress, whatever moves its time on. `S` is its description or a shared reference to it.
#[derive(Debug)]
pub struct Run<S> {
    /// Its description.
    pub spec: S,
    /// How many events were handled.
    pub events: u64,
    /// Its seed.
    pub seed: u64,
    recorder: Recorder,
}

impl<S: Deref<Target = RunSpec>> Run<S> {
    /// A run before its first event.
    pub fn new(spec: S, seed: u64) -> Self {
        let recorder = Recorder::new(spec.links.len());
        Self { spec, events: 0, seed, recorder }
    }

    /// Adds the events that end the warm-up and take the first sample.
    pub fn schedule<Q: EventQueue, L: Load>(&self, net: &mut Network<Q, L>) {
        net.schedule(self.warmed_up(), Event::WarmedUp);
        if let Some(at) = self.first_sample() {
            net.schedule(at, Event::Sample);
        }
    }

    /// When it ends at the latest.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.spec.measure.duration
    }

    /// When its warm-up is over.
    pub fn warmed_up(&self) -> Instant {
        Instant::ZERO + self.spec.measure.warmup
    }

    /// When the first sample is due, if any is.
    pub fn first_sample(&self) -> Option<Instant> {
        self.spec.measure.sample_interval.map(|interval| Instant::ZERO + interval)
    }

    /// The warm-up is over: links are measured from now on.
    pub fn open_links<Q: EventQueue, L: Load>(&mut self, net: &mut Network<Q, L>) {
        self.recorder.open(net.now, &mut net.links);
        net.restart_memory();
    }

    /// The warm-up is over: flows and links are measured from now on.
    pub fn open<M: Medium>(&mut self, flows: &mut FlowTable, medium: &mut M) {
        flows.begin_measurement(medium);
        self.open_links(medium.net_mut());
    }

    /// Takes a sample of flows and links; returns when the next is due, if any is.
    pub fn sample<Q: EventQueue, L: Load>(
        &mut self,
        flows: &mut [Flow],
        net: &mut Network<Q, L>,
    ) -> Option<Instant> {
        let Network { now, links, notes, .. } = net;
        self.recorder.sample(*now, &self.spec, flows, links, notes);
        if let Err(what) = net.check_memory() {
            net.notes.violate(what);
        }
        self.spec.measure.sample_interval.map(|interval| net.now + interval)
    }

    /// Takes a sample, and adds the event of the next.
    pub fn sample_and_schedule<M: Medium>(&mut self, flows: &mut FlowTable, medium: &mut M) {
        let net = medium.net_mut();
        if let Some(at) = self.sample(flows.flows(), net) {
            net.schedule(at, Event::Sample);
        }
    }

    /// Checks the network once more.
    ///
    /// # Errors
    /// Says what did what it cannot.
    pub fn check<Q: EventQueue, L: Load>(
        &mut self,
        net: &mut Network<Q, L>,
    ) -> Result<(), Violation> {
        let links = self.recorder.check(net.now, &self.spec, &mut net.links);
        links
            .and_then(|()| net.check_radio())
            .and_then(|()| net.check_memory())
            .map_err(|what| self.failed(net.now, &what))
    }

    /// Ends all flows, after the last event, and checks the network.
    ///
    /// # Errors
    /// Says what did what it cannot.
    pub fn finish<M: Medium>(
        &mut self,
        flows: &mut FlowTable,
        medium: &mut M,
    ) -> Result<(), Violation> {
        // Where flows remain, their time has passed to the end although nothing happened any more.
        if flows.is_open() && medium.net().deadlock().is_none() {
            medium.net_mut().now = self.end();
        }
        if medium.now() < self.warmed_up() {
            self.open(flows, medium);
        }
        self.check(medium.net_mut())?;
        flows.end(medium);
        Ok(())
    }

    /// The result tables of flows whose statistics are final.
    pub fn close<Q: EventQueue, L: Load>(self, flows: &mut [Flow], net: Network<Q, L>) -> Outcome {
        let Self { spec, events, recorder, .. } = self;
        recorder.close(RunEnd { spec: &spec, flows, net, events })
    }

    /// The rows of table `samples` so far.
    pub fn samples(&self) -> &[SampleRow] {
        self.recorder.samples()
    }

    /// The rows of table `queues` so far.
    pub fn queues(&self) -> &[QueueRow] {
        self.recorder.queues()
    }

    /// A checker found the program at fault at `time`.
    pub fn failed(&self, time: Instant, what: &str) -> Violation {
        Violation { seed: self.seed, time, what: what.to_owned() }
    }
}

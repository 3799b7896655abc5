//! Scenarios in real time: a run's flows as real transfers over loopback, through its links.
//!
//! The flows, links and statistics are those of the simulator (`weir-scene`): the same connections and
//! controllers, the same randomness for the same seed. What differs is the clock, and that every packet is
//! a datagram which crosses a socket on its way into the links and another behind them, with real
//! bytes that are checked on arrival. One thread does it all, since on a machine of few cores waking
//! another costs more than it saves. What real time adds is counted ([`Health`](crate::health::Health)) and reported with the
//! results.

mod frame;
mod payload;
mod relayed_links;

use std::io;
use std::ops::ControlFlow;

use weir_scene::{
    Event, Flow, Network, Outcome, Recorder, RunEnd, RunSpec, Side, SpecError, TransportSpec,
    Violation, Workload, validate,
};
use weir_sockets::clock::Alarm;
use weir_sockets::socket::BindError;
use weir_units::{Duration, Instant};

use self::relayed_links::RelayedLinks;

/// A run that could not be made, was broken off, or must not be believed.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The description cannot be run anywhere.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The description cannot be run over sockets.
    #[error("flow '{flow}': {problem}")]
    Unfit {
        /// The flow.
        flow: String,
        /// What of it, and why.
        problem: String,
    },
    /// A socket could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system refused a socket its work.
    #[error("a UDP socket on loopback: {0}")]
    Socket(#[from] io::Error),
    /// Its watcher stopped it.
    #[error("the run was broken off")]
    Stopped,
    /// A checker found the program at fault, not the description.
    #[error(transparent)]
    Check(#[from] Violation),
}

/// Runs `spec` in real time; `watch` receives the time of the run many times a second and may stop
/// it. All randomness comes from `seed`, except the machine's timing.
///
/// # Errors
/// If the description cannot be run over sockets, the system refuses them, `watch` breaks the run
/// off, or a checker finds the program at fault.
pub fn run(
    spec: &RunSpec,
    seed: u64,
    watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
) -> Result<Outcome, WorldError> {
    validate(spec)?;
    check(spec)?;
    let _alarm = Alarm::set();
    World::new(spec, seed)?.run(watch)
}

/// Refuses what sockets cannot carry.
///
/// # Errors
/// For the first such thing.
pub fn check(spec: &RunSpec) -> Result<(), WorldError> {
    for flow in &spec.flows {
        let (key, size, most) = match &flow.transport {
            TransportSpec::Reliable(config) => ("mss", u64::from(config.mss), frame::MAX_MSS),
            TransportSpec::Udp(config) => {
                let message = match flow.workload {
                    Workload::Rate { size, .. } => Some(size.get()),
                    Workload::OnOff(periods) if periods.rate.is_some() => Some(periods.size.get()),
                    _ => None,
                };
                let key = if message.is_some() { "workload.size" } else { "mss" };
                (key, message.unwrap_or(u64::from(config.payload)), frame::MAX_PAYLOAD)
            }
        };
        if size > most {
            let problem = format!(
                "{key} = {size}: world udp sends real datagrams, which hold at most {most} bytes \
                 of payload"
            );
            return Err(WorldError::Unfit { flow: flow.name.clone(), problem });
        }
    }
    Ok(())
}

/// A run in progress.
struct World<'a> {
    spec: &'a RunSpec,
    seed: u64,
    end: Instant,
    wires: RelayedLinks<'a>,
    flows: Vec<Flow>,
    /// Flows to which something can still happen.
    open_flows: usize,
    /// Ends to be woken in this turn, and since when.
    woken: Vec<(Instant, u32)>,
    recorder: Recorder,
    events: u64,
}

impl<'a> World<'a> {
    fn new(spec: &'a RunSpec, seed: u64) -> Result<Self, WorldError> {
        let mut wires = RelayedLinks::new(spec, seed)?;
        let measure = &spec.measure;
        wires.net.schedule(Instant::ZERO + measure.warmup, Event::WarmedUp);
        if let Some(interval) = measure.sample_interval {
            wires.net.schedule(Instant::ZERO + interval, Event::Sample);
        }
        let numbered = (0u32..).zip(&spec.flows);
        let flows: Vec<Flow> = numbered
            .map(|(index, flow)| Flow::new(index, flow, measure, seed, &mut wires))
            .collect();
        Ok(Self {
            spec,
            seed,
            end: Instant::ZERO + measure.duration,
            wires,
            open_flows: flows.len(),
            flows,
            woken: Vec::new(),
            recorder: Recorder::new(spec.links.len()),
            events: 0,
        })
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    fn run(
        mut self,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<Outcome, WorldError> {
        let mut watched = Instant::ZERO;
        while self.open_flows > 0 || self.wires.is_busy() {
            let now = self.wires.clock();
            if now >= self.end {
                break;
            }
            if now.saturating_since(watched) >= WATCH_INTERVAL {
                watched = now;
                if watch(now).is_break() {
                    return Err(WorldError::Stopped);
                }
            }
            self.turn(now);
            if let Some(error) = self.wires.error() {
                return Err(error.into());
            }
            if let Some(what) = self.wires.net.notes.violation() {
                return Err(self.failed(what.to_owned()));
            }
            self.pause()?;
        }
        self.finish()
    }

    /// Everything that is due by `now`: first what happens on links, each at its exact time, then what
    /// ends do, all of it now.
    fn turn(&mut self, now: Instant) {
        while let Some(event) = self.wires.net.next_event_by(now) {
            self.events += 1;
            self.handle(event);
        }
        self.wires.net.now = now;
        for (due, id) in std::mem::take(&mut self.woken) {
            let side = if id % 2 == 0 { Side::Sender } else { Side::Receiver };
            let late_at = self.wires.clock();
            self.wires.health.record(due, late_at);
            let flow = &mut self.flows[id as usize / 2];
            touch(flow, &mut self.open_flows, |flow| flow.on_wake(side, &mut self.wires));
        }
        self.wires.read();
        while let Some(arrival) = self.wires.arrived.pop_front() {
            self.events += 1;
            let packet = self.wires.unpack(arrival);
            let flow = &mut self.flows[packet.flow as usize];
            touch(flow, &mut self.open_flows, |flow| flow.on_packet(&packet, &mut self.wires));
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(index) => self.wires.on_link(index),
            Event::Endpoint(id) => self.woken.push((self.wires.net.now, id)),
            Event::Sample => self.sample(),
            Event::WarmedUp => self.open_books(),
            // Radio and flows of many connections exist in the simulator alone.
            Event::Arrival(_) | Event::Radio | Event::Move => {}
        }
    }

    /// Waits for what comes next.
    fn pause(&mut self) -> io::Result<()> {
        let next = self.wires.net.next_time().unwrap_or(self.end).min(self.end);
        if next > self.wires.clock() { self.wires.wait(next) } else { Ok(()) }
    }

    fn open_books(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.open_books(&mut self.wires));
        let Network { now, links, .. } = &mut self.wires.net;
        self.recorder.open(*now, links);
    }

    fn sample(&mut self) {
        let Network { now, links, notes, .. } = &mut self.wires.net;
        self.recorder.sample(*now, self.spec, &mut self.flows, links, notes);
        if let Some(interval) = self.spec.measure.sample_interval {
            let next = self.wires.net.now + interval;
            self.wires.net.schedule(next, Event::Sample);
        }
    }

    fn finish(mut self) -> Result<Outcome, WorldError> {
        let real = self.wires.clock();
        // Where flows remain, their time has passed to the end although nothing happened any more.
        if self.open_flows > 0 {
            self.wires.net.now = self.end;
        }
        let now = self.wires.net.now;
        if now < Instant::ZERO + self.spec.measure.warmup {
            self.open_books();
        }
        if let Err(what) = self.recorder.check(now, self.spec, &mut self.wires.net.links) {
            return Err(self.failed(what));
        }
        self.flows.iter_mut().for_each(|flow| flow.end(&mut self.wires));
        let Self { spec, mut flows, wires, recorder, events, .. } = self;
        let health = wires.health();
        let RelayedLinks { net, .. } = wires;
        let mut outcome = recorder.close(RunEnd { spec, flows: &mut flows, net, events });
        health.fill(&mut outcome.summary, real - Instant::ZERO);
        Ok(outcome)
    }

    fn failed(&self, what: String) -> WorldError {
        Violation { seed: self.seed, time: self.wires.net.now, what }.into()
    }
}

/// Does something to a flow, and keeps count of those that are not over.
fn touch(flow: &mut Flow, open_flows: &mut usize, act: impl FnOnce(&mut Flow)) {
    let was_over = flow.is_over();
    act(flow);
    *open_flows -= usize::from(flow.is_over() && !was_over);
}

/// Interval at which the watcher receives the time.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;

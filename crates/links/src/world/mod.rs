//! Scenarios in real time: a run's flows as real transfers over loopback, through its links.
//!
//! The flows, links and statistics are those of the simulator (`weir-scene`): the same connections and
//! controllers, the same randomness for the same seed. What differs is the clock, and that every packet is
//! a datagram which crosses a socket on its way into the links and another behind them, with real
//! bytes that are checked on arrival. One thread does it all, since on a machine of few cores waking
//! another costs more than it saves. What real time adds is counted ([`Health`](crate::health::Health)) and reported with the
//! results.

pub mod frame;
pub mod payload;
mod relayed_links;

use std::io;
use std::ops::ControlFlow;

use weir_scene::{
    Event, FlowTable, Outcome, Run, RunSpec, Side, SpecError, TransportSpec, Violation, Workload,
    validate,
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
            TransportSpec::Foreign(stack) => {
                let problem = format!("stack = {}: only world sim hosts this stack", stack.name());
                return Err(WorldError::Unfit { flow: flow.name.clone(), problem });
            }
            TransportSpec::Program(programs) => {
                let problem = format!("stack = {}: only world kernel runs programs", programs.name);
                return Err(WorldError::Unfit { flow: flow.name.clone(), problem });
            }
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
    run: Run<&'a RunSpec>,
    end: Instant,
    wires: RelayedLinks<'a>,
    flows: FlowTable,
    /// Ends to be woken in this step, and since when.
    woken: Vec<(Instant, u32)>,
}

impl<'a> World<'a> {
    fn new(spec: &'a RunSpec, seed: u64) -> Result<Self, WorldError> {
        let mut wires = RelayedLinks::new(spec, seed)?;
        let run = Run::new(spec, seed);
        run.schedule(&mut wires.net);
        let flows = FlowTable::new(spec, seed, &mut wires);
        Ok(Self { end: run.end(), run, wires, flows, woken: Vec::new() })
    }

    /// Runs to the end of the time, or until every flow is over and every packet has arrived.
    fn run(
        mut self,
        watch: &mut dyn FnMut(Instant) -> ControlFlow<()>,
    ) -> Result<Outcome, WorldError> {
        let mut watched = Instant::ZERO;
        while self.flows.is_open() || self.wires.is_busy() {
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
            self.step(now);
            if let Some(error) = self.wires.error() {
                return Err(error.into());
            }
            if let Some(what) = self.wires.net.notes.violation() {
                return Err(self.run.failed(self.wires.net.now, what).into());
            }
            self.pause()?;
        }
        self.finish()
    }

    /// Everything that is due by `now`: first what happens on links, each at its exact time, then what
    /// ends do, all of it now.
    fn step(&mut self, now: Instant) {
        while let Some(event) = self.wires.net.next_event_by(now) {
            self.run.events += 1;
            self.handle(event);
        }
        self.wires.net.now = now;
        for (due, id) in std::mem::take(&mut self.woken) {
            let side = if id % 2 == 0 { Side::Sender } else { Side::Receiver };
            let late_at = self.wires.clock();
            self.wires.health.record(due, late_at);
            self.flows.on_wake(id / 2, side, &mut self.wires);
        }
        self.wires.read();
        while let Some(arrival) = self.wires.arrived.pop_front() {
            self.run.events += 1;
            let packet = self.wires.unpack(arrival);
            self.flows.on_packet(&packet, &mut self.wires);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Link(index) => self.wires.on_link(index),
            Event::Endpoint(id) => self.woken.push((self.wires.net.now, id)),
            Event::Sample => self.run.sample_and_schedule(&mut self.flows, &mut self.wires),
            Event::WarmedUp => self.run.open(&mut self.flows, &mut self.wires),
            // Radio, fabrics and flows of many connections exist in the simulator alone.
            Event::Arrival(_) | Event::Radio | Event::Move | Event::Port(..) => {}
        }
    }

    /// Waits for what comes next.
    fn pause(&mut self) -> io::Result<()> {
        let next = self.wires.net.next_time().unwrap_or(self.end).min(self.end);
        if next > self.wires.clock() { self.wires.wait(next) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<Outcome, WorldError> {
        let real = self.wires.clock();
        self.run.finish(&mut self.flows, &mut self.wires)?;
        let health = self.wires.health();
        let mut outcome = self.run.close(self.flows.flows(), self.wires.net);
        health.fill(&mut outcome.summary, real - Instant::ZERO);
        Ok(outcome)
    }
}

/// Interval at which the watcher receives the time.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;

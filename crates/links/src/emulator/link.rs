//! A link between two namespaces, at work until it is stopped.

use std::io;
use std::ops::ControlFlow;

use weir_scene::{
    Direction, Ends, FlowSpec, LinkSpec, MeasureSpec, RunSpec, TransportSpec, Workload,
};
use weir_sockets::clock::{Alarm, TimerSlackGuard};
use weir_units::{Duration, Instant};

use super::namespace::Namespace;
use super::options::Options;
use super::router::{Emulator, EmulatorError};
use crate::relay::{CALL_INTERVAL, Carrier, DirectionReport, HostedLink, Report, Route};

/// A link between two namespaces for whatever programs send. From the first to the second is up.
pub struct TunLink {
    emulator: Emulator,
    route: Route,
}

impl TunLink {
    /// Joins two namespaces by `links`, each of which belongs to one direction of `route`.
    ///
    /// # Errors
    /// If a device cannot be made, or a link cannot be as it is described.
    pub fn open(
        ends: [&Namespace; 2],
        links: &[HostedLink],
        route: Route,
        seed: u64,
        options: &Options,
    ) -> Result<Self, EmulatorError> {
        let spec = describe(links, &route);
        Ok(Self { emulator: Emulator::open(&spec, seed, ends, options)?, route })
    }

    fn direction(&mut self, direction: Direction) -> DirectionReport {
        let links = match direction {
            Direction::Forward => &self.route.up,
            Direction::Reverse => &self.route.down,
        };
        let meter = self.emulator.meter(direction);
        let mut report = DirectionReport {
            received: meter.received,
            received_bytes: meter.received_bytes,
            sent: meter.sent,
            sent_bytes: meter.sent_bytes,
            unintended: meter.unintended,
            lateness: meter.lateness.spread(),
            ..DirectionReport::default()
        };
        let now = self.emulator.net.now;
        for index in links {
            let link = &mut self.emulator.net.links[*index].link;
            report.queued += link.backlog(now).packets;
            let stats = link.stats(now);
            let by_queue = [stats.dropped_queue, stats.dropped_aqm, stats.dropped_policer];
            report.lost += stats.dropped_loss.packets;
            report.queue_dropped += by_queue.iter().map(|tally| tally.packets).sum::<u64>();
            report.too_long += stats.dropped_mtu.packets;
            report.duplicated += stats.duplicated.packets;
            report.corrupted += stats.corrupted;
            report.reordered += stats.reordered;
            report.marked += stats.marked;
        }
        report
    }
}

impl Carrier for TunLink {
    fn run(&mut self, step: &mut dyn FnMut(&mut Self) -> ControlFlow<()>) -> io::Result<()> {
        let (_alarm, _punctual) = (Alarm::set(), TimerSlackGuard::set());
        loop {
            let next_call = self.emulator.clock() + CALL_INTERVAL;
            while self.emulator.net.now < next_call {
                self.emulator.step(next_call)?;
            }
            if let Some(what) = self.emulator.net.notes.violation() {
                return Err(io::Error::other(format!("the program is at fault: {what}")));
            }
            if step(self).is_break() {
                return self.emulator.finish_capture();
            }
        }
    }

    fn report(&mut self) -> Report {
        let elapsed = self.emulator.clock() - Instant::ZERO;
        Report {
            elapsed,
            up: self.direction(Direction::Forward),
            down: self.direction(Direction::Reverse),
            clients: 0,
        }
    }
}

/// A run whose one flow takes `route`.
fn describe(links: &[HostedLink], route: &Route) -> RunSpec {
    let link = |link: &HostedLink| LinkSpec {
        name: link.name.clone(),
        config: link.config.clone(),
        monitored: true,
        one_at_a_time: false,
    };
    RunSpec {
        radio: None,
        fabric: None,
        links: links.iter().map(link).collect(),
        flows: vec![hosted_flow("all", route.up.clone(), route.down.clone())],
        measure: MeasureSpec::default(),
    }
}

/// A flow whose packets others send: nothing but its routes counts.
pub(super) fn hosted_flow(name: &str, forward: Vec<usize>, reverse: Vec<usize>) -> FlowSpec {
    FlowSpec {
        name: name.to_owned(),
        route_forward: forward,
        route_reverse: reverse,
        transport: TransportSpec::Udp(Default::default()),
        workload: Workload::Bulk,
        start: Instant::ZERO,
        stop: None,
        start_jitter: Duration::ZERO,
        ends: Ends::Kernel,
    }
}

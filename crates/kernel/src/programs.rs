//! Flows between programs that are not ours: their processes, and what their packets show.
//!
//! Servers are started before the time of the run begins. A thread per flow starts the client and waits
//! for its end. The router's thread counts packets and fills the tables; of TCP it also asks the
//! kernel (`TCP_INFO`), as for flows of the kernel's.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

use rustix::process::Signal;
use weir_scene::{
    ConnectionSample, FlowEnd, FlowSpec, KernelFlow, MeasureSpec, ProgramCommands, ProgramEnd,
    ProgramSpec, RunSpec, TransportSpec, Workload,
};
use weir_trace::SampleRow;
use weir_units::{Duration, Instant};

use super::KernelError;
use super::diag::{PortOf, TcpDiag};
use super::processes::{self, await_ready, ending, signal_group, sleep_until};
use super::shared::{Polls, Shared};
use super::sockets::FIRST_PORT;
use weir_links::emulator::{Emulator, Namespace};

/// The flows between programs of a run.
pub(super) struct ProgramFlows<'a> {
    list: Vec<ProgramFlow<'a>>,
    /// The namespaces of the senders and of the receivers.
    ends: [&'a Namespace; 2],
    reported: Receiver<Report>,
    reports: Sender<Report>,
    diag: Option<TcpDiag>,
}

struct ProgramFlow<'a> {
    index: u32,
    spec: &'a FlowSpec,
    name: &'a str,
    commands: Arc<ProgramCommands>,
    flow: KernelFlow,
    /// What runs since before the run.
    servers: Vec<Child>,
    client: Client,
    /// The newest answer of the kernel.
    known: ConnectionSample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Waiting,
    Running(u32),
    Over,
}

/// What became of a client.
struct Report {
    flow: u32,
    at: Instant,
    what: io::Result<Step>,
}

enum Step {
    /// The run was over before its start.
    Skipped,
    Started(u32),
    Ended(ExitStatus),
}

impl<'a> ProgramFlows<'a> {
    /// Starts what must run before the clients, and waits until it is ready.
    ///
    /// # Errors
    /// If a program cannot be started, or is not ready in time.
    pub(super) fn start(
        spec: &'a RunSpec,
        seed: u64,
        ends: [&'a Namespace; 2],
    ) -> Result<Self, KernelError> {
        let (reports, reported) = mpsc::channel();
        let mut flows = Self { list: Vec::new(), ends, reported, reports, diag: None };
        for (index, flow) in (0u32..).zip(&spec.flows) {
            let Some(programs) = programs_of(flow) else { continue };
            let Some(commands) = &programs.commands else {
                return Err(failed(flow, "there are no commands for it"));
            };
            flows.list.push(ProgramFlow::new(index, flow, &spec.measure, seed, programs, commands));
            let added = flows.list.last_mut().expect("it was just added");
            added.start_servers(ends)?;
        }
        if !flows.list.is_empty() {
            let opened = TcpDiag::open(ends[0]);
            let what = "asking about TCP connections";
            flows.diag = Some(opened.map_err(|error| KernelError::System { what, error })?);
        }
        Ok(flows)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Counts the packets of these flows from now on.
    pub(super) fn count_packets(&self, emulator: &mut Emulator) {
        self.list.iter().for_each(|flow| emulator.count(flow.index));
    }

    /// How many can still do something.
    pub(super) fn open_flows(&self) -> usize {
        self.list.iter().filter(|flow| flow.client != Client::Over).count()
    }

    /// When one is to be stopped next.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.list.iter().filter_map(ProgramFlow::stop).min()
    }

    /// Starts the threads that start the clients.
    pub(super) fn spawn_clients<'scope>(
        &self,
        threads: &'scope Scope<'scope, '_>,
        shared: &'scope Shared,
    ) where
        'a: 'scope,
    {
        for flow in &self.list {
            let (index, start) = (flow.index, flow.flow.start());
            let (commands, reports) = (Arc::clone(&flow.commands), self.reports.clone());
            let namespace = self.ends[end_of(commands.sender, ProgramEnd::Client)];
            threads.spawn(move || {
                let report = |what| {
                    // The receiver is gone when the run is over.
                    let _ = reports.send(Report { flow: index, at: shared.now(), what });
                };
                if !sleep_until(start, || shared.now(), || shared.is_over()) {
                    return report(Ok(Step::Skipped));
                }
                let mut client = match processes::start(namespace, &commands.client) {
                    Ok(client) => client,
                    Err(error) => return report(Err(error)),
                };
                report(Ok(Step::Started(client.id())));
                report(client.wait().map(Step::Ended));
            });
        }
    }

    /// Processes the reports on clients, and stops those whose time is over.
    pub(super) fn step(&mut self, emulator: &mut Emulator, is_warm: bool) {
        while let Ok(report) = self.reported.try_recv() {
            self.on_report(report, emulator, is_warm);
        }
        let now = emulator.net.now;
        for number in 0..self.list.len() {
            if self.list[number].stop().is_some_and(|stop| stop <= now) {
                emulator.net.notes.log.flow(now, self.list[number].index, "stopped", "");
                self.close(number, emulator, now, FlowEnd::Stopped);
                self.list[number].signal(Signal::TERM);
            }
        }
    }

    /// The measured interval begins.
    pub(super) fn begin_measurement(&mut self, emulator: &Emulator) {
        for number in 0..self.list.len() {
            if self.list[number].client != Client::Waiting {
                let reading = self.read(number, emulator);
                self.list[number].flow.begin_measurement(emulator.net.now, &reading);
            }
        }
    }

    /// Rows of table `samples`.
    pub(super) fn sample(&mut self, emulator: &Emulator, rows: &mut Vec<SampleRow>) {
        for number in 0..self.list.len() {
            if !matches!(self.list[number].client, Client::Running(_)) {
                continue;
            }
            let reading = self.read(number, emulator);
            let row = self.list[number].flow.sample(emulator.net.now, &reading);
            rows.extend(row.map(|row| without_unknown(row, &reading)));
        }
    }

    /// The run is over: ends the clients.
    pub(super) fn end_clients(&mut self, emulator: &mut Emulator, is_warm: bool) {
        let now = emulator.net.now;
        self.step(emulator, is_warm);
        for number in 0..self.list.len() {
            self.close(number, emulator, now, FlowEnd::OutOfTime);
        }
        self.list.iter().for_each(|flow| flow.signal(Signal::TERM));
        let until = emulator.clock() + GRACE;
        while self.open_flows() > 0 {
            if emulator.clock() > until {
                self.list.iter().for_each(|flow| flow.signal(Signal::KILL));
            }
            if Polls::default().wait(INTERVAL).is_err() {
                return;
            }
            self.step(emulator, is_warm);
        }
    }

    /// Ends the servers, and returns the flows.
    ///
    /// # Errors
    /// If a client failed before anything was delivered: there is nothing to measure.
    pub(super) fn finish(mut self) -> Result<Vec<(u32, KernelFlow)>, KernelError> {
        let list = std::mem::take(&mut self.list);
        list.into_iter().map(ProgramFlow::finish).collect()
    }

    fn on_report(&mut self, report: Report, emulator: &mut Emulator, is_warm: bool) {
        let Report { flow, at, what } = report;
        let Some(number) = self.list.iter().position(|known| known.index == flow) else { return };
        let log = &mut emulator.net.notes.log;
        match what {
            Ok(Step::Skipped) => self.list[number].client = Client::Over,
            Ok(Step::Started(pid)) => {
                log.flow(at, flow, "start", "");
                self.list[number].client = Client::Running(pid);
                if is_warm {
                    self.list[number].flow.begin_measurement(at, &ConnectionSample::default());
                }
            }
            Ok(Step::Ended(status)) => {
                self.list[number].client = Client::Over;
                let how = ending(status, &self.list[number].commands.client);
                log.flow(at, flow, if status.success() { "completed" } else { "failed" }, &how);
                let ending =
                    if status.success() { FlowEnd::Completed } else { FlowEnd::Failed(how) };
                let at = self.list[number].end(at, &ending, emulator);
                self.close(number, emulator, at, ending);
            }
            Err(error) => {
                let program = &self.list[number].commands.client.command[0];
                let how = format!("{program}: {error}");
                log.flow(at, flow, "failed", &how);
                self.list[number].client = Client::Over;
                self.close(number, emulator, at, FlowEnd::Failed(how));
            }
        }
    }

    fn close(&mut self, number: usize, emulator: &Emulator, at: Instant, ending: FlowEnd) {
        if !self.list[number].flow.is_closed() {
            let reading = self.read(number, emulator);
            self.list[number].flow.end_measurement(at, &reading, ending);
        }
    }

    /// What packets show of a flow, and what the kernel reports, if it is TCP.
    fn read(&mut self, number: usize, emulator: &Emulator) -> ConnectionSample {
        let flow = &mut self.list[number];
        let Some(counts) = emulator.counts(flow.index) else { return flow.known };
        if let Some(diag) = self.diag.as_mut().filter(|_| counts.is_tcp()) {
            // A connection that has ended is not there any more.
            flow.known = diag.query(flow.port()).ok().flatten().unwrap_or(flow.known);
        }
        ConnectionSample {
            delivered: counts.delivered(),
            acked: counts.delivered(),
            segments: counts.segments,
            bytes: counts.bytes,
            ip_bytes: counts.ip_bytes,
            retransmits: counts.retransmits,
            srtt: flow.known.srtt.or_else(|| counts.round_trip()),
            ..flow.known
        }
    }
}

impl Drop for ProgramFlows<'_> {
    fn drop(&mut self) {
        for flow in &mut self.list {
            flow.signal(Signal::KILL);
            processes::end(&mut flow.servers, Duration::ZERO);
        }
    }
}

impl<'a> ProgramFlow<'a> {
    fn new(
        index: u32,
        spec: &'a FlowSpec,
        measure: &MeasureSpec,
        seed: u64,
        programs: &'a ProgramSpec,
        commands: &Arc<ProgramCommands>,
    ) -> Self {
        Self {
            index,
            spec,
            name: &programs.name,
            commands: Arc::clone(commands),
            flow: KernelFlow::new(index, spec, measure, seed),
            servers: Vec::new(),
            client: Client::Waiting,
            known: ConnectionSample::default(),
        }
    }

    fn start_servers(&mut self, ends: [&Namespace; 2]) -> Result<(), KernelError> {
        for spec in &self.commands.before {
            let namespace = ends[end_of(self.commands.sender, spec.end)];
            let started = processes::start(namespace, spec)
                .map_err(|error| failed(self.spec, &format!("{}: {error}", spec.command[0])))?;
            self.servers.push(started);
            let child = self.servers.last_mut().expect("it was just added");
            await_ready(child, spec).map_err(|problem| failed(self.spec, &problem))?;
        }
        Ok(())
    }

    /// The port that its connections have in common, seen from the sender.
    fn port(&self) -> PortOf {
        let port = FIRST_PORT + self.index as u16;
        match self.commands.sender {
            ProgramEnd::Client => PortOf::Peer(port),
            ProgramEnd::Server => PortOf::Here(port),
        }
    }

    /// When it is to be stopped, unless it has ended before.
    fn stop(&self) -> Option<Instant> {
        self.spec
            .stop
            .filter(|_| matches!(self.client, Client::Running(_)) && !self.flow.is_closed())
    }

    /// The time that counts as its end. A file over TCP ends when its last byte was acknowledged, not
    /// when the programs have exchanged their results.
    fn end(&self, at: Instant, ending: &FlowEnd, emulator: &Emulator) -> Instant {
        let is_file = matches!(self.spec.workload, Workload::File { .. });
        let counts = emulator.counts(self.index).filter(|counts| counts.is_tcp());
        let last = counts.and_then(|counts| counts.last_delivery);
        last.filter(|_| is_file && *ending == FlowEnd::Completed).unwrap_or(at)
    }

    fn signal(&self, signal: Signal) {
        if let Client::Running(pid) = self.client {
            signal_group(pid, signal);
        }
    }

    fn finish(mut self) -> Result<(u32, KernelFlow), KernelError> {
        processes::end(&mut self.servers, GRACE);
        match self.flow.failure_without_data() {
            Some(why) => Err(KernelError::Program {
                flow: self.spec.name.clone(),
                problem: format!("{}: {why}", self.name),
            }),
            None => Ok((self.index, self.flow)),
        }
    }
}

/// The programs of a flow, if it is between programs.
pub(super) fn programs_of(flow: &FlowSpec) -> Option<&ProgramSpec> {
    match &flow.transport {
        TransportSpec::Program(programs) => Some(programs),
        _ => None,
    }
}

/// The namespace of an end, by index: the first is the sender's.
fn end_of(sender: ProgramEnd, end: ProgramEnd) -> usize {
    usize::from(sender != end)
}

fn failed(flow: &FlowSpec, problem: &str) -> KernelError {
    let name = programs_of(flow).map_or("", |programs| &programs.name);
    let problem = format!("{name}: {problem}");
    KernelError::Program { flow: flow.name.clone(), problem }
}

/// Only TCP's sender reports these times.
fn without_unknown(mut row: SampleRow, reading: &ConnectionSample) -> SampleRow {
    if reading.cwnd.get() == 0 {
        row.time_busy_s = None;
        row.time_rwnd_limited_s = None;
        row.time_sndbuf_limited_s = None;
    }
    row
}

/// The time that a program has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(10);

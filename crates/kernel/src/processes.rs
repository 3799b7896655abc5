//! Processes of programs that are not ours: their start in a namespace, their readiness, their end.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use weir_scene::{ProcessSpec, Readiness};
use weir_units::{Duration, Instant};

use super::shared::Polls;
use weir_links::emulator::Namespace;

/// Starts a process in a namespace, as the leader of a process group of its own.
pub(super) fn start(namespace: &Namespace, spec: &ProcessSpec) -> io::Result<Child> {
    let spec = spec.clone();
    namespace.run(move || {
        let [out, err] = &spec.outputs;
        Command::new(&spec.command[0])
            .args(&spec.command[1..])
            .envs(spec.environment)
            .current_dir(&spec.folder)
            .stdin(Stdio::null())
            .stdout(File::create(out)?)
            .stderr(File::create(err)?)
            .process_group(0)
            .spawn()
    })
}

/// Waits until a process that was started is ready.
///
/// # Errors
/// Says why it will not be.
pub(super) fn await_ready(child: &mut Child, spec: &ProcessSpec) -> Result<(), String> {
    let program = &spec.command[0];
    let began = weir_sockets::clock::now();
    loop {
        let waited = weir_sockets::clock::now().saturating_since(began);
        let ended = child.try_wait().map_err(|error| format!("{program}: {error}"))?;
        match (ended, &spec.ready) {
            (Some(status), Readiness::Ended) if status.success() => return Ok(()),
            (Some(status), _) => {
                return Err(format!("{program} {} before it was ready", ending(status, spec)));
            }
            (None, ready) if is_met(ready, waited, child, spec) => return Ok(()),
            (None, ready) if waited > LONGEST => {
                return Err(format!("{program} was not ready ({}) in time", described(ready)));
            }
            _ => {}
        }
        let slept = Polls::default().wait(INTERVAL);
        slept.map_err(|error| format!("waiting for {program}: {error}"))?;
    }
}

/// How a process ended, with the last line that it printed.
pub(super) fn ending(status: ExitStatus, spec: &ProcessSpec) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    match spec.outputs.iter().rev().find_map(|file| last_line(&fs::read(file).ok()?)) {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

/// Ends the groups of processes: asks them to, and insists after `grace`.
pub(super) fn end(children: &mut [Child], grace: Duration) {
    for (signal, time) in [(Signal::TERM, grace), (Signal::KILL, KILLED)] {
        for child in children.iter() {
            signal_group(child.id(), signal);
        }
        let until = weir_sockets::clock::now() + time;
        while children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
            && weir_sockets::clock::now() < until
            && Polls::default().wait(INTERVAL).is_ok()
        {}
    }
}

/// Sends a signal to a process and those that it started.
pub(super) fn signal_group(pid: u32, signal: Signal) {
    // One that has ended needs none.
    let _ =
        i32::try_from(pid).ok().and_then(Pid::from_raw).map(|pid| kill_process_group(pid, signal));
}

fn is_met(ready: &Readiness, waited: Duration, child: &Child, spec: &ProcessSpec) -> bool {
    match ready {
        Readiness::Ended => false,
        Readiness::Port(port) => is_open(*port, child.id()),
        Readiness::Line(text) => {
            let printed =
                |file| fs::read(file).is_ok_and(|bytes| contains(&bytes, text.as_bytes()));
            spec.outputs.iter().any(printed)
        }
        Readiness::Delay(time) => waited >= *time,
    }
}

fn described(ready: &Readiness) -> String {
    match ready {
        Readiness::Ended => "its end".to_owned(),
        Readiness::Port(port) => format!("port:{port}"),
        Readiness::Line(text) => format!("line:{text}"),
        Readiness::Delay(time) => format!("delay:{time}"),
    }
}

/// Whether TCP listens or UDP receives at a port of the network namespace of a process (proc(5)). A
/// connection to test it would be a client.
fn is_open(port: u16, pid: u32) -> bool {
    const LISTENING: &str = "0A";
    const BOUND: &str = "07";
    let tables = [("tcp", LISTENING), ("tcp6", LISTENING), ("udp", BOUND), ("udp6", BOUND)];
    tables.into_iter().any(|(table, state)| {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().and_then(|address| address.rsplit(':').next());
            local.and_then(|local| u16::from_str_radix(local, 16).ok()) == Some(port)
                && words.nth(1) == Some(state)
        })
    })
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(LONGEST_LINE).collect())
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// The time of the run at which something is due, by which to wait.
pub(super) fn sleep_until(at: Instant, now: impl Fn() -> Instant, over: impl Fn() -> bool) -> bool {
    while now() < at {
        let left = at.saturating_since(now()).min(LONGEST_SLEEP);
        if over() || Polls::default().wait(left).is_err() {
            return false;
        }
    }
    true
}

/// Between looks at whether a process is ready or has ended.
const INTERVAL: Duration = Duration::from_millis(10);
/// Between looks at whether the run is over.
const LONGEST_SLEEP: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(60);
/// A killed process is gone after this time.
const KILLED: Duration = Duration::from_secs(1);
/// Characters of a line that are quoted.
const LONGEST_LINE: usize = 300;

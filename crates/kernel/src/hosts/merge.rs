//! The tables of a run from the records of its hosts.

use std::collections::BTreeMap;

use weir_scene::{FlowEnd, HeapQueue, KernelFlow, Network, Outcome, Run, RunSpec};
use weir_trace::{FlowRow, SampleRow};
use weir_units::{Duration, Instant};

use crate::KernelError;
use crate::check::kernel_config;
use crate::record::{
    COUNTERS, EVENT_KINDS, Ending, HostRecord, Numbers, ReceivedFlow, SentFlow, Step, sample,
};
use crate::senders::LATE;
use crate::verdict::{NO_TIME_LEFT, TOO_OFTEN, add, limited_by_buffers};

/// A host whose part has ended.
#[derive(Clone, Debug)]
pub struct MeasuredHost {
    /// Its name in messages.
    pub name: String,
    /// The most by which its start may differ from that of other hosts.
    pub clock_error: Duration,
    /// What it measured.
    pub record: HostRecord,
}

/// Puts the records of all hosts of a run together.
///
/// # Errors
/// If the description cannot be run, or a record does not fit it.
pub fn merge(spec: &RunSpec, seed: u64, hosts: &[MeasuredHost]) -> Result<Outcome, KernelError> {
    let mut flows = BTreeMap::new();
    let mut samples: Vec<SampleRow> = Vec::new();
    let mut events = Vec::new();
    for host in hosts {
        for sent in &host.record.sent {
            let refused = |problem| KernelError::Host { host: host.name.clone(), problem };
            let received = received(hosts, sent.flow).map_err(refused)?;
            let flow = replay(spec, seed, sent, received, &mut samples).map_err(refused)?;
            if flows.insert(sent.flow, flow).is_some() {
                return Err(refused(format!("flow {} has two senders", sent.flow)));
            }
            for (at, kind, detail) in &sent.events {
                check_time(*at, spec).map_err(|what| refused(what.to_owned()))?;
                let kind = EVENT_KINDS.get(*kind).copied();
                let kind = kind.ok_or_else(|| refused("an event has no known kind".to_owned()))?;
                events.push((Instant::from_nanos(*at), sent.flow, kind, detail));
            }
        }
    }
    if let Some(missing) = (0u32..).zip(&spec.flows).find(|(index, _)| !flows.contains_key(index)) {
        let problem = "no host has a record of its sending end".to_owned();
        return Err(KernelError::Unfit { flow: missing.1.name.clone(), problem });
    }
    // The links of the description carry no packet.
    let mut net = Network::<HeapQueue>::new(spec, seed)?;
    let latest = hosts.iter().map(|host| host.record.real).max().unwrap_or_default();
    net.now = Instant::from_nanos(latest).min(Instant::ZERO + spec.measure.duration);
    events.sort_by_key(|(at, flow, ..)| (*at, *flow));
    for (at, flow, kind, detail) in events {
        net.notes.log.flow(at, flow, kind, detail);
    }
    let mut flows: Vec<_> = flows.into_values().map(Into::into).collect();
    let mut outcome = Run::new(spec, seed).close(&mut flows, net);
    samples.sort_by(|a, b| a.t_s.total_cmp(&b.t_s).then(a.flow.cmp(&b.flow)));
    outcome.samples = samples;
    forget_unknown(&mut outcome.samples, spec);
    forget_links(&mut outcome);
    assess(&mut outcome, spec, seed, hosts);
    Ok(outcome)
}

fn received(hosts: &[MeasuredHost], flow: u32) -> Result<&ReceivedFlow, String> {
    let all = hosts.iter().flat_map(|host| &host.record.received);
    let mut all = all.filter(|received| received.flow == flow);
    let found = all.next();
    let found =
        found.ok_or_else(|| format!("no host has a record of what flow {flow} received"))?;
    if all.next().is_some() {
        return Err(format!("flow {flow} has two receivers"));
    }
    let in_order =
        found.log.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
    if in_order { Ok(found) } else { Err(format!("what flow {flow} received decreases")) }
}

/// Replays to a flow the steps that it had on its host.
fn replay(
    spec: &RunSpec,
    seed: u64,
    sent: &SentFlow,
    received: &ReceivedFlow,
    samples: &mut Vec<SampleRow>,
) -> Result<KernelFlow, String> {
    let described = spec.flows.get(sent.flow as usize);
    let described = described.ok_or_else(|| format!("there is no flow {}", sent.flow))?;
    check_steps(&sent.steps, spec).map_err(|what| format!("flow '{}': {what}", described.name))?;
    let mut flow = KernelFlow::new(sent.flow, described, &spec.measure, seed);
    for (at, step) in &sent.steps {
        let now = Instant::from_nanos(*at);
        let reading = |numbers| sample(numbers, received_by(&received.log, *at));
        match step {
            Step::Connected => flow.on_connected(now),
            Step::Due => {
                flow.on_time(now);
            }
            Step::Answer(bytes) => flow.on_answer(now, *bytes)?,
            // Nothing that was not sent has arrived, whatever the clocks of the two hosts say.
            Step::Open(numbers) if sample(numbers, 0).segments == 0 => {
                flow.begin_measurement(now, &sample(numbers, 0));
            }
            Step::Open(numbers) => flow.begin_measurement(now, &reading(numbers)),
            Step::Sample(numbers) => samples.extend(flow.sample(now, &reading(numbers))),
            Step::Close(numbers, ending) => {
                let completed = received.completed.filter(|_| *ending == Ending::Closed);
                // On the clock of another host: not after the sender knew it.
                let end = completed.map_or(now, |at| Instant::from_nanos(at).min(now));
                // Nor has less arrived than all, although its clock may say that it came later.
                let known = if completed.is_some() { u64::MAX } else { *at };
                let numbers = sample(numbers, received_by(&received.log, known));
                flow.end_measurement(end, &numbers, ended(ending, completed.is_some()));
            }
        }
    }
    if flow.is_closed() { Ok(flow) } else { Err(format!("flow '{}' has no end", described.name)) }
}

fn ended(ending: &Ending, is_complete: bool) -> FlowEnd {
    match ending {
        Ending::Closed if is_complete => FlowEnd::Completed,
        Ending::Closed => {
            FlowEnd::Failed("the receiver closed before it had everything".to_owned())
        }
        Ending::Stopped => FlowEnd::Stopped,
        Ending::OutOfTime => FlowEnd::OutOfTime,
        Ending::Failed(why) => FlowEnd::Failed(why.clone()),
    }
}

/// Bytes that the receiver had read by a time.
fn received_by(log: &[(u64, u64)], at: u64) -> u64 {
    let later = log.partition_point(|(time, _)| *time <= at);
    later.checked_sub(1).map_or(0, |last| log[last].1)
}

/// No time of a record is far behind the end: what is due by then is done again, event by event.
fn check_time(at: u64, spec: &RunSpec) -> Result<(), &'static str> {
    let latest = (spec.measure.duration + LATEST).as_nanos();
    if at > latest { Err("a time is after the end of the run") } else { Ok(()) }
}

/// Time and counters never decrease. Samples have the times at which they were due, and the end is
/// that of the run: both may be before what was done late.
fn check_steps(steps: &[(u64, Step)], spec: &RunSpec) -> Result<(), &'static str> {
    let (mut last, mut counters, mut opened) = ([0; 3], Numbers::default(), 0);
    for (at, step) in steps {
        check_time(*at, spec)?;
        match step {
            Step::Open(_) => opened = *at,
            Step::Close(..) if *at < opened => return Err("it ends before it is measured"),
            _ => {}
        }
        let last = match step {
            Step::Sample(_) => &mut last[0],
            Step::Close(..) => &mut last[1],
            _ => &mut last[2],
        };
        if *at < *last {
            return Err("its time decreases");
        }
        *last = *at;
        let (Step::Open(numbers) | Step::Sample(numbers) | Step::Close(numbers, _)) = step else {
            continue;
        };
        let pairs = || numbers.iter().zip(&counters).take(COUNTERS);
        // A counter that is missing later counts as 0, and so decreases.
        if pairs().any(|(now, before)| now.unwrap_or(0) < before.unwrap_or(0)) {
            return Err("a counter decreases");
        }
        counters = *numbers;
    }
    Ok(())
}

/// Our own connections do not say what limited them.
fn forget_unknown(samples: &mut [SampleRow], spec: &RunSpec) {
    let is_ours = |row: &&mut SampleRow| kernel_config(&spec.flows[row.flow as usize]).is_none();
    for row in samples.iter_mut().filter(is_ours) {
        row.time_busy_s = None;
        row.time_sndbuf_limited_s = None;
    }
}

/// The links of the description have no part in the run: what refers to them is unknown.
fn forget_links(outcome: &mut Outcome) {
    outcome.links.clear();
    outcome.queues.clear();
    outcome.summary.utilisation = None;
    for row in &mut outcome.flows {
        row.share = None;
        row.slowdown = None;
        row.loss_ratio = None;
        row.hops_mean = None;
    }
}

/// Fills in whether the run is valid.
fn assess(outcome: &mut Outcome, spec: &RunSpec, seed: u64, hosts: &[MeasuredHost]) {
    let mut warnings: Vec<String> = Vec::new();
    let (mut most_cpu, mut actions) = (0.0f64, [0u64; 2]);
    for host in hosts {
        let HostRecord { actions: [done, late], cpu, real, .. } = &host.record;
        actions = [actions[0].saturating_add(*done), actions[1].saturating_add(*late)];
        let busiest = *cpu.iter().max().unwrap_or(&0) as f64 / (*real).max(1) as f64;
        most_cpu = most_cpu.max(busiest);
        if *late as f64 > *done as f64 * TOO_OFTEN {
            let percent = *late as f64 / *done as f64 * 100.0;
            warnings.push(format!(
                "host '{}': {percent:.1} % of what senders do was more than {LATE} late",
                host.name
            ));
        }
        if host.record.dropped > 0 {
            let count = host.record.dropped;
            warnings
                .push(format!("host '{}' dropped {count} datagrams that had arrived", host.name));
        }
        if busiest >= NO_TIME_LEFT {
            let percent = busiest * 100.0;
            warnings.push(format!("host '{}' used {percent:.0} % of a core", host.name));
        }
        warnings.extend(host.record.sent.iter().filter_map(|sent| {
            let (row, flow) = (outcome.flows.get(sent.flow as usize)?, sent.flow as usize);
            let planned = spec.flows[flow].drawn_start(seed);
            started_off(row, sent, planned, host.clock_error)
        }));
    }
    warnings.extend(limited_by_buffers(outcome, spec));
    warnings.extend(outcome.flows.iter().filter_map(|row| silent(row, spec, seed)));
    let summary = &mut outcome.summary;
    summary.unasked_drops =
        Some(hosts.iter().fold(0, |sum, host| host.record.dropped.saturating_add(sum)));
    summary.cpu_ratio = Some(most_cpu);
    summary.on_time_ratio = (actions[0] > 0)
        .then(|| (actions[0] - actions[1].min(actions[0])) as f64 / actions[0] as f64);
    summary.health = Some("good".to_owned());
    let settings = hosts.iter().map(|host| format!("{}: {}", host.name, host.record.settings));
    summary.settings = Some(settings.collect::<Vec<_>>().join(" | "));
    add(summary, warnings);
}

/// A flow of which nothing arrived, although it had the time.
fn silent(row: &FlowRow, spec: &RunSpec, seed: u64) -> Option<String> {
    let planned = spec.flows[row.flow as usize].drawn_start(seed);
    let had_time = planned + LEAST_TIME < Instant::ZERO + spec.measure.duration;
    let name = &row.name;
    (had_time && row.delivered_bytes == 0).then(|| {
        format!(
            "flow '{name}': nothing arrived; is its address wrong, or its port behind a firewall?"
        )
    })
}

/// A start that may be off by more than a round trip is another experiment.
fn started_off(
    row: &FlowRow,
    sent: &SentFlow,
    planned: Instant,
    clock_error: Duration,
) -> Option<String> {
    let started = sent.events.iter().find(|(_, kind, _)| EVENT_KINDS[*kind] == "start")?.0;
    let late = Instant::from_nanos(started).saturating_since(planned);
    let off = (late + clock_error).as_millis_f64();
    let rtt = row.rtt_ms_min?;
    (off > rtt).then(|| {
        format!("the start of flow '{}' may be off by {off:.1} ms, more than its RTT", row.name)
    })
}

/// The last steps of a run are taken when it is over.
const LATEST: Duration = Duration::from_secs(60);
/// A flow that is shorter may have had no answer to its first packets.
const LEAST_TIME: Duration = Duration::from_secs(1);

//! Refuses descriptions that contradict themselves.

use std::collections::BTreeSet;

use weir_net::{LinkConfig, Service};
use weir_units::{Bytes, Duration, Instant, Rate};

use crate::error::SpecError;
use crate::memory;
use crate::spec::{
    AllReduce, FlowSizes, FlowSpec, LinkSpec, MeasureSpec, OnOff, Pattern, RadioPath, RadioSpec,
    RunSpec, TransportSpec, Workload,
};

/// The longest IPv4 packet (RFC 791 §3.1).
pub const MAX_PACKET: u64 = 65_535;
/// The largest payload of a UDP datagram over IPv4.
pub const MAX_DATAGRAM: u64 = MAX_PACKET - 20 - 8;

/// Says what is wrong with a description, if anything.
///
/// # Errors
/// For the first thing that cannot be.
pub fn validate(spec: &RunSpec) -> Result<(), SpecError> {
    check_names("link", spec.links.iter().map(|link| &link.name))?;
    check_names("flow", spec.flows.iter().map(|flow| &flow.name))?;
    check_measure(&spec.measure)?;
    if let Some(radio) = &spec.radio {
        check_radio(radio, spec)?;
    }
    memory::check(spec)?;
    for flow in &spec.flows {
        let problem = |problem: String| SpecError::Flow { flow: flow.name.clone(), problem };
        check_times(flow).map_err(problem)?;
        if spec.radio.is_none() {
            check_route(flow, &spec.links).map_err(problem)?;
        }
        let first = flow.route_forward.first().map(|&link| &spec.links[link].config);
        check_workload(flow, first).map_err(problem)?;
    }
    Ok(())
}

/// Every flow has two different nodes as its ends, and nothing goes over links.
fn check_radio(radio: &RadioSpec, spec: &RunSpec) -> Result<(), SpecError> {
    let nodes = radio.nodes();
    if !spec.links.is_empty() || radio.paths.len() != spec.flows.len() {
        let problem = format!(
            "{} links and {} ends of {} flows: over radio there are no links, and each flow has its ends",
            spec.links.len(),
            radio.paths.len(),
            spec.flows.len()
        );
        return Err(SpecError::Radio { problem });
    }
    for (flow, RadioPath { from, to }) in spec.flows.iter().zip(&radio.paths) {
        if from == to || usize::from(from.0.max(to.0)) >= nodes {
            let problem =
                format!("from {from} to {to}: its ends are two different nodes below {nodes}");
            return Err(SpecError::Flow { flow: flow.name.clone(), problem });
        }
    }
    Ok(())
}

fn check_names<'a>(
    kind: &'static str,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), SpecError> {
    let mut taken = BTreeSet::new();
    for name in names {
        if !taken.insert(name) {
            return Err(SpecError::NameTaken { kind, name: name.clone() });
        }
    }
    Ok(())
}

fn check_measure(measure: &MeasureSpec) -> Result<(), SpecError> {
    let wrong = |key, value: String, allowed| Err(SpecError::Measure { key, value, allowed });
    if measure.duration.is_zero() {
        return wrong("duration", measure.duration.to_string(), "it must be above zero");
    }
    if measure.warmup >= measure.duration {
        return wrong("warmup", measure.warmup.to_string(), "it must be shorter than the duration");
    }
    match measure.sample_interval {
        Some(interval) if interval.is_zero() => {
            wrong("sample_interval", interval.to_string(), "it must be above zero")
        }
        _ => Ok(()),
    }
}

fn check_route(flow: &FlowSpec, links: &[LinkSpec]) -> Result<(), String> {
    let udp = matches!(flow.transport, TransportSpec::Udp(_));
    if flow.route_forward.is_empty() || (flow.route_reverse.is_empty() && !udp) {
        return Err("a route needs at least one link in each direction".into());
    }
    for route in [&flow.route_forward, &flow.route_reverse] {
        if route.len() > usize::from(u8::MAX) {
            return Err(format!("a route has {} links; at most 255 are allowed", route.len()));
        }
        if let Some(link) = route.iter().find(|link| **link >= links.len()) {
            return Err(format!("it is routed over link {link}; there are {}", links.len()));
        }
    }
    Ok(())
}

fn check_times(flow: &FlowSpec) -> Result<(), String> {
    match flow.stop {
        Some(stop) if stop <= flow.start.saturating_add(flow.start_jitter) => Err(format!(
            "stop = {stop}: it must come after the start at {} and its jitter of {}",
            flow.start, flow.start_jitter
        )),
        _ if flow.start == Instant::MAX => Err("start: it never starts".into()),
        _ => Ok(()),
    }
}

fn positive(key: &str, size: Bytes) -> Result<(), String> {
    if size > Bytes::ZERO { Ok(()) } else { Err(format!("{key} = 0b: it must be above zero")) }
}

fn lasting(key: &str, time: Duration) -> Result<(), String> {
    if time.is_zero() { Err(format!("{key} = 0s: it must be above zero")) } else { Ok(()) }
}

fn check_rate(rate: Rate, size: Bytes) -> Result<(), String> {
    positive("size", size)?;
    if rate > Rate::ZERO { Ok(()) } else { Err("rate = 0bit: it must be above zero".into()) }
}

/// Enough hosts, and a byte for each transfer.
fn check_all_reduce(spec: &AllReduce, least: u64) -> Result<(), String> {
    let AllReduce { ranks, hosts, .. } = *spec;
    if ranks < 2 || ranks > hosts {
        return Err(format!("an all-reduce of {ranks} hosts: 2 to {hosts} can take part"));
    }
    if least < spec.least_size() {
        let needed = spec.least_size();
        return Err(format!("an all-reduce of {least} bytes: {ranks} hosts need {needed}"));
    }
    Ok(())
}

/// A stack takes bytes into its own buffer, and we never take them back.
fn check_foreign(workload: &Workload, stack: &str) -> Result<(), String> {
    match workload {
        Workload::FlowSizes(_) | Workload::Listed(_) => {
            Err(format!("connections that come and go are ours, not {stack}"))
        }
        Workload::OnOff(OnOff { rate: None, .. }) => Err(format!(
            "on-off over {stack} needs a rate: what it has buffered cannot be withdrawn"
        )),
        _ => Ok(()),
    }
}

/// Programs decide themselves what they send when.
fn check_programs(workload: &Workload, name: &str) -> Result<(), String> {
    match workload {
        Workload::Bulk | Workload::File { .. } => Ok(()),
        _ => Err(format!("{name} sends a file, or as much as it can")),
    }
}

fn check_workload(flow: &FlowSpec, first_link: Option<&LinkConfig>) -> Result<(), String> {
    let udp = match &flow.transport {
        TransportSpec::Udp(config) => Some(*config),
        TransportSpec::Reliable(_) => None,
        TransportSpec::Foreign(stack) => {
            check_foreign(&flow.workload, &stack.name())?;
            None
        }
        TransportSpec::Program(programs) => {
            check_programs(&flow.workload, &programs.name)?;
            None
        }
    };
    if flow.workload.makes_connections() {
        if first_link.is_none() {
            return Err("connections that come and go have links, not radio".into());
        }
        if udp.is_some() {
            return Err("connections that come and go are reliable, not udp".into());
        }
    }
    match flow.workload {
        Workload::Bulk | Workload::Listed(_) => {}
        Workload::File { size } => positive("size", size)?,
        Workload::Request { request, response, .. } => {
            positive("request", request)?;
            positive("response", response)?;
        }
        Workload::PoissonRequest { request, response, mean_gap } => {
            positive("request", request)?;
            positive("response", response)?;
            lasting("mean_gap", mean_gap)?;
        }
        Workload::Rate { rate, size } => check_rate(rate, size)?,
        Workload::OnOff(OnOff { on, rate, size, .. }) => {
            lasting("on", on)?;
            rate.map_or(Ok(()), |rate| check_rate(rate, size))?;
        }
        Workload::FlowSizes(FlowSizes { mean_gap, count, pattern, ref sizes }) => {
            if let Pattern::AllReduce(spec) = pattern {
                check_all_reduce(&spec, sizes.least())?;
            }
            if count.is_none() {
                lasting("mean_gap", mean_gap)?;
            }
        }
    }
    let Some(udp) = udp else { return Ok(()) };
    if flow.workload.has_responses() {
        return Err("requests need a reliable transport, not udp".into());
    }
    if let Some(size) = flow.workload.message() {
        let fits = size.get() <= MAX_DATAGRAM;
        let problem = || format!("size = {size}: a datagram holds at most {MAX_DATAGRAM}b");
        return if fits { Ok(()) } else { Err(problem()) };
    }
    if udp.payload == 0 || u64::from(udp.payload) > MAX_DATAGRAM {
        return Err(format!("payload = {}b: a datagram holds 1b to {MAX_DATAGRAM}b", udp.payload));
    }
    if first_link.is_none_or(|link| link.service == Service::Infinite) {
        return Err("udp as fast as the first link takes it needs a first link with a rate".into());
    }
    Ok(())
}

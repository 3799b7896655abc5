//! Checks of a scenario as a whole: conditions that join several keys. The range of one key stands next to it.

use std::collections::BTreeSet;

use weir_foreign::MIN_PAYLOAD;
use weir_scene::{MAX_DATAGRAM, MAX_PACKET};
use weir_units::{BufferSize, Duration};

use crate::direction::check_burst;
use crate::ends::{check_hosts, check_path};
use crate::error::{Checked, Problem, require};
use crate::feedback::{Drai, Feedback};
use crate::flow::{Flow, MAX_WINDOW, Protocol};
use crate::scenario_file::ScenarioFile;
use crate::topology::{GraphLink, Topology, TopologyKind};

const MAX_FLOWS: u64 = 100_000;
/// More rows than this would fill the memory of most machines.
const MAX_SAMPLES: u64 = 20_000_000;
/// With the largest TCP header.
const MAX_MSS: u64 = MAX_PACKET - 20 - 60;

/// Checks what the keys of a scenario demand of each other.
pub(crate) fn check(scenario: &ScenarioFile) -> Checked {
    check_name(&scenario.name)?;
    check_measure(scenario)?;
    check_topology(&scenario.topology)?;
    if scenario.flow.is_empty() {
        return Err(Problem::new("flow", "there is none; at least one [[flow]] is needed"));
    }
    for (index, flow) in scenario.flow.iter().enumerate() {
        check_flow(flow, &format!("flow.{index}"), scenario)?;
    }
    check_numbers(scenario)?;
    check_names(scenario)
}

fn check_name(name: &str) -> Checked {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let good = !name.is_empty() && name.len() <= 100 && name.chars().all(plain);
    let allowed = "a name has 1 to 100 letters, digits, -, _, . and + (it names a directory)";
    require(good && !name.starts_with('.'), "name".into(), format!("'{name}'"), allowed)
}

fn check_measure(scenario: &ScenarioFile) -> Checked {
    let measure = &scenario.measure;
    let key = |name: &str| format!("measure.{name}");
    let allowed = format!("it must be shorter than measure.duration = {}", measure.duration);
    require(measure.warmup < measure.duration, key("warmup"), measure.warmup, allowed)?;
    let seed = measure.seed.checked_add(u64::from(measure.repeat)).is_some_and(|s| s < 1 << 63);
    require(seed, key("seed"), measure.seed, "seeds are below 2^63")
}

fn check_topology(topology: &Topology) -> Checked {
    let key = |name: &str| format!("topology.{name}");
    if let Some(burst) = topology.burst {
        check_burst(burst, key("burst"), topology.mtu, topology.overhead)?;
    }
    for (section, queue) in topology.queues() {
        queue.0.check(&section)?;
        let sizes = queue.0.sizes(&section).into_iter();
        let mut products = sizes.filter(|(_, size)| matches!(size, BufferSize::Bdp(_)));
        let zero = if topology.is_fabric() { "topology.delay" } else { "topology.rtt" };
        let allowed = format!(
            "without a round trip ({zero} = 0ns) there is no bandwidth-delay product: write a size in \
             packets, bytes or time, as in 64p, 64kb or 20ms"
        );
        if let Some((key, size)) = products.next() {
            require(!topology.longest_rtt().is_zero(), key, size, allowed)?;
        }
    }
    for (section, agent) in topology.agents() {
        agent.check(&section)?;
    }
    topology.forward.check("topology.forward")?;
    topology.reverse.check("topology.reverse")?;
    if topology.kind == TopologyKind::LabRouter {
        check_relay(topology)?;
    }
    if topology.kind == TopologyKind::Graph && topology.link.is_empty() {
        let message = "there is none; a graph needs at least one [[topology.link]]";
        return Err(Problem::new(key("link"), message));
    }
    topology.check_fabric()?;
    topology.check_buffer()?;
    for (index, link) in topology.link.iter().enumerate() {
        check_graph_link(link, &format!("topology.link.{index}"))?;
    }
    Ok(())
}

/// The relay has no rate, so what it is bounded by cannot be a time or a BDP.
fn check_relay(topology: &Topology) -> Checked {
    let Topology { forward, reverse, .. } = topology;
    for (key, queue) in topology.queues() {
        let Some(size) = queue.as_size() else {
            let allowed = "a relay is a program whose socket buffer is a drop-tail queue";
            return require(false, key, queue.0.kind(), allowed);
        };
        let allowed =
            "a relay has no rate, so its buffer is in packets or bytes, as in 4p or 64kib";
        let timed = matches!(size, BufferSize::Time(_) | BufferSize::Bdp(_));
        require(!timed, key, size, allowed)?;
    }
    for (name, direction) in [("forward", forward), ("reverse", reverse)] {
        let applied = direction.rate_steps.is_empty() || direction.rate.is_some();
        let key = format!("topology.{name}.rate_steps");
        let allowed = "a relay has no rate that they could change; set `rate` as well";
        require(applied, key, "a list of steps", allowed)?;
    }
    Ok(())
}

fn check_graph_link(link: &GraphLink, section: &str) -> Checked {
    let key = |name: &str| format!("{section}.{name}");
    for (name, node) in [("from", &link.from), ("to", &link.to)] {
        require(!node.0.is_empty(), key(name), "no name", "name a node")?;
        require(!node.is_any(), key(name), "'*'", "name a node; * is any host, of a flow")?;
    }
    let allowed = "a link joins two different nodes";
    require(link.from != link.to, key("to"), format!("'{}'", link.to.0), allowed)?;
    if let Some(burst) = link.burst {
        check_burst(burst, key("burst"), None, link.overhead)?;
    }
    link.impair.check(&key("impair"))
}

fn check_flow(flow: &Flow, section: &str, scenario: &ScenarioFile) -> Checked {
    let key = |name: &str| format!("{section}.{name}");
    check_times(flow, section, scenario.measure.duration)?;
    check_path(flow, section, &scenario.topology)?;
    let mss = flow.mss.unwrap_or_default();
    let mss_of_no_effect = weir_transport::Config::default().mss;
    let (shortest, longest) = match flow.stack {
        Protocol::Udp => (1, MAX_DATAGRAM),
        Protocol::Reliable(_) => (1, MAX_MSS),
        Protocol::Foreign(_) => (u64::from(MIN_PAYLOAD), MAX_DATAGRAM),
        // Programs choose their own.
        Protocol::Contender(_) => (u64::from(mss_of_no_effect), u64::from(mss_of_no_effect)),
    };
    let allowed = format!("{shortest} to {longest} bytes");
    require((shortest..=longest).contains(&u64::from(mss)), key("mss"), mss, allowed)?;
    if let (Some(mtu), false) =
        (scenario.topology.mtu, matches!(flow.stack, Protocol::Contender(_)))
    {
        let headers = flow.headers();
        let allowed = format!(
            "topology.mtu = {mtu} with {headers} bytes of headers lets none pass that is longer than {}",
            mtu.get().saturating_sub(u64::from(headers))
        );
        require(u64::from(mss + headers) <= mtu.get(), key("mss"), mss, allowed)?;
    }
    if let Some(rate) = flow.quick_start {
        let allowed = "its controller asks the routers for something else";
        require(!uses_router_feedback(flow), key("quick_start"), rate, allowed)?;
    }
    if let Some(buffer) = &scenario.topology.buffer {
        let longest = buffer.total.get().saturating_sub(u64::from(flow.headers()));
        let allowed = format!(
            "topology.buffer.total = {} with {} bytes of headers takes none that is longer than {longest}",
            buffer.total,
            flow.headers()
        );
        require(u64::from(mss) <= longest, key("mss"), mss, allowed)?;
    }
    check_levels(flow, section, &scenario.topology)?;
    check_telemetry(&scenario.topology)?;
    let buffer = (u64::from(mss)..=MAX_WINDOW.get()).contains(&flow.recv_buffer.get());
    let allowed = format!("one mss ({mss} bytes) to {MAX_WINDOW}");
    require(buffer, key("recv_buffer"), flow.recv_buffer, allowed)?;
    if let Some(most) = flow.max_send_buffer {
        let least = flow.send_buffer;
        let sound = least.is_some_and(|least| least <= most && most <= MAX_WINDOW);
        let allowed = match least {
            Some(least) => format!("send_buffer = {least} to {MAX_WINDOW}"),
            None => "it needs a send_buffer, at most as large".to_owned(),
        };
        require(sound, key("max_send_buffer"), most, allowed)?;
    }
    if let Some(most) = flow.max_recv_buffer {
        let sound = (flow.recv_buffer.get()..=MAX_WINDOW.get()).contains(&most.get());
        let allowed = format!("recv_buffer = {} to {MAX_WINDOW}", flow.recv_buffer);
        require(sound, key("max_recv_buffer"), most, allowed)?;
    }
    if let Some(window) = flow.initial_recv_window {
        let sound = (u64::from(mss)..=flow.recv_buffer.get()).contains(&window.get());
        let allowed = format!("one mss ({mss} bytes) to recv_buffer = {}", flow.recv_buffer);
        require(sound, key("initial_recv_window"), window, allowed)?;
    }
    let allowed = format!("it is at most max_rto = {}", flow.max_rto);
    require(flow.min_rto <= flow.max_rto, key("min_rto"), flow.min_rto, &allowed)?;
    require(flow.initial_rto <= flow.max_rto, key("initial_rto"), flow.initial_rto, &allowed)?;
    if let Protocol::Contender(name) = &flow.stack {
        let allowed = format!("{name} consists of programs, which take no time to prepare packets");
        require(flow.send_time.is_zero(), key("send_time"), flow.send_time, allowed)?;
    }
    let allowed = format!("it is at most send_time = {}", flow.send_time);
    require(flow.send_jitter <= flow.send_time, key("send_jitter"), flow.send_jitter, allowed)?;
    let kind = format!("'{}'", flow.workload.kind());
    let over_links =
        !flow.workload.makes_connections() || scenario.topology.kind != TopologyKind::Radio;
    let allowed = "over radio there is no link to load";
    require(over_links, key("workload.kind"), kind, allowed)?;
    check_hosts(flow, section, scenario)?;
    flow.workload.check(&key("workload"), flow.carrier())
}

/// Frames have no space for records of hops.
fn check_telemetry(topology: &Topology) -> Checked {
    let int = matches!(topology.radio.feedback, Some(Feedback::Int(_)));
    let allowed = "only links have telemetry";
    require(!int, "topology.radio.feedback.kind".to_owned(), "int", allowed)
}

/// An index is useless to a sender that counts other levels than the router.
fn check_levels(flow: &Flow, section: &str, topology: &Topology) -> Checked {
    let Protocol::Reliable(stack) = &flow.stack else { return Ok(()) };
    let Some(expected) = stack.controller.index_levels().map(u32::from) else { return Ok(()) };
    for (key, agent) in topology.agents() {
        let Feedback::Drai(Drai { levels, .. }) = agent else { continue };
        let allowed = format!("it goes by {expected} levels, and {key} gives {levels}");
        require(*levels == expected, format!("{section}.stack"), stack, allowed)?;
    }
    Ok(())
}

/// Whether the flow's controller asks routers itself.
fn uses_router_feedback(flow: &Flow) -> bool {
    match &flow.stack {
        Protocol::Udp | Protocol::Foreign(_) | Protocol::Contender(_) => false,
        Protocol::Reliable(stack) => stack.controller.router_feedback().is_some(),
    }
}

fn check_times(flow: &Flow, section: &str, end: Duration) -> Checked {
    let key = |name: &str| format!("{section}.{name}");
    let last = flow.stagger.saturating_mul(u64::from(flow.count) - 1);
    let latest = [flow.start, last, flow.start_jitter]
        .iter()
        .fold(0u64, |sum, time| sum.saturating_add(time.as_nanos()));
    let allowed = format!("every start lies before the end of the run, measure.duration = {end}");
    let late = if flow.start >= end {
        "start"
    } else if last >= end {
        "stagger"
    } else {
        "start_jitter"
    };
    let value = match late {
        "start" => flow.start,
        "stagger" => flow.stagger,
        _ => flow.start_jitter,
    };
    require(latest < end.as_nanos(), key(late), value, allowed)?;
    if let Some(stop) = flow.stop {
        require(flow.duration.is_none(), key("stop"), stop, "duration is set as well; keep one")?;
        let allowed = format!("it comes after the start, {}", flow.start);
        require(stop.as_nanos() > latest, key("stop"), stop, allowed)?;
    }
    if let Some(duration) = flow.duration {
        require(
            duration > flow.start_jitter,
            key("duration"),
            duration,
            "above 0s and start_jitter",
        )?;
    }
    Ok(())
}

/// A number that would fill the memory is a slip.
fn check_numbers(scenario: &ScenarioFile) -> Checked {
    let flows: u64 = scenario.flow.iter().map(|flow| u64::from(flow.count)).sum();
    require(
        flows <= MAX_FLOWS,
        "flow".into(),
        format!("{flows} flows"),
        format!("at most {MAX_FLOWS}"),
    )?;
    let interval = scenario.measure.sample_interval;
    let times = scenario.measure.duration.as_nanos().checked_div(interval.as_nanos()).unwrap_or(0);
    let allowed =
        format!("with {flows} flows that makes more than {MAX_SAMPLES} rows; 0s makes none");
    let few = times.saturating_mul(flows) <= MAX_SAMPLES;
    require(few, "measure.sample_interval".into(), interval, allowed)
}

/// Random streams are drawn by name, and tables are read by it.
fn check_names(scenario: &ScenarioFile) -> Checked {
    let mut seen = BTreeSet::new();
    for (index, flow) in scenario.flow.iter().enumerate() {
        for name in flow.names() {
            let key = format!("flow.{index}.name");
            require(!name.is_empty(), key.clone(), "''", "a name is not empty")?;
            let value = format!("'{name}'");
            require(seen.insert(name), key, value, "another flow has this name")?;
        }
    }
    Ok(())
}

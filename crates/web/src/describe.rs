//! What a page draws before anything has happened: links, flows and the nodes of a radio network, as JSON.

use serde_json::{Value, json};
use weir_net::feedback::FeedbackConfig;
use weir_net::{Limit, QueueConfig, Service};
use weir_scene::{FlowSpec, LinkSpec, RadioSpec, RunSpec, TransportSpec};
use weir_trace::NodeRow;
use weir_units::Duration;

/// Links, flows and nodes of `spec`; `nodes` are where they are at first.
pub(crate) fn describe(name: &str, spec: &RunSpec, nodes: &[NodeRow]) -> String {
    json!({
        "name": name,
        "duration_s": spec.measure.duration.as_secs_f64(),
        "radio": spec.radio.as_ref().map(|spec| radio(spec, nodes)),
        "links": spec.links.iter().map(link).collect::<Vec<_>>(),
        "flows": spec.flows.iter().map(flow).collect::<Vec<_>>(),
    })
    .to_string()
}

fn radio(spec: &RadioSpec, nodes: &[NodeRow]) -> Value {
    let (read_m, sense_m) = spec.config.propagation.range_m();
    let levels = match &spec.feedback {
        Some(FeedbackConfig::Drai(drai)) => Some(drai.levels()),
        _ => None,
    };
    json!({
        "nodes": nodes.iter().map(|node| [node.x_m, node.y_m]).collect::<Vec<_>>(),
        "ends": spec.paths.iter().map(|path| [path.from.0, path.to.0]).collect::<Vec<_>>(),
        "read_m": read_m,
        "sense_m": sense_m,
        "levels": levels,
    })
}

fn link(link: &LinkSpec) -> Value {
    let (packets, bytes) = match &link.config.queue {
        QueueConfig::DropTail(queue) => match queue.limit {
            Limit::Packets(packets) => (Some(packets), None),
            Limit::Bytes(bytes) => (None, Some(bytes.get())),
            Limit::Infinite => (None, None),
        },
        _ => (None, None),
    };
    json!({
        "name": link.name,
        "is_monitored": link.monitored,
        "rate_mbps": link.config.rate().map(|rate| rate.as_mbit_f64()),
        "rate_steps": rate_steps(&link.config.service),
        "delay_ms": Duration::as_millis_f64(link.config.delay.initial),
        "limit_packets": packets,
        "limit_bytes": bytes,
    })
}

/// Times in s and the rates in Mbit/s from then on.
fn rate_steps(service: &Service) -> Vec<[f64; 2]> {
    let (Service::Rate(rate) | Service::Shaper { rate, .. }) = service else { return Vec::new() };
    rate.steps.iter().map(|(at, rate)| [at.as_secs_f64(), rate.as_mbit_f64()]).collect()
}

fn flow(flow: &FlowSpec) -> Value {
    let stack = match &flow.transport {
        TransportSpec::Reliable(config) => config.stack.to_string(),
        TransportSpec::Udp(_) => "udp".to_owned(),
        TransportSpec::Foreign(stack) => stack.name(),
        TransportSpec::Program(programs) => programs.name.clone(),
    };
    json!({
        "name": flow.name,
        "stack": stack,
        "start_s": (flow.start - weir_units::Instant::ZERO).as_secs_f64(),
        "forward": flow.route_forward,
        "reverse": flow.route_reverse,
    })
}

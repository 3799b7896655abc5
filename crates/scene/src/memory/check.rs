//! What is wrong with the memory of switches as it is described.

use weir_net::{DropTailConfig, EcnStepConfig, Limit, LinkConfig, QueueConfig, RedConfig, Service};
use weir_units::{Bytes, Ratio};

use super::pfc::needed_headroom;
use super::switches;
use crate::error::SpecError;
use crate::forwarding::Forwarding;
use crate::spec::{BufferSpec, LinkSpec, PfcSpec, RunSpec};

/// Says what is wrong with the memory of switches, if there is any.
pub(crate) fn check(spec: &RunSpec) -> Result<(), SpecError> {
    let Some(fabric) = &spec.fabric else { return Ok(()) };
    let Some(buffer) = &fabric.buffer else { return Ok(()) };
    check_buffer(buffer, &fabric.forwarding, &spec.links)
        .map_err(|problem| SpecError::Buffer { problem })
}

fn check_buffer(
    buffer: &BufferSpec,
    forwarding: &Forwarding,
    links: &[LinkSpec],
) -> Result<(), String> {
    if switches(forwarding).next().is_none() {
        let text =
            "there is no switch whose ports could share it: flows begin or end at every node";
        return Err(text.to_owned());
    }
    let ports = || links.iter().zip(forwarding.tails());
    for (link, _) in ports().filter(|(_, node)| !forwarding.is_host(**node)) {
        if link.config.impairments.duplicate != Ratio::ZERO {
            let text = "duplicates packets, and a switch reserves no memory for copies";
            return Err(format!("link '{}' {text}", link.name));
        }
    }
    let Some(rules) = &buffer.pfc else { return Ok(()) };
    ports().try_for_each(|(link, _)| {
        check_link(&link.config).map_err(|what| format!("with pfc, link '{}' {what}", link.name))
    })?;
    switches(forwarding).try_for_each(|node| check_total(buffer, rules, node, forwarding, links))
}

/// Nothing may be dropped for lack of memory, and all that is sent after a pause has to be foreseen.
fn check_link(link: &LinkConfig) -> Result<(), String> {
    if !matches!(link.service, Service::Rate(_)) {
        return Err("needs a constant rate or rate_steps, without burst and rate_trace".to_owned());
    }
    if link.impairments.jitter.is_some() || link.impairments.reorder.is_some() {
        return Err("may have no jitter and no reordering, which no headroom foresees".to_owned());
    }
    match &link.queue {
        QueueConfig::DropTail(DropTailConfig { limit: Limit::Infinite, .. })
        | QueueConfig::EcnStep(EcnStepConfig { limit: Limit::Infinite, .. })
        | QueueConfig::Red(RedConfig { limit: Limit::Infinite, .. }) => Ok(()),
        QueueConfig::DropTail(_) | QueueConfig::EcnStep(_) | QueueConfig::Red(_) => {
            Err("needs a queue without a limit: set limit = \"infinite\"".to_owned())
        }
        _ => Err("needs a queue of kind droptail, ecn-step or red".to_owned()),
    }
}

fn check_total(
    buffer: &BufferSpec,
    rules: &PfcSpec,
    node: u32,
    forwarding: &Forwarding,
    links: &[LinkSpec],
) -> Result<(), String> {
    let entering = (0u32..).zip(links).filter(|(index, _)| forwarding.head(*index) == Some(node));
    let mut kept = Bytes::ZERO;
    for (_, link) in entering {
        let headroom = rules.headroom;
        let headroom = headroom.unwrap_or_else(|| needed_headroom(&link.config, rules.longest));
        kept = kept + headroom + rules.reserve;
    }
    if kept + rules.longest <= buffer.total {
        return Ok(());
    }
    let name = &forwarding.names()[node as usize];
    Err(format!(
        "the ports of switch '{name}' keep {kept} for headroom and reserve; total = {} leaves no memory to \
         share",
        buffer.total
    ))
}

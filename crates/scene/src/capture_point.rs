//! Places in a network where packets can be captured.

use crate::link::{LinkCrossing, LinkEnd};
use crate::packet::Direction;
use crate::spec::{FlowSpec, RunSpec};

/// Two interfaces of a network, each of which sees both directions as a capture there would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapturePoint {
    /// The near and the far end of a link: data on its way into the link or out of it, and what comes
    /// back.
    Link {
        /// The link.
        link: usize,
        /// The link that leads back between the same two places, which may be the same.
        twin: Option<usize>,
    },
    /// The hosts: all senders together, and all receivers.
    Hosts,
}

impl CapturePoint {
    /// The two ends of a link.
    pub fn of_link(spec: &RunSpec, link: usize) -> Self {
        Self::Link { link, twin: twin(spec, link) }
    }

    /// The links whose packets tell what the interfaces see, each once.
    pub fn links(&self, spec: &RunSpec) -> Vec<usize> {
        match *self {
            Self::Link { link, twin } => {
                [Some(link), twin.filter(|twin| *twin != link)].into_iter().flatten().collect()
            }
            Self::Hosts => {
                let routes = spec.flows.iter().flat_map(|f| [&f.route_forward, &f.route_reverse]);
                let mut ends: Vec<usize> = routes
                    .flat_map(|route| [route.first(), route.last()])
                    .flatten()
                    .copied()
                    .collect();
                ends.sort_unstable();
                ends.dedup();
                ends
            }
        }
    }

    /// The names of the two interfaces.
    pub fn names(&self, spec: &RunSpec) -> [String; 2] {
        match self {
            Self::Link { link, .. } => {
                let name = &spec.links[*link].name;
                [format!("before {name}"), format!("after {name}")]
            }
            Self::Hosts => ["senders".to_owned(), "receivers".to_owned()],
        }
    }

    /// At which of the two interfaces a packet is that was seen at an end of link `index`.
    pub fn interface<L>(
        &self,
        spec: &RunSpec,
        index: usize,
        seen: &LinkCrossing<L>,
    ) -> Option<u32> {
        let packet = &seen.packet;
        match *self {
            Self::Link { link, twin } => {
                if link != index && twin != Some(index) {
                    return None;
                }
                let leads_back = match twin {
                    Some(twin) if twin == link => packet.direction == Direction::Reverse,
                    _ => index != link,
                };
                Some(u32::from((seen.end == LinkEnd::Exit) != leads_back))
            }
            Self::Hosts => {
                let flow = spec.flows.get(packet.flow as usize)?;
                let hops = match packet.direction {
                    Direction::Forward => flow.route_forward.len(),
                    Direction::Reverse => flow.route_reverse.len(),
                };
                let is_at_host = match seen.end {
                    LinkEnd::Entry => packet.hop == 0,
                    LinkEnd::Exit => usize::from(packet.hop) + 1 == hops,
                };
                let is_back = packet.direction == Direction::Reverse;
                is_at_host.then(|| u32::from((seen.end == LinkEnd::Exit) != is_back))
            }
        }
    }
}

/// The link that leads back where `link` comes from, for the first flow that sends over it: itself, the
/// one that is called so, or the one in the mirrored place on the way back.
fn twin(spec: &RunSpec, link: usize) -> Option<usize> {
    let crosses = |flow: &&FlowSpec| flow.route_forward.contains(&link);
    let flow = spec.flows.iter().find(crosses)?;
    let back = &flow.route_reverse;
    let name = format!("{}-reverse", spec.links[link].name);
    let called = || back.iter().copied().find(|index| spec.links[*index].name == name);
    let place = flow.route_forward.iter().position(|index| *index == link)?;
    let mirrored = || back.iter().rev().nth(place).copied();
    back.contains(&link).then_some(link).or_else(called).or_else(mirrored)
}

#[cfg(test)]
mod tests {
    use weir_net::{Ecn, LinkConfig};
    use weir_units::{Duration, Instant};

    use super::*;
    use crate::packet::{Body, Packet};
    use crate::spec::{Ends, MeasureSpec, TransportSpec, UdpConfig, Workload};
    use crate::topology::{Access, Chain, Dumbbell, Hop, LabRouter, Relay, Route, Span, Topology};

    fn spec(topology: Topology) -> RunSpec {
        let flow = |(index, route): (usize, Route)| FlowSpec {
            name: format!("f{index}"),
            route_forward: route.forward,
            route_reverse: route.reverse,
            transport: TransportSpec::Udp(UdpConfig::default()),
            workload: Workload::Bulk,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        RunSpec {
            radio: None,
            fabric: None,
            links: topology.links,
            flows: topology.routes.into_iter().enumerate().map(flow).collect(),
            measure: MeasureSpec::default(),
        }
    }

    fn twin_of(topology: Topology, link: &str) -> Option<String> {
        let spec = spec(topology);
        let index = spec.links.iter().position(|described| described.name == link).unwrap();
        twin(&spec, index).map(|index| spec.links[index].name.clone())
    }

    #[test]
    fn the_link_back_is_found_in_every_topology() {
        // An odd round trip: there is a link of 1 ns on the way back only.
        let dumbbell = Dumbbell {
            forward: LinkConfig::default(),
            reverse: LinkConfig::default(),
            access: Access::None,
            rtts: vec![Duration::from_nanos(1)],
        };
        let twin = twin_of(dumbbell.build().unwrap(), "bottleneck");
        assert_eq!(twin.as_deref(), Some("bottleneck-reverse"));

        let serial = LabRouter {
            relay: Relay::Serial(LinkConfig::default()),
            forward: None,
            reverse: None,
            flows: 1,
        };
        assert_eq!(twin_of(serial.build(), "relay").as_deref(), Some("relay"));

        let hop = || Hop { forward: LinkConfig::default(), reverse: LinkConfig::default() };
        let chain = Chain {
            hops: vec![hop(), hop(), hop()],
            access: Access::None,
            spans: vec![Span { from: 0, to: 3 }],
        };
        let mut topology = chain.build().unwrap();
        assert_eq!(twin_of(topology.clone(), "hop1").as_deref(), Some("hop1-reverse"));
        topology.links.iter_mut().for_each(|link| link.name = link.name.replace("-reverse", "b"));
        assert_eq!(twin_of(topology, "hop2").as_deref(), Some("hop2b"));
    }

    #[test]
    fn hosts_see_what_leaves_and_what_arrives() {
        let hop = || Hop { forward: LinkConfig::default(), reverse: LinkConfig::default() };
        let chain = Chain {
            hops: vec![hop(), hop()],
            access: Access::None,
            spans: vec![Span { from: 0, to: 2 }],
        };
        let spec = spec(chain.build().unwrap());
        let place = |direction, end, hop| {
            let (at, body) = (Instant::ZERO, Body::Datagram { number: 0, payload: 1 });
            let packet = Packet {
                flow: 0,
                direction,
                hop,
                ecn: Ecn::NotEct,
                corrupted: false,
                ip_len: 29,
                stamp: 0,
                sent: at,
                queued: Duration::ZERO,
                body,
                load: (),
            };
            CapturePoint::Hosts.interface(&spec, 0, &LinkCrossing { at, end, packet })
        };
        let [senders, receivers] = [Some(0), Some(1)];
        assert_eq!(CapturePoint::Hosts.names(&spec), ["senders", "receivers"]);
        assert_eq!(place(Direction::Forward, LinkEnd::Entry, 0), senders);
        assert_eq!(place(Direction::Forward, LinkEnd::Exit, 0), None);
        assert_eq!(place(Direction::Forward, LinkEnd::Entry, 1), None);
        assert_eq!(place(Direction::Forward, LinkEnd::Exit, 1), receivers);
        assert_eq!(place(Direction::Reverse, LinkEnd::Entry, 0), receivers);
        assert_eq!(place(Direction::Reverse, LinkEnd::Exit, 1), senders);
    }
}

//! Two hosts and a relay program between them, as students build it to test a protocol.

use weir_net::LinkConfig;

use super::{Route, Topology};

/// Hosts joined by a relay.
#[derive(Clone, Debug)]
pub struct LabRouter {
    /// The relay.
    pub relay: Relay,
    /// What data meets on its way to the relay, if anything: losses that the relay applies in this
    /// direction only.
    pub forward: Option<LinkConfig>,
    /// What acknowledgements meet on their way to the relay.
    pub reverse: Option<LinkConfig>,
    /// How many flows.
    pub flows: usize,
}

/// What the relay does with a datagram.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per run")]
pub enum Relay {
    /// Reads one, sleeps, forwards it, reads the next, whichever side it came from: one server and
    /// one socket buffer for both directions (a link with per-packet service).
    Serial(LinkConfig),
    /// Holds each for its own time: a delay line per direction.
    DelayLine {
        /// For data.
        forward: LinkConfig,
        /// For acknowledgements.
        reverse: LinkConfig,
    },
}

impl LabRouter {
    /// Builds it.
    pub fn build(self) -> Topology {
        let mut topology = Topology::default();
        let mut route = Route::default();
        if let Some(config) = self.forward {
            route.forward.push(topology.add_link("to-relay".into(), config));
        }
        if let Some(config) = self.reverse {
            route.reverse.push(topology.add_link("to-relay-reverse".into(), config));
        }
        match self.relay {
            Relay::Serial(config) => {
                let relay = topology.add_monitored("relay".into(), config);
                route.forward.push(relay);
                route.reverse.push(relay);
            }
            Relay::DelayLine { forward, reverse } => {
                route.forward.push(topology.add_monitored("relay".into(), forward));
                route.reverse.push(topology.add_link("relay-reverse".into(), reverse));
            }
        }
        topology.routes = vec![route; self.flows];
        topology
    }
}

//! Routers in a row, with flows between any two of them.

use weir_net::LinkConfig;
use weir_units::Duration;

use super::{Access, Route, Topology, TopologyError};

/// `hops.len() + 1` routers in a row.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The links between neighbours, from left to right.
    pub hops: Vec<Hop>,
    /// What joins hosts to their routers.
    pub access: Access,
    /// Each flow's first and last router.
    pub spans: Vec<Span>,
}

/// Two neighbours' links.
#[derive(Clone, Debug)]
pub struct Hop {
    /// From left to right; monitored as `hop0`, `hop1`, …
    pub forward: LinkConfig,
    /// From right to left: `hop0-reverse`, …
    pub reverse: LinkConfig,
}

/// Where a flow enters and leaves the chain, as numbers of routers; it may run in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The sender's router.
    pub from: usize,
    /// The receiver's.
    pub to: usize,
}

/// The parking lot's flows on a chain of `hops` links: the first crosses all of them, the next
/// `hops` flows cross one each, from left to right, and so on in turn.
pub fn parking_lot_spans(hops: usize, flows: usize) -> Vec<Span> {
    let span = |flow: usize| match flow % (hops + 1) {
        0 => Span { from: 0, to: hops },
        hop => Span { from: hop - 1, to: hop },
    };
    (0..flows).map(span).collect()
}

impl Chain {
    /// Builds it.
    ///
    /// # Errors
    /// If a flow begins or ends outside the chain, or ends where it begins.
    pub fn build(self) -> Result<Topology, TopologyError> {
        let mut topology = Topology::default();
        let nodes = self.hops.len() + 1;
        let pairs: Vec<(usize, usize)> = self
            .hops
            .into_iter()
            .enumerate()
            .map(|(i, hop)| {
                let forward = topology.add_monitored(format!("hop{i}"), hop.forward);
                (forward, topology.add_link(format!("hop{i}-reverse"), hop.reverse))
            })
            .collect();
        for (flow, &Span { from, to }) in self.spans.iter().enumerate() {
            if from == to || from.max(to) >= nodes {
                return Err(TopologyError::NoSuchPath { flow, from, to, nodes });
            }
            let crossed = &pairs[from.min(to)..from.max(to)];
            let rightwards = crossed.iter().map(|pair| pair.0).collect();
            let leftwards = crossed.iter().rev().map(|pair| pair.1).collect();
            let route = if from < to {
                Route { forward: rightwards, reverse: leftwards }
            } else {
                Route { forward: leftwards, reverse: rightwards }
            };
            topology.add_route(route, self.access, Duration::ZERO);
        }
        Ok(topology)
    }
}

//! What a radio network consists of.

use weir_net::feedback::FeedbackConfig;
use weir_radio::{
    Mobility, NodeId, Placement, RadioConfig, RandomPlacement, RandomWaypoint, RouterConfig,
};

use crate::packet::Direction;
use crate::side::Side;

/// Nodes that share a channel.
#[derive(Clone, Debug)]
pub struct RadioSpec {
    /// Channel, MAC and interface queues.
    pub config: RadioConfig,
    /// Where nodes are at first.
    pub places: Places,
    /// How they move.
    pub movement: Movement,
    /// How packets find their way.
    pub routing: Routing,
    /// What nodes tell the senders of passing packets.
    pub feedback: Option<FeedbackConfig>,
    /// The ends of each flow, in the order of the flows.
    pub paths: Vec<RadioPath>,
}

/// Where nodes are at first.
#[derive(Clone, Debug)]
pub enum Places {
    /// There.
    Fixed(Placement),
    /// Where the seed says.
    Random(RandomPlacement),
}

/// How nodes move.
#[derive(Clone, Debug)]
pub enum Movement {
    /// Not at all.
    None,
    /// To one random place after the other, from random places at first.
    Waypoint(RandomWaypoint),
    /// As recorded, from the recorded places at first.
    Trace(Mobility),
}

/// How packets find their way.
#[derive(Clone, Debug)]
pub enum Routing {
    /// Over shortest paths between nodes that are at most this many millimetres apart at first.
    Shortest(u64),
    /// By a protocol.
    Protocol(RouterConfig),
}

/// The ends of a flow over radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioPath {
    /// Where data comes from.
    pub from: NodeId,
    /// Where it goes.
    pub to: NodeId,
}

impl RadioPath {
    /// From where to where packets of a direction travel.
    pub(crate) fn towards(self, direction: Direction) -> (NodeId, NodeId) {
        match direction {
            Direction::Forward => (self.from, self.to),
            Direction::Reverse => (self.to, self.from),
        }
    }

    /// Which end of the flow a node is.
    pub(crate) fn side(self, node: NodeId) -> Option<Side> {
        if node == self.from {
            Some(Side::Sender)
        } else {
            (node == self.to).then_some(Side::Receiver)
        }
    }
}

impl RadioSpec {
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match (&self.movement, &self.places) {
            (Movement::Trace(mobility), _) => mobility.nodes(),
            (_, Places::Fixed(placement)) => placement.positions.len(),
            (_, Places::Random(random)) => usize::from(random.nodes),
        }
    }
}

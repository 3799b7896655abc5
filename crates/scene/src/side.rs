//! The two ends of a flow.

use crate::packet::Direction;
use crate::queue::Event;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where data comes from.
    Sender,
    /// Where it goes.
    Receiver,
}

impl Side {
    /// Which way this end's packets travel.
    pub fn direction(self) -> Direction {
        match self {
            Self::Sender => Direction::Forward,
            Self::Receiver => Direction::Reverse,
        }
    }

    /// The end that packets of a direction arrive at.
    pub fn at_end_of(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Receiver,
            Direction::Reverse => Self::Sender,
        }
    }
}

/// The event that wakes one end of a flow.
pub(crate) fn wake_up(flow: u32, side: Side) -> Event {
    Event::Endpoint(2 * flow + side as u32)
}

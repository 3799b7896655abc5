//! Who watches a radio's interface and writes into what leaves it: router feedback.

use std::fmt;

use weir_units::Instant;

use weir_net::Backlog;
use weir_net::feedback::Occupancy;

/// Events that an observer of one node's interface receives. Times do not decrease from call to call.
pub trait Agent<P>: fmt::Debug + Send {
    /// The interface queue is handing a packet to the MAC, waiting for the medium included; or not.
    fn on_service(&mut self, _now: Instant, _state: Occupancy) {}

    /// The medium is sensed busy, reserved by the NAV, or used by the node itself; or not.
    fn on_medium(&mut self, _now: Instant, _state: Occupancy) {}

    /// A flow's parcel arrives at the interface queue behind `ahead`; it may yet be dropped.
    fn on_arrival(&mut self, _now: Instant, _parcel: &mut P, _ahead: Backlog) {}

    /// The MAC is done with a data frame, delivered or not, after this number of retries.
    fn on_frame(&mut self, _now: Instant, _retries: u32) {}

    /// A flow's parcel leaves the queue for the MAC: the moment to write into it.
    fn on_departure(&mut self, _now: Instant, _parcel: &mut P, _behind: Backlog) {}
}

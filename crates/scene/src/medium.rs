//! What lies between the two ends of a flow.

use weir_transport::Arrived;
use weir_units::Instant;

use crate::link::PacketLink;
use crate::packet::{Direction, Packet};
use crate::run_log::RunLog;
use crate::side::Side;

/// What the ends of a flow live in: it passes them the time, carries their packets and wakes them.
pub trait Medium {
    /// What its packets carry besides their description: nothing, or real bytes.
    type Load: Clone;

    /// The time.
    fn now(&self) -> Instant;

    /// Takes a packet from one end of its flow to the other.
    fn send(&mut self, packet: Packet);

    /// Wakes one end of `flow` at `at`. Nothing is ever cancelled: an end ignores a wake-up that it
    /// no longer waits for.
    fn wake(&mut self, at: Instant, flow: u32, side: Side);

    /// The link that a flow's sender puts its packets on.
    fn first_link(&mut self, flow: u32) -> &mut PacketLink<Self::Load>;

    /// Until when the sender of `flow` waits before it hands over another packet; `None` if it need
    /// not wait.
    fn sender_waits_until(&self, flow: u32) -> Option<Instant>;

    /// How many routers with a link that may be crowded lie on a packet's way.
    fn routers(&self, flow: u32, direction: Direction) -> u8;

    /// Checks that the payload of `packet`, which is being handed over, belongs where its receiver
    /// stores it.
    ///
    /// # Errors
    /// Says what does not.
    fn check_stored(&self, packet: &Packet, at: &Arrived) -> Result<(), String>;

    /// What is noted about the run.
    fn notes(&mut self) -> &mut RunLog;

    /// Records what happened to a flow just now.
    fn log(&mut self, flow: u32, kind: &'static str, detail: &str) {
        let now = self.now();
        self.notes().log.flow(now, flow, kind, detail);
    }
}

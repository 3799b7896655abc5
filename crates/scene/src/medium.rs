//! What lies between the two ends of a flow.

use weir_transport::Arrived;
use weir_units::Instant;
use weir_units::feedback::Telemetry;

use crate::check::check_placement;
use crate::link::PacketLink;
use crate::network::Network;
use crate::packet::{Direction, Load, Packet};
use crate::queue::EventQueue;
use crate::run_log::RunLog;
use crate::side::Side;

/// What the ends of a flow live in: it passes them the time, carries their packets and wakes them. Its links
/// are those of a [`Network`].
pub trait Medium {
    /// What holds the events of its network.
    type Queue: EventQueue;

    /// What its packets carry besides their description: nothing, or real bytes.
    type Load: Load;

    /// Its links.
    fn net(&self) -> &Network<Self::Queue, Self::Load>;

    /// Its links.
    fn net_mut(&mut self) -> &mut Network<Self::Queue, Self::Load>;

    /// Takes a packet from one end of its flow to the other.
    fn send(&mut self, packet: Packet);

    /// As [`send`](Self::send), with records of hops that the packet returns, where packets carry any.
    fn send_with(&mut self, packet: Packet, _records: &Telemetry) {
        self.send(packet);
    }

    /// The records of hops of the packet that is being handed over.
    fn records(&self) -> Option<Telemetry> {
        None
    }

    /// Wakes one end of `flow` at `at`. Nothing is ever cancelled: an end ignores a wake-up that it
    /// no longer waits for.
    fn wake(&mut self, at: Instant, flow: u32, side: Side);

    /// Checks that the payload of `packet`, which is being handed over, belongs where its receiver
    /// stores it: by its description, where there are no bytes.
    ///
    /// # Errors
    /// Says what does not.
    #[inline]
    fn check_stored(&self, packet: &Packet, at: &Arrived) -> Result<(), String> {
        check_placement(packet, at)
    }

    /// The time.
    #[inline]
    fn now(&self) -> Instant {
        self.net().now
    }

    /// The link that a flow's sender puts its packets on.
    fn first_link(&mut self, flow: u32) -> &mut PacketLink<Self::Load> {
        self.net_mut().entry(flow)
    }

    /// Until when the sender of `flow` waits before it hands over another packet; `None` if it need
    /// not wait.
    #[inline(always)]
    fn sender_waits_until(&self, flow: u32) -> Option<Instant> {
        self.net().entry_waits_until(flow)
    }

    /// How many routers with a link that may be crowded lie on a packet's way.
    fn routers(&self, flow: u32, direction: Direction) -> u8 {
        self.net().routers(flow, direction)
    }

    /// What is noted about the run.
    #[inline]
    fn notes(&mut self) -> &mut RunLog {
        &mut self.net_mut().notes
    }

    /// Records what happened to a flow just now.
    fn log(&mut self, flow: u32, kind: &'static str, detail: &str) {
        let now = self.now();
        self.notes().log.flow(now, flow, kind, detail);
    }
}

/// As without telemetry, but for each hop's record.
impl<Q: EventQueue> Medium for Network<Q, Telemetry> {
    type Queue = Q;
    type Load = Telemetry;

    fn net(&self) -> &Self {
        self
    }

    fn net_mut(&mut self) -> &mut Self {
        self
    }

    fn send(&mut self, packet: Packet) {
        self.forward(packet.with(Telemetry::default()));
    }

    fn send_with(&mut self, packet: Packet, records: &Telemetry) {
        self.forward(packet.with(*records));
    }

    fn records(&self) -> Option<Telemetry> {
        self.arrived
    }

    fn wake(&mut self, at: Instant, flow: u32, side: Side) {
        self.wake_end(at, flow, side);
    }
}

/// Packets that are only descriptions go straight onto their first link.
impl<Q: EventQueue> Medium for Network<Q> {
    type Queue = Q;
    type Load = ();

    #[inline(always)]
    fn net(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn net_mut(&mut self) -> &mut Self {
        self
    }

    #[inline(always)]
    fn send(&mut self, packet: Packet) {
        self.forward(packet);
    }

    #[inline]
    fn wake(&mut self, at: Instant, flow: u32, side: Side) {
        self.wake_end(at, flow, side);
    }
}

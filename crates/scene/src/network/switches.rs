//! Switches whose ports share memory.

use weir_units::{Bytes, Duration};

use super::Network;
use crate::packet::{Load, Packet};
use crate::queue::{EventQueue, PortEvent};

impl<Q: EventQueue, L: Load> Network<Q, L> {
    /// Puts a packet onto a link if the memory of its switch allows it.
    #[inline(never)]
    pub(super) fn offer_to_port(
        &mut self,
        index: u32,
        mut packet: Box<Packet<L>>,
        crossed: Option<u32>,
    ) {
        let Some(memory) = &mut self.memory else { return };
        let len = Bytes(u64::from(packet.ip_len));
        let way = (crossed, index);
        let sound = if memory.admits(self.now, &mut self.links, way, len) {
            self.links[index as usize].offer(self.now, packet, &mut self.news);
            memory.on_offered(self.now, &mut self.links, way, len)
        } else {
            self.links[index as usize].refuse(self.now, &mut packet, &mut self.news);
            self.spare.push(packet);
            memory.on_refused(crossed, index)
        };
        memory.take_due().for_each(|(at, event)| self.queue.push(at, event));
        if let Err(what) = sound {
            self.notes.violate(what);
        }
        self.settle(index);
    }

    /// Handles an event at the port of a link.
    #[inline(never)]
    pub fn on_port(&mut self, what: PortEvent, index: u32) {
        let Some(memory) = &mut self.memory else { return };
        memory.on_event(self.now, &mut self.links, what, index);
        memory.take_due().for_each(|(at, event)| self.queue.push(at, event));
        self.settle(index);
    }

    /// The links whose ports wait for each other in a cycle of pauses, once there is one. Nothing moves there
    /// any more.
    pub fn deadlock(&self) -> Option<&[u32]> {
        self.memory.as_ref().and_then(|memory| memory.deadlock())
    }

    /// Forgets what was measured of the memory of switches.
    pub(crate) fn restart_memory(&mut self) {
        if let Some(memory) = &mut self.memory {
            memory.restart(self.now);
        }
    }

    /// How often the port of a link paused, and how long in all; `None` where no port does.
    pub(crate) fn pauses(&self, index: u32) -> Option<(u64, Duration)> {
        self.memory.as_ref()?.pauses(self.now, index)
    }

    /// Says if the memory of a switch does not add up.
    ///
    /// # Errors
    /// Says which.
    pub fn check_memory(&mut self) -> Result<(), String> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        memory.check(self.now, &mut self.links)
    }
}

//! Memory of switches: what the keys `buffer` and `pfc` demand of each other, and what they describe.

use weir_scene::{BufferSpec, IP_HEADER, OnOff, PfcSpec, UDP_HEADER, Workload};
use weir_transport::Config;
use weir_units::Bytes;

use crate::buffer::Headroom;
use crate::direction::FULL_PACKET;
use crate::error::{Checked, require};
use crate::flow::{Flow, Protocol};
use crate::topology::Topology;

impl Topology {
    /// What the keys `buffer` and `pfc` demand of each other.
    pub(crate) fn check_buffer(&self) -> Checked {
        let Some(buffer) = &self.buffer else {
            let allowed = "switches need memory to share: set `buffer` as well";
            return require(!self.pfc, "topology.pfc".into(), self.pfc, allowed);
        };
        let headroom = buffer.headroom.map(|headroom| headroom.to_string());
        let reserve = buffer.reserve.map(|reserve| reserve.to_string());
        for (key, value) in [("headroom", headroom), ("reserve", reserve)] {
            let (key, unset) = (format!("topology.buffer.{key}"), value.is_none());
            require(self.pfc || unset, key, value.unwrap_or_default(), "it belongs to pfc = true")?;
        }
        Ok(())
    }

    /// The memory of switches between which these flows run.
    pub(crate) fn memory(&self, flows: &[&Flow]) -> Option<BufferSpec> {
        let buffer = self.buffer.as_ref()?;
        let headroom = match buffer.headroom {
            None | Some(Headroom::Auto) => None,
            Some(Headroom::Size(size)) => Some(size),
        };
        let longest = flows.iter().map(|flow| longest_packet(flow)).fold(FULL_PACKET, Bytes::max);
        let reserve = buffer.reserve.unwrap_or(USUAL_RESERVE);
        let pfc = self.pfc.then_some(PfcSpec { headroom, reserve, longest });
        Some(BufferSpec { total: buffer.total, alpha: buffer.alpha.0, pfc })
    }
}

/// At most so long are the packets of a flow, whatever options they have.
fn longest_packet(flow: &Flow) -> Bytes {
    let payload = u64::from(flow.mss.unwrap_or(Config::default().mss));
    let message = match (&flow.stack, flow.workload.model()) {
        (Protocol::Udp, Some(Workload::Rate { size, .. })) => size.get(),
        (Protocol::Udp, Some(Workload::OnOff(OnOff { size, .. }))) => size.get(),
        _ => 0,
    };
    match flow.stack {
        Protocol::Udp => Bytes(payload.max(message) + u64::from(IP_HEADER + UDP_HEADER)),
        _ => Bytes(payload + MOST_HEADERS),
    }
}

/// Two packets, as in HPCC's simulator.
const USUAL_RESERVE: Bytes = Bytes(4_000);
/// IP and TCP with every option, and what routers write into a packet.
const MOST_HEADERS: u64 = 128;

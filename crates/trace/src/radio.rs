//! Rows of the result tables about radio networks.

/// Table `nodes`: one row per node of a radio network, over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRow {
    /// The node.
    pub node: u32,
    /// Where it was at first.
    pub x_m: f64,
    /// Where it was at first.
    pub y_m: f64,
    /// Requests to send.
    pub rts: u64,
    /// Clearances to send.
    pub cts: u64,
    /// Data frames to one neighbour, repeats included.
    pub data_frames: u64,
    /// Acknowledgements of data frames.
    pub ack_frames: u64,
    /// Frames to all neighbours.
    pub broadcasts: u64,
    /// Frames to one neighbour that it could not read.
    pub lost_frames: u64,
    /// Receptions that ended with more than one frame lost.
    pub collisions: u64,
    /// RTS frames without a CTS.
    pub short_retries: u64,
    /// Data frames without an ACK.
    pub long_retries: u64,
    /// Share of the time in which it sent.
    pub airtime_ratio: f64,
    /// Share of the time in which its MAC found the medium busy, reserved, or used it.
    pub medium_busy_ratio: f64,
    /// Share of the time in which its MAC had a packet to send.
    pub service_busy_ratio: f64,
    /// The most packets that waited for its MAC.
    pub queue_packets_max: u64,
    /// Packets of flows that its interface queue marked (RED).
    pub marks: u64,
    /// Packets of flows that its interface queue was too full to take, or that RED dropped there.
    pub dropped_queue: u64,
    /// Packets of flows that its MAC gave up.
    pub dropped_mac: u64,
    /// Packets of flows for which no neighbour's address became known.
    pub dropped_arp: u64,
    /// Packets of flows without a route.
    pub dropped_no_route: u64,
    /// Packets of flows that had taken too many hops.
    pub dropped_ttl: u64,
    /// Packets of flows dropped because the buffer of packets that wait for a route was full.
    pub dropped_buffer: u64,
    /// Packets of flows lost at random.
    pub dropped_error: u64,
    /// Messages of routing protocols that went no further.
    pub dropped_messages: u64,
}

/// Table `frames`: one row per frame on the air, as many as the scenario asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameRow {
    /// When it began.
    pub t_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// The node that sent it.
    pub node: u32,
    /// Where that was.
    pub x_m: f64,
    /// Where that was.
    pub y_m: f64,
    /// How many packets waited for its MAC.
    pub waiting: u32,
    /// The node that was to read it; null for all.
    pub to: Option<u32>,
    /// `rts`, `cts`, `data`, `ack`, `broadcast`.
    pub kind: &'static str,
    /// The flow whose packet it carried or announced.
    pub flow: Option<u32>,
    /// Where that packet's data lies in the stream; null if it carries none, as acknowledgements.
    pub seq: Option<u64>,
    /// `forward` towards the flow's receiver, or `reverse`.
    pub direction: Option<&'static str>,
    /// The data rate adjustment index that the packet bore, this node's say included.
    pub mark: Option<u32>,
    /// How many of those that were to read it did; 0 if it was lost.
    pub readers: u32,
}

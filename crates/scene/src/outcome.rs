//! What a run leaves behind.

use weir_trace::{
    AckRow, ArrivalRow, EventRow, FlowRow, FrameRow, LinkRow, NodeRow, QueueRow, RequestRow,
    SampleRow, SummaryRow,
};

/// The rows of the result tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One row per flow, in the order of the description.
    pub flows: Vec<FlowRow>,
    /// One row per link, in the order of the description.
    pub links: Vec<LinkRow>,
    /// One row per node of a radio network.
    pub nodes: Vec<NodeRow>,
    /// Frames on the air.
    pub frames: Vec<FrameRow>,
    /// Flows sampled over time.
    pub samples: Vec<SampleRow>,
    /// What senders knew at each acknowledgement, by flow.
    pub acks: Vec<AckRow>,
    /// Monitored links sampled over time.
    pub queues: Vec<QueueRow>,
    /// Answered requests, by flow.
    pub requests: Vec<RequestRow>,
    /// Connections of flows of many, by flow.
    pub arrivals: Vec<ArrivalRow>,
    /// Single happenings.
    pub events: Vec<EventRow>,
    /// The run as a whole.
    pub summary: SummaryRow,
}

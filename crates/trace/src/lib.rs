//! What a run records: the rows of the result tables, histograms of delays, packet captures.
//!
//! Every world writes these rows. A field's name is its column's name, with the unit as suffix;
//! `Option` fields are nullable columns. Flows and links are referred to by their index in the
//! scenario; their names are in [`FlowRow`] and [`LinkRow`].

mod capture;
mod histogram;
mod pcapng;
mod radio;
mod rows;

pub use capture::{Capture, CaptureFile, Epoch};
pub use histogram::{Histogram, Spread};
pub use pcapng::{CapturedPacket, PcapngWriter};
pub use radio::{FrameRow, NodeRow};
pub use rows::{
    AckRow, ArrivalRow, EventRow, FlowRow, LinkRow, QueueRow, RequestRow, SampleRow, SummaryRow,
    jain_index, jain_of_sums,
};

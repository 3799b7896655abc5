//! Rows as flat arrays of numbers, which cross to JavaScript without a copy per value. What is unknown is NaN.

use weir_trace::{FrameRow, QueueRow, SampleRow};

/// Columns of a packet: flow, direction (0 forward, 1 reverse), kind, offset, payload bytes, IP bytes,
/// time sent in s.
pub const PACKET: usize = 7;
/// Columns of a packet's way over one link: link, packet, time of entry, of the end of waiting, and of
/// leaving in s, fate.
pub const CROSSING: usize = 6;
/// Columns of a SACK block: packet, first offset, offset after the last.
pub const SACK: usize = 3;
/// Columns of a sample of a flow: flow, time in s, cwnd, ssthresh and bytes in flight, smoothed and
/// newest RTT in ms, pacing rate and goodput in Mbit/s, segments sent again, bytes acknowledged, phase.
pub const SAMPLE: usize = 12;
/// Columns of a sample of a link: link, time in s, packets and bytes in the queue, delay in ms, drops,
/// marks, use since the sample before as a share.
pub const QUEUE: usize = 8;

/// Columns of a frame of a radio network: time of its begin and its end in s, its sender, where that was in m,
/// packets that waited there, receiver (unknown: all), kind (`FRAME_KINDS`), flow, offset, direction, mark,
/// number of nodes that read it.
pub const FRAME: usize = 13;
/// Kinds of frames by number.
const FRAME_KINDS: [&str; 5] = ["rts", "cts", "data", "ack", "broadcast"];

/// The columns of a sample; `phase` stands for its phase.
pub(crate) fn sample(row: &SampleRow, phase: usize) -> [f64; SAMPLE] {
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    [
        f64::from(row.flow),
        row.t_s,
        row.cwnd_bytes as f64,
        or_nan(row.ssthresh_bytes.map(|bytes| bytes as f64)),
        row.bytes_in_flight as f64,
        or_nan(row.srtt_ms),
        or_nan(row.rtt_ms),
        or_nan(row.pacing_mbps),
        row.goodput_mbps,
        row.retransmits as f64,
        row.acked_bytes as f64,
        phase as f64,
    ]
}

/// The columns of a queue's sample.
pub(crate) fn queue(row: &QueueRow) -> [f64; QUEUE] {
    [
        f64::from(row.link),
        row.t_s,
        row.packets as f64,
        row.bytes as f64,
        row.queue_delay_ms,
        row.drops as f64,
        row.marks as f64,
        row.utilisation.unwrap_or(f64::NAN),
    ]
}

/// The columns of a frame.
pub(crate) fn frame(row: &FrameRow) -> [f64; FRAME] {
    let or_nan = |value: Option<u32>| value.map_or(f64::NAN, f64::from);
    let kind = FRAME_KINDS.iter().position(|kind| *kind == row.kind);
    [
        row.t_s,
        row.end_s,
        f64::from(row.node),
        row.x_m,
        row.y_m,
        f64::from(row.waiting),
        or_nan(row.to),
        kind.map_or(f64::NAN, |kind| kind as f64),
        or_nan(row.flow),
        row.seq.map_or(f64::NAN, |offset| offset as f64),
        f64::from(u8::from(row.direction == Some("reverse"))),
        or_nan(row.mark),
        f64::from(row.readers),
    ]
}

//! Rows about nodes and frames.

use weir_radio::{DropReason, FrameKind, FrameRecord, NodeId, PacketClass, Position, RadioStats};
use weir_trace::{FrameRow, NodeRow};
use weir_units::{Duration, Instant};

/// What a node has done by `now`; `start` is where it was at first.
pub(super) fn node_row(node: NodeId, start: Position, stats: &RadioStats, now: Instant) -> NodeRow {
    let share = |time: Duration| match now.saturating_since(Instant::ZERO).as_secs_f64() {
        0.0 => 0.0,
        whole => time.as_secs_f64() / whole,
    };
    let dropped = |reason| stats.dropped(PacketClass::Parcel, reason);
    NodeRow {
        node: u32::from(node.0),
        x_m: start.x_mm as f64 / 1e3,
        y_m: start.y_mm as f64 / 1e3,
        rts: stats.rts,
        cts: stats.cts,
        data_frames: stats.data,
        ack_frames: stats.acks,
        broadcasts: stats.broadcasts,
        lost_frames: stats.lost,
        collisions: stats.collisions,
        short_retries: stats.short_retries,
        long_retries: stats.long_retries,
        airtime_ratio: share(stats.airtime),
        medium_busy_ratio: share(stats.medium_busy),
        service_busy_ratio: share(stats.service_busy),
        queue_packets_max: stats.queue_peak,
        marks: stats.marks,
        dropped_queue: dropped(DropReason::QueueFull),
        dropped_mac: dropped(DropReason::MacRetries),
        dropped_arp: dropped(DropReason::Arp),
        dropped_no_route: dropped(DropReason::NoRoute),
        dropped_ttl: dropped(DropReason::TtlExpired),
        dropped_buffer: dropped(DropReason::BufferFull),
        dropped_error: dropped(DropReason::FrameError),
        dropped_messages: DropReason::ALL
            .into_iter()
            .map(|reason| stats.dropped(PacketClass::Message, reason))
            .sum(),
    }
}

/// A frame that was on the air.
pub(super) fn frame_row(frame: &FrameRecord) -> FrameRow {
    let cargo = frame.cargo;
    FrameRow {
        t_s: frame.start.as_secs_f64(),
        end_s: frame.end.as_secs_f64(),
        node: u32::from(frame.node.0),
        x_m: frame.place.x_mm as f64 / 1e3,
        y_m: frame.place.y_mm as f64 / 1e3,
        waiting: frame.waiting,
        to: (!frame.to.is_broadcast()).then(|| u32::from(frame.to.0)),
        kind: match frame.kind {
            FrameKind::Rts => "rts",
            FrameKind::Cts => "cts",
            FrameKind::Data if frame.to.is_broadcast() => "broadcast",
            FrameKind::Data => "data",
            FrameKind::Ack => "ack",
        },
        flow: cargo.map(|cargo| cargo.flow),
        seq: cargo.and_then(|cargo| cargo.seq),
        direction: cargo.map(|cargo| if cargo.is_forward { "forward" } else { "reverse" }),
        mark: cargo.and_then(|cargo| cargo.mark).map(u32::from),
        readers: u32::from(frame.readers),
    }
}

/// A reason as tables name it.
pub(crate) fn reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue full",
        DropReason::MacRetries => "MAC gave up",
        DropReason::Arp => "no address",
        DropReason::NoRoute => "no route",
        DropReason::TtlExpired => "too many hops",
        DropReason::BufferFull => "buffer full",
        DropReason::FrameError => "frame error",
    }
}

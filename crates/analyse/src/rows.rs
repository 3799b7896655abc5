//! The rows of the tables. A field's name is its column's name, with the unit as suffix.

use crate::connection::{CapturePoint, Connection};
use crate::expert::ExpertCounts;
use crate::identify::{Evidence, Identity};
use crate::limits::{Limit, Limits};
use crate::points::Points;
use crate::sender::{Counts, Measured, Sender, Slice};

/// Whether the packets of connections have rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packets {
    /// They have none, which takes less memory.
    #[default]
    Dropped,
    /// The first 65,536 of a direction have.
    Kept,
}

/// A connection and what was measured of its sender: the end that sent more data.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ConnectionRow {
    pub connection: u32,
    pub file: String,
    pub source: &'static str,
    pub interface: u32,
    pub client: String,
    pub server: String,
    pub sender: &'static str,
    pub capture_point: &'static str,
    pub has_handshake: bool,
    pub start_s: f64,
    pub duration_s: f64,
    pub packets: u64,
    pub data_packets: u64,
    pub sent_bytes: u64,
    pub delivered_bytes: u64,
    pub reverse_bytes: u64,
    pub unseen_bytes: u64,
    pub goodput_mbps: Option<f64>,
    pub mss_bytes: u32,
    pub header_bytes: u32,
    pub merged_packets: u64,
    pub handshake_rtt_ms: Option<f64>,
    pub rtt_ms_min: Option<f64>,
    pub rtt_ms_mean: Option<f64>,
    pub rtt_ms_p50: Option<f64>,
    pub rtt_ms_p95: Option<f64>,
    pub rtt_ms_max: Option<f64>,
    pub rtt_samples: u64,
    pub queue_delay_ms_p50: Option<f64>,
    pub queue_delay_ms_p95: Option<f64>,
    pub flight_bytes_max: u64,
    pub window_bytes_min: Option<u64>,
    pub window_bytes_max: Option<u64>,
    pub cwnd_bytes_max: Option<u64>,
    pub retransmits: u64,
    pub retransmits_fast: u64,
    pub retransmits_rto: u64,
    pub retransmits_tlp: u64,
    pub retransmits_spurious: u64,
    pub retransmitted_bytes: u64,
    pub timeouts: u64,
    pub lost_upstream: u64,
    pub reordered: u64,
    pub acks: u64,
    pub ack_bytes_mean: Option<f64>,
    pub paced_ratio: Option<f64>,
    pub dup_acks: u64,
    pub zero_windows: u64,
    pub duplicate_packets: u64,
    pub time_reversals: u64,
    pub limit: Option<&'static str>,
    pub limit_note: Option<&'static str>,
    pub limited_application: Option<f64>,
    pub limited_receiver_window: Option<f64>,
    pub limited_send_buffer: Option<f64>,
    pub limited_slow_start: Option<f64>,
    pub limited_congestion: Option<f64>,
    pub limited_random_loss: Option<f64>,
    pub limited_policer: Option<f64>,
    pub limited_path_capacity: Option<f64>,
    pub limited_no_answer: Option<f64>,
    pub limited_unknown: Option<f64>,
    pub capacity_mbps: Option<f64>,
    pub policer_mbps: Option<f64>,
    pub policer_burst_bytes: Option<u64>,
    pub policer_bucket_bytes: Option<u64>,
    pub controller: Option<String>,
    pub controller_confidence: Option<f64>,
    pub controller_candidates: Option<String>,
    pub controller_note: Option<&'static str>,
    pub tshark_retransmission: u64,
    pub tshark_fast_retransmission: u64,
    pub tshark_spurious_retransmission: u64,
    pub tshark_out_of_order: u64,
    pub tshark_duplicate_ack: u64,
    pub tshark_lost_segment: u64,
    pub tshark_zero_window: u64,
    pub tshark_window_full: u64,
    pub tshark_keep_alive: u64,
}

/// A slice of a connection's time.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct SliceRow {
    pub connection: u32,
    pub t_s: f64,
    pub end_s: f64,
    pub sent_mbps: f64,
    pub goodput_mbps: f64,
    pub flight_bytes_max: u64,
    pub window_bytes_min: Option<u64>,
    pub rtt_ms_min: Option<f64>,
    pub rtt_ms_max: Option<f64>,
    pub srtt_ms: Option<f64>,
    pub cwnd_bytes_max: Option<u64>,
    pub retransmits: u32,
    pub limit: &'static str,
}

/// A point of a time-sequence diagram.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PointRow {
    pub connection: u32,
    pub t_s: f64,
    pub start_bytes: u64,
    pub end_bytes: u64,
    pub kind: &'static str,
}

/// A data packet, in the order in which its sender sent it.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PacketRow {
    pub connection: u32,
    pub t_s: f64,
    pub payload_bytes: u32,
    pub rtt_ms: Option<f64>,
    pub is_lost: bool,
}

/// The rows of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) connection: ConnectionRow,
    pub(crate) slices: Vec<SliceRow>,
    pub(crate) points: Vec<PointRow>,
    pub(crate) packets: Vec<PacketRow>,
    pub(crate) evidence: Option<Evidence>,
}

impl Rows {
    /// The rows of a connection that is over, those of its packets only if they are wanted.
    pub(crate) fn of(connection: &mut Connection, file: &str, packets: Packets) -> Self {
        let side = connection.sending_side();
        let evidence = connection.sender(side).is_some().then(|| connection.take_evidence(side));
        let connection = &*connection;
        let measured = connection.sender(side).map(Sender::measured);
        let mss = connection.mss(side);
        let note = limit_note(connection, side);
        let limits = measured.filter(|_| note.is_none()).map(|seen| Limits::of(seen, mss));
        let row = connection_row(connection, side, measured, limits.as_ref(), file);
        Self {
            connection: with_note(row, note),
            slices: measured
                .map_or_else(Vec::new, |seen| slice_rows(seen, limits.as_ref(), connection.first)),
            points: point_rows(connection.points(side), connection.first),
            packets: match (packets, measured) {
                (Packets::Kept, Some(measured)) => packet_rows(measured, connection.first),
                _ => Vec::new(),
            },
            evidence,
        }
    }

    /// Bytes that the evidence takes, about.
    pub(crate) fn evidence_memory(&self) -> usize {
        self.evidence.as_ref().map_or(0, |evidence| evidence.history.memory())
    }

    /// The rows of a connection whose own log was read; `row` has what is not in `measured`.
    pub(crate) fn of_log(row: ConnectionRow, measured: &Measured, points: &Points) -> Self {
        let limits = Limits::of(measured, row.mss_bytes);
        let first = measured.slices.start();
        Self {
            slices: slice_rows(measured, Some(&limits), first),
            points: point_rows(points, first),
            packets: Vec::new(),
            evidence: None,
            connection: with_measured(row, measured, Some(&limits)),
        }
    }

    /// The same without limits and round trips, of which `note` says why they are unknown.
    pub(crate) fn without_limits(self, note: &'static str) -> Self {
        let row = self.connection;
        let row = ConnectionRow {
            limit: None,
            limited_application: None,
            limited_receiver_window: None,
            limited_send_buffer: None,
            limited_slow_start: None,
            limited_congestion: None,
            limited_random_loss: None,
            limited_policer: None,
            limited_path_capacity: None,
            limited_no_answer: None,
            limited_unknown: None,
            capacity_mbps: None,
            ..row
        };
        let slices = self.slices.into_iter().map(|slice| SliceRow { limit: UNKNOWN, ..slice });
        let slices = slices.collect();
        Self { connection: with_note(row, Some(note)), slices, ..self }
    }

    /// Looks for the congestion control, if there is evidence.
    pub(crate) fn identify(&mut self) {
        let Some(evidence) = self.evidence.take() else { return };
        let row = &mut self.connection;
        let Identity { class, confidence, errors, reason } = if window_limited_too_little(row) {
            Identity::unknown(Vec::new(), "the congestion window limited too little of it")
        } else {
            evidence.identify()
        };
        row.controller = Some(if class.is_empty() { "unknown".into() } else { class.join(", ") });
        row.controller_confidence = confidence;
        row.controller_note = reason;
        let candidate = |(name, error): &(&str, f64)| format!("{name} {error:.4}");
        let candidates: Vec<String> = errors.iter().map(candidate).collect();
        row.controller_candidates = (!candidates.is_empty()).then(|| candidates.join(", "));
    }

    /// Gives all rows the number of the connection.
    pub(crate) fn number(&mut self, number: u32) {
        self.connection.connection = number;
        self.slices.iter_mut().for_each(|row| row.connection = number);
        self.points.iter_mut().for_each(|row| row.connection = number);
        self.packets.iter_mut().for_each(|row| row.connection = number);
    }
}

/// Why nothing says what limited the sender.
fn limit_note(connection: &Connection, side: usize) -> Option<&'static str> {
    if connection.sender(side).is_some() && connection.is_one_way(side) {
        return Some("only one direction was captured: nothing shows what was acknowledged");
    }
    let is_at_receiver = connection.capture_point(side) == CapturePoint::Receiver;
    (is_at_receiver && connection.handshake_rtt().is_none()).then_some(
        "it was captured at the receiver without a handshake: nothing shows when acknowledgements reached the sender",
    )
}

/// A row without what depends on the times at the sender, if a note says why they are unknown.
fn with_note(row: ConnectionRow, note: Option<&'static str>) -> ConnectionRow {
    if note.is_none() {
        return row;
    }
    let is_one_way = row.acks == 0;
    ConnectionRow {
        limit_note: note,
        goodput_mbps: row.goodput_mbps.filter(|_| !is_one_way),
        rtt_ms_min: None,
        rtt_ms_mean: None,
        rtt_ms_p50: None,
        rtt_ms_p95: None,
        rtt_ms_max: None,
        rtt_samples: 0,
        queue_delay_ms_p50: None,
        queue_delay_ms_p95: None,
        paced_ratio: None,
        ..row
    }
}

/// Whether something else than the congestion window held the sender most of its time, or too few round trips are left.
fn window_limited_too_little(row: &ConnectionRow) -> bool {
    let held = [row.limited_application, row.limited_receiver_window, row.limited_no_answer];
    let held: f64 = held.into_iter().flatten().sum();
    let left_ms = row.duration_s * 1e3 * (1.0 - held);
    let rounds = row.rtt_ms_p50.or(row.rtt_ms_min).map(|rtt| left_ms / rtt.max(1e-3));
    held > MOST_HELD || rounds.is_none_or(|rounds| rounds < FEWEST_ROUNDS)
}

fn connection_row(
    connection: &Connection,
    side: usize,
    measured: Option<&Measured>,
    limits: Option<&Limits>,
    file: &str,
) -> ConnectionRow {
    let reverse = connection.sender(1 - side).map_or(0, |sender| sender.counts().bytes);
    let expert: ExpertCounts = connection.expert();
    let row = ConnectionRow {
        file: file.to_owned(),
        source: "capture",
        interface: connection.interface,
        client: connection.ends[0].to_string(),
        server: connection.ends[1].to_string(),
        sender: if side == 0 { "client" } else { "server" },
        capture_point: connection.capture_point(side).name(),
        has_handshake: connection.has_handshake(),
        start_s: seconds(connection.first),
        duration_s: seconds(connection.last - connection.first),
        packets: connection.packets,
        reverse_bytes: reverse,
        mss_bytes: connection.mss(side),
        header_bytes: connection.header(side),
        handshake_rtt_ms: connection.handshake_rtt().map(millis),
        goodput_mbps: measured.and_then(|measured| {
            goodput(measured, connection.last.saturating_sub(measured.slices.start()))
        }),
        duplicate_packets: connection.duplicates,
        time_reversals: connection.time_reversals,
        tshark_retransmission: expert.retransmissions,
        tshark_fast_retransmission: expert.fast_retransmissions,
        tshark_spurious_retransmission: expert.spurious_retransmissions,
        tshark_out_of_order: expert.out_of_order,
        tshark_duplicate_ack: expert.duplicate_acks,
        tshark_lost_segment: expert.previous_not_captured,
        tshark_zero_window: expert.zero_windows,
        tshark_window_full: expert.window_full,
        tshark_keep_alive: expert.keep_alives,
        ..ConnectionRow::default()
    };
    match measured {
        Some(measured) => with_measured(row, measured, limits),
        None => row,
    }
}

/// Delivered bytes over `duration`, in Mbit/s.
pub(crate) fn goodput(measured: &Measured, duration: u64) -> Option<f64> {
    let bytes = measured.counts.delivered as f64;
    (duration > 0).then(|| mbps(bytes / seconds(duration)))
}

/// `row` with the columns of what was measured of the sender.
fn with_measured(
    row: ConnectionRow,
    measured: &Measured,
    limits: Option<&Limits>,
) -> ConnectionRow {
    let counts: &Counts = &measured.counts;
    let rtt = measured.rtts.spread();
    let shares = limits.and_then(shares);
    let share = |limit: Limit| shares.map(|shares| shares[limit as usize]);
    let policer = limits.and_then(|limits| limits.policer);
    let retransmits = counts.retransmits();
    ConnectionRow {
        data_packets: counts.packets,
        sent_bytes: counts.bytes,
        delivered_bytes: counts.delivered,
        unseen_bytes: counts.unseen,
        merged_packets: counts.merged,
        rtt_ms_min: rtt.min_ms,
        rtt_ms_mean: rtt.mean_ms,
        rtt_ms_p50: rtt.p50_ms,
        rtt_ms_p95: rtt.p95_ms,
        rtt_ms_max: rtt.max_ms,
        rtt_samples: rtt.samples,
        queue_delay_ms_p50: above(rtt.p50_ms, rtt.min_ms),
        queue_delay_ms_p95: above(rtt.p95_ms, rtt.min_ms),
        flight_bytes_max: counts.flight_max,
        window_bytes_min: counts.window_min,
        window_bytes_max: counts.window_min.map(|_| counts.window_max),
        retransmits,
        retransmits_fast: counts.fast,
        retransmits_rto: counts.timeout,
        retransmits_tlp: counts.tail_probe,
        retransmits_spurious: counts.spurious.min(retransmits),
        retransmitted_bytes: counts.repeated_bytes,
        timeouts: counts.timeouts,
        lost_upstream: counts.lost_upstream,
        reordered: counts.reordered,
        acks: counts.acks,
        ack_bytes_mean: ratio(counts.delivered, counts.acks),
        paced_ratio: ratio(counts.wide_gaps, counts.gaps).filter(|_| row.capture_point == "sender"),
        dup_acks: counts.dup_acks,
        zero_windows: counts.zero_windows,
        limit: limits.and_then(Limits::largest).map(Limit::name),
        limited_application: share(Limit::Application),
        limited_receiver_window: share(Limit::ReceiverWindow),
        limited_send_buffer: share(Limit::SendBuffer),
        limited_slow_start: share(Limit::SlowStart),
        limited_congestion: share(Limit::Congestion),
        limited_random_loss: share(Limit::RandomLoss),
        limited_policer: share(Limit::Policer),
        limited_path_capacity: share(Limit::PathCapacity),
        limited_no_answer: share(Limit::NoAnswer),
        limited_unknown: share(Limit::Unknown),
        capacity_mbps: limits.and_then(|limits| limits.capacity).map(mbps),
        policer_mbps: policer.map(|policer| mbps(policer.rate)),
        policer_burst_bytes: policer.map(|policer| policer.burst),
        policer_bucket_bytes: policer.map(|policer| policer.bucket),
        ..row
    }
}

fn above(value: Option<f64>, least: Option<f64>) -> Option<f64> {
    Some(value? - least?)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The times of all limits as shares of their sum.
fn shares(limits: &Limits) -> Option<[f64; 10]> {
    let sum: u64 = limits.times.iter().sum();
    (sum > 0).then(|| limits.times.map(|time| time as f64 / sum as f64))
}

fn slice_rows(measured: &Measured, limits: Option<&Limits>, first: u64) -> Vec<SliceRow> {
    let slices = &measured.slices;
    let width = seconds(slices.width());
    let row = |(at, slice): (usize, &Slice)| {
        let limit = limits.and_then(|limits| limits.slices.get(at)).unwrap_or(&Limit::Unknown);
        let start = slices.start() + at as u64 * slices.width();
        let t_s = seconds(start - first);
        SliceRow {
            connection: 0,
            t_s,
            end_s: t_s + width,
            sent_mbps: mbps(slice.sent as f64 / width),
            goodput_mbps: mbps(slice.delivered as f64 / width),
            flight_bytes_max: slice.flight_max,
            window_bytes_min: slice.receive_window,
            rtt_ms_min: slice.rtt_min.map(millis),
            rtt_ms_max: slice.rtt_max.map(millis),
            srtt_ms: slice.srtt.map(millis),
            cwnd_bytes_max: slice.cwnd,
            retransmits: slice.repeats,
            limit: limit.name(),
        }
    };
    slices.list().iter().enumerate().map(row).collect()
}

fn point_rows(points: &Points, first: u64) -> Vec<PointRow> {
    let points = points.list().iter();
    points
        .map(|point| PointRow {
            connection: 0,
            t_s: seconds(point.time - first),
            start_bytes: point.start.max(0) as u64,
            end_bytes: point.end.max(0) as u64,
            kind: point.kind.name(),
        })
        .collect()
}

fn packet_rows(measured: &Measured, first: u64) -> Vec<PacketRow> {
    let passed = measured.passed.iter();
    passed
        .map(|packet| PacketRow {
            connection: 0,
            t_s: seconds(packet.time - first),
            payload_bytes: packet.len,
            rtt_ms: packet.rtt.map(|micros| f64::from(micros) / 1e3),
            is_lost: packet.is_lost,
        })
        .collect()
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn mbps(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1e6
}

const UNKNOWN: &str = "unknown";
/// Share of the time that something else than the congestion window may hold a sender whose congestion control is looked for.
const MOST_HELD: f64 = 0.5;
/// Round trips in which the window must hold it.
const FEWEST_ROUNDS: f64 = 10.0;

//! Packet captures in, tables out.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use weir_analyse::{
    CaptureCounts, ConnectionRow, PacketRow, PointRow, ReadError, Reading, SentPacket, SliceRow,
    UdpRow, Unread,
};

use crate::table::Table;

/// The tables of captures.
#[pyclass(frozen, module = "weir._native")]
pub(crate) struct CaptureTables {
    tables: [weir_lab::Table; 5],
    counts: CaptureCounts,
    /// Why files were not read to their ends.
    warnings: Vec<String>,
}

#[pymethods]
impl CaptureTables {
    /// The table called `name`: `connections`, `slices`, `points`, `packets` or `udp_flows`.
    fn table(&self, name: &str) -> PyResult<Table> {
        let found = self.tables.iter().find(|table| table.name == name);
        let found = found.map(|table| Table::new(table.batch.clone()));
        found.ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// What the captures contain, by name.
    #[getter]
    fn counts(&self) -> Vec<(&'static str, u64)> {
        let CaptureCounts {
            packets,
            tcp_packets,
            udp_packets,
            udp_bytes,
            dropped_udp_flows,
            other_packets,
            fragments,
            unread: _,
            copies,
            clock_steps,
            unknown_link_packets,
            damaged_packets,
            dropped_packets,
            log_events,
            dropped_connections,
            evicted_connections,
        } = &self.counts;
        let all = [
            ("packets", packets),
            ("tcp_packets", tcp_packets),
            ("udp_packets", udp_packets),
            ("udp_bytes", udp_bytes),
            ("dropped_udp_flows", dropped_udp_flows),
            ("other_packets", other_packets),
            ("fragments", fragments),
            ("copies", copies),
            ("clock_steps", clock_steps),
            ("unknown_link_packets", unknown_link_packets),
            ("damaged_packets", damaged_packets),
            ("dropped_packets", dropped_packets),
            ("log_events", log_events),
            ("dropped_connections", dropped_connections),
            ("evicted_connections", evicted_connections),
        ];
        all.map(|(name, count)| (name, *count)).to_vec()
    }

    /// What the captures have that is not read, and how often.
    #[getter]
    fn unread(&self) -> Vec<(String, u64)> {
        self.counts.unread.named()
    }

    /// Packets of which too little was kept to read them.
    #[getter]
    fn short_packets(&self) -> u64 {
        self.counts.unread.of(Unread::Short)
    }

    /// Why files were not read to their ends.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// Looks for a policer in the packets of a flow as its sender knows them: time in nanoseconds, bytes, RTT in microseconds,
/// whether it was lost. Returns its rate in bits per second, the bytes before the first loss, and those of its bucket.
#[pyfunction]
pub(crate) fn find_policer(sent: Vec<(u64, u32, Option<u32>, bool)>) -> Option<(f64, u64, u64)> {
    let sent = sent.into_iter();
    let sent: Vec<SentPacket> =
        sent.map(|(time, len, rtt, is_lost)| SentPacket { time, len, rtt, is_lost }).collect();
    weir_analyse::find_policer(&sent).map(|(rate, burst, bucket)| (rate * 8.0, burst, bucket))
}

/// Bytes of a token bucket of `rate`, in bits per second, that these packets emptied: times in nanoseconds and bytes.
#[pyfunction]
pub(crate) fn bucket_size(packets: Vec<(u64, u32)>, rate: f64, end: u64) -> f64 {
    weir_analyse::bucket_size(packets, rate / 8.0, end)
}

/// Reads captures, each with its name; with `packets` the data packets have a table too. Other Python threads go on meanwhile.
#[pyfunction]
#[pyo3(signature = (files, *, packets = false))]
pub(crate) fn read_captures(
    py: Python<'_>,
    files: Vec<(String, PathBuf)>,
    packets: bool,
) -> PyResult<CaptureTables> {
    let reading = Reading::default();
    let mut reading = if packets { reading.keeping_packets() } else { reading };
    let mut warnings = Vec::new();
    for (name, path) in files {
        let mut signal = None;
        let watch = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                signal = Some(error);
                ControlFlow::Break(())
            }
        };
        let read = py.detach(|| {
            let file = File::open(&path)?;
            reading.read(&name, file, watch)
        });
        if let Some(signal) = signal {
            return Err(signal);
        }
        match read {
            Ok(None) => {}
            Ok(Some(cut)) => warnings.push(format!("{name}: {cut}")),
            Err(ReadError::Io(error)) => {
                return Err(PyOSError::new_err((error.raw_os_error(), error.to_string(), name)));
            }
            Err(error) => return Err(PyValueError::new_err(format!("{name}: {error}"))),
        }
    }
    let tables = py.detach(|| reading.finish());
    Ok(CaptureTables {
        tables: [
            connections(&tables.connections),
            slices(&tables.slices),
            points(&tables.points),
            data_packets(&tables.packets),
            udp_flows(&tables.udp_flows),
        ],
        counts: tables.counts,
        warnings,
    })
}

weir_lab::table!(
    connections,
    "connections",
    ConnectionRow {
        connection,
        file,
        source,
        interface,
        client,
        server,
        sender,
        capture_point,
        has_handshake,
        start_s,
        duration_s,
        packets,
        data_packets,
        sent_bytes,
        delivered_bytes,
        reverse_bytes,
        unseen_bytes,
        goodput_mbps,
        mss_bytes,
        header_bytes,
        merged_packets,
        handshake_rtt_ms,
        rtt_ms_min,
        rtt_ms_mean,
        rtt_ms_p50,
        rtt_ms_p95,
        rtt_ms_max,
        rtt_samples,
        queue_delay_ms_p50,
        queue_delay_ms_p95,
        flight_bytes_max,
        window_bytes_min,
        window_bytes_max,
        cwnd_bytes_max,
        retransmits,
        retransmits_fast,
        retransmits_rto,
        retransmits_tlp,
        retransmits_spurious,
        retransmitted_bytes,
        timeouts,
        lost_upstream,
        reordered,
        acks,
        ack_bytes_mean,
        paced_ratio,
        dup_acks,
        zero_windows,
        duplicate_packets,
        time_reversals,
        limit,
        limit_note,
        limited_application,
        limited_receiver_window,
        limited_send_buffer,
        limited_slow_start,
        limited_congestion,
        limited_random_loss,
        limited_policer,
        limited_path_capacity,
        limited_no_answer,
        limited_unknown,
        capacity_mbps,
        policer_mbps,
        policer_burst_bytes,
        policer_bucket_bytes,
        controller,
        controller_confidence,
        controller_candidates,
        controller_note,
        tshark_retransmission,
        tshark_fast_retransmission,
        tshark_spurious_retransmission,
        tshark_out_of_order,
        tshark_duplicate_ack,
        tshark_lost_segment,
        tshark_zero_window,
        tshark_window_full,
        tshark_keep_alive,
    }
);

weir_lab::table!(
    slices,
    "slices",
    SliceRow {
        connection,
        t_s,
        end_s,
        sent_mbps,
        goodput_mbps,
        flight_bytes_max,
        window_bytes_min,
        rtt_ms_min,
        rtt_ms_max,
        srtt_ms,
        cwnd_bytes_max,
        retransmits,
        limit,
    }
);

weir_lab::table!(
    data_packets,
    "packets",
    PacketRow { connection, t_s, payload_bytes, rtt_ms, is_lost }
);

weir_lab::table!(points, "points", PointRow { connection, t_s, start_bytes, end_bytes, kind });

weir_lab::table!(
    udp_flows,
    "udp_flows",
    UdpRow {
        flow,
        file,
        interface,
        client,
        server,
        protocol,
        start_s,
        duration_s,
        client_packets,
        client_bytes,
        client_mbps,
        server_packets,
        server_bytes,
        server_mbps,
        datagram_bytes_max,
        first_answer_ms,
        spin_rtt_ms_min,
        spin_rtt_ms_p50,
        spin_samples,
    }
);

//! The result tables as Arrow record batches. A column has the name and type of its field in
//! [`weir_trace`]: that is where the schema is defined, and this file fails to compile when a field
//! has no column.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use weir_trace::{
    AckRow, ArrivalRow, EventRow, FlowRow, FrameRow, LinkRow, NodeRow, QueueRow, RequestRow,
    SampleRow, SummaryRow,
};

/// A result table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its rows.
    pub batch: RecordBatch,
}

/// The columns by their names, each as the name of its type in Arrow and its cells. Every number can be read back exactly.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schema = self.batch.schema();
        let mut map = serializer.serialize_map(Some(schema.fields().len()))?;
        for (field, array) in schema.fields().iter().zip(self.batch.columns()) {
            map.serialize_entry(field.name(), &(field.data_type().to_string(), Cells(array)))?;
        }
        map.end()
    }
}

/// The cells of a column.
struct Cells<'a>(&'a ArrayRef);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.data_type() {
            DataType::Boolean => serializer.collect_seq(self.0.as_boolean()),
            DataType::UInt32 => serializer.collect_seq(self.0.as_primitive::<UInt32Type>()),
            DataType::UInt64 => serializer.collect_seq(self.0.as_primitive::<UInt64Type>()),
            DataType::Float64 => serializer.collect_seq(self.0.as_primitive::<Float64Type>()),
            _ => serializer.collect_seq(self.0.as_string::<i32>()),
        }
    }
}

/// Columns with their names and types.
pub type Columns = Vec<(Field, ArrayRef)>;

/// A type that a column may have.
pub trait Cell: Sized {
    /// Its type in Arrow.
    const TYPE: DataType;
    /// Whether it may be missing.
    const NULLABLE: bool = false;
    /// A column of them. It is compiled once per type, not once per column.
    fn array(cells: &mut dyn Iterator<Item = Self>) -> ArrayRef;
}

macro_rules! cells {
    ($($type:ty, $data:ident, $array:ty;)*) => {$(
        impl Cell for $type {
            const TYPE: DataType = DataType::$data;
            fn array(cells: &mut dyn Iterator<Item = Self>) -> ArrayRef {
                Arc::new(cells.map(Some).collect::<$array>())
            }
        }

        impl Cell for Option<$type> {
            const TYPE: DataType = DataType::$data;
            const NULLABLE: bool = true;
            fn array(cells: &mut dyn Iterator<Item = Self>) -> ArrayRef {
                Arc::new(cells.collect::<$array>())
            }
        }
    )*};
}

cells! {
    bool, Boolean, BooleanArray;
    u32, UInt32, PrimitiveArray<UInt32Type>;
    u64, UInt64, PrimitiveArray<UInt64Type>;
    f64, Float64, PrimitiveArray<Float64Type>;
    String, Utf8, StringArray;
    &'static str, Utf8, StringArray;
}

/// Makes the function that turns rows into a table, from the list of columns.
#[macro_export]
macro_rules! table {
    ($function:ident, $name:literal, $row:ident { $($column:ident),* $(,)? } $(and $named:ident)?) => {
        pub(crate) fn $function(rows: &[$row]) -> $crate::Table {
            // Names every field, so that one without a column does not compile.
            let complete = |row: $row| { let $row { $($column: _,)* $($named: _)? } = row; };
            let _ = complete;
            let columns = vec![
                $( $crate::column(stringify!($column), rows.iter().map(|row| row.$column.clone())), )*
            ];
            let named: Vec<$crate::Columns> =
                vec![$( $crate::named_columns(stringify!($named), rows, |row| &row.$named) )?];
            $crate::assemble($name, columns.into_iter().chain(named.into_iter().flatten()).collect())
        }
    };
}

table!(
    flows,
    "flows",
    FlowRow {
        flow,
        name,
        stack,
        start_s,
        end_s,
        fct_s,
        slowdown,
        completed,
        failure,
        delivered_bytes,
        goodput_mbps,
        throughput_mbps,
        share,
        sent_segments,
        sent_bytes,
        retransmits,
        retransmits_fast,
        retransmits_rto,
        retransmits_tlp,
        retransmits_spurious,
        retransmit_ratio,
        loss_ratio,
        timeouts,
        rtt_ms_mean,
        rtt_ms_p50,
        rtt_ms_p95,
        rtt_ms_p99,
        rtt_ms_min,
        rtt_ms_max,
        rtt_samples,
        delay_ms_mean,
        delay_ms_p50,
        delay_ms_p95,
        delay_ms_p99,
        delay_ms_max,
        hops_mean,
        route_changes,
        from_node,
        to_node,
        queue_delay_ms_mean,
        queue_delay_ms_p50,
        queue_delay_ms_p95,
        queue_delay_ms_p99,
        queue_delay_ms_max,
        queue_delay_samples,
        requests,
        requests_kept,
        requests_unanswered,
        request_latency_ms_mean,
        request_latency_ms_p50,
        request_latency_ms_p90,
        request_latency_ms_p99,
        request_latency_ms_p999,
        request_latency_ms_max,
        cwnd_bytes_mean,
        cwnd_bytes_max,
        time_cwnd_limited_s,
        time_rwnd_limited_s,
        time_app_limited_s,
        time_rto_s,
    }
);

table!(
    samples,
    "samples",
    SampleRow {
        flow,
        t_s,
        cwnd_bytes,
        ssthresh_bytes,
        bytes_in_flight,
        srtt_ms,
        rtt_ms,
        rttvar_ms,
        rto_ms,
        pacing_mbps,
        delivery_mbps,
        goodput_mbps,
        retransmits,
        acked_bytes,
        time_busy_s,
        time_rwnd_limited_s,
        time_sndbuf_limited_s,
        state,
        phase,
    }
    and cc
);

table!(acks, "acks", AckRow { flow, t_s, acked_bytes, cwnd_bytes, ssthresh_bytes, srtt_ms });

table!(
    queues,
    "queues",
    QueueRow { link, t_s, packets, bytes, queue_delay_ms, drops, marks, utilisation }
);

table!(
    links,
    "links",
    LinkRow {
        link,
        name,
        monitored,
        capacity_mbps,
        utilisation,
        offered_packets,
        delivered_packets,
        delivered_bytes,
        dropped_queue,
        dropped_buffer,
        dropped_loss,
        dropped_aqm,
        dropped_policer,
        marked,
        corrupted,
        duplicated,
        reordered,
        queue_packets_mean,
        queue_packets_max,
        queue_delay_ms_mean,
        queue_delay_ms_p50,
        queue_delay_ms_p95,
        queue_delay_ms_p99,
        queue_delay_ms_max,
        pauses,
        paused_ratio,
    }
);

table!(
    nodes,
    "nodes",
    NodeRow {
        node,
        x_m,
        y_m,
        rts,
        cts,
        data_frames,
        ack_frames,
        broadcasts,
        lost_frames,
        collisions,
        short_retries,
        long_retries,
        airtime_ratio,
        medium_busy_ratio,
        service_busy_ratio,
        queue_packets_max,
        marks,
        dropped_queue,
        dropped_mac,
        dropped_arp,
        dropped_no_route,
        dropped_ttl,
        dropped_buffer,
        dropped_error,
        dropped_messages,
    }
);

table!(
    frames,
    "frames",
    FrameRow { t_s, end_s, node, x_m, y_m, waiting, to, kind, flow, seq, direction, mark, readers }
);

table!(requests, "requests", RequestRow { flow, request, t_s, latency_ms });

table!(
    arrivals,
    "arrivals",
    ArrivalRow {
        flow,
        arrival,
        from_node,
        to_node,
        start_s,
        size_bytes,
        fct_s,
        slowdown,
        slowdown_hpcc,
        completed,
        delivered_bytes,
        retransmits,
        timeouts,
        failure,
    }
);

table!(events, "events", EventRow { t_s, flow, link, kind, seq, len, detail });

/// The one row about the run as a whole. The hash is text, since few programs keep 64 bits exactly.
pub(crate) fn summary(row: &SummaryRow) -> Table {
    let SummaryRow {
        jain_index,
        utilisation,
        goodput_mbps,
        throughput_mbps,
        events,
        data_packets,
        trace_hash,
        sim_s,
        deadlock,
        health,
        late_ms_p50,
        late_ms_p99,
        late_ms_max,
        on_time_ratio,
        unasked_drops,
        cpu_ratio,
        settings,
    } = row;
    let hash = format!("{trace_hash:016x}");
    let columns = vec![
        column("jain_index", std::iter::once(*jain_index)),
        column("utilisation", std::iter::once(*utilisation)),
        column("goodput_mbps", std::iter::once(*goodput_mbps)),
        column("throughput_mbps", std::iter::once(*throughput_mbps)),
        column("events", std::iter::once(*events)),
        column("data_packets", std::iter::once(*data_packets)),
        column("trace_hash", std::iter::once(hash)),
        column("sim_s", std::iter::once(*sim_s)),
        column("deadlock", std::iter::once(deadlock.clone())),
        column("health", std::iter::once(health.clone())),
        column("late_ms_p50", std::iter::once(*late_ms_p50)),
        column("late_ms_p99", std::iter::once(*late_ms_p99)),
        column("late_ms_max", std::iter::once(*late_ms_max)),
        column("on_time_ratio", std::iter::once(*on_time_ratio)),
        column("unasked_drops", std::iter::once(*unasked_drops)),
        column("cpu_ratio", std::iter::once(*cpu_ratio)),
        column("settings", std::iter::once(settings.clone())),
    ];
    assemble("summary", columns)
}

/// A column: its name and type, and its cells.
pub fn column<C: Cell>(name: &str, mut cells: impl Iterator<Item = C>) -> (Field, ArrayRef) {
    (Field::new(name, C::TYPE, C::NULLABLE), C::array(&mut cells))
}

/// A column `PREFIX.NAME` for each name, sorted; null where a row has no such value.
pub fn named_columns<Row>(
    prefix: &str,
    rows: &[Row],
    of: impl Fn(&Row) -> &[(&'static str, f64)],
) -> Columns {
    let names: BTreeSet<&str> = rows.iter().flat_map(&of).map(|(name, _)| *name).collect();
    let value = |row, name| of(row).iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let cells = |name| rows.iter().map(move |row| value(row, name));
    names.iter().map(|name| column(&format!("{prefix}.{name}"), cells(*name))).collect()
}

/// A table of columns of equal length.
///
/// # Panics
/// If their lengths differ.
pub fn assemble(name: &'static str, columns: Columns) -> Table {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
    Table { name, batch: batch.expect("every column has one cell per row") }
}

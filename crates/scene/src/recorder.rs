//! Recorder of a run: samples while it runs, and the result tables at its end.

use std::borrow::Cow;
use std::collections::BTreeMap;

use weir_net::Service;
use weir_trace::{ArrivalRow, FlowRow, LinkRow, QueueRow, SampleRow, SummaryRow, jain_index};
use weir_transport::{Config, Segment};
use weir_units::{Bytes, Duration, Instant};

use crate::aggregate;
use crate::arrivals::Arrival;
use crate::flow::Flow;
use crate::link::HostedLink;
use crate::network::Network;
use crate::outcome::Outcome;
use crate::packet::{IP_HEADER, Load};
use crate::probe::LinkProbe;
use crate::queue::EventQueue;
use crate::run_log::RunLog;
use crate::spec::{FlowSpec, HostPair, RunSpec, TransportSpec, Workload};

/// Samples of a run, apart from each flow's own statistics.
#[derive(Debug)]
pub(crate) struct Recorder {
    probes: Vec<LinkProbe>,
    samples: Vec<SampleRow>,
    queues: Vec<QueueRow>,
}

/// Final state of a run, from which the result tables are built.
pub(crate) struct RunEnd<'a, Q, L: Load> {
    /// Its description.
    pub(crate) spec: &'a RunSpec,
    /// Its flows, whose own statistics are complete.
    pub(crate) flows: &'a mut [Flow],
    /// Its links, at the time of the end.
    pub(crate) net: Network<Q, L>,
    /// How many events the world handled.
    pub(crate) events: u64,
}

impl Recorder {
    /// For a run with `links` links.
    pub(crate) fn new(links: usize) -> Self {
        let probes = (0..links).map(|_| LinkProbe::default()).collect();
        Self { probes, samples: Vec::new(), queues: Vec::new() }
    }

    /// The warm-up is over: what comes before `now` is left out of every figure about links.
    pub(crate) fn open<L: Load>(&mut self, now: Instant, links: &mut [HostedLink<L>]) {
        for (probe, link) in self.probes.iter_mut().zip(links) {
            probe.open(now, link);
        }
    }

    /// Takes a row for each flow and each monitored link, and checks every link.
    pub(crate) fn sample<L: Load>(
        &mut self,
        now: Instant,
        spec: &RunSpec,
        flows: &mut [Flow],
        links: &mut [HostedLink<L>],
        notes: &mut RunLog,
    ) {
        self.samples.extend(flows.iter_mut().filter_map(|flow| flow.sample(now)));
        for (index, (link, described)) in (0u32..).zip(links.iter_mut().zip(&spec.links)) {
            let probe = &mut self.probes[index as usize];
            if let Err(what) = probe.check(now, link) {
                notes.violate(format!("link '{}': {what}", described.name));
            }
            if described.monitored {
                self.queues.push(probe.sample(index, now, link));
            }
        }
    }

    /// Checks every link once more: says which did what it cannot.
    pub(crate) fn check<L: Load>(
        &mut self,
        now: Instant,
        spec: &RunSpec,
        links: &mut [HostedLink<L>],
    ) -> Result<(), String> {
        for (probe, (link, described)) in
            self.probes.iter_mut().zip(links.iter_mut().zip(&spec.links))
        {
            probe.check(now, link).map_err(|what| format!("link '{}': {what}", described.name))?;
        }
        Ok(())
    }

    pub(crate) fn samples(&self) -> &[SampleRow] {
        &self.samples
    }

    pub(crate) fn queues(&self) -> &[QueueRow] {
        &self.queues
    }

    /// The result tables.
    pub(crate) fn close<Q: EventQueue, L: Load>(self, closing: RunEnd<'_, Q, L>) -> Outcome {
        let RunEnd { spec, flows, mut net, events } = closing;
        let rows: Vec<FlowRow> = (0u32..)
            .zip(flows.iter())
            .zip(&spec.flows)
            .map(|((index, flow), described)| flow_row(index, described, flow, spec, &net))
            .collect();
        let now = net.now;
        let (nodes, frames) = net.radio().map(|radio| (radio.nodes(now), radio.frames())).unzip();
        let mut links: Vec<LinkRow> = (0u32..)
            .zip(net.links.iter_mut())
            .map(|(i, link)| self.probes[i as usize].row(i, &spec.links[i as usize], now, link))
            .collect();
        add_pauses(&mut links, &net, now.saturating_since(Instant::ZERO + spec.measure.warmup));
        if spec.fabric.as_ref().is_some_and(|fabric| fabric.uniform) {
            monitor_longest_wait(&mut links);
        }
        let monitored = links.iter().position(|link| link.monitored);
        let goodputs: Vec<f64> = rows.iter().filter_map(|row| row.goodput_mbps).collect();
        let measured = flows.iter().filter_map(|flow| flow.flow_stats().measured()).collect();
        let (goodput_mbps, throughput_mbps) = aggregate::rates(measured).unzip();
        let summary = SummaryRow {
            jain_index: jain_index(&goodputs),
            utilisation: monitored.and_then(|index| links[index].utilisation),
            goodput_mbps,
            throughput_mbps,
            events: events + net.radio().map_or(0, |radio| radio.events()),
            data_packets: net.notes.data_packets,
            trace_hash: net.trace_hash(),
            sim_s: now.as_secs_f64(),
            deadlock: net.deadlock().map(|cycle| names(spec, cycle)),
            ..SummaryRow::default()
        };
        Outcome {
            flows: rows,
            links,
            nodes: nodes.unwrap_or_default(),
            frames: frames.unwrap_or_default(),
            samples: self.samples,
            queues: self.queues,
            acks: flows.iter_mut().flat_map(Flow::take_acks).collect(),
            requests: flows.iter_mut().flat_map(Flow::take_requests).collect(),
            arrivals: arrivals(spec, flows, &net),
            events: net.notes.log.into_rows(),
            summary,
        }
    }
}

/// Fills in how often and for which share of the time ports paused, where they do.
fn add_pauses<Q: EventQueue, L: Load>(rows: &mut [LinkRow], net: &Network<Q, L>, span: Duration) {
    for (index, row) in (0u32..).zip(rows) {
        let Some((count, paused)) = net.pauses(index) else { continue };
        row.pauses = Some(count);
        row.paused_ratio = (!span.is_zero()).then(|| paused.as_secs_f64() / span.as_secs_f64());
    }
}

/// Leaves only the first of the links whose packets waited longest as monitored.
fn monitor_longest_wait(rows: &mut [LinkRow]) {
    let waited = |row: &LinkRow| row.queue_delay_ms_p99.unwrap_or(-1.0);
    let longest = rows.iter().map(waited).fold(-1.0, f64::max);
    let worst = rows.iter().position(|row| waited(row) >= longest);
    for (index, row) in rows.iter_mut().enumerate() {
        row.monitored = Some(index) == worst;
    }
}

/// The names of links, in their order.
fn names(spec: &RunSpec, links: &[u32]) -> String {
    let names = links.iter().map(|link| spec.links[*link as usize].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn flow_row<Q: EventQueue, L: Load>(
    index: u32,
    described: &FlowSpec,
    flow: &Flow,
    spec: &RunSpec,
    net: &Network<Q, L>,
) -> FlowRow {
    let ends = net.flow_ends(index);
    let route = route(described, ends.map(|(from, to)| HostPair { from, to }), spec, net);
    let capacity = |from, to| capacity_mbps(&route[0], spec, net, from, to);
    let mut row = flow.flow_stats().row(index, described, capacity);
    if let (Workload::File { size }, Some(span)) =
        (&described.workload, flow.flow_stats().completed())
    {
        row.slowdown = slowdown(*size, span, &route, spec, net);
    }
    row.route_changes = net.route_changes(index);
    (row.from_node, row.to_node) = ends.unzip();
    flow.forget_unknown(&mut row);
    row
}

/// The links that a flow crosses forward and back; where switches choose, the fastest that it may.
fn route<'a, Q: EventQueue, L: Load>(
    described: &'a FlowSpec,
    ends: Option<HostPair>,
    spec: &RunSpec,
    net: &Network<Q, L>,
) -> [Cow<'a, [usize]>; 2] {
    let speed = |link: usize| match &spec.links[link].config.service {
        Service::Rate(rate) | Service::Shaper { rate, .. } => rate.initial.as_bits_per_sec(),
        _ => u64::MAX,
    };
    match ends.and_then(|ends| net.widest_routes(described, ends, &speed)) {
        Some(ways) => ways.map(Cow::Owned),
        None => [&described.route_forward, &described.route_reverse].map(|way| way.into()),
    }
}

/// The capacity of the monitored link on a route, or else of the slowest.
fn capacity_mbps<Q, L: Load>(
    route: &[usize],
    spec: &RunSpec,
    net: &Network<Q, L>,
    from: Instant,
    to: Instant,
) -> Option<f64> {
    let monitored = route.iter().position(|index| spec.links[*index].monitored);
    let watched = monitored.map_or(route, |at| &route[at..=at]);
    slowest_mbps(watched, net, from, to).or_else(|| slowest_mbps(route, net, from, to))
}

/// The capacity of the slowest link of a route.
fn slowest_mbps<Q, L: Load>(
    route: &[usize],
    net: &Network<Q, L>,
    from: Instant,
    to: Instant,
) -> Option<f64> {
    let seconds = to.saturating_since(from).as_secs_f64();
    let capacities = route.iter().filter_map(|index| {
        let bytes = net.links[*index].link.capacity(from, to)?;
        Some(bytes.get() as f64 * 8e-6 / seconds)
    });
    capacities.min_by(f64::total_cmp).filter(|mbps| *mbps > 0.0)
}

/// What remains of the connections of flows of many.
fn arrivals<Q: EventQueue, L: Load>(
    spec: &RunSpec,
    flows: &mut [Flow],
    net: &Network<Q, L>,
) -> Vec<ArrivalRow> {
    let mut rows = Vec::new();
    for (flow, described) in flows.iter_mut().zip(&spec.flows) {
        let mut routes = BTreeMap::new();
        rows.extend(flow.take_arrivals().into_iter().map(|arrival| {
            let size = Bytes(arrival.row.size_bytes);
            let span = arrival.end.map(|end| (arrival.start, end));
            let ends = arrival.row.from_node.zip(arrival.row.to_node);
            let ends = ends.map(|(from, to)| HostPair { from, to });
            let route = routes.entry(ends).or_insert_with(|| route(described, ends, spec, net));
            let slowdown = span.and_then(|span| slowdown(size, span, route, spec, net));
            let slowdown_hpcc = slowdown_hpcc(&arrival, described, route, spec, net);
            ArrivalRow { slowdown, slowdown_hpcc, ..arrival.row }
        }));
    }
    rows
}

/// A transfer's completion time over what it would be if nothing was in its way: `size / rate` and a
/// round trip.
fn slowdown<Q, L: Load>(
    size: Bytes,
    (from, to): (Instant, Instant),
    [forward, reverse]: &[Cow<'_, [usize]>; 2],
    spec: &RunSpec,
    net: &Network<Q, L>,
) -> Option<f64> {
    let mbps = slowest_mbps(forward, net, from, to)?;
    let rtt = propagation_s(forward, spec) + propagation_s(reverse, spec);
    let ideal = size.get() as f64 * 8e-6 / mbps + rtt;
    Some((to - from).as_secs_f64() / ideal)
}

/// The slowdown that HPCC's evaluation prints (Li et al., SIGCOMM 2019; `qp_finish` of its simulator and
/// `fct_analysis.py`), where a connection has no handshake and ends with its last acknowledgement:
///
/// ```text
/// base RTT = delay there + delay back + Σ over the hops there of mss · 8 / rate
/// slowdown = max(1, completion / (base RTT + (size + header · ⌈size/mss⌉) · 8 / slowest rate))
/// ```
///
/// Here the last acknowledgement is taken to come back without waiting.
fn slowdown_hpcc<Q, L: Load>(
    arrival: &Arrival,
    described: &FlowSpec,
    [forward, reverse]: &[Cow<'_, [usize]>; 2],
    spec: &RunSpec,
    net: &Network<Q, L>,
) -> Option<f64> {
    let TransportSpec::Reliable(config) = &described.transport else { return None };
    let (connected, end) = (arrival.connected?, arrival.end?);
    let back = propagation_s(reverse, spec);
    let mss = config.mss;
    let hops = forward.iter().filter_map(|link| slowest_mbps(&[*link], net, arrival.start, end));
    let transmissions: f64 = hops.map(|mbps| f64::from(mss) * 8e-6 / mbps).sum();
    let base_rtt = propagation_s(forward, spec) + back + transmissions;
    let size = arrival.row.size_bytes;
    let bytes = size + size.div_ceil(u64::from(mss)) * u64::from(data_headers(config));
    let mbps = slowest_mbps(forward, net, arrival.start, end)?;
    let ideal = base_rtt + bytes as f64 * 8e-6 / mbps;
    let completion = end.saturating_since(connected).as_secs_f64() + back;
    Some((completion / ideal).max(1.0))
}

/// What a packet with data has beyond it: IPv4's header, TCP's, and its timestamps with their padding.
fn data_headers(config: &Config) -> u32 {
    let timestamps = if config.timestamps { TIMESTAMPS_LEN } else { 0 };
    IP_HEADER + Segment::BASE_HEADER_LEN as u32 + timestamps
}

/// The propagation delay of all links of a way, at the beginning.
fn propagation_s(links: &[usize], spec: &RunSpec) -> f64 {
    links.iter().map(|link| spec.links[*link].config.delay.initial.as_secs_f64()).sum()
}

/// RFC 7323 §3.2, padded to a multiple of four bytes.
const TIMESTAMPS_LEN: u32 = 12;

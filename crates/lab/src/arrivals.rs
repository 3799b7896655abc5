//! How often connections come, so that they load a link as a scenario asks for.

use std::sync::Arc;

use weir_net::{LinkConfig, Service};
use weir_scene::{
    FabricEnds, FlowSizes, FlowSpec, HostChoice, LinkSpec, Pattern, SizeDistribution,
    TransportSpec, Workload as Model,
};
use weir_units::{Bytes, Duration, Rate, Ratio};

use crate::direction::trace_rate;
use crate::error::Problem;
use crate::workload::{Connections, Incast, MAX_ARRIVALS, Permutation, Workload};

/// IPv4's header and TCP's without options.
const TCP_IP_HEADERS: u64 = 20 + 20;
/// The option of RFC 7323 with its padding.
const TIMESTAMPS: u64 = 12;

/// Where connections are described, and the end of the run.
pub(crate) struct FlowContext {
    pub(crate) section: String,
    pub(crate) end: Duration,
    /// In a fabric, its hosts; in a graph, if an end is drawn.
    pub(crate) hosts: Option<FabricHosts>,
}

/// Between which hosts connections run.
pub(crate) struct FabricHosts {
    pub(crate) hosts: u32,
    pub(crate) ends: FabricEnds,
    /// Those to which a load refers, where an end is drawn; else it refers to the slowest on the way.
    pub(crate) links: Option<Vec<usize>>,
}

/// What comes each time, how often, and how large it is.
struct Arrivals {
    sizes: SizeDistribution,
    pattern: Pattern,
    /// Number of connections that come at once.
    batch: u32,
    load: Ratio,
    count: Option<u64>,
}

/// The connections that a flow makes while a run goes on.
pub(crate) fn arrivals(
    workload: &Workload,
    place: &FlowContext,
    spec: &FlowSpec,
    links: &[LinkSpec],
) -> Result<Model, Problem> {
    let problem =
        |key: &str, message: String| Problem::new(format!("{}.{key}", place.section), message);
    let fixed = |size: Bytes| {
        SizeDistribution::new(&[(size.get(), 1.0)]).map_err(|message| problem("size", message))
    };
    let hosts = || {
        let message = format!("'{}' needs hosts", workload.kind());
        place.hosts.as_ref().ok_or_else(|| problem("kind", message))
    };
    let work = match workload {
        Workload::FlowSizes(Connections { sizes, load, arrivals }) => Arrivals {
            sizes: sizes.distribution().map_err(|message| problem("sizes", message))?,
            pattern: place.hosts.as_ref().map_or(Pattern::One, |hosts| Pattern::Pair(hosts.ends)),
            batch: 1,
            load: *load,
            count: *arrivals,
        },
        Workload::Incast(Incast { senders, size, load, arrivals }) => {
            let FabricHosts { hosts, ends, .. } = hosts()?;
            let pattern = Pattern::Incast { to: ends.to, hosts: *hosts, senders: *senders };
            let (load, count) = (*load, *arrivals);
            Arrivals { sizes: fixed(*size)?, pattern, batch: *senders, load, count }
        }
        Workload::Permutation(Permutation { size }) => {
            let pattern = Pattern::Permutation { hosts: hosts()?.hosts };
            return Ok(at_once(fixed(*size)?, 1, pattern));
        }
        Workload::AllReduce(all_reduce) => {
            let pattern = Pattern::AllReduce(all_reduce.model(hosts()?.hosts));
            return Ok(at_once(fixed(all_reduce.size)?, all_reduce.iterations, pattern));
        }
        _ => return Err(problem("kind", format!("'{}' makes no connections", workload.kind()))),
    };
    let mean_gap = mean_gap(&work, place, spec, links)?;
    let Arrivals { sizes, pattern, count, .. } = work;
    Ok(Model::FlowSizes(FlowSizes { sizes: Arc::new(sizes), mean_gap, count, pattern }))
}

/// What comes at the start of the flow, `count` times without a pause.
fn at_once(sizes: SizeDistribution, count: u64, pattern: Pattern) -> Model {
    let (sizes, mean_gap) = (Arc::new(sizes), Duration::ZERO);
    Model::FlowSizes(FlowSizes { sizes, mean_gap, count: Some(count), pattern })
}

/// From one arrival to the next, so that the data packets, headers included and each sent once, take `load`
/// of the slowest link: `gap = 8 · (E[size] + header · E[⌈size/mss⌉]) / (load · rate)`. Where both ends are
/// drawn, it is the load of all hosts' links: `gap` is that over the number of hosts. Links between switches do
/// not count there, however slow: which of them a connection takes is not known.
fn mean_gap(
    work: &Arrivals,
    place: &FlowContext,
    spec: &FlowSpec,
    links: &[LinkSpec],
) -> Result<Duration, Problem> {
    let problem =
        |key: &str, message: String| Problem::new(format!("{}.{key}", place.section), message);
    let TransportSpec::Reliable(config) = &spec.transport else {
        return Err(problem("kind", "connections come and go over no udp".to_owned()));
    };
    let links_of_hosts = place.hosts.as_ref().and_then(|hosts| hosts.links.as_ref());
    let slowest = links_of_hosts
        .unwrap_or(&spec.route_forward)
        .iter()
        .filter_map(|link| Some((rate(&links[*link].config)?, links[*link].config.overhead)))
        .min_by_key(|(rate, _)| *rate)
        .filter(|(rate, _)| *rate > Rate::ZERO);
    let Some((rate, overhead)) = slowest else {
        let message =
            format!("{} is not allowed; no link on the way has a rate to load", work.load);
        return Err(problem("load", message));
    };
    let options = if config.timestamps { TIMESTAMPS } else { 0 };
    let header = (TCP_IP_HEADERS + options + overhead.get()) as f64;
    let bytes = work.sizes.mean() + header * work.sizes.mean_segments(config.mss);
    let bytes = bytes * f64::from(work.batch);
    let loaded = place.hosts.as_ref().map_or(1, FabricHosts::loaded);
    let bits_per_sec = work.load.as_f64() * rate.as_bits_per_sec() as f64 * f64::from(loaded);
    let mean_gap = Duration::from_nanos((bytes * 8e9 / bits_per_sec).round() as u64);
    let expected = place.end.as_nanos().checked_div(mean_gap.as_nanos());
    let expected = expected.map(|number| number.saturating_mul(u64::from(work.batch)));
    if work.count.is_none() && expected.is_none_or(|number| number > MAX_ARRIVALS) {
        let message = format!(
            "{} means a connection every {mean_gap}, more than {MAX_ARRIVALS} in a run; set \
             `arrivals` or a shorter measure.duration",
            work.load
        );
        return Err(problem("load", message));
    }
    Ok(mean_gap)
}

impl FabricHosts {
    /// How many hosts' links share the load: that of the one where connections begin or end, or all.
    fn loaded(&self) -> u32 {
        match self.ends {
            FabricEnds { from: HostChoice::AnyBelow(_), to: HostChoice::AnyBelow(_) } => self.hosts,
            _ => 1,
        }
    }
}

/// What a link carries at the beginning, or its trace on average.
fn rate(link: &LinkConfig) -> Option<Rate> {
    match &link.service {
        Service::Rate(rate) | Service::Shaper { rate, .. } => Some(rate.initial),
        Service::Trace(trace) => trace_rate(trace),
        Service::Infinite | Service::PerPacket { .. } => None,
    }
}

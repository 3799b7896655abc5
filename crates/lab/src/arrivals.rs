//! How often connections come, so that they load a link as a scenario asks for.

use std::sync::Arc;

use weir_net::{LinkConfig, Service};
use weir_scene::{FlowSizes, FlowSpec, LinkSpec, TransportSpec, Workload};
use weir_units::{Duration, Rate};

use crate::direction::trace_rate;
use crate::error::Problem;
use crate::workload::{Connections, MAX_ARRIVALS};

/// IPv4's header and TCP's without options.
const TCP_IP_HEADERS: u64 = 20 + 20;
/// The option of RFC 7323 with its padding.
const TIMESTAMPS: u64 = 12;

/// Where connections are described, and the end of the run.
pub(crate) struct FlowContext {
    pub(crate) section: String,
    pub(crate) end: Duration,
}

/// Connections that come so often that their data packets, headers included and each sent once, take
/// `load` of the slowest link: `gap = 8 · (E[size] + header · E[⌈size/mss⌉]) / (load · rate)`.
pub(crate) fn arrivals(
    work: &Connections,
    place: &FlowContext,
    spec: &FlowSpec,
    links: &[LinkSpec],
) -> Result<Workload, Problem> {
    let problem =
        |key: &str, message: String| Problem::new(format!("{}.{key}", place.section), message);
    let sizes = work.sizes.distribution().map_err(|message| problem("sizes", message))?;
    let TransportSpec::Reliable(config) = &spec.transport else {
        return Err(problem("kind", "'flow-sizes' is not allowed over udp".to_owned()));
    };
    let slowest = spec
        .route_forward
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
    let bytes = sizes.mean() + header * sizes.mean_segments(config.mss);
    let bits_per_sec = work.load.as_f64() * rate.as_bits_per_sec() as f64;
    let mean_gap = Duration::from_nanos((bytes * 8e9 / bits_per_sec).round() as u64);
    let expected = place.end.as_nanos().checked_div(mean_gap.as_nanos());
    if work.arrivals.is_none() && expected.is_none_or(|number| number > MAX_ARRIVALS) {
        let message = format!(
            "{} means a connection every {mean_gap}, more than {MAX_ARRIVALS} in a run; set \
             `arrivals` or a shorter measure.duration",
            work.load
        );
        return Err(problem("load", message));
    }
    Ok(Workload::FlowSizes(FlowSizes { sizes: Arc::new(sizes), mean_gap, count: work.arrivals }))
}

/// What a link carries at the beginning, or its trace on average.
fn rate(link: &LinkConfig) -> Option<Rate> {
    match &link.service {
        Service::Rate(rate) | Service::Shaper { rate, .. } => Some(rate.initial),
        Service::Trace(trace) => trace_rate(trace),
        Service::Infinite | Service::PerPacket { .. } => None,
    }
}

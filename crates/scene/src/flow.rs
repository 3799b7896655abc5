//! A flow: two ends, their applications, and its statistics.

use std::sync::Arc;

use weir_radio::Notice;
use weir_trace::{AckRow, FlowRow, RequestRow, SampleRow};
use weir_units::{Duration, Instant, stream};

use crate::app::Client;
use crate::arrivals::{Arrival, Plan, Source};
use crate::flow_stats::{FlowEnd, FlowStats};
use crate::hosted_flow::{HostedFlow, HostedInit};
use crate::kernel_flow::{ConnectionSample, KernelFlow};
use crate::medium::Medium;
use crate::packet::Packet;
use crate::reliable::{FlowInit, ReliableFlow};
use crate::requests::RequestBook;
use crate::side::Side;
use crate::spec::{FlowSpec, MeasureSpec, TransportSpec};
use crate::udp::UdpFlow;

/// One flow of the run.
pub struct Flow(Kind);

enum Kind {
    Reliable(Box<ReliableFlow>),
    Udp(Box<UdpFlow>),
    Foreign(Box<HostedFlow>),
    Kernel(Box<KernelFlow>),
    Source(Box<Source>),
}

impl Flow {
    /// The flow, with its start in the event queue. Of a flow of many connections only a
    /// [`FlowTable`](crate::FlowTable) makes any.
    ///
    /// # Panics
    /// If the flow is between programs: their world drives it through a [`KernelFlow`].
    pub fn new<M: Medium>(
        index: u32,
        spec: &FlowSpec,
        measure: &MeasureSpec,
        seed: u64,
        net: &mut M,
    ) -> Self {
        let named = |purpose: &str| stream(seed, &format!("flow {} {purpose}", spec.name));
        let start = spec.drawn_start(seed);
        if let (TransportSpec::Reliable(config), Some(plan)) =
            (&spec.transport, Plan::of(&spec.workload))
        {
            let source = Source::new(index, spec, config, plan, measure, seed);
            return Self(Kind::Source(Box::new(source)));
        }
        net.wake(start, index, Side::Sender);
        match &spec.transport {
            TransportSpec::Reliable(config) => {
                let mut flow = ReliableFlow::new(FlowInit {
                    index,
                    config: (**config).clone(),
                    workload: spec.workload.clone(),
                    client: Client::new(spec.workload.clone(), start, named("application")),
                    start,
                    stop: spec.stop,
                    rngs: [spec.sender_stream(seed), named("receiver")],
                    max_acks: measure.max_acks,
                    origin: None,
                });
                flow.stream.stats.requests = requests(index, spec, measure);
                Self(Kind::Reliable(Box::new(flow)))
            }
            TransportSpec::Udp(config) => {
                let application = named("application");
                let flow = UdpFlow::new(index, spec, *config, start, application);
                Self(Kind::Udp(Box::new(flow)))
            }
            TransportSpec::Foreign(stack) => {
                let mut flow = HostedFlow::new(HostedInit {
                    index,
                    stack: Arc::clone(stack),
                    workload: spec.workload.clone(),
                    client: Client::new(spec.workload.clone(), start, named("application")),
                    start,
                    stop: spec.stop,
                    rngs: [spec.sender_stream(seed), named("receiver")],
                });
                flow.stream.stats.requests = requests(index, spec, measure);
                Self(Kind::Foreign(Box::new(flow)))
            }
            TransportSpec::Program(programs) => {
                panic!("{}: this world starts no programs", programs.name)
            }
        }
    }

    /// A packet has arrived at its end of the flow.
    #[inline]
    pub fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.on_packet(packet, net),
            Kind::Udp(flow) => flow.on_packet(packet, net),
            Kind::Foreign(flow) => flow.on_packet(packet, net),
            Kind::Kernel(_) | Kind::Source(_) => {
                net.notes().violate(format!("no end takes {packet:?}"));
            }
        }
    }

    /// The network tells one end of its route.
    pub fn on_notice<M: Medium>(&mut self, side: Side, notice: Notice, net: &mut M) {
        if let Kind::Reliable(flow) = &mut self.0 {
            flow.on_notice(side, notice, net);
        }
    }

    /// The wake-up of one end is due.
    pub fn on_wake<M: Medium>(&mut self, side: Side, net: &mut M) {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.on_wake(side, net),
            Kind::Udp(flow) => flow.on_wake(net),
            Kind::Foreign(flow) => flow.on_wake(side, net),
            Kind::Kernel(_) | Kind::Source(_) => {}
        }
    }

    /// The warm-up is over.
    pub fn begin_measurement<M: Medium>(&mut self, net: &mut M) {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.begin_measurement(net),
            Kind::Udp(flow) => flow.begin_measurement(net),
            Kind::Foreign(flow) => flow.begin_measurement(net),
            Kind::Source(flow) => flow.begin_measurement(net),
            Kind::Kernel(_) => {}
        }
    }

    /// The run is over: the flow's statistics are final, unless it has ended before.
    pub fn end<M: Medium>(&mut self, net: &mut M) {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.end_measurement(net, FlowEnd::OutOfTime),
            Kind::Udp(flow) => flow.end_measurement(net, FlowEnd::OutOfTime),
            Kind::Foreign(flow) => flow.end_measurement(net, FlowEnd::OutOfTime),
            Kind::Source(flow) => flow.end_measurement(net, FlowEnd::OutOfTime),
            Kind::Kernel(_) => {}
        }
    }

    /// Whether nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        match &self.0 {
            Kind::Reliable(flow) => flow.is_over(),
            Kind::Udp(flow) => flow.is_over(),
            Kind::Foreign(flow) => flow.is_over(),
            Kind::Kernel(flow) => flow.is_closed(),
            Kind::Source(flow) => flow.is_over(),
        }
    }

    /// The state of its sender; `None` before it began and after it ended.
    pub fn sample(&mut self, now: Instant) -> Option<SampleRow> {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.sample(now),
            Kind::Udp(flow) => flow.sample(now),
            Kind::Foreign(flow) => flow.sample(now),
            Kind::Kernel(_) | Kind::Source(_) => None,
        }
    }

    /// The state of its sender as a connection; `None` before it began, and of flows without one of ours.
    pub fn connection_sample(&mut self, now: Instant) -> Option<ConnectionSample> {
        let Kind::Reliable(flow) = &mut self.0 else { return None };
        let (delivered, ip_bytes) = (flow.stream.stats.delivered, flow.stream.stats.sent_ip_bytes);
        let (stats, snapshot, delivery) = flow.sender_state(now)?;
        Some(ConnectionSample {
            delivered,
            acked: stats.acked_bytes,
            segments: stats.data_segments_sent,
            bytes: stats.data_bytes_sent,
            ip_bytes,
            retransmits: stats.retransmits,
            spurious: stats.retransmits_spurious,
            timeouts: Some(stats.timeouts),
            cwnd: snapshot.cwnd,
            ssthresh: snapshot.ssthresh,
            in_flight: snapshot.bytes_in_flight,
            srtt: snapshot.srtt,
            rttvar: snapshot.rttvar,
            rto: snapshot.rto,
            pacing: snapshot.pacing_rate,
            delivery,
            state: snapshot.state,
            busy: Duration::ZERO,
            rwnd_limited: stats.rwnd_limited,
            sndbuf_limited: Duration::ZERO,
        })
    }

    /// Bytes handed to its receiving application.
    pub fn delivered(&self) -> u64 {
        self.flow_stats().delivered
    }

    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.flow_stats().failure()
    }

    pub(crate) fn flow_stats(&self) -> &FlowStats {
        match &self.0 {
            Kind::Reliable(flow) => &flow.stream.stats,
            Kind::Udp(flow) => &flow.flow_stats,
            Kind::Foreign(flow) => &flow.stream.stats,
            Kind::Kernel(flow) => &flow.flow_stats,
            Kind::Source(flow) => &flow.flow_stats,
        }
    }

    /// Makes null in its row what it cannot tell.
    pub(crate) fn forget_unknown(&self, row: &mut FlowRow) {
        match &self.0 {
            Kind::Kernel(flow) => flow.forget_unknown(row),
            Kind::Source(_) => Source::forget_unknown(row),
            Kind::Foreign(_) => HostedFlow::forget_unknown(row),
            Kind::Reliable(_) | Kind::Udp(_) => {}
        }
    }

    /// The connections that it makes, if it is a flow of many.
    pub(crate) fn source(&mut self) -> Option<&mut Source> {
        match &mut self.0 {
            Kind::Source(source) => Some(source),
            _ => None,
        }
    }

    /// What remains of its connections.
    pub(crate) fn take_arrivals(&mut self) -> Vec<Arrival> {
        self.source().map_or_else(Vec::new, Source::take_arrivals)
    }

    /// What its sender knew at each acknowledgement.
    pub fn take_acks(&mut self) -> Vec<AckRow> {
        match &mut self.0 {
            Kind::Reliable(flow) => std::mem::take(&mut flow.acks),
            Kind::Udp(_) | Kind::Foreign(_) | Kind::Kernel(_) | Kind::Source(_) => Vec::new(),
        }
    }

    /// The rows of the requests that were answered.
    pub fn take_requests(&mut self) -> Vec<RequestRow> {
        match &mut self.0 {
            Kind::Reliable(flow) => flow.stream.stats.take_requests(),
            Kind::Udp(_) | Kind::Source(_) => Vec::new(),
            Kind::Foreign(flow) => flow.stream.stats.take_requests(),
            Kind::Kernel(flow) => flow.take_requests(),
        }
    }
}

/// Where the requests of a flow that makes any are recorded.
fn requests(index: u32, spec: &FlowSpec, measure: &MeasureSpec) -> Option<Box<RequestBook>> {
    spec.workload.has_responses().then(|| Box::new(RequestBook::new(index, measure.max_requests)))
}

/// A flow whose ends lie elsewhere: in the statistics it is one like the others.
impl From<KernelFlow> for Flow {
    fn from(flow: KernelFlow) -> Self {
        Self(Kind::Kernel(Box::new(flow)))
    }
}

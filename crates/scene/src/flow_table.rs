//! The flows of a world: those of the description, and the connections that come and go.
//!
//! A connection of a flow of many has a number above those of the description's flows, given once, so
//! events and packets in flight still name it after it is gone. Its state goes with it: of ended
//! connections an empty place of eight bytes remains.

use weir_radio::Notice;

use crate::flow::Flow;
use crate::flow_stats::FlowEnd;
use crate::medium::Medium;
use crate::packet::Packet;
use crate::queue::Event;
use crate::reliable::{Origin, ReliableFlow};
use crate::side::Side;
use crate::spec::RunSpec;

/// All flows of a run.
pub struct FlowTable {
    /// Those of the description.
    flows: Vec<Flow>,
    /// Which of these are known to be over, and no longer counted as open.
    over: Vec<bool>,
    /// Connections by their number above these; nothing where one has ended.
    arrivals: Vec<Option<Box<ReliableFlow>>>,
    /// Flows and connections to which something can still happen.
    open: usize,
}

impl FlowTable {
    /// The flows of `spec`, with their starts in the event queue.
    pub fn new<M: Medium>(spec: &RunSpec, seed: u64, net: &mut M) -> Self {
        let numbered = (0u32..).zip(&spec.flows);
        let flows: Vec<Flow> = numbered
            .map(|(index, flow)| Flow::new(index, flow, &spec.measure, seed, net))
            .collect();
        let over: Vec<bool> = flows.iter().map(Flow::is_over).collect();
        let open = over.iter().filter(|over| !**over).count();
        let mut flow_table = Self { flows, over, arrivals: Vec::new(), open };
        for index in 0..flow_table.flows.len() {
            flow_table.expect_arrival(index as u32, net);
        }
        flow_table
    }

    /// Whether anything can still happen to a flow.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// The flows of the description.
    pub fn flows(&mut self) -> &mut [Flow] {
        &mut self.flows
    }

    /// A packet has arrived at its end of its flow.
    #[inline]
    pub fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        match self.place(packet.flow) {
            Place::Flow(at) => self.touch(at, |flow| flow.on_packet(packet, net)),
            Place::Arrival(at) => {
                self.touch_arrival(at, net, |flow, net| flow.on_packet(packet, net))
            }
        }
    }

    /// The wake-up of one end of a flow is due.
    #[inline]
    pub fn on_wake<M: Medium>(&mut self, flow: u32, side: Side, net: &mut M) {
        match self.place(flow) {
            Place::Flow(at) => self.touch(at, |flow| flow.on_wake(side, net)),
            Place::Arrival(at) => self.touch_arrival(at, net, |flow, net| flow.on_wake(side, net)),
        }
    }

    /// The network tells one end of a flow of its route.
    pub fn on_notice<M: Medium>(&mut self, flow: u32, side: Side, notice: Notice, net: &mut M) {
        match self.place(flow) {
            Place::Flow(at) => self.touch(at, |flow| flow.on_notice(side, notice, net)),
            Place::Arrival(at) => {
                self.touch_arrival(at, net, |flow, net| flow.on_notice(side, notice, net));
            }
        }
    }

    /// A connection of a flow of many comes, or several at once; of a connection, those that wait for it.
    pub fn on_arrival<M: Medium>(&mut self, flow: u32, net: &mut M) {
        if let Place::Arrival(at) = self.place(flow) {
            return self.on_delivered(at, net);
        }
        let Some(source) = self.flows[flow as usize].source() else { return };
        let count = source.begin_batch();
        self.begin(flow, count, net);
    }

    /// The warm-up is over.
    pub fn begin_measurement<M: Medium>(&mut self, net: &mut M) {
        self.flows.iter_mut().for_each(|flow| flow.begin_measurement(net));
        self.arrivals.iter_mut().flatten().for_each(|flow| flow.begin_measurement(net));
    }

    /// The run is over: the statistics of all flows are final.
    pub fn end<M: Medium>(&mut self, net: &mut M) {
        for mut flow in std::mem::take(&mut self.arrivals).into_iter().flatten() {
            flow.end_measurement(net, FlowEnd::OutOfTime);
            self.on_connection_end(&flow, net);
        }
        self.flows.iter_mut().for_each(|flow| flow.end(net));
    }

    /// A connection for which others may wait has delivered its last byte.
    fn on_delivered<M: Medium>(&mut self, at: usize, net: &mut M) {
        let connection = self.arrivals[at].as_ref();
        let whole = connection.and_then(|flow| Some((flow.origin?, flow.whole()?)));
        let Some((Origin { source: flow, transfer: Some(transfer), .. }, bytes)) = whole else {
            return net
                .notes()
                .violate(format!("others wait for connection {at}: it is not whole"));
        };
        let Some(source) = self.flows[flow as usize].source() else { return };
        match source.on_delivered(&transfer, bytes, net.now()) {
            Ok(count) => self.begin(flow, count, net),
            Err(what) => net.notes().violate(format!("flow {flow}: {what}")),
        }
    }

    /// Makes `count` connections of a flow of many.
    fn begin<M: Medium>(&mut self, flow: u32, count: usize, net: &mut M) {
        let first = (self.flows.len() + self.arrivals.len()) as u32;
        let Some(source) = self.flows[flow as usize].source() else { return };
        for index in (first..).take(count) {
            self.arrivals.push(Some(Box::new(source.spawn(index, net))));
            self.open += 1;
        }
        self.expect_arrival(flow, net);
    }

    /// Sees to it that the next connection of a flow of many has an event.
    fn expect_arrival<M: Medium>(&mut self, flow: u32, net: &mut M) {
        let next = self.flows[flow as usize].source().and_then(|source| source.next_time());
        if let Some(at) = next {
            net.net_mut().schedule(at, Event::Arrival(flow));
        }
    }

    #[inline]
    fn place(&self, flow: u32) -> Place {
        let at = flow as usize;
        at.checked_sub(self.flows.len()).map_or(Place::Flow(at), Place::Arrival)
    }

    /// Does something to a flow, and keeps count of those that are not over.
    #[inline]
    fn touch(&mut self, at: usize, act: impl FnOnce(&mut Flow)) {
        let flow = &mut self.flows[at];
        act(flow);
        if flow.is_over() {
            self.on_over(at);
        }
    }

    #[cold]
    fn on_over(&mut self, at: usize) {
        if !std::mem::replace(&mut self.over[at], true) {
            self.open -= 1;
        }
    }

    /// Does something to a connection unless it has ended, and lets go of it when it ends: what comes
    /// for it later is ignored.
    #[inline]
    fn touch_arrival<M: Medium>(
        &mut self,
        at: usize,
        net: &mut M,
        act: impl FnOnce(&mut ReliableFlow, &mut M),
    ) {
        let Some(flow) = &mut self.arrivals[at] else { return };
        act(flow, net);
        if flow.is_over() {
            self.retire(at, net);
        }
    }

    fn retire<M: Medium>(&mut self, at: usize, net: &mut M) {
        if let Some(flow) = self.arrivals[at].take() {
            self.open -= 1;
            self.on_connection_end(&flow, net);
        }
    }

    /// Hands what is left of a connection to the flow that it belongs to.
    fn on_connection_end<M: Medium>(&mut self, flow: &ReliableFlow, net: &mut M) {
        let Some(origin) = flow.origin else { return };
        let Some(source) = self.flows[origin.source as usize].source() else { return };
        source.on_connection_end(flow, net);
        if source.is_over() {
            self.on_over(origin.source as usize);
        }
    }
}

/// Where a flow is.
enum Place {
    Flow(usize),
    Arrival(usize),
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir_net::LinkConfig;
    use weir_units::{Duration, Instant, Rate};

    use super::*;
    use crate::network::Network;
    use crate::queue::WheelQueue;
    use crate::sizes::SizeDistribution;
    use crate::spec::{
        Ends, FlowSizes, FlowSpec, LinkSpec, MeasureSpec, Pattern, TransportSpec, Workload,
    };

    const COUNT: u64 = 2_000;

    /// Transfers of 1 to 20 KB, 5 ms apart, over 100 Mbit/s and 10 ms.
    fn spec() -> RunSpec {
        let link = |name: &str| LinkSpec {
            name: name.to_owned(),
            config: LinkConfig::new(Rate::from_mbit(100), Duration::from_millis(5)),
            monitored: false,
            one_at_a_time: false,
        };
        let sizes = SizeDistribution::new(&[(1_000, 0.0), (20_000, 1.0)]).expect("sizes");
        let (sizes, mean_gap) = (Arc::new(sizes), Duration::from_millis(5));
        let workload = Workload::FlowSizes(FlowSizes {
            sizes,
            mean_gap,
            count: Some(COUNT),
            pattern: Pattern::One,
        });
        let flow = FlowSpec {
            name: "web".to_owned(),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport: TransportSpec::Reliable(Box::default()),
            workload,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        let measure = MeasureSpec { duration: Duration::from_secs(60), ..MeasureSpec::default() };
        RunSpec {
            links: vec![link("there"), link("back")],
            radio: None,
            fabric: None,
            flows: vec![flow],
            measure,
        }
    }

    #[test]
    fn only_connections_under_way_have_state() {
        let spec = spec();
        let mut net = Network::<WheelQueue>::new(&spec, 1).expect("a network");
        let mut flow_table = FlowTable::new(&spec, 1, &mut net);
        let mut most = 0;
        while flow_table.is_open() {
            let event = net.next_event_until(Instant::MAX).expect("it is open");
            match event {
                Event::Link(index) => {
                    net.on_link(index, |net, packet| flow_table.on_packet(&packet, net));
                }
                Event::Endpoint(id) if id % 2 == 0 => {
                    flow_table.on_wake(id / 2, Side::Sender, &mut net)
                }
                Event::Endpoint(id) => flow_table.on_wake(id / 2, Side::Receiver, &mut net),
                Event::Arrival(flow) => {
                    flow_table.on_arrival(flow, &mut net);
                    let kept = flow_table.arrivals.iter().flatten().count();
                    assert_eq!(kept, flow_table.open - 1, "and the flow that makes them");
                    most = most.max(kept);
                }
                _ => {}
            }
        }
        assert_eq!(net.notes.violation(), None);
        // A transfer takes some round trips: a handful are open at once.
        assert!((2..40).contains(&most), "{most}");
        assert_eq!(flow_table.arrivals.len() as u64, COUNT);
        assert_eq!(flow_table.arrivals.iter().flatten().count(), 0);
    }
}

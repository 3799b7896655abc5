//! A flow: two ends, what their applications do, and its books.

use weir_trace::{AckRow, RequestRow, SampleRow};
use weir_units::{Instant, stream};

use crate::app::Client;
use crate::ledger::{Ending, Ledger};
use crate::network::Network;
use crate::packet::{Direction, Packet};
use crate::queue::{Event, EventQueue};
use crate::reliable::ReliableFlow;
use crate::requests::RequestBook;
use crate::spec::{FlowSpec, MeasureSpec, TransportSpec};
use crate::udp::UdpFlow;

/// One flow of the run.
pub(crate) enum Flow {
    Reliable(Box<ReliableFlow>),
    Udp(Box<UdpFlow>),
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where data comes from.
    Sender,
    /// Where it goes.
    Receiver,
}

impl Side {
    /// Which way this end's packets travel.
    pub(crate) fn direction(self) -> Direction {
        match self {
            Self::Sender => Direction::Forward,
            Self::Receiver => Direction::Reverse,
        }
    }

    /// The end that packets of a direction arrive at.
    pub(crate) fn at_end_of(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Self::Receiver,
            Direction::Reverse => Self::Sender,
        }
    }
}

/// The event that wakes one end of a flow.
pub(crate) fn wake_up(flow: u32, side: Side) -> Event {
    Event::Endpoint(2 * flow + side as u32)
}

impl Flow {
    /// The flow, with its start in the event queue.
    pub(crate) fn new<Q: EventQueue>(
        index: u32,
        spec: &FlowSpec,
        measure: &MeasureSpec,
        seed: u64,
        net: &mut Network<Q>,
    ) -> Self {
        let named = |purpose: &str| stream(seed, &format!("flow {} {purpose}", spec.name));
        let start = spec.start + named("start").duration_up_to(spec.start_jitter);
        net.schedule(start, wake_up(index, Side::Sender));
        match &spec.transport {
            TransportSpec::Reliable(config) => {
                let rngs = [named("sender"), named("receiver")];
                let client = Client::new(spec.workload, start, named("application"));
                let acks = measure.max_acks;
                let mut flow = ReliableFlow::new(index, spec, config, client, start, rngs, acks);
                if spec.workload.asks() {
                    let book = RequestBook::new(index, measure.max_requests);
                    flow.ledger.requests = Some(Box::new(book));
                }
                Self::Reliable(Box::new(flow))
            }
            TransportSpec::Udp(config) => {
                let application = named("application");
                Self::Udp(Box::new(UdpFlow::new(index, spec, *config, start, application)))
            }
        }
    }

    /// A packet has arrived at its end of the flow.
    #[inline]
    pub(crate) fn on_packet<Q: EventQueue>(&mut self, packet: &Packet, net: &mut Network<Q>) {
        match self {
            Self::Reliable(flow) => flow.on_packet(packet, net),
            Self::Udp(flow) => flow.on_packet(packet, net),
        }
    }

    /// The wake-up of one end is due.
    pub(crate) fn on_wake<Q: EventQueue>(&mut self, side: Side, net: &mut Network<Q>) {
        match self {
            Self::Reliable(flow) => flow.on_wake(side, net),
            Self::Udp(flow) => flow.on_wake(net),
        }
    }

    /// The warm-up is over.
    pub(crate) fn open_books<Q: EventQueue>(&mut self, net: &Network<Q>) {
        match self {
            Self::Reliable(flow) => flow.open_books(net),
            Self::Udp(flow) => flow.open_books(net),
        }
    }

    /// The flow's end, unless it has ended before.
    pub(crate) fn close_books<Q: EventQueue>(&mut self, net: &Network<Q>, ending: Ending) {
        match self {
            Self::Reliable(flow) => flow.close_books(net, ending),
            Self::Udp(flow) => flow.close_books(net, ending),
        }
    }

    /// Whether nothing more will happen to it.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Reliable(flow) => flow.is_over(),
            Self::Udp(flow) => flow.is_over(),
        }
    }

    /// The state of its sender; `None` before it began and after it ended.
    pub(crate) fn sample(&mut self, now: Instant) -> Option<SampleRow> {
        match self {
            Self::Reliable(flow) => flow.sample(now),
            Self::Udp(flow) => flow.sample(now),
        }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        match self {
            Self::Reliable(flow) => &flow.ledger,
            Self::Udp(flow) => &flow.ledger,
        }
    }

    /// What its sender knew at each acknowledgement.
    pub(crate) fn take_acks(&mut self) -> Vec<AckRow> {
        match self {
            Self::Reliable(flow) => std::mem::take(&mut flow.acks),
            Self::Udp(_) => Vec::new(),
        }
    }

    /// The rows of the requests that were answered.
    pub(crate) fn take_requests(&mut self) -> Vec<RequestRow> {
        match self {
            Self::Reliable(flow) => flow.ledger.take_requests(),
            Self::Udp(_) => Vec::new(),
        }
    }
}

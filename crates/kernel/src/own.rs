//! Flows of our own transport next to the kernel's, on the same links.

use weir_scene::{Event, EventQueue, Flow, HeapQueue, Medium, Network, Packet, RunSpec, Side};
use weir_units::Instant;

use super::check::kernel_config;
use super::programs::programs_of;
use weir_links::emulator::{Emulator, Load};

/// Our own flows, in the router's thread: their packets are descriptions and cross no device.
pub(super) struct OwnFlows {
    pub(super) flows: Vec<Flow>,
    /// The index of each in the run.
    pub(super) indices: Vec<u32>,
    /// When ends are to be woken.
    wakes: HeapQueue,
    /// Flows to which something can still happen.
    open: usize,
}

/// What their ends live in.
struct FlowPath<'a> {
    emulator: &'a mut Emulator,
    wakes: &'a mut HeapQueue,
}

impl OwnFlows {
    pub(super) fn new(spec: &RunSpec, seed: u64, emulator: &mut Emulator) -> Self {
        let mut wakes = HeapQueue::default();
        let own = (0u32..)
            .zip(&spec.flows)
            .filter(|(_, flow)| kernel_config(flow).is_none() && programs_of(flow).is_none());
        let (indices, flows): (Vec<u32>, Vec<Flow>) = own
            .map(|(index, flow)| {
                let mut road = FlowPath { emulator, wakes: &mut wakes };
                (index, Flow::new(index, flow, &spec.measure, seed, &mut road))
            })
            .unzip();
        Self { open: flows.len(), flows, indices, wakes }
    }

    /// How many can still do something.
    pub(super) fn open_flows(&self) -> usize {
        self.open
    }

    /// When an end is to be woken next.
    pub(super) fn next_time(&mut self) -> Option<Instant> {
        self.wakes.peek()
    }

    /// Everything that is due by the time of the links: first what has arrived, then timers.
    pub(super) fn step(&mut self, emulator: &mut Emulator) {
        while let Some(packet) = emulator.poll_arrival() {
            let described = packet.with(());
            self.touch(described.flow, emulator, |flow, road| flow.on_packet(&described, road));
        }
        let now = emulator.net.now;
        while self.wakes.peek().is_some_and(|at| at <= now) {
            let Some((_, Event::Endpoint(id))) = self.wakes.pop() else { continue };
            let side = if id % 2 == 0 { Side::Sender } else { Side::Receiver };
            self.touch(id / 2, emulator, |flow, road| flow.on_wake(side, road));
        }
    }

    /// The warm-up is over.
    pub(super) fn begin_measurement(&mut self, emulator: &mut Emulator) {
        self.each(emulator, |flow, road| flow.begin_measurement(road));
    }

    /// The run is over.
    pub(super) fn end(&mut self, emulator: &mut Emulator) {
        self.each(emulator, |flow, road| flow.end(road));
    }

    fn each(&mut self, emulator: &mut Emulator, act: fn(&mut Flow, &mut FlowPath<'_>)) {
        let mut road = FlowPath { emulator, wakes: &mut self.wakes };
        self.flows.iter_mut().for_each(|flow| act(flow, &mut road));
    }

    /// Does something to a flow, and keeps count of those that are not over.
    fn touch(
        &mut self,
        index: u32,
        emulator: &mut Emulator,
        act: impl FnOnce(&mut Flow, &mut FlowPath<'_>),
    ) {
        let Ok(number) = self.indices.binary_search(&index) else {
            return emulator.net.notes.violate(format!("flow {index} is none of ours"));
        };
        let flow = &mut self.flows[number];
        let was_over = flow.is_over();
        act(flow, &mut FlowPath { emulator, wakes: &mut self.wakes });
        self.open -= usize::from(flow.is_over() && !was_over);
    }
}

impl Medium for FlowPath<'_> {
    type Queue = HeapQueue;
    type Load = Load;

    fn net(&self) -> &Network<HeapQueue, Load> {
        &self.emulator.net
    }

    fn net_mut(&mut self) -> &mut Network<HeapQueue, Load> {
        &mut self.emulator.net
    }

    fn send(&mut self, packet: Packet) {
        self.emulator.net.forward(packet.with(Load::default()));
    }

    fn wake(&mut self, at: Instant, flow: u32, side: Side) {
        self.wakes.push(at, Event::Endpoint(2 * flow + side as u32));
    }
}

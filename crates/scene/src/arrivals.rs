//! A flow of many connections: they come at random times, with sizes from a distribution, or are listed one by
//! one.
//!
//! Of those that are drawn, the times are a Poisson process. Times and sizes are drawn from streams of the
//! flow's name, and from nothing else: whatever carries the connections, they come at the same times with the
//! same sizes. Where switches choose among links, the hosts between which connections run are drawn from a
//! third such stream. Those of a collective operation come when others have ended. A connection lives in the
//! world as a flow of its own while it lasts; what is left of it afterwards is an [`Arrival`] and its part in
//! the sums and distributions here.

use std::sync::Arc;

use weir_trace::{ArrivalRow, FlowRow};
use weir_transport::Config;
use weir_units::{Bytes, Duration, Instant, Rng, stream};

use crate::app::Client;
use crate::collective::{Collective, Transfer};
use crate::flow_stats::{FlowEnd, FlowStats, Totals};
use crate::medium::Medium;
use crate::pattern::Batch;
use crate::reliable::{FlowInit, Origin, ReliableFlow};
use crate::side::Side;
use crate::spec::{FlowSizes, FlowSpec, ListedConnection, MeasureSpec, Pattern, Workload};

/// The flow that the connections make up.
pub(crate) struct Source {
    index: u32,
    name: String,
    config: Config,
    plan: Plan,
    /// From here on listed connections start.
    origin: Instant,
    seed: u64,
    times: Rng,
    sizes: Rng,
    ends: Rng,
    /// Of connections that come at once.
    jitter: Duration,
    /// Those that come now.
    batch: Batch,
    /// Decides which come and when, where they are those of a collective operation.
    collective: Option<Box<Collective>>,
    /// When each rank is ready for the present one; none where all are at once.
    ready: Vec<Instant>,
    /// When the last of these operations was complete.
    complete: Option<Instant>,
    /// How often connections have come.
    batches: u64,
    stop: Option<Instant>,
    /// When the next connection comes; none comes any more if there is no such time.
    next: Option<Instant>,
    /// Connections so far.
    made: u64,
    /// Of these, how many had come when the measured interval began.
    unmeasured: u64,
    /// Of listed connections, how many have come or come now.
    due: usize,
    under_way: u64,
    failed: u64,
    unfinished: u64,
    warm: bool,
    /// What ended connections did in the measured interval.
    totals: Totals,
    arrivals: Vec<Arrival>,
    max_arrivals: usize,
    pub(crate) flow_stats: FlowStats,
}

/// Which connections a flow of many makes.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// Those that are drawn.
    Drawn(FlowSizes),
    /// These, in the order of their starts.
    Listed(Arc<[ListedConnection]>),
}

impl Plan {
    /// The connections that a flow makes, if it is one of many.
    pub(crate) fn of(workload: &Workload) -> Option<Self> {
        match workload {
            Workload::FlowSizes(sizes) => Some(Self::Drawn(sizes.clone())),
            Workload::Listed(list) => Some(Self::Listed(Arc::clone(list))),
            _ => None,
        }
    }
}

/// What remains of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// When it came, and when the last byte had arrived.
    pub(crate) start: Instant,
    pub(crate) end: Option<Instant>,
    /// When data could first be sent: the handshake was over at the sender.
    pub(crate) connected: Option<Instant>,
    pub(crate) row: ArrivalRow,
}

impl Source {
    /// The source; [`next_time`](Self::next_time) says when its first connection comes.
    pub(crate) fn new(
        index: u32,
        flow: &FlowSpec,
        config: &Config,
        plan: Plan,
        measure: &MeasureSpec,
        seed: u64,
    ) -> Self {
        let named = |purpose: &str| stream(seed, &format!("flow {} {purpose}", flow.name));
        let (start, jitter) = match &plan {
            Plan::Drawn(FlowSizes { pattern: Pattern::One | Pattern::Pair(_), .. }) => {
                (flow.drawn_start(seed), Duration::ZERO)
            }
            Plan::Drawn(_) | Plan::Listed(_) => (flow.start, flow.start_jitter),
        };
        let mut ends = named("ends");
        let collective = match &plan {
            Plan::Drawn(FlowSizes { pattern: Pattern::AllReduce(spec), .. }) => {
                Some(Box::new(Collective::new(*spec, &mut ends)))
            }
            _ => None,
        };
        let mut source = Self {
            index,
            name: flow.name.clone(),
            config: config.clone(),
            plan,
            origin: flow.start,
            seed,
            times: named("arrivals"),
            sizes: named("sizes"),
            ends,
            jitter,
            batch: Batch::default(),
            collective,
            ready: Vec::new(),
            complete: None,
            batches: 0,
            stop: flow.stop,
            next: None,
            made: 0,
            due: 0,
            unmeasured: 0,
            under_way: 0,
            failed: 0,
            unfinished: 0,
            warm: false,
            totals: Totals::default(),
            arrivals: Vec::new(),
            max_arrivals: measure.max_arrivals,
            flow_stats: FlowStats::new(start),
        };
        source.draw_next(start);
        source
    }

    /// When the next connection comes.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.next
    }

    /// The time of connections has come: returns how many come at once. Each is to be
    /// [spawned](Self::spawn).
    pub(crate) fn begin_batch(&mut self) -> usize {
        self.batches += 1;
        if self.collective.is_some() {
            return self.begin_operation();
        }
        let Some(now) = self.next else { return 0 };
        let count = match &self.plan {
            Plan::Drawn(sizes) => {
                self.batch.draw(&sizes.pattern, &mut self.ends);
                self.batch.len()
            }
            Plan::Listed(list) => {
                let starts = list[self.due..].iter().map(|listed| self.origin + listed.start);
                starts.take_while(|start| *start <= now).count()
            }
        };
        self.due += count;
        self.draw_next(now);
        count
    }

    /// All `bytes` of a transfer of a collective operation have been delivered: returns how many connections
    /// come now. After the last transfer the next operation has a time.
    ///
    /// # Errors
    /// Says if the operation did not move the bytes that it takes.
    pub(crate) fn on_delivered(
        &mut self,
        transfer: &Transfer,
        bytes: u64,
        now: Instant,
    ) -> Result<usize, String> {
        let Some(collective) = &mut self.collective else { return Ok(0) };
        if self.stop.is_some_and(|stop| stop <= now) {
            collective.abandon();
        }
        collective.on_arrival(transfer, bytes)?;
        let (count, is_complete) = (collective.ready(), collective.is_complete());
        let Plan::Drawn(spec) = &self.plan else { return Ok(count) };
        if is_complete && spec.count.is_some_and(|count| self.batches >= count) {
            self.complete = Some(now);
        } else if is_complete {
            self.draw_next(now);
        }
        Ok(count)
    }

    /// One of the connections whose time has come, as flow `index`.
    pub(crate) fn spawn<M: Medium>(&mut self, index: u32, net: &mut M) -> ReliableFlow {
        let number = self.made;
        let transfer = self.collective.as_mut().and_then(|collective| collective.next());
        let (size, ends) = match (transfer, &self.plan) {
            (Some(transfer), _) => (transfer.size, Some(transfer.ends)),
            (None, Plan::Drawn(sizes)) => (sizes.sizes.draw(&mut self.sizes), self.batch.next()),
            (None, Plan::Listed(list)) => {
                let listed = list[number as usize];
                (listed.size, Some(listed.ends))
            }
        };
        self.made += 1;
        self.under_way += 1;
        let named = |purpose: &str| {
            stream(self.seed, &format!("flow {} arrival {number} {purpose}", self.name))
        };
        let now = net.now();
        let start = match (transfer, self.jitter) {
            (Some(transfer), _) => {
                self.ready.get(transfer.from as usize).map_or(now, |ready| now.max(*ready))
            }
            (None, Duration::ZERO) => now,
            (None, most) => now + named("start").duration_up_to(most),
        };
        match net.net().chooses() {
            true => net.net_mut().add_flow_between(self.index, ends, named("path")),
            false => net.net_mut().add_flow(self.index),
        }
        let workload = Workload::File { size };
        let init = FlowInit {
            index,
            config: self.config.clone(),
            client: Client::new(workload.clone(), start, named("application")),
            workload,
            stop: None,
            start,
            rngs: [named("sender"), named("receiver")],
            max_acks: 0,
            origin: Some(Origin { source: self.index, number, ends, transfer }),
        };
        let mut flow = ReliableFlow::new(init);
        if self.warm {
            flow.begin_measurement(net);
        }
        net.wake(start, index, Side::Sender);
        flow
    }

    /// Takes over what is left of a connection that is over, or with which the run is.
    pub(crate) fn on_connection_end<M: Medium>(&mut self, flow: &ReliableFlow, net: &mut M) {
        self.under_way -= 1;
        self.flow_stats.absorb(&flow.stream.stats);
        self.totals.add(&flow.stream.stats);
        let failure = flow.stream.stats.failure().map(str::to_owned);
        self.failed += u64::from(failure.is_some());
        if let Some(collective) = self.collective.as_mut().filter(|_| failure.is_some()) {
            collective.abandon();
        }
        self.unfinished += u64::from(flow.stream.stats.completed().is_none());
        let number = flow.origin.map_or(0, |origin| origin.number);
        let measured = number.checked_sub(self.unmeasured).filter(|_| self.warm);
        if measured.is_some_and(|number| number < self.max_arrivals as u64) {
            self.arrivals.push(self.arrival(number, flow, failure));
        }
        if self.is_over() {
            let ending = match (self.failed, self.unfinished) {
                (0, 0) if self.collective.is_some() && self.complete.is_none() => FlowEnd::Stopped,
                (0, 0) => FlowEnd::Completed,
                (0, _) => FlowEnd::OutOfTime,
                (failed, _) => {
                    FlowEnd::Failed(format!("{failed} of {} connections failed", self.made))
                }
            };
            self.end_measurement(net, ending);
        }
    }

    /// The measured interval begins: connections that came before have no row.
    pub(crate) fn begin_measurement<M: Medium>(&mut self, net: &mut M) {
        self.warm = true;
        self.unmeasured = self.made;
        self.flow_stats.open(net.now().max(self.flow_stats.start), Totals::default());
    }

    /// No more is measured; open connections are counted.
    pub(crate) fn end_measurement<M: Medium>(&mut self, net: &mut M, ending: FlowEnd) {
        // A collective operation is over as soon as the last byte is there, before connections are closed.
        let complete = self.complete.filter(|_| ending == FlowEnd::Completed);
        let end = complete.unwrap_or(net.now()).max(self.flow_stats.start);
        self.flow_stats.close(end, self.totals, ending);
    }

    /// Whether no connection is in flight and none will come.
    pub(crate) fn is_over(&self) -> bool {
        let has_begun_all = self.collective.as_ref().is_none_or(|of| of.has_begun_all());
        self.next.is_none() && self.under_way == 0 && has_begun_all
    }

    /// What remains of the connections, by number.
    pub(crate) fn take_arrivals(&mut self) -> Vec<Arrival> {
        self.arrivals.sort_by_key(|arrival| arrival.row.arrival);
        std::mem::take(&mut self.arrivals)
    }

    /// Many connections have no one window.
    pub(crate) fn forget_unknown(row: &mut FlowRow) {
        row.cwnd_bytes_mean = None;
        row.cwnd_bytes_max = None;
    }

    /// The time of a collective operation has come: returns how many of its connections come at once.
    fn begin_operation(&mut self) -> usize {
        let (Some(collective), Some(now)) = (&mut self.collective, self.next.take()) else {
            return 0;
        };
        let Plan::Drawn(spec) = &self.plan else { return 0 };
        collective.begin(spec.sizes.draw(&mut self.sizes));
        if !self.jitter.is_zero() {
            let name = format!("flow {} operation {} start", self.name, self.batches);
            let mut rng = stream(self.seed, &name);
            let ranks = 0..collective.ranks();
            self.ready = ranks.map(|_| now + rng.duration_up_to(self.jitter)).collect();
        }
        collective.ready()
    }

    fn draw_next(&mut self, after: Instant) {
        let at = match &self.plan {
            Plan::Drawn(sizes) => {
                let at = after.saturating_add(self.times.exponential(sizes.mean_gap));
                Some(at).filter(|_| sizes.count.is_none_or(|count| self.batches < count))
            }
            Plan::Listed(list) => {
                list.get(self.due).map(|listed| self.origin.saturating_add(listed.start))
            }
        };
        self.next = at.filter(|at| self.stop.is_none_or(|stop| *at < stop));
    }

    fn arrival(&self, number: u64, flow: &ReliableFlow, failure: Option<String>) -> Arrival {
        let end = flow.stream.stats.completed().map(|(_, end)| end);
        let ends = flow.origin.and_then(|origin| origin.ends);
        let start = flow.stream.stats.start;
        let counts = flow.stream.stats.counts();
        let size = flow.size().map_or(0, Bytes::get);
        let row = ArrivalRow {
            flow: self.index,
            arrival: number,
            from_node: ends.map(|ends| ends.from),
            to_node: ends.map(|ends| ends.to),
            start_s: start.as_secs_f64(),
            size_bytes: size,
            fct_s: end.map(|end| end.saturating_since(start).as_secs_f64()),
            slowdown: None,
            slowdown_hpcc: None,
            completed: end.is_some(),
            delivered_bytes: counts.delivered,
            retransmits: counts.stats.retransmits,
            timeouts: counts.stats.timeouts,
            failure,
        };
        Arrival { start, end, connected: flow.stream.stats.connected, row }
    }
}

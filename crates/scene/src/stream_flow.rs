//! What flows over reliable byte streams share, our own and those that are not ours: their applications,
//! their wake-ups and their statistics.

use weir_units::Instant;

use crate::app::{Client, Server};
use crate::flow_stats::{FlowStats, Totals};
use crate::last_sample::LastSample;
use crate::medium::Medium;
use crate::side::Side;
use crate::spec::Workload;

/// A flow over a reliable byte stream, without the stream.
pub(crate) struct StreamFlow {
    pub(crate) index: u32,
    pub(crate) workload: Workload,
    pub(crate) client: Client,
    server: Server,
    pub(crate) stop: Option<Instant>,
    /// When each end's pending wake-up is due.
    armed: [Option<Instant>; 2],
    /// Whether nothing more will happen to it.
    pub(crate) over: bool,
    /// The warm-up is over: whatever begins now is measured from its beginning.
    pub(crate) warm: bool,
    /// When the previous sample was taken, and what had been delivered then.
    pub(crate) last_sample: LastSample,
    pub(crate) stats: FlowStats,
}

impl StreamFlow {
    pub(crate) fn new(
        index: u32,
        workload: Workload,
        client: Client,
        start: Instant,
        stop: Option<Instant>,
    ) -> Self {
        Self {
            index,
            client,
            server: Server::new(workload.clone()),
            workload,
            stop,
            armed: [Some(start), None],
            over: false,
            warm: false,
            last_sample: LastSample::new(start),
            stats: FlowStats::new(start),
        }
    }

    /// Whether the pending wake-up of an end is due; it is pending no more.
    pub(crate) fn take_wake(&mut self, side: Side, now: Instant) -> bool {
        self.armed[side as usize].take_if(|at| *at <= now).is_some()
    }

    /// Whether the sender is to be stopped now.
    pub(crate) fn is_stopped(&self, side: Side, now: Instant) -> bool {
        side == Side::Sender && self.stop.is_some_and(|stop| stop <= now)
    }

    /// Hands `bytes` that arrived in order to the application of an end. Returns how many bytes it answers.
    pub(crate) fn on_read<M: Medium>(&mut self, side: Side, bytes: u64, net: &mut M) -> u64 {
        match side {
            Side::Sender => {
                self.client.on_read(bytes);
                while let Some(answer) = self.client.poll_answer(net.now()) {
                    self.stats.on_answer(&answer);
                }
                let surplus = self.client.surplus();
                if surplus > 0 {
                    net.notes()
                        .violate(format!("flow {}: {surplus} bytes answer nothing", self.index));
                }
                0
            }
            Side::Receiver => {
                self.stats.delivered += bytes;
                self.server.on_read(bytes)
            }
        }
    }

    /// Whether the receiver has all of a file for the first time.
    pub(crate) fn completes(&self, side: Side) -> bool {
        let all = matches!(self.workload, Workload::File { size }
            if size.get() == self.stats.delivered);
        side == Side::Receiver && all && !self.stats.is_closed()
    }

    /// Begins the measured interval, or has it begin with the flow: `totals` are those of a flow that began.
    pub(crate) fn begin_measurement(&mut self, now: Instant, totals: Option<Totals>) {
        self.warm = true;
        if let Some(totals) = totals {
            self.stats.open(now, totals);
        }
    }

    /// Whether a sample is due of a flow that is measured.
    pub(crate) fn is_sampled(&self, now: Instant) -> bool {
        self.last_sample.is_before(now) && !self.stats.is_closed()
    }

    /// Schedules the wake-up of an end, whose connection has this `deadline`. Each end has one pending at
    /// most, and it may be early: deadlines mostly move away.
    pub(crate) fn arm<M: Medium>(
        &mut self,
        side: Side,
        mut deadline: Option<Instant>,
        net: &mut M,
    ) {
        if side == Side::Sender && !self.over {
            let waits_until = net.sender_waits_until(self.index);
            deadline = Instant::earlier(deadline, self.client.next_time());
            deadline = Instant::earlier(deadline, Instant::earlier(self.stop, waits_until));
        }
        let armed = &mut self.armed[side as usize];
        if let Some(at) = deadline.filter(|at| armed.is_none_or(|armed| *at < armed)) {
            let at = at.max(net.now());
            *armed = Some(at);
            net.wake(at, self.index, side);
        }
    }

    /// The counters, without those of the connection.
    pub(crate) fn totals<M: Medium>(&self, net: &mut M) -> Totals {
        Totals {
            dropped: net.notes().dropped_data[self.index as usize],
            delivered: self.stats.delivered,
            sent_ip_bytes: self.stats.sent_ip_bytes,
            unanswered: self.client.unanswered(),
            ..Totals::default()
        }
    }
}

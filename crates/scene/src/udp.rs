//! A flow of bare datagrams.

use weir_net::Ecn;
use weir_trace::SampleRow;
use weir_transport::RangeSet;
use weir_units::{Bytes, Duration, Instant, Rng};

use crate::flow_stats::{FlowEnd, FlowStats, Totals};
use crate::last_sample::LastSample;
use crate::medium::Medium;
use crate::packet::{Body, Direction, IP_HEADER, Packet, UDP_HEADER};
use crate::periods::{Action, Periods, nth_tick};
use crate::side::Side;
use crate::spec::{FlowSpec, UdpConfig, Workload};

/// A flow of bare datagrams.
pub(crate) struct UdpFlow {
    index: u32,
    workload: Workload,
    /// Only of a source that is on and off.
    periods: Option<Periods>,
    /// Payload of a datagram, but for the last of a file.
    payload: u32,
    stop: Option<Instant>,
    /// When the pending wake-up is due.
    armed: Option<Instant>,
    /// Datagrams and payload bytes sent.
    sent: u64,
    sent_bytes: u64,
    /// How long the first link took for the newest datagram.
    service: Duration,
    seen: Seen,
    begun: bool,
    over: bool,
    warm: bool,
    last_sample: LastSample,
    pub(crate) flow_stats: FlowStats,
}

/// Which datagrams have arrived, as far back as duplicates are plausible.
#[derive(Debug, Default)]
struct Seen {
    numbers: RangeSet,
    floor: u64,
}

impl UdpFlow {
    pub(crate) fn new(
        index: u32,
        spec: &FlowSpec,
        config: UdpConfig,
        start: Instant,
        rng: Rng,
    ) -> Self {
        let payload = spec.workload.message().map_or(config.payload, |size| size.get() as u32);
        let periods = match spec.workload {
            Workload::OnOff(periods) => Some(Periods::new(periods, start, rng)),
            _ => None,
        };
        Self {
            index,
            workload: spec.workload.clone(),
            periods,
            payload,
            stop: spec.stop,
            armed: Some(start),
            sent: 0,
            sent_bytes: 0,
            service: Duration::from_micros(1),
            seen: Seen::default(),
            begun: false,
            over: false,
            warm: false,
            last_sample: LastSample::new(start),
            flow_stats: FlowStats::new(start),
        }
    }

    pub(crate) fn on_packet<M: Medium>(&mut self, packet: &Packet, net: &mut M) {
        let Body::Datagram { number, payload } = packet.body else {
            return net.notes().violate(format!("flow {} cannot receive {packet:?}", self.index));
        };
        if packet.corrupted || !self.seen.is_new(number) {
            return;
        }
        net.notes().data_packets += 1;
        self.flow_stats.on_arrival(net.now(), packet);
        self.flow_stats.delivered += u64::from(payload);
        if self.flow_stats.delivered > self.sent_bytes {
            net.notes().violate(format!("flow {}: more bytes arrived than were sent", self.index));
        }
        let all = matches!(self.workload, Workload::File { size }
            if size.get() == self.flow_stats.delivered);
        if all {
            self.end_measurement(net, FlowEnd::Completed);
            net.log(self.index, "completed", "");
        }
    }

    pub(crate) fn on_wake<M: Medium>(&mut self, net: &mut M) {
        if self.armed.is_none_or(|at| at > net.now()) {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
            net.log(self.index, "start", "");
            if self.warm {
                self.begin_measurement(net);
            }
        }
        if self.stop.is_some_and(|stop| stop <= net.now()) {
            net.log(self.index, "stopped", "");
            self.end_measurement(net, FlowEnd::Stopped);
            self.over = true;
            return;
        }
        let next = match self.workload {
            Workload::Rate { rate, size } => {
                self.send(self.payload, net);
                Some(self.flow_stats.start.saturating_add(nth_tick(rate, size, self.sent)))
            }
            Workload::File { size } => self.fill_link(Some(size), net),
            Workload::OnOff(_) => self.send_in_periods(net),
            // Requests and connections are refused over UDP.
            Workload::Bulk
            | Workload::Request { .. }
            | Workload::PoissonRequest { .. }
            | Workload::FlowSizes(_)
            | Workload::Listed(_) => self.fill_link(None, net),
        };
        self.over = next.is_none();
        let wake = [next, self.stop].into_iter().flatten().min();
        self.armed = wake.filter(|_| !self.over);
        if let Some(at) = self.armed {
            net.wake(at, self.index, Side::Sender);
        }
    }

    pub(crate) fn begin_measurement<M: Medium>(&mut self, net: &mut M) {
        self.warm = true;
        if net.now() >= self.flow_stats.start {
            let totals = self.totals(net);
            self.flow_stats.open(net.now(), totals);
        }
    }

    pub(crate) fn end_measurement<M: Medium>(&mut self, net: &mut M, ending: FlowEnd) {
        let totals = self.totals(net);
        self.flow_stats.close(net.now(), totals, ending);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    pub(crate) fn sample(&mut self, now: Instant) -> Option<SampleRow> {
        if !self.last_sample.is_before(now) || self.flow_stats.is_closed() {
            return None;
        }
        let goodput_mbps = self.last_sample.advance(now, self.flow_stats.delivered);
        Some(SampleRow {
            flow: self.index,
            t_s: now.as_secs_f64(),
            goodput_mbps,
            state: "open",
            phase: "none",
            ..SampleRow::default()
        })
    }

    /// Sends what is due; returns when to come back.
    fn send_in_periods<M: Medium>(&mut self, net: &mut M) -> Option<Instant> {
        while self.periods.as_ref()?.next_time() <= net.now() {
            if self.periods.as_mut()?.act() == Action::Message {
                self.send(self.payload, net);
            }
        }
        let periods = self.periods.as_ref()?;
        let (next, greedy) = (periods.next_time(), periods.is_greedy());
        let free = if greedy { self.fill_link(None, net) } else { None };
        Some(free.map_or(next, |free| free.min(next)))
    }

    /// Keeps one datagram waiting behind the one that the first link is sending; returns when to
    /// come back, or `None` when everything is sent.
    fn fill_link<M: Medium>(&mut self, size: Option<Bytes>, net: &mut M) -> Option<Instant> {
        let now = net.now();
        while net.first_link(self.index).backlog(now).packets < 2 {
            let left = size.map_or(u64::MAX, |size| size.get() - self.sent_bytes);
            if left == 0 {
                return None;
            }
            let payload = left.min(u64::from(self.payload)) as u32;
            let policed = net.first_link(self.index).policed();
            self.send(payload, net);
            let link = net.first_link(self.index);
            if link.busy_until() <= now || link.policed() > policed {
                // It took no time: lost, refused by a policer, or let go at once by a token bucket.
                // Nothing holds the sender back, so it waits as long as the link's rate, or its last
                // datagram, took.
                let len = Bytes(u64::from(IP_HEADER + UDP_HEADER + payload));
                return Some(now + link.time_of(now, len).unwrap_or(self.service));
            }
        }
        let link = net.first_link(self.index);
        if link.is_paused() {
            let len = Bytes(u64::from(IP_HEADER + UDP_HEADER + self.payload));
            return Some(now + link.time_of(now, len).unwrap_or(self.service));
        }
        let free = link.busy_until();
        self.service = (free - now).max(Duration::from_nanos(1));
        Some(now + self.service)
    }

    fn send<M: Medium>(&mut self, payload: u32, net: &mut M) {
        let number = self.sent;
        let packet = Packet {
            flow: self.index,
            direction: Direction::Forward,
            hop: 0,
            ecn: Ecn::NotEct,
            corrupted: false,
            ip_len: IP_HEADER + UDP_HEADER + payload,
            stamp: 0,
            sent: net.now(),
            queued: Duration::ZERO,
            body: Body::Datagram { number, payload },
            load: (),
        };
        self.sent += 1;
        self.sent_bytes += u64::from(payload);
        self.flow_stats.sent_ip_bytes += u64::from(packet.ip_len);
        net.send(packet);
    }

    fn totals<M: Medium>(&self, net: &mut M) -> Totals {
        let mut totals = Totals {
            dropped: net.notes().dropped_data[self.index as usize],
            delivered: self.flow_stats.delivered,
            sent_ip_bytes: self.flow_stats.sent_ip_bytes,
            ..Totals::default()
        };
        totals.stats.data_segments_sent = self.sent;
        totals.stats.data_bytes_sent = self.sent_bytes;
        totals
    }
}

impl Seen {
    /// A duplicate that comes later than this many datagrams is not recognised, but counted as old.
    const MEMORY: u64 = 1 << 16;

    /// Whether this datagram arrives for the first time.
    fn is_new(&mut self, number: u64) -> bool {
        if number < self.floor {
            return false;
        }
        let new = self.numbers.insert(number..number + 1, usize::MAX) == Some(1);
        self.floor = self.floor.max(number.saturating_sub(Self::MEMORY));
        self.numbers.remove_below(self.floor);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_new_once_in_any_order() {
        let mut seen = Seen::default();
        let order = [0, 2, 1, 2, 0, 5, 4, 5];
        let new: Vec<bool> = order.iter().map(|&number| seen.is_new(number)).collect();
        assert_eq!(new, [true, true, true, false, false, true, true, false]);
    }
}

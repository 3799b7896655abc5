//! One connection, as one of its ends logged it.

use serde_json::Value;

use super::event::{Event, Trace, amount, number};
use super::fields::{self, Frames};
use super::flight::{Flight, Number, Sent};
use super::hold::Holder;
use crate::points::{Point, PointKind, Points};
use crate::rows::{ConnectionRow, Rows, goodput, seconds};
use crate::sender::{Measured, RepeatKind};

/// What the log of a connection has shown so far.
#[derive(Debug)]
pub(crate) struct LoggedConnection {
    trace: Trace,
    /// What this end sent.
    sent: Measured,
    places: Places,
    points: Points,
    /// What it received.
    received: Measured,
    received_places: Places,
    received_points: Points,
    flight: Flight,
    holder: Holder,
    first: u64,
    last: u64,
    /// When there was data first.
    data_start: Option<u64>,
    packets: u64,
    longest: u64,
    last_rtt: Option<u64>,
    /// Of the last loss episode.
    episode: Option<u64>,
    reported: Reported,
    time_reversals: u64,
}

/// What the log says itself.
#[derive(Debug, Default)]
struct Reported {
    controller: Option<String>,
    cwnd_max: Option<u64>,
    /// What RTTs are multiplied by to be in milliseconds.
    rtt_scale: Option<f64>,
    /// Whether there are acknowledgements by number.
    has_acks: bool,
    /// Whether there are losses by number.
    has_losses: bool,
    has_latest: bool,
    /// The last number of expiries in a row, and how often it grew.
    pto_count: u64,
    pto_growths: u64,
    /// Expiries of the probe timer, counted by their events.
    expiries: u64,
    /// Whether a packet was sent that must be acknowledged, and one was received after it.
    has_sent: bool,
    has_answer: bool,
    /// Totals of a log without packets.
    delivered: u64,
    retransmits: u64,
}

impl LoggedConnection {
    /// A connection whose first event is at `time`.
    pub(crate) fn new(time: u64, trace: &Trace) -> Self {
        Self {
            trace: trace.clone(),
            sent: Measured::new(time, None),
            places: Places::default(),
            points: Points::default(),
            received: Measured::new(time, None),
            received_places: Places::default(),
            received_points: Points::default(),
            flight: Flight::default(),
            holder: Holder::new(time),
            first: time,
            last: time,
            data_start: None,
            packets: 0,
            longest: 0,
            last_rtt: None,
            episode: None,
            reported: Reported { controller: trace.controller.clone(), ..Reported::default() },
            time_reversals: 0,
        }
    }

    /// Processes an event.
    pub(crate) fn handle(&mut self, event: &Event) {
        self.time_reversals += u64::from(event.time < self.last);
        let time = event.time.clamp(self.last, self.first.saturating_add(LONGEST));
        self.last = time;
        let data = &event.data;
        self.note_controller(data);
        match event.name.as_str() {
            "packet_sent" => self.on_sent(time, data),
            "packet_received" => self.on_received(time, data),
            "packets_acked" => self.on_acked_numbers(time, data),
            "packet_lost" => self.on_lost(time, data),
            "packets_lost" => {
                let count = amount(data, &["lost_packets"]).unwrap_or(1);
                self.on_lost_count(time, count, amount(data, &["lost_bytes"]).unwrap_or(0));
            }
            "metrics_updated"
            | "recovery_metrics_updated"
            | "metric_update"
            | "congestion_metric_update"
            | "pacing_metric_update"
            | "bandwidth_est_update" => {
                self.on_metrics(time, data);
            }
            "congestion_state_updated" => {
                let state = data.get("new").and_then(Value::as_str).unwrap_or_default();
                self.holder.set_state(state);
            }
            "loss_timer_updated" => {
                let is_expired = data.get("event_type").and_then(Value::as_str) == Some("expired");
                self.reported.expiries += u64::from(is_expired);
            }
            _ => {}
        }
        self.holder.settle(&self.flight);
    }

    /// Its rows; `file` is the name of the log and `group` that of the connection in it.
    pub(crate) fn into_rows(mut self, file: &str, group: Option<&str>) -> Rows {
        self.sent.counts.timeouts = self.reported.pto_growths.max(self.reported.expiries);
        let is_sender = self.sent.counts.bytes >= self.received.counts.bytes;
        let sent = (&self.sent, &self.points);
        let received = (&self.received, &self.received_points);
        let ((measured, points), (other, _)) =
            if is_sender { (sent, received) } else { (received, sent) };
        let title = self.trace.title.as_deref().or(group).unwrap_or_default();
        let is_of_network = self.trace.vantage.as_deref() == Some("network");
        let side = if is_of_network { &self.trace.flow } else { &self.trace.vantage };
        let own = match side.as_deref() {
            Some("client") => "client",
            // A log without a side is mostly that of a server.
            _ => "server",
        };
        let peer = if own == "client" { "server" } else { "client" };
        let row = ConnectionRow {
            file: file.to_owned(),
            source: "qlog",
            client: format!("client {title}").trim_end().to_owned(),
            server: format!("server {title}").trim_end().to_owned(),
            sender: if is_sender { own } else { peer },
            capture_point: match (is_of_network, is_sender) {
                (true, _) => "middle",
                (_, true) => "sender",
                (_, false) => "receiver",
            },
            start_s: seconds(self.first),
            duration_s: seconds(self.last - self.first),
            packets: self.packets,
            reverse_bytes: other.counts.bytes,
            mss_bytes: self.longest as u32,
            cwnd_bytes_max: self.reported.cwnd_max.filter(|_| is_sender),
            goodput_mbps: self.data_start.and_then(|start| goodput(measured, self.last - start)),
            time_reversals: self.time_reversals,
            controller: self.reported.controller.clone().filter(|_| is_sender),
            ..ConnectionRow::default()
        };
        let rows = Rows::of_log(row, measured, points);
        if is_of_network { rows.without_limits(OF_NETWORK) } else { rows }
    }

    /// Counts a packet. What was in flight before the first one was of a handshake, whose metrics some stacks log first: no data
    /// has begun then.
    fn note_packet(&mut self) {
        if self.packets == 0 {
            self.data_start = None;
            self.holder.forget_beginning();
        }
        self.packets += 1;
    }

    fn on_sent(&mut self, time: u64, data: &Value) {
        self.note_packet();
        let frames = Frames::of(data);
        let size = self.size(data, &frames);
        self.holder.set_blocked(frames.blocked.filter(|is_blocked| *is_blocked));
        if !frames.is_eliciting || size == 0 {
            return;
        }
        self.reported.has_sent = true;
        let bytes = self.data_of(&frames, size);
        // The time counts from the first data on, as in a capture: a handshake waits for no application.
        if bytes > 0 || self.data_start.is_some() {
            self.holder.on_sent(time, size, &mut self.sent.slices);
        }
        let place = self.places.of(&frames, bytes);
        let mut index = u32::MAX;
        if bytes > 0 {
            self.data_start.get_or_insert(time);
            let counts = &mut self.sent.counts;
            counts.packets += 1;
            counts.bytes += bytes;
            self.longest = self.longest.max(size);
            index = self.sent.note_passed(time, place, bytes as u32);
            self.holder.note_data(size, self.flight.bytes().saturating_add(size));
            self.sent.slices.at(time).sent += bytes;
            let end = place + bytes as i64;
            self.points.push(Point { time, start: place, end, kind: PointKind::Data });
        }
        let trigger = data.get("trigger").and_then(Value::as_str).unwrap_or_default();
        self.sent.counts.tail_probe += u64::from(trigger == "pto_probe");
        if let Some(number) = fields::number(data) {
            self.flight.send(number, Sent { time, size, data: bytes, place, index });
        }
        self.sent.record_flight(time, self.flight.bytes());
    }

    fn on_received(&mut self, time: u64, data: &Value) {
        self.note_packet();
        self.reported.has_answer |= self.reported.has_sent;
        let frames = Frames::of(data);
        self.holder.set_blocked(frames.blocked.filter(|is_blocked| !is_blocked));
        let bytes = self.data_of(&frames, self.size(data, &frames));
        if bytes > 0 {
            self.data_start.get_or_insert(time);
            self.received.counts.packets += 1;
            self.received.counts.bytes += bytes;
            self.received.slices.at(time).sent += bytes;
            self.received.record_delivered(time, bytes);
            let place = self.received_places.of(&frames, bytes);
            let end = place + bytes as i64;
            self.received_points.push(Point { time, start: place, end, kind: PointKind::Data });
        }
        let space = fields::space(data);
        let mut newest = None;
        fields::acked_ranges(data, |range| {
            newest = earlier(newest, self.acknowledge(time, space, range));
        });
        self.record_rtt(time, newest);
    }

    /// The event of newer logs that has no frames.
    fn on_acked_numbers(&mut self, time: u64, data: &Value) {
        let name = data.get("packet_number_space").and_then(Value::as_str).unwrap_or_default();
        let space = match name {
            "initial" => 1,
            "handshake" => 2,
            _ => 0,
        };
        let numbers = data.get("packet_numbers").and_then(Value::as_array);
        let mut newest = None;
        for number in numbers.into_iter().flatten().filter_map(Value::as_u64) {
            newest = earlier(newest, self.acknowledge(time, space, (number, number)));
        }
        self.record_rtt(time, newest);
    }

    /// The newest of the packets that are acknowledged together gives the sample (RFC 9002 §5.1).
    fn record_rtt(&mut self, time: u64, newest: Option<u64>) {
        if let Some(rtt) = newest {
            self.last_rtt = Some(rtt);
            self.sent.record_rtt(time, rtt);
        }
    }

    /// Returns how long ago the newest of the packets was sent that are acknowledged now.
    fn acknowledge(&mut self, time: u64, space: u8, range: (u64, u64)) -> Option<u64> {
        self.reported.has_acks = true;
        self.holder.add_time(time, &mut self.sent.slices);
        let (mut bytes, mut end, mut newest, mut spurious) = (0, None, None, 0);
        let passed = &mut self.sent.passed;
        self.flight.acknowledge(space, range, |sent, was_lost| {
            if let Some(passed) = passed.get_mut(sent.index as usize) {
                if was_lost {
                    passed.is_lost = false;
                } else {
                    passed.set_rtt(time - sent.time);
                }
            }
            if was_lost {
                spurious += 1;
                return;
            }
            bytes += sent.data;
            newest = earlier(newest, Some(time - sent.time));
            end = end.max(Some(sent.place + sent.data as i64));
        });
        self.sent.counts.spurious += spurious;
        if let Some(loss) = self.sent.losses.last_mut() {
            loss.duplicates = loss.duplicates.saturating_add(spurious as u32);
        }
        if bytes > 0 {
            self.sent.record_delivered(time, bytes);
            let place = end.unwrap_or_default();
            self.points.push(Point { time, start: place, end: place, kind: PointKind::Ack });
        }
        newest
    }

    fn on_lost(&mut self, time: u64, data: &Value) {
        self.reported.has_losses = true;
        let trigger = data.get("trigger").and_then(Value::as_str).unwrap_or_default();
        let kind = repeat_kind(trigger);
        let Some(sent) =
            fields::number(data).and_then(|number: Number| self.flight.declare_lost(number))
        else {
            self.on_lost_count(time, 1, fields::length(data));
            return;
        };
        self.holder.add_time(time, &mut self.sent.slices);
        self.note_lost(time, sent.time, kind, 1, sent.data);
        if let Some(passed) = self.sent.passed.get_mut(sent.index as usize) {
            passed.is_lost = true;
        }
        let kind = match kind {
            Some(RepeatKind::Timeout) => PointKind::Timeout,
            _ => PointKind::Fast,
        };
        let end = sent.place + sent.data as i64;
        self.points.push(Point { time, start: sent.place, end, kind });
    }

    /// Losses without the numbers of their packets.
    fn on_lost_count(&mut self, time: u64, count: u64, bytes: u64) {
        self.holder.add_time(time, &mut self.sent.slices);
        // They were sent about a round trip ago.
        let sent = time.saturating_sub(self.last_rtt.unwrap_or(0));
        self.note_lost(time, sent, None, count.min(u64::from(u32::MAX)), bytes);
    }

    fn note_lost(
        &mut self,
        time: u64,
        sent: u64,
        kind: Option<RepeatKind>,
        count: u64,
        bytes: u64,
    ) {
        let counts = &mut self.sent.counts;
        match kind {
            Some(RepeatKind::Fast) => counts.fast += count,
            Some(RepeatKind::Timeout) => counts.timeout += count,
            Some(RepeatKind::TailProbe) | None => counts.unexplained += count,
        }
        counts.repeated_bytes = counts.repeated_bytes.saturating_add(bytes);
        let slice = self.sent.slices.at(time);
        slice.repeats = slice.repeats.saturating_add(count as u32);
        // What was sent before an episode began is part of it (RFC 9002 §7.3.2).
        if self.episode.is_none_or(|begin| sent > begin) {
            self.episode = Some(time);
            self.sent.begin_loss(time, self.last_rtt);
        }
        if let Some(loss) = self.sent.losses.last_mut() {
            loss.repeats = loss.repeats.saturating_add(count as u32);
        }
        self.holder.on_loss();
    }

    fn on_metrics(&mut self, time: u64, data: &Value) {
        self.holder.add_time(time, &mut self.sent.slices);
        if let Some(cwnd) = amount(data, &["congestion_window", "cwnd", "current_cwnd"]) {
            self.holder.cwnd = Some(cwnd);
            self.reported.cwnd_max = self.reported.cwnd_max.max(Some(cwnd));
            let slice = self.sent.slices.at(time);
            slice.cwnd = slice.cwnd.max(Some(cwnd));
        }
        if let Some(threshold) = data.get("ssthresh") {
            self.holder.set_ssthresh(number(threshold));
        }
        if let Some(rate) = amount(data, &["pacing_rate"]) {
            self.holder.pacing_rate = Some(rate).filter(|rate| *rate > 0);
        }
        self.take_rtts(time, data);
        if let Some(lost) = data.get("cf_lost_packets").and_then(|lost| amount(lost, &["delta"]))
            && !self.reported.has_losses
            && lost > 0
        {
            self.on_lost_count(time, lost, 0);
        }
        if let Some(bytes) = amount(data, &["bytes_in_flight"]) {
            let left = self.flight.report(bytes);
            self.sent.record_flight(time, bytes);
            // A log without acknowledgements: what left was acknowledged.
            if !self.reported.has_acks && left > 0 && self.reported.has_answer {
                self.sent.record_delivered(time, left);
            }
        }
        if self.packets == 0 {
            self.take_totals(time, data);
        }
        if let Some(count) = amount(data, &["pto_count"]) {
            self.reported.pto_growths += u64::from(count > self.reported.pto_count);
            self.reported.pto_count = count;
        }
    }

    /// Our export of worlds whose packets are not known has totals in place of events.
    fn take_totals(&mut self, time: u64, data: &Value) {
        let grown = |name: &str, total: &mut u64| {
            let now = amount(data, &[name]).unwrap_or(0).max(*total);
            now - std::mem::replace(total, now)
        };
        let delivered = grown("acked_bytes", &mut self.reported.delivered);
        let lost = grown("retransmits", &mut self.reported.retransmits);
        if self.flight.bytes() > 0 {
            self.data_start.get_or_insert(time);
            self.holder.begin(time);
        }
        self.sent.record_delivered(time, delivered);
        if lost > 0 {
            self.on_lost_count(time, lost, 0);
        }
    }

    fn take_rtts(&mut self, time: u64, data: &Value) {
        let Some(scale) = self.rtt_scale(data) else { return };
        // Before a packet has been answered there is only the initial RTT.
        if !self.reported.has_answer && self.packets > 0 {
            return;
        }
        let nanos = |names: &[&str]| {
            let value = names.iter().find_map(|name| data.get(*name)).and_then(number)?;
            Some((value * scale * 1e6).clamp(0.0, LONGEST as f64) as u64)
        };
        if let Some(smoothed) = nanos(&["smoothed_rtt", "srtt"]) {
            self.sent.slices.at(time).srtt = Some(smoothed);
        }
        let latest = nanos(&["latest_rtt"]);
        self.reported.has_latest |= latest.is_some();
        // The smoothed RTT is better than none.
        let rtt = if self.reported.has_latest { latest } else { nanos(&["smoothed_rtt", "srtt"]) };
        // The log's own packets give every sample.
        if let Some(rtt) = rtt.filter(|_| !self.reported.has_acks) {
            self.record_rtt(time, Some(rtt));
        }
    }

    /// quinn writes seconds. Its first value is the initial RTT of 333 ms (RFC 9002 §6.2.2).
    fn rtt_scale(&mut self, data: &Value) -> Option<f64> {
        if self.reported.rtt_scale.is_none() {
            let first = data.get("smoothed_rtt").or(data.get("latest_rtt")).and_then(number)?;
            let is_seconds = (first - INITIAL_RTT_S).abs() < 1e-9;
            self.reported.rtt_scale = Some(if is_seconds { 1e3 } else { self.trace.scale });
        }
        self.reported.rtt_scale
    }

    fn note_controller(&mut self, data: &Value) {
        if self.reported.controller.is_none() {
            let names =
                ["congestion_control", "congestion_control_algorithm", "congestion_controller"];
            let found = names.iter().find_map(|name| data.get(*name)?.as_str());
            self.reported.controller = found.map(|name| name.chars().take(MOST_LETTERS).collect());
        }
    }

    /// Bytes of a packet that count as in flight: of TCP its payload.
    fn size(&self, data: &Value, frames: &Frames) -> u64 {
        if self.trace.is_tcp && frames.are_known {
            fields::payload(data)
        } else {
            fields::length(data)
        }
    }

    /// Bytes of data: those of streams, or the whole packet in a log without frames.
    fn data_of(&self, frames: &Frames, size: u64) -> u64 {
        match (self.trace.is_tcp, frames.are_known) {
            (false, true) => frames.data,
            _ => size,
        }
    }
}

/// Places of data in the diagram.
#[derive(Debug, Default)]
struct Places {
    /// The stream that has the first data, and whether there are others.
    stream: Option<u64>,
    has_more_streams: bool,
    /// Bytes of data so far.
    sum: i64,
}

impl Places {
    /// Of the data of a packet: its offset if there is one stream, else in the order of the packets.
    fn of(&mut self, frames: &Frames, bytes: u64) -> i64 {
        let place = self.sum;
        self.sum = place.saturating_add(bytes as i64).min(FARTHEST);
        let Some((stream, offset)) = frames.first else { return place };
        self.has_more_streams |= *self.stream.get_or_insert(stream) != stream;
        if self.has_more_streams {
            return place;
        }
        let offset = i64::try_from(offset).unwrap_or(FARTHEST).min(FARTHEST);
        self.sum = place.max(offset.saturating_add(bytes as i64)).min(FARTHEST);
        offset
    }
}

/// The smaller of two times, if there are any.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// What the trigger of a loss says about the timer or the acknowledgements behind it.
fn repeat_kind(trigger: &str) -> Option<RepeatKind> {
    if trigger.contains("threshold") {
        return Some(RepeatKind::Fast);
    }
    ["pto", "timeout", "rto", "persistent"]
        .iter()
        .any(|word| trigger.contains(word))
        .then_some(RepeatKind::Timeout)
}

const INITIAL_RTT_S: f64 = 0.333;
/// Times are at most so far from the first, a year.
const LONGEST: u64 = 365 * 24 * 3_600 * 1_000_000_000;
/// A stream has fewer bytes (RFC 9000 §19.8).
const FARTHEST: i64 = 1 << 62;
const MOST_LETTERS: usize = 40;
const OF_NETWORK: &str = "the log is of neither end: nothing shows what the sender knew";

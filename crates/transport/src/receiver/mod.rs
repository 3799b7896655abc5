//! The receiving half: what arrived, how much more may come, when to say so.

mod ack_frequency;
mod ack_policy;
mod autotune;
mod echo;
mod limit;
mod memory;

use std::ops::Range;

use weir_units::{Bytes, Duration, Echo, Ecn, Feedback, Instant};

use self::ack_frequency::Position;
use self::ack_policy::{AckPolicy, Progress};
use self::autotune::Autotune;
pub(crate) use self::echo::EchoMode;
use self::echo::{AckUrgency, Echo as EcnEcho};
use self::limit::OfferLimit;
pub(crate) use self::limit::window_scale;
use crate::reassembly::{Reassembly, Stored};
use crate::segment::{Flags, SackBlocks};
use crate::{Config, DelayedAck, HostProfile};

/// The receiving half of a connection. Positions are stream offsets.
#[derive(Debug)]
pub(crate) struct Receiver {
    reassembly: Reassembly,
    policy: AckPolicy,
    /// SACK was agreed upon.
    selective: bool,
    /// The most to hold for the application, of the `largest` that was agreed upon.
    buffer: u64,
    largest: u64,
    /// If the buffer grows by itself.
    autotune: Option<Box<Autotune>>,
    /// The largest window to offer: Linux's grows with what arrives (`rcv_ssthresh`).
    window_limit: u64,
    /// How far that grows (`window_clamp`).
    window_clamp: u64,
    /// By the length of the route or by the routers' indices.
    offer_limit: OfferLimit,
    /// The same in bytes.
    route_limit: u64,
    mss: u64,
    /// Windows have the measured share of memory (Linux 6.5), which newer first windows come with.
    is_measured: bool,
    /// Bytes that the application has consumed.
    read: u64,
    /// Linux: bytes that were to be read when an acknowledgement fell due, which does not wait for the application.
    unread: u64,
    /// Where the stream ends, once a FIN was seen.
    fin_at: Option<u64>,
    /// The first offset beyond the window that was offered.
    offered_edge: u64,
    /// The window that the last acknowledgement had (`rcv_wnd`).
    offered: u64,
    echo: EcnEcho,
    /// What the routers have said since the last acknowledgement, for the next one.
    feedback: Option<Echo>,
    /// A delayed acknowledgement that a change of marks or new gaps release, before its successor.
    flush: Option<Flush>,
}

/// An acknowledgement of what had arrived before the newest segment (RFC 8257 §3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) ack_offset: u64,
    pub(crate) echo: bool,
    /// The ranges to report, the newest first.
    pub(crate) ranges: Vec<Range<u64>>,
}

/// What the arrival of data meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// The part of the payload to store.
    pub(crate) store: Option<Stored>,
    /// Bytes that became readable.
    pub(crate) delivered: u64,
    /// The stream has just become complete.
    pub(crate) finished: bool,
}

/// Shorter segments in order do not let the window grow (Linux's `tcp_event_data_recv`).
const LEAST_THAT_GROWS: u32 = 128;

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        let out_of_order = config.stack.recovery.scheme().receiver.out_of_order;
        let offer_limit = OfferLimit::new(config);
        Self {
            reassembly: match config.host_profile {
                HostProfile::Kernel => Reassembly::new(out_of_order),
                HostProfile::UserSpace => Reassembly::new(out_of_order).with_all_ranges(),
            },
            policy: AckPolicy::new(
                config.delayed_ack(),
                u64::from(config.mss),
                config.host_profile,
            ),
            selective: false,
            buffer: config.recv_buffer.get(),
            largest: config.largest_recv_buffer().get(),
            autotune: Autotune::new(config).map(Box::new),
            window_limit: first_window(config),
            window_clamp: first_clamp(config),
            offer_limit,
            route_limit: offer_limit.bytes(u64::from(config.mss)).unwrap_or(u64::MAX),
            mss: u64::from(config.mss),
            is_measured: config.initial_recv_window.is_some(),
            read: 0,
            unread: 0,
            fin_at: None,
            offered_edge: 0,
            offered: 0,
            echo: EcnEcho::default(),
            feedback: None,
            flush: None,
        }
    }

    /// The handshake has agreed upon SACK, or not, and upon how marks are echoed.
    pub(crate) fn agree(&mut self, sack: bool, echo: EchoMode) {
        self.selective = sack;
        self.echo = EcnEcho::new(echo);
    }

    /// Full segments carry this much payload.
    pub(crate) fn expect_segments(&mut self, mss: u32) {
        self.mss = u64::from(mss);
        self.policy.set_mss(self.mss);
        self.update_route_limit();
    }

    /// What the packet of a segment with data has met on its way.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback) {
        if let Feedback::Drai(index) = feedback
            && self.offer_limit.on_index(*index, self.rcv_nxt(), self.offered_edge)
        {
            self.update_route_limit();
        }
        let known = self.feedback.map(|echo| echo.and(feedback));
        self.feedback = known.or_else(|| Some(Echo::of(feedback)));
    }

    /// What the acknowledgement that is about to leave returns of the routers' feedback.
    pub(crate) fn take_feedback(&mut self) -> Option<Echo> {
        self.feedback.take()
    }

    /// A segment of `len` bytes echoes a timestamp of ours, `rtt` old.
    pub(crate) fn on_echo(&mut self, echo: u32, rtt: Duration, len: u32) {
        if let Some(autotune) = &mut self.autotune {
            autotune.on_echo(echo, rtt, u64::from(len));
        }
    }

    /// Processes `len` bytes at `offset`, already within the window, and the FIN after them, if `flags` have one.
    pub(crate) fn on_data(
        &mut self,
        now: Instant,
        offset: u64,
        len: u32,
        flags: Flags,
    ) -> Received {
        let fin = flags.contains(Flags::FIN);
        let had_hole = self.reassembly.has_hole();
        let held = self.held(offset, len);
        let released = self.release_held(offset, len);
        let was_finished = self.is_finished();
        if fin {
            // The first FIN stands: the stream has one end.
            self.fin_at.get_or_insert(offset + u64::from(len));
        }
        let before = self.rcv_nxt();
        let arrival = self.reassembly.insert(offset, len);
        if fin {
            self.reassembly.note_fin_ahead(offset + u64::from(len));
        }
        // RFC 5681 §4.2, RFC 2883 §4: the sender waits for news of these.
        let filled = had_hole && arrival.fills_hole;
        let copied = arrival.duplicate.is_some()
            && !(arrival.out_of_order && self.policy.compresses_copies());
        let filled = filled && self.policy.answers_repair(self.reassembly.has_hole());
        if copied || filled || fin {
            self.policy.demand();
        }
        if len > 0 && offset + u64::from(len) <= before {
            self.policy.on_old_data(self.window());
        }
        if len > 0 {
            // Newer Linux measures what is out of order too.
            if arrival.delivered > 0 || (self.is_measured && arrival.store.is_some()) {
                self.policy.measure(u64::from(len), fin || flags.contains(Flags::PSH));
            }
            let news = match arrival.delivered {
                0 => arrival.store.is_some() && self.selective,
                _ => len >= LEAST_THAT_GROWS,
            };
            let progress = Progress {
                selective: self.selective,
                released,
                growing: news && self.grow_window(len, held),
                hampered: self.policy.counts_enough_with(arrival.delivered)
                    && self.selected_window() < self.offered,
                rcv_nxt: self.rcv_nxt(),
                advanced: arrival.delivered,
                missing: arrival.out_of_order || self.reassembly.has_hole(),
                window: self.window(),
                rtt: self.autotune.as_ref().and_then(|autotune| autotune.rtt()),
                position: Position {
                    start: offset,
                    end: offset + u64::from(len),
                    missing: self
                        .policy
                        .reported_below()
                        .and_then(|at| self.reassembly.first_missing(at)),
                },
            };
            self.policy.on_data(now, &progress);
            if self.policy.answers_unread() {
                self.unread = self.readable();
            }
            let window = self.offered_edge.saturating_sub(progress.rcv_nxt);
            if let Some(autotune) = self.autotune.as_mut().filter(|_| progress.advanced > 0) {
                autotune.on_data(now, progress.rcv_nxt, window);
            }
        }
        let finished = self.is_finished() && !was_finished;
        Received { store: arrival.store, delivered: arrival.delivered, finished }
    }

    /// `len` bytes at `offset` arrive that were acknowledged before, or none that are wanted: the sender learns of it
    /// (RFC 2883).
    pub(crate) fn on_acknowledged_data(&mut self, offset: u64, len: u32) {
        self.reassembly.insert(offset, len);
        if len > 0 {
            self.policy.on_old_data(self.window());
        }
        self.policy.answer();
    }

    /// The window that was offered last.
    #[inline]
    fn window(&self) -> u64 {
        if self.offered_edge > 0 { self.offered } else { self.edge() }
    }

    /// The handshake took so long.
    pub(crate) fn on_handshake_rtt(&mut self, rtt: Duration) {
        self.policy.on_handshake_rtt(rtt);
    }

    /// This end sends data too, and measures so as a sender.
    pub(crate) fn on_own_rtt(&mut self, srtt: Duration, rto: Duration) {
        self.policy.on_own_rtt(srtt, rto);
    }

    /// Something unacceptable arrived: the sender must learn where we stand.
    pub(crate) fn demand_ack(&mut self) {
        self.policy.answer();
    }

    /// How the packet of a segment with data arrived, before the data itself is taken in.
    pub(crate) fn on_ecn(&mut self, field: Ecn) {
        match self.echo.on_data(field) {
            AckUrgency::Nothing => {}
            AckUrgency::Quick => self.policy.hurry(2),
            AckUrgency::Flush { echo } => {
                if self.policy.is_delaying() {
                    self.flush = Some(self.flush_with(echo));
                }
                self.policy.demand();
            }
        }
    }

    /// A segment opens another gap: what was held back of the last ones leaves first.
    fn release_held(&mut self, offset: u64, len: u32) -> bool {
        if offset <= self.rcv_nxt() {
            return false;
        }
        let arrived = offset..offset.saturating_add(u64::from(len));
        let is_owed =
            self.flush.is_none() && self.policy.must_release(|| self.reassembly.rank(&arrived));
        if is_owed {
            self.flush = Some(self.flush_with(self.echo.is_on()));
            self.on_ack_sent();
        }
        is_owed
    }

    fn flush_with(&self, echo: bool) -> Flush {
        let ranges = self.reassembly.newest_ranges();
        Flush { ack_offset: self.ack_offset(), echo, ranges }
    }

    /// The sender says that it has reduced. With data, it may wait for the answer with little in
    /// flight (Linux's `tcp_ecn_accept_cwr`).
    pub(crate) fn on_cwr(&mut self, with_data: bool) {
        self.echo.on_cwr();
        if with_data {
            self.policy.demand();
        }
    }

    pub(crate) fn echoes_ecn(&self) -> bool {
        self.echo.is_on()
    }

    pub(crate) fn take_flush(&mut self) -> Option<Flush> {
        self.flush.take()
    }

    /// The connection is established.
    pub(crate) fn on_established(&mut self, now: Instant) {
        self.window_limit = self.window_limit.min(self.window_clamp);
        if self.is_measured {
            // By the first segment with data.
            self.window_clamp = self.buffer;
        }
        if let Some(autotune) = &mut self.autotune {
            autotune.on_established(now);
        }
    }

    /// The application takes up to `max` bytes; returns how many there were. A window that this opens
    /// is announced.
    pub(crate) fn read(&mut self, now: Instant, max: u64) -> u64 {
        let taken = self.readable().min(max);
        let before = self.read;
        self.read += taken;
        if let Some(autotune) = &mut self.autotune {
            let rcv_nxt = self.reassembly.rcv_nxt();
            let grown = autotune.on_read(now, before..self.read, rcv_nxt).unwrap_or_default();
            let grown = grown.min(self.largest);
            if grown > self.buffer {
                self.buffer = grown;
                self.window_clamp = grown;
            }
        }
        if taken > 0 {
            self.announce_opening();
        }
        if taken > 0 {
            self.policy.on_read(self.readable() == 0);
        }
        taken
    }

    /// Holds at most this many bytes for the application from now on; the window no longer grows by itself.
    /// What was offered stands (RFC 9293 §3.8.6.2.1).
    pub(crate) fn set_window(&mut self, bytes: u64) {
        self.autotune = None;
        self.buffer = bytes.min(self.largest);
        self.window_limit = self.buffer;
        self.window_clamp = self.buffer;
        self.announce_opening();
    }

    /// The route to the peer has this many hops.
    pub(crate) fn on_hops(&mut self, hops: u8) {
        self.offer_limit.set_hops(hops);
        self.update_route_limit();
    }

    fn update_route_limit(&mut self) {
        self.route_limit = self.offer_limit.bytes(self.mss).unwrap_or(u64::MAX);
    }

    pub(crate) fn readable(&self) -> u64 {
        self.rcv_nxt() - self.read
    }

    /// Everything below this offset arrived.
    pub(crate) fn rcv_nxt(&self) -> u64 {
        self.reassembly.rcv_nxt()
    }

    /// What to acknowledge: the FIN counts once it is next.
    pub(crate) fn ack_offset(&self) -> u64 {
        self.rcv_nxt() + u64::from(self.is_finished())
    }

    /// Whether the stream is complete, FIN included.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_at == Some(self.rcv_nxt())
    }

    /// The first offset beyond what may be sent to us.
    pub(crate) fn edge(&self) -> u64 {
        let most = self.route_limit.min(self.window_limit);
        let edge = (self.read + self.buffer).min(self.rcv_nxt() + most);
        edge.max(self.offered_edge)
    }

    /// The window to offer now, in bytes. It never shrinks, and grows by no slivers; Linux's ends at a whole unit of
    /// its scale.
    pub(crate) fn offer(&mut self) -> u64 {
        self.offer_at_most(self.offer_limit.most())
    }

    /// Linux rounds up what it does not take back (`tcp_select_window`). Here it does not pass the buffer by more than a
    /// sixteenth by that: with a byte in each segment it would for ever.
    fn standing_window(&self, current: u64) -> u64 {
        let space = (self.read + self.buffer + self.buffer / 16).saturating_sub(self.rcv_nxt());
        self.offer_limit.rounded_up(current.min(space)).max(current)
    }

    /// The peer does not scale windows.
    pub(crate) fn offer_unscaled(&mut self) {
        self.offer_limit.unscale();
    }

    /// The window to offer where the segment cannot carry more than `most`.
    pub(crate) fn offer_at_most(&mut self, most: u64) -> u64 {
        let current = self.offered_edge.saturating_sub(self.rcv_nxt());
        self.offered = if self.policy.is_linux() {
            let window = self.selected_window().min(most).min(self.route_limit);
            if window < current { self.standing_window(current) } else { window }
        } else {
            let window = self.edge().saturating_sub(self.rcv_nxt()).min(most);
            let is_worth_it = window >= current + self.mss.min(self.buffer / 2);
            if is_worth_it || self.offered_edge == 0 { window } else { current }
        };
        self.offered_edge = self.rcv_nxt() + self.offered;
        self.offered
    }

    /// The ranges to report, in stream offsets, at most `max`.
    pub(crate) fn sack_ranges(&mut self, max: usize) -> impl Iterator<Item = Range<u64>> {
        self.reassembly.sack_ranges(max.min(SackBlocks::MAX))
    }

    /// Whether there are ranges to report.
    pub(crate) fn has_reports(&self) -> bool {
        self.reassembly.has_reports()
    }

    /// Blocks have left: those that did not fit follow in another acknowledgement.
    pub(crate) fn on_blocks_sent(&mut self) {
        if self.reassembly.has_unreported() {
            self.policy.demand();
        }
    }

    /// Whether there is something to report that only a SACK block says.
    pub(crate) fn has_news(&self) -> bool {
        self.reassembly.has_hole()
    }

    pub(crate) fn ack_is_due(&self, now: Instant) -> bool {
        self.policy.is_due(now)
    }

    /// The time in the timestamp of an acknowledgement that leaves now.
    #[inline]
    pub(crate) fn ack_stamp(&self, now: Instant) -> Instant {
        self.policy.stamp(now)
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.policy.on_timeout(now);
    }

    pub(crate) fn ack_deadline(&self) -> Option<Instant> {
        self.policy.deadline()
    }

    /// Data of ours leaves.
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        self.policy.on_data_sent(now);
    }

    /// The end that answers sends data with its acknowledgements.
    pub(crate) fn wait_for_data(&mut self, now: Instant) {
        self.policy.wait_for_data(now);
    }

    /// An acknowledgement left, alone or with data.
    pub(crate) fn on_ack_sent(&mut self) {
        let had_unread = std::mem::take(&mut self.unread) > 0;
        self.policy.on_ack_sent();
        if had_unread {
            self.announce_opening();
        }
    }

    /// A sender that the window stopped must hear that it may go on, but not of a sliver (RFC 9293
    /// §3.8.6.2.2). Linux says so if the window doubles (`tcp_cleanup_rbuf`).
    fn announce_opening(&mut self) {
        if self.policy.is_linux() {
            let window = self.offered_edge.saturating_sub(self.rcv_nxt());
            if 2 * window <= self.window_limit && self.offered_edge > 0 {
                let selected = self.selected_window();
                if selected > 0 && selected >= 2 * window {
                    self.policy.answer();
                }
            }
            return;
        }
        let worth = (2 * self.mss).min(self.buffer / 2);
        let nearly_closed = self.offered_edge > 0 && self.offered_edge < self.rcv_nxt() + worth;
        if nearly_closed && self.read + self.buffer >= self.offered_edge + worth {
            self.policy.demand();
        }
    }
}

/// Linux offers whole segments of its buffer, before 6.11 at most 64 KB at first (`tcp_select_initial_window`); other
/// receivers offer all that they have. What a buffer that may grow begins with is given as it is.
fn first_window(config: &Config) -> u64 {
    let (buffer, mss) = (config.recv_buffer.get(), u64::from(config.mss));
    let is_linux = config.delayed_ack() == DelayedAck::Linux;
    let whole = |window: u64| if is_linux && window > mss { window - window % mss } else { window };
    match config.initial_recv_window {
        Some(first) if config.max_recv_buffer.is_some() => first.get().min(buffer),
        Some(first) => whole(first.get().min(buffer)),
        None if is_linux => whole(buffer).min(u64::from(u16::MAX)),
        None => buffer,
    }
}

/// Linux keeps a segment of what it offers at first back (`tcp_init_buffer_space`): until the buffer grows, since 6.5
/// until the memory of segments is measured. The first window of a buffer that may grow is given without it.
fn first_clamp(config: &Config) -> u64 {
    let buffer = config.recv_buffer.get();
    let first = config.initial_recv_window;
    if config.delayed_ack() != DelayedAck::Linux
        || (first.is_some() && config.max_recv_buffer.is_some())
    {
        return buffer;
    }
    let first = first.map_or(buffer, Bytes::get);
    // As the option says it, without what other options take (`advmss`).
    let mss = u64::from(config.mss) + if config.timestamps { 12 } else { 0 };
    first.saturating_sub(mss).max(2 * mss).min(first)
}

#[cfg(test)]
mod tests;

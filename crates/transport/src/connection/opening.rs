//! The opening of a connection: SYNs that arrive, what they agree on, the handshake's end
//! (RFC 9293 §3.10.7.2 and §3.10.7.3).

use weir_units::{Duration, Echo, Ecn, FeedbackKind, Instant};

use super::fast_open::Early;
use super::{Arrived, Connection, ConnectionError, Event, State, quick_start};
use crate::receiver::EchoMode;
use crate::segment::{Flags, Options, Segment};
use crate::sender::Terms;
use crate::{HostProfile, timestamp_ms};

impl Connection {
    pub(super) fn on_segment_listening(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
    ) -> Option<Arrived> {
        // RFC 9293 §3.10.7.2; SYN and FIN together open nothing either, as in Linux.
        let others = [Flags::ACK, Flags::RST, Flags::FIN];
        let opens = segment.flags.contains(Flags::SYN)
            && !others.iter().any(|flag| segment.flags.contains(*flag));
        if !opens {
            self.reject();
            return None;
        }
        self.accept_offer(now, segment);
        self.handshake.started_at = Some(now);
        self.handshake.due = true;
        if self.handshake.early == Early::Allowed {
            return self.open_early(now, segment, ecn);
        }
        self.state = State::SynReceived;
        None
    }

    pub(super) fn on_segment_syn_sent(
        &mut self,
        now: Instant,
        segment: &Segment,
        ecn: Ecn,
    ) -> Option<Arrived> {
        let answered = segment.ack.since(self.iss + 1);
        let acks_syn = segment.flags.contains(Flags::ACK)
            && (0..=i64::from(self.handshake.syn_data.unwrap_or_default()))
                .contains(&i64::from(answered));
        if segment.flags.contains(Flags::ACK) && self.echoes_another(now, segment) {
            return self.reset_unknown_peer(segment);
        }
        if segment.flags.contains(Flags::ACK) && !acks_syn {
            return self.reset_unknown_peer(segment);
        }
        if segment.flags.contains(Flags::RST) {
            if acks_syn {
                self.fail(now, ConnectionError::Refused);
            }
            return None;
        }
        if !segment.flags.contains(Flags::SYN) {
            self.reject();
            return None;
        }
        self.accept_offer(now, segment);
        if acks_syn {
            self.establish(now, segment);
            return self.on_syn_answered(now, segment, ecn);
        }
        // Both sides opened at once (RFC 9293 §3.5, figure 7).
        self.state = State::SynReceived;
        self.handshake.due = true;
        self.handshake.syn_data = None;
        None
    }

    /// The peer still has a connection that we have forgotten: it is to let go of it (RFC 9293 §3.5.1, §3.10.7.3).
    fn reset_unknown_peer(&mut self, segment: &Segment) -> Option<Arrived> {
        if !segment.flags.contains(Flags::RST) {
            let reset = Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() };
            self.reset_due = Some(reset);
        }
        self.reject();
        None
    }

    /// Whether a segment echoes a timestamp that no SYN of ours had (Linux's `tcp_rcv_synsent_state_process`).
    fn echoes_another(&self, now: Instant, segment: &Segment) -> bool {
        let echo = segment.options.timestamps.map_or(0, |timestamps| timestamps.echo);
        let checked = self.config.timestamps && self.config.host_profile == HostProfile::Kernel;
        let Some(started) = self.handshake.started_at.filter(|_| checked) else { return false };
        let age = timestamp_ms(now).wrapping_sub(echo);
        echo != 0 && age > timestamp_ms(now).wrapping_sub(timestamp_ms(started))
    }

    /// Notes what the peer's SYN offers.
    fn accept_offer(&mut self, now: Instant, segment: &Segment) {
        self.irs = segment.seq;
        // An MSS of 0 says nothing (Linux's tcp_parse_options).
        let offered = segment.options.mss.filter(|mss| *mss > 0);
        let (ours, theirs) = (&self.config, &segment.options);
        self.terms.timestamps = ours.timestamps && theirs.timestamps.is_some();
        let least = if self.terms.timestamps { MIN_MSS - TIMESTAMPS } else { MIN_MSS };
        self.terms.peer_mss = offered.map_or(DEFAULT_MSS, u32::from).max(least);
        self.terms.sack = ours.sack && theirs.sack_permitted;
        let answered = segment.flags.contains(Flags::ACK);
        let ecn_offer =
            segment.flags.contains(Flags::ECE) && segment.flags.contains(Flags::CWR) != answered;
        self.terms.ecn = self.offers_ecn() && ecn_offer;
        let echo = match (self.terms.ecn, self.sender.needs_ecn()) {
            (false, _) => EchoMode::Off,
            (true, false) => EchoMode::Sticky,
            (true, true) => EchoMode::Exact,
        };
        let returned = match (answered, theirs.feedback) {
            // What a SYN carries is an offer; a peer that understands it returns it.
            (false, offer) => offer.as_ref().map(Echo::of),
            (true, _) => theirs.echo.filter(|_| self.sender.needs_feedback()),
        };
        let is_rate = |echo: &Echo| echo.kind() == FeedbackKind::QuickStart;
        self.terms.feedback = returned.filter(|echo| !is_rate(echo));
        self.terms.approval = returned.filter(is_rate);
        self.receiver.agree(self.terms.sack, echo);
        if self.terms.feedback.is_some() {
            self.receiver.expect_segments(self.segment_size());
        }
        if self.terms.peer_mss < self.config.mss {
            self.receiver.expect_segments(self.terms.peer_mss);
        }
        match theirs.window_scale.filter(|_| ours.window_scaling) {
            // RFC 7323 §2.3: a larger shift is read as 14.
            Some(shift) => {
                self.terms.scaling = true;
                self.terms.peer_scale = shift.min(14);
            }
            None => {
                self.terms.our_scale = 0;
                self.receiver.offer_unscaled();
            }
        }
        self.ts_recent = theirs.timestamps.map_or(0, |ts| ts.value);
        self.ts_recent_at = now;
    }

    /// The largest payload of a segment: less than what both sides can take by the space that feedback
    /// needs (RFC 6691 §3).
    fn segment_size(&self) -> u32 {
        let size = self.terms.peer_mss.min(self.config.mss);
        let space =
            self.terms.feedback.map_or(0, |echo| Options::feedback_space(echo.kind())) as u32;
        size.saturating_sub(space).max(size.min(MIN_MSS))
    }

    /// The handshake is complete.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        self.start_transfer(now, segment);
        let measured = self.measure_handshake(now, segment);
        let syn = segment.flags.contains(Flags::SYN);
        if let Some(echo) = segment.options.echo.filter(|_| syn && self.terms.feedback.is_some()) {
            self.sender.on_handshake_feedback(now, echo);
        }
        if let (Some(answer), Some(rtt)) = (segment.options.echo.filter(|_| syn), measured) {
            self.start_quickly(&answer, rtt);
        }
        self.state = if self.sender.is_finishing() { State::FinWait1 } else { State::Established };
        self.events.push_back(Event::Connected);
    }

    /// Both sides know what was agreed upon, and the peer's first window.
    pub(super) fn start_transfer(&mut self, now: Instant, segment: &Segment) {
        let terms = Terms {
            mss: self.segment_size(),
            recovery: self.config.stack.recovery,
            sack: self.terms.sack,
            ecn: self.terms.ecn,
            window: self.window_of(segment),
        };
        if self.terms.peer_mss < self.config.mss {
            self.sender.start_with_segments(&self.config, self.terms.peer_mss);
        }
        self.sender.establish(now, &terms, &mut self.stats);
        self.receiver.on_established(now);
    }

    /// The SYN's round trip, if it was sent once: sent twice, only an echoed timestamp tells which SYN was
    /// answered.
    pub(super) fn measure_handshake(
        &mut self,
        now: Instant,
        segment: &Segment,
    ) -> Option<Duration> {
        let once = self.handshake.sent_at.filter(|_| self.handshake.retries == 0);
        let since = |sent_at| self.sender.stamp(now).saturating_since(self.sender.stamp(sent_at));
        let measured = once.map(since);
        match measured.or_else(|| self.echo(now, segment).map(|(_, rtt)| rtt)) {
            Some(rtt) => self.note_rtt(now, rtt),
            None => self.sender.rtt_mut().on_handshake_after_syn_loss(),
        }
        measured
    }

    /// The routers may have approved a rate to start with.
    fn start_quickly(&mut self, answer: &Echo, rtt: Duration) {
        let request = self.quick_start.take().filter(|_| !self.sender.needs_feedback());
        if let Some(rate) = request.and_then(|request| request.approved(answer)) {
            let timestamps = if self.terms.timestamps { TIMESTAMPS } else { 0 };
            let header = Segment::BASE_HEADER_LEN + timestamps as usize;
            let window = quick_start::window(rate, rtt, self.segment_size(), header);
            self.sender.start_with(&self.config, window);
        }
    }

    fn note_rtt(&mut self, now: Instant, sample: Duration) {
        self.sender.on_handshake_rtt(now, sample);
        self.receiver.on_handshake_rtt(sample);
        self.rtt_sample = Some(sample);
    }
}

/// RFC 9293 §3.7.1: what to assume where the option is missing.
const DEFAULT_MSS: u32 = 536;
/// No peer can make us send segments of a few bytes: data and options together (Linux's `tcp_min_snd_mss`).
const MIN_MSS: u32 = 48;
/// The bytes of timestamps in every segment.
const TIMESTAMPS: u32 = 12;

//! The opening of a connection: SYNs that arrive, what they agree on, the handshake's end
//! (RFC 9293 §3.10.7.2 and §3.10.7.3).

use weir_units::{Duration, Echo, FeedbackKind, Instant};

use super::{Connection, ConnectionError, Event, State, quick_start};
use crate::DelayedAck;
use crate::receiver::EchoMode;
use crate::segment::{Flags, Options, Segment};
use crate::sender::Terms;

impl Connection {
    pub(super) fn on_segment_listening(&mut self, now: Instant, segment: &Segment) {
        // RFC 9293 §3.10.7.2; SYN and FIN together open nothing either, as in Linux.
        let others = [Flags::ACK, Flags::RST, Flags::FIN];
        let opens = segment.flags.contains(Flags::SYN)
            && !others.iter().any(|flag| segment.flags.contains(*flag));
        if !opens {
            return self.reject();
        }
        self.accept_offer(now, segment);
        self.state = State::SynReceived;
        self.handshake.started_at = Some(now);
        self.handshake.due = true;
    }

    pub(super) fn on_segment_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acks_syn = segment.flags.contains(Flags::ACK) && segment.ack == self.iss + 1;
        if segment.flags.contains(Flags::ACK) && !acks_syn {
            if !segment.flags.contains(Flags::RST) {
                // The peer still has a connection that we have forgotten: it is to let go of it
                // (RFC 9293 §3.5.1, §3.10.7.3).
                let reset = Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() };
                self.reset_due = Some(reset);
            }
            return self.reject();
        }
        if segment.flags.contains(Flags::RST) {
            if acks_syn {
                self.fail(now, ConnectionError::Refused);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return self.reject();
        }
        self.accept_offer(now, segment);
        if acks_syn {
            self.establish(now, segment);
            self.receiver.demand_ack();
            // As a host does whose application writes once it is connected; a first course's program
            // that is its own transport need not.
            self.handshake.confirmation_due = self.config.delayed_ack() == DelayedAck::Linux;
        } else {
            // Both sides opened at once (RFC 9293 §3.5, figure 7).
            self.state = State::SynReceived;
            self.handshake.due = true;
        }
    }

    /// Notes what the peer's SYN offers.
    fn accept_offer(&mut self, now: Instant, segment: &Segment) {
        self.irs = segment.seq;
        // An MSS of 0 says nothing (Linux's tcp_parse_options).
        let offered = segment.options.mss.filter(|mss| *mss > 0);
        self.terms.peer_mss = offered.map_or(DEFAULT_MSS, u32::from).max(MIN_MSS);
        let (ours, theirs) = (&self.config, &segment.options);
        self.terms.timestamps = ours.timestamps && theirs.timestamps.is_some();
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
        match theirs.window_scale {
            // RFC 7323 §2.3: a larger shift is read as 14.
            Some(shift) => self.terms.peer_scale = shift.min(14),
            None => self.terms.our_scale = 0,
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

    /// The handshake is complete. A window on a SYN is never scaled (RFC 7323 §2.2).
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        let syn = segment.flags.contains(Flags::SYN);
        let scale = if syn { 0 } else { self.terms.peer_scale };
        let terms = Terms {
            mss: self.segment_size(),
            recovery: self.config.stack.recovery,
            sack: self.terms.sack,
            ecn: self.terms.ecn,
            window: u64::from(segment.window) << scale,
        };
        if self.terms.peer_mss < self.config.mss {
            self.sender.start_with_segments(&self.config, self.terms.peer_mss);
        }
        self.sender.establish(now, &terms, &mut self.stats);
        self.receiver.on_established(now);
        // Sent twice, only an echoed timestamp tells which SYN was answered.
        let once = self.handshake.sent_at.filter(|_| self.handshake.retries == 0);
        let measured = once.map(|sent_at| now.saturating_since(sent_at));
        match measured.or_else(|| self.echo(now, segment).map(|(_, rtt)| rtt)) {
            Some(rtt) => self.note_rtt(now, rtt),
            None => self.sender.rtt_mut().on_handshake_after_syn_loss(),
        }
        if let Some(echo) = segment.options.echo.filter(|_| syn && self.terms.feedback.is_some()) {
            self.sender.on_handshake_feedback(now, echo);
        }
        if let (Some(answer), Some(rtt)) = (segment.options.echo.filter(|_| syn), measured) {
            self.start_quickly(&answer, rtt);
        }
        self.state = if self.sender.is_finishing() { State::FinWait1 } else { State::Established };
        self.events.push_back(Event::Connected);
    }

    /// The routers may have approved a rate to start with.
    fn start_quickly(&mut self, answer: &Echo, rtt: Duration) {
        let request = self.quick_start.take().filter(|_| !self.sender.needs_feedback());
        if let Some(rate) = request.and_then(|request| request.approved(answer)) {
            let timestamps = if self.terms.timestamps { 12 } else { 0 };
            let header = Segment::BASE_HEADER_LEN + timestamps;
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
/// No peer can make us send segments of a few bytes.
const MIN_MSS: u32 = 48;

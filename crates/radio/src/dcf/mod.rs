//! The distributed coordination function of IEEE 802.11 at one node.
//!
//! ```text
//! announced    gap, backoff, RTS - SIFS - CTS - SIFS - DATA - SIFS - ACK, backoff
//! short        gap, backoff, DATA - SIFS - ACK, backoff
//! to all       gap, backoff, DATA, backoff
//! backoff      uniform in 0 .. cw - 1 slots (ns-2) or 0 .. cw (standard), frozen while the medium is
//!              busy: a frame is being received, the node itself sends or awaits an answer, or the
//!              NAV has not expired
//! cw           31; 2 cw + 1 after a failure, up to 1023; 31 again after an ACK or when giving up
//! NAV          from every frame that is read and not for this node; ns-2: EIFS after a frame that
//!              cannot be read, and the length of an ignored frame plus EIFS
//! ```
//!
//! Sources: ns-2.35's `Mac802_11` for [`Access::Ns2`] and [`Access::Ns2Unfrozen`], IEEE 802.11-2007
//! §9.2 for [`Access::Standard`]. There is no fragmentation, and no NAV is reset when no data follow an
//! RTS, which the standard allows and ns-2 does not do. Deviation from ns-2: a node of the unfrozen
//! kind that drops a CTS because the medium is busy starts its own wait anew at once, where ns-2 waits
//! for the next frame to wake it.
//!
//! The state machine sees headers, never packets. Its host passes it carrier changes, frames
//! that could and could not be read, and of its deadline; it answers with an [`Action`]. After each
//! input but a carrier the host calls [`Dcf::settle`], once it has acted.

mod contention;
mod frame;

use weir_units::{Bytes, Duration, Instant, Rng};

use self::contention::{Contention, Interrupted};
pub use self::frame::FrameKind;
pub(super) use self::frame::{Action, Attempt, Header, Outcome};
use super::airtime::Phy;
use super::config::{Access, MacConfig};
use super::datagram::NodeId;

/// The MAC of one node.
#[derive(Clone, Debug)]
pub(super) struct Dcf {
    node: NodeId,
    phy: Phy,
    config: MacConfig,
    rng: Rng,
    contention: Contention,
    /// What it has sent and what therefore comes next.
    sent: Sent,
    /// What it will send at the end of SIFS.
    response: Option<Response>,
    /// The end of SIFS, of the wait for an answer, or of a frame that has none.
    deadline: Option<Instant>,
    /// Whether the wait for an answer was already prolonged.
    prolonged: bool,
    /// The end of the frame sent last.
    sent_until: Instant,
    /// The packet at hand.
    exchange: Option<Exchange>,
    cw: u32,
    short_retries: u32,
    long_retries: u32,
    carrier: Carrier,
    nav: Instant,
    /// The standard: where EIFS delays the end of a busy medium to.
    eifs_until: Instant,
    sequence: u32,
    /// The last sequence number of each node; zero before the first.
    seen: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Nothing,
    /// A CTS is awaited.
    Rts,
    /// An acknowledgement is awaited, unless it went to all.
    Data,
    /// Data are awaited.
    Cts,
    /// It is on the air.
    Ack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Response {
    Cts { to: NodeId, duration: Duration },
    Ack { to: NodeId },
    Data,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    to: NodeId,
    airtime: Duration,
    announced: bool,
    /// An RTS comes first, or first again.
    needs_rts: bool,
    sequence: u32,
    retries: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Idle { since: Instant },
    Busy,
}

impl Dcf {
    pub(super) fn new(node: NodeId, nodes: usize, phy: Phy, config: MacConfig, rng: Rng) -> Self {
        Self {
            node,
            phy,
            config,
            rng,
            contention: Contention::None,
            sent: Sent::Nothing,
            response: None,
            deadline: None,
            prolonged: false,
            sent_until: Instant::ZERO,
            exchange: None,
            cw: phy.cw_min,
            short_retries: 0,
            long_retries: 0,
            carrier: Carrier::Idle { since: Instant::ZERO },
            nav: Instant::ZERO,
            eifs_until: Instant::ZERO,
            sequence: 0,
            seen: vec![0; nodes],
        }
    }

    /// A packet for `to` arrives at a MAC without one.
    pub(super) fn submit(&mut self, now: Instant, to: NodeId, len: Bytes) {
        self.take_up(to, len);
        if self.contention == Contention::None {
            self.begin_access(now);
        }
    }

    /// The packet at hand is done with; the next one, if there is any, follows at once.
    pub(super) fn complete(&mut self, next: Option<(NodeId, Bytes)>) {
        self.exchange = None;
        if let Some((to, len)) = next {
            self.take_up(to, len);
        }
        let waits = next.is_some() || self.config.access == Access::Standard;
        if waits && self.contention == Contention::None {
            self.back_off();
        }
    }

    /// The carrier appears.
    pub(super) fn carrier_on(&mut self, now: Instant) {
        self.carrier = Carrier::Busy;
        self.freeze(now);
    }

    /// The carrier is gone; what it carried follows.
    pub(super) fn carrier_off(&mut self, now: Instant) {
        self.carrier = Carrier::Idle { since: now };
    }

    /// What it carried could not be read.
    pub(super) fn received_garbage(&mut self, now: Instant) {
        match self.config.access {
            Access::Ns2 | Access::Ns2Unfrozen => self.nav = self.nav.max(now + self.phy.eifs),
            Access::Standard => self.eifs_until = now + (self.phy.eifs - self.phy.difs),
        }
    }

    /// A frame of this length was too weak to disturb a stronger one.
    pub(super) fn ignored(&mut self, now: Instant, airtime: Duration) {
        self.nav = self.nav.max(now + airtime + self.phy.eifs);
    }

    /// What it carried.
    pub(super) fn received(&mut self, now: Instant, header: &Header) -> Action {
        self.eifs_until = Instant::ZERO;
        if header.to != self.node {
            self.nav = self.nav.max(now + header.duration);
            return if header.to.is_broadcast() { Action::Deliver } else { Action::Nothing };
        }
        match header.kind {
            FrameKind::Rts => self.received_rts(now, header),
            FrameKind::Cts => self.received_cts(now),
            FrameKind::Data => return self.received_data(now, header),
            FrameKind::Ack => return self.received_ack(),
        }
        Action::Nothing
    }

    /// Its deadline has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Action {
        let Some(deadline) = self.deadline else {
            self.contention = Contention::None;
            return self.access(now);
        };
        if let Some(response) = self.response.take() {
            self.deadline = None;
            return self.respond(now, response);
        }
        if let Some(answer) = self.answer_under_way() {
            self.prolonged = true;
            self.deadline = Some(deadline + answer);
            return Action::Nothing;
        }
        self.deadline = None;
        self.unanswered()
    }

    /// Takes up or freezes its wait for the medium, as things now stand.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.exchange.is_some() && self.contention == Contention::None && self.is_silent() {
            self.begin_access(now);
        }
        if self.senses_idle() {
            let from = self.gap_end(now);
            self.contention.thaw(from);
        } else {
            self.freeze(now);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.or_else(|| self.contention.end(self.phy.slot))
    }

    /// Until when the medium is reserved.
    pub(super) fn nav(&self) -> Instant {
        self.nav
    }

    fn take_up(&mut self, to: NodeId, len: Bytes) {
        let unicast = !to.is_broadcast();
        let announced = unicast && len >= self.config.rts_threshold;
        let airtime = if unicast { self.phy.data_time(len) } else { self.phy.broadcast_time(len) };
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let sequence = self.sequence;
        self.exchange =
            Some(Exchange { to, airtime, announced, needs_rts: announced, sequence, retries: 0 });
    }

    fn received_rts(&mut self, now: Instant, header: &Header) {
        if self.sent != Sent::Nothing || self.response.is_some() {
            return;
        }
        let duration = header.duration.saturating_sub(self.phy.sifs + self.phy.cts_time());
        self.respond_after_sifs(now, Response::Cts { to: header.from, duration });
    }

    fn received_cts(&mut self, now: Instant) {
        if self.sent != Sent::Rts {
            return;
        }
        self.sent = Sent::Nothing;
        self.short_retries = 0;
        if let Some(exchange) = &mut self.exchange {
            exchange.needs_rts = false;
        }
        self.respond_after_sifs(now, Response::Data);
    }

    fn received_data(&mut self, now: Instant, header: &Header) -> Action {
        let expected = if header.announced { Sent::Cts } else { Sent::Nothing };
        if self.sent != expected || self.response.is_some() {
            return Action::Nothing;
        }
        self.sent = Sent::Nothing;
        self.respond_after_sifs(now, Response::Ack { to: header.from });
        match self.seen.get_mut(usize::from(header.from.0)) {
            Some(last) if *last == header.sequence => return Action::Duplicate,
            Some(last) => *last = header.sequence,
            None => {}
        }
        Action::Deliver
    }

    fn received_ack(&mut self) -> Action {
        let Some(exchange) = self.exchange.filter(|_| self.sent == Sent::Data) else {
            return Action::Nothing;
        };
        if exchange.announced {
            self.long_retries = 0;
        } else {
            self.short_retries = 0;
        }
        self.finish(exchange)
    }

    /// The packet went out: the next one waits for a backoff.
    fn finish(&mut self, exchange: Exchange) -> Action {
        self.sent = Sent::Nothing;
        self.deadline = None;
        self.cw = self.phy.cw_min;
        self.back_off();
        Action::Finished { outcome: Outcome::Sent, retries: exchange.retries }
    }

    fn respond_after_sifs(&mut self, now: Instant, response: Response) {
        if matches!(self.contention, Contention::Unfrozen { .. }) {
            self.contention = Contention::None;
        }
        self.response = Some(response);
        self.deadline = Some(now + self.phy.sifs);
    }

    fn respond(&mut self, now: Instant, response: Response) -> Action {
        match response {
            Response::Ack { to } => {
                let header = self.header(FrameKind::Ack, to, Duration::ZERO, self.phy.ack_time());
                self.transmit(now, Sent::Ack, header, Duration::ZERO)
            }
            Response::Cts { to, duration } if self.is_idle(now) => {
                let header = self.header(FrameKind::Cts, to, duration, self.phy.cts_time());
                let rest = duration.saturating_sub(self.phy.sifs + self.phy.ack_time());
                self.transmit(now, Sent::Cts, header, rest + PROPAGATION * 2)
            }
            Response::Cts { .. } => Action::Nothing,
            Response::Data => self.access(now),
        }
    }

    /// Its turn has come, or it is taken to have come.
    fn access(&mut self, now: Instant) -> Action {
        let Some(exchange) = self.exchange else { return Action::Nothing };
        if !self.is_idle(now) {
            self.restart(exchange);
            return Action::Nothing;
        }
        let Exchange { to, airtime, .. } = exchange;
        let phy = &self.phy;
        if exchange.needs_rts {
            let answers = phy.cts_time() + phy.ack_time();
            let duration = answers + airtime + phy.sifs * 3;
            let header = self.header(FrameKind::Rts, to, duration, phy.rts_time());
            let patience = self.patience(phy.cts_time());
            return self.transmit(now, Sent::Rts, header, patience);
        }
        let (duration, patience) = if to.is_broadcast() {
            (Duration::ZERO, Duration::ZERO)
        } else {
            (phy.sifs + phy.ack_time(), self.patience(phy.ack_time()))
        };
        let header = self.header(FrameKind::Data, to, duration, airtime);
        let header =
            Header { sequence: exchange.sequence, announced: exchange.announced, ..header };
        self.transmit(now, Sent::Data, header, patience)
    }

    /// How long after a frame its answer is awaited.
    fn patience(&self, answer: Duration) -> Duration {
        match self.config.access {
            Access::Ns2 | Access::Ns2Unfrozen => self.phy.sifs + answer + PROPAGATION * 2,
            Access::Standard => self.phy.sifs + self.phy.slot,
        }
    }

    /// The standard: an answer that has begun is heard to its end.
    fn answer_under_way(&self) -> Option<Duration> {
        let begun = self.config.access == Access::Standard && self.carrier == Carrier::Busy;
        if !begun || self.prolonged {
            return None;
        }
        match self.sent {
            Sent::Rts => Some(self.phy.cts_time()),
            Sent::Data if !self.exchange?.to.is_broadcast() => Some(self.phy.ack_time()),
            _ => None,
        }
    }

    fn unanswered(&mut self) -> Action {
        let sent = std::mem::replace(&mut self.sent, Sent::Nothing);
        let Some(exchange) = self.exchange else { return Action::Nothing };
        match sent {
            Sent::Nothing | Sent::Cts | Sent::Ack => Action::Nothing,
            Sent::Data if exchange.to.is_broadcast() => self.finish(exchange),
            Sent::Data if exchange.announced => self.fail(exchange, Attempt::Long),
            Sent::Data | Sent::Rts => self.fail(exchange, Attempt::Short),
        }
    }

    fn fail(&mut self, mut exchange: Exchange, attempt: Attempt) -> Action {
        let (count, limit) = match attempt {
            Attempt::Short => (&mut self.short_retries, self.config.short_retries),
            Attempt::Long => (&mut self.long_retries, self.config.long_retries),
        };
        *count = count.saturating_add(1);
        if limit.is_some_and(|limit| *count >= limit) {
            *count = 0;
            self.cw = self.phy.cw_min;
            let outcome = Outcome::GivenUp(attempt);
            return Action::Finished { outcome, retries: exchange.retries };
        }
        exchange.retries = exchange.retries.saturating_add(1);
        self.restart(exchange);
        Action::Retry(attempt)
    }

    /// Begins the exchange anew, with a wider window.
    fn restart(&mut self, exchange: Exchange) {
        self.exchange = Some(Exchange { needs_rts: exchange.announced, ..exchange });
        self.cw = (2 * self.cw + 1).min(self.phy.cw_max);
        self.back_off();
    }

    fn begin_access(&mut self, now: Instant) {
        match self.config.access {
            Access::Ns2Unfrozen if self.is_idle(now) => {
                let wait = self.phy.slot * u64::from(self.draw());
                self.contention = Contention::Unfrozen { at: now + self.phy.difs + wait };
            }
            Access::Standard if self.is_idle(now) => {
                self.contention = Contention::Immediate { at: self.gap_end(now) };
            }
            _ => self.back_off(),
        }
    }

    fn back_off(&mut self) {
        self.contention = Contention::Frozen { slots: self.draw() };
    }

    fn draw(&mut self) -> u32 {
        let choices = match self.config.access {
            Access::Ns2 | Access::Ns2Unfrozen => self.cw,
            Access::Standard => self.cw + 1,
        };
        self.rng.below(u64::from(choices)) as u32
    }

    fn freeze(&mut self, now: Instant) {
        if self.contention.freeze(now, self.phy.slot) == Interrupted::MustDraw {
            self.back_off();
        }
    }

    /// When the gap before the backoff has passed, the medium being idle.
    fn gap_end(&self, now: Instant) -> Instant {
        let idle = match (self.config.access, self.carrier) {
            (Access::Standard, Carrier::Idle { since }) => {
                since.max(self.eifs_until).max(self.sent_until)
            }
            _ => now,
        };
        (idle.max(self.nav) + self.phy.difs).max(now)
    }

    /// ns-2's `is_idle`.
    fn is_idle(&self, now: Instant) -> bool {
        self.senses_idle() && self.nav <= now
    }

    fn senses_idle(&self) -> bool {
        self.is_silent() && self.carrier != Carrier::Busy
    }

    /// It neither sends nor waits for an answer nor is about to give one.
    fn is_silent(&self) -> bool {
        self.sent == Sent::Nothing && self.response.is_none()
    }

    fn header(&self, kind: FrameKind, to: NodeId, duration: Duration, airtime: Duration) -> Header {
        Header { kind, from: self.node, to, duration, airtime, sequence: 0, announced: false }
    }

    fn transmit(&mut self, now: Instant, sent: Sent, header: Header, patience: Duration) -> Action {
        self.sent = sent;
        self.sent_until = now + header.airtime;
        self.deadline = Some(self.sent_until + patience);
        self.prolonged = false;
        Action::Transmit(header)
    }
}

/// ns-2's bound of the propagation delay.
const PROPAGATION: Duration = Duration::from_micros(2);

#[cfg(test)]
mod tests;

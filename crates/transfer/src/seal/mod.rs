//! Authenticated encryption with a pre-shared key: the Noise protocol (revision 34,
//! `NNpsk0_25519_AESGCM_BLAKE2s`) around the connection's segments.
//!
//! ```text
//! sender                                    receiver
//!   initiation(SYN)            ──────────>    keeps nothing, answers with a cookie
//!              <──────────  retry(cookie)
//!   initiation(SYN, cookie)    ──────────>    checks the cookie, then the key, then does the DH
//!              <──────────  reply(SYN-ACK)
//!   data(segment) …            <─────────>    one datagram each, numbered by a counter of 48 bits
//! ```
//!
//! The two messages of the handshake carry the SYN and the SYN-ACK, so a key costs one round trip: the
//! retry, which proves the sender's address before the receiver spends memory or a Diffie-Hellman on
//! it, and makes the second initiation fresh (`gate`). No answer is longer than its question. After that
//! each datagram is encrypted on its own under its counter, as in WireGuard, a window of `replay` numbers
//! keeps each from counting twice, and keys change with time (`traffic`).
//!
//! What [`Seal::open`] does not recognise changes nothing. A key is 32 random bytes ([`Key`]); there are
//! no pass phrases, since an attacker who records an initiation may try guesses against it at leisure.

mod gate;
mod key;
mod keys;
mod replay;
mod session;
mod traffic;
mod wire;

use std::fmt;

use thiserror::Error;
use weir_units::Instant;

pub use self::gate::{Gate, Initiator, answer_with_reset, is_data, refuse_in_clear, refuse_sealed};
use self::key::Handshake;
pub use self::key::{Key, KeyError};
pub use self::keys::{Keys, NamedKey};
use self::session::{HandshakeReply, Role, Session};
use self::traffic::{RecvKeys, SendKeys, TAG_LEN};
pub use self::wire::Refusal;
use self::wire::{COUNTER_LEN, Cookie, Message, PortField, Token};

/// By how much a sealed datagram is longer than its segment: the counter and the tag.
pub const OVERHEAD: usize = COUNTER_LEN + TAG_LEN;

/// One end's keys and counters for one connection.
pub struct Seal(State);

enum State {
    /// The sender has a SYN on its way and no keys yet.
    Opening(Box<Opening>),
    /// The receiver has read the SYN; the SYN-ACK makes the keys.
    Answering(Box<Answering>),
    Open(Box<Session>),
    /// For the moment in which a handshake becomes a session.
    Changing,
}

struct Opening {
    key: Key,
    noise: Option<Handshake>,
    /// The initiation as it is sent, once there is a SYN to send.
    initiation: Vec<u8>,
    /// What a receiver has said of the last sendings in a row, and of how many. Damage on the way may look like
    /// another key, and a network may duplicate what it has damaged.
    refused: Option<(Refusal, u32)>,
    /// Whether the initiation was sent since.
    sent_since: bool,
}

struct Answering {
    noise: Handshake,
    token: Token,
}

/// What a datagram turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// A segment from the other side.
    Segment(&'a [u8]),
    /// The receiver asks for this to be sent at once.
    Answer(&'a [u8]),
    /// The receiver will not talk, and says why. Not authenticated, but its sender has seen our
    /// initiation.
    Refused(Refusal),
    /// The receiver says that it has no connection for what was sealed last. Not authenticated either.
    StatelessReset,
    /// Not from the other side, or not new.
    Nothing,
}

/// Why nothing more can be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// All numbers are used up.
    #[error(
        "this connection has sent the 2^48 datagrams that it can number: start again to continue"
    )]
    Spent,
}

impl Seal {
    /// The sender's end. Its first segment must be the SYN.
    pub fn initiate(key: &Key) -> Self {
        Self(State::Opening(Box::new(Opening {
            key: key.clone(),
            noise: None,
            initiation: Vec::new(),
            refused: None,
            sent_since: false,
        })))
    }

    fn answering(noise: Handshake, token: Token) -> Self {
        Self(State::Answering(Box::new(Answering { noise, token })))
    }

    /// Appends the datagram that carries `segment`. During the handshake that can only be a SYN or
    /// SYN-ACK, and what was sent first is sent again.
    ///
    /// # Errors
    /// If the keys are used up.
    ///
    /// # Panics
    /// If a segment of the handshake carries payload: there is no space for it.
    pub fn seal(
        &mut self,
        now: Instant,
        segment: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        match &mut self.0 {
            State::Opening(opening) => {
                if opening.initiation.is_empty() {
                    opening.initiate(segment);
                }
                out.extend(&opening.initiation);
                opening.sent_since = true;
            }
            State::Answering(answering) => {
                let mut reply = Vec::new();
                wire::write_reply(&mut answering.noise.0, answering.token, segment, &mut reply);
                out.extend(&reply);
                self.establish(now, HandshakeReply { reply, syn_ack: segment.to_vec() });
            }
            State::Open(session) => session.seal(now, segment, out)?,
            State::Changing => {}
        }
        Ok(())
    }

    /// How long the datagram will be that carries a segment of `len` bytes.
    pub fn sealed_len(&self, len: usize) -> usize {
        match &self.0 {
            State::Opening(_) => wire::INITIATION_LEN,
            State::Answering(_) => wire::REPLY_LEN,
            State::Open(session) if session.repeats_reply() => wire::REPLY_LEN,
            State::Open(_) | State::Changing => len + OVERHEAD,
        }
    }

    /// Reads a datagram that came from the other side's address; `scratch` is overwritten.
    pub fn open<'a>(
        &'a mut self,
        now: Instant,
        datagram: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Opened<'a> {
        let Some((ports, message)) = Message::parse(datagram) else { return Opened::Nothing };
        match (&mut self.0, message) {
            (State::Opening(opening), message) if opening.is_answered_by(ports, &message) => {}
            (State::Open(session), Message::Data { number, sealed }) => {
                let segment = session.open(now, ports, number, sealed, scratch);
                return segment.map_or(Opened::Nothing, Opened::Segment);
            }
            (State::Open(_), Message::Reply { .. }) => return self.greeted(datagram),
            (State::Open(session), Message::StatelessReset { tag })
                if session.last_tag == Some(tag) =>
            {
                return Opened::StatelessReset;
            }
            _ => return Opened::Nothing,
        }
        match message {
            Message::Retry { cookie, .. } => self.on_retry(cookie),
            Message::Reply { noise, .. } => self.on_reply(now, datagram, ports, noise),
            Message::Notice { refusal, .. } => self.on_notice(refusal),
            _ => Opened::Nothing,
        }
    }

    /// The cookie goes into the initiation, which is due again unless it bore this one already.
    fn on_retry(&mut self, cookie: Cookie) -> Opened<'_> {
        let State::Opening(opening) = &mut self.0 else { return Opened::Nothing };
        let due = wire::set_cookie(&mut opening.initiation, cookie, &opening.key.mac_key());
        opening.sent_since |= due;
        if due { Opened::Answer(&opening.initiation) } else { Opened::Nothing }
    }

    fn on_notice(&mut self, refusal: Refusal) -> Opened<'_> {
        let State::Opening(opening) = &mut self.0 else { return Opened::Nothing };
        if !std::mem::take(&mut opening.sent_since) {
            return Opened::Nothing;
        }
        let before = opening.refused.filter(|(before, _)| *before == refusal);
        let times = before.map_or(1, |(_, times)| times + 1);
        opening.refused = Some((refusal, times));
        if times < BELIEVED { Opened::Nothing } else { Opened::Refused(refusal) }
    }

    fn on_reply(
        &mut self,
        now: Instant,
        datagram: &[u8],
        ports: PortField,
        noise: &[u8],
    ) -> Opened<'_> {
        let State::Opening(opening) = &mut self.0 else { return Opened::Nothing };
        let Some(handshake) = &mut opening.noise else { return Opened::Nothing };
        let Some(syn_ack) = wire::read_handshake(&mut handshake.0, ports, noise) else {
            return Opened::Nothing;
        };
        self.establish(now, HandshakeReply { reply: datagram.to_vec(), syn_ack });
        self.greeted(datagram)
    }

    /// The SYN-ACK in a reply that was authentic when it first came: the connection answers each.
    fn greeted(&self, datagram: &[u8]) -> Opened<'_> {
        let State::Open(session) = &self.0 else { return Opened::Nothing };
        match &session.greeting {
            Some(greeting) if greeting.reply == datagram => Opened::Segment(&greeting.syn_ack),
            _ => Opened::Nothing,
        }
    }

    /// The handshake's two messages are through: both sides have their keys.
    fn establish(&mut self, now: Instant, greeting: HandshakeReply) {
        let (noise, role) = match std::mem::replace(&mut self.0, State::Changing) {
            State::Opening(opening) => (opening.noise, Role::Initiator),
            State::Answering(answering) => (Some(answering.noise), Role::Responder),
            other => return self.0 = other,
        };
        let noise = noise.expect("its second message has just been read");
        let (from_initiator, from_responder) = noise.split();
        let (own, other) = match role {
            Role::Initiator => (from_initiator, from_responder),
            Role::Responder => (from_responder, from_initiator),
        };
        let (send, recv) = (SendKeys::new(now, &own), RecvKeys::new(&other));
        self.0 = State::Open(Box::new(Session::new(send, recv, role, greeting)));
    }
}

impl Opening {
    fn initiate(&mut self, syn: &[u8]) {
        let (ports, _) = wire::split_segment(syn);
        let noise = self.noise.insert(self.key.noise(ports, |builder| builder.build_initiator()));
        let mac_key = self.key.mac_key();
        wire::write_initiation(&mut noise.0, syn, &mac_key, &mut self.initiation);
    }

    /// Whether the message answers the initiation that was sent.
    fn is_answered_by(&self, ports: PortField, message: &Message<'_>) -> bool {
        let sent = Message::parse(&self.initiation);
        match (sent, message) {
            (
                Some((own_ports, Message::Initiation { token: ours, .. })),
                Message::Retry { token, .. }
                | Message::Reply { token, .. }
                | Message::Notice { token, .. },
            ) => own_ports == wire::swapped(ports) && ours == *token,
            _ => false,
        }
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Opening(_) => "opening",
            State::Answering(_) => "answering",
            State::Open(_) => "open",
            State::Changing => "changing",
        };
        f.debug_tuple("Seal").field(&state).finish()
    }
}

/// Number of initiations that must be refused before a refusal is believed.
const BELIEVED: u32 = 3;

#[cfg(test)]
mod tests;

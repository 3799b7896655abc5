//! Authenticated encryption with a pre-shared key: the Noise protocol (revision 34,
//! `NNpsk0_25519_AESGCM_BLAKE2s`) around the connection's segments.
//!
//! ```text
//! sender                                    receiver
//!   initiation(SYN)            ──────────>    keeps nothing, answers with a cookie
//!              <──────────  retry(cookie)
//!   initiation(SYN, cookie)    ──────────>    checks the cookie, then the key, then does the DH
//!              <──────────  reply(SYN-ACK)
//!   data(segment) …            <─────────>    one datagram each, numbered by a counter of 64 bits
//! ```
//!
//! The two messages of the handshake carry the SYN and the SYN-ACK, so a key costs one round trip: the
//! retry, which proves the sender's address before the receiver spends memory or a Diffie-Hellman on
//! it. No answer is longer than its question. After that each datagram is encrypted on its own under
//! its counter, as in WireGuard, and a window of [`replay`] numbers keeps each from counting twice.
//!
//! What [`Seal::open`] does not recognise changes nothing. A key is 32 random bytes ([`Key`]); there are
//! no pass phrases, since whoever records an initiation may try guesses against it at leisure.

mod gate;
mod key;
mod replay;
mod wire;

use std::fmt;

use snow::{HandshakeState, StatelessTransportState};
use thiserror::Error;

pub use self::gate::{Gate, Newcomer, refuse_in_clear, refuse_sealed};
pub use self::key::{Key, KeyError};
use self::replay::ReplayWindow;
pub use self::wire::Refusal;
use self::wire::{COUNTER_LEN, Cookie, Message, PORTS_LEN, PortField, Token};

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
    noise: HandshakeState,
    /// The initiation as it is sent, once there is a SYN to send.
    initiation: Vec<u8>,
}

struct Answering {
    noise: HandshakeState,
    token: Token,
}

struct Session {
    noise: StatelessTransportState,
    next_counter: u64,
    /// AES blocks encrypted so far.
    blocks: u64,
    arrived: ReplayWindow,
    /// The reply and its SYN-ACK, until the other side shows that it has the keys: sent again by the
    /// receiver, handed to the connection again by the sender.
    greeting: Option<Greeting>,
}

struct Greeting {
    reply: Vec<u8>,
    syn_ack: Vec<u8>,
}

/// What a datagram turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// A segment from the other side.
    Segment(&'a [u8]),
    /// The receiver asks for this to be sent at once.
    Answer(&'a [u8]),
    /// The receiver will not talk, and says why. Not authenticated, but whoever sent it has seen our
    /// initiation.
    Refused(Refusal),
    /// Not from the other side, or not new.
    Nothing,
}

/// Why nothing more can be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SealError {
    /// The keys of this connection have encrypted as much as is safe.
    #[error(
        "this connection has sent the {GIB_PER_CONNECTION} GiB that its keys allow: start again to continue"
    )]
    Spent,
}

impl Seal {
    /// The sender's end. Its first segment must be the SYN.
    pub fn initiate(key: &Key) -> Self {
        let noise = key.noise(|builder| builder.build_initiator());
        Self(State::Opening(Box::new(Opening { noise, initiation: Vec::new() })))
    }

    fn answering(noise: HandshakeState, token: Token) -> Self {
        Self(State::Answering(Box::new(Answering { noise, token })))
    }

    /// Appends the datagram that carries `segment`. During the handshake that can only be a SYN or
    /// SYN-ACK, and what was sent first is sent again.
    ///
    /// # Errors
    /// If the keys are used up.
    ///
    /// # Panics
    /// If a segment of the handshake carries payload: there is no room for it.
    pub fn seal(&mut self, segment: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        match &mut self.0 {
            State::Opening(opening) => {
                if opening.initiation.is_empty() {
                    wire::write_initiation(&mut opening.noise, segment, &mut opening.initiation);
                }
                out.extend(&opening.initiation);
            }
            State::Answering(answering) => {
                let mut reply = Vec::new();
                wire::write_reply(&mut answering.noise, answering.token, segment, &mut reply);
                out.extend(&reply);
                self.establish(Greeting { reply, syn_ack: segment.to_vec() });
            }
            State::Open(session) => session.seal(segment, out)?,
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

    /// Reads a datagram that came from the other side's address; `room` is overwritten.
    pub fn open<'a>(&'a mut self, datagram: &'a [u8], room: &'a mut Vec<u8>) -> Opened<'a> {
        let Some((ports, message)) = Message::parse(datagram) else { return Opened::Nothing };
        match (&mut self.0, message) {
            (State::Opening(opening), message) if opening.is_answered_by(&message) => {}
            (State::Open(session), Message::Data { counter, sealed }) => {
                let segment = session.open(ports, counter, sealed, room);
                return segment.map_or(Opened::Nothing, Opened::Segment);
            }
            (State::Open(_), Message::Reply { .. }) => return self.greeted(datagram),
            _ => return Opened::Nothing,
        }
        match message {
            Message::Retry { cookie, .. } => self.on_retry(cookie),
            Message::Reply { noise, .. } => self.on_reply(datagram, ports, noise),
            Message::Notice { refusal, .. } => Opened::Refused(refusal),
            Message::Initiation { .. } | Message::Data { .. } => Opened::Nothing,
        }
    }

    /// The cookie goes into the initiation, which is due again unless it bore this one already.
    fn on_retry(&mut self, cookie: Cookie) -> Opened<'_> {
        let State::Opening(opening) = &mut self.0 else { return Opened::Nothing };
        match wire::set_cookie(&mut opening.initiation, cookie) {
            true => Opened::Answer(&opening.initiation),
            false => Opened::Nothing,
        }
    }

    fn on_reply(&mut self, datagram: &[u8], ports: PortField, noise: &[u8]) -> Opened<'_> {
        let State::Opening(opening) = &mut self.0 else { return Opened::Nothing };
        let Some(syn_ack) = wire::read_handshake(&mut opening.noise, ports, noise) else {
            return Opened::Nothing;
        };
        self.establish(Greeting { reply: datagram.to_vec(), syn_ack });
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
    fn establish(&mut self, greeting: Greeting) {
        let noise = match std::mem::replace(&mut self.0, State::Changing) {
            State::Opening(opening) => opening.noise,
            State::Answering(answering) => answering.noise,
            other => return self.0 = other,
        };
        let noise = noise.into_stateless_transport_mode().expect("both messages are through");
        self.0 = State::Open(Box::new(Session {
            noise,
            next_counter: 0,
            blocks: 0,
            arrived: ReplayWindow::default(),
            greeting: Some(greeting),
        }));
    }
}

impl Opening {
    /// Whether the message answers the initiation that was sent.
    fn is_answered_by(&self, message: &Message<'_>) -> bool {
        let sent = Message::parse(&self.initiation);
        match (sent, message) {
            (
                Some((_, Message::Initiation { token: ours, .. })),
                Message::Retry { token, .. }
                | Message::Reply { token, .. }
                | Message::Notice { token, .. },
            ) => ours == *token,
            _ => false,
        }
    }
}

impl Session {
    fn seal(&mut self, segment: &[u8], out: &mut Vec<u8>) -> Result<(), SealError> {
        if let Some(greeting) = self.greeting.as_ref().filter(|_| self.repeats_reply()) {
            out.extend(&greeting.reply);
            return Ok(());
        }
        let blocks = self.blocks + 1 + segment.len().div_ceil(AES_BLOCK) as u64;
        if blocks > MAX_BLOCKS {
            return Err(SealError::Spent);
        }
        self.blocks = blocks;
        let (ports, rest) = wire::split_segment(segment);
        wire::write_data_head(ports, self.next_counter, out);
        let start = out.len();
        out.resize(start + rest.len() + TAG_LEN, 0);
        let written = self.noise.write_message(self.next_counter, rest, &mut out[start..]);
        assert!(written.is_ok(), "a segment of {} bytes is too long to seal", segment.len());
        self.next_counter += 1;
        Ok(())
    }

    /// The receiver cannot tell whether its reply has arrived until it hears from the sender, and
    /// until then its connection can have nothing but its SYN-ACK to send again.
    fn repeats_reply(&self) -> bool {
        self.greeting.is_some() && !self.noise.is_initiator()
    }

    fn open<'a>(
        &mut self,
        ports: PortField,
        counter: u64,
        sealed: &[u8],
        room: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if !self.arrived.is_new(counter) {
            return None;
        }
        // Decryption needs room for the tag.
        room.resize(room.len().max(PORTS_LEN + sealed.len()), 0);
        let (front, rest) = room.split_at_mut(PORTS_LEN);
        let len = self.noise.read_message(counter, sealed, rest).ok()?;
        front.copy_from_slice(&ports);
        self.arrived.insert(counter);
        self.greeting = None;
        Some(&room[..PORTS_LEN + len])
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

const TAG_LEN: usize = 16;
const AES_BLOCK: usize = 16;
/// Under one key AES-GCM stays within 2^-57 of ideal for 2^35 blocks (RFC 9001 appendix B.1.1: 2^28
/// packets of 2^7 blocks). Forgeries have their own limit, 2^52 datagrams, which no link reaches.
const MAX_BLOCKS: u64 = 1 << 35;
const GIB_PER_CONNECTION: u64 = (MAX_BLOCKS * AES_BLOCK as u64) >> 30;

#[cfg(test)]
mod tests;

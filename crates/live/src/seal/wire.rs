//! What sealed datagrams look like. Numbers are big-endian, lengths in bytes.
//!
//! ```text
//! initiation  ports 4 | "weir/1 " 'I' | cookie 40 | ephemeral key 32 | sealed (length 1, SYN, zeros) 80 | tag 16
//! retry       ports 4 | "weir/1 " 'C' | token 16  | cookie 40
//! reply       ports 4 | "weir/1 " 'R' | token 16  | ephemeral key 32 | sealed (length 1, SYN-ACK, zeros) 80 | tag 16
//! notice      ports 4 | "weir/1 " 'N' | token 16  | reason 1
//! data        ports 4 | counter 8     | sealed segment | tag 16
//! ```
//!
//! The port fields of the segment travel in front, in clear: they tell connections between two sockets
//! apart. What is sealed is the segment behind them. The token is the first half of the initiation's
//! ephemeral key: only who has seen the initiation can answer it. A counter's first byte is zero, so no
//! data looks like the handshake.

use snow::HandshakeState;
use thiserror::Error;

/// The first four bytes of a segment, and of every datagram.
pub(super) type PortField = [u8; PORTS_LEN];
pub(super) type Cookie = [u8; COOKIE_LEN];
pub(super) type Token = [u8; TOKEN_LEN];

/// A datagram's parts behind its ports, as they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Initiation { cookie: Cookie, token: Token, noise: &'a [u8] },
    Retry { token: Token, cookie: Cookie },
    Reply { token: Token, noise: &'a [u8] },
    Notice { token: Token, refusal: Refusal },
    Data { counter: u64, sealed: &'a [u8] },
}

/// Why a receiver will not talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It has no key.
    #[error("the receiver has no key: start it with this one, or send without")]
    NoKey,
    /// It has another key.
    #[error("the receiver has another key")]
    OtherKey,
    /// It has a key and was asked without.
    #[error("the receiver demands a key")]
    KeyNeeded,
}

impl Refusal {
    /// What a reset says of its reason (RFC 1122 §4.2.2.12): only what is known is repeated.
    pub fn in_reset(payload: &[u8]) -> Option<Self> {
        (payload == KEY_NEEDED).then_some(Self::KeyNeeded)
    }
}

impl<'a> Message<'a> {
    /// The ports and what is behind them. Every length but that of data is fixed.
    pub(super) fn parse(datagram: &'a [u8]) -> Option<(PortField, Self)> {
        let (ports, message) = datagram.split_first_chunk()?;
        Some((*ports, Self::parse_message(message)?))
    }

    fn parse_message(message: &'a [u8]) -> Option<Self> {
        let (head, body) = message.split_first_chunk::<COUNTER_LEN>()?;
        if head[0] == 0 {
            return Some(Self::Data { counter: u64::from_be_bytes(*head), sealed: body });
        }
        let (magic, kind) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return None;
        }
        if kind[0] == INITIATION {
            let (cookie, noise) = body.split_first_chunk()?;
            let token = noise.first_chunk().filter(|_| noise.len() == NOISE_LEN)?;
            return Some(Self::Initiation { cookie: *cookie, token: *token, noise });
        }
        let (token, rest) = body.split_first_chunk()?;
        let token = *token;
        match kind[0] {
            RETRY => Some(Self::Retry { token, cookie: rest.try_into().ok()? }),
            REPLY if rest.len() == NOISE_LEN => Some(Self::Reply { token, noise: rest }),
            NOTICE => {
                let [reason] = rest else { return None };
                let refusal = match reason {
                    1 => Refusal::NoKey,
                    2 => Refusal::OtherKey,
                    3 => Refusal::KeyNeeded,
                    _ => return None,
                };
                Some(Self::Notice { token, refusal })
            }
            _ => None,
        }
    }
}

/// Appends the initiation that carries a SYN, without a cookie.
pub(super) fn write_initiation(noise: &mut HandshakeState, syn: &[u8], out: &mut Vec<u8>) {
    let (ports, syn) = split_segment(syn);
    head(ports, INITIATION, out);
    out.extend([0; COOKIE_LEN]);
    write_handshake(noise, syn, out);
}

/// Puts the cookie into an initiation. Returns whether it differs from what was there.
pub(super) fn set_cookie(initiation: &mut [u8], cookie: Cookie) -> bool {
    let field = &mut initiation[HEAD_LEN..HEAD_LEN + COOKIE_LEN];
    let differs = field != cookie;
    field.copy_from_slice(&cookie);
    differs
}

/// Appends the request to send the initiation again with this cookie.
pub(super) fn write_retry(ports: PortField, token: Token, cookie: Cookie, out: &mut Vec<u8>) {
    head(ports, RETRY, out);
    out.extend(token);
    out.extend(cookie);
}

/// Appends the reply that carries a SYN-ACK.
pub(super) fn write_reply(
    noise: &mut HandshakeState,
    token: Token,
    syn_ack: &[u8],
    out: &mut Vec<u8>,
) {
    let (ports, syn_ack) = split_segment(syn_ack);
    head(ports, REPLY, out);
    out.extend(token);
    write_handshake(noise, syn_ack, out);
}

/// Appends the notice.
pub(super) fn write_notice(ports: PortField, token: Token, refusal: Refusal, out: &mut Vec<u8>) {
    head(ports, NOTICE, out);
    out.extend(token);
    out.push(match refusal {
        Refusal::NoKey => 1,
        Refusal::OtherKey => 2,
        Refusal::KeyNeeded => 3,
    });
}

/// Appends what stands before sealed data.
pub(super) fn write_data_head(ports: PortField, counter: u64, out: &mut Vec<u8>) {
    out.extend(ports);
    out.extend(counter.to_be_bytes());
}

/// The segment in the other side's message of the handshake, if that is authentic.
pub(super) fn read_handshake(
    noise: &mut HandshakeState,
    ports: PortField,
    message: &[u8],
) -> Option<Vec<u8>> {
    let mut payload = [0; NOISE_LEN];
    let len = noise.read_message(message, &mut payload).ok()?;
    let (segment_len, rest) = payload[..len].split_first()?;
    let rest = rest.get(..usize::from(*segment_len))?;
    Some([&ports, rest].concat())
}

/// The ports as they stand in the answer.
pub(super) const fn turned([a, b, c, d]: PortField) -> PortField {
    [c, d, a, b]
}

/// A segment's ports and what is behind them.
pub(super) fn split_segment(segment: &[u8]) -> (PortField, &[u8]) {
    let (ports, rest) = segment.split_first_chunk().expect("a segment has ports");
    (*ports, rest)
}

fn write_handshake(noise: &mut HandshakeState, segment: &[u8], out: &mut Vec<u8>) {
    let mut payload = [0; PAYLOAD_LEN];
    assert!(segment.len() < PAYLOAD_LEN, "{} bytes of SYN: has it payload?", segment.len());
    payload[0] = segment.len() as u8;
    payload[1..=segment.len()].copy_from_slice(segment);
    let start = out.len();
    out.resize(start + NOISE_LEN, 0);
    let written = noise.write_message(&payload, &mut out[start..]);
    assert_eq!(written, Ok(NOISE_LEN), "the handshake's messages have one length");
}

fn head(ports: PortField, kind: u8, out: &mut Vec<u8>) {
    out.extend(ports);
    out.extend(MAGIC);
    out.push(kind);
}

/// A counter, or what stands in its place in the handshake.
pub(super) const COUNTER_LEN: usize = 8;
pub(super) const PORTS_LEN: usize = 4;
pub(super) const INITIATION_LEN: usize = HEAD_LEN + COOKIE_LEN + NOISE_LEN;
pub(super) const REPLY_LEN: usize = HEAD_LEN + TOKEN_LEN + NOISE_LEN;
const HEAD_LEN: usize = PORTS_LEN + COUNTER_LEN;
const TOKEN_LEN: usize = 16;
/// The time and a MAC of 32 bytes.
const COOKIE_LEN: usize = 40;
/// What a reset says to a SYN in clear.
pub(super) const KEY_NEEDED: &[u8] = b"key needed";
const MAGIC: &[u8; 7] = b"weir/1 ";
const INITIATION: u8 = b'I';
const RETRY: u8 = b'C';
const REPLY: u8 = b'R';
const NOTICE: u8 = b'N';
/// A TCP header has at most 60 bytes.
const PAYLOAD_LEN: usize = 80;
/// Either message of the handshake: an X25519 key, the payload, a tag.
const NOISE_LEN: usize = 32 + PAYLOAD_LEN + 16;

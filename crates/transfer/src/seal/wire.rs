//! What sealed datagrams look like. Numbers are big-endian, lengths in bytes.
//!
//! ```text
//! initiation  ports 4 | "weir/2 " 'I' | cookie 40 | ephemeral key 32 | sealed (length 1, SYN, zeros) 80 | tag 16 | mac 16
//! retry       ports 4 | "weir/2 " 'C' | token 16  | cookie 40
//! reply       ports 4 | "weir/2 " 'R' | token 16  | ephemeral key 32 | sealed (length 1, SYN-ACK, zeros) 80 | tag 16
//! notice      ports 4 | "weir/2 " 'N' | token 16  | reason 1
//! stray       ports 4 | "weir/2 " 'S' | tag 16
//! data        ports 4 | zero 1        | epoch 1   | counter 6 | sealed segment | tag 16
//! ```
//!
//! The port fields of the segment travel in front, in clear: they tell connections between two sockets
//! apart. What is sealed is the segment behind them, and they are authenticated with it: as associated data
//! here, in the handshake as its prologue. The mac is of the hash of all that precedes it in the initiation,
//! under a key made of the pre-shared one: it shows the receiver, and no other party, which of its keys the sender has, and that
//! the sender has seen the cookie. The token is the first half of the initiation's ephemeral key: only who has
//! seen the initiation can answer it. A number's first byte is zero, so no data looks like the handshake.
//!
//! The digit is the version. Version 1 had no mac, no epochs and no stray, and authenticated neither ports nor
//! cookies. An initiation's first 68 bytes and a notice are the same in each, so that a refusal is understood.

use snow::HandshakeState;
use thiserror::Error;

use super::traffic::{KeyBytes, Number, TAG_LEN};

/// The first four bytes of a segment, and of every datagram.
pub(super) type PortField = [u8; PORTS_LEN];
pub(super) type Cookie = [u8; COOKIE_LEN];
pub(super) type Token = [u8; TOKEN_LEN];
/// Authenticates an initiation.
type Mac = [u8; MAC_LEN];

/// A datagram's parts behind its ports, as they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Initiation {
        cookie: Cookie,
        token: Token,
        noise: &'a [u8],
    },
    /// The initiation of another version.
    Foreign {
        version: u8,
        token: Token,
    },
    Retry {
        token: Token,
        cookie: Cookie,
    },
    Reply {
        token: Token,
        noise: &'a [u8],
    },
    Notice {
        token: Token,
        refusal: Refusal,
    },
    /// The receiver has no connection for the datagram with this tag.
    StatelessReset {
        tag: [u8; TAG_LEN],
    },
    Data {
        number: Number,
        sealed: &'a [u8],
    },
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
    /// It speaks another version.
    #[error("the receiver seals in another way: it has another version of Weir")]
    OtherVersion,
}

impl Refusal {
    /// What a reset says of its reason (RFC 1122 §4.2.2.12): only what is known is repeated.
    pub fn in_reset(payload: &[u8]) -> Option<Self> {
        (payload == KEY_NEEDED).then_some(Self::KeyNeeded)
    }

    fn code(self) -> u8 {
        match self {
            Self::NoKey => 1,
            Self::OtherKey => 2,
            Self::KeyNeeded => 3,
            Self::OtherVersion => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::NoKey, Self::OtherKey, Self::KeyNeeded, Self::OtherVersion]
            .into_iter()
            .find(|refusal| refusal.code() == code)
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
            let number = Number::from_u64(u64::from_be_bytes(*head));
            return Some(Self::Data { number, sealed: body });
        }
        let [b'w', b'e', b'i', b'r', b'/', version @ b'0'..=b'9', b' ', kind] = *head else {
            return None;
        };
        match (version, kind) {
            (VERSION, INITIATION) => Self::parse_initiation(body),
            (_, INITIATION) => {
                let token = *body.get(COOKIE_LEN..)?.first_chunk()?;
                Some(Self::Foreign { version, token })
            }
            (_, NOTICE) => {
                let (token, [reason]) = body.split_first_chunk()? else { return None };
                Some(Self::Notice { token: *token, refusal: Refusal::from_code(*reason)? })
            }
            (VERSION, RETRY) => {
                let (token, cookie) = body.split_first_chunk()?;
                Some(Self::Retry { token: *token, cookie: cookie.try_into().ok()? })
            }
            (VERSION, REPLY) => {
                let (token, noise) = body.split_first_chunk()?;
                (noise.len() == NOISE_LEN).then_some(Self::Reply { token: *token, noise })
            }
            (VERSION, STATELESS_RESET) => Some(Self::StatelessReset { tag: body.try_into().ok()? }),
            _ => None,
        }
    }

    fn parse_initiation(body: &'a [u8]) -> Option<Self> {
        let (cookie, rest) = body.split_first_chunk()?;
        let (noise, _) = rest.split_last_chunk::<MAC_LEN>()?;
        let token = noise.first_chunk().filter(|_| noise.len() == NOISE_LEN)?;
        Some(Self::Initiation { cookie: *cookie, token: *token, noise })
    }
}

/// Appends the initiation that carries a SYN, without a cookie.
pub(super) fn write_initiation(
    noise: &mut HandshakeState,
    syn: &[u8],
    mac_key: &KeyBytes,
    out: &mut Vec<u8>,
) {
    let (ports, syn) = split_segment(syn);
    head(ports, INITIATION, out);
    out.extend([0; COOKIE_LEN]);
    write_handshake(noise, syn, out);
    let mac = mac(mac_key, &blake3::hash(out));
    out.extend(mac);
}

/// Puts the cookie into an initiation. Returns whether it differs from what was there.
pub(super) fn set_cookie(initiation: &mut [u8], cookie: Cookie, mac_key: &KeyBytes) -> bool {
    let Some((front, mac_field)) = initiation.split_last_chunk_mut::<MAC_LEN>() else {
        return false;
    };
    let field = &mut front[HEAD_LEN..HEAD_LEN + COOKIE_LEN];
    let differs = *field != cookie;
    field.copy_from_slice(&cookie);
    *mac_field = mac(mac_key, &blake3::hash(front));
    differs
}

/// The first of these keys that the sender of an initiation has, who has seen its cookie then. An attacker may
/// ask for this often, so each key costs one block of BLAKE3.
pub(super) fn key_of<'a>(
    mac_keys: impl IntoIterator<Item = &'a KeyBytes>,
    initiation: &[u8],
) -> Option<usize> {
    let (front, mac_field) = initiation.split_last_chunk::<MAC_LEN>()?;
    let front = blake3::hash(front);
    // Hashes are compared in constant time.
    let claimed = comparable(*mac_field);
    mac_keys.into_iter().position(|mac_key| comparable(mac(mac_key, &front)) == claimed)
}

fn mac(mac_key: &KeyBytes, front: &blake3::Hash) -> Mac {
    let hash = blake3::keyed_hash(mac_key, front.as_bytes());
    hash.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn comparable(mac: Mac) -> blake3::Hash {
    let mut bytes = [0; blake3::OUT_LEN];
    bytes[..MAC_LEN].copy_from_slice(&mac);
    blake3::Hash::from_bytes(bytes)
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

/// Appends the notice, in the words of the asker's version.
pub(super) fn write_notice(
    ports: PortField,
    version: u8,
    token: Token,
    refusal: Refusal,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    head(ports, NOTICE, out);
    out[start + PORTS_LEN + "weir/".len()] = version;
    out.extend(token);
    out.push(refusal.code());
}

/// Appends the notice that the datagram with this tag matches no connection.
pub(super) fn write_stateless_reset(ports: PortField, tag: &[u8; TAG_LEN], out: &mut Vec<u8>) {
    head(ports, STATELESS_RESET, out);
    out.extend(tag);
}

/// Appends what stands before sealed data.
pub(super) fn write_data_head(ports: PortField, number: Number, out: &mut Vec<u8>) {
    out.extend(ports);
    out.extend(number.to_u64().to_be_bytes());
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
pub(super) const fn swapped([a, b, c, d]: PortField) -> PortField {
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
    out.extend([b'w', b'e', b'i', b'r', b'/', VERSION, b' ', kind]);
}

/// A counter, or what stands in its place in the handshake.
pub(super) const COUNTER_LEN: usize = 8;
pub(super) const PORTS_LEN: usize = 4;
pub(super) const INITIATION_LEN: usize = HEAD_LEN + COOKIE_LEN + NOISE_LEN + MAC_LEN;
pub(super) const REPLY_LEN: usize = HEAD_LEN + TOKEN_LEN + NOISE_LEN;
const HEAD_LEN: usize = PORTS_LEN + COUNTER_LEN;
const TOKEN_LEN: usize = 16;
const MAC_LEN: usize = 16;
/// The time and a MAC of 32 bytes.
const COOKIE_LEN: usize = 40;
/// What a reset says to a SYN in clear.
pub(super) const KEY_NEEDED: &[u8] = b"key needed";
pub(super) const VERSION: u8 = b'2';
const INITIATION: u8 = b'I';
const RETRY: u8 = b'C';
const REPLY: u8 = b'R';
const NOTICE: u8 = b'N';
const STATELESS_RESET: u8 = b'S';
/// A TCP header has at most 60 bytes.
const PAYLOAD_LEN: usize = 80;
/// Either message of the handshake: an X25519 key, the payload, a tag.
const NOISE_LEN: usize = 32 + PAYLOAD_LEN + 16;

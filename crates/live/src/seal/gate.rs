//! The receiver's door: what it answers to those who have no connection yet, keeping nothing.
//!
//! A cookie is a MAC over the initiation, the address it came from and the time, under a secret of this
//! process (as in RFC 4987 §3.6 and WireGuard). Whoever returns it receives what is sent to that
//! address. Only then is the pre-shared key tried, and only for the right key is a Diffie-Hellman done.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use weir_transport::wire::{Ports, emit, parse};
use weir_transport::{Flags, Segment};
use weir_units::{Duration, Instant};

use super::wire::{self, Cookie, Message, PortField, Refusal, turned};
use super::{Key, Seal};

/// One key, and the answers to initiations under it.
pub struct Gate {
    key: Key,
    secret: [u8; 32],
}

/// What a cookie is for.
struct Claim<'a> {
    from: SocketAddr,
    ports: PortField,
    noise: &'a [u8],
}

/// A sender that has the key and receives what is sent to its address.
#[derive(Debug)]
pub struct Newcomer {
    /// The receiver's end of its seal.
    pub seal: Seal,
    /// The SYN that its connection begins with.
    pub syn: Vec<u8>,
}

impl Gate {
    /// A gate whose cookies nobody can make without `secret`: random bytes, new for each process.
    pub fn new(key: Key, secret: [u8; 32]) -> Self {
        Self { key, secret }
    }

    /// The sender's end of a new connection under the same key.
    pub fn initiate(&self) -> Seal {
        Seal::initiate(&self.key)
    }

    /// Reads a datagram from an address without a connection. What is to be sent back, never more
    /// than came, is appended to `answer`.
    pub fn receive(
        &self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        answer: &mut Vec<u8>,
    ) -> Option<Newcomer> {
        let (ports, message) = Message::parse(datagram)?;
        let Message::Initiation { cookie, token, noise } = message else { return None };
        let claim = Claim { from, ports, noise };
        if !self.is_valid(now, &claim, cookie) {
            wire::write_retry(turned(ports), token, self.cookie(now, &claim), answer);
            return None;
        }
        let mut handshake = self.key.noise(|builder| builder.build_responder());
        let Some(syn) = wire::read_handshake(&mut handshake, ports, noise) else {
            wire::write_notice(turned(ports), token, Refusal::OtherKey, answer);
            return None;
        };
        Some(Newcomer { syn, seal: Seal::answering(handshake, token) })
    }

    /// `blake3::Hash` compares in constant time.
    fn is_valid(&self, now: Instant, claim: &Claim<'_>, cookie: Cookie) -> bool {
        let (issued, mac) = split_cookie(cookie);
        let fresh = issued <= now && now.saturating_since(issued) <= COOKIE_LIFE;
        fresh && self.mac(issued, claim) == mac
    }

    fn cookie(&self, now: Instant, claim: &Claim<'_>) -> Cookie {
        let mut cookie = [0; _];
        let (time, mac) = cookie.split_at_mut(TIME_LEN);
        time.copy_from_slice(&now.as_nanos().to_be_bytes());
        mac.copy_from_slice(self.mac(now, claim).as_bytes());
        cookie
    }

    fn mac(&self, issued: Instant, claim: &Claim<'_>) -> blake3::Hash {
        let ip = match claim.from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut mac = blake3::Hasher::new_keyed(&self.secret);
        mac.update(&issued.as_nanos().to_be_bytes());
        mac.update(&ip.octets()).update(&claim.from.port().to_be_bytes());
        mac.update(&claim.ports).update(claim.noise);
        mac.finalize()
    }
}

fn split_cookie(cookie: Cookie) -> (Instant, blake3::Hash) {
    let (time, mac) = cookie.split_first_chunk().expect("a cookie begins with its time");
    let mac = mac.try_into().map(blake3::Hash::from_bytes).expect("a cookie ends with its MAC");
    (Instant::from_nanos(u64::from_be_bytes(*time)), mac)
}

/// What a receiver without a key answers to an initiation, if `datagram` is one.
pub fn refuse_sealed(datagram: &[u8], answer: &mut Vec<u8>) {
    if let Some((ports, Message::Initiation { token, .. })) = Message::parse(datagram) {
        wire::write_notice(turned(ports), token, Refusal::NoKey, answer);
    }
}

/// What a receiver with a key answers to a SYN in clear: a reset that says why (RFC 1122 §4.2.2.12),
/// if there is room for the reason.
pub fn refuse_in_clear(datagram: &[u8], answer: &mut Vec<u8>) {
    let Ok(syn) = parse(datagram) else { return };
    if !syn.segment.flags.contains(Flags::SYN) || syn.segment.flags.contains(Flags::ACK) {
        return;
    }
    let room = datagram.len() - Segment::BASE_HEADER_LEN;
    let reason = Some(wire::KEY_NEEDED).filter(|text| text.len() <= room).unwrap_or_default();
    let reset = Segment {
        ack: syn.segment.seq + 1,
        flags: Flags::RST.with(Flags::ACK),
        payload_len: reason.len() as u32,
        ..Segment::default()
    };
    let ports = Ports { source: syn.ports.destination, destination: syn.ports.source };
    emit(&reset, ports, reason, answer);
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

const TIME_LEN: usize = 8;
/// A cookie is used within a round trip; this leaves room for lost datagrams.
const COOKIE_LIFE: Duration = Duration::from_secs(15);

//! The receiver's door: what it answers to those who have no connection yet, keeping nothing.
//!
//! A cookie is a MAC over the address and the ports an initiation came from and the time, under a secret of
//! this process (as in RFC 4987 §3.6 and WireGuard). A peer that returns it receives what is sent to that
//! address. Only then are the pre-shared keys tried, and only for the right key is a Diffie-Hellman done.
//!
//! The cookie is also what makes an initiation fresh: it is authenticated with it under the pre-shared key, and
//! each cookie admits once. So a recorded initiation admits no connection, from its own address
//! or another. WireGuard has a timestamp for that, of which a receiver remembers the greatest of each peer
//! (whitepaper §5.4.2); here several senders may share a key, whose clocks differ.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_transport::wire::{Ports, emit, parse};
use weir_transport::{Flags, Segment};
use weir_units::{Duration, Instant};

use super::Seal;
use super::keys::{Keys, NamedKey};
use super::traffic::{KeyBytes, TAG_LEN};
use super::wire::{self, Cookie, Message, PortField, Refusal, swapped};

/// The keys of an endpoint, and the answers to initiations under them.
pub struct Gate {
    keys: Keys,
    /// Under which initiations with each of them are authenticated.
    mac_keys: Vec<KeyBytes>,
    secret: [u8; 32],
    /// Cookies that have admitted a peer and are still valid, oldest first.
    spent: VecDeque<(Instant, blake3::Hash)>,
}

/// What a cookie is for.
#[derive(Clone, Copy)]
struct Claim {
    from: SocketAddr,
    ports: PortField,
}

/// A sender that has the key and receives what is sent to its address.
#[derive(Debug)]
pub struct Initiator {
    /// The receiver's end of its seal.
    pub seal: Seal,
    /// The SYN that its connection begins with.
    pub syn: Vec<u8>,
    /// The key that it has.
    pub key: Arc<NamedKey>,
}

impl Gate {
    /// A gate whose cookies cannot be forged without `secret`: random bytes, new for each process.
    pub fn new(keys: impl Into<Keys>, secret: [u8; 32]) -> Self {
        let keys = keys.into();
        let mac_keys = keys.iter().map(|key| key.key.mac_key()).collect();
        Self { keys, mac_keys, secret, spent: VecDeque::new() }
    }

    /// The sender's end of a new connection under the first key.
    ///
    /// # Panics
    /// If there is none.
    pub fn initiate(&self) -> Seal {
        let key = self.keys.iter().next().expect("a sender has a key");
        Seal::initiate(&key.key)
    }

    /// Reads a datagram from an address without a connection. What is to be sent back, never more
    /// than came, is appended to `answer`.
    pub fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        answer: &mut Vec<u8>,
    ) -> Option<Initiator> {
        let (ports, message) = Message::parse(datagram)?;
        let back = swapped(ports);
        let (cookie, token, noise) = match message {
            Message::Initiation { cookie, token, noise } => (cookie, token, noise),
            Message::Foreign { version, token } => {
                // The first version knows of no reason but its own, of which this comes nearest.
                let refusal = match version {
                    b'1' => Refusal::OtherKey,
                    _ => Refusal::OtherVersion,
                };
                wire::write_notice(back, version, token, refusal, answer);
                return None;
            }
            _ => return None,
        };
        let claim = Claim { from, ports };
        let Some(valid) = self.valid(now, claim, cookie) else {
            wire::write_retry(back, token, self.cookie(now, claim), answer);
            return None;
        };
        let Some(key) = self.key_of(datagram) else {
            wire::write_notice(back, wire::VERSION, token, Refusal::OtherKey, answer);
            return None;
        };
        let mut handshake = key.key.noise(ports, |builder| builder.build_responder());
        let syn = wire::read_handshake(&mut handshake.0, ports, noise)?;
        self.spent.push_back(valid);
        Some(Initiator { syn, seal: Seal::answering(handshake, token), key })
    }

    /// Number of remembered cookies that admitted a peer.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.spent.len()
    }

    /// The key that an initiation is under.
    fn key_of(&self, initiation: &[u8]) -> Option<Arc<NamedKey>> {
        let at = wire::key_of(&self.mac_keys, initiation)?;
        self.keys.iter().nth(at).map(Arc::clone)
    }

    /// The cookie's time and MAC, if it is good and was not spent. `blake3::Hash` compares in constant
    /// time.
    fn valid(
        &mut self,
        now: Instant,
        claim: Claim,
        cookie: Cookie,
    ) -> Option<(Instant, blake3::Hash)> {
        let stale = |issued: Instant| now.saturating_since(issued) > COOKIE_LIFE;
        while self.spent.front().is_some_and(|(issued, _)| stale(*issued)) {
            self.spent.pop_front();
        }
        let (issued, mac) = split_cookie(cookie);
        let good = issued <= now && !stale(issued) && self.mac(issued, claim) == mac;
        (good && !self.spent.contains(&(issued, mac))).then_some((issued, mac))
    }

    fn cookie(&self, now: Instant, claim: Claim) -> Cookie {
        let mut cookie = [0; _];
        let (time, mac) = cookie.split_at_mut(TIME_LEN);
        time.copy_from_slice(&now.as_nanos().to_be_bytes());
        mac.copy_from_slice(self.mac(now, claim).as_bytes());
        cookie
    }

    fn mac(&self, issued: Instant, claim: Claim) -> blake3::Hash {
        let ip = match claim.from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut mac = blake3::Hasher::new_keyed(&self.secret);
        mac.update(&issued.as_nanos().to_be_bytes());
        mac.update(&ip.octets()).update(&claim.from.port().to_be_bytes());
        mac.update(&claim.ports);
        mac.finalize()
    }
}

fn split_cookie(cookie: Cookie) -> (Instant, blake3::Hash) {
    let (time, mac) = cookie.split_first_chunk().expect("a cookie begins with its time");
    let mac = mac.try_into().map(blake3::Hash::from_bytes).expect("a cookie ends with its MAC");
    (Instant::from_nanos(u64::from_be_bytes(*time)), mac)
}

/// Whether a datagram is that of a sealed connection, so that it may be answered with [`answer_with_reset`].
pub fn is_data(datagram: &[u8]) -> bool {
    matches!(Message::parse(datagram), Some((_, Message::Data { .. })))
}

/// What a receiver answers to sealed data of no connection (RFC 9293 §3.10.7.1). It can prove nothing, having
/// no keys for it, so that the sender believes it only after a silence; but only who has seen the datagram can
/// have sent it.
pub fn answer_with_reset(datagram: &[u8], answer: &mut Vec<u8>) {
    if let Some((ports, Message::Data { sealed, .. })) = Message::parse(datagram)
        && let Some(tag) = sealed.last_chunk::<TAG_LEN>()
    {
        wire::write_stateless_reset(swapped(ports), tag, answer);
    }
}

/// What a receiver without a key answers to an initiation, if `datagram` is one.
pub fn refuse_sealed(datagram: &[u8], answer: &mut Vec<u8>) {
    let (ports, version, token) = match Message::parse(datagram) {
        Some((ports, Message::Initiation { token, .. })) => (ports, wire::VERSION, token),
        Some((ports, Message::Foreign { version, token })) => (ports, version, token),
        _ => return,
    };
    wire::write_notice(swapped(ports), version, token, Refusal::NoKey, answer);
}

/// What a receiver with a key answers to a SYN in clear: a reset that says why (RFC 1122 §4.2.2.12),
/// if there is space for the reason.
pub fn refuse_in_clear(datagram: &[u8], answer: &mut Vec<u8>) {
    let Ok(syn) = parse(datagram) else { return };
    if !syn.segment.flags.contains(Flags::SYN) || syn.segment.flags.contains(Flags::ACK) {
        return;
    }
    let space = datagram.len() - Segment::BASE_HEADER_LEN;
    let reason = Some(wire::KEY_NEEDED).filter(|text| text.len() <= space).unwrap_or_default();
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
/// A cookie is used within a round trip; this allows for lost datagrams.
const COOKIE_LIFE: Duration = Duration::from_secs(15);

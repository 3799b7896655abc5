//! Traffic keys of one connection: one per direction and epoch.
//!
//! A direction begins the next epoch after [`EPOCH_LIFE`] or [`EPOCH_BLOCKS`]. Its key is Noise's `REKEY` of
//! the one before (Noise §11.3), which is TLS's and QUIC's way too (RFC 8446 §4.6.3, RFC 9001 §6): no
//! message, no round trip, nothing that can be lost. A key does not tell the ones before it, which are
//! erased; it does tell the ones after it. A second handshake inside the connection would end that too, and
//! would cost messages that have to survive loss, for who can read a process's memory once and not again.
//!
//! The epoch's lowest byte travels with the counter. A receiver follows its peer: it has the key of the next
//! epoch ready, so that a forged datagram costs no more than any other (RFC 9001 §6.3), and keeps the one
//! before for a while. It cannot miss an epoch: it would have been without a datagram for [`EPOCH_LIFE`],
//! and gives up after half of that (`Limits::idle`).

use std::fmt;

use snow::params::CipherChoice;
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::Cipher;
use weir_units::{Duration, Instant};
use zeroize::Zeroizing;

use super::SealError;

/// Bytes of the key of AES-256.
pub(super) type KeyBytes = Zeroizing<[u8; 32]>;

/// A key as its cipher holds it. It is overwritten when dropped.
struct TrafficKey(Box<dyn Cipher>);

impl TrafficKey {
    fn new(bytes: &KeyBytes) -> Self {
        let mut cipher =
            RingResolver.resolve_cipher(&CipherChoice::AESGCM).expect("ring has AES-GCM");
        cipher.set(bytes);
        Self(cipher)
    }

    /// The key of the next epoch: Noise §4.2, `REKEY(k)`.
    fn next(&self) -> Self {
        let mut sealed = Zeroizing::new([0; 32 + TAG_LEN]);
        self.0.encrypt(u64::MAX, &[], &[0; 32], &mut *sealed);
        let mut bytes = KeyBytes::default();
        bytes.copy_from_slice(&sealed[..32]);
        Self::new(&bytes)
    }
}

impl Drop for TrafficKey {
    fn drop(&mut self) {
        self.0.set(&[0; 32]);
    }
}

/// Seals what one side sends.
pub(super) struct SendKeys {
    key: TrafficKey,
    epoch: u8,
    /// When the epoch began.
    since: Instant,
    /// AES blocks sealed in it.
    blocks: u64,
    /// Runs on through all epochs.
    next_counter: u64,
}

impl SendKeys {
    pub(super) fn new(now: Instant, bytes: &KeyBytes) -> Self {
        let key = TrafficKey::new(bytes);
        Self { key, epoch: 0, since: now, blocks: 0, next_counter: 0 }
    }

    /// The number of the next datagram, which holds `len` bytes.
    pub(super) fn number(&mut self, now: Instant, len: usize) -> Result<Number, SealError> {
        if self.next_counter > Number::MAX_COUNTER {
            return Err(SealError::Spent);
        }
        let blocks = 1 + len.div_ceil(AES_BLOCK) as u64;
        let old = now.saturating_since(self.since) >= EPOCH_LIFE;
        if old || self.blocks + blocks > EPOCH_BLOCKS {
            self.key = self.key.next();
            self.epoch = self.epoch.wrapping_add(1);
            self.since = now;
            self.blocks = 0;
        }
        self.blocks += blocks;
        let counter = self.next_counter;
        self.next_counter += 1;
        Ok(Number { epoch: self.epoch, counter })
    }

    /// Seals `plain` under a number that [`number`](Self::number) has just given.
    pub(super) fn seal(&self, number: Number, head: &[u8], plain: &[u8], out: &mut [u8]) {
        self.key.0.encrypt(number.to_u64(), head, plain, out);
    }
}

/// Opens what one side receives.
pub(super) struct RecvKeys {
    epoch: u8,
    current: TrafficKey,
    next: TrafficKey,
    /// The key of the epoch before, and until when it is kept.
    previous: Option<(TrafficKey, Instant)>,
}

impl RecvKeys {
    pub(super) fn new(bytes: &KeyBytes) -> Self {
        let current = TrafficKey::new(bytes);
        let next = current.next();
        Self { epoch: 0, current, next, previous: None }
    }

    /// Opens into `out`, which has space for the tag too; returns how much it was.
    pub(super) fn open(
        &mut self,
        now: Instant,
        number: Number,
        head: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Option<usize> {
        self.previous.take_if(|(_, until)| *until <= now);
        let ahead = number.epoch.wrapping_sub(self.epoch);
        let key = match ahead {
            0 => &self.current,
            1 => &self.next,
            u8::MAX => &self.previous.as_ref()?.0,
            _ => return None,
        };
        let len = key.0.decrypt(number.to_u64(), head, sealed, out).ok()?;
        if ahead == 1 {
            let after = self.next.next();
            let current = std::mem::replace(&mut self.next, after);
            let previous = std::mem::replace(&mut self.current, current);
            self.previous = Some((previous, now + PREVIOUS_LIFE));
            self.epoch = number.epoch;
        }
        Some(len)
    }
}

/// The number of a datagram, which is its nonce: no two of one key are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// The lowest byte of the epoch.
    pub(super) epoch: u8,
    pub(super) counter: u64,
}

impl Number {
    /// The highest byte is zero, which tells data from the handshake.
    pub(super) const MAX_COUNTER: u64 = (1 << COUNTER_BITS) - 1;

    pub(super) fn to_u64(self) -> u64 {
        u64::from(self.epoch) << COUNTER_BITS | self.counter
    }

    /// The number in eight bytes whose first is zero.
    pub(super) fn from_u64(number: u64) -> Self {
        Self { epoch: (number >> COUNTER_BITS) as u8, counter: number & Self::MAX_COUNTER }
    }
}

impl fmt::Debug for TrafficKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrafficKey(..)")
    }
}

pub(super) const TAG_LEN: usize = 16;
const COUNTER_BITS: u32 = 48;
const AES_BLOCK: usize = 16;
/// As in WireGuard (`REKEY_AFTER_TIME`).
const EPOCH_LIFE: Duration = Duration::from_secs(120);
/// 64 GiB. Under one key AES-GCM would stay within 2^-57 of ideal for eight times as many (RFC 9001 appendix
/// B.1.1: 2^28 packets of 2^7 blocks). Forgeries have their own limit, 2^52 datagrams, which no link reaches.
const EPOCH_BLOCKS: u64 = (64 << 30) / AES_BLOCK as u64;
/// What is overtaken by more is a loss.
const PREVIOUS_LIFE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"head";

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn keys() -> (SendKeys, RecvKeys) {
        let bytes = Zeroizing::new([3; 32]);
        (SendKeys::new(at(0), &bytes), RecvKeys::new(&bytes))
    }

    fn sealed(keys: &mut SendKeys, now: Instant) -> (Number, [u8; 17]) {
        let number = keys.number(now, 1).expect("not spent");
        let mut out = [0; 17];
        keys.seal(number, HEAD, b"x", &mut out);
        (number, out)
    }

    fn opens(keys: &mut RecvKeys, now: Instant, (number, bytes): &(Number, [u8; 17])) -> bool {
        keys.open(now, *number, HEAD, bytes, &mut [0; 17]) == Some(1)
    }

    #[test]
    fn a_key_seals_for_two_minutes_or_64_gib() {
        let (mut send, mut recv) = keys();
        let mut epoch_at = |send: &mut SendKeys, now| {
            let datagram = sealed(send, now);
            assert!(opens(&mut recv, now, &datagram));
            datagram.0
        };
        assert_eq!(epoch_at(&mut send, at(119)), Number { epoch: 0, counter: 0 });
        assert_eq!(epoch_at(&mut send, at(120)), Number { epoch: 1, counter: 1 });
        send.blocks = EPOCH_BLOCKS - 2;
        assert_eq!(epoch_at(&mut send, at(121)).epoch, 1);
        assert_eq!(epoch_at(&mut send, at(122)).epoch, 2);
    }

    #[test]
    fn epochs_come_round() {
        let (mut send, mut recv) = keys();
        for epoch in 0..1_000 {
            let now = at(120 * epoch);
            let datagram = sealed(&mut send, now);
            assert_eq!(datagram.0.epoch, epoch as u8);
            assert!(opens(&mut recv, now, &datagram));
        }
    }

    #[test]
    fn the_key_before_is_kept_for_a_moment() {
        let (mut send, mut recv) = keys();
        let early = [at(0), at(0), at(0)].map(|now| sealed(&mut send, now));
        let late = sealed(&mut send, at(120));
        assert!(opens(&mut recv, at(120), &early[0]));
        assert!(opens(&mut recv, at(120), &late));
        assert!(opens(&mut recv, at(122), &early[1]));
        assert!(!opens(&mut recv, at(123), &early[2]), "its key is erased");
        assert!(recv.previous.is_none());
    }

    #[test]
    fn no_key_opens_what_another_sealed() {
        let (mut send, mut recv) = keys();
        let (number, bytes) = sealed(&mut send, at(0));
        for epoch in 1..=u8::MAX {
            assert!(!opens(&mut recv, at(0), &(Number { epoch, ..number }, bytes)));
        }
        assert!(recv.open(at(0), number, b"tail", &bytes, &mut [0; 17]).is_none());
        assert_eq!(recv.epoch, 0, "what does not open changes nothing");
    }

    #[test]
    fn counters_end() {
        let (mut send, _) = keys();
        send.next_counter = Number::MAX_COUNTER;
        assert!(send.number(at(0), 1).is_ok());
        assert_eq!(send.number(at(0), 1), Err(SealError::Spent));
    }
}

//! The pre-shared key and its file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use snow::{Builder, HandshakeState};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use super::traffic::KeyBytes;
use super::wire::PortField;

/// 32 random bytes that both sides know, overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Key::LEN]);

/// Why a file holds no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// It cannot be read.
    #[error("cannot read the key file '{path}': {}", plain(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder of keys cannot be read.
    #[error("cannot read the key folder '{path}': {}", plain(.source))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder holds no key, or too many.
    #[error(
        "the key folder '{path}' holds {found} files NAME.key; 1 to {most} are allowed, and `weir recv --new-key {path}/NAME.key` makes one",
        most = Key::MOST
    )]
    Count {
        /// The folder.
        path: PathBuf,
        /// How many it holds.
        found: usize,
    },
    /// Two files hold the same key.
    #[error(
        "'{first}' and '{second}' hold the same key; each peer needs its own, so that one can be removed"
    )]
    Twice {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// It holds something else.
    #[error(
        "the key file '{path}' holds {found}; a key is {digits} hexadecimal digits, as `weir recv --new-key FILE` writes",
        digits = 2 * Key::LEN
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
}

impl Key {
    const LEN: usize = 32;
    /// Maximum number of keys: each initiation can be tried against all.
    pub(super) const MOST: usize = 1_024;

    /// A key of these bytes.
    pub const fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Reads a key file: 64 hexadecimal digits, white space around them.
    ///
    /// # Errors
    /// If the file cannot be read or holds something else.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let unreadable = |source| KeyError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_FILE as usize));
        // A device may have no end.
        file.take(MAX_FILE).read_to_end(&mut text).map_err(unreadable)?;
        Self::parse(&text).map_err(|found| KeyError::Malformed { path: path.to_owned(), found })
    }

    /// What stands in the way of a key goes into the error, the text itself does not.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let digits = text.trim_ascii();
        if let Some(at) = digits.iter().position(|byte| !byte.is_ascii_hexdigit()) {
            return Err(format!("something that is no such digit at byte {}", at + 1));
        }
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(format!("{} of them", digits.len()));
        };
        let mut key = Self([0; Self::LEN]);
        if pairs.len() != key.0.len() {
            return Err(format!("{} of them", digits.len()));
        }
        for (byte, [high, low]) in key.0.iter_mut().zip(pairs) {
            *byte = nibble(*high) << 4 | nibble(*low);
        }
        Ok(key)
    }

    /// Tells keys apart.
    pub(super) fn digest(&self) -> blake3::Hash {
        blake3::hash(&self.0)
    }

    /// The key under which initiations are authenticated.
    pub(super) fn mac_key(&self) -> KeyBytes {
        Zeroizing::new(blake3::derive_key("weir/2 MAC of an initiation", &self.0))
    }

    /// One side of a handshake under this key, between these ports.
    pub(super) fn noise(
        &self,
        ports: PortField,
        build: impl FnOnce(Builder<'_>) -> Result<HandshakeState, snow::Error>,
    ) -> Handshake {
        let prologue = [PROLOGUE, &ports].concat();
        let builder = PATTERN
            .parse()
            .map(Builder::new)
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(|builder| builder.psk(0, &self.0));
        Handshake(builder.and_then(build).expect("the pattern needs nothing but its key"))
    }
}

/// One side of a handshake, whose copy of the pre-shared key is overwritten when dropped.
pub(super) struct Handshake(pub(super) HandshakeState);

impl Handshake {
    /// The keys of both directions, the initiator's first, once both messages are through.
    pub(super) fn split(mut self) -> (KeyBytes, KeyBytes) {
        assert!(self.0.is_handshake_finished(), "both messages are through");
        let (from_initiator, from_responder) = self.0.dangerously_get_raw_split();
        (Zeroizing::new(from_initiator), Zeroizing::new(from_responder))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        // It can only fail for another length.
        let _ = self.0.set_psk(0, &[0; Key::LEN]);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// An error without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The value of a hexadecimal digit.
fn nibble(digit: u8) -> u8 {
    (digit as char).to_digit(16).map_or(0, |value| value as u8)
}

/// No static keys: who has the pre-shared key is a friend. Ephemeral ones keep what was recorded
/// secret should the key leak later. AES-GCM and not ChaCha20: with `ring` it is five times as fast here
/// (`cargo run --release -p weir-transfer --example seal`).
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_BLAKE2s";
const PROLOGUE: &[u8] = b"weir/2";
/// Digits and some white space.
const MAX_FILE: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &[u8]) -> Result<[u8; 32], String> {
        Key::parse(text).map(|key| key.0)
    }

    #[test]
    fn sixty_four_digits_are_a_key() {
        let text = b"000102030405060708090a0B0C0D0E0f101112131415161718191a1b1c1d1e1f\n";
        assert_eq!(bytes(text), Ok(std::array::from_fn(|i| i as u8)));
    }

    #[test]
    fn anything_else_says_what_it_is() {
        assert_eq!(bytes(b""), Err("0 of them".into()));
        assert_eq!(bytes(&[b'a'; 63]), Err("63 of them".into()));
        assert_eq!(bytes(&[b'a'; 66]), Err("66 of them".into()));
        assert_eq!(bytes(b"12 34"), Err("something that is no such digit at byte 3".into()));
    }

    #[test]
    fn debugging_shows_no_key() {
        assert_eq!(format!("{:?}", Key::new([0xab; 32])), "Key(..)");
    }
}

//! The null session's keys of packets and tokens, as quinn's traits have them.

use bytes::BytesMut;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, PacketKey};

use super::crypto::{Null, remove_tag};
use crate::handshake::TAG;

impl PacketKey for Null {
    /// Space for the tag is there already, and zero.
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        remove_tag(payload)
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

/// Tokens are never issued: connections are not resumed.
impl HandshakeTokenKey for Null {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for Null {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

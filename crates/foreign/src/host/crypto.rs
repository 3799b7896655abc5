//! The null session: see [`crate::handshake`]. This file is compiled once for each host, as `end.rs`; the
//! keys of packets and tokens, whose traits differ, are in `keys.rs` of each host.

use std::any::Any;

use bytes::BytesMut;

use super::proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys,
    PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{ConnectError, Side, TransportError};
use super::{IdArg, SelfArg};
use crate::handshake::{Handshake, TAG, reset_token};

/// Configuration of both sides, and every key.
#[derive(Debug)]
pub(super) struct Null;

struct NullSession {
    side: Side,
    handshake: Handshake,
}

fn session(side: Side, parameters: &TransportParameters) -> Box<dyn Session> {
    let mut own = Vec::new();
    parameters.write(&mut own);
    Box::new(NullSession { side, handshake: Handshake::new(side.is_client(), own) })
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Null), remote: Box::new(Null) },
        packet: KeyPair { local: Box::new(Null), remote: Box::new(Null) },
    }
}

impl ClientConfig for Null {
    fn start_session(
        self: SelfArg<'_, Self>,
        _version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(session(Side::Client, parameters))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _: u32, _: IdArg<'_>) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: IdArg<'_>, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: SelfArg<'_, Self>,
        _version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        session(Side::Server, parameters)
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: IdArg<'_>, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.handshake.is_open()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.handshake.read(bytes);
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |mut bytes| TransportParameters::read(self.side, &mut bytes);
        Ok(self.handshake.peer().map(read).transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        self.handshake.write(out).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(keys().packet)
    }

    fn is_valid_retry(&self, _: IdArg<'_>, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// What "decrypting" a packet is: its tag goes.
pub(super) fn remove_tag(payload: &mut BytesMut) -> Result<(), CryptoError> {
    let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
    payload.truncate(len);
    Ok(())
}

impl HeaderKey for Null {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

impl HmacKey for Null {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        reset_token(data, out);
    }

    fn signature_len(&self) -> usize {
        TAG
    }

    fn verify(&self, _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }
}

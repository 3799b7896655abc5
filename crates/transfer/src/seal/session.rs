//! The seal of a connection whose handshake is through.

use weir_units::Instant;

use super::SealError;
use super::replay::ReplayWindow;
use super::traffic::{Number, RecvKeys, SendKeys, TAG_LEN};
use super::wire::{self, PORTS_LEN, PortField};

/// Both directions' keys, and what has arrived.
pub(super) struct Session {
    pub(super) send: SendKeys,
    pub(super) recv: RecvKeys,
    pub(super) role: Role,
    pub(super) arrived: ReplayWindow,
    /// The reply and its SYN-ACK, until the other side shows that it has the keys: sent again by the
    /// receiver, handed to the connection again by the sender.
    pub(super) greeting: Option<HandshakeReply>,
    /// The tag of what was sealed last, if anything was.
    pub(super) last_tag: Option<[u8; TAG_LEN]>,
}

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Initiator,
    Responder,
}

pub(super) struct HandshakeReply {
    pub(super) reply: Vec<u8>,
    pub(super) syn_ack: Vec<u8>,
}

impl Session {
    pub(super) fn new(
        send: SendKeys,
        recv: RecvKeys,
        role: Role,
        greeting: HandshakeReply,
    ) -> Self {
        Self {
            send,
            recv,
            role,
            arrived: ReplayWindow::default(),
            greeting: Some(greeting),
            last_tag: None,
        }
    }

    pub(super) fn seal(
        &mut self,
        now: Instant,
        segment: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if let Some(greeting) = self.greeting.as_ref().filter(|_| self.repeats_reply()) {
            out.extend(&greeting.reply);
            return Ok(());
        }
        let (ports, rest) = wire::split_segment(segment);
        let number = self.send.number(now, rest.len())?;
        wire::write_data_head(ports, number, out);
        let start = out.len();
        out.resize(start + rest.len() + TAG_LEN, 0);
        self.send.seal(number, &ports, rest, &mut out[start..]);
        self.last_tag = out.last_chunk().copied();
        Ok(())
    }

    /// The receiver does not know whether its reply has arrived until it hears from the sender, and
    /// until then its connection can have nothing but its SYN-ACK to send again.
    pub(super) fn repeats_reply(&self) -> bool {
        self.greeting.is_some() && self.role == Role::Responder
    }

    pub(super) fn open<'a>(
        &mut self,
        now: Instant,
        ports: PortField,
        number: Number,
        sealed: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        if !self.arrived.is_new(number.counter) {
            return None;
        }
        // Decryption needs space for the tag.
        scratch.resize(scratch.len().max(PORTS_LEN + sealed.len()), 0);
        let (front, rest) = scratch.split_at_mut(PORTS_LEN);
        let len = self.recv.open(now, number, &ports, sealed, rest)?;
        front.copy_from_slice(&ports);
        self.arrived.insert(number.counter);
        self.greeting = None;
        Some(&scratch[..PORTS_LEN + len])
    }
}

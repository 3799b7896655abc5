//! A handshake without cryptography: each side sends its transport parameters in the clear.
//!
//! It replaces TLS, whose keys and signatures differ from run to run. Packets keep the sizes that
//! AES-GCM gives them (RFC 9001 §5.3); the first flights are shorter, as they carry no certificate.

/// Bytes that AES-GCM appends to a packet, and bytes of it that header protection samples.
pub(crate) const TAG: usize = 16;

/// State of one side. Messages are transport parameters behind their length; the client's second
/// message is empty and stands for TLS's Finished.
#[derive(Debug)]
pub(crate) struct Handshake {
    client: bool,
    own: Vec<u8>,
    received: Vec<u8>,
    /// Bytes of `received` that are the peer's first message, once that is complete.
    peer: Option<usize>,
    /// Flights written: none, that of the Initial packets, that of the Handshake packets.
    written: u8,
}

impl Handshake {
    pub(crate) fn new(client: bool, parameters: Vec<u8>) -> Self {
        Self { client, own: parameters, received: Vec::new(), peer: None, written: 0 }
    }

    /// Takes handshake bytes, which arrive in order.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        let Some((len, rest)) = self.received.split_first_chunk() else { return };
        let len = usize::from(u16::from_be_bytes(*len));
        self.peer = (rest.len() >= len).then_some(len);
    }

    /// The peer's transport parameters.
    pub(crate) fn peer(&self) -> Option<&[u8]> {
        self.peer.map(|len| &self.received[LENGTH..LENGTH + len])
    }

    /// Writes the next flight; returns whether the keys of the next packets are ready.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        // The client speaks first, and each side sends its parameters once.
        let (ready, parameters) = match (self.client, self.written) {
            (true, 0) => (true, Some(&self.own[..])),
            (true, 1) => (self.peer.is_some(), Some(&[][..])),
            (false, 0) => (self.peer.is_some(), None),
            (false, 1) => (true, Some(&self.own[..])),
            _ => (false, None),
        };
        if !ready {
            return false;
        }
        self.written += 1;
        if let Some(parameters) = parameters {
            out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
            out.extend_from_slice(parameters);
        }
        true
    }

    /// Whether the peer's last message is still missing.
    pub(crate) fn is_open(&self) -> bool {
        let Some(len) = self.peer else { return true };
        let finished = if self.client { 0 } else { LENGTH };
        self.received.len() < LENGTH + len + finished
    }
}

/// The stateless reset token of a connection ID. It is never all zeros, as the tags of packets are.
pub(crate) fn reset_token(id: &[u8], out: &mut [u8]) {
    out.fill(0xa5);
    out.iter_mut().zip(id).for_each(|(byte, of)| *byte = *of);
}

const LENGTH: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_learn_the_parameters_whatever_the_pieces() {
        let mut client = Handshake::new(true, b"client".to_vec());
        let mut server = Handshake::new(false, b"server".to_vec());
        let mut flight = Vec::new();
        assert!(client.write(&mut flight));
        assert!(!client.write(&mut Vec::new()));
        for byte in flight {
            assert_eq!(server.peer(), None);
            assert!(!server.write(&mut Vec::new()));
            server.read(&[byte]);
        }
        assert_eq!(server.peer(), Some(&b"client"[..]));
        let mut flight = Vec::new();
        assert!(server.write(&mut flight) && flight.is_empty(), "keys first, then the message");
        assert!(server.write(&mut flight));
        assert!(server.is_open());
        client.read(&flight);
        assert_eq!((client.peer(), client.is_open()), (Some(&b"server"[..]), false));
        let mut finished = Vec::new();
        assert!(client.write(&mut finished));
        server.read(&finished);
        assert!(!server.is_open());
    }
}

//! Any bytes: parsing never panics, and what parses is emitted and parsed again to the same.

use weir_transport::wire::{emit, parse};

/// Checks `datagram` as it is and, so that more than the checksum is reached, with that put right.
pub(crate) fn check(datagram: &[u8]) {
    check_as_is(datagram);
    check_as_is(&with_checksum(datagram));
}

fn check_as_is(datagram: &[u8]) {
    let Ok(parsed) = parse(datagram) else { return };
    assert_eq!(parsed.payload.len(), parsed.segment.payload_len as usize);
    assert!(datagram.ends_with(parsed.payload));
    let mut again = Vec::new();
    emit(&parsed.segment, parsed.ports, parsed.payload, &mut again);
    assert_eq!(parse(&again), Ok(parsed));
}

/// TCP's checksum over the pseudo-header that the wire module describes.
fn with_checksum(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    let Some(field) = bytes.get_mut(16..18) else { return bytes };
    field.fill(0);
    let mut sum = 6 + bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        sum += usize::from(*byte) << if at % 2 == 0 { 8 } else { 0 };
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    bytes[16..18].copy_from_slice(&(!sum as u16).to_be_bytes());
    bytes
}

//! Packets as the datagrams that carry them over loopback.
//!
//! A datagram holds the segment as [`weir_transport::wire`] writes it; the number of the flow stands
//! in its port fields. Datagrams of an unreliable flow take the same form: their number stands where
//! sequence and acknowledgement numbers do. What counts for rates, queues and tables is the IP packet
//! that it stands for, as in the simulator: an IP header of 20 bytes with the TCP segment, or with a
//! UDP header of 8 bytes and the payload.
//!
//! On the way from the relay to a host a trailer of 16 bytes says when the packet was sent and how long it
//! waited in queues. It does not count, and no protocol sees it.

use weir_net::Ecn;
use weir_scene::{Body, Direction, FlowSpec, IP_HEADER, Packet, TransportSpec, UDP_HEADER};
use weir_transport::wire::{self, Ports};
use weir_transport::{Segment, SeqNum};
use weir_units::{Duration, Instant};

/// The header of every frame without options.
const BASE_HEADER: u32 = Segment::BASE_HEADER_LEN as u32;

/// The most bytes of payload in an unreliable datagram, whose frame has to fit into a UDP datagram
/// with the trailer.
pub(crate) const MAX_PAYLOAD: u64 =
    weir_sockets::socket::MAX_DATAGRAM as u64 - BASE_HEADER as u64 - TRAILER as u64;
/// The most bytes of payload in a segment, whose header may be 60 bytes long.
pub(crate) const MAX_MSS: u64 = weir_sockets::socket::MAX_DATAGRAM as u64 - 60 - TRAILER as u64;

const TRAILER: usize = 16;

/// Appends the frame of `packet` with its payload.
pub fn emit(packet: &Packet, payload: &[u8], out: &mut Vec<u8>) {
    let segment = match packet.body {
        Body::Segment { segment, .. } => segment,
        Body::Datagram { number, payload } => Segment {
            seq: SeqNum(number as u32),
            ack: SeqNum((number >> 32) as u32),
            payload_len: payload,
            ..Segment::default()
        },
        Body::Foreign { .. } => unreachable!("flows send nothing foreign"),
    };
    let ports = Ports { source: (packet.flow >> 16) as u16, destination: packet.flow as u16 };
    wire::emit(&segment, ports, payload, out);
}

/// The packet that a frame stands for, if it is one of the run's flows.
pub fn parse(frame: &[u8], direction: Direction, ecn: Ecn, flows: &[FlowSpec]) -> Option<Packet> {
    let wire::Parsed { segment, ports, payload } = wire::parse(frame).ok()?;
    let flow = u32::from(ports.source) << 16 | u32::from(ports.destination);
    let header = (frame.len() - payload.len()) as u32;
    let (body, header) = match &flows.get(flow as usize)?.transport {
        TransportSpec::Reliable(_) => {
            (Body::Segment { segment, offset: u64::from(segment.seq.0) }, header)
        }
        TransportSpec::Foreign(_) | TransportSpec::Program(_) => return None,
        TransportSpec::Udp(_) => {
            let number = u64::from(segment.ack.0) << 32 | u64::from(segment.seq.0);
            (Body::Datagram { number, payload: segment.payload_len }, UDP_HEADER)
        }
    };
    Some(Packet {
        flow,
        direction,
        hop: 0,
        ecn,
        corrupted: false,
        ip_len: IP_HEADER + header + payload.len() as u32,
        stamp: 0,
        sent: Instant::ZERO,
        queued: Duration::ZERO,
        body,
        load: (),
    })
}

/// The payload of a frame that [`parse`] could read.
pub fn payload(frame: &[u8]) -> &[u8] {
    let header = frame.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    frame.get(header..).unwrap_or_default()
}

/// What the relay knows of a packet that it hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelayedPacket {
    /// When it came.
    pub(crate) sent: Instant,
    /// How long it waited in queues.
    pub(crate) queued: Duration,
}

/// Appends the trailer.
pub(crate) fn push_trailer(passage: RelayedPacket, frame: &mut Vec<u8>) {
    frame.extend(passage.sent.as_nanos().to_be_bytes());
    frame.extend(passage.queued.as_nanos().to_be_bytes());
}

/// Takes the trailer off.
pub(crate) fn split_trailer(datagram: &[u8]) -> Option<(&[u8], RelayedPacket)> {
    let (rest, queued) = datagram.split_last_chunk()?;
    let (frame, sent) = rest.split_last_chunk()?;
    let sent = Instant::from_nanos(u64::from_be_bytes(*sent));
    Some((frame, RelayedPacket { sent, queued: Duration::from_nanos(u64::from_be_bytes(*queued)) }))
}

/// Flips one bit, which every checksum of the Internet's catches.
pub(crate) fn damage(frame: &mut [u8], random: u64) {
    let bits = frame.len() as u64 * 8;
    if bits > 0 {
        let bit = random % bits;
        frame[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_scene::{UdpConfig, Workload};
    use weir_transport::Flags;
    use weir_units::Bytes;

    use super::*;

    fn flows() -> Vec<FlowSpec> {
        let flow = |transport| FlowSpec {
            name: "flow".into(),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport,
            workload: Workload::File { size: Bytes(1) },
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: weir_scene::Ends::Kernel,
        };
        let reliable = TransportSpec::Reliable(Box::default());
        vec![flow(reliable), flow(TransportSpec::Udp(UdpConfig::default()))]
    }

    fn packet(flow: u32, body: Body, ip_len: u32) -> Packet {
        Packet {
            flow,
            direction: Direction::Forward,
            hop: 0,
            ecn: Ecn::Ect0,
            corrupted: false,
            ip_len,
            stamp: 0,
            sent: Instant::ZERO,
            queued: Duration::ZERO,
            body,
            load: (),
        }
    }

    proptest! {
        #[test]
        fn a_packet_comes_back_as_it_was(
            flow in 0u32..2, seq: u32, number: u64, data in prop::collection::vec(any::<u8>(), 0..3_000),
        ) {
            let len = data.len() as u32;
            let (body, ip_len) = if flow == 0 {
                let seq = SeqNum(seq);
                let segment = Segment { seq, flags: Flags::ACK, payload_len: len, ..Segment::default() };
                (Body::Segment { segment, offset: u64::from(seq.0) }, 40 + len)
            } else {
                (Body::Datagram { number, payload: len }, 28 + len)
            };
            let sent = packet(flow, body, ip_len);
            let mut frame = Vec::new();
            emit(&sent, &data, &mut frame);
            let trailer =
                RelayedPacket { sent: Instant::from_nanos(9), queued: Duration::from_millis(7) };
            push_trailer(trailer, &mut frame);
            let (frame, passage) = split_trailer(&frame).expect("a trailer");
            let got = parse(frame, Direction::Forward, Ecn::Ect0, &flows()).expect("a packet");
            prop_assert_eq!(format!("{got:?}"), format!("{sent:?}"));
            prop_assert_eq!((payload(frame), passage), (&data[..], trailer));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, Direction::Reverse, Ecn::Ce, &flows());
            let _ = payload(&bytes);
        }

        #[test]
        fn damage_is_noticed(data in prop::collection::vec(any::<u8>(), 0..200), random: u64) {
            let segment = Segment { payload_len: data.len() as u32, ..Segment::default() };
            let mut frame = Vec::new();
            emit(&packet(0, Body::Segment { segment, offset: 0 }, 0), &data, &mut frame);
            damage(&mut frame, random);
            prop_assert!(parse(&frame, Direction::Forward, Ecn::Ect0, &flows()).is_none());
        }
    }
}

//! Captures that a test writes packet by packet.

use weir_analyse::{ConnectionRow, Reading, Tables};
use weir_trace::{CapturedPacket, PcapngWriter};

pub(crate) const MSS: u32 = 1_448;

/// Packets of one connection between a client and a server, in milliseconds.
pub(crate) struct Script {
    packets: Vec<(f64, Vec<u8>, u32)>,
}

/// What a packet has beyond its direction.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) syn_options: bool,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

const ACK: u8 = 16;
const SYN: u8 = 2;

impl Script {
    /// No packets yet.
    pub(crate) fn empty() -> Self {
        Self { packets: Vec::new() }
    }

    /// A handshake at 0, `near` and `near + far` milliseconds: the capture is `far` from the client.
    pub(crate) fn connected(near: f64, far: f64) -> Self {
        let mut script = Self::empty();
        let syn = Fields { flags: SYN, window: 65_535, syn_options: true, ..Fields::default() };
        script.client(0.0, &syn);
        script.server(near, &Fields { flags: SYN | ACK, ack: 1, ..syn });
        script.client(near + far, &Fields { seq: 1, ack: 1, ..script.plain() });
        script
    }

    fn plain(&self) -> Fields {
        Fields { flags: ACK, window: 2_000, ..Fields::default() }
    }

    /// The client sends segment `number`, which is full.
    pub(crate) fn data(&mut self, at: f64, number: u32) {
        self.data_of(at, number, MSS);
    }

    /// The same with another length.
    pub(crate) fn data_of(&mut self, at: f64, number: u32, payload: u32) {
        let seq = 1 + number * MSS;
        self.client(at, &Fields { seq, ack: 1, payload, ..self.plain() });
    }

    /// The server acknowledges everything before segment `number`, and the segments `sack`.
    pub(crate) fn ack(&mut self, at: f64, number: u32, sack: &[(u32, u32)]) {
        let place = |number: u32| 1 + number * MSS;
        let sack = sack.iter().map(|(left, right)| (place(*left), place(*right))).collect();
        self.server(at, &Fields { seq: 1, ack: place(number), sack, ..self.plain() });
    }

    /// The same with a window in units of 128 bytes.
    pub(crate) fn ack_with_window(&mut self, at: f64, number: u32, window: u16) {
        self.server(at, &Fields { seq: 1, ack: 1 + number * MSS, window, ..self.plain() });
    }

    pub(crate) fn client(&mut self, at: f64, fields: &Fields) {
        self.push(at, fields, [1, 2], [40_000, 443]);
    }

    pub(crate) fn server(&mut self, at: f64, fields: &Fields) {
        self.push(at, fields, [2, 1], [443, 40_000]);
    }

    fn push(&mut self, at: f64, fields: &Fields, hosts: [u8; 2], ports: [u16; 2]) {
        let mut options = Vec::new();
        if fields.syn_options {
            options.extend([2, 4, (MSS >> 8) as u8, MSS as u8, 4, 2, 1, 1, 1, 3, 3, 7]);
        }
        if !fields.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * fields.sack.len() as u8]);
            for (left, right) in &fields.sack {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        let header = 20 + options.len();
        let len = 20 + header as u32 + fields.payload;
        let mut bytes = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
        bytes.extend([10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
        bytes.extend(ports[0].to_be_bytes());
        bytes.extend(ports[1].to_be_bytes());
        bytes.extend(fields.seq.to_be_bytes());
        bytes.extend(fields.ack.to_be_bytes());
        bytes.extend([(header as u8 / 4) << 4, fields.flags]);
        bytes.extend(fields.window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(options);
        self.packets.push((at, bytes, len));
    }

    /// A datagram of `payload` bytes that begins with `head`, from the client, which has this port, or to it.
    pub(crate) fn datagram(&mut self, at: f64, from: End, port: u16, head: &[u8], payload: u32) {
        let (hosts, ports) = match from {
            End::Client => ([1, 2], [port, 443]),
            End::Server => ([2, 1], [443, port]),
        };
        let len = 28 + payload;
        let mut bytes = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 17, 0, 0];
        bytes.extend([10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
        bytes.extend(ports[0].to_be_bytes());
        bytes.extend(ports[1].to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(head);
        self.packets.push((at, bytes, len));
    }

    /// Gives every packet an identification of its own, and `hops` hops less.
    pub(crate) fn identified(mut self, hops: u8) -> Self {
        for (number, (_, bytes, _)) in self.packets.iter_mut().enumerate() {
            bytes[4..6].copy_from_slice(&(number as u16 + 1).to_be_bytes());
            bytes[8] -= hops;
        }
        self
    }

    /// The packets with their times in milliseconds.
    pub(crate) fn packets(&self) -> &[(f64, Vec<u8>, u32)] {
        &self.packets
    }

    /// The packets with those of another capture, `late` milliseconds later.
    pub(crate) fn and(mut self, other: &Self, late: f64) -> Self {
        let shifted = other.packets.iter().map(|(at, bytes, len)| (at + late, bytes.clone(), *len));
        self.packets.extend(shifted);
        self
    }

    /// The packets that pass `is_kept`, by their time and whether the client sent them.
    pub(crate) fn only(mut self, is_kept: impl Fn(f64, bool) -> bool) -> Self {
        self.packets.retain(|(at, bytes, _)| is_kept(*at, bytes[15] == 1));
        self
    }

    /// The capture as pcapng, in the order of times.
    pub(crate) fn pcapng(&self) -> Vec<u8> {
        let mut packets: Vec<_> = self.packets.iter().collect();
        packets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut file = Vec::new();
        let mut writer =
            PcapngWriter::new(&mut file, "test", &["a".to_owned()], 128).expect("memory");
        for (at, bytes, len) in packets {
            let nanos = 1_000_000_000 + (at * 1e6) as u64;
            let packet =
                CapturedPacket { interface: 0, nanos, bytes, len: *len, is_damaged: false };
            writer.write(&packet).expect("memory");
        }
        file
    }

    /// The tables of the capture.
    pub(crate) fn tables(&self) -> Tables {
        let mut reading = Reading::default();
        let file = self.pcapng();
        let cut = reading
            .read("test", std::io::Cursor::new(&file), || std::ops::ControlFlow::Continue(()));
        assert_eq!(cut.expect("a capture"), None);
        reading.finish()
    }

    /// The row of the connection.
    pub(crate) fn row(&self) -> ConnectionRow {
        let mut tables = self.tables();
        assert_eq!(tables.connections.len(), 1);
        tables.connections.remove(0)
    }
}

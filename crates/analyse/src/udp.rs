//! Flows of UDP, and what the headers of QUIC show of them.
//!
//! QUIC encrypts all but the version in long headers and the spin bit in short ones (RFC 8999, RFC 9000 §17). The client
//! inverts the spin bit and the server copies it, so that in each direction the time between two changes is a round trip (RFC 9000 §17.4,
//! RFC 9312 §3.8.2).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::end::End;
use crate::packet::{Datagram, Packet, QuicHeader};

/// A flow of UDP. The client is the end that sent first.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct UdpRow {
    pub flow: u32,
    pub file: String,
    pub interface: u32,
    pub client: String,
    pub server: String,
    pub protocol: String,
    pub start_s: f64,
    pub duration_s: f64,
    pub client_packets: u64,
    pub client_bytes: u64,
    pub client_mbps: Option<f64>,
    pub server_packets: u64,
    pub server_bytes: u64,
    pub server_mbps: Option<f64>,
    pub datagram_bytes_max: u32,
    pub first_answer_ms: Option<f64>,
    pub spin_rtt_ms_min: Option<f64>,
    pub spin_rtt_ms_p50: Option<f64>,
    pub spin_samples: u64,
}

/// The flows of the file at hand, and the rows of those before.
#[derive(Debug, Default)]
pub(crate) struct UdpFlows {
    open: BTreeMap<Key, Flow>,
    rows: Vec<UdpRow>,
    file: String,
    /// Small flows that have no row, because there were too many.
    dropped: u64,
}

/// Interface and both ends, the smaller one first.
type Key = (u32, End, End);

#[derive(Debug)]
struct Flow {
    interface: u32,
    client: End,
    server: End,
    first: u64,
    last: u64,
    first_answer: Option<u64>,
    largest: u32,
    version: Option<u32>,
    /// From the client, and from the server.
    directions: [DirectionCounts; 2],
}

/// One direction.
#[derive(Debug, Default)]
struct DirectionCounts {
    packets: u64,
    bytes: u64,
    /// Packets with a short header.
    short: u64,
    spin: Option<bool>,
    changes: u64,
    /// When the spin bit changed last.
    changed: Option<u64>,
    /// Nanoseconds between changes, the first [`MOST_SAMPLES`].
    rounds: Vec<u64>,
}

impl UdpFlows {
    /// Begins with the packets of a file of this name.
    pub(crate) fn begin_file(&mut self, name: &str) {
        self.finish();
        name.clone_into(&mut self.file);
    }

    /// Processes a datagram.
    pub(crate) fn handle(&mut self, packet: &Packet, datagram: Datagram) {
        let (source, destination) = (packet.source, packet.destination);
        let key = (packet.interface, source.min(destination), source.max(destination));
        if self.open.len() >= 2 * MOST_FLOWS && !self.open.contains_key(&key) {
            self.keep_largest_open();
        }
        let flow = self.open.entry(key).or_insert_with(|| Flow::new(packet));
        flow.handle(packet, datagram);
    }

    /// The rows, the flow with the most bytes first; and how many flows have none.
    pub(crate) fn into_rows(mut self) -> (Vec<UdpRow>, u64) {
        self.finish();
        for (number, row) in self.rows.iter_mut().enumerate() {
            row.flow = number as u32;
        }
        (self.rows, self.dropped)
    }

    fn finish(&mut self) {
        let over = std::mem::take(&mut self.open);
        self.rows.extend(over.into_values().map(|flow| flow.row(&self.file)));
        self.rows.sort_by_key(|row| Reverse(row.client_bytes + row.server_bytes));
        self.dropped += self.rows.len().saturating_sub(MOST_FLOWS) as u64;
        self.rows.truncate(MOST_FLOWS);
    }

    fn keep_largest_open(&mut self) {
        let mut flows: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        flows.sort_by_key(|(_, flow)| Reverse(flow.bytes()));
        self.dropped += flows.len().saturating_sub(MOST_FLOWS) as u64;
        flows.truncate(MOST_FLOWS);
        self.open.extend(flows);
    }
}

impl Flow {
    fn new(packet: &Packet) -> Self {
        Self {
            interface: packet.interface,
            client: packet.source,
            server: packet.destination,
            first: packet.nanos,
            last: packet.nanos,
            first_answer: None,
            largest: 0,
            version: None,
            directions: Default::default(),
        }
    }

    fn handle(&mut self, packet: &Packet, datagram: Datagram) {
        let is_answer = packet.source != self.client;
        self.last = self.last.max(packet.nanos);
        self.largest = self.largest.max(datagram.payload);
        if is_answer {
            self.first_answer.get_or_insert(packet.nanos);
        }
        let direction = &mut self.directions[usize::from(is_answer)];
        direction.packets += 1;
        direction.bytes += u64::from(datagram.payload);
        match datagram.quic {
            Some(QuicHeader::Long { version }) if is_version(version) => {
                self.version = Some(version);
            }
            Some(QuicHeader::Short { spin }) if self.version.is_some() => {
                direction.see_spin(packet.nanos, spin);
            }
            _ => {}
        }
    }

    fn bytes(&self) -> u64 {
        self.directions.iter().map(|direction| direction.bytes).sum()
    }

    fn row(&self, file: &str) -> UdpRow {
        let [client, server] = &self.directions;
        let nanos = self.last.saturating_sub(self.first);
        // More packets show the changes of the bit with less delay.
        let fast = if client.short > server.short { client } else { server };
        let rounds = fast.rounds();
        let millis = |nanos: u64| nanos as f64 / 1e6;
        UdpRow {
            flow: 0,
            file: file.to_owned(),
            interface: self.interface,
            client: self.client.to_string(),
            server: self.server.to_string(),
            protocol: self.version.map_or_else(|| "UDP".to_owned(), version_name),
            start_s: self.first as f64 / 1e9,
            duration_s: nanos as f64 / 1e9,
            client_packets: client.packets,
            client_bytes: client.bytes,
            client_mbps: mbps(client.bytes, nanos),
            server_packets: server.packets,
            server_bytes: server.bytes,
            server_mbps: mbps(server.bytes, nanos),
            datagram_bytes_max: self.largest,
            first_answer_ms: self.first_answer.map(|at| millis(at.saturating_sub(self.first))),
            spin_rtt_ms_min: rounds.first().copied().map(millis),
            spin_rtt_ms_p50: rounds.get(rounds.len() / 2).copied().map(millis),
            spin_samples: rounds.len() as u64,
        }
    }
}

impl DirectionCounts {
    fn see_spin(&mut self, nanos: u64, spin: bool) {
        self.short += 1;
        if self.spin.replace(spin).is_none_or(|before| before == spin) {
            return;
        }
        self.changes += 1;
        if let Some(before) = self.changed.replace(nanos)
            && self.rounds.len() < MOST_SAMPLES
        {
            self.rounds.push(nanos.saturating_sub(before));
        }
    }

    /// Round trips by the spin bit, the shortest first; none if the bit is constant or random.
    ///
    /// A packet that overtakes a change makes two changes too many, close together. So a time of less than a tenth of the
    /// median is not counted.
    fn rounds(&self) -> Vec<u64> {
        // An end that does not take part may set the bit at random (RFC 9000 §17.4): it changes with every second packet.
        if self.changes * MOST_CHANGES > self.short {
            return Vec::new();
        }
        let mut rounds = self.rounds.clone();
        rounds.sort_unstable();
        let least = rounds.get(rounds.len() / 2).map_or(0, |median| median / 10);
        rounds.retain(|round| *round >= least);
        rounds
    }
}

/// Bits per nanosecond times 1,000: Mbit/s.
fn mbps(bytes: u64, nanos: u64) -> Option<f64> {
    (nanos > 0).then(|| bytes as f64 * 8e3 / nanos as f64)
}

/// Versions in use: 1, 2 (RFC 9369) and drafts of version 1.
fn is_version(version: u32) -> bool {
    matches!(version, VERSION_1 | VERSION_2)
        || version >> 8 == DRAFTS
        || version >> 4 == OF_MVFST
        || google(version).is_some()
}

/// The name of one of Google's versions, which are four letters: `Q043`, `T051`.
fn google(version: u32) -> Option<String> {
    let letters = version.to_be_bytes();
    let is_one = matches!(letters[0], b'Q' | b'T') && letters[1..].iter().all(u8::is_ascii_digit);
    is_one.then(|| letters.iter().map(|letter| char::from(*letter)).collect())
}

fn version_name(version: u32) -> String {
    match version {
        VERSION_1 => "QUIC 1".to_owned(),
        VERSION_2 => "QUIC 2".to_owned(),
        _ if version >> 4 == OF_MVFST => format!("QUIC mvfst {}", version & 0xf),
        _ if google(version).is_some() => {
            format!("QUIC Google {}", google(version).unwrap_or_default())
        }
        draft => format!("QUIC draft {}", draft & 0xff),
    }
}

const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;
const DRAFTS: u32 = 0xff_0000;
/// Versions of mvfst: 0xfaceb000 and following.
const OF_MVFST: u32 = 0xfac_eb00;
/// Flows with rows.
const MOST_FLOWS: usize = 2_000;
/// Round trips of each direction: the first, 4 KiB.
const MOST_SAMPLES: usize = 512;
/// With a change in every third packet or more, the bit tells no round trips.
const MOST_CHANGES: u64 = 3;

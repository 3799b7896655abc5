//! From capture files to rows: the one entry point.

use std::io::{Read, Seek};
use std::ops::ControlFlow;

use crate::decompress;
use crate::error::{Cut, ReadError};
use crate::file::CaptureReader;
use crate::fragments::Fragments;
use crate::packet::{self, Content, Decoded};
use crate::qlog;
use crate::rows::{ConnectionRow, PacketRow, PointRow, SliceRow};
use crate::table::{Finished, Table};
use crate::udp::{UdpFlows, UdpRow};
use crate::unread::{Unread, UnreadCounts};

/// Reads captures, one after the other.
#[derive(Debug)]
pub struct Reading {
    table: Table,
    udp: UdpFlows,
    counts: CaptureCounts,
}

/// What captures and logs contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Packets.
    pub packets: u64,
    /// Segments of TCP.
    pub tcp_packets: u64,
    /// Datagrams of UDP.
    pub udp_packets: u64,
    /// Bytes of data in them.
    pub udp_bytes: u64,
    /// Flows of UDP beyond the largest number of rows.
    pub dropped_udp_flows: u64,
    /// Packets of other protocols, fragments, and packets of which too little was kept.
    pub other_packets: u64,
    /// Fragments of IP that are parts of packets; these count where they are complete.
    pub fragments: u64,
    /// What these and further packets and blocks are that are not read.
    pub unread: UnreadCounts,
    /// Copies of packets, which count once.
    pub copies: u64,
    /// How often the clock of a connection was set back, or by more than a year.
    pub clock_steps: u64,
    /// Packets of link types that are not read.
    pub unknown_link_packets: u64,
    /// Packets that the capture marks as damaged; they are not analysed.
    pub damaged_packets: u64,
    /// Packets that the capturing system dropped.
    pub dropped_packets: u64,
    /// Events of logs.
    pub log_events: u64,
    /// Connections beyond the largest number of rows.
    pub dropped_connections: u64,
    /// Connections that were ended early, because too many were open.
    pub evicted_connections: u64,
}

/// The rows of all captures.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The connections, the one with the most data first.
    pub connections: Vec<ConnectionRow>,
    /// The time of the largest ones.
    pub slices: Vec<SliceRow>,
    /// Their time-sequence diagrams.
    pub points: Vec<PointRow>,
    /// Their data packets, if they were kept.
    pub packets: Vec<PacketRow>,
    /// The flows of UDP, the one with the most bytes first.
    pub udp_flows: Vec<UdpRow>,
    /// What the captures contain.
    pub counts: CaptureCounts,
}

impl Default for Reading {
    fn default() -> Self {
        Self::with_limit(MOST_OPEN)
    }
}

impl Reading {
    /// Nothing read yet; up to `most_open` connections are followed at a time.
    pub fn with_limit(most_open: usize) -> Self {
        Self {
            table: Table::new(most_open),
            udp: UdpFlows::default(),
            counts: CaptureCounts::default(),
        }
    }

    /// The same that returns the first 65,536 data packets of each of the largest connections, too.
    pub fn keeping_packets(mut self) -> Self {
        self.table.keep_packets();
        self
    }

    /// Reads a capture or a qlog that is called `name`. `watch` is called every few thousand packets or events, and may end
    /// it. Returns why it was not read to its end, if so.
    ///
    /// # Errors
    /// If it is neither.
    pub fn read(
        &mut self,
        name: &str,
        mut source: impl Read + Seek,
        mut watch: impl FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Cut>, ReadError> {
        let opened = decompress::open(&mut source)?;
        if qlog::is_log(&opened.magic) {
            drop(opened);
            return self.read_log(name, source, &mut watch);
        }
        let mut reader = CaptureReader::of(opened)?;
        let mut fragments = Fragments::default();
        self.table.begin_file(name);
        self.udp.begin_file(name);
        let counts = &mut self.counts;
        while let Some(record) = reader.next_record() {
            counts.packets += 1;
            if counts.packets.is_multiple_of(WATCH_EVERY) && watch().is_break() {
                break;
            }
            if record.is_damaged {
                counts.damaged_packets += 1;
                continue;
            }
            let is_timed = record.is_timed;
            let decoded = if is_timed { packet::decode(&record) } else { Err(Unread::Untimed) };
            let packet = match decoded {
                Ok(Decoded::Packet(packet)) => Some(packet),
                Ok(Decoded::Fragment(part, first)) => fragments.handle(part, first),
                Err(what) => {
                    counts.unread.add(what);
                    let is_link = matches!(what, Unread::LinkType(_));
                    counts.unknown_link_packets += u64::from(is_link);
                    counts.other_packets += u64::from(!is_link);
                    continue;
                }
            };
            match packet.as_ref().map(|packet| (packet, &packet.content)) {
                // A part of a packet that counts with its last part.
                None => counts.fragments += 1,
                Some((packet, Content::Tcp(segment))) => {
                    counts.tcp_packets += 1;
                    self.table.handle(packet, segment);
                }
                Some((packet, Content::Udp(datagram))) => {
                    counts.udp_packets += 1;
                    counts.udp_bytes += u64::from(datagram.payload);
                    self.udp.handle(packet, *datagram);
                }
            }
        }
        counts.dropped_packets += reader.dropped();
        counts.unread.add_all(reader.unread());
        for _ in 0..fragments.incomplete() {
            counts.unread.add(Unread::Fragment);
        }
        Ok(reader.cut().cloned())
    }

    fn read_log(
        &mut self,
        name: &str,
        mut source: impl Read + Seek,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Cut>, ReadError> {
        let log = qlog::read(name, &mut source, watch)?;
        self.counts.log_events += log.events;
        self.counts.dropped_connections += log.dropped;
        log.rows.into_iter().for_each(|rows| self.table.add(rows));
        Ok(log.cut)
    }

    /// The rows of everything that was read.
    pub fn finish(self) -> Tables {
        let mut tables = Tables { counts: self.counts, ..Tables::default() };
        let Finished { rows, dropped, evicted, copies, clock_steps } = self.table.into_rows();
        let counts = &mut tables.counts;
        counts.dropped_connections += dropped;
        counts.evicted_connections = evicted;
        (counts.copies, counts.clock_steps) = (copies, clock_steps);
        (tables.udp_flows, tables.counts.dropped_udp_flows) = self.udp.into_rows();
        for one in rows {
            tables.connections.push(one.connection);
            tables.slices.extend(one.slices);
            tables.points.extend(one.points);
            tables.packets.extend(one.packets);
        }
        tables
    }
}

/// Connections that are followed at a time.
const MOST_OPEN: usize = 1_000;
const WATCH_EVERY: u64 = 4_096;

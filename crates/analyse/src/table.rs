//! The connections of captures, in bounded memory.

use std::collections::BTreeMap;

use crate::connection::Connection;
use crate::end::End;
use crate::packet::{Packet, Segment};
use crate::rows::{Packets, Rows};

/// Connections that are open, and the rows of those that are over.
#[derive(Debug)]
pub(crate) struct Table {
    open: BTreeMap<Key, Box<Connection>>,
    rows: Vec<Rows>,
    file: String,
    /// Connections whose rows were dropped, because there were too many.
    dropped: u64,
    /// Connections that were ended early, because too many were open.
    evicted: u64,
    most_open: usize,
    packets: Packets,
    /// Bytes that the open connections take, about.
    memory: usize,
    /// Bytes that the evidence of finished connections takes, about.
    evidence: usize,
    most_memory: usize,
    /// Copies of packets, and steps of clocks.
    copies: u64,
    clock_steps: u64,
}

/// The rows of all connections, and what there was besides.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The connection with the most data first.
    pub(crate) rows: Vec<Rows>,
    pub(crate) dropped: u64,
    pub(crate) evicted: u64,
    pub(crate) copies: u64,
    pub(crate) clock_steps: u64,
}

/// Interface and both ends, the smaller one first.
type Key = (u32, End, End);

impl Table {
    /// No connections, of which up to `most_open` are open at a time.
    pub(crate) fn new(most_open: usize) -> Self {
        Self {
            open: BTreeMap::new(),
            rows: Vec::new(),
            file: String::new(),
            dropped: 0,
            evicted: 0,
            most_open: most_open.max(1),
            packets: Packets::Dropped,
            memory: 0,
            evidence: 0,
            most_memory: MOST_MEMORY,
            copies: 0,
            clock_steps: 0,
        }
    }

    /// Gives the rows of the largest connections those of their packets.
    pub(crate) fn keep_packets(&mut self) {
        self.packets = Packets::Kept;
    }

    /// Begins with the packets of a file of this name: connections do not go on from file to file.
    pub(crate) fn begin_file(&mut self, name: &str) {
        self.finish();
        name.clone_into(&mut self.file);
    }

    /// Processes a segment.
    pub(crate) fn handle(&mut self, packet: &Packet, segment: &Segment) {
        let (source, destination) = (packet.source, packet.destination);
        let key = (packet.interface, source.min(destination), source.max(destination));
        let connection = match self.open.get_mut(&key) {
            Some(connection) if !connection.is_over_before(segment) => connection,
            _ => self.begin(key, packet, segment),
        };
        connection.handle(packet.nanos, packet.source, packet.id, segment);
        let after = connection.memory();
        let before = std::mem::replace(&mut connection.counted, after);
        self.memory = self.memory + after - before;
        if self.memory + self.evidence > self.most_memory {
            self.keep_largest(MOST_ROWS, MOST_DETAILED);
        }
        if self.memory + self.evidence > self.most_memory {
            self.evict();
        }
    }

    /// Begins a connection. What was open between the same ends is over.
    fn begin(&mut self, key: Key, packet: &Packet, segment: &Segment) -> &mut Connection {
        if let Some(over) = self.open.remove(&key) {
            self.end(over);
        }
        if self.open.len() >= self.most_open {
            self.evict();
        }
        let (time, interface) = (packet.nanos, packet.interface);
        let mut new = Connection::new(time, interface, packet.source, packet.destination, segment);
        new.counted = new.memory();
        self.memory += new.counted;
        self.open.entry(key).or_insert_with(|| Box::new(new))
    }

    /// Ends all connections.
    pub(crate) fn finish(&mut self) {
        for (_, connection) in std::mem::take(&mut self.open) {
            self.end(connection);
        }
    }

    /// Ends all connections and returns what there is of them.
    pub(crate) fn into_rows(mut self) -> Finished {
        self.finish();
        self.keep_largest(MOST_ROWS, MOST_DETAILED);
        for (number, rows) in self.rows.iter_mut().enumerate() {
            rows.number(number as u32);
            rows.identify();
        }
        let Self { rows, dropped, evicted, copies, clock_steps, .. } = self;
        Finished { rows, dropped, evicted, copies, clock_steps }
    }

    fn end(&mut self, mut connection: Box<Connection>) {
        self.memory -= connection.counted;
        connection.finish();
        self.copies += connection.duplicates;
        self.clock_steps += connection.clock.steps();
        self.add(Rows::of(&mut connection, &self.file, self.packets));
    }

    /// Adds the rows of a connection that is over.
    pub(crate) fn add(&mut self, rows: Rows) {
        self.evidence += rows.evidence_memory();
        self.rows.push(rows);
        if self.rows.len() >= 2 * MOST_ROWS || self.rows.len().is_multiple_of(2 * MOST_DETAILED) {
            self.keep_largest(MOST_ROWS, MOST_DETAILED);
        }
    }

    /// Ends the tenth of the connections that have been idle longest.
    fn evict(&mut self) {
        let mut idle: Vec<(u64, Key)> =
            self.open.iter().map(|(key, connection)| (connection.last, *key)).collect();
        idle.sort_unstable();
        idle.truncate((idle.len() / 10).max(1));
        self.evicted += idle.len() as u64;
        for (_, key) in idle {
            if let Some(connection) = self.open.remove(&key) {
                self.end(connection);
            }
        }
    }

    /// Keeps the rows of the connections with the most data, and slices and points of fewer.
    fn keep_largest(&mut self, most: usize, most_detailed: usize) {
        self.rows.sort_by_key(|rows| {
            let row = &rows.connection;
            std::cmp::Reverse((row.sent_bytes, row.packets))
        });
        self.dropped += self.rows.len().saturating_sub(most) as u64;
        self.rows.truncate(most);
        for rows in self.rows.iter_mut().skip(most_detailed) {
            rows.slices = Vec::new();
            rows.points = Vec::new();
            rows.packets = Vec::new();
            rows.evidence = None;
        }
        self.evidence = self.rows.iter().map(Rows::evidence_memory).sum();
    }
}

/// Bytes of memory for open connections and for the evidence of finished ones.
const MOST_MEMORY: usize = 256 << 20;
/// Connections with a row.
pub(crate) const MOST_ROWS: usize = 10_000;
/// Connections with slices and points.
pub(crate) const MOST_DETAILED: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{ACK, Content};

    /// A file with one connection, of which the client sends `count` segments.
    fn take(table: &mut Table, count: u32) {
        table.begin_file("test");
        for number in 0..count {
            let segment =
                Segment { seq: number * 1_000, flags: ACK, payload: 1_000, ..Segment::default() };
            let packet = Packet {
                nanos: u64::from(number) * 1_000_000,
                interface: 0,
                source: End::of_ipv4(0x0a00_0001).with_port(1_000),
                destination: End::of_ipv4(0x0a00_0002).with_port(443),
                id: 0,
                content: Content::Tcp(segment),
            };
            table.handle(&packet, &segment);
        }
    }

    fn kept(table: &Table) -> usize {
        table.rows.iter().filter(|rows| rows.evidence.is_some()).count()
    }

    #[test]
    fn evidence_of_finished_connections_counts() {
        const SEGMENTS: u32 = 1_000;
        let mut table = Table::new(10);
        take(&mut table, SEGMENTS);
        let open = table.memory;
        table.finish();
        let one = table.evidence;
        assert!(one >= 32 * SEGMENTS as usize, "{one}");
        assert_eq!(table.memory, 0);

        let mut table = Table::new(10);
        table.most_memory = open + (MOST_DETAILED + 1) * one;
        for _ in 1..2 * MOST_DETAILED {
            take(&mut table, SEGMENTS);
            assert!(table.memory + table.evidence <= table.most_memory);
            assert_eq!(table.evidence, kept(&table) * one);
        }
        assert!(kept(&table) >= MOST_DETAILED, "{}", kept(&table));
        assert_eq!(table.evicted, 0);
    }
}

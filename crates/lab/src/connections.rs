//! Connections that are listed one by one: between which nodes, when, how large.
//!
//! A canonical scenario holds them as lines, `FROM TO START SIZE`, so that a run needs no file. Their names
//! are kept once, since a list of a million connections has a few hundred hosts.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_scene::{Forwarding, HostPair, ListedConnection, Workload as Model};
use weir_units::{Bytes, Duration};

use crate::error::{Checked, Problem, require};
use crate::keys::form;

/// Connections in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionList {
    /// The nodes' names, each once.
    names: Vec<String>,
    rows: Vec<Row>,
}

/// A connection between nodes, which are places in the list of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    from: u32,
    to: u32,
    start: Duration,
    size: Bytes,
}

/// A list that grows.
#[derive(Debug, Default)]
pub(crate) struct ConnectionListBuilder {
    list: ConnectionList,
    known: BTreeMap<String, u32>,
}

impl ConnectionListBuilder {
    /// Adds a connection, or says in one line what is not allowed.
    pub(crate) fn push(
        &mut self,
        from: &str,
        to: &str,
        start: Duration,
        size: Bytes,
    ) -> Result<(), String> {
        if from == to {
            return Err("a connection has two different ends".to_owned());
        }
        if size == Bytes::ZERO || size > MAX_SIZE {
            return Err(format!("{size} is not allowed; a connection has 1b to {MAX_SIZE}"));
        }
        if start > LATEST_START {
            return Err(format!("{start} is not allowed; the latest start is {LATEST_START}"));
        }
        if self.list.rows.len() >= MAX_CONNECTIONS {
            return Err(format!("there are more than {MAX_CONNECTIONS} connections"));
        }
        let [from, to] = [from, to].map(|name| self.name(name));
        self.list.rows.push(Row { from, to, start, size });
        Ok(())
    }

    /// Adds the connection of a line, `FROM TO START SIZE`.
    pub(crate) fn push_line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().take(5).collect();
        let [from, to, start, size] = words[..] else {
            return Err("a connection has FROM TO START SIZE, as in 'h0 h3 10us 2mb'".to_owned());
        };
        let start = start.parse().map_err(|error| format!("{error}"))?;
        let size = size.parse().map_err(|error| format!("{error}"))?;
        self.push(from, to, start, size)
    }

    pub(crate) fn len(&self) -> usize {
        self.list.rows.len()
    }

    pub(crate) fn finish(self) -> ConnectionList {
        self.list
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let next = self.list.names.len() as u32;
        self.list.names.push(name.to_owned());
        self.known.insert(name.to_owned(), next);
        next
    }
}

impl ConnectionList {
    /// The names of all nodes where a connection begins or ends, each once.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The names of the ends of the first connection.
    pub(crate) fn first(&self) -> Option<[&str; 2]> {
        let row = self.rows.first()?;
        Some([row.from, row.to].map(|name| self.names[name as usize].as_str()))
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> impl ExactSizeIterator<Item = String> + '_ {
        self.rows.iter().map(|row| {
            let [from, to] = [row.from, row.to].map(|name| &self.names[name as usize]);
            format!("{from} {to} {} {}", row.start, row.size)
        })
    }

    /// What a list demands of the network, whose nodes are `nodes`, and of the end of the run.
    pub(crate) fn check(&self, key: &str, nodes: &[String], end: Duration) -> Checked {
        let Some(earliest) = self.rows.iter().map(|row| row.start).min() else {
            let message = "there is none; name a file of connections, or list them";
            return Err(Problem::new(key, message));
        };
        let known: BTreeMap<&str, ()> = nodes.iter().map(|node| (node.as_str(), ())).collect();
        for name in &self.names {
            let (first, last) = (nodes.first(), nodes.last());
            let [first, last] = [first, last].map(|node| node.map_or("", String::as_str));
            let allowed = format!("the network has {} nodes, {first} to {last}", nodes.len());
            require(known.contains_key(name.as_str()), key.into(), format!("'{name}'"), allowed)?;
        }
        let allowed = format!("the first one starts before the end, measure.duration = {end}");
        require(earliest < end, key.into(), earliest, allowed)?;
        let mut starts: Vec<Duration> = self.rows.iter().map(|row| row.start).collect();
        starts.sort_unstable();
        let crowded = starts.windows(MAX_AT_ONCE + 1).find(|some| some.first() == some.last());
        let start = crowded.map_or(Duration::ZERO, |some| some[0]);
        let allowed = format!("more than {MAX_AT_ONCE} connections start then");
        require(crowded.is_none(), key.into(), start, allowed)
    }

    /// What a world makes of it, in the order of starts. Every name is a node of `tables` and a destination.
    pub(crate) fn model(&self, key: &str, tables: &Forwarding) -> Result<Model, Problem> {
        let known: BTreeMap<&str, u32> =
            tables.names().iter().map(String::as_str).zip(0..).collect();
        let node = |name: u32| known.get(self.names[name as usize].as_str()).copied();
        let mut listed = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let ways = node(row.from).zip(node(row.to)).and_then(|(from, to)| {
                tables.hops(from, to).and(tables.hops(to, from)).map(|_| HostPair { from, to })
            });
            let ends = ways.ok_or_else(|| {
                let [from, to] = [row.from, row.to].map(|name| &self.names[name as usize]);
                Problem::new(key, format!("no way leads from '{from}' to '{to}' and back"))
            })?;
            listed.push(ListedConnection { start: row.start, size: row.size, ends });
        }
        listed.sort_by_key(|connection| connection.start);
        Ok(Model::Listed(listed.into()))
    }
}

impl Serialize for ConnectionList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.lines())
    }
}

impl<'de> Deserialize<'de> for ConnectionList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LinesVisitor)
    }
}

struct LinesVisitor;

impl<'de> Visitor<'de> for LinesVisitor {
    type Value = ConnectionList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file of connections, or a list of 'FROM TO START SIZE'")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<ConnectionList, A::Error> {
        let mut builder = ConnectionListBuilder::default();
        while let Some(line) = lines.next_element::<String>()? {
            builder.push_line(&line).map_err(|message| {
                A::Error::custom(format!("connection {}: {message}", builder.len() + 1))
            })?;
        }
        Ok(builder.finish())
    }
}

form! {
    ConnectionList => "file, or list of `FROM TO START SIZE`",
}

/// Connections of a list; more would fill the memory with what describes them.
pub(crate) const MAX_CONNECTIONS: usize = 1_000_000;
/// Each has its state from its start on.
const MAX_AT_ONCE: usize = 100_000;
/// As the longest message of an application.
const MAX_SIZE: Bytes = Bytes(1 << 50);
/// As the longest run: 30 days.
const LATEST_START: Duration = Duration::from_secs(30 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<ConnectionList, String> {
        serde_json::from_value(lines.into()).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        let list = read(&["h0 h3 10us 2mb", " b\ta  0s 1b", "h3 h0 123456789ns 1500b"]).unwrap();
        assert_eq!(list.names(), ["h0", "h3", "b", "a"]);
        assert_eq!(list.first(), Some(["h0", "h3"]));
        let lines: Vec<String> = list.lines().collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(read(&lines).as_ref(), Ok(&list));
        let written = serde_json::to_value(&list).unwrap();
        assert_eq!(written, serde_json::json!(lines));
    }

    #[test]
    fn what_is_no_connection_is_refused_by_its_number() {
        let refused = |line| read(&["a b 0s 1mb", line]).unwrap_err();
        for (line, says) in [
            ("a b 0s", "connection 2: a connection has FROM TO START SIZE"),
            ("a b 0s 1mb 5", "connection 2: a connection has FROM TO START SIZE"),
            ("a a 0s 1mb", "connection 2: a connection has two different ends"),
            ("a b 0s 0b", "connection 2: 0b is not allowed"),
            ("a b 5 1mb", "connection 2: '5' is not a time"),
            ("a b 0s 5", "connection 2: '5' is not a size"),
            ("a b 721h 1mb", "connection 2: 2595600s is not allowed; the latest start is"),
        ] {
            assert!(refused(line).starts_with(says), "{line}: {}", refused(line));
        }
    }

    #[test]
    fn too_many_at_one_instant_are_refused() {
        let mut builder = ConnectionListBuilder::default();
        for _ in 0..=MAX_AT_ONCE {
            builder.push("a", "b", Duration::from_micros(7), Bytes(1)).unwrap();
        }
        let nodes = ["a", "b"].map(str::to_owned);
        let refused = builder.finish().check("list", &nodes, Duration::from_secs(1)).unwrap_err();
        assert!(refused.message.starts_with("7us is not allowed; more than 100000"), "{refused}");
    }
}

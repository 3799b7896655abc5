//! Connection matrices of htsim (Broadcom/csg-htsim, `connection_matrix.cpp`): `Nodes n`, `Connections m`,
//! then a line for each connection, `FROM->TO [id I] start T size S`. Hosts are counted from 0, `T` is in
//! picoseconds, `S` in bytes. What follows `#` at the start of a line is a comment.
//!
//! Not read: connections that start when others end (`trigger` and other triggers), priorities, failures of links,
//! and connections without a size, which never end there.

use weir_units::{Bytes, Duration};

use crate::connections::{ConnectionList, ConnectionListBuilder, MAX_CONNECTIONS};
use crate::hpcc::refused;

/// Whether a file that begins with this word is a connection matrix.
pub(crate) fn begins(word: &str) -> bool {
    COUNTS.contains(&word)
}

/// The connections of a matrix; host `n` is named `hn`. In one line, with its number, what is wrong.
pub(crate) fn connections(text: &str) -> Result<ConnectionList, String> {
    let mut builder = ConnectionListBuilder::default();
    let mut header = Header::default();
    for (number, line) in (1..).zip(text.lines()) {
        let at = |message: String| format!("line {number}: {message}");
        let words: Vec<&str> = line.split_whitespace().take(MOST_WORDS).collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [first, ref rest @ ..] if begins(first) => header.read(first, rest).map_err(at)?,
            [first, ref rest @ ..] => {
                let ends = first.split_once("->").ok_or_else(|| at(unknown(first)))?;
                connection(ends, rest, &header, &mut builder).map_err(at)?;
            }
        }
    }
    let declared = header.connections.ok_or("there is no line `Connections m`")?;
    if declared != builder.len() as u64 {
        let found = builder.len();
        return Err(format!("`Connections` says {declared}, and the number of them is {found}"));
    }
    Ok(builder.finish())
}

/// What stands above the connections.
#[derive(Default)]
struct Header {
    nodes: Option<u64>,
    connections: Option<u64>,
}

impl Header {
    fn read(&mut self, key: &str, rest: &[&str]) -> Result<(), String> {
        let number = match rest {
            [number] => whole(key, number)?,
            _ => return Err(format!("`{key}` has a number, as in '{key} 16'")),
        };
        let (place, most) = match key {
            "Nodes" => (&mut self.nodes, u64::from(u32::MAX)),
            "Connections" => (&mut self.connections, MAX_CONNECTIONS as u64),
            _ if number == 0 => return Ok(()),
            _ => return Err(unsupported(key)),
        };
        if place.is_some() {
            return Err(format!("`{key}` is given twice"));
        }
        if number > most {
            return Err(format!("{key} {number} is not allowed; at most {most}"));
        }
        *place = Some(number);
        Ok(())
    }
}

/// Adds a connection; `rest` is what stands behind `FROM->TO`.
fn connection(
    (from, to): (&str, &str),
    rest: &[&str],
    header: &Header,
    builder: &mut ConnectionListBuilder,
) -> Result<(), String> {
    let nodes = header.nodes.ok_or("`Nodes n` stands before the connections")?;
    for host in [whole("host", from)?, whole("host", to)?] {
        if host >= nodes {
            return Err(format!(
                "host {host} is not allowed; with Nodes {nodes}, the last is {}",
                nodes.saturating_sub(1)
            ));
        }
    }
    let (mut start, mut size) = (None, None);
    let mut rest = rest.iter();
    while let Some(key) = rest.next() {
        let mut value = || rest.next().ok_or("a key has no value").copied();
        match *key {
            "id" => drop(whole("id", value()?)?),
            "start" if start.is_none() => start = Some(picoseconds(value()?)?),
            "size" if size.is_none() => size = Some(whole("size", value()?)?),
            "start" | "size" => return Err(format!("`{key}` is given twice")),
            _ => return Err(unsupported(key)),
        }
    }
    let start = start.ok_or("there is no `start`, a time in picoseconds")?;
    let size = size.filter(|size| *size > 0);
    let size =
        size.ok_or("there is no `size` above 0; connections without end are not supported")?;
    builder.push(&format!("h{from}"), &format!("h{to}"), start, Bytes(size))
}

fn whole(what: &str, text: &str) -> Result<u64, String> {
    // `+1` and `007` would name a host in two ways.
    let plain = text == "0" || (!text.starts_with('0') && text.bytes().all(|c| c.is_ascii_digit()));
    let number = text.parse().ok().filter(|_| plain);
    let allowed = format!("a whole number from 0 to {}", u64::MAX);
    number.ok_or_else(|| refused(what, text, &allowed))
}

/// A time in picoseconds, rounded to nanoseconds. htsim reads a floating-point number.
fn picoseconds(text: &str) -> Result<Duration, String> {
    if let Ok(whole) = text.parse::<u64>() {
        return Ok(Duration::from_nanos(whole / 1_000 + u64::from(whole % 1_000 >= 500)));
    }
    let number = text.parse::<f64>().ok().filter(|number| (0.0..MOST_PICOSECONDS).contains(number));
    let nanos = number.map(|number| (number / 1e3).round() as u64);
    let nanos = nanos.map(Duration::from_nanos);
    nanos.ok_or_else(|| refused("start", text, "a time in picoseconds"))
}

fn unsupported(key: &str) -> String {
    let why = match key {
        "trigger" | "send_done_trigger" | "recv_done_trigger" | "addon" | "Triggers" => {
            "connections have a `start`, and none waits for the end of another"
        }
        "prio" => "there is one priority for all packets",
        "failure" | "Failures" => "set `rate_steps` of a [[topology.port]] for a link that fails",
        _ => return unknown(key),
    };
    format!("`{key}` is not supported; {why}")
}

/// A word that is none of a matrix. No error repeats what may be of another kind of file.
fn unknown(word: &str) -> String {
    match word {
        "trigger" | "failure" => unsupported(word),
        _ => "a connection is FROM->TO with id, start and size, as in '0->13 id 1 start 0 size 2000000'"
            .to_owned(),
    }
}

const COUNTS: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];
/// More than any connection has: FROM->TO, and a pair for each key.
const MOST_WORDS: usize = 32;
/// What a `u64` holds of nanoseconds.
const MOST_PICOSECONDS: f64 = 1e22;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        connections(text).unwrap_or_else(|error| panic!("{error}")).lines().collect()
    }

    #[test]
    fn hosts_are_counted_from_0_and_starts_are_in_picoseconds() {
        let text = "# a comment\nNodes 16\nConnections 4\n\n0->13 start 0 size 2000000\n\
                    15->0 id 2 start 1500000 size 1\n3->4 size 20 id 7 start 1499\n4->3 start 2.5e9 size 7\n";
        let expected = ["h0 h13 0s 2mb", "h15 h0 1.5us 1b", "h3 h4 1ns 20b", "h4 h3 2.5ms 7b"];
        assert_eq!(lines(text), expected);
        assert_eq!(
            lines("Nodes 2\r\nConnections 1\r\nTriggers 0\r\n0->1 start 0 size 5\r\n").len(),
            1
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let refused = |text: &str| connections(text).unwrap_err();
        let with = |line: &str| refused(&format!("Nodes 4\nConnections 1\n{line}\n"));
        for (line, says) in [
            ("0->4 start 0 size 1", "line 3: host 4 is not allowed; with Nodes 4, the last is 3"),
            (
                "0->-1 start 0 size 1",
                "line 3: host -1 is not allowed; it is a whole number from 0 to",
            ),
            ("00->1 start 0 size 1", "line 3: host 00 is not allowed; it is a whole number"),
            ("1->1 start 0 size 1", "line 3: a connection has two different ends"),
            ("0->1 size 1", "line 3: there is no `start`"),
            ("0->1 start 0", "line 3: there is no `size` above 0"),
            ("0->1 start 0 size 0", "line 3: there is no `size` above 0"),
            (
                "0->1 start -5 size 1",
                "line 3: start -5 is not allowed; it is a time in picoseconds",
            ),
            (
                "0->1 start nan size 1",
                "line 3: the start is not allowed; it is a time in picoseconds",
            ),
            ("0->1 start 1e99 size 1", "line 3: start 1e99 is not allowed"),
            ("0->1 start 0 size 1 size 2", "line 3: `size` is given twice"),
            ("0->1 start 0 size 99999999999999999999", "line 3: size 99999999999999999999 is not"),
            ("0->1 start 0 size", "line 3: a key has no value"),
            ("0->1 start 0 size 1 trigger 3", "line 3: `trigger` is not supported; connections"),
            ("0->1 start 0 size 1 send_done_trigger 3", "line 3: `send_done_trigger` is not"),
            ("0->1 start 0 size 1 prio 3", "line 3: `prio` is not supported; there is one"),
            ("0->1 start 0 size 1 speed 3", "line 3: a connection is FROM->TO"),
            ("trigger id 1 oneshot", "line 3: `trigger` is not supported"),
            ("failure switch_type TOR", "line 3: `failure` is not supported"),
            ("hello", "line 3: a connection is FROM->TO"),
            ("Nodes 5", "line 3: `Nodes` is given twice"),
            ("Triggers 1", "line 3: `Triggers` is not supported"),
        ] {
            assert!(with(line).starts_with(says), "{line}: {}", with(line));
        }
        assert_eq!(refused("Nodes 4\n"), "there is no line `Connections m`");
        assert!(refused("Connections 1\n0->1 start 0 size 1\n").starts_with("line 2: `Nodes n`"));
        let few = "Nodes 4\nConnections 2\n0->1 start 0 size 1\n";
        assert_eq!(refused(few), "`Connections` says 2, and the number of them is 1");
        let many = refused("Nodes 4\nConnections 99999999999\n");
        assert!(many.starts_with("line 2: Connections 99999999999 is not allowed; at most"));
    }
}

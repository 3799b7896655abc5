//! Topologies and flows of HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control, Li et al.,
//! SIGCOMM 2019; `third.cc` and its examples). Both are numbers separated by blanks, and what follows them
//! is not read:
//!
//! ```text
//! topology   nodes switches links   ids of switches   for each link: a b rate delay error
//! flows      number                 for each flow: src dst pg dport bytes start
//! ```
//!
//! Nodes are counted from 0. Rates are as in `100Gbps`, delays as in `0.001ms`, `error` is the probability
//! that a packet is lost, starts are in seconds. Here switch `n` is named `sn`, and any other node `hn`.
//! A link has both directions. Packets have one priority (`pg`), so one file has one. `dport` is the class of a
//! flow: HPCC's analysis counts those with 200 as incasts, those with 100 as the others.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use weir_units::{Bytes, Duration, Rate, Ratio};

use crate::connections::{ConnectionList, ConnectionListBuilder, MAX_CONNECTIONS};

/// The links of a topology, as sections of a graph. In one line, with its number, what is wrong.
pub(crate) fn links(text: &str) -> Result<Vec<Value>, String> {
    let mut words = Words::new(text);
    let nodes: u64 = words.number("number of nodes", 2, MAX_NODES)?;
    let switches = words.number("number of switches", 0, nodes)?;
    let count = words.number("number of links", 1, MAX_LINKS)?;
    let mut is_switch = vec![false; nodes as usize];
    for _ in 0..switches {
        let id = words.number("id of a switch", 0, nodes - 1)? as usize;
        if std::mem::replace(&mut is_switch[id], true) {
            return Err(words.at(format!("switch {id} is listed twice")));
        }
    }
    let mut links = Vec::new();
    let mut joined = BTreeSet::new();
    for _ in 0..count {
        let ends = [words.number("node", 0, nodes - 1)?, words.number("node", 0, nodes - 1)?];
        let [a, b] = ends;
        if a == b || !joined.insert([a.min(b), a.max(b)]) {
            let why =
                if a == b { "a link has two ends" } else { "these nodes have a link already" };
            return Err(words.at(format!("link {a} {b} is not allowed; {why}")));
        }
        let rate = |word: &str| word.parse().ok().filter(|rate| *rate > Rate::ZERO);
        let rate: Rate = words.value("rate", "above 0, as in 100Gbps", rate)?;
        let delay: Duration = words.value("delay", "as in 0.001ms", |word| word.parse().ok())?;
        let error = words.value("error rate", "from 0 to 1", probability)?;
        let [a, b] = ends.map(|id| node_name(id, is_switch[id as usize]));
        match error {
            Ratio::ZERO => links.push(link(&a, &b, rate, delay, None)),
            // `impair` is of one direction.
            _ => links
                .extend([(&a, &b), (&b, &a)].map(|(a, b)| link(a, b, rate, delay, Some(error)))),
        }
    }
    words.end("links")?;
    Ok(links)
}

/// The connections of a file of flows, or of those with this `dport`. In one line, with its number, what is
/// wrong.
pub(crate) fn connections(text: &str, dport: Option<u64>) -> Result<ConnectionList, String> {
    let mut words = Words::new(text);
    let count = words.number("number of flows", 1, MAX_CONNECTIONS as u64)?;
    let mut builder = ConnectionListBuilder::default();
    let (mut group, mut classes) = (None, BTreeSet::new());
    for _ in 0..count {
        let [from, to] = [words.number("node", 0, MAX_NODES)?, words.number("node", 0, MAX_NODES)?];
        let pg = words.number("priority group", 0, 7)?;
        if *group.get_or_insert(pg) != pg {
            let first = group.unwrap_or_default();
            let why = "there is one priority for all packets";
            return Err(words.at(format!("pg {pg} after pg {first} is not allowed; {why}")));
        }
        let class = words.number("dport", 0, u64::from(u16::MAX))?;
        let size = words.number("number of bytes", 1, u64::MAX)?;
        let start = words.value("start", "a time in seconds", seconds)?;
        classes.insert(class);
        if dport.is_some_and(|dport| dport != class) {
            continue;
        }
        let [from, to] = [from, to].map(|id| node_name(id, false));
        builder.push(&from, &to, start, Bytes(size)).map_err(|message| words.at(message))?;
    }
    words.end("flows")?;
    match dport.filter(|_| builder.len() == 0) {
        Some(dport) => Err(format!("no flow has dport {dport}; there are {}", first(&classes))),
        None => Ok(builder.finish()),
    }
}

/// The first of the classes that a file has.
fn first(classes: &BTreeSet<u64>) -> String {
    let shown: Vec<String> = classes.iter().take(8).map(u64::to_string).collect();
    shown.join(", ")
}

/// Whether a file may be one of flows: it begins with a line of one number.
pub(crate) fn begins(first_line: &str) -> bool {
    let line = first_line.trim();
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

fn node_name(id: u64, is_switch: bool) -> String {
    format!("{}{id}", if is_switch { 's' } else { 'h' })
}

/// A link as a section `[[topology.link]]`, of both directions unless packets are lost on it.
fn link(from: &str, to: &str, rate: Rate, delay: Duration, loss: Option<Ratio>) -> Value {
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    set("from", from.into());
    set("to", to.into());
    set("rate", rate.to_string().into());
    set("delay", delay.to_string().into());
    if let Some(loss) = loss {
        set("duplex", false.into());
        let impair = Map::from_iter([("loss".to_owned(), Value::from(loss.to_string()))]);
        set("impair", impair.into());
    }
    Value::Object(keys)
}

fn probability(word: &str) -> Option<Ratio> {
    let number: f64 = word.parse().ok()?;
    let share = (0.0..=1.0).contains(&number).then_some(number)?;
    Ratio::from_billionths((share * 1e9).round() as u32)
}

/// A time in seconds, to the nanosecond.
fn seconds(word: &str) -> Option<Duration> {
    // As text, so that no digit is lost.
    match format!("{word}s").parse() {
        Ok(exact) => Some(exact),
        Err(_) => {
            let number: f64 = word.parse().ok()?;
            let nanos = (0.0..MOST_SECONDS).contains(&number).then_some(number * 1e9)?;
            Some(Duration::from_nanos(nanos.round() as u64))
        }
    }
}

/// What is wrong with a word, for an error. It may be of another kind of file: only a number is repeated, with
/// its unit.
pub(crate) fn refused(what: &str, word: &str, allowed: &str) -> String {
    let is_number = word.len() <= 32
        && word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && word.bytes().all(|c| c.is_ascii_alphanumeric() || b"+-.".contains(&c));
    let named = if is_number { format!("{what} {word}") } else { format!("the {what}") };
    format!("{named} is not allowed; it is {allowed}")
}

/// The words of a text, with the line of the last one.
struct Words<'a> {
    words: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    line: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Self {
        let words = (1..)
            .zip(text.lines())
            .flat_map(|(number, line)| line.split_whitespace().map(move |word| (number, word)));
        Self { words: Box::new(words), line: 1 }
    }

    /// A whole number from `least` to `most`.
    fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, String> {
        let allowed = format!("a whole number from {least} to {most}");
        self.value(what, &allowed, |word| {
            word.parse().ok().filter(|number| (least..=most).contains(number))
        })
    }

    fn value<T>(
        &mut self,
        what: &str,
        allowed: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, String> {
        let Some((line, word)) = self.words.next() else {
            return Err(self.at(format!("the file ends where a {what} is needed, {allowed}")));
        };
        self.line = line;
        read(word).ok_or_else(|| self.at(refused(what, word, allowed)))
    }

    /// All lines that the first one counts are read. Notes may follow, but not another such line.
    fn end(&mut self, what: &str) -> Result<(), String> {
        match self.words.next() {
            Some((line, word)) if word.parse::<u64>().is_ok() => {
                self.line = line;
                Err(self.at(format!("there are more {what} than the first line says")))
            }
            _ => Ok(()),
        }
    }

    fn at(&self, message: String) -> String {
        format!("line {}: {message}", self.line)
    }
}

/// As many as a fabric has hosts: forwarding tables have a cell for each pair of a host and a node.
const MAX_NODES: u64 = 4_096;
/// Each is two of ours, which take a few KB each.
const MAX_LINKS: u64 = 32_768;
/// What a `u64` holds of nanoseconds.
const MOST_SECONDS: f64 = 1e10;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TWO_RACKS: &str = "6 2 5\n4 5\n0 4 100Gbps 1000ns 0.000000\n1 4 100Gbps 0.001ms 0\n\
                             2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n4 5 400Gbps 1us 0.01\n\
                             First line: nodes, switches, links\n";

    #[test]
    fn a_topology_is_the_links_of_a_graph() {
        let found = links(TWO_RACKS).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.len(), 4 + 2, "packets are lost in both directions");
        let first = json!({ "from": "h0", "to": "s4", "rate": "100gbit", "delay": "1us" });
        assert_eq!(found[0], first);
        assert_eq!(found[1]["delay"], "1us");
        let loss = json!({ "loss": "1%" });
        for (link, ends) in found[4..].iter().zip([["s4", "s5"], ["s5", "s4"]]) {
            assert_eq!([&link["from"], &link["to"]], ends);
            assert_eq!((&link["duplex"], &link["impair"]), (&json!(false), &loss));
            assert_eq!(link["rate"], "400gbit");
        }
    }

    #[test]
    fn flows_begin_at_a_time_in_seconds_and_notes_behind_them_are_not_read() {
        let text = "2\n0 3 3 100 200000000 2\n1 2 3 200 1 2.000001234\n\nPlease order the flows!\n";
        let lines = |dport| connections(text, dport).map(|list| list.lines().collect::<Vec<_>>());
        let all = ["h0 h3 2s 200mb", "h1 h2 2000001.234us 1b"];
        assert_eq!(lines(None).as_deref(), Ok(&all.map(str::to_owned)[..]));
        assert_eq!(lines(Some(200)).as_deref(), Ok(&[all[1].to_owned()][..]));
        assert_eq!(lines(Some(5)).unwrap_err(), "no flow has dport 5; there are 100, 200");
        assert!(begins("2") && begins(" 12 ") && !begins("0 1") && !begins("") && !begins("Nodes"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let topology = |text: &str| links(text).unwrap_err();
        for (text, says) in [
            ("", "line 1: the file ends where a number of nodes is needed"),
            ("6 2\n", "line 1: the file ends where a number of links is needed"),
            (
                "6 7 5\n",
                "line 1: number of switches 7 is not allowed; it is a whole number from 0 to 6",
            ),
            ("99999999999 0 1\n", "line 1: number of nodes 99999999999 is not allowed"),
            ("3 1 2\n3\n", "line 2: id of a switch 3 is not allowed"),
            ("3 2 2\n1 1\n", "line 2: switch 1 is listed twice"),
            ("3 1 1\n2\n0 0 1Gbps 1us 0\n", "line 3: link 0 0 is not allowed; a link has two ends"),
            (
                "3 1 2\n2\n0 2 1Gbps 1us 0\n2 0 1Gbps 1us 0\n",
                "line 4: link 2 0 is not allowed; these",
            ),
            (
                "3 1 1\n2\n0 2 1gbps 1us 0\n",
                "line 3: rate 1gbps is not allowed; it is above 0, as in 100Gbps",
            ),
            ("3 1 1\n2\n0 2 1Gbps 1 0\n", "line 3: delay 1 is not allowed; it is as in 0.001ms"),
            (
                "3 1 1\n2\n0 2 1Gbps 1us 2\n",
                "line 3: error rate 2 is not allowed; it is from 0 to 1",
            ),
            ("3 1 1\n2\n0 2 1Gbps 1us nan\n", "line 3: the error rate is not allowed"),
            ("3 1 1\n2\n0 2 0Gbps 1us 0\n", "line 3: rate 0Gbps is not allowed; it is above 0"),
            ("3 1 2\n2\n0 2 1Gbps 1us 0\n", "line 3: the file ends where a node is needed"),
            ("3 1 1\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n", "line 4: there are more links than"),
        ] {
            assert!(topology(text).starts_with(says), "{text}: {}", topology(text));
        }
        let flows = |text: &str| connections(text, None).unwrap_err();
        for (text, says) in [
            ("0\n", "line 1: number of flows 0 is not allowed"),
            ("9999999\n", "line 1: number of flows 9999999 is not allowed"),
            ("1\n0 1 3 100 0 2\n", "line 2: number of bytes 0 is not allowed"),
            ("1\n0 0 3 100 5 2\n", "line 2: a connection has two different ends"),
            ("2\n0 1 3 100 5 2\n1 0 1 100 5 2\n", "line 3: pg 1 after pg 3 is not allowed"),
            ("1\n0 1 3 100 5 soon\n", "line 2: the start is not allowed; it is a time in seconds"),
            ("1\n0 1 3 100 5 -1\n", "line 2: start -1 is not allowed"),
            (
                "1\n0 1 3 100 5 2\n0 1 3 100 5 2\n",
                "line 3: there are more flows than the first line",
            ),
            ("2\n0 1 3 100 5 2\n", "line 2: the file ends where a node is needed"),
        ] {
            assert!(flows(text).starts_with(says), "{text}: {}", flows(text));
        }
    }
}

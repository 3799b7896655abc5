//! Files of other simulators that a scenario names: connections and links. In a canonical scenario their
//! contents stand in place of the names, so that a run needs no file.

use std::path::Path;

use serde_json::{Map, Value};

use crate::connections::{ConnectionList, ConnectionListBuilder, MAX_CONNECTIONS};
use crate::error::Problem;
use crate::files::{read_bounded, read_text};
use crate::{hpcc, htsim};

/// Replaces every file of connections and the file of a graph's links by what is in it. Files are looked for
/// next to the scenario file `source`.
pub(crate) fn load(tree: &mut Map<String, Value>, source: &str) -> Result<(), Problem> {
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    load_links(tree, folder)?;
    let flows = tree.get_mut("flow").and_then(Value::as_array_mut).into_iter().flatten();
    for (index, flow) in flows.enumerate() {
        if flow.pointer("/workload/kind").and_then(Value::as_str) != Some("connections") {
            continue;
        }
        let Some(Value::Object(workload)) = flow.get_mut("workload") else { continue };
        load_list(workload, folder).map_err(|(key, message)| {
            Problem::new(format!("flow.{index}.workload.{key}"), message)
        })?;
    }
    Ok(())
}

/// Replaces a file of connections by what is in it, and the class of flows that counts by nothing: only files
/// have more. On failure says which key is at fault, and why.
fn load_list(
    workload: &mut Map<String, Value>,
    folder: &Path,
) -> Result<(), (&'static str, String)> {
    let dport = workload.get("dport").and_then(Value::as_u64);
    let Some(Value::String(name)) = workload.get("list") else {
        return dport.map_or(Ok(()), |dport| Err(("dport", of_no_list(dport))));
    };
    let path = folder.join(name);
    let list = read_bounded(&path, MAX_BYTES)
        .and_then(|text| connections(&text, dport).map_err(|error| in_file(&path, &error)))
        .map_err(|message| ("list", message))?;
    workload.insert("list".to_owned(), list.lines().map(Value::from).collect());
    if dport.is_some() {
        workload.remove("dport");
    }
    Ok(())
}

fn of_no_list(dport: u64) -> String {
    format!("{dport} is not allowed; only a file of HPCC's flows has it")
}

fn load_links(tree: &mut Map<String, Value>, folder: &Path) -> Result<(), Problem> {
    let Some(Value::Object(topology)) = tree.get_mut("topology") else { return Ok(()) };
    let Some(Value::String(name)) = topology.get("link") else { return Ok(()) };
    let path = folder.join(name);
    let links = read_text(&path)
        .and_then(|text| hpcc::links(&text).map_err(|error| in_file(&path, &error)))
        .map_err(|message| Problem::new("topology.link", message))?;
    topology.insert("link".to_owned(), links.into());
    if topology.contains_key("queue") || topology.contains_key("rtt") {
        return Ok(());
    }
    if topology.contains_key("buffer") {
        topology.insert("queue".to_owned(), "infinite".into());
        return Ok(());
    }
    let message = "the file says nothing of queues: set topology.queue, topology.buffer, or topology.rtt, \
                   to which queues of 1bdp refer";
    Err(Problem::new("topology.link", message))
}

fn in_file(path: &Path, error: &str) -> String {
    format!("'{}', {error}", path.display())
}

/// The connections of a file: htsim's matrix, HPCC's flows, of which those with this `dport`, or lines as in a list.
fn connections(text: &str, dport: Option<u64>) -> Result<ConnectionList, String> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default();
    if hpcc::begins(first) {
        return hpcc::connections(text, dport);
    }
    if let Some(dport) = dport {
        return Err(format!("dport = {}", of_no_list(dport)));
    }
    if first.split_whitespace().next().is_some_and(htsim::begins) {
        return htsim::connections(text);
    }
    let mut builder = ConnectionListBuilder::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        if line.trim().is_empty() {
            continue;
        }
        // No error repeats what may be of another kind of file.
        builder.push_line(line).map_err(|_| match builder.len() {
            0 => format!("line {number}: {A_LINE}. {OTHER_FILES}"),
            MAX_CONNECTIONS => format!("line {number}: there are more than {MAX_CONNECTIONS}"),
            _ => format!("line {number}: {A_LINE}"),
        })?;
    }
    Ok(builder.finish())
}

const A_LINE: &str = "a connection has FROM TO START SIZE, as in 'h0 h3 10us 2mb': two different nodes, a time of at \
                      most 720h, and 1b or more";
const OTHER_FILES: &str = "Other files begin with `Nodes n` (htsim) or the number of flows (HPCC)";
/// A million lines of 64 bytes.
const MAX_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    proptest! {
        /// Whatever stands in a file, it is read or refused, and what is read has lines that are read again.
        #[test]
        fn no_file_ends_the_program(words in vec(select(WORDS), 0..40), breaks in vec(any::<bool>(), 40)) {
            let text: String = words
                .iter()
                .zip(breaks)
                .map(|(word, ends)| format!("{word}{}", if ends { "\n" } else { " " }))
                .collect();
            let _ = hpcc::links(&text);
            let _ = hpcc::connections(&text, Some(2));
            let _ = htsim::connections(&text);
            if let Ok(list) = connections(&text, None) {
                let again: String = list.lines().map(|line| line + "\n").collect();
                prop_assert_eq!(connections(&again, None), Ok(list));
            }
        }
    }

    const WORDS: &[&str] = &[
        "Nodes",
        "Connections",
        "Triggers",
        "0->1",
        "1->0",
        "->",
        "id",
        "start",
        "size",
        "trigger",
        "prio",
        "#",
        "0",
        "1",
        "2",
        "3",
        "-1",
        "2.5",
        "1e30",
        "nan",
        "18446744073709551615",
        "1Gbps",
        "1us",
        "5b",
        "h0",
        "h1",
        "0s",
        "s2",
    ];

    #[test]
    fn the_kind_of_a_file_shows_at_its_beginning() {
        let lines = |text: &str| -> Vec<String> {
            connections(text, None).unwrap_or_else(|error| panic!("{error}")).lines().collect()
        };
        let same = ["h0 h1 1us 5b"];
        assert_eq!(lines("\n# htsim\nNodes 2\nConnections 1\n0->1 start 1000000 size 5\n"), same);
        assert_eq!(lines("1\n0 1 3 100 5 0.000001\n"), same);
        assert_eq!(lines("# FROM TO START SIZE\n\nh0 h1 1us 5b # one\n"), same);
        let refused = connections("<html>\n", None).unwrap_err();
        assert!(refused.starts_with("line 1: a connection has FROM TO START SIZE"), "{refused}");
        assert!(refused.ends_with("the number of flows (HPCC)"), "{refused}");
        let later = connections("h0 h1 1us 5b\nh0 h1\n", None).unwrap_err();
        assert!(later.starts_with("line 2: ") && !later.contains("HPCC"), "{later}");
    }
}

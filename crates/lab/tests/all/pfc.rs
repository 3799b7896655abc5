//! Priority flow control: nothing is dropped, and who pauses whom, from the scenario to the tables.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use std::collections::BTreeMap;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use weir_lab::{Results, Scenario, World, run};

use crate::common::{self, table};

fn parse(text: &str, overrides: &[(&str, &str)]) -> Result<Scenario, String> {
    common::parse(text, overrides, "pfc.toml")
}

fn results(text: &str, overrides: &[(&str, &str)]) -> Results {
    let scenario = parse(text, overrides).unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, 1, World::Sim).unwrap_or_else(|error| panic!("{error}"))
}

/// What became of a link's packets, and how its port paused.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    delivered_bytes: u64,
    dropped: u64,
    dropped_buffer: u64,
    pauses: u64,
    paused: f64,
}

fn links(results: &Results) -> BTreeMap<String, Row> {
    let links = table(results, "links");
    let whole = |name: &str| links.column_by_name(name).unwrap().as_primitive::<UInt64Type>();
    let share = links.column_by_name("paused_ratio").unwrap().as_primitive::<Float64Type>();
    let names = links.column_by_name("name").unwrap().as_string::<i32>();
    let row = |place: usize| {
        let at = |name: &str| whole(name).value(place);
        let causes = ["dropped_queue", "dropped_buffer", "dropped_loss", "dropped_aqm"];
        let row = Row {
            delivered_bytes: at("delivered_bytes"),
            dropped: causes.into_iter().map(at).sum(),
            dropped_buffer: at("dropped_buffer"),
            pauses: at("pauses"),
            paused: share.value(place),
        };
        (names.value(place).to_owned(), row)
    };
    (0..links.num_rows()).map(row).collect()
}

fn dropped(results: &Results) -> u64 {
    links(results).values().map(|row| row.dropped).sum()
}

fn summary<'a>(results: &'a Results, name: &str) -> Option<&'a str> {
    let column = table(results, "summary").column_by_name(name).unwrap().as_string::<i32>();
    column.is_valid(0).then(|| column.value(0))
}

/// One switch, two senders of 900 Mbit/s each and one receiver at 1 Gbit/s.
const TWO_TO_ONE: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 1
hosts = 3
spines = 1
rate = "1gbit"
delay = "2us"
buffer = { total = "300kb", alpha = "1/8" }
pfc = true
[[flow]]
name = "f"
stack = "udp"
from = "h1"
to = "h0"
workload = { kind = "rate", rate = "900mbit", size = "1472b" }
[[flow]]
name = "g"
stack = "udp"
from = "h2"
to = "h0"
workload = { kind = "rate", rate = "900mbit", size = "1472b" }
[measure]
duration = "50ms"
warmup = "10ms"
sample_interval = "1ms"
"#;

#[test]
fn senders_pause_and_share_the_receivers_link_without_a_loss() {
    let results = results(TWO_TO_ONE, &[]);
    let links = links(&results);
    assert_eq!(dropped(&results), 0);
    // 1 Gbit/s for 40 ms, and half of it from each.
    let all = links["leaf0-h0"].delivered_bytes as f64;
    assert!((all / 5e6 - 1.0).abs() < 0.001, "{all}");
    for sender in ["h1-leaf0", "h2-leaf0"] {
        let row = links[sender];
        let share = row.delivered_bytes as f64 / all;
        assert!((share - 0.5).abs() < 0.03, "{sender}: {share}");
        // Its queue grows, so it sends at full rate unless it pauses; a pause begins while it sends a packet,
        // which takes 12 us.
        let most = 0.5 + row.pauses as f64 * 12e-6 / 0.04;
        assert!((0.48..most).contains(&row.paused), "{sender}: {row:?}");
        assert!(row.pauses > 50, "{sender}: {row:?}");
    }
    for other in ["h0-leaf0", "leaf0-h0", "leaf0-h1", "leaf0-spine0"] {
        assert_eq!((links[other].pauses, links[other].paused), (0, 0.0), "{other}");
    }
    assert_eq!(summary(&results, "deadlock"), None);
}

#[test]
fn a_headroom_that_is_too_small_loses_packets_and_one_that_suffices_none() {
    // 2 x 2 us at 1 Gbit/s are 500 bytes; 64 bytes and two packets of 1576 come on top.
    for (headroom, loses) in [("0b", true), ("1.5kb", true), ("3.8kb", false), ("20kb", false)] {
        let results = results(TWO_TO_ONE, &[("topology.buffer.headroom", headroom)]);
        let lost: u64 = links(&results).values().map(|row| row.dropped_buffer).sum();
        assert_eq!(lost > 0, loses, "{headroom}: {lost}");
    }
}

#[test]
fn long_links_need_more_headroom_and_get_it() {
    for delay in ["0us", "10us", "100us"] {
        let set = [("topology.delay", delay), ("topology.buffer.total", "1mb")];
        assert_eq!(dropped(&results(TWO_TO_ONE, &set)), 0, "{delay}");
    }
    let marking = r#"{ kind = "ecn-step", threshold = "20kb", limit = "infinite" }"#;
    assert_eq!(dropped(&results(TWO_TO_ONE, &[("topology.queue", marking)])), 0);
}

/// 60 hosts send to one at once, below the same and below other leaves.
const INCAST: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 16
spines = 4
rate = "100gbit"
delay = "1us"
queue = { kind = "ecn-step", threshold = "300kb", limit = "infinite" }
buffer = { total = "3mb", alpha = "1/8" }
routing = "ecmp"
pfc = true
[[flow]]
name = "f"
stack = "rack/dctcp"
min_rto = "1ms"
workload = { kind = "incast", senders = 60, size = "500kb", load = "100%", arrivals = 1 }
[measure]
duration = "20ms"
sample_interval = "100us"
"#;

#[test]
fn an_incast_loses_nothing_with_pfc_and_something_without() {
    let lossless = results(INCAST, &[]);
    assert_eq!(dropped(&lossless), 0);
    assert!(links(&lossless).values().any(|row| row.pauses > 0));
    let complete = table(&lossless, "arrivals").column_by_name("completed").unwrap();
    assert_eq!(complete.as_boolean().true_count(), 60);
    let hash = |results: &Results| summary(results, "trace_hash").unwrap().to_owned();
    assert_eq!(hash(&lossless), hash(&results(INCAST, &[])));
    let lossy = results(INCAST, &[("topology.pfc", "false")]);
    let lost = table(&lossy, "links").column_by_name("dropped_buffer").unwrap();
    assert!(lost.as_primitive::<UInt64Type>().values().iter().sum::<u64>() > 0);
    let pauses = table(&lossy, "links").column_by_name("pauses").unwrap();
    assert_eq!(pauses.null_count(), pauses.len(), "there are none to count");
}

/// A ring of three switches, whose links lead one way, with a host each. Every flow crosses two links of it.
const RING: &str = r#"
[topology]
kind = "graph"
buffer = { total = "200kb", alpha = "1/8" }
pfc = true
link = [
    { from = "a", to = "b", rate = "10gbit", delay = "1us", queue = "infinite", duplex = false },
    { from = "b", to = "c", rate = "10gbit", delay = "1us", queue = "infinite", duplex = false },
    { from = "c", to = "a", rate = "10gbit", delay = "1us", queue = "infinite", duplex = false },
    { from = "ha", to = "a", rate = "10gbit", delay = "1us", queue = "infinite" },
    { from = "hb", to = "b", rate = "10gbit", delay = "1us", queue = "infinite" },
    { from = "hc", to = "c", rate = "10gbit", delay = "1us", queue = "infinite" },
]
[[flow]]
name = "f"
stack = "rack/cubic"
from = "ha"
to = "hc"
[[flow]]
name = "g"
stack = "rack/cubic"
from = "hb"
to = "ha"
[[flow]]
name = "h"
stack = "rack/cubic"
from = "hc"
to = "hb"
[measure]
duration = "1s"
sample_interval = "1ms"
"#;

#[test]
fn a_deadlock_ends_the_run_with_its_cycle() {
    let results = results(RING, &[]);
    let cycle = summary(&results, "deadlock").expect("a deadlock");
    assert!(["a-b, b-c, c-a", "b-c, c-a, a-b", "c-a, a-b, b-c"].contains(&cycle), "{cycle}");
    assert_eq!(dropped(&results), 0);
    let ended = table(&results, "summary").column_by_name("sim_s").unwrap();
    let ended = ended.as_primitive::<Float64Type>().value(0);
    assert!(ended < 0.1, "{ended}");
}

#[test]
fn two_flows_of_the_ring_have_no_cycle() {
    let flows = RING.split("[[flow]]").collect::<Vec<_>>();
    let measure = RING.split("[measure]").last().unwrap();
    let text = format!("{}[[flow]]{}[[flow]]{}[measure]{measure}", flows[0], flows[1], flows[2]);
    let results = results(&text, &[("measure.duration", "100ms")]);
    assert_eq!(summary(&results, "deadlock"), None);
    assert_eq!(dropped(&results), 0);
}

#[test]
fn what_cannot_be_lossless_is_refused() {
    let refused = |key: &str, value: &str| parse(TWO_TO_ONE, &[(key, value)]).err().unwrap();
    insta::assert_snapshot!(refused("topology.queue", "100p"));
    insta::assert_snapshot!(refused("topology.queue", r#"{ kind = "codel" }"#));
    insta::assert_snapshot!(refused("topology.buffer.total", "20kb"));
    insta::assert_snapshot!(refused("topology.buffer.headroom", "much"));
    let port = |impair: &str| format!("[{{ link = \"leaf0-h0\", impair = {{ {impair} }} }}]");
    insta::assert_snapshot!(refused("topology.port", &port("burst = \"15kb\"")));
    insta::assert_snapshot!(refused("topology.port", &port("jitter = \"1us\"")));
    let without = TWO_TO_ONE.replace("buffer = { total = \"300kb\", alpha = \"1/8\" }\n", "");
    insta::assert_snapshot!(parse(&without, &[]).err().unwrap());
    let reserve = [("topology.pfc", "false"), ("topology.buffer.reserve", "1kb")];
    insta::assert_snapshot!(parse(TWO_TO_ONE, &reserve).err().unwrap());
}

/// Every checker holds in fabrics of any size, speed, memory and load.
#[test]
fn no_random_fabric_loses_a_packet() {
    let mut paused = 0;
    for seed in 0..20 {
        let mut rng = weir_units::stream(seed, "fabric");
        let mut one_of = |texts: &[&'static str]| texts[rng.below(texts.len() as u64) as usize];
        let total = one_of(&["400kb", "600kb", "1mb"]);
        let alpha = one_of(&["1/64", "1/8", "1", "8"]);
        let set = [
            ("topology.leaves", one_of(&["1", "2", "3"])),
            ("topology.hosts", one_of(&["2", "3", "5"])),
            ("topology.spines", one_of(&["1", "2"])),
            ("topology.rate", one_of(&["1gbit", "10gbit"])),
            ("topology.uplink_rate", one_of(&["1gbit", "10gbit", "25gbit"])),
            ("topology.delay", one_of(&["0us", "1us", "7us"])),
            ("topology.routing", one_of(&["single", "ecmp", "spray"])),
            ("topology.buffer.reserve", one_of(&["0b", "4kb"])),
            ("topology.buffer.total", total),
            ("topology.buffer.alpha", alpha),
            ("topology.queue", one_of(&["infinite", MARKS, RANDOM_MARKS])),
            ("flow.0.stack", one_of(&["rack/dctcp", "rack/cubic", "go-back-n/none"])),
            ("flow.0.mss", one_of(&["1448", "300"])),
            ("flow.1.workload.rate", one_of(&["500mbit", "5gbit"])),
        ];
        let scarcely: Vec<_> = set.into_iter().chain([("measure.sample_interval", "0s")]).collect();
        let [results, scarcely] = [results(MIXED, &set), results(MIXED, &scarcely)];
        let hash = |results: &Results| summary(results, "trace_hash").unwrap().to_owned();
        assert_eq!(
            hash(&results),
            hash(&scarcely),
            "how often it is looked at changes nothing: {set:?}"
        );
        let rows = links(&results);
        // RED drops what it cannot mark.
        if set[10].1 != RANDOM_MARKS {
            assert_eq!(dropped(&results), 0, "{set:?}");
        }
        assert!(rows.values().all(|row| row.dropped_buffer == 0));
        paused += u32::from(rows.values().any(|row| row.pauses > 0));
        assert_eq!(summary(&results, "deadlock"), None, "{set:?}");
    }
    assert!(paused > 8, "{paused} of 20 have any pause");
}

const MARKS: &str = r#"{ kind = "ecn-step", threshold = "30kb", limit = "infinite" }"#;
const RANDOM_MARKS: &str =
    r#"{ kind = "red", min = "20kb", max = "60kb", limit = "infinite", ecn = true, burst = 50 }"#;

/// Bulk flows between random hosts, and datagrams to one of them.
const MIXED: &str = r#"
[topology]
kind = "leaf-spine"
buffer = { total = "1mb" }
pfc = true
[[flow]]
name = "f"
count = 6
stack = "rack/dctcp"
min_rto = "1ms"
window_limit = 500
[[flow]]
name = "g"
count = 2
stack = "udp"
to = "h0"
workload = { kind = "rate", rate = "1gbit", size = "1472b" }
[measure]
duration = "6ms"
sample_interval = "100us"
"#;

//! The keys of `[topology.radio]` that set the medium access, and what is refused of them.

use serde_json::Value;
use weir_lab::{Scenario, World, check, run};

const NETWORK: &str = "[topology]\nkind = \"radio\"\n[topology.radio]\nhops = 1\narp = false\n\
                       routing = \"static\"\n";
const FLOW: &str = "[[flow]]\nstack = \"udp\"\n\
                    workload = { kind = \"rate\", rate = \"2mbit\", size = \"1472b\" }\n\
                    [measure]\nduration = \"3s\"\n";

fn scenario(keys: &str) -> Result<Scenario, String> {
    let scenario = Scenario::parse(&format!("{NETWORK}{keys}\n{FLOW}"), &[], "air.toml")
        .map_err(|error| error.to_string())?;
    check(&scenario, World::Sim).map_err(|error| error.to_string())?;
    Ok(scenario)
}

fn refusal(keys: &str) -> String {
    match scenario(keys) {
        Ok(_) => panic!("accepted: {keys}"),
        Err(error) => error,
    }
}

/// Megabits of payload per second.
fn goodput(keys: &str) -> f64 {
    let results = run(&scenario(keys).expect("it is there"), 1, World::Sim).expect("it is there");
    let flows = results.tables().iter().find(|table| table.name == "flows").expect("it is there");
    let column = flows.batch.column_by_name("goodput_mbps").expect("it is there");
    let values: &arrow_array::Float64Array = column.as_any().downcast_ref().expect("it is there");
    values.value(0)
}

#[test]
fn what_is_out_of_range_is_refused_with_what_is_allowed() {
    for (keys, expected) in [
        (
            "cw_min = 0",
            "topology.radio.cw_min: 0 is not allowed; 1 <= cw_min (0) <= cw_max (1023) <= 65535",
        ),
        ("cw_min = 2000", "cw_min: 2000 is not allowed"),
        ("cw_max = 7", "cw_max: 7 is not allowed; 1 <= cw_min (31) <= cw_max (7) <= 65535"),
        ("cw_max = 70000", "cw_max: 70000 is not allowed"),
        ("cw_min = 15\ncw_max = 7", "cw_min: 15 is not allowed; 1 <= cw_min (15) <= cw_max (7)"),
        ("eifs = \"20us\"", "topology.radio.eifs: 20us is not allowed; 50us (DIFS) to 10ms"),
        ("eifs = \"1s\"", "eifs: 1s is not allowed"),
        ("short_retries = 0", "0 is not allowed; 1 to 255 attempts, or unlimited"),
        ("long_retries = 256", "256 is not allowed; 1 to 255 attempts, or unlimited"),
        ("long_retries = \"never\"", "never is not allowed; 1 to 255 attempts, or unlimited"),
        ("short_retries = true", "1 to 255 attempts, or unlimited"),
        ("mac = \"bianchi\"\neifs = \"100us\"", "128us (DIFS) to 10ms"),
    ] {
        let found = refusal(keys);
        assert!(found.contains(expected), "{keys}: {found}");
    }
}

#[test]
fn the_canonical_form_has_them_as_they_were_written() {
    let keys = "cw_min = 15\ncw_max = 15\nshort_retries = 9\nlong_retries = \"unlimited\"\n\
                eifs = \"50us\"";
    let text = scenario(keys).unwrap().to_json();
    let read: Value = serde_json::from_str(&text).unwrap();
    let radio = &read["topology"]["radio"];
    assert_eq!(radio["cw_min"], 15);
    assert_eq!(radio["cw_max"], 15);
    assert_eq!(radio["short_retries"], 9);
    assert_eq!(radio["long_retries"], "unlimited");
    assert_eq!(radio["eifs"], "50us");
}

/// One station alone: its packets are 15 mean slots apart, or 1, in addition to 7294 us of frames.
#[test]
fn a_smaller_window_leaves_less_of_the_time_idle() {
    let usual = goodput("");
    let small = goodput("cw_min = 3\ncw_max = 3");
    let expected = (7_294.0 + 50.0 + 15.0 * 20.0) / (7_294.0 + 50.0 + 20.0);
    assert!((small / usual / expected - 1.0).abs() < 0.005, "{small} and {usual}");
}

/// Of frames that are all damaged none arrives; the first packet is tried for ever, or a few times.
#[test]
fn retries_end_where_the_scenario_says() {
    let given_up = |keys: &str| {
        let keys = format!("{keys}\nframe_error = \"100%\"");
        let results = run(&scenario(&keys).unwrap(), 1, World::Sim).unwrap();
        let nodes = results.tables().iter().find(|table| table.name == "nodes").unwrap();
        let column = nodes.batch.column_by_name("dropped_mac").unwrap();
        let values: &arrow_array::UInt64Array = column.as_any().downcast_ref().unwrap();
        values.value(0)
    };
    assert_eq!(given_up("long_retries = \"unlimited\""), 0);
    let (four, eight) = (given_up("long_retries = 4"), given_up("long_retries = 8"));
    assert!(four > eight && eight > 0, "{four} and {eight}");
}

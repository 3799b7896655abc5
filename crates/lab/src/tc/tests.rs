use super::*;
use crate::scenario::Scenario;

fn options(text: &str) -> Vec<(&'static str, String)> {
    tc_options(text).unwrap()
}

fn said(text: &str) -> String {
    let pairs = options(text);
    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn netem_is_read_as_its_manual_says() {
    assert_eq!(
        said("netem delay 20ms 5ms loss 1% rate 10mbit limit 100"),
        "rate=10mbit delay=20ms jitter=5ms jitter_spread=uniform \
         jitter_order=kept queue=100p loss=1%"
    );
    assert_eq!(
        said("tc qdisc add dev eth0 root handle 1: netem delay 100 30ms distribution normal"),
        "delay=100us jitter=30ms jitter_spread=normal jitter_order=free"
    );
    assert_eq!(said("netem loss random 0.5 0% corrupt 2%"), "loss=0.5% corrupt=2%");
    assert_eq!(said("netem rate 1mbps 14"), "rate=8mbit queue=1000p overhead=14b");
    assert_eq!(
        said("netem loss gemodel 1% 30%"),
        "burst_loss={ good_to_bad = '1%', bad_to_good = '30%', loss_in_bad = '100%', \
         loss_in_good = '0%' }"
    );
}

#[test]
fn tbf_has_a_bucket_and_a_bound() {
    // 32 kbit are 4096 bytes to tc, and 10 Mbit/s send 62 500 bytes in 50 ms.
    assert_eq!(
        said("tbf rate 10mbit burst 32kbit latency 50ms"),
        "rate=10mbit queue=66.596kb burst=4kib"
    );
    assert_eq!(
        said("tbf rate 1mibit buffer 1540 limit 30k"),
        "rate=1048.576kbit queue=30kib burst=1.54kb"
    );
}

#[test]
fn what_has_no_like_is_refused_by_name() {
    let texts = [
        "",
        "fq_codel limit 100",
        "tc qdisc add dev eth0 root fq",
        "netem delay",
        "netem delay 20furlongs",
        "netem delay 20ms 5ms 25%",
        "netem delay 20ms distribution pareto",
        "netem distribution normal",
        "netem loss 101%",
        "netem loss 1% loss 2%",
        "netem loss state 1%",
        "netem loss 1% 25%",
        "netem reorder 25% 50%",
        "netem rate 10%",
        "netem rate 10mbit 14 53 5",
        "netem limit many",
        "netem slot 1ms",
        "tbf rate 10mbit burst 32kbit",
        "tbf burst 32kbit latency 50ms",
        "tbf rate 1mbit burst 5kb limit 9kb latency 50ms",
        "tbf rate 1mbit burst 5kb/8 latency 50ms",
        "tbf rate 1mbit burst 5kb latency 50ms peakrate 2mbit",
    ];
    let messages = texts.map(|text| format!("{text}\n    {}", tc_options(text).unwrap_err()));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn round_trips_are_both_ways_together() {
    let keys = tc_keys("netem delay 20ms loss 1% rate 8mbit", Some("netem delay 10ms rate 1mbit"));
    let pairs = [
        ("rate", "8mbit"),
        ("queue", "1000p"),
        ("forward.loss", "1%"),
        ("reverse.rate", "1mbit"),
        ("reverse.queue", "1000p"),
        ("rtt", "30ms"),
    ];
    let expected = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(keys.unwrap(), expected);
}

fn scenario(topology: &str) -> Result<String, String> {
    let text = format!("name = 'x'\n[topology]\n{topology}\n[[flow]]\nstack = 'reno'\n");
    Scenario::parse(&text, &[], "x.toml")
        .map(|scenario| scenario.to_json())
        .map_err(|error| error.to_string())
}

#[test]
fn a_scenario_takes_them_for_its_own_keys() {
    let by_tc = scenario("tc = 'netem delay 40ms 5ms loss 1% rate 5mbit limit 50'").unwrap();
    let by_keys = scenario(
        "rate = '5mbit'\nrtt = '40ms'\nqueue = '50p'\nforward = { loss = '1%', jitter = '5ms' }",
    );
    assert_eq!(by_tc, by_keys.unwrap());
    let swept = "tc = 'netem delay 40ms'\n[sweep]\n'topology.tc' = ['netem delay 10ms', 'tbf']";
    let messages = [
        scenario("tc = 'netem delay 40ms'\nrtt = '10ms'"),
        scenario("tc = 40"),
        scenario("reverse_tc = 'netem delay 40ms'"),
        scenario("tc = 'netem'\nreverse_tc = 'netem slot 1ms'"),
        scenario("tc = 'netem'\nreverse_tc = 'netem rate 1mbit 14'"),
        scenario("kind = 'lab-router'\ntc = 'netem delay 40ms'"),
        scenario("tc = 'netem delay 40ms jitter 5ms'"),
        scenario(swept),
    ];
    insta::assert_snapshot!(messages.map(Result::unwrap_err).join("\n"));
}

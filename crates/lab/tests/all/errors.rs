//! What a person reads who made a mistake: one line with the place, the key, the value and what is
//! allowed.

use weir_lab::Scenario;

const FLOW: &str = "[[flow]]\n";

fn refusal(text: &str, overrides: &[(&str, &str)]) -> String {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    match Scenario::parse(text, &overrides, "slow.toml") {
        Ok(_) => panic!("accepted: {text} {overrides:?}"),
        Err(error) => error.to_string(),
    }
}

/// One scenario per line of the snapshot: each text stands below a good flow.
fn refusals(texts: &[&str]) -> String {
    texts.iter().map(|text| refusal(&format!("{FLOW}{text}"), &[]) + "\n").collect()
}

#[test]
fn keys_and_values() {
    insta::assert_snapshot!(refusals(&[
        "count = 2\ncount = 3",
        "rat = 1",
        "count = -1",
        "count = \"two\"",
        "stack2 = \"tcp/reno\"",
        "rtt = 40",
        "start = \"-1s\"",
        "delayed_ack = \"never\"",
        "route_policy = \"tcpf\"",
        "route_policy = \"tcp-f(timer=never)\"",
        "window_limit = 0",
        "window_limit = \"clw\"",
        "window_limit = true",
        "workload = \"bulk\"",
        "workload = { kind = \"ftp\" }",
        "workload = { kind = \"bulk\", size = \"1mb\" }",
        "[topology]\nrat = \"10mbit\"",
        "[topology]\nrate = 10",
        "[topology]\nrate = \"10mbps\"",
        "[topology]\nkind = \"dumbell\"",
        "[topology]\n\nqueue = \"3\"",
        "[topology]\nqueue = 3",
        "[topology]\nqueue = { kind = \"coddle\" }",
        "[topology]\nqueue = { kind = \"codel\", max = \"5ms\" }",
        "[topology]\nqueue = { kind = \"codel\", target = 5 }",
        "[topology]\nqueue = { target = \"5ms\" }",
        "[topology.reverse]\nqueue = { kind = \"droptail\", ecn = true }",
        "[topology.reverse]\nqueue = { kind = \"ecn-step\", threshold = \"5\" }",
        "[topology]\nfeedback = \"drai\"",
        "[topology]\nfeedback = { kind = \"muzha\" }",
        "[topology]\nfeedback = { kind = \"xcp\", levels = 5 }",
        "[topology]\nfeedback = { kind = \"drai\", share = \"all\" }",
        "[topology.forward]\nloss = \"-1%\"",
        "[topology.forward]\nloss = 1.5",
        "[topology.forward]\nloss = 1",
        "[topology.forward]\nloss = \"0.75\"",
        "[topology.reverse]\nburst_loss = { p = \"1%\" }",
        "[topology.forward]\nrate_steps = [{ at = \"1s\" }]",
        "[measure]\nrepeat = 1.5",
    ]));
}

#[test]
fn scenarios_that_make_no_sense() {
    insta::assert_snapshot!(refusals(&[
        "name = \"\"",
        "count = 0",
        "quick_start = \"79kbit\"",
        "quick_start = \"10mbit\"\nstack = \"newreno/muzha\"",
        "[topology]\nfeedback = { levels = 8 }",
        "stack = \"newreno/muzha(levels=7)\"\n[topology]\nfeedback = { kind = \"drai\" }",
        "[topology]\nfeedback = { levels = 3, thresholds = [\"50%\", \"10%\"] }",
        "[topology]\nfeedback = { levels = 4, thresholds = [\"10%\", \"50%\"] }",
        "[topology]\nfeedback = { memory = \"0s\" }",
        "[topology]\nfeedback = { estimator = \"hybrid\", levels = 3 }",
        "[topology]\nfeedback = { kind = \"rcp\" }\n[topology.forward]\nrate_trace = [1, 2, 3]",
        "start = \"60s\"",
        "count = 100\nstagger = \"1s\"",
        "start = \"10s\"\nstop = \"5s\"",
        "stop = \"5s\"\nduration = \"5s\"",
        "send_time = \"5ms\"\nsend_jitter = \"6ms\"",
        "mss = 0",
        "mss = 70000",
        "max_pacing_rate = \"0bit\"",
        "send_buffer = \"4kb\"",
        "send_buffer = \"2gb\"",
        "recv_buffer = \"100b\"",
        "recv_buffer = \"2gb\"",
        "recv_buffer = \"1mib\"\nmax_recv_buffer = \"512kib\"",
        "send_buffer = \"1mib\"\nmax_send_buffer = \"512kib\"",
        "max_send_buffer = \"1mib\"",
        "recv_buffer = \"1mib\"\ninitial_recv_window = \"2mib\"",
        "min_rto = \"10min\"",
        "from = 1\nto = 2",
        "workload = { kind = \"file\", size = \"0b\" }",
        "workload = { kind = \"file\", size = \"18446744073709551615b\" }",
        "workload = { kind = \"rate\", rate = \"0bit\" }",
        "[[flow]]\nstack = \"udp\"\nworkload = { kind = \"request\" }",
        "[[flow]]\nstack = \"udp\"\nworkload = { kind = \"poisson-request\" }",
        "[[flow]]\nstack = \"udp\"\nsack = false",
        "workload = { kind = \"request\", mean_gap = \"1s\" }",
        "workload = { kind = \"poisson-request\", mean_gap = \"0s\" }",
        "workload = { kind = \"on-off\", on = \"10ns\" }",
        "workload = { kind = \"on-off\", spread = \"normal\" }",
        "workload = { kind = \"file\", load = 0.4 }",
        "workload = { kind = \"flow-sizes\", size = \"1mb\" }",
        "workload = { kind = \"flow-sizes\", sizes = \"missing.cdf\" }",
        "workload = { kind = \"flow-sizes\", sizes = 5 }",
        "workload = { kind = \"flow-sizes\", sizes = [[1000, 0.5], [500, 1]] }",
        "workload = { kind = \"flow-sizes\", sizes = [[1000, 0.5], [2000, 0.9]] }",
        "workload = { kind = \"flow-sizes\", load = 0 }",
        "workload = { kind = \"flow-sizes\", load = 1.2 }",
        "workload = { kind = \"flow-sizes\", arrivals = 0 }",
        "workload = { kind = \"flow-sizes\", sizes = [[1, 1]] }\n[topology]\nrate = \"100gbit\"",
        "workload = { kind = \"flow-sizes\" }\n[topology]\nkind = \"lab-router\"",
        "workload = { kind = \"flow-sizes\" }\n[topology]\nkind = \"radio\"",
        "[[flow]]\nstack = \"udp\"\nworkload = { kind = \"flow-sizes\" }",
        "[measure]\narrivals = 20000000",
        "[measure]\nrequests = 20000000",
        "name = \"a\"\n[[flow]]\nname = \"a\"",
        "[topology]\nrate = \"0bit\"",
        "[topology]\nhops = 2",
        "[topology]\nkind = \"chain\"\nhops = 0",
        "[topology]\nkind = \"lab-router\"\nqueue = \"1bdp\"",
        "[topology]\nkind = \"lab-router\"\nqueue = { kind = \"codel\" }",
        "[topology]\nqueue = { kind = \"codel\", interval = \"0s\" }",
        "[topology]\nqueue = { kind = \"red\", min = \"10p\", max = \"20kb\" }",
        "[topology]\nqueue = { kind = \"red\", min = \"20p\", max = \"20p\" }",
        "[topology]\nqueue = { kind = \"red\", min = \"10p\", max = \"20p\", burst = 5 }",
        "[topology]\nqueue = { kind = \"red\", weight = 0.002, burst = 50 }",
        "[topology]\nqueue = { kind = \"red\", probability = 0 }",
        "[topology]\nqueue = { kind = \"red\", limit = \"infinite\" }",
        "[topology]\nqueue = { kind = \"fq-codel\", flows = 0 }",
        "[topology]\nqueue = { kind = \"fq-pie\", quantum = \"0b\" }",
        "[topology]\nqueue = { kind = \"pie\", update = \"1us\" }",
        "[topology]\nqueue = { kind = \"pie\", beta = 2000 }",
        "[topology]\nqueue = { kind = \"cake\", isolation = \"host\" }",
        "[topology]\nburst = \"15kb\"\nqueue = { kind = \"cake\", shaper = true }",
        "[topology]\nqueue = { kind = \"dualpi2\", coupling = 0 }",
        "[topology]\nqueue = { kind = \"dualpi2\", l4s_ramp = \"3ms\" }",
        "[topology]\nqueue = { kind = \"dualpi2\", shift = \"40ms\", classic_share = \"5%\" }",
        "[topology]\noverhead = \"2kb\"",
        "[topology]\nburst = \"1500b\"\noverhead = \"14b\"",
        "[topology.forward]\nburst = \"15kb\"\nrate_trace = [5]",
        "[topology.forward]\npolicer = { burst = \"1kb\" }",
        "stack = \"udp\"\n[topology]\nkind = \"lab-router\"\nrelay = \"delay-line\"",
        "[topology]\nkind = \"lab-router\"\nforward = { rate_steps = [{ at = \"1s\", rate = \"1mbit\" }] }",
        "[topology]\nkind = \"graph\"",
        "[topology]\nkind = \"graph\"\nlink = [{ from = \"a\", to = \"a\" }]",
        "[topology]\nkind = \"graph\"\nlink = [{ from = \"a\", to = \"b\" }]",
        "from = \"a\"\nto = \"b\"\n[topology]\nkind = \"graph\"\nlink = [{ from = \"a\", to = \"b\" }, { from = \"b\", to = \"a\" }]",
        "[topology.forward]\nrate_trace = [5, 3]",
        "[topology.forward]\nrate_trace = \"missing.trace\"",
        "[topology.forward]\nrate = \"1mbit\"\nrate_trace = [5]",
        "[topology.forward]\nrate_steps = [{ at = \"2s\", rate = \"1mbit\" }, { at = \"1s\", rate = \"2mbit\" }]",
        "[topology.forward]\ndrop = [0]",
        "[topology.forward]\nreorder = \"1%\"\nreorder_delay = \"0s\"",
        "[measure]\nduration = \"0s\"",
        "[measure]\nwarmup = \"60s\"",
        "[measure]\nrepeat = 0",
        "[measure]\nsample_interval = \"1us\"",
        "[sweep]\nrate = [\"1mbit\"]",
        "[sweep]\n\"topology.rate\" = [\"1mbit\", \"fast\"]",
        "[sweep]\n\"topology.rate\" = \"1mbit\"",
        "[sweep]\ntopology.rate = []",
        "[sweep]\ntopology.rate = [\"1mbit\", \"1mbit\"]",
    ]));
}

#[test]
fn overrides() {
    let messages = |key, value| refusal(FLOW, &[("measure.repeat", "3"), (key, value)]) + "\n";
    let messages: String = [
        ("topology.rat", "5mbit"),
        ("topology.rate", "5"),
        ("topology.queue.kind", "red-hot"),
        ("topology.queue.target", "5ms"),
        ("flow.0.stack", "tcp/reno"),
        ("flow.0.stack", "rack/fast"),
        ("flow.1.stack", "cubic"),
        ("flow.*.count", "0"),
        ("flow", "reno"),
        ("measure.duration", "forever"),
        ("measure.duration.seconds", "10"),
        ("", "1"),
        ("sweep.topology.rate", "[\"0bit\"]"),
    ]
    .map(|(key, value)| messages(key, value))
    .concat();
    insta::assert_snapshot!(messages);
}

#[test]
fn files_that_are_no_scenarios() {
    let messages: String = ["", "name = ", "= 1", "[topology", "name = \"x\"\n"]
        .map(|text| refusal(text, &[]) + "\n")
        .concat();
    insta::assert_snapshot!(messages);
}

/// Values that would give results of nothing: segments that no link lets pass, a product without a round trip.
#[test]
fn what_could_give_no_result_is_refused() {
    let refused = |text: &str| refusal(&format!("[topology]\n{text}\n{FLOW}mss = 1448"), &[]);
    let long = refused("mtu = \"1kb\"");
    assert!(long.contains("flow.0.mss: 1448 is not allowed; topology.mtu = 1kb"), "{long}");
    assert!(long.ends_with("lets none pass that is longer than 948"), "{long}");
    let product = refused("rtt = \"0s\"");
    assert!(
        product.contains("topology.queue: 1bdp is not allowed; without a round trip"),
        "{product}"
    );
    let scenario = Scenario::parse(&format!("[topology]\nmtu = \"1kb\"\n{FLOW}"), &[], "slow.toml");
    assert!(scenario.is_ok(), "by default segments fit");
}

#[test]
fn a_queue_that_takes_no_packet_is_refused_whatever_its_discipline() {
    let fabric = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nhosts = 2\nspines = 2\n";
    for kind in [
        "codel", "fq-codel", "red", "choke", "pie", "fq", "fq-pie", "cake", "dualpi2", "ecn-step",
        "sfq",
    ] {
        for limit in ["0p", "0b", "0bdp"] {
            let queue = format!("{{ kind = \"{kind}\", limit = \"{limit}\" }}");
            let said = refusal(FLOW, &[("topology.queue", &queue)]);
            let expected = format!("topology.queue.limit: {limit} is not allowed; at least one");
            assert!(said.contains(&expected), "{kind}: {said}");
        }
        // Links of a fabric have no delay unless they are given one.
        let queue = format!("{{ kind = \"{kind}\", limit = \"2bdp\" }}");
        let said = refusal(&format!("{fabric}{FLOW}"), &[("topology.queue", &queue)]);
        assert!(said.contains("topology.queue.limit: 2bdp is not allowed"), "{kind}: {said}");
        assert!(said.contains("(topology.delay = 0ns)"), "{kind}: {said}");
    }
    for (queue, key) in [
        ("{ kind = \"ecn-step\" }", "limit: 1bdp"),
        ("{ kind = \"ecn-step\", limit = \"1mb\" }", "threshold: 0.17bdp"),
        ("{ kind = \"red\", limit = \"1mb\", min = \"0.1bdp\" }", "min: 0.1bdp"),
    ] {
        let said = refusal(&format!("{fabric}{FLOW}"), &[("topology.queue", queue)]);
        assert!(said.contains(&format!("topology.queue.{key} is not allowed")), "{said}");
    }
    let nothing = "{ kind = \"fq\", flow_limit = 0 }";
    let said = refusal(FLOW, &[("topology.queue", nothing)]);
    assert!(said.contains("flow_limit: 0 is not allowed"), "{said}");
}

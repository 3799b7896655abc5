//! The canonical form: complete, stable, and the same for everything that means the same.

use proptest::prelude::*;
use weir_lab::Scenario;

fn parse(text: &str, overrides: &[(&str, &str)]) -> Scenario {
    let overrides: Vec<(String, String)> =
        overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Scenario::parse(text, &overrides, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_default_is_filled_in() {
    let json = parse("[[flow]]\nstack = \"cubic\"\n", &[]).to_json();
    let pretty: serde_json::Value = serde_json::from_str(&json).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&pretty).unwrap());
}

/// What a guest's kernel is given, so that its congestion controls draw what ours do.
#[test]
fn one_connection_alone_has_draws() {
    let state = |text: &str| parse(text, &[]).lone_draws(1).map(|rng| rng.state());
    let mut rng = weir_units::stream(1, "flow a sender");
    let _first_sequence_number = rng.next_u32();
    assert_eq!(state("[[flow]]\nname = \"a\"\nstack = \"bbr\"\n"), Some(rng.state()));
    assert_eq!(state("[[flow]]\nstack = \"bbr\"\n[[flow]]\nstack = \"bbr\"\n"), None);
    assert_eq!(state("[[flow]]\nstack = \"udp\"\n"), None);
}

#[test]
fn spelling_does_not_matter() {
    let one =
        "[topology]\nrate = \"10mbit\"\nqueue = \"0.5bdp\"\n[[flow]]\nstack = \"rack/reno\"\n";
    let other =
        "[[flow]]\nstack = \"reno\"\n[topology]\nqueue = \"0.500bdp\"\nrate = \"10 Mbps\"\n";
    assert_eq!(parse(one, &[]).to_json(), parse(other, &[]).to_json());
}

#[test]
fn an_override_says_the_same_as_the_file() {
    let file = "[topology]\nrate = \"5mbit\"\n[topology.forward]\nloss = 0.01\n[[flow]]\nstack = \"udp\"\n";
    let set = parse(
        "[[flow]]\n",
        &[("topology.rate", "5mbit"), ("topology.forward.loss", "1%"), ("flow.0.stack", "udp")],
    );
    assert_eq!(parse(file, &[]), set);
}

#[test]
fn a_swept_stack_may_have_a_label() {
    let swept = |stacks: &str| format!("[[flow]]\n[sweep]\n\"flow.0.stack\" = [{stacks}]\n");
    let text = swept("\"slow start=cubic(hystart=off)\", \"b = rack/reno\", \"cubic(beta=0.8)\"");
    let scenario = parse(&text, &[]);
    let sweep = &scenario.file().sweep["flow.0.stack"];
    assert_eq!(sweep[0], "slow start=cubic(hystart=off)", "it is written as it was");
    let wrong = Scenario::parse(&swept("\"a=cubci\""), &[], "test.toml").unwrap_err().to_string();
    assert!(wrong.contains("unknown controller 'cubci'"), "{wrong}");
}

#[test]
fn a_swept_key_that_is_set_leaves_the_sweep() {
    let text = "[[flow]]\n[sweep]\ntopology.rate = [\"1mbit\"]\n\"flow.0.stack\" = [\"reno\", \"cubic\"]\n";
    assert_eq!(
        parse(text, &[]).file().sweep.keys().collect::<Vec<_>>(),
        ["topology.rate", "flow.0.stack"]
    );
    let point = parse(text, &[("topology.rate", "1mbit"), ("flow.*.stack", "cubic")]);
    assert!(point.file().sweep.is_empty());
    assert_eq!(
        point.to_json(),
        parse("[topology]\nrate = \"1mbit\"\n[[flow]]\nstack = \"cubic\"\n", &[]).to_json()
    );
}

fn any_scenario() -> impl Strategy<Value = String> {
    let topology = prop_oneof![
        (1u64..10_000, 0u64..500, 0u64..4_000).prop_map(|(rate, rtt, queue)| format!(
            "[topology]\nrate = \"{rate}kbit\"\nrtt = \"{rtt}ms\"\nqueue = \"{queue}p\"\n"
        )),
        (1u32..20).prop_map(|hops| format!("[topology]\nkind = \"parking-lot\"\nhops = {hops}\n")),
        (0u64..200).prop_map(|ms| format!(
            "[topology]\nkind = \"lab-router\"\ndelay = \"{ms}ms\"\nrelay = \"delay-line\"\n"
        )),
        Just("[topology]\nkind = \"graph\"\nlink = [{ from = \"a\", to = \"b\" }]\n".to_owned()),
    ];
    let stack = prop::sample::select(vec!["reno", "udp", "go-back-n(30)/none", "sack/vegas"]);
    let workload = prop::sample::select(vec![
        "{ kind = \"bulk\" }",
        "{ kind = \"file\", size = \"3mb\" }",
        "{ kind = \"rate\", rate = \"3mbit\" }",
        "{ kind = \"rate\" }",
        "{ kind = \"on-off\", on = \"300ms\", spread = \"exponential\" }",
        "{ kind = \"on-off\", off = \"1us\", rate = \"3mbit\", size = \"700b\" }",
        "{ kind = \"flow-sizes\", load = 0.3, arrivals = 7 }",
        "{ kind = \"flow-sizes\", sizes = [[0, 0.0], [900, 0.1], [7000, 1]] }",
    ]);
    let flow = (stack, workload, 0u64..1_000, 0u32..1_000_000, 1u32..4);
    (topology, flow).prop_map(|(topology, (stack, workload, start, loss, count))| {
        // Connections that come and go are reliable.
        let many = workload.contains("flow-sizes") && stack == "udp";
        let workload = if many { "{ kind = \"bulk\" }" } else { workload };
        let graph = topology.contains("graph");
        let ends = if graph { "from = \"a\"\nto = \"b\"\n" } else { "" };
        let loss = format!("{}.{:04}%", loss / 10_000, loss % 10_000);
        let forward = if graph {
            String::new()
        } else {
            format!("[topology.forward]\nrate = \"2mbit\"\nloss = \"{loss}\"\n")
        };
        format!(
            "{topology}{forward}[[flow]]\nstack = \"{stack}\"\nworkload = {workload}\n\
             start = \"{start}ms\"\ncount = {count}\n{ends}"
        )
    })
}

proptest! {
    #[test]
    fn the_canonical_form_reads_back_and_is_a_fixed_point(text in any_scenario()) {
        let scenario = parse(&text, &[]);
        let json = scenario.to_json();
        let back = Scenario::from_json(&json).unwrap();
        prop_assert_eq!(&back, &scenario);
        prop_assert_eq!(back.to_json(), json);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z.=\"\\[\\]{}0-9\n ]{0,80}", key in "[a-z.0-9*]{0,20}", value in ".{0,20}") {
        let _ = Scenario::parse(&text, &[(key, value)], "any.toml");
    }
}

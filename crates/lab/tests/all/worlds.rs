//! One scenario in both worlds: the same tables, the same randomness, the same bytes.

use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use weir_lab::{Results, RunError, Scenario, World, check, run, run_watched};

const ROUTER: &str = "
[topology]
kind = 'lab-router'
relay = 'serial'
delay = '2ms'
queue = '64kib'
[topology.forward]
drop = [2, 5]
[[flow]]
stack = 'stop-and-wait/none'
mss = 15000
fixed_rto = '50ms'
workload = { kind = 'file', size = '90000b' }
[measure]
duration = '60s'
sample_interval = '10ms'
events = 100
acks = 100
";

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, &[], "router.toml").expect("it is valid")
}

fn column<'a>(results: &'a Results, table: &str, name: &str) -> &'a dyn arrow_array::Array {
    let found = results.tables().iter().find(|t| t.name == table).expect("there is such a table");
    found.batch.column_by_name(name).expect("there is such a column")
}

fn count(results: &Results, table: &str, name: &str) -> u64 {
    column(results, table, name).as_primitive::<UInt64Type>().value(0)
}

#[test]
fn the_worlds_write_the_same_tables_about_the_same_happenings() {
    let scenario = scenario(ROUTER);
    let worlds = [World::Sim, World::Udp].map(|world| run(&scenario, 1, world).expect("it runs"));
    let schemas = worlds.each_ref().map(|results| {
        results.tables().iter().map(|table| (table.name, table.batch.schema())).collect::<Vec<_>>()
    });
    assert_eq!(schemas[0], schemas[1]);
    for results in &worlds {
        assert_eq!(count(results, "flows", "delivered_bytes"), 90_000);
        // Six segments; the second and the fifth packet with data are lost, and each is sent again.
        assert_eq!(count(results, "flows", "sent_segments"), 8);
        assert_eq!(count(results, "flows", "timeouts"), 2);
        for table in ["samples", "acks", "queues", "events"] {
            let found = results.tables().iter().find(|t| t.name == table);
            assert!(found.expect("it is there").batch.num_rows() > 1, "{table}");
        }
        // Two timeouts, and six datagrams that take the relay 2 ms each.
        let time = column(results, "flows", "fct_s").as_primitive::<Float64Type>().value(0);
        assert!(time >= 0.112, "{time}");
    }
    let [simulated, real] = &worlds;
    assert!(column(simulated, "summary", "health").is_null(0));
    assert!(!column(real, "summary", "health").is_null(0));
    assert_eq!(count(real, "summary", "unasked_drops"), 0);
}

#[test]
fn a_world_refuses_what_it_cannot_carry_and_says_why() {
    let scenario = scenario(&ROUTER.replace("15000", "65450"));
    assert!(check(&scenario, World::Sim).is_ok());
    let refused = check(&scenario, World::Udp).expect_err("no datagram holds it");
    assert_eq!(
        refused.to_string(),
        "scenario: flow 'flow0': mss = 65450: world udp sends real datagrams, which hold at most \
         65431 bytes of payload"
    );
    assert_eq!(run(&scenario, 1, World::Udp).expect_err("the same"), refused.into());
}

#[test]
fn a_run_in_real_time_is_broken_off_by_who_watches_it() {
    let stopped =
        run_watched(&scenario(ROUTER), 1, World::Udp, None, &mut |_| ControlFlow::Break(()));
    assert_eq!(stopped.expect_err("it stops"), RunError::Stopped);
}

#[test]
fn what_only_a_kernel_has_is_refused_where_the_connections_are_ours() {
    let scenario = scenario("[[flow]]\nstack = 'bpf_vegas'\n");
    for world in [World::Sim, World::Udp] {
        let refused = check(&scenario, world).expect_err("only a kernel has it").to_string();
        assert!(refused.contains("only a kernel's TCP has 'bpf_vegas'"), "{refused}");
        assert!(run(&scenario, 1, world).is_err());
    }
}

#[test]
fn an_unknown_world_is_named_with_those_that_exist() {
    let known = "there is no world 'moon'; there are sim, udp, kernel";
    assert_eq!("moon".parse::<World>().expect_err("there is none"), known);
}

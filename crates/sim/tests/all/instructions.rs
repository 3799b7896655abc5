//! What a packet costs, in instructions that callgrind counts: no load of the machine moves them.
//!
//! One flow at 100 Mbit/s over three hops, the first case of the benchmark, as the profile of the tests
//! compiles it: with assertions and overflow checks on, and without optimisation across crates. The half
//! second that is counted has the losses that end slow start. `docs/speed.md` has a release's figures.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "one test tells the other, or why it rests"
)]

use std::process::Command;

use crate::common::{Flow, spec_of};
use weir_net::{Limit, LinkConfig};
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{MeasureSpec, RunSpec};
use weir_sim::run;
use weir_units::{BufferSize, Duration, Rate};

/// Instructions for a data packet and its share of acknowledgements, over three hops each way. Only
/// without incremental compilation, as in CI, does rustc inline small functions of other crates by itself.
const MOST_PER_PACKET: u64 = if is_incremental() { 16_700 } else { 12_750 };
/// How long the measured process simulates, in milliseconds.
const SIMULATED: &str = "WEIR_SIMULATED_MILLIS";

#[test]
fn a_packet_takes_a_bounded_number_of_instructions() {
    let (Some(short), Some(long)) = (count(300), count(800)) else {
        return eprintln!("skipped: there is no valgrind to count instructions");
    };
    let (instructions, packets) = (long.0 - short.0, long.1 - short.1);
    assert!(packets > 3_000, "{packets} packets in half a second");
    let each = instructions / packets;
    println!("{each} instructions for each of {packets} packets");
    assert!(each <= MOST_PER_PACKET, "{each} instructions per packet, {MOST_PER_PACKET} at most");
}

/// What the other test measures, in a process of its own.
#[test]
fn the_measured_run() {
    let Ok(millis) = std::env::var(SIMULATED) else { return };
    let duration = Duration::from_millis(millis.parse().expect("a number of milliseconds"));
    let outcome = run(&spec(duration), 1).expect("the run is sound");
    println!("data packets: {}", outcome.summary.data_packets);
}

fn spec(duration: Duration) -> RunSpec {
    let (rate, rtt) = (Rate::from_mbit(100), Duration::from_millis(40));
    let link = LinkConfig::new(rate, rtt / 2);
    let dumbbell = Dumbbell {
        forward: link.clone().with_limit(Limit::resolve(BufferSize::Bdp(1_000), rate, rtt)),
        reverse: link,
        access: Access::Rate(Rate::from_mbit(1_000)),
        rtts: vec![rtt],
    };
    let topology = dumbbell.build().expect("the topology is sound");
    let measure = MeasureSpec { duration, ..MeasureSpec::default() };
    spec_of(&[Flow::bulk("sack/reno")], topology, measure)
}

const fn is_incremental() -> bool {
    let setting = option_env!("CARGO_INCREMENTAL");
    !matches!(setting, Some(text) if matches!(text.as_bytes(), [b'0']))
}

/// Instructions and data packets of a run of this length; `None` without valgrind.
fn count(millis: u64) -> Option<(u64, u64)> {
    let this = std::env::current_exe().expect("a test runs");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(this)
        .args(["--exact", "instructions::the_measured_run", "--nocapture", "--test-threads=1"])
        .env(SIMULATED, millis.to_string())
        .output()
        .ok()?;
    let (out, errors) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{out}{errors}");
    Some((number_after("Collected :", &errors), number_after("data packets:", &out)))
}

fn number_after(label: &str, text: &str) -> u64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("no '{label}' in: {text}")).1;
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

//! What a packet costs, in instructions that callgrind counts: no load of the machine moves them.
//!
//! Cases of the benchmark, each for a stretch of some thousand packets. Both profiles count: that of the
//! tests (with assertions and overflow checks, without optimisation across crates) whenever the tests run,
//! a release with `make bench-instructions`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "one test tells the other, or why it rests"
)]

#[path = "../../examples/bench/cases.rs"]
mod cases;

use std::process::Command;
use std::thread;

use weir_sim::run;
use weir_units::Duration;

use self::cases::CASES;

/// A stretch of a case, and what a data packet with its share of acknowledgements took when this was last
/// changed.
struct Measured {
    stack: &'static str,
    case: &'static str,
    /// The counted stretch of simulated time, in milliseconds. The first case has delayed acknowledgements there, the
    /// others still have one for each packet.
    from: u64,
    to: u64,
    /// Instructions in the profile of the tests, and in a release.
    last: [u64; 2],
}

const fn measured(
    stack: &'static str,
    case: &'static str,
    between: [u64; 2],
    last: [u64; 2],
) -> Measured {
    let [from, to] = between;
    Measured { stack, case, from, to, last }
}

const COUNTED: [Measured; 5] = [
    measured("sack/reno", "1x100m", [3_000, 4_000], [8_131, 6_655]),
    measured("rack/cubic", "1x100m", [1_000, 2_000], [11_275, 9_310]),
    measured("sack/reno", "16x1g", [300, 400], [12_741, 9_948]),
    measured("sack/reno", "100x10m", [300, 400], [14_722, 11_106]),
    measured("sack/reno", "web-10k", [100, 250], [11_183, 9_259]),
];
/// In percent: no change may cost more.
const MOST_GROWTH: u64 = 3;
/// Stack, case and milliseconds of the measured process.
const TASK: &str = "WEIR_COUNTED_CASE";

#[test]
fn no_case_takes_more_instructions_per_packet_than_before() {
    if is_incremental() {
        // rustc leaves small functions of other crates out of line then.
        return eprintln!("skipped: counts are those of a build with CARGO_INCREMENTAL=0");
    }
    let counts = thread::scope(|scope| {
        let tasks = COUNTED.map(|measured| scope.spawn(move || measured.count()));
        tasks.map(|task| task.join().expect("it is counted"))
    });
    println!("stack       case      packets  instructions  before  change");
    let mut grown = Vec::new();
    for (measured, count) in COUNTED.iter().zip(counts) {
        let Some((instructions, packets)) = count else {
            return eprintln!("skipped: there is no valgrind to count instructions");
        };
        let Measured { stack, case, .. } = measured;
        assert!(packets > 3_000, "{packets} packets of {stack} in {case}");
        let (each, before) = (instructions / packets, measured.before());
        let change = 100.0 * (each as f64 / before as f64 - 1.0);
        println!("{stack:11} {case:9} {packets:7} {each:13} {before:7} {change:+6.1} %");
        if each * 100 > before * (100 + MOST_GROWTH) {
            grown.push(format!("{stack} in {case} takes {each}, {before} before"));
        }
    }
    assert!(grown.is_empty(), "instructions per packet: {grown:?}");
}

impl Measured {
    /// What was stored for this profile.
    const fn before(&self) -> u64 {
        self.last[if cfg!(debug_assertions) { 0 } else { 1 }]
    }

    /// Instructions and data packets of the stretch; `None` without valgrind.
    fn count(&self) -> Option<(u64, u64)> {
        let [short, long] = [self.from, self.to].map(|millis| self.count_until(millis));
        let ((before, few), (after, many)) = (short?, long?);
        Some((after - before, many - few))
    }

    fn count_until(&self, millis: u64) -> Option<(u64, u64)> {
        let this = std::env::current_exe().expect("a test runs");
        let run = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(this)
            .args(["--exact", "instructions::the_measured_run", "--nocapture", "--test-threads=1"])
            .env(TASK, format!("{} {} {millis}", self.stack, self.case))
            .output()
            .ok()?;
        let (out, errors) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{out}{errors}");
        Some((number_after("Collected :", &errors), number_after("data packets:", &out)))
    }
}

/// What the other test measures, in a process of its own.
#[test]
fn the_measured_run() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [stack, case, millis]: [&str; 3] =
        task.split(' ').collect::<Vec<_>>().try_into().expect("three words");
    let case = CASES.iter().find(|known| known.name == case).expect("a case");
    let mut spec = case.spec(stack);
    spec.measure.duration = Duration::from_millis(millis.parse().expect("a number"));
    let outcome = run(&spec, 1).expect("the run is sound");
    println!("data packets: {}", outcome.summary.data_packets);
}

/// Whether this was compiled incrementally, as the profile of the tests is outside of CI; a release never is.
const fn is_incremental() -> bool {
    let setting = option_env!("CARGO_INCREMENTAL");
    cfg!(debug_assertions) && !matches!(setting, Some(text) if matches!(text.as_bytes(), [b'0']))
}

fn number_after(label: &str, text: &str) -> u64 {
    let rest = text.split_once(label).unwrap_or_else(|| panic!("no '{label}' in: {text}")).1;
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

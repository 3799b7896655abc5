//! The file service in a deterministic simulation: one process, virtual time, everything from a seed.
//!
//! Both ends run the code of `weir send` and `weir recv` down to datagrams and operations on files; the
//! network and the disks below are simulated, and go wrong. What is checked is in
//! docs/internals/simulation-of-transfers.md.
//!
//! ```console
//! $ WEIR_FILE_SEEDS=100000 cargo test --profile sim -p weir-transfer --test simulation -- --nocapture
//! $ WEIR_FILE_SEED=4711 cargo test --profile sim -p weir-transfer --test simulation -- --nocapture
//! ```

mod bare;
mod checker;
mod disk;
mod hostile;
mod hosts;
mod intruder;
mod network;
mod plan;
mod script;
mod tally;
mod world;

use disk::Death;
use plan::{Fault, Plan};
use tally::Tally;
use weir_units::{Duration, Instant, stream};
use world::World;

struct Outcome {
    violation: Option<String>,
    trace: u64,
    tally: Tally,
}

fn simulate(seed: u64, chatty: bool) -> Outcome {
    run(seed, &Plan::of(seed), chatty)
}

fn run(seed: u64, plan: &Plan, chatty: bool) -> Outcome {
    let mut world = World::new(seed, plan, chatty);
    let violation = world.run();
    Outcome { violation, trace: world.trace(), tally: world.tally().clone() }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} = {text}: a number is needed")))
}

#[test]
#[expect(clippy::print_stdout, reason = "a run of many seeds prints their number")]
fn files_arrive_whatever_goes_wrong() {
    if let Some(seed) = number("WEIR_FILE_SEED") {
        let outcome = simulate(seed, true);
        assert_eq!(outcome.violation, None, "seed {seed}");
        return;
    }
    let count = number("WEIR_FILE_SEEDS").unwrap_or(SEEDS);
    let first = number("WEIR_FILE_FIRST").unwrap_or(1);
    let started = std::time::Instant::now();
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let work = |worker: u64| {
        let (mut tally, mut violations) = (Tally::default(), Vec::new());
        for seed in (first + worker..first + count).step_by(workers as usize) {
            let outcome = simulate(seed, false);
            tally.add_all(&outcome.tally);
            if let Some(violation) = outcome.violation {
                println!("seed {seed}: {violation}");
                violations.push(seed);
            }
        }
        (tally, violations)
    };
    let (mut tally, mut violations) = (Tally::default(), Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        for thread in threads {
            let (own, wrong) = thread.join().expect("no seed panics");
            tally.add_all(&own);
            violations.extend(wrong);
        }
    });
    let per_hour = count as f64 / started.elapsed().as_secs_f64() * 3_600.0;
    println!("{count} seeds, {per_hour:.0} an hour\n{tally}");
    violations.sort_unstable();
    let again = violations.first().map(|seed| {
        format!("WEIR_FILE_SEED={seed} cargo test --profile sim -p weir-transfer --test simulation -- --nocapture")
    });
    assert!(
        violations.is_empty(),
        "{} of {count} seeds: {violations:?}; run {again:?}",
        violations.len()
    );
}

/// Seed 541 was wrong once: the disk did not say whether a file had its name.
#[test]
fn a_disk_that_does_not_answer_makes_no_mismatch() {
    assert_eq!(simulate(541, false).violation, None);
}

#[test]
fn the_same_seed_gives_the_same_simulation() {
    for seed in 1..40 {
        let (one, other) = (simulate(seed, false), simulate(seed, false));
        assert_eq!((one.trace, one.violation), (other.trace, other.violation), "seed {seed}");
    }
}

/// A transfer over a network without faults, which takes long enough for some notes in the journal.
fn small(faults: &[(u64, Fault)]) -> Plan {
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let mut plan = Plan::without_faults(400_000);
    plan.faults = faults.iter().map(|(millis, fault)| (at(*millis), *fault)).collect();
    plan
}

#[test]
fn the_receiver_may_die_at_every_operation_of_its_disk() {
    let down = Duration::from_millis(20);
    // What follows the second one's content lies in two pages.
    for len in [400_000, 98 * 4_096 + 4_050] {
        for death in [Death::Process, Death::Machine] {
            let mut deaths = 0;
            for after in 0..OPERATIONS {
                // Before, amid or after it.
                for seed in 0..3 {
                    let mut plan = small(&[(1, Fault::DoomReceiver(after, death, down))]);
                    plan.senders[0].files[0].2 = len;
                    let outcome = run(seed, &plan, false);
                    let which = format!("{len} bytes, {death:?} at operation {after}, seed {seed}");
                    assert_eq!(outcome.violation, None, "{which}");
                    deaths += outcome.tally.get("deaths at an operation of a disk");
                }
            }
            assert!(deaths > 40, "{deaths} deaths: there was something to look at");
        }
    }
}

#[test]
fn every_operation_of_the_disk_may_fail_after_every_death() {
    let down = Duration::from_millis(20);
    let mut errors = 0;
    for after in 0..OPERATIONS {
        for fails in 0..8 {
            let death = Fault::DoomReceiver(after, Death::Process, down);
            let plan = small(&[(1, death), (1, Fault::DiskError(after + 1 + fails))]);
            let outcome = run(1, &plan, false);
            let which = format!("death at operation {after}, error at {fails}");
            assert_eq!(outcome.violation, None, "{which}");
            errors += outcome.tally.get("input/output errors");
        }
    }
    assert!(errors > 100, "{errors} errors: there was something to look at");
}

/// Another program on the receiver's disk changes partial files at any of its operations, also while the receiver is
/// killed and goes on with them: what it has changed never gets a name.
#[test]
#[expect(clippy::print_stdout, reason = "a run of many seeds prints their number")]
fn what_another_program_changes_is_never_published() {
    let count = number("WEIR_FILE_SEEDS").unwrap_or(SEEDS);
    let first = number("WEIR_FILE_FIRST").unwrap_or(1);
    let mut tally = Tally::default();
    for seed in first..first + count {
        let mut rng = stream(seed, "a receiver that shares its disk");
        let mut faults = vec![(1, Fault::Intrude(INTRUDED))];
        if plan::one_in(&mut rng, 3) {
            let death = if plan::one_in(&mut rng, 3) { Death::Machine } else { Death::Process };
            let doom = Fault::DoomReceiver(rng.below(INTRUDED), death, Duration::from_millis(20));
            faults.push((1, doom));
        }
        let mut plan = small(&faults);
        let most = [3_000, 300_000, 2 << 20][rng.below(3) as usize];
        plan.senders[0].files[0].2 = rng.below(most) as usize;
        let outcome = run(seed, &plan, false);
        assert_eq!(
            outcome.violation, None,
            "seed {seed}: WEIR_FILE_FIRST={seed} WEIR_FILE_SEEDS=1"
        );
        tally.add_all(&outcome.tally);
    }
    println!("{count} seeds\n{tally}");
    let changes = tally.get("changes by another program");
    assert!(changes > count, "{changes} changes: there was something to look at");
}

/// Operations of the disk within which another program comes.
const INTRUDED: u64 = 40;
/// More than a small transfer has.
const OPERATIONS: u64 = 24;
/// What fits into a few seconds.
const SEEDS: u64 = 200;

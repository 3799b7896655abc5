//! What every controller does, round trip by round trip, on the small path of `path`: tables of
//! windows in packets at the end of each round trip of propagation.

use std::fmt::Write as _;

use crate::path::{Conditions, Path};
use weir_cc::CcConfig;
use weir_units::Duration;

const RTT_MS: u64 = 100;
const ROUND: Duration = Duration::from_millis(RTT_MS);
/// Packets per round trip that the bottleneck takes.
const N: u64 = 50;

/// The table of all controllers of the catalogue, each run by `script`, which says the window at
/// the end of every round.
fn table(script: impl Fn(&str) -> Vec<u64>) -> String {
    let mut table = String::new();
    let mut controllers = 0;
    for entry in CcConfig::CATALOGUE {
        for controller in entry.examples.iter().filter(|example| **example != "none") {
            let rounds: Vec<_> = script(controller).iter().map(|n| format!(" {n:>5}")).collect();
            writeln!(table, "{controller:<40}{}", rounds.concat()).expect("a string grows");
        }
        controllers += 1;
    }
    assert!(controllers >= CcConfig::CATALOGUE.len() && controllers >= 12);
    table
}

fn rounds(path: &mut Path, count: usize) -> Vec<u64> {
    (0..count)
        .map(|_| {
            path.run(ROUND);
            path.cwnd_packets()
        })
        .collect()
}

fn on(conditions: &Conditions, count: usize) -> String {
    table(|controller| rounds(&mut Path::new(controller, conditions.clone()), count))
}

#[test]
fn unlimited() {
    insta::assert_snapshot!(on(&Conditions::open(RTT_MS), 8));
}

#[test]
fn loss_at_n() {
    insta::assert_snapshot!(on(&Conditions::bottleneck(RTT_MS, N, N), 40));
}

#[test]
fn two_losses() {
    let conditions =
        Conditions { drops: vec![150, 500], ..Conditions::bottleneck(RTT_MS, N, 10 * N) };
    insta::assert_snapshot!(on(&conditions, 30));
}

#[test]
fn app_limited() {
    let conditions = Conditions { demand: Some(12), ..Conditions::bottleneck(RTT_MS, N, N) };
    insta::assert_snapshot!(on(&conditions, 20));
}

#[test]
fn minimum_window() {
    // The whole second flight is lost: a timeout leaves the least window.
    let conditions =
        Conditions { drops: (10..30).collect(), ..Conditions::bottleneck(RTT_MS, N, N) };
    insta::assert_snapshot!(on(&conditions, 24));
}

#[test]
fn idle_restart() {
    insta::assert_snapshot!(table(|controller| {
        let mut path = Path::new(controller, Conditions::bottleneck(RTT_MS, N, N));
        let mut windows = rounds(&mut path, 12);
        path.idle(Duration::from_secs(2));
        windows.push(path.cwnd_packets());
        windows.extend(rounds(&mut path, 8));
        windows
    }));
}

/// Changes the propagation time after 15 rounds.
fn rtt_step(from_ms: u64, to_ms: u64) -> String {
    table(|controller| {
        let packets = N * from_ms / RTT_MS;
        let mut path = Path::new(controller, Conditions::bottleneck(from_ms, packets, 2 * N));
        let mut windows = rounds(&mut path, 15);
        path.conditions.rtt = Duration::from_millis(to_ms);
        windows.extend(rounds(&mut path, 15));
        windows
    })
}

#[test]
fn rtt_step_up() {
    insta::assert_snapshot!(rtt_step(100, 200));
}

#[test]
fn rtt_step_down() {
    insta::assert_snapshot!(rtt_step(200, 100));
}

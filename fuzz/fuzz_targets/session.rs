#![no_main]

#[path = "../../crates/transfer/tests/simulation/disk.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod disk;
#[path = "../../crates/transfer/tests/fuzzing/input.rs"]
mod input;
#[path = "../../crates/transfer/tests/simulation/intruder.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod intruder;
#[path = "../../crates/transfer/tests/simulation/script.rs"]
mod script;
#[path = "../../crates/transfer/tests/fuzzing/session.rs"]
mod session;
#[path = "../../crates/transfer/tests/simulation/tally.rs"]
#[allow(dead_code, reason = "the simulation uses all of it")]
mod tally;

libfuzzer_sys::fuzz_target!(|data: &[u8]| session::check(data));

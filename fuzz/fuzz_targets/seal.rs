#![no_main]

#[path = "../../crates/live/tests/fuzzing/input.rs"]
mod input;
#[path = "../../crates/live/tests/fuzzing/seal.rs"]
mod seal;

libfuzzer_sys::fuzz_target!(|data: &[u8]| seal::check(data));

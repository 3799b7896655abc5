#![no_main]

#[path = "../../crates/transfer/tests/fuzzing/input.rs"]
mod input;
#[path = "../../crates/transfer/tests/fuzzing/seal.rs"]
mod seal;

libfuzzer_sys::fuzz_target!(|data: &[u8]| seal::check(data));

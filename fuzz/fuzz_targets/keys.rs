#![no_main]

#[path = "../../crates/transfer/tests/fuzzing/keys.rs"]
mod keys;

libfuzzer_sys::fuzz_target!(|data: &[u8]| keys::check(data));

#![no_main]

#[path = "../../crates/transfer/tests/fuzzing/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::check(data));

#![no_main]

#[path = "../../crates/live/tests/fuzzing/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::check(data));

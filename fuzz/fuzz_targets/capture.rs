#![no_main]

#[path = "../../crates/analyse/tests/fuzzing/captures.rs"]
mod captures;

libfuzzer_sys::fuzz_target!(|data: &[u8]| captures::check_capture(data));

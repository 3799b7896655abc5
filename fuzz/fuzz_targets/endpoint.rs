#![no_main]

#[path = "../../crates/transfer/tests/fuzzing/endpoint.rs"]
mod endpoint;
#[path = "../../crates/transfer/tests/fuzzing/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| endpoint::check(data));

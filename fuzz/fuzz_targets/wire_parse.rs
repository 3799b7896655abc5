#![no_main]

#[path = "../../crates/transport/tests/fuzzing/wire_parse.rs"]
mod wire_parse;

libfuzzer_sys::fuzz_target!(|data: &[u8]| wire_parse::check(data));

#![no_main]

#[path = "../../crates/transport/tests/fuzzing/connection.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|data: &[u8]| connection::check(data));

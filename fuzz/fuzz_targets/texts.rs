#![no_main]

#[path = "../../crates/lab/tests/fuzzing/texts.rs"]
mod texts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    texts::check_scenario(data);
    texts::check_tc(data);
});

#![no_main]

#[path = "../../crates/net/tests/fuzzing/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    files::check_deliveries(data);
    files::check_movements(data);
    files::check_placements(data);
});

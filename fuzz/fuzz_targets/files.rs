#![no_main]

#[path = "../../crates/net/tests/fuzzing/files.rs"]
mod deliveries;
#[path = "../../crates/radio/tests/fuzzing/files.rs"]
mod nodes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    deliveries::check_deliveries(data);
    nodes::check_movements(data);
    nodes::check_placements(data);
});

//! Measures one scenario without Python around it, for a profiler and for comparing two versions:
//! `cargo run --release -p weir-lab --example scenario -- FILE [RUNS]`.
//!
//! Prints a line per run: CPU seconds, events per second of CPU time and the trace hash.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::{env, error, fs};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch};
use weir_lab::{Scenario, World, run};

fn main() -> Result<(), Box<dyn error::Error>> {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().ok_or("a scenario file, please")?;
    let runs: u32 = arguments.next().map_or(Ok(1), |runs| runs.parse())?;
    let text = fs::read_to_string(&file)?;
    for _ in 0..runs {
        let before = cpu_seconds()?;
        let scenario = Scenario::parse(&text, &[], &file)?;
        let results = run(&scenario, 1, World::Sim)?;
        let cpu = cpu_seconds()? - before;
        let mut tables = results.tables().iter();
        let summary = &tables.find(|table| table.name == "summary").ok_or("no summary")?.batch;
        let events = column(summary, "events")?.as_primitive::<UInt64Type>().value(0);
        let hash = column(summary, "trace_hash")?.as_string::<i32>().value(0);
        println!("{cpu:.4} s, {:.3} M events/s, hash {hash}", events as f64 / cpu / 1e6);
    }
    Ok(())
}

fn column<'a>(table: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, String> {
    table.column_by_name(name).ok_or_else(|| format!("no column {name}"))
}

/// CPU time of this process, from the kernel's account of it.
fn cpu_seconds() -> Result<f64, Box<dyn error::Error>> {
    let stat = fs::read_to_string("/proc/self/schedstat")?;
    let nanos: u64 = stat.split_whitespace().next().ok_or("no CPU time")?.parse()?;
    Ok(nanos as f64 / 1e9)
}

//! The JavaScript interface.

use std::panic;

use wasm_bindgen::prelude::wasm_bindgen;

use crate::session::Session;

/// A run in progress.
#[wasm_bindgen]
pub struct Lab {
    session: Session,
}

/// Lets a broken invariant reach the page as an exception with its message.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|info| wasm_bindgen::throw_str(&info.to_string())));
}

/// Everything that a scenario may name, as JSON.
#[wasm_bindgen]
pub fn catalogue() -> String {
    weir_lab::catalogue().to_string()
}

#[wasm_bindgen]
impl Lab {
    /// Reads a scenario file with `overrides`, each `KEY=VALUE`, and prepares its run.
    ///
    /// # Errors
    /// A message that names the place, the key and the value.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, overrides: Vec<String>, seed: u64) -> Result<Self, String> {
        let split = |setting: &String| {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            (key.to_owned(), value.to_owned())
        };
        let overrides: Vec<(String, String)> = overrides.iter().map(split).collect();
        Ok(Self { session: Session::new(text, &overrides, seed)? })
    }

    /// Moves on to `until` seconds, by at most `max_events` events: 0 it is there, 1 it may go on, 2 the
    /// run is over.
    ///
    /// # Errors
    /// The message of a checker.
    pub fn advance(&mut self, until: f64, max_events: u32) -> Result<u8, String> {
        Ok(self.session.advance(until, max_events.into())? as u8)
    }

    /// Sets the window of the flow that a person controls, from `at_ms` milliseconds of the run on.
    ///
    /// # Errors
    /// A message that says why it is not allowed.
    pub fn set_window(&mut self, at_ms: u32, segments: u32) -> Result<(), String> {
        self.session.set_window(at_ms, segments)
    }

    /// Links, flows and nodes, as JSON.
    pub fn describe(&mut self) -> String {
        self.session.describe()
    }

    /// The time of the last event in seconds.
    pub fn now(&self) -> f64 {
        self.session.now()
    }

    /// The hash over every delivery so far, in hexadecimal digits.
    pub fn trace_hash(&self) -> String {
        format!("{:016x}", self.session.trace_hash())
    }

    /// Up to when packets or frames are recorded, in seconds; infinite if all are.
    pub fn recorded_until(&self) -> f64 {
        self.session.recorded_until()
    }

    /// How many ways over links, or frames, are recorded at most.
    pub fn most_recorded(&self) -> u32 {
        self.session.most_recorded() as u32
    }

    /// New rows of packets.
    pub fn take_packets(&mut self) -> Vec<f64> {
        self.session.take_packets()
    }

    /// New rows of ways over links.
    pub fn take_crossings(&mut self) -> Vec<f64> {
        self.session.take_crossings()
    }

    /// New rows of SACK blocks.
    pub fn take_sacks(&mut self) -> Vec<f64> {
        self.session.take_sacks()
    }

    /// New samples of flows.
    pub fn take_samples(&mut self) -> Vec<f64> {
        self.session.take_samples()
    }

    /// New samples of links.
    pub fn take_queues(&mut self) -> Vec<f64> {
        self.session.take_queues()
    }

    /// New rows of frames of a radio network.
    pub fn take_frames(&mut self) -> Vec<f64> {
        self.session.take_frames()
    }

    /// New events, as JSON.
    pub fn take_events(&mut self) -> String {
        self.session.take_events()
    }

    /// The phases' names, as JSON.
    pub fn phases(&self) -> String {
        self.session.phases()
    }
}

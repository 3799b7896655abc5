//! A run in progress, as a page sees it.

use std::sync::Arc;

use serde_json::{Value, json};
use weir_lab::{Scenario, simulation};
use weir_scene::RunSpec;
use weir_sim::{Progress, Simulation};
use weir_trace::EventRow;
use weir_units::{Duration, Instant};

use crate::by_hand::Inputs;
use crate::describe::describe;
use crate::recorder::Recorder;
use crate::rows;

/// A run in progress, and what of it was not read yet.
pub struct Session {
    simulation: Simulation,
    recorder: Recorder,
    /// The windows of a flow that a person controls, if there is one.
    inputs: Option<Inputs>,
    name: String,
    state: State,
    /// Rows of the tables that were read.
    read: Read,
    /// Frames of a radio network that are still to be recorded, and when the last of them ended.
    frames_left: usize,
    last_frame: f64,
    /// The controllers' phases seen so far; a sample has the index of its own.
    phases: Vec<&'static str>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The next event is later than it was to go.
    Paused = 0,
    /// It may go on at once: it has handled as many events as it was allowed to.
    Running = 1,
    /// It is over.
    Ended = 2,
}

/// How many rows of each table were read.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    samples: usize,
    queues: usize,
    events: usize,
}

/// Rows of table `events` that are kept.
const MAX_EVENTS: &str = "200000";
/// Ways over links that are recorded, about 100 MB in a page.
const MAX_CROSSINGS: usize = 2_000_000;
/// Frames of a radio network that are recorded, about 50 MB in a page.
const MAX_FRAMES: usize = 500_000;
/// Times of a run at which flows and links are sampled.
const SAMPLES: u64 = 2_000;
/// Of many flows and links fewer times, so that these have about this many rows, 60 MB in a page.
const MAX_ROWS: u64 = 500_000;
/// Below the time of a full packet at any usual rate samples say nothing new.
const LEAST_INTERVAL: Duration = Duration::from_micros(1);

impl Session {
    /// Reads a scenario file with `overrides` (dotted keys with values) on top of it, and prepares its
    /// run with `seed`. Flows and links are sampled 2,000 times, and less often if there are many.
    ///
    /// # Errors
    /// For anything that is not allowed, with its place, key and value.
    pub fn new(text: &str, overrides: &[(String, String)], seed: u64) -> Result<Self, String> {
        let written = parse(text, overrides)?;
        let settings = [
            ("measure.sample_interval".to_owned(), interval(written.spec()).to_string()),
            ("measure.events".to_owned(), MAX_EVENTS.to_owned()),
            ("measure.frames".to_owned(), MAX_FRAMES.to_string()),
        ];
        let mut scenario = parse(text, &[overrides, &settings].concat())?;
        let mut inputs = None;
        let hosted = scenario.host_scripts(&mut |script, _| {
            let list = Inputs::parse(script)?;
            inputs = Some(list.clone());
            Ok(Arc::new(list))
        });
        hosted.map_err(|error| error.to_string())?;
        let mut simulation = simulation(&scenario, seed).map_err(|error| error.to_string())?;
        let recorder = Recorder::new(simulation.spec(), MAX_CROSSINGS);
        simulation.watch(&recorder);
        let name = scenario.file().name.clone();
        let (state, read, phases) = (State::Paused, Read::default(), Vec::new());
        let frames_left = MAX_FRAMES;
        let last_frame = f64::INFINITY;
        Ok(Self {
            simulation,
            recorder,
            inputs,
            name,
            state,
            read,
            frames_left,
            last_frame,
            phases,
        })
    }

    /// Moves on to `until` seconds, by at most `max_events` events.
    ///
    /// # Errors
    /// If a checker finds the simulator at fault.
    pub fn advance(&mut self, until: f64, max_events: u64) -> Result<State, String> {
        if self.state == State::Ended {
            return Ok(self.state);
        }
        // A number of the page: negative, infinite or NaN is possible, and the cast saturates.
        let until = Instant::ZERO + Duration::from_nanos((until * 1e9) as u64);
        let progress = self.simulation.advance(until, max_events, &mut self.recorder);
        self.state = match progress.map_err(|error| error.to_string())? {
            Progress::Reached => State::Paused,
            Progress::Interrupted => State::Running,
            Progress::Ended => State::Ended,
        };
        if self.state == State::Ended {
            self.recorder.finish();
        }
        Ok(self.state)
    }

    /// Sets the window of the flow that a person controls, from `at_ms` milliseconds of the run on.
    ///
    /// # Errors
    /// If no flow is controlled by a person, the run has passed that time, or the window is not allowed.
    pub fn set_window(&mut self, at_ms: u32, segments: u32) -> Result<(), String> {
        let inputs = self.inputs.as_ref().ok_or("no flow of this run is controlled by a person")?;
        let at = Instant::ZERO + Duration::from_millis(at_ms.into());
        if at <= self.simulation.now() {
            let now = self.now();
            return Err(format!("windows: {at_ms} ms is not allowed; the run is at {now} s"));
        }
        inputs.add(at_ms, segments)
    }

    /// Links, flows and nodes, as JSON.
    pub fn describe(&mut self) -> String {
        let nodes = self.simulation.nodes();
        describe(&self.name, self.simulation.spec(), &nodes)
    }

    /// The time of the last event in seconds.
    pub fn now(&self) -> f64 {
        self.simulation.now().as_secs_f64()
    }

    /// The hash over every delivery so far, as `weir run` writes it.
    pub fn trace_hash(&self) -> u64 {
        self.simulation.trace_hash()
    }

    /// Up to when packets or frames are recorded, in seconds; infinite if all are. Samples and events go on.
    pub fn recorded_until(&self) -> f64 {
        match self.recorder.cut {
            Some(cut) => cut.as_secs_f64(),
            None if self.frames_left == 0 => self.last_frame,
            None => f64::INFINITY,
        }
    }

    /// How many ways over links, or frames of a radio network, are recorded at most.
    pub fn most_recorded(&self) -> usize {
        if self.simulation.spec().radio.is_some() { MAX_FRAMES } else { MAX_CROSSINGS }
    }

    /// Packets since this was called last, [`PACKET`](crate::PACKET) columns each.
    pub fn take_packets(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.recorder.packets)
    }

    /// Completed ways over links since this was called last, [`CROSSING`](crate::CROSSING) columns each.
    pub fn take_crossings(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.recorder.crossings)
    }

    /// SACK blocks since this was called last, [`SACK`](crate::SACK) columns each.
    pub fn take_sacks(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.recorder.sacks)
    }

    /// Samples of flows since this was called last, [`SAMPLE`](crate::SAMPLE) columns each.
    pub fn take_samples(&mut self) -> Vec<f64> {
        let Self { simulation, read, phases, .. } = self;
        let new = &simulation.samples()[read.samples..];
        read.samples += new.len();
        new.iter().flat_map(|row| rows::sample(row, index_of(phases, row.phase))).collect()
    }

    /// Samples of links since this was called last, [`QUEUE`](crate::QUEUE) columns each.
    pub fn take_queues(&mut self) -> Vec<f64> {
        let new = &self.simulation.queues()[self.read.queues..];
        self.read.queues += new.len();
        new.iter().flat_map(rows::queue).collect()
    }

    /// Frames of a radio network since this was called last, [`FRAME`](crate::FRAME) columns each.
    pub fn take_frames(&mut self) -> Vec<f64> {
        let new = self.simulation.take_frames();
        let kept = &new[..new.len().min(self.frames_left)];
        self.frames_left -= kept.len();
        self.last_frame = kept.last().map_or(self.last_frame, |frame| frame.end_s);
        kept.iter().flat_map(rows::frame).collect()
    }

    /// Events since this was called last, as a JSON list. Drops of links are not among them: ways over links
    /// have them.
    pub fn take_events(&mut self) -> String {
        let is_radio = self.simulation.spec().radio.is_some();
        let new = &self.simulation.events()[self.read.events..];
        self.read.events += new.len();
        let listed = new.iter().filter(|row| is_radio || row.kind != "dropped").map(event);
        Value::Array(listed.collect()).to_string()
    }

    /// The names of phases that samples so far refer to, as a JSON list.
    pub fn phases(&self) -> String {
        json!(self.phases).to_string()
    }
}

fn parse(text: &str, overrides: &[(String, String)]) -> Result<Scenario, String> {
    Scenario::parse(text, overrides, "scenario").map_err(|error| error.to_string())
}

/// The time between two samples.
fn interval(spec: &RunSpec) -> Duration {
    let monitored = spec.links.iter().filter(|link| link.monitored).count();
    let rows = (spec.flows.len() + monitored) as u64;
    let samples = SAMPLES.min(MAX_ROWS / rows.max(1)).max(1);
    (spec.measure.duration / samples).clamp(LEAST_INTERVAL, Duration::from_secs(1))
}

fn index_of(phases: &mut Vec<&'static str>, phase: &'static str) -> usize {
    phases.iter().position(|known| *known == phase).unwrap_or_else(|| {
        phases.push(phase);
        phases.len() - 1
    })
}

fn event(row: &EventRow) -> Value {
    json!({ "t_s": row.t_s, "flow": row.flow, "kind": row.kind, "detail": row.detail })
}

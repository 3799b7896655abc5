//! A controller whose window a person sets, as a list of times and windows.
//!
//! A stack names it `by_hand.py:ByHand(windows=0:10 350:24)`: milliseconds of the run and segments. The file in
//! `[controllers]` is a controller in Python that replays the same list, so that `weir run` makes the same run. The
//! list may grow while the run goes on, after the time that the run has reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_cc::{
    AckEvent, BuildScripted, CcContext, CongestionController, CongestionEvent, Needs, Script,
};
use weir_units::{Bytes, Duration, Instant};

/// A list of times and windows, shared with the controllers that replay it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inputs(Arc<Mutex<Vec<Input>>>);

#[derive(Clone, Copy, Debug)]
struct Input {
    at: Instant,
    segments: u64,
}

impl Inputs {
    /// Reads the list of `script`, whose file is not read here.
    pub(crate) fn parse(script: &Script) -> Result<Self, String> {
        let is_by_hand = (script.file(), script.class()) == (FILE, CLASS);
        let [(key, value)] = script.parameters() else { return Err(message(script)) };
        if !is_by_hand || key != "windows" {
            return Err(message(script));
        }
        let inputs = Self::default();
        for word in value.split_whitespace() {
            let input = word.split_once(':').and_then(|(at, segments)| {
                Some((at.parse::<u32>().ok()?, segments.parse::<u32>().ok()?))
            });
            let (at_ms, segments) = input.ok_or_else(|| {
                format!(
                    "windows: '{word}' is not allowed; it is MILLISECONDS:SEGMENTS, as in 350:24"
                )
            })?;
            inputs.add(at_ms, segments)?;
        }
        Ok(inputs)
    }

    /// Adds a window, from `at_ms` on.
    pub(crate) fn add(&self, at_ms: u32, segments: u32) -> Result<(), String> {
        let mut list = self.lock();
        let at = Instant::ZERO + Duration::from_millis(at_ms.into());
        if list.last().is_some_and(|last| last.at >= at) {
            return Err(format!("windows: {at_ms} ms is not allowed; times must ascend"));
        }
        if !(1..=MAX_SEGMENTS).contains(&segments) {
            let range = format!("1 to {MAX_SEGMENTS} segments");
            return Err(format!("windows: {segments} is not allowed; a window has {range}"));
        }
        if list.len() >= MAX_INPUTS {
            return Err(format!("windows: at most {MAX_INPUTS} are allowed"));
        }
        list.push(Input { at, segments: segments.into() });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Input>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BuildScripted for Inputs {
    fn build(&self, mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
        let mut built = ByHand { inputs: self.clone(), next: 0, cwnd: initial_window };
        built.update(Instant::ZERO, mss);
        Box::new(built)
    }
}

/// The window of the newest input whose time has come.
#[derive(Clone, Debug)]
struct ByHand {
    inputs: Inputs,
    /// Index of the first input whose time has not come.
    next: usize,
    cwnd: Bytes,
}

impl ByHand {
    fn update(&mut self, now: Instant, mss: Bytes) {
        let list = self.inputs.lock();
        while let Some(input) = list.get(self.next).filter(|input| input.at <= now) {
            self.cwnd = mss * input.segments;
            self.next += 1;
        }
    }
}

impl CongestionController for ByHand {
    fn name(&self) -> &'static str {
        "by-hand"
    }

    /// The person's window alone says what may be sent, in recovery too.
    fn needs(&self) -> Needs {
        Needs { own_reduction: true, ..Needs::default() }
    }

    fn on_sent(&mut self, cx: &mut CcContext<'_>, _bytes: Bytes) {
        self.update(cx.now, cx.mss);
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, _event: &CongestionEvent) {
        self.update(cx.now, cx.mss);
    }

    fn on_ack(&mut self, cx: &mut CcContext<'_>, _ack: &AckEvent) {
        self.update(cx.now, cx.mss);
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn phase(&self) -> &'static str {
        "by_hand"
    }
}

fn message(script: &Script) -> String {
    format!("'{script}' cannot run in a page; only {FILE}:{CLASS}(windows=…) can")
}

const FILE: &str = "by_hand.py";
const CLASS: &str = "ByHand";
const MAX_SEGMENTS: u32 = 10_000;
/// More than a person gives in a run of ten minutes.
const MAX_INPUTS: usize = 20_000;

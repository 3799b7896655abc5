//! A relay or link at work in a thread of its own.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;

use weir_units::Duration;

use super::health::Report;

/// A carrier of packets that runs until it is stopped.
pub trait Carrier {
    /// Carries packets, and calls `step` every [`CALL_INTERVAL`] until that says otherwise.
    ///
    /// # Errors
    /// What the system reports when nothing can be carried any more.
    fn run(&mut self, step: &mut dyn FnMut(&mut Self) -> ControlFlow<()>) -> io::Result<()>;

    /// What it did so far.
    fn report(&mut self) -> Report;
}

/// A [`Carrier`] at work. It stops when this is dropped.
#[derive(Debug)]
pub struct Background {
    questions: Option<Sender<Sender<Report>>>,
    thread: Option<JoinHandle<io::Result<Report>>>,
}

impl Background {
    /// Sets `carrier` to work.
    pub fn start<C: Carrier + Send + 'static>(mut carrier: C) -> Self {
        let (questions, asked) = channel();
        let thread = std::thread::spawn(move || {
            carrier.run(&mut |carrier| answer(&asked, carrier))?;
            Ok(carrier.report())
        });
        Self { questions: Some(questions), thread: Some(thread) }
    }

    /// What it did so far; `None` once it has ended, which [`Self::stop`] explains.
    pub fn report(&self) -> Option<Report> {
        let (reply, answer) = channel();
        self.questions.as_ref()?.send(reply).ok()?;
        answer.recv().ok()
    }

    /// Stops it.
    ///
    /// # Errors
    /// Why it stopped by itself, if it did.
    pub fn stop(mut self) -> io::Result<Report> {
        self.end().unwrap_or_else(|| Ok(Report::default()))
    }

    fn end(&mut self) -> Option<io::Result<Report>> {
        self.questions = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(io::Error::other("the relay's thread has panicked"))))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.end();
    }
}

fn answer<C: Carrier>(asked: &Receiver<Sender<Report>>, carrier: &mut C) -> ControlFlow<()> {
    match asked.try_recv() {
        Ok(reply) => {
            // Who asked may have gone.
            let _ = reply.send(carrier.report());
            ControlFlow::Continue(())
        }
        Err(TryRecvError::Empty) => ControlFlow::Continue(()),
        Err(TryRecvError::Disconnected) => ControlFlow::Break(()),
    }
}

/// How often a carrier looks up from its work.
pub const CALL_INTERVAL: Duration = Duration::from_millis(20);

//! Flows between two programs that are not ours, in the world of the kernel's TCP.
//!
//! The programs run in the namespaces of that world. What the flow delivered is counted by its packets.

use std::path::PathBuf;
use std::sync::Arc;

use weir_units::Duration;

/// The programs of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSpec {
    /// What the tables call them, as the scenario writes it.
    pub name: String,
    /// How they are started; what hosts them fills this in before a run.
    pub commands: Option<Arc<ProgramCommands>>,
}

/// How the programs of a flow are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCommands {
    /// The end whose data is measured.
    pub sender: ProgramEnd,
    /// Started one after the other before the time of the run begins: each is ready before the next.
    pub before: Vec<ProcessSpec>,
    /// The client, which is started when the flow starts. The flow ends with it.
    pub client: ProcessSpec,
}

/// An end of a flow between programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It connects.
    Client,
    /// It is connected to.
    Server,
}

/// A process to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Where it runs.
    pub end: ProgramEnd,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that its environment has in addition.
    pub environment: Vec<(String, String)>,
    /// Its working folder.
    pub folder: PathBuf,
    /// The files that receive its standard output and its standard error.
    pub outputs: [PathBuf; 2],
    /// When it is ready.
    pub ready: Readiness,
}

/// What a process must have or do before the next is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It has ended, with exit code 0.
    Ended,
    /// TCP listens or UDP receives at this port of its namespace.
    Port(u16),
    /// It has printed this.
    Line(String),
    /// It runs for this long.
    Delay(Duration),
}

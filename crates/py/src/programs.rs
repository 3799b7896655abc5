//! Programs of flows: their names, their addresses, their commands.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir_lab::{ContenderName, ProcessSpec, ProgramCommands, ProgramEnd, Readiness};

/// The commands of a flow, as a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Programs {
    flow: u32,
    sender: String,
    before: Vec<Process>,
    client: Process,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Process {
    end: String,
    command: Vec<String>,
    environment: Vec<[String; 2]>,
    folder: PathBuf,
    outputs: [PathBuf; 2],
    ready: [String; 2],
}

impl Programs {
    /// The flow and its commands.
    pub(crate) fn commands(self) -> PyResult<(u32, ProgramCommands)> {
        let before = self.before.into_iter().map(Process::spec).collect::<PyResult<_>>()?;
        let (sender, client) = (end(&self.sender)?, self.client.spec()?);
        Ok((self.flow, ProgramCommands { sender, before, client }))
    }
}

impl Process {
    fn spec(self) -> PyResult<ProcessSpec> {
        if self.command.is_empty() {
            return Err(PyValueError::new_err("a command is empty"));
        }
        Ok(ProcessSpec {
            end: end(&self.end)?,
            command: self.command,
            environment: self.environment.into_iter().map(|[name, value]| (name, value)).collect(),
            folder: self.folder,
            outputs: self.outputs,
            ready: readiness(&self.ready[0], &self.ready[1])?,
        })
    }
}

fn end(name: &str) -> PyResult<ProgramEnd> {
    match name {
        "client" => Ok(ProgramEnd::Client),
        "server" => Ok(ProgramEnd::Server),
        _ => Err(PyValueError::new_err(format!("'{name}' is neither client nor server"))),
    }
}

fn readiness(kind: &str, value: &str) -> PyResult<Readiness> {
    let refused = || PyValueError::new_err(format!("{kind}:{value}: no condition to be ready"));
    Ok(match kind {
        "ended" => Readiness::Ended,
        "port" => Readiness::Port(value.parse().map_err(|_| refused())?),
        "line" => Readiness::Line(value.to_owned()),
        "delay" => Readiness::Delay(value.parse().map_err(|_| refused())?),
        _ => return Err(refused()),
    })
}

/// The name of a definition, and parameters.
type Named = (String, Vec<(String, String)>);

/// The definition that a stack `contender:NAME(key=value,…)` names, and its parameters; None for another
/// stack.
#[pyfunction]
pub(crate) fn parse_contender(stack: &str) -> PyResult<Option<Named>> {
    if !ContenderName::is_meant(stack) {
        return Ok(None);
    }
    let parsed: ContenderName = stack.parse().map_err(PyValueError::new_err)?;
    Ok(Some((parsed.name, parsed.parameters)))
}

/// In world `kernel`: the address of senders, that of receivers, and the port of the first flow; that of
/// each next flow is one higher.
#[cfg(target_os = "linux")]
#[pyfunction]
pub(crate) fn kernel_ends() -> (String, String, u16) {
    let [sender, receiver] = weir_links::emulator::ADDRESSES;
    (sender.to_string(), receiver.to_string(), weir_kernel::FIRST_PORT)
}

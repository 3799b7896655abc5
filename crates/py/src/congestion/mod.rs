//! Controllers written in Python, behind the trait of those in Rust.
//!
//! A class is loaded by `weir.controllers.congestion` once for a run, which calls it once for each connection. The
//! interpreter's lock is held for one call at a time: fill the records, call the method, read the
//! window. Methods that a class does not define are not called. The trait has no way to fail, so the
//! first error is kept in [`Faults`], the controller does nothing more, and the watcher of the run ends it.

mod output;
mod records;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{create_exception, intern};
use weir_cc as cc;
use weir_cc::{BuildScripted, CongestionController, Needs, Script};
use weir_lab::{Scenario, ScenarioError};
use weir_units::{Bytes, Ecn, Rate};

use self::output::{Output, Refusal};
pub(crate) use self::records::{AckEvent, CcContext, CongestionEvent, PathEvent};

create_exception!(
    weir,
    ControllerError,
    pyo3::exceptions::PyRuntimeError,
    "A controller in Python went wrong: the file, the line, the method, and what happened there."
);

/// What the controllers of a run did wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    any: AtomicBool,
    first: Mutex<Option<Fault>>,
}

/// What ended the work of a controller.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Its own mistake, in one line.
    Error(String),
    /// Not the controller's: Ctrl-C during a call.
    Interrupted(PyErr),
}

impl Faults {
    /// Whether there is one; a run goes on no longer then.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The first, once.
    pub(crate) fn take(&self) -> Option<Fault> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, fault: Fault) {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.any.store(true, Ordering::Relaxed);
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Error(text) => ControllerError::new_err(text),
            Fault::Interrupted(error) => error,
        }
    }
}

/// Loads what the scenario's flows need and lets it build their controllers. Texts that the user has not
/// allowed to run are refused.
pub(crate) fn host(
    py: Python<'_>,
    scenario: &mut Scenario,
    faults: &Arc<Faults>,
) -> Result<(), ScenarioError> {
    scenario.host_scripts(&mut |script, text| {
        refuse_untrusted(py, script, text).map_err(|error| one_line(py, &error))?;
        host_script(py, script, text, faults)
    })
}

fn refuse_untrusted(py: Python<'_>, script: &Script, text: &str) -> PyResult<()> {
    let refuse = py.import("weir.controllers.trust")?.getattr("refuse_untrusted")?;
    refuse.call1((script.file(), text)).map(drop)
}

/// Loads one class from the text of its file, which the user has named or allowed.
fn host_script(
    py: Python<'_>,
    script: &Script,
    text: &str,
    faults: &Arc<Faults>,
) -> Result<Arc<dyn BuildScripted>, String> {
    let class = Class::load(py, script, text, faults).map_err(|error| one_line(py, &error))?;
    class.check(py)?;
    Ok(Arc::new(class))
}

/// Loads a controller in Python from the file that the user has named. Others stay as they are.
pub(crate) fn host_controller(
    py: Python<'_>,
    controller: &mut cc::CcConfig,
    faults: &Arc<Faults>,
) -> Result<(), String> {
    if let cc::CcConfig::Script(script) = controller {
        let text = weir_lab::read_script(Path::new(script.file()))?;
        let host = host_script(py, script, &text, faults)?;
        script.set_host(host);
    }
    Ok(())
}

fn one_line(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A class of controllers.
#[derive(Debug)]
struct Class {
    class: Py<PyAny>,
    file: String,
    faults: Arc<Faults>,
}

impl Class {
    fn load(py: Python<'_>, script: &Script, text: &str, faults: &Arc<Faults>) -> PyResult<Self> {
        let load = py.import("weir.controllers.congestion")?.getattr("load")?;
        let given = script.parameters().to_vec();
        let class = load.call1((script.file(), text, script.class(), given))?.unbind();
        Ok(Self { class, file: script.file().to_owned(), faults: Arc::clone(faults) })
    }

    /// Builds a controller once as a check, so that its errors are reported before a run.
    fn check(&self, py: Python<'_>) -> Result<(), String> {
        let (mss, initial_window) = (Bytes(1_448), Bytes(14_480));
        Instance::new(py, self, mss, initial_window).map(drop).map_err(|fault| match fault {
            Fault::Error(text) => text,
            Fault::Interrupted(error) => error.to_string(),
        })
    }

    /// The same class for another controller.
    fn shared(&self, py: Python<'_>) -> Self {
        let (class, file) = (self.class.clone_ref(py), self.file.clone());
        Self { class, file, faults: Arc::clone(&self.faults) }
    }

    /// What a mistake is called, where the file's last line that took part in it stands.
    fn fault(&self, py: Python<'_>, error: PyErr) -> Fault {
        if !error.is_instance_of::<pyo3::exceptions::PyException>(py)
            && !error.is_instance_of::<pyo3::exceptions::PySystemExit>(py)
        {
            return Fault::Interrupted(error);
        }
        let text = error.to_string();
        // With its traceback.
        let error = error.into_value(py);
        let described = py
            .import(intern!(py, "weir.controllers.congestion"))
            .and_then(|module| module.call_method1("error_text", (error, &self.file)))
            .and_then(|text| text.extract::<String>());
        Fault::Error(described.unwrap_or_else(|_| format!("{}: {text}", self.file)))
    }
}

impl BuildScripted for Class {
    fn build(&self, mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
        let built = Python::attach(|py| {
            let class = self.shared(py);
            let made = Instance::new(py, &class, mss, initial_window);
            (class, made)
        });
        let (class, made) = built;
        let (instance, output, needs) = match made {
            Ok((instance, output, needs)) => (Some(instance), output, needs),
            Err(fault) => {
                class.faults.note(fault);
                (None, Output::initial(initial_window), Needs::default())
            }
        };
        Box::new(Controller { class, instance, output, needs })
    }
}

/// A controller in Python and everything that is handed to it.
#[derive(Debug)]
struct Instance {
    object: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_congestion: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    on_epoch_end: Option<Py<PyAny>>,
    on_spurious: Option<Py<PyAny>>,
    on_path: Option<Py<PyAny>>,
    variables: Option<Py<PyAny>>,
    context: Py<CcContext>,
    ack: Py<AckEvent>,
    congestion: Py<CongestionEvent>,
    path: Py<PathEvent>,
}

impl Instance {
    fn new(
        py: Python<'_>,
        class: &Class,
        mss: Bytes,
        initial_window: Bytes,
    ) -> Result<(Self, Output, Needs), Fault> {
        let (instance, needs) =
            Self::build(py, class, mss, initial_window).map_err(|error| class.fault(py, error))?;
        let output = instance.output(py, class, mss, "__init__")?;
        Ok((instance, output, needs))
    }

    fn build(
        py: Python<'_>,
        class: &Class,
        mss: Bytes,
        initial_window: Bytes,
    ) -> PyResult<(Self, Needs)> {
        let object = class.class.bind(py).call1((mss.get(), initial_window.get()))?;
        let needs = Needs {
            ecn: if object.getattr("needs_ecn")?.is_truthy()? { Ecn::Ect0 } else { Ecn::NotEct },
            rate_samples: true,
            own_reduction: object.getattr("needs_own_reduction")?.is_truthy()?,
            ..Needs::default()
        };
        Ok((Self::of(py, object.unbind())?, needs))
    }

    /// The instance of `object`, with the methods that its class defines.
    fn of(py: Python<'_>, object: Py<PyAny>) -> PyResult<Self> {
        let object = object.into_bound(py);
        let base = py.import("weir.controllers.congestion")?.getattr("CongestionControl")?;
        let own = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let defined = object.get_type().getattr(name)?;
            if defined.is(&base.cast::<PyType>()?.getattr(name)?) {
                return Ok(None);
            }
            object.getattr(name).map(|method| Some(method.unbind()))
        };
        Ok(Self {
            on_ack: object.getattr("on_ack")?.unbind(),
            on_congestion: object.getattr("on_congestion")?.unbind(),
            on_sent: own("on_sent")?,
            on_epoch_end: own("on_epoch_end")?,
            on_spurious: own("on_spurious")?,
            on_path: own("on_path")?,
            variables: own("variables")?,
            context: Py::new(py, CcContext::default())?,
            ack: Py::new(py, AckEvent::default())?,
            congestion: Py::new(py, CongestionEvent::default())?,
            path: Py::new(py, PathEvent::default())?,
            object: object.unbind(),
        })
    }

    /// A copy that shares nothing with it, as `copy.deepcopy` makes it.
    fn copied(&self, py: Python<'_>) -> PyResult<Self> {
        Self::of(py, py.import("copy")?.call_method1("deepcopy", (&self.object,))?.unbind())
    }

    /// What it says after `method`.
    fn output(
        &self,
        py: Python<'_>,
        class: &Class,
        mss: Bytes,
        method: &str,
    ) -> Result<Output, Fault> {
        let read = Output::read(self.object.bind(py), mss);
        read.map_err(|refusal| self.fault(py, class, method, refusal))
    }

    /// Its internal variables.
    fn variables(&self, py: Python<'_>, class: &Class) -> Result<Vec<cc::Variable>, Fault> {
        let Some(method) = &self.variables else { return Ok(Vec::new()) };
        let found = method.call0(py).map_err(Refusal::from);
        let read = found.and_then(|found| output::variables(found.bind(py)));
        read.map_err(|refusal| self.fault(py, class, "variables", refusal))
    }

    fn fault(&self, py: Python<'_>, class: &Class, method: &str, refusal: Refusal) -> Fault {
        match refusal {
            Refusal::Raised(error) => class.fault(py, error),
            Refusal::Value(message) => {
                let object = self.object.bind(py);
                let place = py
                    .import("weir.controllers.congestion")
                    .and_then(|module| module.call_method1("place", (object, method, &class.file)))
                    .and_then(|text| text.extract::<String>());
                let place = place.unwrap_or_else(|_| class.file.clone());
                Fault::Error(format!("{place}: {message}"))
            }
        }
    }

    /// Whether its class defines what this event calls.
    fn listens_to(&self, event: &Event<'_>) -> bool {
        match event {
            Event::Ack(_) | Event::Congestion(_) => true,
            Event::Sent(_) => self.on_sent.is_some(),
            Event::EpochEnd => self.on_epoch_end.is_some(),
            Event::Spurious => self.on_spurious.is_some(),
            Event::Path(_) => self.on_path.is_some(),
        }
    }

    fn call(&self, py: Python<'_>, cx: &mut cc::CcContext<'_>, event: &Event<'_>) -> PyResult<()> {
        self.context.try_borrow_mut(py)?.fill(cx);
        let context = &self.context;
        let call = |method: &Option<Py<PyAny>>| match method {
            Some(method) => method.call1(py, (context,)).map(drop),
            None => Ok(()),
        };
        match event {
            Event::Ack(ack) => {
                self.ack.try_borrow_mut(py)?.fill(ack);
                self.on_ack.call1(py, (context, &self.ack)).map(drop)
            }
            Event::Congestion(event) => {
                self.congestion.try_borrow_mut(py)?.fill(event);
                self.on_congestion.call1(py, (context, &self.congestion)).map(drop)
            }
            Event::Sent(bytes) => match &self.on_sent {
                Some(method) => method.call1(py, (context, bytes.get())).map(drop),
                None => Ok(()),
            },
            Event::EpochEnd => call(&self.on_epoch_end),
            Event::Spurious => call(&self.on_spurious),
            Event::Path(event) => match &self.on_path {
                Some(method) if self.path.try_borrow_mut(py)?.fill(event) => {
                    method.call1(py, (context, &self.path)).map(drop)
                }
                _ => Ok(()),
            },
        }
    }
}

/// What a controller receives.
enum Event<'a> {
    Ack(&'a cc::AckEvent),
    Congestion(&'a cc::CongestionEvent),
    Sent(Bytes),
    EpochEnd,
    Spurious,
    Path(&'a cc::PathEvent),
}

impl Event<'_> {
    /// The method that hears of it.
    fn method(&self) -> &'static str {
        match self {
            Self::Ack(_) => "on_ack",
            Self::Congestion(_) => "on_congestion",
            Self::Sent(_) => "on_sent",
            Self::EpochEnd => "on_epoch_end",
            Self::Spurious => "on_spurious",
            Self::Path(_) => "on_path",
        }
    }
}

/// A controller in Python as the transport sees it.
#[derive(Debug)]
struct Controller {
    class: Class,
    /// None once it has failed.
    instance: Option<Instance>,
    output: Output,
    needs: Needs,
}

impl Controller {
    fn notify(&mut self, cx: &mut cc::CcContext<'_>, event: &Event<'_>) {
        let Some(instance) = self.instance.as_ref().filter(|i| i.listens_to(event)) else { return };
        let said = Python::attach(|py| {
            instance.call(py, cx, event).map_err(|error| self.class.fault(py, error))?;
            instance.output(py, &self.class, cx.mss, event.method())
        });
        match said {
            Ok(output) => self.output = output,
            Err(fault) => {
                self.class.faults.note(fault);
                self.instance = None;
            }
        }
    }
}

impl Clone for Controller {
    fn clone(&self) -> Self {
        let (class, instance) = Python::attach(|py| {
            let copied = self.instance.as_ref().map(|instance| instance.copied(py)).transpose();
            (self.class.shared(py), copied.map_err(|error| self.class.fault(py, error)))
        });
        let instance = instance.unwrap_or_else(|fault| {
            class.faults.note(fault);
            None
        });
        Self { class, instance, output: self.output.clone(), needs: self.needs }
    }
}

impl CongestionController for Controller {
    fn name(&self) -> &'static str {
        "python"
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_sent(&mut self, cx: &mut cc::CcContext<'_>, bytes: Bytes) {
        self.notify(cx, &Event::Sent(bytes));
    }

    fn on_congestion(&mut self, cx: &mut cc::CcContext<'_>, event: &cc::CongestionEvent) {
        self.notify(cx, &Event::Congestion(event));
    }

    fn on_ack(&mut self, cx: &mut cc::CcContext<'_>, ack: &cc::AckEvent) {
        self.notify(cx, &Event::Ack(ack));
    }

    fn on_epoch_end(&mut self, cx: &mut cc::CcContext<'_>) {
        self.notify(cx, &Event::EpochEnd);
    }

    fn on_spurious(&mut self, cx: &mut cc::CcContext<'_>) {
        self.notify(cx, &Event::Spurious);
    }

    fn on_path(&mut self, cx: &mut cc::CcContext<'_>, event: &cc::PathEvent) {
        self.notify(cx, &Event::Path(event));
    }

    fn cwnd(&self) -> Bytes {
        self.output.cwnd
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.output.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.output.pacing_rate
    }

    fn phase(&self) -> &'static str {
        self.output.phase
    }

    fn variables(&self) -> Vec<cc::Variable> {
        let Some(instance) = &self.instance else { return Vec::new() };
        Python::attach(|py| instance.variables(py, &self.class)).unwrap_or_else(|fault| {
            self.class.faults.note(fault);
            Vec::new()
        })
    }
}

//! What every controller must pass: `suite` (invariants over any sequence of events), `rounds` (tables of
//! windows), `closed_forms` (theory), `linux` (a kernel's trace).

mod closed_forms;
mod linux;
mod path;
mod rounds;
mod suite;

//! What every controller must pass: `suite` (invariants over any sequence of events), `rounds` (tables of
//! windows), `closed_forms`, `linux_forms` and `low_delay` (theory; the second for most that only Linux has),
//! `linux` (a kernel's trace).

mod closed_forms;
mod linux;
mod linux_forms;
mod low_delay;
mod path;
mod rounds;
mod suite;

//! What every controller must pass: `suite` (invariants over any sequence of events), `rounds` (tables of
//! windows), `closed_forms` (theory). All iterate over the catalogue or name their controller.

mod closed_forms;
mod path;
mod rounds;
mod suite;

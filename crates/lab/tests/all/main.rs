//! Scenario files, and what is run from them. One program: each costs a link, and a copy of what is generic.

mod all_reduce;
mod arrivals;
mod canonical;
mod common;
mod docs;
mod errors;
mod fabric;
mod graph_hosts;
mod imports;
mod library;
mod memory;
mod pfc;
mod radio;
mod routes;
mod run;
mod scripts;
mod worlds;

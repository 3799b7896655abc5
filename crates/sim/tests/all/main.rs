//! Whole runs of the simulator. One program: each costs a link, and a copy of what is generic.

mod arrivals;
mod at_once;
mod bbr2;
mod bbr3;
mod closed_forms;
mod common;
mod data_centre;
mod determinism;
mod feedback;
mod heavy_loss;
mod instructions;
mod long_fat;
mod low_delay;
mod preparation;
mod queues;
mod scenarios;
mod swarm;
mod workloads;

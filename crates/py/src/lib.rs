//! The native module `weir._native`. It converts arguments, errors, tables and the events of controllers in
//! Python, and holds no logic.

use pyo3::prelude::*;

mod captures;
mod congestion;
#[cfg(target_os = "linux")]
mod hosts;
mod lab;
#[cfg(target_os = "linux")]
mod link;
mod names;
mod packetdrill;
#[cfg(target_os = "linux")]
mod path;
mod programs;
mod quantity;
#[cfg(unix)]
mod relay;
mod table;
#[cfg(unix)]
mod tcp;
#[cfg(unix)]
mod transfer;

/// The Rust core of Weir; use the package `weir` instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    const MAX_FILE_BYTES: u64 = weir_lab::MAX_FILE_BYTES;
    #[pymodule_export]
    const MIN_TAIL: u64 = weir_trace::Histogram::MIN_TAIL;
    #[pymodule_export]
    use super::captures::{CaptureTables, bucket_size, find_policer, read_captures};
    #[pymodule_export]
    use super::congestion::{AckEvent, CcContext, CongestionEvent, ControllerError, PathEvent};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::hosts::{HostPart, merge_hosts};
    #[pymodule_export]
    use super::lab::{
        CheckedScenario, RunControl, RunResult, ScenarioError, catalogue, lowered, tc_keys,
        tc_options,
    };
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::link::HostLink;
    #[pymodule_export]
    use super::names::{kernel_controllers, router_feedback, stack_parts};
    #[pymodule_export]
    use super::packetdrill::PacketScript;
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::path::{DatagramLoad, PathSocket};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::programs::kernel_ends;
    #[pymodule_export]
    use super::programs::parse_contender;
    #[pymodule_export]
    use super::quantity::{jain_of_sums, parse_quantity};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::relay::TunLink;
    #[cfg(unix)]
    #[pymodule_export]
    use super::relay::{UdpRelay, relay_check};
    #[pymodule_export]
    use super::table::Table;
    #[cfg(unix)]
    #[pymodule_export]
    use super::tcp::{TcpReceiver, TcpTransfer, tcp_send};
    #[cfg(unix)]
    #[pymodule_export]
    use super::transfer::{TransferError, receive_files, send_files};
    #[pymodule_export]
    use super::{build, version};
}

/// The version of the compiled core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The commit that it was built from, and its optional features. Who builds it names the commit.
#[pyfunction]
fn build() -> (Option<&'static str>, Vec<&'static str>) {
    let commit = option_env!("WEIR_COMMIT").filter(|commit| !commit.is_empty());
    let foreign = cfg!(feature = "foreign").then_some("foreign");
    let checked = cfg!(debug_assertions).then_some("assertions");
    (commit, foreign.into_iter().chain(checked).collect())
}

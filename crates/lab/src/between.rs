//! Runs between hosts: the part of one host, and the tables from the records of all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use weir_kernel::{HostRecord, MeasuredHost, SharedPathLog};
use weir_links::datagrams::PathSocket;
use weir_units::Duration;

use crate::error::{Problem, ScenarioError};
use crate::results::Results;
use crate::run_error::{RunError, Watch};
use crate::scenario::Scenario;

/// The ends of a scenario's flows that are on this host.
#[derive(Debug)]
pub struct HostPart(weir_kernel::HostPart);

impl HostPart {
    /// Opens the sockets of the flows that begin here, each with the address of the other host, and
    /// of those that end here. `controllers` are the congestion controls that this process may use.
    ///
    /// # Errors
    /// If this host cannot run one of the flows.
    pub fn open(
        scenario: &Scenario,
        seed: u64,
        sends: &BTreeMap<usize, Ipv4Addr>,
        receives: &[usize],
        controllers: &[String],
    ) -> Result<Self, RunError> {
        let spec = scenario.spec();
        Ok(Self(weir_kernel::HostPart::open(spec, seed, sends, receives, controllers)?))
    }

    /// The ends of flows of our own transport on one side of a path: of those in `sends` the sending ones,
    /// of all others the receiving ones. The first are recorded.
    ///
    /// # Errors
    /// If a flow is not one of our transport, or its segments do not fit the path.
    pub fn over(
        scenario: &Scenario,
        seed: u64,
        path: PathSocket,
        sends: &BTreeSet<usize>,
    ) -> Result<(Self, SharedPathLog), RunError> {
        let part = weir_kernel::HostPart::over(scenario.spec(), seed, path, sends)?;
        let (part, log) = part.recording();
        Ok((Self(part), log))
    }

    /// Number of bytes that flows of our own transport have sent or received so far, while it runs too.
    pub fn moved(&self) -> Arc<AtomicU64> {
        self.0.moved()
    }

    /// The address that each flow comes from.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn sources(&self) -> Result<BTreeMap<usize, SocketAddrV4>, RunError> {
        Ok(self.0.sources()?)
    }

    /// The port at which each flow arrives.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn ports(&self) -> Result<BTreeMap<usize, u16>, RunError> {
        Ok(self.0.ports()?)
    }

    /// Runs from `start`, in nanoseconds of the monotonic clock; returns the record, as JSON.
    ///
    /// # Errors
    /// If a flow has no peer, or the system refuses something on the way.
    pub fn run(
        self,
        start: u64,
        peers: &BTreeMap<usize, SocketAddr>,
        watch: &mut Watch<'_>,
    ) -> Result<String, RunError> {
        let record = self.0.run(start, peers, watch)?;
        serde_json::to_string(&record).map_err(|error| RunError::RealTime(error.to_string()))
    }
}

/// The tables of a run from the records of its hosts: name, error of the clock in nanoseconds, record.
///
/// # Errors
/// If a record is damaged, or does not fit the scenario.
pub fn merge_hosts(
    scenario: &Scenario,
    seed: u64,
    hosts: &[(String, u64, String)],
) -> Result<Results, RunError> {
    let measured = hosts.iter().map(|(name, clock_error, text)| {
        let record: HostRecord =
            serde_json::from_str(text).map_err(|error| damaged(name, &error))?;
        let clock_error = Duration::from_nanos(*clock_error);
        Ok(MeasuredHost { name: name.clone(), clock_error, record })
    });
    let measured = measured.collect::<Result<Vec<_>, ScenarioError>>()?;
    Ok(Results::new(&weir_kernel::merge(scenario.spec(), seed, &measured)?))
}

fn damaged(host: &str, error: &serde_json::Error) -> ScenarioError {
    ScenarioError::nowhere(Problem::new(
        "",
        format!("host '{host}': its record is damaged: {error}"),
    ))
}

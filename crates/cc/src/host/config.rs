//! Which controller a host builds for each of its connections.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_units::{Bytes, stream};

use super::{HostFeatures, HostedController, Unsupported};
use crate::{CcBuildError, CcConfig, CcConfigError, CongestionController};

/// Builds a controller for packets of the first size, with the second as initial window.
type Make = dyn Fn(Bytes, Bytes) -> Box<dyn CongestionController> + Send + Sync;

/// A controller that a host builds for each of its connections, checked once.
///
/// ```
/// use weir_cc::host::{HostFeatures, HostedConfig};
/// use weir_units::{Bytes, Ecn};
///
/// let host = HostFeatures { name: "noq", pacing: true, marks: Ecn::NotEct, timestamps: false };
/// let config = HostedConfig::new("cubic(hystart=off)", 1, &host)?.with_initial_window(32);
/// assert_eq!(config.build(Bytes(1_200)).cwnd(), Bytes(38_400));
/// let error = HostedConfig::new("prague", 1, &host).unwrap_err();
/// assert_eq!(error.to_string(), "noq cannot run 'prague': it never sends ECT(1)");
/// # Ok::<(), weir_cc::host::HostedConfigError>(())
/// ```
#[derive(Clone)]
pub struct HostedConfig {
    name: &'static str,
    make: Arc<Make>,
    initial_window: u32,
    seed: u64,
    /// Controllers built so far: each has its own random stream.
    built: Arc<AtomicU64>,
}

/// A controller that a host does not get.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostedConfigError {
    /// No such controller, or parameters that it does not take.
    #[error(transparent)]
    Config(#[from] CcConfigError),
    /// It exists only elsewhere.
    #[error(transparent)]
    Build(#[from] CcBuildError),
    /// The host lacks what it needs.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

impl HostedConfig {
    /// The controller that `text` names, as in `cubic` or `ledbat(target=25ms)`. `seed` is that of its random numbers,
    /// for example when BBR probes.
    ///
    /// # Errors
    /// If there is no such controller, or `host` lacks what it needs.
    pub fn new(text: &str, seed: u64, host: &HostFeatures) -> Result<Self, HostedConfigError> {
        let config = CcConfig::parse(text)?;
        config.build(SAMPLE_MSS, SAMPLE_MSS)?;
        let make = move |mss: Bytes, window: Bytes| {
            config.build(mss, window).expect("what was built once can be built again")
        };
        Ok(Self::custom(make, seed, host)?)
    }

    /// A controller of one's own. `make` receives the size of packets and the initial window.
    ///
    /// # Errors
    /// If `host` lacks what it needs.
    pub fn custom(
        make: impl Fn(Bytes, Bytes) -> Box<dyn CongestionController> + Send + Sync + 'static,
        seed: u64,
        host: &HostFeatures,
    ) -> Result<Self, Unsupported> {
        let sample = make(SAMPLE_MSS, SAMPLE_MSS * u64::from(INITIAL_WINDOW));
        host.check(sample.name(), sample.needs())?;
        Ok(Self {
            name: sample.name(),
            make: Arc::new(make),
            initial_window: INITIAL_WINDOW,
            seed,
            built: Arc::default(),
        })
    }

    /// With an initial window of `packets` packets, at least one; 10 by default (RFC 6928).
    #[must_use]
    pub fn with_initial_window(self, packets: u32) -> Self {
        Self { initial_window: packets.max(1), ..self }
    }

    /// The controller of a new connection with packets of at most `mss` bytes.
    pub fn build(&self, mss: Bytes) -> HostedController {
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let rng = stream(self.seed, &format!("controller {number}"));
        let cc = (self.make)(mss, mss * u64::from(self.initial_window));
        HostedController::new(cc, mss, rng)
    }

    /// The first window for packets of at most `mss` bytes.
    pub fn initial_window(&self, mss: Bytes) -> Bytes {
        mss * u64::from(self.initial_window)
    }
}

impl fmt::Debug for HostedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostedConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

/// RFC 6928 and RFC 9002 §7.2.
const INITIAL_WINDOW: u32 = 10;
/// A size of packets for the one that is built to be checked (RFC 9000 §14).
const SAMPLE_MSS: Bytes = Bytes(1_200);

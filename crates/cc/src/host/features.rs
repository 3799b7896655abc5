//! What a host gives a controller, and which controllers can work with it.

use weir_units::Ecn;

use crate::Needs;

/// What a host can do for a controller, to be compared with what a controller [`Needs`].
///
/// ```
/// use weir_cc::CcConfig;
/// use weir_cc::host::HostFeatures;
/// use weir_units::{Bytes, Ecn};
///
/// let host = HostFeatures { name: "quinn 0.11", pacing: false, marks: Ecn::NotEct, timestamps: false };
/// let check = |name: &str| {
///     let cc = name.parse::<CcConfig>().unwrap().build(Bytes(1_200), Bytes(12_000)).unwrap();
///     host.check(cc.name(), cc.needs()).map_err(|refusal| refusal.to_string())
/// };
/// assert_eq!(check("cubic"), Ok(()));
/// assert_eq!(
///     check("bbr").unwrap_err(),
///     "quinn 0.11 cannot run 'bbr': it ignores the pacing rate of a controller"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFeatures {
    /// Its name in messages.
    pub name: &'static str,
    /// It sends at the controller's pacing rate.
    pub pacing: bool,
    /// The ECN field whose marks it counts for the controller; [`Ecn::NotEct`] if it reports at most that there were
    /// some.
    pub marks: Ecn,
    /// It passes timestamps of acknowledgements.
    pub timestamps: bool,
}

/// A controller that a host cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} cannot run '{controller}': {reason}")]
pub struct Unsupported {
    /// The host.
    pub host: &'static str,
    /// The controller.
    pub controller: &'static str,
    /// What it lacks.
    pub reason: &'static str,
}

impl HostFeatures {
    /// Whether the controller with these needs can run here. Rate samples and an own reduction are always given:
    /// [`HostedController`](super::HostedController) measures the rates, and no QUIC host applies PRR.
    ///
    /// # Errors
    /// With the first need that is not met.
    pub fn check(&self, controller: &'static str, needs: Needs) -> Result<(), Unsupported> {
        let reason = if needs.feedback.is_some() {
            "it carries no feedback of routers"
        } else if needs.timestamps && !self.timestamps {
            "its acknowledgements have no timestamps"
        } else if needs.ecn == Ecn::Ect1 && self.marks != Ecn::Ect1 {
            "it never sends ECT(1)"
        } else if needs.ecn == Ecn::Ect0 && self.marks == Ecn::NotEct {
            "it does not report the number of ECN marks"
        } else if needs.pacing && !self.pacing {
            "it ignores the pacing rate of a controller"
        } else {
            return Ok(());
        };
        Err(Unsupported { host: self.name, controller, reason })
    }
}

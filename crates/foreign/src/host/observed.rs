//! A controller of the host with a monitor that listens in. This file is compiled once for each host, as
//! `end.rs`; the trait of controllers, which differs, is implemented in `controller.rs` of each host.

use std::sync::Arc;

use super::proto::congestion::{Controller, ControllerFactory};
use crate::clock::HostInstant;
use crate::monitor::Monitor;

/// Makes controllers that are listened to.
pub(super) struct ObservedFactory {
    pub(super) inner: Arc<dyn ControllerFactory + Send + Sync>,
    pub(super) monitor: Monitor,
}

pub(super) struct Observed {
    pub(super) inner: Box<dyn Controller>,
    pub(super) monitor: Monitor,
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: HostInstant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Observed { inner, monitor: self.monitor.clone() })
    }
}

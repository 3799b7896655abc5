//! The trait of controllers of noq: everything goes to the controller, and what counts to the monitor.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};

use super::observed::Observed;
use crate::clock::HostInstant;

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Controller for Observed {
    fn on_sent(&mut self, now: HostInstant, bytes: u64, last_packet_number: u64) {
        self.monitor.on_sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_packet_sent(&mut self, now: HostInstant, bytes: u16, pn: u64) {
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: HostInstant,
        sent: HostInstant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.monitor.on_ack(sent, bytes);
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: HostInstant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.monitor.on_end_acks(now, in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: HostInstant,
        sent: HostInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.monitor.on_lost(lost_bytes);
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: HostInstant) {
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, max_delay: Duration) {
        self.inner.on_ack_frequency_update(ack_eliciting_threshold, max_delay);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), monitor: self.monitor.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

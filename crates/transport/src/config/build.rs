//! A configuration, value by value.

use weir_units::{Bytes, Duration, Rate};

use super::{Config, Stack};
use crate::profile::{DelayedAck, HostProfile};
use crate::{RoutePolicy, WindowLimit};

macro_rules! setters {
    ($($setter:ident: $field:ident, $type:ty;)*) => {
        impl Config {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $setter(mut self, $field: $type) -> Self {
                    self.$field = $field;
                    self
                }
            )*
        }
    };
}

impl Config {
    /// Linux's values for `stack`.
    pub fn new(stack: Stack) -> Self {
        Self { stack, ..Self::default() }
    }

    /// The most that the receiver ever holds.
    pub(crate) fn largest_recv_buffer(&self) -> Bytes {
        self.max_recv_buffer.unwrap_or_default().max(self.recv_buffer)
    }
}

setters! {
    with_stack: stack, Stack;
    with_mss: mss, u32;
    with_initial_window: initial_window, u32;
    with_pace_initial_window: pace_initial_window, bool;
    with_quick_start: quick_start, Option<Rate>;
    with_pace_window: pace_window, bool;
    with_max_pacing_rate: max_pacing_rate, Option<Rate>;
    with_pacing_catch_up: pacing_catch_up, Duration;
    with_pacing_catch_up_after_loss: pacing_catch_up_after_loss, Option<Duration>;
    with_send_buffer: send_buffer, Option<Bytes>;
    with_send_overhead: send_overhead, Bytes;
    with_max_send_buffer: max_send_buffer, Option<Bytes>;
    with_recv_buffer: recv_buffer, Bytes;
    with_max_recv_buffer: max_recv_buffer, Option<Bytes>;
    with_initial_recv_window: initial_recv_window, Option<Bytes>;
    with_sack: sack, bool;
    with_timestamps: timestamps, bool;
    with_window_scaling: window_scaling, bool;
    with_ecn: ecn, Option<bool>;
    with_delayed_ack: delayed_ack, Option<DelayedAck>;
    with_initial_rto: initial_rto, Duration;
    with_min_rto: min_rto, Duration;
    with_max_rto: max_rto, Duration;
    with_fixed_rto: fixed_rto, Option<Duration>;
    with_max_retransmits: max_retransmits, u32;
    with_max_syn_retransmits: max_syn_retransmits, Option<u32>;
    with_max_wait: max_wait, Option<Duration>;
    with_limited_transmit: limited_transmit, bool;
    with_nagle: nagle, bool;
    with_gso: gso, u32;
    with_cwnd_validation: cwnd_validation, bool;
    with_slow_start_after_idle: slow_start_after_idle, bool;
    with_time_wait: time_wait, Duration;
    with_host_profile: host_profile, HostProfile;
    with_route_policy: route_policy, RoutePolicy;
    with_window_limit: window_limit, Option<WindowLimit>;
}

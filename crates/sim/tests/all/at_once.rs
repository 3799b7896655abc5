//! Segments that arrive at one instant.

use std::ops::ControlFlow;

use weir_net::LinkConfig;
use weir_scene::topology::{Access, Dumbbell};
use weir_scene::{Direction, LinkCrossing, LinkEnd, MeasureSpec, TransportSpec};
use weir_sim::{PacketTap, run_with_tap};
use weir_transport::{Config, HostProfile};
use weir_units::{Bytes, Duration, Instant};

use crate::common::{Flow, secs, spec_of};

/// Segments with data that arrive in the second half, and acknowledgements that leave.
#[derive(Default)]
struct Counts {
    data: usize,
    acks: usize,
}

impl PacketTap for Counts {
    fn links(&self) -> Vec<usize> {
        vec![0, 1]
    }

    fn record(&mut self, _index: usize, seen: &LinkCrossing<()>) {
        let (is_late, direction) = (seen.at >= Instant::ZERO + secs(1), seen.packet.direction);
        if is_late && seen.end == LinkEnd::Exit && direction == Direction::Forward {
            self.data += 1;
        } else if is_late && seen.end == LinkEnd::Entry && direction == Direction::Reverse {
            self.acks += 1;
        }
    }
}

/// How many segments an acknowledgement has, of a window of four over a link that takes no time for a segment.
fn segments_per_ack(host_profile: HostProfile) -> f64 {
    let link = LinkConfig { delay: Duration::from_millis(10).into(), ..LinkConfig::default() };
    let dumbbell = Dumbbell {
        forward: link.clone(),
        reverse: link,
        access: Access::None,
        rtts: vec![Duration::from_millis(20)],
    };
    let config = Config {
        stack: "rack/none(4)".parse().expect("a stack"),
        recv_buffer: Bytes(200_000),
        host_profile,
        ..Config::default()
    };
    let mut flow = Flow::bulk("rack/none(4)");
    flow.transport = TransportSpec::Reliable(Box::new(config));
    let measure = MeasureSpec { duration: secs(2), ..MeasureSpec::default() };
    let spec = spec_of(&[flow], dumbbell.build().expect("the topology is sound"), measure);
    let mut counts = Counts::default();
    run_with_tap(&spec, 1, &mut counts, &mut |_| ControlFlow::Continue(())).expect("a sound run");
    assert!(counts.acks > 40);
    counts.data as f64 / counts.acks as f64
}

/// Linux takes all four in before its application runs. Once the window has its size, what is unread keeps it from
/// moving, so that the acknowledgement waits for the application (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`).
#[test]
fn segments_of_one_instant_have_one_acknowledgement_in_a_kernel() {
    let each = segments_per_ack(HostProfile::Kernel);
    assert!((each - 4.0).abs() < 0.1, "{each}");
}

/// A program that reads each as it comes acknowledges every second one at least.
#[test]
fn segments_of_one_instant_have_more_where_each_is_read() {
    let each = segments_per_ack(HostProfile::UserSpace);
    assert!(each <= 2.0, "{each}");
}

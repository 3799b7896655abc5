//! quinn-proto 0.11 as a host.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn_proto as proto;
use weir_scene::ForeignState;

use crate::clock::{HostInstant, duration};

mod controller;
#[path = "host/crypto.rs"]
mod crypto;
#[path = "host/end.rs"]
mod end;
mod keys;
#[path = "host/observed.rs"]
mod observed;
#[path = "host/stack.rs"]
mod stack;

pub use stack::{MakeFactory, Stack};

/// How its traits receive a connection ID.
type IdArg<'a> = &'a proto::ConnectionId;
/// How its configurations receive themselves.
type SelfArg<'a, T> = Arc<T>;

/// The address of either end.
fn peer() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 4433))
}

fn endpoint(
    config: proto::EndpointConfig,
    server: Option<Arc<proto::ServerConfig>>,
) -> proto::Endpoint {
    proto::Endpoint::new(Arc::new(config), server, true, None)
}

fn count_connection_ids(config: &mut proto::EndpointConfig, side: u8) {
    config.cid_generator(move || Box::new(stack::Counter { side, issued: 0 }));
}

fn handle(
    endpoint: &mut proto::Endpoint,
    now: HostInstant,
    ecn: Option<proto::EcnCodepoint>,
    datagram: BytesMut,
    response: &mut Vec<u8>,
) -> Option<proto::DatagramEvent> {
    endpoint.handle(now, peer(), None, ecn, datagram, response)
}

/// One datagram at a time: a batch would leave at one instant.
fn poll_transmit(
    connection: &mut proto::Connection,
    now: HostInstant,
    out: &mut Vec<u8>,
) -> Option<proto::Transmit> {
    connection.poll_transmit(now, 1, out)
}

/// Returns how many bytes the stream took; `None` if it takes none now.
fn write(stream: &mut proto::SendStream<'_>, piece: Bytes) -> Option<u64> {
    let written = stream.write_chunks(&mut [piece]).ok()?;
    Some(written.bytes as u64)
}

fn state(connection: &mut proto::Connection) -> ForeignState {
    let path = connection.stats().path;
    let metrics = connection.congestion_state().metrics();
    ForeignState {
        cwnd: weir_units::Bytes(path.cwnd),
        ssthresh: metrics.ssthresh.filter(|limit| *limit < u64::MAX).map(weir_units::Bytes),
        srtt: (path.rtt > Duration::ZERO).then(|| duration(path.rtt)),
        // Its pacer goes by the window alone and ignores a controller's rate.
        pacing: None,
        lost: path.lost_packets,
        ..ForeignState::default()
    }
}

/// The phase of a controller of ours.
fn phase(connection: &proto::Connection) -> Option<&'static str> {
    Some(weir_quinn::hosted(connection.congestion_state())?.controller().phase())
}

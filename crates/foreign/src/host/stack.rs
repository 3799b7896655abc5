//! A stack: how its connections are configured. This file is compiled once for each host, as `end.rs`.

use std::fmt;
use std::sync::Arc;

use weir_scene::{ForeignEnd, ForeignStack};
use weir_units::{Instant, Rng};

use super::crypto::Null;
use super::end::End;
use super::observed::ObservedFactory;
use super::proto::congestion::ControllerFactory;
use super::proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, ValidationTokenConfig, VarInt,
};
use crate::clock::Clock;
use crate::monitor::Monitor;
use crate::settings::{MIN_PAYLOAD, Settings};

/// Makes the factory of a sender's controllers; the random stream is for these alone.
pub type MakeFactory = Box<dyn Fn(Rng) -> Arc<dyn ControllerFactory + Send + Sync> + Send + Sync>;

/// Connections of this host with one kind of controller.
pub struct Stack {
    name: String,
    settings: Settings,
    controllers: MakeFactory,
}

impl Stack {
    /// A stack called `name`. `controllers` may return one of the host's own controllers, or any
    /// other implementation of its trait.
    pub fn new(name: String, settings: Settings, controllers: MakeFactory) -> Self {
        Self { name, settings, controllers }
    }

    fn transport(&self, rng: &Rng, monitor: &Monitor) -> TransportConfig {
        let Settings { receive_window, max_payload } = self.settings;
        let window = VarInt::from_u64(receive_window.get()).unwrap_or(VarInt::MAX);
        let mut config = TransportConfig::default();
        let inner = (self.controllers)(rng.clone());
        config
            .stream_receive_window(window)
            // Flow control by the receiver is the only limit: its unit of growth is an eighth of the
            // window, and so few large pieces are in the sender's buffer.
            .send_window(u64::MAX)
            .enable_segmentation_offload(false)
            .mtu_discovery_config((max_payload > MIN_PAYLOAD).then(|| {
                let mut discovery = MtuDiscoveryConfig::default();
                discovery.upper_bound(max_payload);
                discovery
            }))
            .congestion_controller_factory(Arc::new(ObservedFactory {
                inner,
                monitor: monitor.clone(),
            }));
        config
    }

    fn endpoint(&self, side: u8, rng: &mut Rng) -> Result<EndpointConfig, String> {
        let mut config = EndpointConfig::new(Arc::new(Null));
        let mut seed = [0; 32];
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        super::count_connection_ids(&mut config, side);
        config.rng_seed(Some(seed));
        let longest = self.settings.max_payload.max(Settings::default().max_payload);
        config.max_udp_payload_size(longest).map_err(|error| error.to_string())?;
        Ok(config)
    }
}

impl ForeignStack for Stack {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(
        &self,
        now: Instant,
        [mut ours, mut theirs]: [Rng; 2],
    ) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        let clock = Clock::new();
        let monitors = [Monitor::default(), Monitor::default()];
        let client_endpoint = self.endpoint(CLIENT, &mut ours)?;
        let server_endpoint = self.endpoint(SERVER, &mut theirs)?;
        let mut client = ClientConfig::new(Arc::new(Null));
        client
            .transport_config(Arc::new(self.transport(&ours, &monitors[0])))
            .initial_dst_cid_provider(Arc::new(|| ConnectionId::new(&[FIRST; 8])));
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(0);
        let mut server = ServerConfig::new(Arc::new(Null), Arc::new(Null));
        server
            .transport_config(Arc::new(self.transport(&theirs, &monitors[1])))
            .validation_token_config(tokens);
        let mut sender = super::endpoint(client_endpoint, None);
        let receiver = super::endpoint(server_endpoint, Some(Arc::new(server)));
        let connection = sender
            .connect(clock.to_host(now), client, super::peer(), "weir")
            .map_err(|error| error.to_string())?;
        let [ours, theirs] = monitors;
        Ok([
            Box::new(End::new(sender, Some(connection), clock, ours)),
            Box::new(End::new(receiver, None, clock, theirs)),
        ])
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Connection IDs that count, in place of random ones.
pub(super) struct Counter {
    pub(super) side: u8,
    pub(super) issued: u32,
}

impl ConnectionIdGenerator for Counter {
    fn generate_cid(&mut self) -> ConnectionId {
        self.issued += 1;
        let mut id = [self.side; 8];
        id[4..].copy_from_slice(&self.issued.to_be_bytes());
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// First byte of connection IDs: of the first packet's, the client's and the server's.
const FIRST: u8 = 1;
const CLIENT: u8 = 2;
const SERVER: u8 = 3;

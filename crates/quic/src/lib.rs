//! QUIC as an [`ExternalStack`] for simulated flows: `quinn-proto`, an implementation in production use, in
//! simulated time.
//!
//! The external inputs of the library are replaced: its clock by simulated time, its random numbers
//! by a sequence that depends on the flow's seed, its cryptography by a null implementation
//! (`crypto`). The library runs with its defaults, except for the parameters of [`Config`] and two
//! others: no path MTU discovery, since the scenario specifies the packet size, and no idle
//! timeout, so that a flow survives an outage as flows of other transports do.

mod clock;
mod crypto;
mod peer;

use std::sync::Arc;

use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, NoneTokenStore,
    ServerConfig, TransportConfig, VarInt,
};
use sojourn_core::base::units::Bytes;
use sojourn_core::run::scenario::Scenario;
use sojourn_core::transport::controllers::quic::{Config, CongestionControl};
use sojourn_core::transport::{ExternalStack, Path, StackEndpoint};

use self::clock::{Clock, ConstantDate};
use self::crypto::{Handshake, NullSecret};
use self::peer::Peer;

/// Size of the IPv4 and UDP headers.
const HEADERS: Bytes = Bytes(28);

/// Installs this stack in a scenario for all QUIC transports.
pub fn provide(scenario: &mut Scenario) {
    for config in scenario.of_libraries() {
        let quinn = Quinn { config: config.clone(), clock: Clock::new() };
        config.implementation.stack = Some(Arc::new(quinn));
    }
}

/// Connections of `quinn-proto`.
struct Quinn {
    config: Config,
    clock: Clock,
}

impl ExternalStack for Quinn {
    fn connect(&self, path: &Path) -> [Box<dyn StackEndpoint>; 2] {
        let mtu = (path.format.full().0 - HEADERS.0) as u16;
        let transport = Arc::new(self.transport(mtu));
        let certificates = self.config.certificates.0 as usize;
        let handshake = Arc::new(Handshake { certificates });
        let mut client = ClientConfig::new(handshake.clone());
        let first = ConnectionIds(!path.seed).generate_cid();
        client
            .initial_dst_cid_provider(Arc::new(move || first))
            .token_store(Arc::new(NoneTokenStore))
            .transport_config(transport.clone());
        let mut server = ServerConfig::new(handshake, Arc::new(NullSecret));
        server.transport_config(transport).time_source(Arc::new(ConstantDate));
        let endpoint = |side: u64, server| {
            Endpoint::new(Arc::new(endpoint(path.seed, side, mtu)), server, false, None)
        };
        let peer = |endpoint| Peer::new(endpoint, self.clock, self.config.ecn);
        let size = path.size.map(|size| size.0);
        [
            Box::new(peer(endpoint(0, None)).connecting(client, size, path.start)),
            Box::new(peer(endpoint(1, Some(Arc::new(server))))),
        ]
    }
}

impl Quinn {
    /// Returns the transport configuration.
    fn transport(&self, mtu: u16) -> TransportConfig {
        let Config { law, initial_window, initial_rtt, receive_window, .. } = &self.config;
        let controllers: Arc<dyn ControllerFactory + Send + Sync> = match law {
            CongestionControl::Cubic => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(initial_window.0);
                Arc::new(cubic)
            }
            CongestionControl::NewReno => {
                let mut new_reno = NewRenoConfig::default();
                new_reno.initial_window(initial_window.0);
                Arc::new(new_reno)
            }
        };
        let mut transport = TransportConfig::default();
        let window = VarInt::from_u64(receive_window.0).unwrap_or(VarInt::MAX);
        transport
            .congestion_controller_factory(controllers)
            .initial_rtt(std::time::Duration::from_nanos(initial_rtt.0 / 1_000))
            .stream_receive_window(window)
            // The ratio of the library's defaults.
            .send_window(window.into_inner().saturating_mul(8))
            .initial_mtu(mtu)
            // Disables black hole detection, which would reduce the packet size after consecutive losses.
            .min_mtu(mtu)
            .mtu_discovery_config(None)
            .max_idle_timeout(None)
            .enable_segmentation_offload(false);
        transport
    }
}

/// Returns the configuration of an endpoint, with random numbers that depend on the flow's seed and the side.
fn endpoint(seed: u64, side: u64, mtu: u16) -> EndpointConfig {
    let mut numbers = ConnectionIds(seed ^ side << 32);
    let mut bytes = [0; 32];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&numbers.next()));
    let mut config = EndpointConfig::new(Arc::new(NullSecret));
    config.rng_seed(Some(bytes));
    let first = u64::from_le_bytes(numbers.next());
    config.cid_generator(move || Box::new(ConnectionIds(first)));
    let Ok(_) = config.max_udp_payload_size(mtu) else {
        unreachable!("scenarios with smaller packets are rejected")
    };
    config
}

/// Connection IDs, of the length of the library's own.
struct ConnectionIds(u64);

impl ConnectionIds {
    /// Returns eight pseudo-random bytes (`SplitMix64`).
    fn next(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        sojourn_core::base::random::mix(self.0).to_le_bytes()
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.next())
    }

    fn cid_len(&self) -> usize {
        size_of::<u64>()
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

//! QUIC by `quinn-proto` as a [`ExternalStack`] for flows of the simulator: an implementation that servers run, in
//! simulated time.
//!
//! What it takes from outside is replaced: its clock by simulated time, its random numbers by ones that
//! follow from the flow's seed, its cryptography by one that hides nothing (`crypto`). The rest is the
//! library with its defaults, but for what [`Config`] says and two things: it does not search for larger
//! packets, for the scenario says how large they are, and does not end idle connections, so that a flow
//! outlives an outage as others do.

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
use sojourn_core::transport::controllers::quic::{Config, Law};
use sojourn_core::transport::{End, ExternalStack, Path};

use self::clock::{Clock, Dateless};
use self::crypto::{Handshake, NoSecret};
use self::peer::Peer;

/// Headers of IPv4 and UDP.
const HEADERS: Bytes = Bytes(28);

/// Gives a scenario this stack for all flows that want one.
pub fn provide(scenario: &mut Scenario) {
    for config in scenario.of_libraries() {
        let quinn = Quinn { config: config.clone(), clock: Clock::new() };
        config.implementation.stack = Some(Arc::new(quinn));
    }
}

/// Makes connections by `quinn-proto`.
struct Quinn {
    config: Config,
    clock: Clock,
}

impl ExternalStack for Quinn {
    fn connect(&self, path: &Path) -> [Box<dyn End>; 2] {
        let mtu = (path.format.full().0 - HEADERS.0) as u16;
        let transport = Arc::new(self.transport(mtu));
        let certificates = self.config.certificates.0 as usize;
        let handshake = Arc::new(Handshake { certificates });
        let mut client = ClientConfig::new(handshake.clone());
        let first = Ids(!path.seed).generate_cid();
        client
            .initial_dst_cid_provider(Arc::new(move || first))
            .token_store(Arc::new(NoneTokenStore))
            .transport_config(transport.clone());
        let mut server = ServerConfig::new(handshake, Arc::new(NoSecret));
        server.transport_config(transport).time_source(Arc::new(Dateless));
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
    /// Everything but the cryptography and the names of things.
    fn transport(&self, mtu: u16) -> TransportConfig {
        let Config { law, initial_window, initial_rtt, receive_window, .. } = &self.config;
        let controllers: Arc<dyn ControllerFactory + Send + Sync> = match law {
            Law::Cubic => {
                let mut cubic = CubicConfig::default();
                cubic.initial_window(initial_window.0);
                Arc::new(cubic)
            }
            Law::NewReno => {
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
            // As the defaults of the library have it.
            .send_window(window.into_inner().saturating_mul(8))
            .initial_mtu(mtu)
            // Else some losses in a row would be taken for a path that lets only small packets pass.
            .min_mtu(mtu)
            .mtu_discovery_config(None)
            .max_idle_timeout(None)
            .enable_segmentation_offload(false);
        transport
    }
}

/// An end's configuration, whose random numbers follow from the flow's seed and the side.
fn endpoint(seed: u64, side: u64, mtu: u16) -> EndpointConfig {
    let mut numbers = Ids(seed ^ side << 32);
    let mut bytes = [0; 32];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&numbers.next()));
    let mut config = EndpointConfig::new(Arc::new(NoSecret));
    config.rng_seed(Some(bytes));
    let first = u64::from_le_bytes(numbers.next());
    config.cid_generator(move || Box::new(Ids(first)));
    let Ok(_) = config.max_udp_payload_size(mtu) else {
        unreachable!("a scenario with smaller packets is refused")
    };
    config
}

/// Identifiers of connections, as long as the library's own.
struct Ids(u64);

impl Ids {
    /// Eight bytes that look like chance (`SplitMix64`).
    fn next(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        sojourn_core::base::random::mix(self.0).to_le_bytes()
    }
}

impl ConnectionIdGenerator for Ids {
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

//! QUIC as somebody else has written it.
//!
//! The core has its parameters and no more: who runs a scenario gives it the stack, if that was compiled in.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Controller, ExternalStack, Mechanism, Path, Reliability, Transport, Unasked};
use crate::base::schema::json_schema::{self, Definitions};
use crate::base::schema::{Parameter, Problem, positive, wrong};
use crate::base::units::{Bytes, Duration};
use crate::model::packet::Format;

crate::choices! {
    /// The law of congestion control. The library's BBR is none of them: it draws random numbers that nobody
    /// can seed.
    pub enum Law {
        /// CUBIC (RFC 8312), the library's default.
        Cubic = "cubic",
        /// NewReno (RFC 9002 §7).
        NewReno = "new_reno",
    }
}

crate::parameters! {
    /// QUIC (RFC 9000, RFC 9002) by a library that servers run, `quinn-proto`, unchanged but for its clock,
    /// its random numbers and its cryptography: keys that do nothing and weigh what AES-GCM weighs. Needs a
    /// build with it (`make build FEATURES=quic`). A flow is a stream of a connection of its own, with the
    /// handshake of one round trip before it.
    ///
    /// A datagram fills a packet of the scenario, headers of 28 B for IPv4 and UDP and all, which must
    /// therefore take 1228 B at least. What answers is as ACKs are to switches.
    pub struct Config {
        /// Whose QUIC it is.
        pub implementation: Implementation = Implementation::default();
        /// The law of congestion control.
        pub law: Law = Law::Cubic;
        /// Payload that may be in flight at first (library: 12 kB by RFC 9002 §7.2).
        pub initial_window: Bytes = Bytes(12_000), where positive;
        /// The round-trip time that is assumed before one is measured (RFC 9002 §6.2.2).
        pub initial_rtt: Duration = Duration::from_millis(333), where positive;
        /// How far the source may be ahead of what the target has read of the stream (library: 100 Mb/s over
        /// 100 ms).
        pub receive_window: Bytes = Bytes(1_250_000), where positive;
        /// Whether routers may mark its packets; the library sends all as ECN-capable until it finds that
        /// marks do not come through.
        pub ecn: bool = true;
        /// Size of the server's part of the TLS handshake after its hello: certificates and what signs them.
        pub certificates: Bytes = Bytes(2_000), where |size| {
            // What the library keeps of a handshake that comes out of order.
            if (100..=16_000).contains(&size.0) { Ok(()) } else { Err("from 100 B to 16 kB") }
        };
    }
}

/// The only implementation that there is.
const QUINN: &str = "quinn";

/// An implementation by name, and what makes its connections.
#[derive(Clone, Default)]
pub struct Implementation {
    /// What makes its connections; without it nothing runs.
    pub stack: Option<Arc<dyn ExternalStack>>,
}

impl std::fmt::Debug for Implementation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(QUINN)
    }
}

impl PartialEq for Implementation {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Parameter for Implementation {
    fn allowed() -> String {
        format!("\"{QUINN}\"")
    }
    fn read(value: &Value) -> Result<Self, Problem> {
        (value == QUINN).then(Self::default).ok_or_else(|| wrong::<Self>(value))
    }
    fn show(&self) -> Value {
        json!(QUINN)
    }
    fn schema(_default: Option<&Self>, _definitions: &mut Definitions) -> Value {
        json_schema::word(&[(QUINN, "quinn-proto, of the crate of that name.")])
    }
}

impl Transport for Config {
    fn controller(&self, _path: &Path) -> Box<dyn Controller> {
        Box::new(Unasked)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::plain(&Reliability::selective_repeat())
    }

    fn least_packet(&self) -> Bytes {
        Bytes(1_228)
    }

    fn has_own_stack(&self) -> bool {
        true
    }

    fn stack(&self) -> Option<&dyn ExternalStack> {
        self.implementation.stack.as_deref()
    }
}

//! QUIC by an external stack (RFC 9000, RFC 9002).
//!
//! The core has only the parameters. The caller provides the stack, if the build includes it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Controller, ExternalStack, Mechanism, NullController, Path, Reliability, Transport};
use crate::base::schema::json_schema::{self, Definitions};
use crate::base::schema::{Parameter, Problem, positive, wrong};
use crate::base::units::{Bytes, Duration};
use crate::model::packet::Format;

crate::choices! {
    /// Congestion control of QUIC. The library's BBR is not available: its random numbers cannot be
    /// seeded.
    pub enum CongestionControl {
        /// CUBIC (RFC 8312), the library's default.
        Cubic = "cubic",
        /// NewReno (RFC 9002 §7).
        NewReno = "new_reno",
    }
}

crate::parameters! {
    /// QUIC (RFC 9000, RFC 9002) by `quinn-proto`, a library used by servers, with its clock, random
    /// numbers and cryptography replaced: null keys with the size of AES-GCM tags. Needs a build with
    /// QUIC (`make build FEATURES=quic`). Each flow is a stream of its own connection, after a handshake
    /// of one RTT.
    ///
    /// A datagram fills a packet of the scenario, including 28 B of IPv4 and UDP headers, so a full
    /// packet needs at least 1228 B. Switches treat packets of the receiver as ACKs.
    pub struct Config {
        /// Implementation of QUIC.
        pub implementation: Implementation = Implementation::default();
        /// Congestion control algorithm.
        pub law: CongestionControl = CongestionControl::Cubic;
        /// Initial window, in bytes of payload (library: 12 kB by RFC 9002 §7.2).
        pub initial_window: Bytes = Bytes(12_000), where positive;
        /// Initial RTT, assumed before the first sample (RFC 9002 §6.2.2).
        pub initial_rtt: Duration = Duration::from_millis(333), where positive;
        /// Stream flow-control window of the receiver (library: 100 Mb/s over 100 ms).
        pub receive_window: Bytes = Bytes(1_250_000), where positive;
        /// If true, packets are ECN-capable until the library detects that the path removes marks.
        pub ecn: bool = true;
        /// Size of the server's TLS handshake after its hello: certificates and signatures.
        pub certificates: Bytes = Bytes(2_000), where |size| {
            // Limit of the library's buffer for out-of-order handshake data.
            if (100..=16_000).contains(&size.0) { Ok(()) } else { Err("from 100 B to 16 kB") }
        };
    }
}

/// Name of the only implementation.
const QUINN: &str = "quinn";

/// An implementation by name, and the stack that makes its connections.
#[derive(Clone, Default)]
pub struct Implementation {
    /// Stack that makes connections; required to run.
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
        Box::new(NullController)
    }

    fn mechanism(&self, _format: &Format) -> Mechanism {
        Mechanism::plain(&Reliability::selective_repeat())
    }

    fn min_packet_size(&self) -> Bytes {
        Bytes(1_228)
    }

    fn has_own_stack(&self) -> bool {
        true
    }

    fn stack(&self) -> Option<&dyn ExternalStack> {
        self.implementation.stack.as_deref()
    }
}

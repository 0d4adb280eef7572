//! Null cryptography: keys that leave packets unchanged except for the length of the tag, and a handshake
//! with messages of the lengths of TLS 1.3 that contain only the transport parameters and padding.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};

/// Length of the AES-GCM tag (RFC 5116) and of the header protection sample (RFC 9001 §5.4).
const TAG: usize = 16;
/// Lengths of a client hello with X25519, a server hello, and a finish with SHA-256 (RFC 8448 §3).
const CLIENT_HELLO: usize = 196;
const SERVER_HELLO: usize = 90;
const FINISHED: usize = 36;

/// Keys without effect.
struct NullKey;

impl PacketKey for NullKey {
    fn encrypt(&self, _packet: u64, _buf: &mut [u8], _header_len: usize) {}

    fn decrypt(
        &self,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        payload.truncate(payload.len().checked_sub(TAG).ok_or(CryptoError)?);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullKey {
    fn decrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) }
}

fn keys() -> Keys {
    let header: KeyPair<Box<dyn HeaderKey>> =
        KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) };
    Keys { header, packet: packet_keys() }
}

/// Secret of an endpoint, without effect.
pub(crate) struct NullSecret;

impl HmacKey for NullSecret {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        // Tokens of different connections must differ.
        signature.iter_mut().zip(data.iter().cycle()).for_each(|(to, from)| *to = *from);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _data: &[u8], _signature: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for NullSecret {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NullSecret {
    fn seal(&self, _data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

/// Handshake without security, with messages of the usual sizes.
pub(crate) struct Handshake {
    /// Length of the server's extensions, certificates and signature, in bytes.
    pub(crate) certificates: usize,
}

impl Handshake {
    fn session(&self, side: Side, own: &TransportParameters) -> Box<dyn Session> {
        let mut parameters = Vec::new();
        own.write(&mut parameters);
        let step = |awaits, message, has_keys| Step { awaits, message, has_keys };
        let finished = message(FINISHED, &[]);
        let steps = match side {
            Side::Client => vec![
                step(0, message(CLIENT_HELLO, &parameters), false),
                step(1, Vec::new(), true),
                step(2, finished, true),
            ],
            Side::Server => vec![
                step(1, message(SERVER_HELLO, &[]), true),
                step(1, message(self.certificates + FINISHED, &parameters), true),
            ],
        };
        Box::new(HandshakeSession {
            side,
            received: 0,
            partial: Vec::new(),
            peer_parameters: None,
            steps: steps.into(),
        })
    }
}

/// Returns a message of `bytes` bytes and the transport parameters, which begins with its length and that of
/// the parameters.
fn message(bytes: usize, parameters: &[u8]) -> Vec<u8> {
    let length = bytes + parameters.len();
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_be_bytes());
    message.extend((parameters.len() as u32).to_be_bytes());
    message.extend(parameters);
    message.resize(length, 0);
    message
}

/// Step of a handshake.
struct Step {
    /// Messages of the peer that must arrive first.
    awaits: usize,
    message: Vec<u8>,
    /// True if the step provides the next keys.
    has_keys: bool,
}

/// Handshake of three messages: the client's hello, the server's messages in two parts, the client's finish.
struct HandshakeSession {
    side: Side,
    /// Number of complete messages received.
    received: usize,
    /// Received part of the next message.
    partial: Vec<u8>,
    /// Transport parameters of the peer.
    peer_parameters: Option<Vec<u8>>,
    steps: VecDeque<Step>,
}

impl HandshakeSession {
    /// Removes the peer's next message from the received data, if it is complete. Returns its parameters.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let number = |at: usize| {
            let bytes = self.partial.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes) as usize)
        };
        let (length, parameters) = (number(0)?, number(4)?);
        if self.partial.len() < length {
            return None;
        }
        let rest = self.partial.split_off(length);
        let message = std::mem::replace(&mut self.partial, rest);
        Some(message[8..8 + parameters].to_vec())
    }
}

impl Session for HandshakeSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.received < 2
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.partial.extend(bytes);
        while let Some(parameters) = self.next_message() {
            self.received += 1;
            if !parameters.is_empty() {
                self.peer_parameters = Some(parameters);
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |bytes: &Vec<u8>| TransportParameters::read(self.side, &mut bytes.as_slice());
        Ok(self.peer_parameters.as_ref().map(read).transpose()?)
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        self.steps.front().filter(|step| step.awaits <= self.received)?;
        let Step { message, has_keys, .. } = self.steps.pop_front()?;
        bytes.extend(message);
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(
        &self,
        _orig_dst_cid: &ConnectionId,
        _header: &[u8],
        _payload: &[u8],
    ) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl ClientConfig for Handshake {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, params))
    }
}

impl ServerConfig for Handshake {
    fn initial_keys(
        &self,
        _version: u32,
        _dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        self.session(Side::Server, params)
    }
}

//! Cryptography that hides nothing: keys that leave packets as they are but for the place of their tag, and a
//! handshake of messages as long as those of TLS 1.3, of which only their lengths and the transport's
//! parameters mean anything.

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

/// What AES-GCM adds to a packet (RFC 5116), and what headers are protected with (RFC 9001 §5.4).
const TAG: usize = 16;
/// A hello of a client that offers X25519, a server's, and a finish with SHA-256 (RFC 8448 §3).
const CLIENT_HELLO: usize = 196;
const SERVER_HELLO: usize = 90;
const FINISHED: usize = 36;

/// Keys that do nothing.
struct NoKey;

impl PacketKey for NoKey {
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

impl HeaderKey for NoKey {
    fn decrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _number_at: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) }
}

fn keys() -> Keys {
    let header: KeyPair<Box<dyn HeaderKey>> =
        KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) };
    Keys { header, packet: packet_keys() }
}

/// What an endpoint keeps to itself, of which there is nothing.
pub(crate) struct NoSecret;

impl HmacKey for NoSecret {
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

impl HandshakeTokenKey for NoSecret {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for NoSecret {
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

/// How connections are secured: not at all, but with messages of the usual sizes.
pub(crate) struct Handshake {
    /// What the server says of itself, in bytes: extensions, certificates, and what signs them.
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
        Box::new(Messages { side, heard: 0, partial: Vec::new(), peer: None, steps: steps.into() })
    }
}

/// A message of so many bytes and the transport's parameters, that begins with the lengths of both.
fn message(bytes: usize, parameters: &[u8]) -> Vec<u8> {
    let length = bytes + parameters.len();
    let mut message = Vec::with_capacity(length);
    message.extend((length as u32).to_be_bytes());
    message.extend((parameters.len() as u32).to_be_bytes());
    message.extend(parameters);
    message.resize(length, 0);
    message
}

/// A step of a handshake.
struct Step {
    /// How many of the other's messages come first.
    awaits: usize,
    message: Vec<u8>,
    /// Whether it leads to the next keys.
    has_keys: bool,
}

/// A handshake of three messages: the client's hello, the server's in two parts, the client's end.
struct Messages {
    side: Side,
    /// How many of the other's messages have come.
    heard: usize,
    /// What has come of the next.
    partial: Vec<u8>,
    /// The other's parameters.
    peer: Option<Vec<u8>>,
    steps: VecDeque<Step>,
}

impl Messages {
    /// The other's next message, taken off what has come, if it is all there: the parameters in it.
    fn next(&mut self) -> Option<Vec<u8>> {
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

impl Session for Messages {
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
        self.heard < 2
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.partial.extend(bytes);
        while let Some(parameters) = self.next() {
            self.heard += 1;
            if !parameters.is_empty() {
                self.peer = Some(parameters);
            }
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |bytes: &Vec<u8>| TransportParameters::read(self.side, &mut bytes.as_slice());
        Ok(self.peer.as_ref().map(read).transpose()?)
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        self.steps.front().filter(|step| step.awaits <= self.heard)?;
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

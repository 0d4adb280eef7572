//! Endpoint of a connection: an endpoint of the library and its application. The client opens a stream and
//! writes, the server reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, Event, Side, StreamEvent, StreamId, VarInt,
};
use sojourn_core::base::units::{self, Time};
use sojourn_core::transport::{Ecn, OutgoingDatagram, StackEndpoint};

use super::HEADERS;
use super::clock::Clock;

/// Addresses in a network of two hosts.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 50_000);

/// Payload of flows.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Endpoint of a connection.
pub(crate) struct Peer {
    endpoint: Endpoint,
    /// `None` at a server before the first packet of its client.
    connection: Option<(ConnectionHandle, Connection)>,
    clock: Clock,
    /// True if sent packets are ECN-capable.
    ecn: bool,
    /// Time when the next timer of the library expires.
    timer: Time,
    /// The only stream, once it is open.
    stream: Option<StreamId>,
    /// Bytes that the client has not yet written; `u64::MAX` for an unbounded flow.
    unwritten: u64,
    /// True if the stream was finished or reset.
    is_finished: bool,
    /// Bytes that the server has read.
    read_bytes: u64,
    is_done: bool,
}

impl Peer {
    /// Creates an endpoint that waits for its peer.
    pub(crate) fn new(endpoint: Endpoint, clock: Clock, ecn: bool) -> Self {
        Self {
            endpoint,
            connection: None,
            clock,
            ecn,
            timer: Time::NEVER,
            stream: None,
            unwritten: 0,
            is_finished: false,
            read_bytes: 0,
            is_done: false,
        }
    }

    /// Connects as a client that sends `size` bytes, or an unbounded flow.
    pub(crate) fn connecting(mut self, config: ClientConfig, size: Option<u64>, now: Time) -> Self {
        let connection = self.endpoint.connect(self.clock.instant(now), config, SERVER, "server");
        let Ok(connection) = connection else { unreachable!("the configuration is valid") };
        self.connection = Some(connection);
        self.unwritten = size.unwrap_or(u64::MAX);
        self
    }

    /// Passes an event to the connection, and processes all events that result.
    fn process_events(&mut self, now: Time, event: Option<ConnectionEvent>) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if let Some(event) = event {
            connection.handle_event(event);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some((_, connection)) = &mut self.connection
            && let Some(event) = connection.poll()
        {
            self.on_event(event);
        }
        if let Some((_, connection)) = &mut self.connection
            && self.is_finished
            && !self.is_done
            && connection.streams().send_streams() == 0
        {
            self.is_done = true;
            connection.close(self.clock.instant(now), VarInt::from_u32(0), Bytes::new());
        }
    }

    fn on_event(&mut self, event: Event) {
        let Some((_, connection)) = &mut self.connection else { return };
        match event {
            Event::Connected if connection.side().is_client() => {
                self.stream = connection.streams().open(Dir::Uni);
                self.write();
            }
            Event::Stream(StreamEvent::Writable { .. }) => self.write(),
            Event::Stream(StreamEvent::Opened { dir }) => {
                self.stream = connection.streams().accept(dir);
                self.read_stream();
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.read_stream(),
            // Only the client closes the connection, after all data is acknowledged.
            Event::ConnectionLost { reason } => assert!(
                matches!(reason, ConnectionError::ApplicationClosed(_)),
                "the connection was lost: {reason}"
            ),
            _ => {}
        }
    }

    /// Writes as much data as the library accepts.
    fn write(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        while self.unwritten > 0 {
            let bytes = self.unwritten.min(ZEROS.len() as u64) as usize;
            let mut chunk = [Bytes::from_static(&ZEROS[..bytes])];
            let Ok(written) = stream.write_chunks(&mut chunk) else { return };
            // An unbounded flow stays unbounded.
            if self.unwritten < u64::MAX {
                self.unwritten -= written.bytes as u64;
            }
        }
        if !self.is_finished {
            self.is_finished = stream.finish().is_ok();
        }
    }

    /// Reads the available data.
    fn read_stream(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.read_bytes += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.is_done = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // Packets that result, such as window updates, are sent with the next poll.
        let _ = chunks.finalize();
    }
}

impl StackEndpoint for Peer {
    fn on_datagram(&mut self, now: Time, datagram: &[u8], ecn: Ecn) {
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect => Some(EcnCodepoint::Ect0),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let side = self.connection.as_ref().map(|(_, connection)| connection.side());
        let remote = if side.is_some_and(Side::is_client) { SERVER } else { CLIENT };
        let (instant, data) = (self.clock.instant(now), BytesMut::from(datagram));
        let mut response = Vec::new();
        match self.endpoint.handle(instant, remote, None, ecn, data, &mut response) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.process_events(now, Some(event)),
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, instant, &mut response, None).ok();
                self.process_events(now, None);
            }
            // For a closed or unknown connection; the peer has closed it, too, or retransmits.
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn on_timer(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.instant(now));
            self.process_events(now, None);
        }
    }

    fn next_datagram(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<OutgoingDatagram> {
        let (_, connection) = self.connection.as_mut()?;
        if let Some(transmit) = connection.poll_transmit(self.clock.instant(now), 1, datagram) {
            let bytes = units::Bytes(transmit.size as u64 + HEADERS.0);
            return Some(OutgoingDatagram {
                bytes,
                ecn_capable: self.ecn && transmit.ecn.is_some(),
            });
        }
        // A closed connection needs no timers.
        let timeout = connection.poll_timeout().filter(|_| !connection.is_closed());
        self.timer = timeout.map_or(Time::NEVER, |instant| self.clock.time(instant));
        None
    }

    fn next_timer(&self) -> Time {
        self.timer
    }

    fn stop(&mut self, _now: Time) {
        self.unwritten = 0;
        // Discards the data that is written and not yet sent.
        if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
            self.is_finished = connection.send_stream(stream).reset(VarInt::from_u32(0)).is_ok();
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn delivered(&self) -> units::Bytes {
        units::Bytes(self.read_bytes)
    }

    fn retransmits_and_timeouts(&self) -> (u32, u32) {
        let Some((_, connection)) = &self.connection else { return (0, 0) };
        // The library does not count timeouts.
        (connection.stats().path.lost_packets as u32, 0)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some((_, connection)) = &self.connection else { return Vec::new() };
        let window = connection.congestion_state().window();
        vec![("window_bytes", window as f64), ("rtt_s", connection.rtt().as_secs_f64())]
    }
}

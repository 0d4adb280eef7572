//! One end of a connection: an endpoint of the library that has no other, and the program that uses it. The
//! client's opens a stream and writes, the server's reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionEvent, ConnectionHandle, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, Event, Side, StreamEvent, StreamId, VarInt,
};
use sojourn_core::base::units::{self, Time};
use sojourn_core::transport::{Ecn, End, Outgoing};

use super::HEADERS;
use super::clock::Clock;

/// Where all servers are, in a network of two hosts.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 50_000);

/// What flows carry.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// One end of a connection.
pub(crate) struct Peer {
    endpoint: Endpoint,
    /// None at a server that has not heard of its client.
    connection: Option<(ConnectionHandle, Connection)>,
    clock: Clock,
    /// Whether what it sends may be marked.
    ecn: bool,
    /// When it wants to be woken.
    deadline: Time,
    /// The only stream, when it is open.
    stream: Option<StreamId>,
    /// What is still to be written, at a client; without end, if the flow is.
    unwritten: u64,
    /// Whether the stream's end has been written, or the stream broken off.
    is_finished: bool,
    /// What has been read, at a server.
    read: u64,
    is_done: bool,
}

impl Peer {
    /// An end that waits for the other.
    pub(crate) fn new(endpoint: Endpoint, clock: Clock, ecn: bool) -> Self {
        Self {
            endpoint,
            connection: None,
            clock,
            ecn,
            deadline: Time::NEVER,
            stream: None,
            unwritten: 0,
            is_finished: false,
            read: 0,
            is_done: false,
        }
    }

    /// The same as a client that has so much to send, or no end of it.
    pub(crate) fn connecting(mut self, config: ClientConfig, size: Option<u64>, now: Time) -> Self {
        let connection = self.endpoint.connect(self.clock.at(now), config, SERVER, "server");
        let Ok(connection) = connection else { unreachable!("all is as the library wants it") };
        self.connection = Some(connection);
        self.unwritten = size.unwrap_or(u64::MAX);
        self
    }

    /// Hands something to the connection, and does all that follows from it.
    fn settle(&mut self, now: Time, event: Option<ConnectionEvent>) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if let Some(event) = event {
            connection.handle_event(event);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
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
            connection.close(self.clock.at(now), VarInt::from_u32(0), Bytes::new());
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
                self.read();
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.read(),
            // The client closes when it knows that all has come, and then only.
            Event::ConnectionLost { reason } => assert!(
                matches!(reason, ConnectionError::ApplicationClosed(_)),
                "a connection broke off: {reason}"
            ),
            _ => {}
        }
    }

    /// Writes what the library takes.
    fn write(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.send_stream(stream);
        while self.unwritten > 0 {
            let bytes = self.unwritten.min(ZEROS.len() as u64) as usize;
            let mut chunk = [Bytes::from_static(&ZEROS[..bytes])];
            let Ok(written) = stream.write_chunks(&mut chunk) else { return };
            // What has no end does not become less.
            if self.unwritten < u64::MAX {
                self.unwritten -= written.bytes as u64;
            }
        }
        if !self.is_finished {
            self.is_finished = stream.finish().is_ok();
        }
    }

    /// Reads what there is.
    fn read(&mut self) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else {
            return;
        };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.read += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.is_done = true;
                    break;
                }
                Err(_) => break,
            }
        }
        // Whether this made something to send, whoever asks for packets is told.
        let _ = chunks.finalize();
    }
}

impl End for Peer {
    fn on_datagram(&mut self, now: Time, datagram: &[u8], ecn: Ecn) {
        let ecn = match ecn {
            Ecn::Incapable => None,
            Ecn::Capable => Some(EcnCodepoint::Ect0),
            Ecn::Marked => Some(EcnCodepoint::Ce),
        };
        let side = self.connection.as_ref().map(|(_, connection)| connection.side());
        let remote = if side.is_some_and(Side::is_client) { SERVER } else { CLIENT };
        let (instant, data) = (self.clock.at(now), BytesMut::from(datagram));
        let mut answer = Vec::new();
        match self.endpoint.handle(instant, remote, None, ecn, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.settle(now, Some(event)),
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, instant, &mut answer, None).ok();
                self.settle(now, None);
            }
            // Of a connection that is over, or not yet there: its other end knows that, or sends again.
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn on_time(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.at(now));
            self.settle(now, None);
        }
    }

    fn next(&mut self, now: Time, datagram: &mut Vec<u8>) -> Option<Outgoing> {
        let (_, connection) = self.connection.as_mut()?;
        if let Some(transmit) = connection.poll_transmit(self.clock.at(now), 1, datagram) {
            let bytes = units::Bytes(transmit.size as u64 + HEADERS.0);
            return Some(Outgoing { bytes, ecn_capable: self.ecn && transmit.ecn.is_some() });
        }
        // A connection that is closed only answers.
        let awaited = connection.poll_timeout().filter(|_| !connection.is_closed());
        self.deadline = awaited.map_or(Time::NEVER, |instant| self.clock.when(instant));
        None
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn stop(&mut self, _now: Time) {
        self.unwritten = 0;
        // What is written and not yet sent would take long.
        if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
            self.is_finished = connection.send_stream(stream).reset(VarInt::from_u32(0)).is_ok();
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn delivered(&self) -> units::Bytes {
        units::Bytes(self.read)
    }

    fn repairs(&self) -> (u32, u32) {
        let Some((_, connection)) = &self.connection else { return (0, 0) };
        // The library does not tell of time-outs.
        (connection.stats().path.lost_packets as u32, 0)
    }

    fn gauges(&self) -> Vec<(&'static str, f64)> {
        let Some((_, connection)) = &self.connection else { return Vec::new() };
        let window = connection.congestion_state().window();
        vec![("window_bytes", window as f64), ("rtt_s", connection.rtt().as_secs_f64())]
    }
}

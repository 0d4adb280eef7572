//! Flows: one TCP connection each, opened at the start time; sent and received bytes are counted.
//!
//! Connections stay open until the end of the run, so that no FIN uses space in the queue.

use std::collections::BTreeMap;
use std::io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::{Domain, Socket, Type};

/// Port of the receiving program.
const PORT: u16 = 5000;

/// Listen backlog: the kernel's default maximum.
const LISTEN_BACKLOG: i32 = 4096;

/// Interval of progress reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Event data of the listener; the event data of a connection is its flow number.
const LISTENER: u64 = u64::MAX;

/// Parameters of a flow.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FlowSpec {
    /// Start time, in seconds.
    start_s: f64,
    /// Size, in bytes.
    size_bytes: u64,
}

/// Result of a flow.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct FlowResult {
    /// Delay of the call of `connect()` after the start time, in seconds.
    late_s: Option<f64>,
    /// FCT in seconds: from the call of `connect()` until the receiving program has the last byte.
    fct_s: Option<f64>,
}

/// Parameters of all flows.
pub(crate) struct RunParameters<'a> {
    /// Address of the receiver.
    pub(crate) target: Ipv4Addr,
    /// Name of the kernel's congestion control module.
    pub(crate) congestion: &'a str,
    /// Time limit of the run.
    pub(crate) limit: Duration,
}

/// A flow in progress. Its connection is open as long as this value exists.
pub(crate) struct Flow {
    start: Duration,
    connect_time: Duration,
    fct: Option<Duration>,
    sender: Option<TcpStream>,
    receiver: Option<TcpStream>,
    to_send: u64,
    to_receive: u64,
}

impl Flow {
    fn new(spec: &FlowSpec) -> Self {
        // As in the simulator, an empty flow sends one byte.
        let size = spec.size_bytes.max(1);
        Self {
            start: Duration::from_secs_f64(spec.start_s),
            connect_time: Duration::ZERO,
            fct: None,
            sender: None,
            receiver: None,
            to_send: size,
            to_receive: size,
        }
    }

    /// Writes as much as the socket buffer takes. If the kernel gives up after many timeouts, the
    /// flow stays unfinished.
    fn send(&mut self, zeros: &[u8]) -> io::Result<()> {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        while self.to_send > 0 {
            let most = zeros.len().min(self.to_send as usize);
            match sender.write(&zeros[..most]) {
                Ok(bytes) => self.to_send -= bytes as u64,
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads all available data; returns true if the flow is complete.
    fn receive(&mut self, buffer: &mut [u8], now: impl Fn() -> Duration) -> io::Result<bool> {
        let Some(receiver) = &mut self.receiver else { return Ok(false) };
        while self.to_receive > 0 {
            match receiver.read(buffer) {
                Ok(0) => return Err(UnexpectedEof.into()),
                Ok(bytes) => self.to_receive -= bytes as u64,
                Err(error) if error.kind() == WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.fct = Some(now().saturating_sub(self.connect_time));
        Ok(true)
    }

    /// Returns the result of the flow.
    pub(crate) fn result(&self) -> FlowResult {
        FlowResult {
            late_s: self
                .sender
                .is_some()
                .then(|| self.connect_time.saturating_sub(self.start).as_secs_f64()),
            fct_s: self.fct.map(|fct| fct.as_secs_f64()),
        }
    }
}

/// Runs flows, in order of start, until all are finished or the time limit is reached.
///
/// At intervals, calls `should_continue` with the time and the number of finished flows; the run
/// ends if it returns false.
pub(crate) fn run(
    specs: &[FlowSpec],
    parameters: &RunParameters,
    listener: &TcpListener,
    should_continue: impl Fn(Duration, usize) -> bool,
) -> io::Result<Vec<Flow>> {
    let mut flows: Vec<_> = specs.iter().map(Flow::new).collect();
    let mut flow_of_port = BTreeMap::new();
    let (zeros, mut buffer) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let mut events = [EpollEvent::empty(); 64];

    let epoch = Instant::now();
    let (mut started, mut finished, mut last_report) = (0, 0, Duration::ZERO);
    while finished < flows.len() && epoch.elapsed() < parameters.limit {
        while started < flows.len() && flows[started].start <= epoch.elapsed() {
            let flow = &mut flows[started];
            let socket = socket(parameters.congestion)?;
            flow.connect_time = epoch.elapsed();
            let stream = connect(socket, parameters.target)?;
            flow_of_port.insert(stream.local_addr()?.port(), started);
            let writable = EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            epoll.add(&stream, EpollEvent::new(writable, started as u64))?;
            flow.sender = Some(stream);
            started += 1;
        }
        let next = flows.get(started).map_or(parameters.limit, |flow| flow.start);
        // Whole milliseconds; the rest of the wait is busy waiting.
        let wait =
            next.min(epoch.elapsed() + REPORT_INTERVAL).saturating_sub(epoch.elapsed()).as_millis();
        let timeout = EpollTimeout::try_from(wait).map_err(io::Error::other)?;
        let event_count = epoll.wait(&mut events, timeout)?;
        for event in &events[..event_count] {
            if event.data() == LISTENER {
                while let Some((receiver, port)) = accept(listener)? {
                    let number = flow_of_port[&port];
                    let readable = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
                    epoll.add(&receiver, EpollEvent::new(readable, number as u64))?;
                    flows[number].receiver = Some(receiver);
                }
                continue;
            }
            let flow = &mut flows[event.data() as usize];
            if event.events().contains(EpollFlags::EPOLLOUT) {
                flow.send(&zeros)?;
            }
            if event.events().contains(EpollFlags::EPOLLIN) {
                finished += usize::from(flow.receive(&mut buffer, || epoch.elapsed())?);
            }
        }
        if epoch.elapsed().saturating_sub(last_report) >= REPORT_INTERVAL {
            last_report = epoch.elapsed();
            if !should_continue(last_report, finished) {
                break;
            }
        }
    }
    Ok(flows)
}

/// Creates the listener of the receiving program.
pub(crate) fn listener(address: Ipv4Addr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SocketAddrV4::new(address, PORT).into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

fn socket(congestion: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_congestion(congestion.as_bytes())?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

fn connect(socket: Socket, target: Ipv4Addr) -> io::Result<TcpStream> {
    match socket.connect(&SocketAddrV4::new(target, PORT).into()) {
        Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// Returns the next connection, if any, and the sender's port.
fn accept(listener: &TcpListener) -> io::Result<Option<(TcpStream, u16)>> {
    match listener.accept() {
        Ok((stream, from)) => {
            stream.set_nonblocking(true)?;
            Ok(Some((stream, from.port())))
        }
        Err(error) if error.kind() == WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

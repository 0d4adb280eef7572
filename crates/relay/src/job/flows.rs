//! The flows: a connection each, opened at its time, over which its bytes are sent and counted.
//!
//! It is left open to the end of the run, so that no FIN takes a place in the queue.

use std::collections::BTreeMap;
use std::io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::{Domain, Socket, Type};

/// Where the receiving program listens.
const PORT: u16 = 5000;

/// How many connections may wait to be taken: the most that the kernel allows as it comes.
const MOST_AT_ONCE: i32 = 4096;

/// How often it is told how far the flows are.
const TELLS: Duration = Duration::from_millis(200);

/// What may come: connections for the listener, else data of the flow of this number, or room for it.
const LISTENER: u64 = u64::MAX;

/// A flow as it was asked for.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// When it starts, in seconds.
    start_s: f64,
    /// What it sends, in bytes.
    size_bytes: u64,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Done {
    /// How late `connect()` was called, in seconds.
    late_s: Option<f64>,
    /// From that call to the moment at which the receiving program had the last byte, in seconds.
    fct_s: Option<f64>,
}

/// How the flows are sent.
pub(crate) struct Sending<'a> {
    /// Where to.
    pub(crate) target: Ipv4Addr,
    /// Under which congestion control, by the kernel's name for it.
    pub(crate) congestion: &'a str,
    /// The run ends here at the latest.
    pub(crate) limit: Duration,
}

/// A flow on its way. Its connection is open as long as this is there.
pub(crate) struct Flow {
    start: Duration,
    called: Duration,
    fct: Option<Duration>,
    sender: Option<TcpStream>,
    receiver: Option<TcpStream>,
    to_send: u64,
    to_receive: u64,
}

impl Flow {
    fn new(wanted: &Wanted) -> Self {
        // As in the simulator: what has nothing to send still sends something.
        let size = wanted.size_bytes.max(1);
        Self {
            start: Duration::from_secs_f64(wanted.start_s),
            called: Duration::ZERO,
            fct: None,
            sender: None,
            receiver: None,
            to_send: size,
            to_receive: size,
        }
    }

    /// Sends as much as the kernel takes. What it gives up, after many time-outs, stays unfinished.
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

    /// Receives what there is; tells whether that was the last of it.
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
        self.fct = Some(now().saturating_sub(self.called));
        Ok(true)
    }

    /// What has become of it.
    pub(crate) fn done(&self) -> Done {
        Done {
            late_s: self
                .sender
                .is_some()
                .then(|| self.called.saturating_sub(self.start).as_secs_f64()),
            fct_s: self.fct.map(|fct| fct.as_secs_f64()),
        }
    }
}

/// Runs flows, which come in order of their starts, until all are finished or time is over.
///
/// Now and then `goes_on` is told how late it is and how many have finished, and decides.
pub(crate) fn run(
    wanted: &[Wanted],
    sending: &Sending,
    listener: &TcpListener,
    goes_on: impl Fn(Duration, usize) -> bool,
) -> io::Result<Vec<Flow>> {
    let mut flows: Vec<_> = wanted.iter().map(Flow::new).collect();
    let mut flow_of_port = BTreeMap::new();
    let (zeros, mut buffer) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let mut events = [EpollEvent::empty(); 64];

    let epoch = Instant::now();
    let (mut started, mut finished, mut told) = (0, 0, Duration::ZERO);
    while finished < flows.len() && epoch.elapsed() < sending.limit {
        while started < flows.len() && flows[started].start <= epoch.elapsed() {
            let flow = &mut flows[started];
            let socket = socket(sending.congestion)?;
            flow.called = epoch.elapsed();
            let stream = connect(socket, sending.target)?;
            flow_of_port.insert(stream.local_addr()?.port(), started);
            let room = EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            epoll.add(&stream, EpollEvent::new(room, started as u64))?;
            flow.sender = Some(stream);
            started += 1;
        }
        let next = flows.get(started).map_or(sending.limit, |flow| flow.start);
        // Whole milliseconds; what is left of the wait is spent awake.
        let wait = next.min(epoch.elapsed() + TELLS).saturating_sub(epoch.elapsed()).as_millis();
        let timeout = EpollTimeout::try_from(wait).map_err(io::Error::other)?;
        let many = epoll.wait(&mut events, timeout)?;
        for event in &events[..many] {
            if event.data() == LISTENER {
                while let Some((receiver, port)) = accept(listener)? {
                    let number = flow_of_port[&port];
                    let data = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
                    epoll.add(&receiver, EpollEvent::new(data, number as u64))?;
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
        if epoch.elapsed().saturating_sub(told) >= TELLS {
            told = epoch.elapsed();
            if !goes_on(told, finished) {
                break;
            }
        }
    }
    Ok(flows)
}

/// A listener for the receiving program.
pub(crate) fn listener(address: Ipv4Addr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SocketAddrV4::new(address, PORT).into())?;
    socket.listen(MOST_AT_ONCE)?;
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

/// The next connection that came, and the sender's port.
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

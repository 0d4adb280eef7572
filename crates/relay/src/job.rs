//! Input and output of a run, as JSON.

mod flows;
mod link;
mod namespace;
mod relay;

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use tun_rs::SyncDevice;

use flows::Flow;
use link::Link;
use namespace::context;
use relay::DirectionCounters;

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Input of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// The link between sender and receiver, the same in both directions.
    link: link::Config,
    /// Size of a full packet, in bytes.
    mtu: u16,
    /// Name of the kernel's congestion control module.
    congestion: String,
    /// Time limit of the run, in seconds.
    limit_s: f64,
    /// The flows, in order of start.
    flows: Vec<flows::FlowSpec>,
}

/// Progress of a run.
#[derive(Serialize)]
struct Progress {
    now_s: f64,
    finished: usize,
}

/// Result of a run.
#[derive(Serialize)]
struct Outcome {
    /// One record per flow, in the order of the job.
    flows: Vec<flows::FlowResult>,
    #[serde(rename = "there")]
    forward: DirectionCounters,
    #[serde(rename = "back")]
    reverse: DirectionCounters,
    /// Retransmitted segments, including SYNs; null if the kernel does not count them.
    retransmits: Option<u64>,
    /// Number of retransmission timeouts; null if the kernel does not count them.
    timeouts: Option<u64>,
}

pub(crate) fn run() -> Result<(), String> {
    let job: Job = serde_json::from_reader(io::stdin()).map_err(context("the job"))?;
    prepare(2 * job.flows.len() as u64 + 50).map_err(context("the process"))?;
    let sender = namespace::enter(SENDER, job.mtu)?;
    let receiver_thread = thread::scope(|scope| scope.spawn(|| create_receiver(job.mtu)).join());
    let (receiver, listener) =
        receiver_thread.map_err(|_| "the receiver: its thread has panicked")??;

    let stop = AtomicBool::new(false);
    let links = [Link::new(job.link), Link::new(job.link)];
    let (flows, counters) = thread::scope(|scope| {
        let relay = scope.spawn(|| relay::run([&sender, &receiver], links, &stop));
        let flows = job.run_flows(&listener, || !relay.is_finished());
        stop.store(true, Ordering::Relaxed);
        (flows, relay.join())
    });
    let [forward, reverse] = counters
        .map_err(|_| "the relay: its thread has panicked")?
        .map_err(context("the relay"))?;
    write_line(&Outcome {
        flows: flows.map_err(context("a flow"))?.iter().map(Flow::result).collect(),
        forward,
        reverse,
        retransmits: namespace::counter("RetransSegs"),
        timeouts: namespace::counter("TCPTimeouts"),
    })
    .map_err(context("the outcome"))
}

impl Job {
    /// Runs the flows while `is_forwarding` returns true.
    fn run_flows(
        &self,
        listener: &TcpListener,
        is_forwarding: impl Fn() -> bool,
    ) -> io::Result<Vec<Flow>> {
        let parameters = flows::RunParameters {
            target: RECEIVER,
            congestion: &self.congestion,
            limit: Duration::from_secs_f64(self.limit_s),
        };
        flows::run(&self.flows, &parameters, listener, |now, finished| {
            let written = write_line(&Progress { now_s: now.as_secs_f64(), finished });
            written.is_ok() && is_forwarding()
        })
    }
}

/// Ends the process with its parent, sets precise timers, and raises the limit of open files to
/// `files`.
fn prepare(files: u64) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    prctl::set_timerslack(1)?;
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, files.clamp(allowed, most), most)
}

/// Creates the device and the listener of the receiver's namespace. The calling thread stays in
/// that namespace.
fn create_receiver(mtu: u16) -> Result<(SyncDevice, TcpListener), String> {
    let device = namespace::enter(RECEIVER, mtu)?;
    let listener = flows::listener(RECEIVER).map_err(context("the listener"))?;
    Ok((device, listener))
}

fn write_line(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

//! What is to be run, and what became of it, as JSON.

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
use namespace::of;
use relay::Carried;

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// What is to be run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// The link between the ends, there and back.
    link: link::Config,
    /// The size of a full packet, in bytes.
    mtu: u16,
    /// The congestion control, by the kernel's name for it.
    congestion: String,
    /// The run ends here at the latest, in seconds.
    limit_s: f64,
    /// The flows in order of their starts.
    flows: Vec<flows::Wanted>,
}

/// How far a run is.
#[derive(Serialize)]
struct Progress {
    now_s: f64,
    finished: usize,
}

/// What became of a job.
#[derive(Serialize)]
struct Outcome {
    /// By flow, in the order of the job.
    flows: Vec<flows::Done>,
    there: Carried,
    back: Carried,
    /// Segments that the sender sent again, SYNs among them; null if the kernel does not count them.
    retransmits: Option<u64>,
    /// How often its time-out fired.
    timeouts: Option<u64>,
}

pub(crate) fn run() -> Result<(), String> {
    let job: Job = serde_json::from_reader(io::stdin()).map_err(of("the job"))?;
    prepare(2 * job.flows.len() as u64 + 50).map_err(of("the process"))?;
    let sender = namespace::enter(SENDER, job.mtu)?;
    let end = thread::scope(|scope| scope.spawn(|| receiving_end(job.mtu)).join());
    let (receiver, listener) = end.map_err(|_| "the receiving end: has ended")??;

    let stop = AtomicBool::new(false);
    let links = [Link::new(job.link), Link::new(job.link)];
    let (flows, carried) = thread::scope(|scope| {
        let relay = scope.spawn(|| relay::run([&sender, &receiver], links, &stop));
        let flows = job.run_flows(&listener, || !relay.is_finished());
        stop.store(true, Ordering::Relaxed);
        (flows, relay.join())
    });
    let [there, back] = carried.map_err(|_| "the relay: has ended")?.map_err(of("the relay"))?;
    write_line(&Outcome {
        flows: flows.map_err(of("a flow"))?.iter().map(Flow::done).collect(),
        there,
        back,
        retransmits: namespace::counter("RetransSegs"),
        timeouts: namespace::counter("TCPTimeouts"),
    })
    .map_err(of("the outcome"))
}

impl Job {
    /// Runs the flows as long as there `is_way`.
    fn run_flows(
        &self,
        listener: &TcpListener,
        is_way: impl Fn() -> bool,
    ) -> io::Result<Vec<Flow>> {
        let sending = flows::Sending {
            target: RECEIVER,
            congestion: &self.congestion,
            limit: Duration::from_secs_f64(self.limit_s),
        };
        flows::run(&self.flows, &sending, listener, |now, finished| {
            let told = write_line(&Progress { now_s: now.as_secs_f64(), finished });
            told.is_ok() && is_way()
        })
    }
}

/// Lets the process end with its parent, wake up in time, and open so many files.
fn prepare(files: u64) -> nix::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    prctl::set_timerslack(1)?;
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, files.clamp(allowed, most), most)
}

/// The device and the listener of the other namespace, which the thread that calls this is left in.
fn receiving_end(mtu: u16) -> Result<(SyncDevice, TcpListener), String> {
    let device = namespace::enter(RECEIVER, mtu)?;
    let listener = flows::listener(RECEIVER).map_err(of("the listener"))?;
    Ok((device, listener))
}

fn write_line(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

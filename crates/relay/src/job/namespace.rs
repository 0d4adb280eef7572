//! Two network namespaces with a device each. They end with the process. All settings are local to
//! a namespace, so the configuration of the machine does not change.

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::{fs, io};

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::address::{AddressAttribute, AddressHeader, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkHeader, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

const NAME: &str = "sojourn";

/// TCP settings that differ from the defaults. Socket buffers hold whole flows, so that only
/// congestion control limits the window. Metrics are not cached between connections.
const SETTINGS: [(&str, &str); 4] = [
    ("net/ipv4/tcp_rmem", "4096 8388608 33554432"),
    ("net/ipv4/tcp_wmem", "4096 67108864 67108864"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
];

/// Disables IPv6, whose neighbour discovery packets would use space in the queue.
const NO_IPV6: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// Adds the failed operation to an error message.
pub(crate) fn context<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Moves the calling thread to a new network namespace, with a TUN device as its only link.
///
/// Without the required privileges, the namespace is created in a user namespace; the process must
/// then have a single thread.
pub(crate) fn enter(address: Ipv4Addr, mtu: u16) -> Result<SyncDevice, String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .or_else(|_| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET))
        .map_err(context("a network namespace"))?;
    for (name, value) in SETTINGS {
        fs::write(format!("/proc/sys/{name}"), value).map_err(context(name))?;
    }
    match fs::write(NO_IPV6, "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(context(NO_IPV6)(error));
        }
        _ => (),
    }
    let device = DeviceBuilder::new().name(NAME).enable(false).build_sync();
    let device = device.map_err(context("a TUN device (/dev/net/tun)"))?;
    configure(address, mtu).map_err(context("the device"))?;
    Ok(device)
}

fn configure(address: Ipv4Addr, mtu: u16) -> io::Result<()> {
    let index = if_nametoindex(NAME)?;
    let mut own = AddressMessage::default();
    own.header = AddressHeader { family: AddressFamily::Inet, prefix_len: 24, index, ..own.header };
    own.attributes = [AddressAttribute::Local, AddressAttribute::Address]
        .map(|attribute| attribute(address.into()))
        .into();
    send_request(RouteNetlinkMessage::NewAddress(own))?;
    let mut link = LinkMessage::default();
    link.header =
        LinkHeader { index, flags: LinkFlags::Up, change_mask: LinkFlags::Up, ..link.header };
    link.attributes = vec![
        LinkAttribute::Mtu(mtu.into()),
        // TCP passes single packets to the device, not GSO bursts.
        LinkAttribute::GsoMaxSegs(1),
        // The transmit queue of the device must hold packets until the relay reads them.
        LinkAttribute::TxQueueLen(10_000),
    ];
    send_request(RouteNetlinkMessage::SetLink(link))
}

/// Sends a netlink request in the namespace of the calling thread.
fn send_request(request: RouteNetlinkMessage) -> io::Result<()> {
    let mut message = NetlinkMessage::from(request);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    message.finalize();
    let mut buffer = vec![0; message.buffer_len()];
    message.serialize(&mut buffer);

    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&buffer, 0)?;
    let (reply, _) = socket.recv_from_full()?;
    match NetlinkMessage::<RouteNetlinkMessage>::deserialize(&reply) {
        Ok(NetlinkMessage { payload: NetlinkPayload::Error(error), .. })
            if error.code.is_some() =>
        {
            Err(error.to_io())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Returns a TCP counter of the namespace of the calling thread, such as `RetransSegs`.
///
/// The files have pairs of lines: `Tcp: NAME NAME …` and `Tcp: NUMBER NUMBER …`.
pub(crate) fn counter(name: &str) -> Option<u64> {
    let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok();
    ["snmp", "netstat"].into_iter().filter_map(read).find_map(|text| value_of(name, &text))
}

fn value_of(name: &str, text: &str) -> Option<u64> {
    let lines: Vec<_> = text.lines().collect();
    lines.chunks_exact(2).find_map(|pair| {
        let at = pair[0].split(' ').position(|word| word == name)?;
        pair[1].split(' ').nth(at)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "Ip: InReceives\nIp: 7\nTcp: RtoMin RetransSegs\nTcp: -1 42\n";
        assert_eq!(value_of("RetransSegs", text), Some(42));
        assert_eq!(value_of("InReceives", text), Some(7));
        assert_eq!(value_of("Retrans", text), None);
    }
}

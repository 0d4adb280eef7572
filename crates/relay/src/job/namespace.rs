//! Two network namespaces with a device each. They end with the process, and nothing of the machine is
//! changed: every setting here is one of a namespace.

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

/// What TCP has otherwise in a namespace. Buffers are no limit: a flow lies in the kernel as a whole, and
/// windows are those of congestion control. What one connection learns is not told to the next.
const SETTINGS: [(&str, &str); 4] = [
    ("net/ipv4/tcp_rmem", "4096 8388608 33554432"),
    ("net/ipv4/tcp_wmem", "4096 67108864 67108864"),
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
];

/// Neighbours are looked for by its packets, which would take places in the queue.
const NO_IPV6: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// Says what went wrong with what.
pub(crate) fn of<E: Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

/// Puts this thread into a network namespace of its own, with a device that is the way out of it.
///
/// Who may not do so directly, may in a user namespace; the process must then have one thread.
pub(crate) fn enter(address: Ipv4Addr, mtu: u16) -> Result<SyncDevice, String> {
    unshare(CloneFlags::CLONE_NEWNET)
        .or_else(|_| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET))
        .map_err(of("a network namespace"))?;
    for (name, value) in SETTINGS {
        fs::write(format!("/proc/sys/{name}"), value).map_err(of(name))?;
    }
    match fs::write(NO_IPV6, "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of(NO_IPV6)(error)),
        _ => (),
    }
    let device = DeviceBuilder::new().name(NAME).enable(false).build_sync();
    let device = device.map_err(of("a device by /dev/net/tun"))?;
    configure(address, mtu).map_err(of("the device"))?;
    Ok(device)
}

fn configure(address: Ipv4Addr, mtu: u16) -> io::Result<()> {
    let index = if_nametoindex(NAME)?;
    let mut own = AddressMessage::default();
    own.header = AddressHeader { family: AddressFamily::Inet, prefix_len: 24, index, ..own.header };
    own.attributes =
        [AddressAttribute::Local, AddressAttribute::Address].map(|of| of(address.into())).into();
    tell(RouteNetlinkMessage::NewAddress(own))?;
    let mut link = LinkMessage::default();
    link.header =
        LinkHeader { index, flags: LinkFlags::Up, change_mask: LinkFlags::Up, ..link.header };
    link.attributes = vec![
        LinkAttribute::Mtu(mtu.into()),
        // TCP hands down single packets, not bursts that the device has to cut.
        LinkAttribute::GsoMaxSegs(1),
        // The relay empties the device's queue; it must hold what comes meanwhile.
        LinkAttribute::TxQueueLen(10_000),
    ];
    tell(RouteNetlinkMessage::SetLink(link))
}

/// Tells the kernel, in this thread's namespace, what a network is to be.
fn tell(what: RouteNetlinkMessage) -> io::Result<()> {
    let mut message = NetlinkMessage::from(what);
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    message.finalize();
    let mut buffer = vec![0; message.buffer_len()];
    message.serialize(&mut buffer);

    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&buffer, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    match NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer) {
        Ok(NetlinkMessage { payload: NetlinkPayload::Error(told), .. }) if told.code.is_some() => {
            Err(told.to_io())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// A counter of TCP's in this thread's namespace, such as `RetransSegs`.
///
/// Its files have lines in pairs: `Tcp: NAME NAME …` and `Tcp: NUMBER NUMBER …`.
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
    fn a_counter_is_found_by_its_name() {
        let text = "Ip: InReceives\nIp: 7\nTcp: RtoMin RetransSegs\nTcp: -1 42\n";
        assert_eq!(value_of("RetransSegs", text), Some(42));
        assert_eq!(value_of("InReceives", text), Some(7));
        assert_eq!(value_of("Retrans", text), None);
    }
}

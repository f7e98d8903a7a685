//! NW-06, FS-09: nothing but the loopback interface, and no name that resolves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use super::Probe;
use crate::outcome::{Outcome, Verdict};

/// TEST-NET-2 (RFC 5737) and the documentation prefix (RFC 3849): nobody's addresses.
const FOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const SIX: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

pub(super) fn probes() -> Vec<Probe> {
    vec![
        Probe::here("NW-06.interfaces", || {
            Outcome::value(interfaces().join(","))
        }),
        Probe::here("FS-09.sys_class_net", || {
            match std::fs::read_dir("/sys/class/net") {
                Err(_) => Outcome::value(""),
                Ok(list) => {
                    let mut names = list
                        .flatten()
                        .map(|entry| entry.file_name().to_string_lossy().into_owned())
                        .collect::<Vec<_>>();
                    names.sort();
                    Outcome::value(names.join(","))
                }
            }
        }),
        Probe::new("NW-06.resolve", || {
            offline(|| match ("example.com", 80).to_socket_addrs() {
                Ok(_) => Outcome::plain(Verdict::Allowed, "the name resolved"),
                Err(error) => Outcome::plain(Verdict::Refused, error.to_string()),
            })
        }),
        Probe::new("NW-06.tcp4", || offline(|| tcp(FOUR))),
        Probe::new("NW-06.tcp6", || offline(|| tcp(SIX))),
        Probe::new("NW-06.udp4", || offline(|| udp(FOUR))),
        Probe::new("NW-06.udp6", || offline(|| udp(SIX))),
    ]
}

fn interfaces() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let mut names = text
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
        .collect::<Vec<_>>();
    names.sort();
    names
}

/// Runs the attempt only where no packet can leave: `lo` alone and no default route,
/// which could lead to a gateway that listens on `lo`.
fn offline(attempt: impl FnOnce() -> Outcome) -> Outcome {
    let skipped = |why: &str| Outcome::plain(Verdict::SkippedUnsafe, why);
    if interfaces() != ["lo"] {
        return skipped("there are interfaces besides lo");
    }
    let trie = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    if trie
        .lines()
        .any(|line| line.trim_start().starts_with("/0 "))
    {
        return skipped("there is a default route");
    }
    attempt()
}

fn of_error(error: &std::io::Error) -> Outcome {
    const REFUSALS: [i32; 7] = [
        libc::ENETUNREACH,
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::EADDRNOTAVAIL,
        libc::EAFNOSUPPORT,
        libc::EPERM,
        libc::EACCES,
    ];
    match error.raw_os_error() {
        Some(number) if REFUSALS.contains(&number) => {
            Outcome::with_errno(Verdict::Refused, number, "")
        }
        Some(number) => Outcome::with_errno(Verdict::Allowed, number, "not refused at once"),
        None => Outcome::plain(Verdict::Allowed, format!("not refused at once: {error}")),
    }
}

fn tcp(address: IpAddr) -> Outcome {
    match TcpStream::connect_timeout(&SocketAddr::new(address, 80), Duration::from_secs(1)) {
        Ok(_) => Outcome::plain(Verdict::Allowed, "connected"),
        Err(error) => of_error(&error),
    }
}

/// Only chooses the destination; nothing is sent.
fn udp(address: IpAddr) -> Outcome {
    let any = if address.is_ipv4() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    let connected = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((address, 443)));
    match connected {
        Ok(()) => Outcome::plain(Verdict::Allowed, "there is a route"),
        Err(error) => of_error(&error),
    }
}

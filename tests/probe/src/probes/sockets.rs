//! B6: socket families and kinds that reach kernel code no task needs.

use super::Probe;
use crate::outcome::{Outcome, Verdict};
use crate::raw;

/// Kind of a family: id, family, type, protocol, and its name in `/proc/net/protocols`.
type Family = (&'static str, i64, i64, i64, &'static [&'static str]);

const STREAM: i64 = 1;
const DGRAM: i64 = 2;
const RAW: i64 = 3;
const RDM: i64 = 4;
const SEQPACKET: i64 = 5;

const FAMILIES: &[Family] = &[
    ("B6.vsock", 40, STREAM, 0, &["AF_VSOCK"]),
    ("B6.vsock_bit32", 0x1_0000_0028, STREAM, 0, &["AF_VSOCK"]),
    ("B6.alg", 38, SEQPACKET, 0, &["ALG"]),
    ("B6.packet", 17, RAW, 0, &["PACKET"]),
    ("B6.xdp", 44, RAW, 0, &["XDP"]),
    ("B6.key", 15, RAW, 2, &["KEY"]),
    ("B6.rds", 21, SEQPACKET, 0, &["RDS"]),
    ("B6.tipc", 30, RDM, 0, &["TIPC"]),
    ("B6.bluetooth", 31, RAW, 1, &["HCI", "L2CAP"]),
    ("B6.can", 29, RAW, 1, &["CAN_RAW"]),
    ("B6.netlink_sock_diag", 16, RAW, 4, &["netlink/4"]),
    ("B6.netlink_xfrm", 16, RAW, 6, &["netlink/6"]),
    ("B6.netlink_audit", 16, RAW, 9, &["netlink/9"]),
    ("B6.netlink_netfilter", 16, RAW, 12, &["netlink/12"]),
    ("B6.netlink_uevent", 16, RAW, 15, &["netlink/15"]),
    ("B6.netlink_generic", 16, RAW, 16, &["netlink/16"]),
    ("B6.inet_raw", 2, RAW, 1, &["RAW"]),
    ("B6.inet6_raw", 10, RAW, 58, &["RAWv6"]),
    ("B6.inet_icmp", 2, DGRAM, 1, &["PING"]),
    ("B6.inet_sctp", 2, STREAM, 132, &["SCTP"]),
];

pub(super) fn probes() -> Vec<Probe> {
    let families = FAMILIES.iter().map(|&(id, family, kind, protocol, names)| {
        Probe::new(id, move || {
            guarded(names, || {
                // Opened and left to the end of the child: never bound, never connected.
                open_refusal(raw::call(
                    libc::SYS_socket,
                    [family, kind, protocol, 0, 0, 0],
                ))
            })
        })
    });
    families
        .chain([
            Probe::new("B6.socketpair_vsock", || {
                guarded(&["AF_VSOCK"], || {
                    let mut pair = [0_i32; 2];
                    let pair = raw::address(pair.as_mut_ptr());
                    open_refusal(raw::call(libc::SYS_socketpair, [40, STREAM, 0, pair, 0, 0]))
                })
            }),
            Probe::new("B6.other_families", other_families),
        ])
        .collect()
}

/// Also a family or protocol that the kernel does not have is a refusal.
fn open_refusal(answer: Result<i64, i32>) -> Outcome {
    match answer {
        Err(number @ (libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT)) => {
            Outcome::with_errno(Verdict::Refused, number, "")
        }
        other => Outcome::of_call(other),
    }
}

/// Asking for a family whose module is not loaded makes the kernel load it. With a
/// filter that is the attempt to prove; without one it would change the host.
fn guarded(names: &[&str], attempt: impl FnOnce() -> Outcome) -> Outcome {
    if raw::is_filtered() || is_registered(names) {
        return attempt();
    }
    Outcome::plain(
        Verdict::SkippedUnsafe,
        "no system-call filter, and the attempt could load a kernel module",
    )
}

/// Whether one of `names` is a protocol of `/proc/net/protocols`; `netlink/12` is one
/// of which `/proc/net/netlink` lists the kernel's own socket.
fn is_registered(names: &[&str]) -> bool {
    if let [name] = names
        && let Some(protocol) = name.strip_prefix("netlink/")
    {
        return std::fs::read_to_string("/proc/net/netlink").is_ok_and(|text| {
            text.lines()
                .any(|line| line.split_whitespace().nth(1) == Some(protocol))
        });
    }
    std::fs::read_to_string("/proc/net/protocols").is_ok_and(|text| {
        text.lines()
            .filter_map(|line| line.split_whitespace().next())
            .any(|name| names.contains(&name))
    })
}

/// Every family but UNIX, INET, INET6 and NETLINK, in every type.
fn other_families() -> Outcome {
    guarded(&[], || {
        let mut reached = Vec::new();
        for family in (0..=63).filter(|family| ![1, 2, 10, 16].contains(family)) {
            for kind in [STREAM, DGRAM, RAW, RDM, SEQPACKET] {
                let answer = raw::call(libc::SYS_socket, [family, kind, 0, 0, 0, 0]);
                if open_refusal(answer).result == Verdict::Allowed {
                    reached.push(format!("{family}/{kind}"));
                }
            }
        }
        if reached.is_empty() {
            Outcome::plain(Verdict::Refused, "")
        } else {
            Outcome::plain(Verdict::Allowed, reached.join(" "))
        }
    })
}

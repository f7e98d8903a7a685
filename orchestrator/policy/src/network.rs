//! The grammar of network rules: text to a typed rule, and back to one
//! canonical form. Nothing is resolved and nothing is enforced here.
//!
//! ```text
//! rule   = target [ ":" port [ "-" port ] ]
//! target = name | "*." name | IPv4 | IPv6 | CIDR
//! ```
//!
//! An IPv6 address or prefix stands in brackets where a port follows. `*.name`
//! covers every name below `name` and not `name` itself. Without a port every
//! port is meant. What cannot be enforced is refused: schemes, paths, users, a
//! star anywhere else, names that read as numbers, prefixes with host bits set.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::error::{Code, Error};

/// Whom a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Exactly this name; lower case, no trailing dot.
    Host(String),
    /// Every name below this one, not the name itself.
    Below(String),
    /// An address range; a single address has the full prefix length.
    Range(IpAddr, u8),
}

/// Ports from the first to the last, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    /// 1–65535.
    pub first: u16,
    /// 1–65535, not below `first`.
    pub last: u16,
}

impl Ports {
    /// Every port.
    pub const ALL: Ports = Ports {
        first: 1,
        last: u16::MAX,
    };
}

/// One destination or group of destinations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Whom.
    pub target: Target,
    /// On which ports.
    pub ports: Ports,
}

impl Rule {
    /// Whether every destination that `other` names is named by this rule too.
    #[must_use]
    pub fn covers(&self, other: &Rule) -> bool {
        let ports = self.ports.first <= other.ports.first && self.ports.last >= other.ports.last;
        ports
            && match (&self.target, &other.target) {
                (Target::Host(a), Target::Host(b)) => a == b,
                (Target::Below(a), Target::Host(b)) => below(b, a),
                (Target::Below(a), Target::Below(b)) => a == b || below(b, a),
                (Target::Range(a, p), Target::Range(b, q)) => {
                    p <= q && a.is_ipv4() == b.is_ipv4() && network_bits(*b, *p) == bits(*a)
                }
                _ => false,
            }
    }
}

fn below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .is_some_and(|head| head.ends_with('.'))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with everything behind the prefix cleared.
fn network_bits(address: IpAddr, prefix: u8) -> u128 {
    let host = u32::from(width(address).saturating_sub(prefix));
    let mask = u128::MAX.checked_shl(host).unwrap_or(0);
    bits(address) & mask
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ported = self.ports != Ports::ALL;
        match &self.target {
            Target::Host(name) => f.write_str(name)?,
            Target::Below(name) => write!(f, "*.{name}")?,
            Target::Range(address, prefix) => {
                let range = if *prefix == width(*address) {
                    address.to_string()
                } else {
                    format!("{address}/{prefix}")
                };
                if ported && address.is_ipv6() {
                    write!(f, "[{range}]")?;
                } else {
                    f.write_str(&range)?;
                }
            }
        }
        match (ported, self.ports.first == self.ports.last) {
            (false, _) => Ok(()),
            (true, true) => write!(f, ":{}", self.ports.first),
            (true, false) => write!(f, ":{}-{}", self.ports.first, self.ports.last),
        }
    }
}

impl FromStr for Rule {
    type Err = Error;

    /// # Errors
    /// [`Code::ProfileInvalid`] with what is wrong and how to write it instead.
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).map_err(|(cause, remedy)| {
            Error::new(
                Code::ProfileInvalid,
                format!("network rule {text:?} is not valid"),
                remedy,
            )
            .because(cause)
        })
    }
}

type Refusal = (&'static str, &'static str);

const FORMS: &str = "write a host name, *.name, an IP address or a CIDR, each with :port or \
                     :from-to where wanted";

fn parse(text: &str) -> Result<Rule, Refusal> {
    if text.is_empty() {
        return Err(("it is empty", FORMS));
    }
    if text.contains("://") {
        return Err((
            "a rule names a destination, not a URL",
            "leave out the scheme and the path; write host or host:port",
        ));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(("it contains white space", FORMS));
    }
    if text == "*" {
        return Err((
            "a bare star would let everything through",
            "name the destinations, or use a profile of tier loose whose network.default is allow",
        ));
    }
    let (target, port) = split_port(text)?;
    Ok(Rule {
        target: parse_target(target)?,
        ports: port.map_or(Ok(Ports::ALL), parse_ports)?,
    })
}

/// The target, and the port text where there is one.
fn split_port(text: &str) -> Result<(&str, Option<&str>), Refusal> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, tail) = rest
            .split_once(']')
            .ok_or(("the bracket is not closed", FORMS))?;
        if !inside.contains(':') {
            return Err(("only IPv6 addresses stand in brackets", FORMS));
        }
        return match tail.strip_prefix(':') {
            Some(port) => Ok((inside, Some(port))),
            None if tail.is_empty() => Ok((inside, None)),
            None => Err(("something follows the bracket", FORMS)),
        };
    }
    match text.matches(':').count() {
        0 => Ok((text, None)),
        1 => Ok(text
            .split_once(':')
            .map_or((text, None), |(target, port)| (target, Some(port)))),
        // Two or more colons without brackets can only be an IPv6 address.
        _ => Ok((text, None)),
    }
}

fn parse_ports(text: &str) -> Result<Ports, Refusal> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = Ports {
        first: parse_port(first)?,
        last: parse_port(last)?,
    };
    if ports.first > ports.last {
        return Err((
            "the port range runs backwards",
            "write :from-to, from first",
        ));
    }
    Ok(ports)
}

fn parse_port(text: &str) -> Result<u16, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port != 0 => Ok(port),
        _ => Err(("the port is not a number from 1 to 65535", FORMS)),
    }
}

fn parse_target(text: &str) -> Result<Target, Refusal> {
    if let Some((address, prefix)) = text.split_once('/') {
        return parse_range(address, prefix);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Target::Range(plain(address)?, width(address)));
    }
    if text.contains(':') {
        return Err((
            "it is not an IPv6 address",
            "write an IPv6 address with a port as [address]:port",
        ));
    }
    match text.strip_prefix("*.") {
        Some(name) => {
            let name = parse_name(name)?;
            if !name.contains('.') {
                return Err((
                    "a star right below a top-level name covers half the internet",
                    "name the domain, such as *.example.com",
                ));
            }
            Ok(Target::Below(name))
        }
        None => Ok(Target::Host(parse_name(text)?)),
    }
}

/// `::ffff:1.2.3.4` is the IPv4 address in disguise: two spellings of one
/// destination would let a deny rule miss.
fn plain(address: IpAddr) -> Result<IpAddr, Refusal> {
    if let IpAddr::V6(v6) = address
        && v6.to_ipv4_mapped().is_some()
    {
        return Err((
            "it is an IPv4 address written as IPv6",
            "write the IPv4 address itself",
        ));
    }
    Ok(address)
}

fn parse_range(address: &str, prefix: &str) -> Result<Target, Refusal> {
    let address: IpAddr = address
        .parse()
        .map_err(|_| ("what stands before the slash is not an IP address", FORMS))?;
    let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
    let prefix = prefix
        .parse::<u8>()
        .ok()
        .filter(|p| digits && *p <= width(address))
        .ok_or((
            "the prefix length is out of range",
            "write /0 to /32 for IPv4, /0 to /128 for IPv6",
        ))?;
    if network_bits(address, prefix) != bits(address) {
        return Err((
            "the address has bits set behind the prefix",
            "write the first address of the range, or the address without a prefix",
        ));
    }
    if prefix == 0 {
        return Err((
            "a range of every address would let everything through",
            "name the ranges, or use a profile of tier loose whose network.default is allow",
        ));
    }
    Ok(Target::Range(plain(address)?, prefix))
}

/// Lower case, no trailing dot, RFC 1123 labels (and `_`, which real service
/// names carry). Non-ASCII names have to be written in their `xn--` form, so
/// that one spelling decides.
fn parse_name(text: &str) -> Result<String, Refusal> {
    if !text.is_ascii() {
        return Err((
            "the name has characters outside ASCII",
            "write the name in its xn-- form",
        ));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.is_empty() || name.len() > 253 {
        return Err(("a name has 1 to 253 characters", FORMS));
    }
    for label in name.split('.') {
        let good = (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !good {
            return Err((
                "each part of a name is 1 to 63 letters, digits, hyphens",
                if label.contains('*') {
                    "a star may only stand first, as in *.example.com"
                } else {
                    FORMS
                },
            ));
        }
    }
    // `127.1`, `0x7f000001` and `2130706433` are addresses to inet_aton(3).
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit())
        || last
            .strip_prefix("0x")
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    if numeric {
        return Err((
            "the name reads as a number, which some programs take for an address",
            "write the address in full, such as 127.0.0.1",
        ));
    }
    Ok(name)
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;

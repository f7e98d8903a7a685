//! Addresses and names that are not the public internet (NW-12, design §6).
//!
//! They stay blocked where `network.default` is allow, unless they are listed.

use crate::network::{Rule, Target};

/// Ranges of the IANA special-purpose registries, the tunnels that can carry
/// them, and the metadata address that a cloud put into public space.
pub const RANGES: [&str; 29] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::",
    "::1",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

/// Names that are answered inside networks only.
pub const DOMAINS: [&str; 7] = [
    "local",
    "internal",
    "svc",
    "lan",
    "home.arpa",
    "localhost",
    "localdomain",
];

/// Whether a rule names nothing but the public internet. A name without a dot is
/// a neighbour's, not the internet's.
#[must_use]
pub fn is_public(rule: &Rule) -> bool {
    match &rule.target {
        Target::Host(name) | Target::Below(name) => {
            name.contains('.')
                && !DOMAINS.iter().any(|domain| {
                    name.strip_suffix(domain)
                        .is_some_and(|head| head.is_empty() || head.ends_with('.'))
                })
        }
        Target::Range(..) => {
            let bare = Rule {
                target: rule.target.clone(),
                ports: crate::network::Ports::ALL,
            };
            !RANGES
                .iter()
                .filter_map(|range| range.parse::<Rule>().ok())
                .any(|range| range.covers(&bare) || bare.covers(&range))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_parses_and_is_not_public() {
        for range in RANGES {
            let rule = range.parse::<Rule>().unwrap();
            assert!(!is_public(&rule), "{range}");
        }
    }

    #[test]
    fn public_and_not() {
        for text in [
            "pypi.org:443",
            "*.example.com",
            "1.1.1.1",
            "8.8.8.0/24",
            "2606:4700::1111",
        ] {
            assert!(is_public(&text.parse().unwrap()), "{text}");
        }
        for text in [
            "internal-pypi.local",
            "api.internal.svc",
            "db",
            "10.1.2.3:443",
            "169.254.169.254",
            "128.0.0.0/1",
            "fd00::1",
            "*.home.arpa",
            "localhost:80",
        ] {
            assert!(!is_public(&text.parse().unwrap()), "{text}");
        }
    }
}

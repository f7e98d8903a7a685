//! Destinations that are wider than they need to be (NW-03).

use super::Lint;
use crate::network::{Ports, Rule, Target};
use crate::profile::{Profile, Tier};

impl Lint<'_> {
    pub(super) fn network(&mut self, profile: &Profile) {
        let network = &profile.network;
        let parse = |rules: &[String]| -> Vec<Rule> {
            rules.iter().filter_map(|rule| rule.parse().ok()).collect()
        };
        let denied = parse(&network.deny);
        let rules = parse(&network.allow);
        for (i, rule) in rules.iter().enumerate() {
            let field = "sandbox.network.allow";
            let item = Some(i);
            if let Some(winner) = denied.iter().find(|deny| deny.covers(rule)) {
                let message = format!("{rule} never counts, because {winner} is denied");
                self.warn("dead_rule", field, item, message, "remove one of the two");
                continue;
            }
            if rules[..i].iter().any(|earlier| earlier.covers(rule)) {
                let message = format!("{rule} is let through by a rule above it");
                self.warn("repeated_rule", field, item, message, "remove it");
                continue;
            }
            match &rule.target {
                Target::Below(_) => self.warn(
                    "star_rule",
                    field,
                    item,
                    format!("{rule} lets through names that nobody has seen yet (NW-03)"),
                    "name each host",
                ),
                Target::Range(address, prefix) => {
                    let narrow = if address.is_ipv4() { 24 } else { 64 };
                    if *prefix < narrow {
                        let message = format!("{rule} is a wide range (NW-03)");
                        let remedy = format!("name addresses, or ranges of /{narrow} and less");
                        self.warn("wide_range", field, item, message, remedy);
                    }
                }
                Target::Host(_) if rule.ports == Ports::ALL => self.warn(
                    "bare_name",
                    field,
                    item,
                    format!("{rule} is let through on every port (NW-03)"),
                    format!("add the port, such as {rule}:443; an address is stricter than a name"),
                ),
                Target::Host(_) => {}
            }
            let ports = rule.ports;
            let width = u32::from(ports.last) - u32::from(ports.first);
            if ports != Ports::ALL && width >= 100 {
                let message = format!("{rule} opens {} ports (NW-03)", width + 1);
                self.warn("wide_ports", field, item, message, "name the ports");
            }
            if matches!(rule.target, Target::Range(..)) && ports == Ports::ALL {
                self.warn(
                    "bare_address",
                    field,
                    item,
                    format!("{rule} is let through on every port (NW-03)"),
                    "add the port",
                );
            }
        }
        if profile.tier == Tier::Strict && network.needs_egress() {
            self.warn(
                "strict_network",
                "sandbox.network.allow",
                None,
                "untrusted work that can talk to somebody can carry data there (NW-09)",
                "leave the list empty, unless the task cannot do without",
            );
        }
    }
}

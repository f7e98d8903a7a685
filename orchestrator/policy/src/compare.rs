//! The order of profiles: field by field, does one allow more than the other?
//!
//! The match is exhaustive: a field added to [`Profile`] does not compile until
//! somebody has said which of two values allows more, and who may raise it
//! (design §5).

use std::path::PathBuf;

use serde::Serialize;

use crate::extends::tier_word;
use crate::network::Rule;
use crate::profile::{Access, Env, Limits, Mount, Network, NetworkDefault, Profile, Tier};
use crate::reserved;

/// How the left profile stands to the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// The left one allows less.
    Tighter,
    /// Both allow the same.
    Equal,
    /// The left one allows more.
    Looser,
    /// Each allows something that the other does not.
    Incomparable,
}

impl Relation {
    /// Whether the left one allows nothing that the right one does not.
    #[must_use]
    pub const fn allows_no_more(self) -> bool {
        matches!(self, Relation::Tighter | Relation::Equal)
    }

    const fn of(left_within_right: bool, right_within_left: bool) -> Self {
        match (left_within_right, right_within_left) {
            (true, true) => Relation::Equal,
            (true, false) => Relation::Tighter,
            (false, true) => Relation::Looser,
            (false, false) => Relation::Incomparable,
        }
    }
}

/// Who may make a field looser than the shipped profile of the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bounded {
    /// Nobody: the tier is this.
    Tier,
    /// Whoever writes the profile: the shipped value is a starting point (PR-24).
    User,
}

/// One field of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Order {
    /// Key of the profile.
    pub field: &'static str,
    /// How the left value stands to the right one.
    pub relation: Relation,
    /// Who may loosen it.
    pub bounded: Bounded,
}

fn order<T: ?Sized>(
    field: &'static str,
    bounded: Bounded,
    left: &T,
    right: &T,
    within: impl Fn(&T, &T) -> bool,
) -> Order {
    Order {
        field,
        relation: Relation::of(within(left, right), within(right, left)),
        bounded,
    }
}

/// Every field of `left` against the same field of `right`.
#[must_use]
pub fn compare(left: &Profile, right: &Profile) -> Vec<Order> {
    use Bounded::{Tier as Fixed, User};
    let Profile {
        name,
        description,
        tier,
        image,
        root,
        workspace,
        workspace_mode,
        tmpdir,
        mounts,
        deny_paths,
        network,
        limits,
        command_timeout_ms,
        timeout_ms,
        env,
        syscalls,
        uid,
        gid,
        hostname,
        reuse,
    } = left;
    let Env { allow, set } = env;
    let r = right;
    let mut orders = vec![
        // Words: they allow nothing.
        order("name", User, name, &r.name, |_, _| true),
        order("description", User, description, &r.description, |_, _| {
            true
        }),
        order("tier", Fixed, tier, &r.tier, |a, b| a >= b),
        // Two images hold different things; neither is more.
        order("sandbox.image", User, image, &r.image, |a, b| a == b),
        order("sandbox.root", Fixed, root, &r.root, |a, b| a <= b),
        order(
            "sandbox.workspace",
            User,
            workspace,
            &r.workspace,
            no_more_host,
        ),
        order(
            "sandbox.workspace_mode",
            Fixed,
            workspace_mode,
            &r.workspace_mode,
            |a, b| a <= b,
        ),
        order("sandbox.tmpdir", User, tmpdir, &r.tmpdir, no_more_host),
        order("sandbox.mounts", User, mounts, &r.mounts, |a, b| {
            a.iter().all(|mount| mount_within(mount, b))
        }),
        order(
            "sandbox.deny_paths",
            User,
            deny_paths,
            &r.deny_paths,
            |a, b| {
                b.iter()
                    .all(|hidden| a.iter().any(|own| hidden.starts_with(own)))
            },
        ),
    ];
    orders.extend(network_orders(network, &r.network));
    orders.extend(limit_orders(limits, &r.limits));
    orders.extend([
        order(
            "command_timeout_seconds",
            User,
            command_timeout_ms,
            &r.command_timeout_ms,
            |a, b| a <= b,
        ),
        order(
            "timeout_seconds",
            User,
            timeout_ms,
            &r.timeout_ms,
            |a, b| a <= b,
        ),
        order("env.allow", User, allow, &r.env.allow, |a, b| {
            a.iter().all(|name| b.contains(name))
        }),
        order("env.set", User, set, &r.env.set, |a, b| {
            a.iter().all(|pair| b.contains(pair))
        }),
        order("syscalls", Fixed, syscalls, &r.syscalls, |a, b| a >= b),
        // Ids other than 0 differ in nothing: no file inside belongs to another.
        order("user", User, &(*uid, *gid), &(r.uid, r.gid), |a, b| {
            (a.0 != 0 || b.0 == 0) && (a.1 != 0 || b.1 == 0)
        }),
        order("hostname", User, hostname, &r.hostname, |_, _| true),
        order("reuse", Fixed, reuse, &r.reuse, |a, b| a >= b),
    ]);
    orders
}

fn no_more_host(left: &Option<PathBuf>, right: &Option<PathBuf>) -> bool {
    left.is_none() || left == right
}

/// A read-only tree of the image itself grants nothing that is not there anyway.
fn mount_within(mount: &Mount, others: &[Mount]) -> bool {
    let Mount { path, source, mode } = mount;
    (source.is_none() && *mode == Access::Ro)
        || others
            .iter()
            .any(|o| o.path == *path && o.source == *source && *mode <= o.mode)
}

fn network_orders(left: &Network, right: &Network) -> [Order; 3] {
    let Network {
        default,
        allow: _,
        deny: _,
    } = left;
    [
        order(
            "sandbox.network.default",
            Bounded::Tier,
            default,
            &right.default,
            |a, b| a >= b,
        ),
        // Deny beats allow, and default decides the rest, so the list is read
        // together with the default of the other side.
        order(
            "sandbox.network.allow",
            Bounded::User,
            left,
            right,
            |a, b| a.allow.iter().all(|rule| allowed_by(rule, b)),
        ),
        order(
            "sandbox.network.deny",
            Bounded::User,
            left,
            right,
            |a, b| b.deny.iter().all(|rule| covered(rule, &a.deny)),
        ),
    ]
}

fn covered(rule: &str, rules: &[String]) -> bool {
    let Ok(rule) = rule.parse::<Rule>() else {
        return false;
    };
    rules
        .iter()
        .filter_map(|other| other.parse::<Rule>().ok())
        .any(|other| other.covers(&rule))
}

fn allowed_by(rule: &str, network: &Network) -> bool {
    let public = rule.parse().is_ok_and(|rule| reserved::is_public(&rule));
    (network.default == NetworkDefault::Allow && public) || covered(rule, &network.allow)
}

fn limit_orders(left: &Limits, right: &Limits) -> Vec<Order> {
    let Limits {
        cpu_seconds,
        cpu_milli,
        memory_bytes,
        processes,
        open_files,
        file_size_bytes,
        stack_bytes,
        tmp_bytes,
        tmp_inodes,
        output_bytes,
        out_bytes,
        io_read_bytes_per_second,
        io_write_bytes_per_second,
    } = left;
    let r = right;
    let number = |field, a: &u64, b: &u64| order(field, Bounded::User, a, b, |a, b| a <= b);
    let rate = |field, a: &Option<u64>, b: &Option<u64>| {
        order(field, Bounded::User, a, b, |a, b| {
            a.unwrap_or(u64::MAX) <= b.unwrap_or(u64::MAX)
        })
    };
    vec![
        number("limits.cpu_seconds", cpu_seconds, &r.cpu_seconds),
        number("limits.cpus", cpu_milli, &r.cpu_milli),
        number("limits.memory_mb", memory_bytes, &r.memory_bytes),
        number("limits.open_files", open_files, &r.open_files),
        number("limits.processes", processes, &r.processes),
        number("limits.file_size_mb", file_size_bytes, &r.file_size_bytes),
        number("limits.stack_mb", stack_bytes, &r.stack_bytes),
        number("limits.tmp_mb", tmp_bytes, &r.tmp_bytes),
        number("limits.tmp_inodes", tmp_inodes, &r.tmp_inodes),
        number("limits.output_mb", output_bytes, &r.output_bytes),
        number("limits.out_mb", out_bytes, &r.out_bytes),
        rate(
            "limits.io_read_mb_per_second",
            io_read_bytes_per_second,
            &r.io_read_bytes_per_second,
        ),
        rate(
            "limits.io_write_mb_per_second",
            io_write_bytes_per_second,
            &r.io_write_bytes_per_second,
        ),
    ]
}

/// A field that its tier does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TooLoose {
    /// Key of the profile.
    pub field: &'static str,
    /// The tier that allows it.
    pub needs: Tier,
    /// In words.
    pub reason: String,
}

impl std::fmt::Display for TooLoose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

/// Whether `profile` keeps the bounds of its tier. `shipped` is the shipped
/// profile of that tier.
///
/// Limits, time-outs, mounts, variables, the image and the destinations let
/// through are meant to be set by whoever writes the profile. The rest is what
/// the tier is. In strict also: no writable host path (PR-09), no uid or gid 0.
///
/// # Errors
/// Every field that is too loose; never an empty list.
pub fn check_tier(profile: &Profile, shipped: &Profile) -> Result<(), Vec<TooLoose>> {
    let tier = tier_word(shipped.tier);
    let mut loose: Vec<TooLoose> = compare(profile, shipped)
        .into_iter()
        .filter(|order| order.bounded == Bounded::Tier && !order.relation.allows_no_more())
        .map(|order| TooLoose {
            field: order.field,
            needs: needs(order.field, profile),
            reason: format!("allows more than tier {tier}"),
        })
        .collect();
    if profile.tier == Tier::Strict {
        let mut refuse = |field, reason: String| {
            loose.push(TooLoose {
                field,
                needs: Tier::Standard,
                reason,
            });
        };
        for mount in &profile.mounts {
            if mount.mode == Access::Rw {
                let path = &mount.path;
                refuse("sandbox.mounts", format!("{path:?} can be written (PR-09)"));
            }
        }
        if profile.uid == 0 || profile.gid == 0 {
            refuse("user", "uid or gid 0 in tier strict".to_owned());
        }
    }
    if loose.is_empty() { Ok(()) } else { Err(loose) }
}

fn needs(field: &str, profile: &Profile) -> Tier {
    match field {
        "syscalls" => profile.syscalls.tier(),
        "reuse" => match profile.reuse {
            crate::profile::Reuse::Pool => Tier::Loose,
            _ => Tier::Standard,
        },
        "sandbox.workspace_mode" => Tier::Standard,
        _ => Tier::Loose,
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;

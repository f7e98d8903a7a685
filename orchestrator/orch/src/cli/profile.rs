//! `orch profile`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use orch_engine::StateDir;
use orch_policy::builtin::{self, NAMES};
use orch_policy::compare::{Bounded, Order, Relation, compare};
use orch_policy::lint::{self, Warning};
use orch_policy::load::Loaded;
use orch_policy::{Error, Profile, Tier, digest, provenance, schema};
use serde_json::{Value, json};

use crate::home::home;
use crate::print::{self, Format, columns};
use crate::profile_arg;
use crate::refusal::{self, FAILED};

/// List, show, check and compare profiles.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orch profile show strict                    every value, and where it comes from
  orch profile lint my.yaml                   is it right, and does it keep its tier?
  orch profile compare my.yaml standard       what it allows more, and what less
  orch profile schema > profile.schema.json   for an editor")]
pub struct ProfileArgs {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// List the shipped profiles.
    Ls(Listing),
    /// Show the effective value of every field and where it comes from.
    Show {
        /// Shipped profile or profile file.
        #[arg(value_name = "NAME|FILE")]
        profile: OsString,
        #[command(flatten)]
        listing: Listing,
    },
    /// Check profile files; exits with 125 where one is wrong, warnings aside.
    Lint {
        /// Profile files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Compare two profiles field by field; exits with 1 where A allows anything that B does not.
    Compare {
        /// Shipped profile or profile file.
        #[arg(value_name = "A")]
        left: OsString,
        /// Shipped profile or profile file.
        #[arg(value_name = "B")]
        right: OsString,
        /// Show the fields that are equal, too.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Print the JSON Schema of profile files.
    Schema(Listing),
}

#[derive(Debug, Args)]
struct Listing {
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl ProfileArgs {
    /// Whether errors are wanted as JSON.
    pub fn json(&self) -> bool {
        use ProfileCommand::{Compare, Lint, Ls, Schema, Show};
        let (Ls(listing)
        | Schema(listing)
        | Show { listing, .. }
        | Lint { listing, .. }
        | Compare { listing, .. }) = &self.command;
        listing.format == Format::Json
    }
}

/// Runs the subcommand.
///
/// # Errors
/// What loading a profile complains of.
pub fn run(args: ProfileArgs) -> Result<u8, Error> {
    let as_json = args.json();
    match args.command {
        ProfileCommand::Ls(_) => list(as_json),
        ProfileCommand::Show { profile, .. } => show(&load(&profile)?, as_json),
        ProfileCommand::Lint { files, .. } => lint(&files, as_json),
        ProfileCommand::Compare {
            left, right, all, ..
        } => order(&load(&left)?.profile, &load(&right)?.profile, all, as_json),
        ProfileCommand::Schema(_) => print::text(&schema::text()).map(|()| 0),
    }
}

fn load(name: &std::ffi::OsStr) -> Result<Loaded, Error> {
    profile_arg::by_name(name, &home()?, &[StateDir::default_path()])
}

fn list(as_json: bool) -> Result<u8, Error> {
    let home = home()?;
    let profiles = NAMES
        .iter()
        .map(|name| Ok(builtin::builtin(name, &home)?.profile))
        .collect::<Result<Vec<Profile>, Error>>()?;
    if as_json {
        let list: Vec<Value> = profiles
            .iter()
            .map(|profile| {
                json!({
                    "name": profile.name,
                    "tier": profile.tier,
                    "network": profile.network.default,
                    "description": profile.description,
                })
            })
            .collect();
        print::json(&list)?;
        return Ok(0);
    }
    let mut rows = vec![["NAME", "TIER", "DESCRIPTION"].map(str::to_owned)];
    for profile in &profiles {
        let tier = print::word(&profile.tier);
        rows.push([profile.name.clone(), tier, profile.description.clone()]);
    }
    print::text(&columns(&rows))?;
    Ok(0)
}

fn show(loaded: &Loaded, as_json: bool) -> Result<u8, Error> {
    let rows = loaded.provenance();
    let sha256 = digest::sha256(&loaded.profile)?;
    if as_json {
        let sources: Vec<Value> = loaded
            .sources()
            .map(|(file, text)| json!({"file": file, "sha256": digest::sha256_text(text)}))
            .collect();
        print::json(&json!({
            "name": loaded.profile.name,
            "tier": loaded.profile.tier,
            "sha256": sha256,
            "sources": sources,
            "fields": rows,
        }))?;
    } else {
        print::text(&format!("{}\nsha256 {sha256}\n", provenance::table(&rows)))?;
    }
    Ok(0)
}

/// Goes on after a file that is wrong, so that one run names them all.
fn lint(files: &[PathBuf], as_json: bool) -> Result<u8, Error> {
    let (home, reserved) = (home()?, [StateDir::default_path()]);
    let mut results = Vec::new();
    let mut code = 0;
    for file in files {
        let shown = file.to_string_lossy();
        let checked = profile_arg::from_file(file, &home, &reserved)
            .and_then(|loaded| Ok((lint::lint(&loaded, &home)?, loaded.profile.tier)));
        match checked {
            Ok((warnings, tier)) if as_json => results.push(json!({
                "file": shown,
                "ok": true,
                "tier": tier,
                "warnings": warnings,
            })),
            Ok((warnings, tier)) => print::text(&lint_text(&shown, &tier, &warnings))?,
            Err(error) => {
                code = FAILED;
                refusal::report(&error, false);
                results.push(json!({"file": shown, "ok": false, "error": error}));
            }
        }
    }
    if as_json {
        print::json(&results)?;
    }
    Ok(code)
}

fn lint_text(file: &str, tier: &Tier, warnings: &[Warning]) -> String {
    let tier = print::word(tier);
    let mut text = format!("{}: ok, tier {tier}\n", print::harmless(file));
    for warning in warnings {
        let (what, fix) = (warning.to_string(), &warning.remediation);
        text += &format!("  warning: {}\n", print::harmless(&what));
        text += &format!("    do: {} ({})\n", print::harmless(fix), warning.code);
    }
    text
}

fn order(left: &Profile, right: &Profile, all: bool, as_json: bool) -> Result<u8, Error> {
    let orders = compare(left, right);
    let within = orders.iter().all(|order| order.relation.allows_no_more());
    if as_json {
        print::json(&json!({
            "left": left.name,
            "right": right.name,
            "allows_no_more": within,
            "fields": orders,
        }))?;
    } else {
        print::text(&order_text(left, right, &orders, all))?;
    }
    Ok(if within { 0 } else { 1 })
}

fn order_text(left: &Profile, right: &Profile, orders: &[Order], all: bool) -> String {
    let mut rows = vec![["FIELD", "A IS", "WHO MAY LOOSEN IT"].map(str::to_owned)];
    for order in orders {
        if all || order.relation != Relation::Equal {
            let who = match order.bounded {
                Bounded::Tier => "nobody: it is the tier",
                Bounded::User => "the profile",
            };
            rows.push([
                order.field.to_owned(),
                print::word(&order.relation),
                who.to_owned(),
            ]);
        }
    }
    let names = format!("A {}, B {}", left.name, right.name);
    let more = orders
        .iter()
        .filter(|order| !order.relation.allows_no_more())
        .count();
    let verdict = match more {
        0 => "A allows nothing that B does not".to_owned(),
        1 => "A allows more in 1 field".to_owned(),
        more => format!("A allows more in {more} fields"),
    };
    let table = if rows.len() > 1 {
        columns(&rows)
    } else {
        String::new()
    };
    format!("{}: {verdict}\n{table}", print::harmless(&names))
}

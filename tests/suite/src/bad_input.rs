//! What bad profiles get (PR-17, PR-31, PR-36, H13).

use crate::call::{Call, ensure};
use crate::harness::{Test, Verdict, test};
use crate::place::Place;
use crate::refusal::refused;

pub fn tests() -> Vec<Test> {
    vec![
        test("bad_input::unknown_profiles", unknown),
        test("bad_input::yaml_that_is_none_pr36", syntax),
        test("bad_input::values_of_the_wrong_type_pr36", types),
        test("bad_input::unknown_keys_with_a_suggestion_pr36", keys),
        test("bad_input::limits_of_a_profile_h13", limits),
        test("bad_input::time_outs_of_a_profile", timeouts),
        test("bad_input::more_than_the_tier_allows_pr31", too_loose),
        test("bad_input::extends_that_cannot_be", extends),
        test("bad_input::a_sound_profile_runs", control),
        test("bad_input::egress_without_a_gateway", egress),
    ]
}

/// A profile of this text is refused.
fn profile(text: &str, code: &str, words: &[&str]) -> Result<(), String> {
    let place = Place::new()?;
    let path = place.profile(text)?;
    refused(|| Call::new(&path), code, words).map_err(|why| format!("{text:?}: {why}"))
}

fn unknown() -> Result<Verdict, String> {
    refused(
        || Call::new("strcit"),
        "profile_unknown",
        &["strcit", "strict"],
    )?;
    refused(
        || Call::new("/nonexistent/profile.yaml"),
        "profile_unknown",
        &["/nonexistent/profile.yaml"],
    )?;
    refused(|| Call::new(""), "profile_unknown", &[])?;
    Ok(Verdict::Held)
}

fn syntax() -> Result<Verdict, String> {
    for text in [
        "tier: standard\nlimits: {memory_mb: 64\n",
        "tier: standard\n\tlimits: 1\n",
        "tier: [standard\n",
        "limits:\n  memory_mb: 64\nlimits:\n  memory_mb: 65\n",
        "a: &a [*a, *a]\n",
    ] {
        let place = Place::new()?;
        let path = place.profile(text)?;
        crate::refusal::one_of(
            || Call::new(&path),
            &["profile_syntax", "profile_unknown_key"],
            &["profile.yaml:"],
        )
        .map_err(|why| format!("{text:?}: {why}"))?;
    }
    profile(
        "tier: standard\nlimits: {memory_mb: 64\n",
        "profile_syntax",
        &["profile.yaml:"],
    )?;
    Ok(Verdict::Held)
}

fn types() -> Result<Verdict, String> {
    for (text, place) in [
        ("limits:\n  memory_mb: lots\n", "profile.yaml:2:"),
        ("limits:\n  memory_mb: 1.5\n", "profile.yaml:2:"),
        ("limits:\n  memory_mb: [1]\n", "profile.yaml:2:"),
        ("limits: 5\n", "profile.yaml:1:"),
        ("sandbox:\n  mounts: /usr\n", "profile.yaml:2:"),
        (
            "sandbox:\n  network:\n    default: maybe\n",
            "profile.yaml:3:",
        ),
        ("tier: loosest\n", "profile.yaml:1:"),
        ("sandbox:\n  deny_paths: {a: b}\n", "profile.yaml:2:"),
    ] {
        let at = Place::new()?;
        let path = at.profile(text)?;
        crate::refusal::one_of(
            || Call::new(&path),
            &["profile_syntax", "profile_invalid"],
            &[place],
        )
        .map_err(|why| format!("{text:?}: {why}"))?;
    }
    Ok(Verdict::Held)
}

fn keys() -> Result<Verdict, String> {
    let unknown = "profile_unknown_key";
    profile(
        "limits:\n  memory_mbb: 64\n",
        unknown,
        &["profile.yaml:2:3", "memory_mb"],
    )?;
    profile(
        "sandbx:\n  root: ro\n",
        unknown,
        &["profile.yaml:1:1", "sandbox"],
    )?;
    profile(
        "sandbox:\n  network:\n    defualt: deny\n",
        unknown,
        &["profile.yaml:3:5", "default"],
    )?;
    Ok(Verdict::Held)
}

fn limits() -> Result<Verdict, String> {
    for key in [
        "cpu_seconds",
        "cpus",
        "memory_mb",
        "processes",
        "open_files",
        "file_size_mb",
        "stack_mb",
        "tmp_mb",
        "tmp_inodes",
        "output_mb",
        "out_mb",
        "io_read_mb_per_second",
        "io_write_mb_per_second",
    ] {
        for value in ["0", "-1", "99999999999999999999"] {
            let text = format!("limits:\n  {key}: {value}\n");
            let place = Place::new()?;
            let path = place.profile(&text)?;
            refused(
                || Call::new(&path),
                "limit_invalid",
                &[key, "profile.yaml:2:"],
            )
            .map_err(|why| format!("{key}: {value}: {why}"))?;
        }
    }
    Ok(Verdict::Held)
}

fn timeouts() -> Result<Verdict, String> {
    for value in ["0", "-5", "400d", "99999999999"] {
        let text = format!("timeout_seconds: {value}\n");
        profile(&text, "limit_invalid", &["timeout_seconds"])?;
    }
    profile(
        "timeout_seconds: 5\ncommand_timeout_seconds: 6\n",
        "profile_invalid",
        &["command_timeout_seconds"],
    )?;
    Ok(Verdict::Held)
}

fn too_loose() -> Result<Verdict, String> {
    for text in [
        "tier: standard\nsandbox:\n  network:\n    default: allow\n",
        "tier: strict\nsandbox:\n  network:\n    default: allow\n",
        "tier: strict\nsandbox:\n  workspace_mode: rw\n",
        "tier: strict\nsandbox:\n  root: rw\n",
        "tier: strict\nsyscalls: loose\n",
        "tier: strict\nreuse: pool\n",
    ] {
        let place = Place::new()?;
        let path = place.profile(text)?;
        crate::refusal::one_of(
            || Call::new(&path),
            &["profile_too_loose", "profile_invalid"],
            &["profile.yaml"],
        )
        .map_err(|why| format!("{text:?}: {why}"))?;
    }
    Ok(Verdict::Held)
}

fn extends() -> Result<Verdict, String> {
    let place = Place::new()?;
    let own = place.join("profile.yaml");
    let text = format!("extends: {}\n", own.display());
    place.profile(&text)?;
    refused(|| Call::new(&own), "profile_invalid", &["profile.yaml"])?;
    let place = Place::new()?;
    let path = place.profile("extends: nowhere\n")?;
    refused(|| Call::new(&path), "profile_unknown", &["nowhere"])?;
    Ok(Verdict::Held)
}

/// The same keys with values that are right.
fn control() -> Result<Verdict, String> {
    let text = "version: 1\ntier: strict\nlimits:\n  cpu_seconds: 30\n  cpus: 0.5\n  \
                memory_mb: 64\n  processes: 8\n  open_files: 64\n  file_size_mb: 1\n  \
                stack_mb: 1\n  tmp_mb: 4\n  tmp_inodes: 64\n  output_mb: 1\n  out_mb: 1\n\
                timeout_seconds: 30\ncommand_timeout_seconds: 20\n";
    let place = Place::new()?;
    let path = place.profile(text)?;
    Call::new(&path)?.sh("echo sound").run()?.says("sound")?;
    Ok(Verdict::Held)
}

/// Never without its filter (issue item 4).
fn egress() -> Result<Verdict, String> {
    let code = "egress_unavailable";
    refused(|| Call::new("loose"), code, &["loose", "--network none"])?;
    let place = Place::new()?;
    let path = place.profile("sandbox:\n  network:\n    allow: [example.com]\n")?;
    refused(|| Call::new(&path), code, &["--network none"])?;
    let ended = Call::new("loose")?
        .args(["--network", "none"])
        .sh("grep -c : /proc/net/dev")
        .run()?;
    ended.says("1")?;
    let ended = Call::new(&path)?
        .args(["--network", "none"])
        .sh("echo cut")
        .run()?;
    ensure!(ended.out() == "cut", "{ended:?}");
    Ok(Verdict::Held)
}

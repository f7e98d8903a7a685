//! Every field of a profile by the key and in the unit of the file, so that what
//! is shown can be written into a file as it is.

use serde_json::{Value, json};

use crate::extends::tier_word;
use crate::profile::{Access, Env, Image, Limits, Mount, Network, Profile};
use crate::quantity::{self, MIB};

/// Key and value of every field, in the order of the file.
///
/// The match is exhaustive, so a new field is shown or does not compile.
#[must_use]
pub fn fields(profile: &Profile) -> Vec<(String, Value)> {
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
    } = profile;
    let Network {
        default,
        allow,
        deny,
    } = network;
    let image = match image {
        Image::Host => "host".into(),
        Image::Dir(dir) => dir.to_string_lossy(),
    };
    let path = |path: &std::path::Path| Value::from(path.to_string_lossy());
    let optional = |value: &Option<std::path::PathBuf>| value.as_deref().map(path);
    let mut rows = vec![
        ("name", json!(name)),
        ("description", json!(description)),
        ("tier", json!(tier_word(*tier))),
        ("sandbox.image", json!(image)),
        ("sandbox.root", json!(root)),
        ("sandbox.workspace", json!(optional(workspace))),
        ("sandbox.workspace_mode", json!(workspace_mode)),
        ("sandbox.tmpdir", json!(optional(tmpdir))),
        ("sandbox.mounts", mounts.iter().map(mount).collect()),
        (
            "sandbox.deny_paths",
            deny_paths.iter().map(|p| path(p)).collect(),
        ),
        ("sandbox.network.default", json!(default)),
        ("sandbox.network.allow", json!(allow)),
        ("sandbox.network.deny", json!(deny)),
    ];
    rows.extend(limit_fields(limits));
    rows.extend([
        ("timeout_seconds", seconds(*timeout_ms)),
        ("command_timeout_seconds", seconds(*command_timeout_ms)),
    ]);
    let Env { allow, set } = env;
    rows.push(("env.allow", json!(allow)));
    let mut rows: Vec<(String, Value)> = rows
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    rows.extend(
        set.iter()
            .map(|(name, value)| (format!("env.set.{name}"), json!(value))),
    );
    rows.extend(
        [
            ("syscalls", json!(syscalls.word())),
            ("user", json!(format!("{uid}:{gid}"))),
            ("hostname", json!(hostname)),
            ("reuse", json!(reuse)),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    rows
}

fn mount(mount: &Mount) -> Value {
    let Mount { path, source, mode } = mount;
    let mode = match mode {
        Access::Ro => "ro",
        Access::Rw => "rw",
    };
    match source {
        Some(source) => json!({
            "path": path.to_string_lossy(),
            "source": source.to_string_lossy(),
            "mode": mode,
        }),
        None => json!({ "path": path.to_string_lossy(), "mode": mode }),
    }
}

fn limit_fields(limits: &Limits) -> [(&'static str, Value); 13] {
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
    } = limits;
    [
        ("limits.cpu_seconds", json!(cpu_seconds)),
        ("limits.cpus", json!(quantity::show_cpus(*cpu_milli))),
        ("limits.memory_mb", mib(*memory_bytes)),
        ("limits.open_files", json!(open_files)),
        ("limits.processes", json!(processes)),
        ("limits.file_size_mb", mib(*file_size_bytes)),
        ("limits.stack_mb", mib(*stack_bytes)),
        ("limits.tmp_mb", mib(*tmp_bytes)),
        ("limits.tmp_inodes", json!(tmp_inodes)),
        ("limits.output_mb", mib(*output_bytes)),
        ("limits.out_mb", mib(*out_bytes)),
        (
            "limits.io_read_mb_per_second",
            json!(io_read_bytes_per_second.map(mib)),
        ),
        (
            "limits.io_write_mb_per_second",
            json!(io_write_bytes_per_second.map(mib)),
        ),
    ]
}

/// MiB where it is a whole number of them, which it is for every loaded profile.
fn mib(bytes: u64) -> Value {
    if bytes.is_multiple_of(MIB) {
        json!(bytes / MIB)
    } else {
        json!(format!("{bytes} bytes"))
    }
}

fn seconds(ms: u64) -> Value {
    if ms.is_multiple_of(1000) {
        json!(ms / 1000)
    } else {
        json!(quantity::show_duration(ms))
    }
}

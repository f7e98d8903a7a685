//! An image for `docker run` that holds the measured command and its
//! libraries, made from this machine: nothing is pulled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// A local image; it is removed with this value.
#[derive(Debug)]
pub struct Image {
    docker: PathBuf,
    tag: String,
}

impl Image {
    /// Imports `program` with the libraries that it loads.
    ///
    /// # Errors
    /// When `ldd`, `tar` or `docker import` fails.
    pub fn around(docker: &Path, program: &str) -> Result<Self> {
        let ldd = Command::new("ldd")
            .arg(program)
            .stdin(Stdio::null())
            .output()
            .context("cannot start ldd")?;
        let mut files = libraries(&String::from_utf8_lossy(&ldd.stdout));
        files.insert(program.into());
        let mut tar = Command::new("tar")
            .args(["--create", "--dereference", "--directory=/", "--"])
            .args(files.iter().map(|file| file.trim_start_matches('/')))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start tar")?;
        let archive = tar.stdout.take().context("tar has no output")?;
        let tag = format!("orch-bench:{}", std::process::id());
        let import = Command::new(docker)
            .args(["import", "-", &tag])
            .stdin(archive)
            .output()
            .context("cannot start docker import")?;
        let packed = tar.wait().context("cannot reap tar")?;
        ensure!(
            packed.success() && import.status.success(),
            "cannot make an image: {}",
            String::from_utf8_lossy(&import.stderr).trim()
        );
        Ok(Self {
            docker: docker.into(),
            tag,
        })
    }

    /// The name that `docker run` takes.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // An engine that went away meanwhile took its images with it.
        let _ = Command::new(&self.docker)
            .args(["rmi", "--force", &self.tag])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
    }
}

/// The absolute paths in what `ldd` says.
fn libraries(ldd: &str) -> BTreeSet<String> {
    ldd.split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(|word| word.trim_end_matches(':').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_ldd() {
        let ldd = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                   \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                   \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries(ldd), expected.map(String::from).into());
        assert!(libraries("\tnot a dynamic executable\n").is_empty());
    }
}
